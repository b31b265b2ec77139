"""Whether a report can still be believed: genuine, consistent with itself and its ledger, fresh."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numbat_gates.attestation import Statement, open_envelope, peek_keyids, read_statement
from numbat_gates.digests import digest_file
from numbat_gates.freshness import Finding, find_stale, find_unchecked
from numbat_gates.keys import load_public_key
from numbat_gates.reporting.document import REPORT, ReportDocument, read_report
from numbat_gates.verdicts import Verdict, combine
from numbat_ledger import LedgerState, coverage, read_entries, verify_ledger
from numbat_registries import load_registry, refuse, registry_names

KeyFile = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class SignatureState:
    """What is known of a report's signature.

    `state` is unsigned, unchecked (an envelope is there and no key was given) or valid; `keyids`
    are the keys that signed, or for `unchecked` those that the envelope merely claims.
    """

    state: str
    keyids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """A report that was not refused: what it said, and what of that still holds.

    `recorded` is the verdict of the report, `verdict` the one that can be relied on now; `gates`
    holds the latter for each gate. `stale` findings void evidence, `notes` do not.
    """

    report: Path
    recorded: Verdict
    verdict: Verdict
    gates: Mapping[str, Verdict]
    stale: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    signature: SignatureState
    ledger: LedgerState


def verify(
    report_path: str | os.PathLike[str],
    *,
    key: KeyFile | Sequence[KeyFile] | None = None,
    envelope: str | os.PathLike[str] | None = None,
    threshold: int = 1,
) -> Verification:
    """Verify a report against its ledger, its signature, and what is installed here.

    `key` is a public key file, or several of which `threshold` must have signed. Evidence that is
    stale gives NOT_RUN for the gates that rest on it; what is wrong with the report itself refuses.

    Raises GATE-0501 for a file that is no report, GATE-0611 for one that contradicts itself, its
    ledger or its signed statement; GATE-0201 to GATE-0205 for a ledger that is not as written;
    GATE-0601 to GATE-0604 and GATE-0609 for the envelope and keys, GATE-0610 for a signature that
    is due and absent; GATE-0605 for a signature over another artefact, GATE-0606 for a file of the
    report that was edited after signing.
    """
    document = read_report(report_path)
    _check_consistency(document.report)
    keys = [key] if isinstance(key, str | os.PathLike) else list(key or ())
    signature, notes = _check_signature(document, keys, envelope, threshold)
    ledger = _check_ledger(document)
    stale = find_stale(document.report)
    gates = _gate_verdicts(document.report, stale)
    recorded = Verdict(document.report["verdict"])
    return Verification(
        report=document.path,
        recorded=recorded,
        verdict=_verdict_now(recorded, gates, stale),
        gates=gates,
        stale=tuple(stale),
        notes=(*notes, *find_unchecked(document.report)),
        signature=signature,
        ledger=ledger,
    )


def _gate_verdicts(report: Mapping[str, Any], stale: Sequence[Finding]) -> dict[str, Verdict]:
    void = {gate for finding in stale for gate in finding.gates}
    recorded = {gate["id"]: Verdict(gate["verdict"]) for gate in report["gates"]}
    return {
        gate: Verdict.NOT_RUN if gate in void else recorded[gate]
        for gate in sorted({*recorded, *void})
    }


def _verdict_now(
    recorded: Verdict, gates: Mapping[str, Verdict], stale: Sequence[Finding]
) -> Verdict:
    if not stale:
        return recorded
    # What failed on evidence that still holds stays failed; nothing stale is ever a pass.
    return combine([*gates.values(), Verdict.NOT_RUN])


def _check_consistency(report: Mapping[str, Any]) -> None:
    for gate in report["gates"]:
        verdicts = [Verdict(check["verdict"]) for check in gate["checks"]]
        passed, total = verdicts.count(Verdict.PASS), len(verdicts)
        verdicts += [Verdict.ERROR] if gate["error"] else []
        verdicts += [Verdict.NOT_RUN] if gate["not_run"] else []
        due = combine(verdicts)
        if gate["verdict"] != due:
            raise refuse(
                "GATE-0611", reason=f"{gate['id']} says {gate['verdict']}, its checks say {due}"
            )
        if (gate["passed"], gate["total"]) != (passed, total):
            reason = f"{gate['id']} says {gate['passed']} of {gate['total']} checks passed, "
            raise refuse("GATE-0611", reason=reason + f"it lists {passed} of {total}")
    _check_whole(report)


def _check_whole(report: Mapping[str, Any]) -> None:
    gates = {gate["id"]: Verdict(gate["verdict"]) for gate in report["gates"]}
    for phase in report["phases"]:
        verdicts = [gates.get(gate, Verdict.NOT_RUN) for gate in phase["gates"]]
        verdicts += [Verdict.NOT_RUN] if phase["requirements"]["open"] else []
        due = combine(verdicts)
        if phase["verdict"] != due:
            reason = f"phase {phase['phase']} says {phase['verdict']}, its gates say {due}"
            raise refuse("GATE-0611", reason=reason)
    counting = [Verdict(phase["verdict"]) for phase in report["phases"] if not phase["awaited"]]
    verdict, due = Verdict(report["verdict"]), combine(counting)
    if report["selected_gates"]:
        due = combine(gates.values())
    if verdict != due:
        reason = f"the report says {verdict}, its gates and phases say {due}"
        raise refuse("GATE-0611", reason=reason)
    if report["exit_code"] != verdict.exit_code:
        reason = f"exit code {report['exit_code']} does not belong to {verdict}"
        raise refuse("GATE-0611", reason=reason)


def _check_ledger(document: ReportDocument) -> LedgerState:
    report = document.report
    path = document.path.with_name(Path(report["ledger"]["file"]).name)
    state = verify_ledger(path, head=report["ledger"]["head"])
    _check_coverage(report["coverage"], path)
    return state


def _check_coverage(claimed: Mapping[str, Any], ledger: Path) -> None:
    if claimed["registry"] not in registry_names():
        return
    registry = load_registry(claimed["registry"])
    shown = coverage(read_entries(ledger), registry).covered
    live = {code.code for code in registry.live}
    unfounded = [
        code
        for code, places in sorted(claimed["covered"].items())
        # A code that was retired since is no longer counted here, and is no contradiction.
        if code in live and not {tuple(p) for p in places} <= set(shown.get(code, ()))
    ]
    if unfounded:
        reason = f"the ledger holds no such assertion of {', '.join(unfounded)}"
        raise refuse("GATE-0611", reason=reason)


def _check_signature(
    document: ReportDocument,
    keys: Sequence[KeyFile],
    envelope: str | os.PathLike[str] | None,
    threshold: int,
) -> tuple[SignatureState, list[Finding]]:
    path = document.envelope if envelope is None else Path(envelope)
    if not path.is_file():
        if keys or envelope is not None:
            # A signature that was asked for and is not there must not read as a plain report.
            raise refuse("GATE-0610", file=str(path))
        return SignatureState("unsigned"), []
    data = path.read_bytes()
    if not keys:
        return SignatureState("unchecked", peek_keyids(data)), []
    verified = open_envelope(data, [load_public_key(item) for item in keys], threshold=threshold)
    statement = read_statement(verified)
    _bind(document, statement)
    return SignatureState("valid", verified.signers), _check_files(document, statement)


def _bind(document: ReportDocument, statement: Statement) -> None:
    report, predicate = document.report, statement.predicate
    if document.digest not in statement.subjects.values():
        signed = statement.subjects.get(REPORT, "")
        ledger = predicate.get("ledger")
        same_run = (
            isinstance(ledger, Mapping)
            and ledger.get("head") == report["ledger"]["head"]
            and predicate.get("plane") == report["plane"]
            and predicate.get("started_at") == report["started_at"]
        )
        if same_run:
            raise refuse("GATE-0606", file=document.path.name, signed=signed, found=document.digest)
        raise refuse(
            "GATE-0605",
            file=document.path.name,
            signed=sorted(statement.subjects.values()),
            found=document.digest,
        )
    if predicate.get("verdict") != report["verdict"]:
        said = predicate.get("verdict")
        reason = f"the signed statement says {said}, the report {report['verdict']}"
        raise refuse("GATE-0611", reason=reason)


def _check_files(document: ReportDocument, statement: Statement) -> list[Finding]:
    notes = []
    for name, signed in sorted(statement.subjects.items()):
        if signed == document.digest:
            continue
        path = document.path.with_name(Path(name).name)
        if Path(name).name != name or not path.is_file():
            notes.append(Finding("file", name, "unchecked", signed))
            continue
        found = digest_file(path)
        if found != signed:
            raise refuse("GATE-0606", file=name, signed=signed, found=found)
    return notes
