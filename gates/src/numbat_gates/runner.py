"""Running a plane's gates: one ledger, every exception caught, and a verdict for each phase."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from numbat_gates import acceptance
from numbat_gates.checks import Check, site
from numbat_gates.corpora import corpus_root, corpus_sets, using
from numbat_gates.digests import plane_digests
from numbat_gates.planes import Plane
from numbat_gates.registration import Gate, load_gates
from numbat_gates.requirements import Requirements, requirements_of
from numbat_gates.results import CheckResult, GateResult, Run
from numbat_gates.verdicts import NotRun, Verdict
from numbat_ledger import (
    Coverage,
    activate,
    context,
    coverage,
    read_entries,
    verify_ledger,
)
from numbat_registries import Refusal, load_registry, refuse

#: Refusals of this package itself, about a gate that is written wrongly or data that is not what
#: it must be: ERROR, for they measure nothing.
_MISUSE = frozenset({"GATE-0101", "GATE-0401", "GATE-0402", "GATE-0403", "GATE-0702", "GATE-0704"})


class Listener:
    """What a run tells while it goes on; every method may be left as it is."""

    def started(self, plane: Plane, gates: Sequence[Gate], requirements: Requirements) -> None:
        """The gates that will run, in order."""

    def gate_started(self, gate: Gate) -> None:
        """One gate begins."""

    def check_made(self, gate: Gate, result: CheckResult) -> None:
        """One check of the running gate was made."""

    def gate_finished(self, result: GateResult) -> None:
        """One gate has ended."""


def run_plane(
    plane: Plane,
    *,
    phase: int | None = None,
    gates: Sequence[str] = (),
    ledger_file: Path | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run the gates of a plane, of one phase of it, or those picked by id.

    What is raised inside is kept in `ledger_file`, or in a folder that goes with this process.

    Raises the codes of `load_requirements` and `load_gates`; GATE-0903 and GATE-0904 for a gate or
    phase that the plane does not have; GATE-0404 for a ledger file that already holds entries.
    """
    started_at, begin = datetime.now(UTC), perf_counter()
    ledger_path = _fresh_ledger(ledger_file)
    requirements = requirements_of(plane)
    found = load_gates(plane, requirements) if plane.has_requirements else ()
    chosen = _chosen(plane, found, requirements, phase=phase, picked=gates)
    digests = plane_digests(plane, requirements, found) if plane.has_requirements else _NO_DIGESTS
    listener = listener or Listener()
    listener.started(plane, chosen, requirements)
    with activate(ledger_path) as ledger:
        results = list(
            _run_gates(plane, requirements, chosen, phase=phase, picked=gates, listener=listener)
        )
    ledger.append("seal", note=f"{plane.name}: {len(results)} gates")
    state = verify_ledger(ledger_path)
    measured, registered = _coverage(plane, ledger_path)
    judged = acceptance.judge(
        requirements=requirements, gates=found, results=results, phase=phase, picked=gates
    )
    return Run(
        plane=plane,
        version=plane.version,
        started_at=started_at,
        duration_s=perf_counter() - begin,
        selected_phase=phase,
        selected_gates=tuple(gates),
        requirements=requirements,
        gates=tuple(sorted(results, key=lambda result: (result.gate.phase, result.gate.id))),
        requirement_results=judged.requirements,
        phases=judged.phases,
        undischarged=judged.undischarged,
        coverage=measured,
        registered=registered,
        ledger_file=ledger_path,
        ledger_head=state.head,
        ledger_length=state.length,
        digests={**digests, "inputs": _inputs(results)},
        verdict=judged.verdict,
        reasons=_reasons(plane, found, judged.verdict),
    )


_NO_DIGESTS: dict[str, Any] = {
    "code": {},
    "frameworks": {},
    "requirements": None,
    "gates": {},
    "registry": None,
}


def _reasons(plane: Plane, found: Sequence[Gate], verdict: Verdict) -> tuple[str, ...]:
    if not plane.has_requirements:
        return (
            f"{plane.distribution_name} {plane.version} is installed and has no requirements yet: "
            "nothing was measured, and nothing is claimed",
        )
    if not found:
        return (f"{plane.distribution_name} has requirements and no gates yet",)
    return () if verdict is not Verdict.NOT_RUN else ("not everything that was due was measured",)


def _fresh_ledger(path: Path | None) -> Path:
    if path is None:
        folder = tempfile.TemporaryDirectory(prefix="numbat-gates-")
        # Kept to the end of the process: the report is written from the finished run.
        _scratch.append(folder)
        return Path(folder.name) / "ledger.jsonl"
    if path.exists() and path.stat().st_size:
        # Entries of an earlier run would count as coverage of this one.
        raise refuse("GATE-0404", file=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


_scratch: list[tempfile.TemporaryDirectory[str]] = []


def _chosen(
    plane: Plane,
    found: Sequence[Gate],
    requirements: Requirements,
    *,
    phase: int | None,
    picked: Sequence[str],
) -> list[Gate]:
    unknown = sorted(set(picked) - {gate.id for gate in found})
    if unknown:
        raise refuse(
            "GATE-0903", gate=unknown[0], plane=plane.name, known=[gate.id for gate in found]
        )
    if phase is not None and phase not in requirements.phases and plane.has_requirements:
        raise refuse("GATE-0904", phase=phase, plane=plane.name, known=list(requirements.phases))
    chosen = [
        gate
        for gate in found
        if (not picked or gate.id in picked)
        and (phase is None or phase in acceptance.phases_of(gate, requirements))
    ]
    return sorted(chosen, key=lambda gate: (gate.last, gate.phase, gate.id))


def _run_gates(
    plane: Plane,
    requirements: Requirements,
    chosen: Sequence[Gate],
    *,
    phase: int | None,
    picked: Sequence[str],
    listener: Listener,
) -> Iterator[GateResult]:
    sets = corpus_sets([plane]) if plane.has_requirements else {}
    if sets:
        corpus_root()  # refuses now, rather than in the middle, when NUMBAT_CORPUS names no folder
    for gate in chosen:
        check = Check(
            gate,
            plane=plane,
            requirements=requirements,
            whole_run=not picked,
            phases=() if phase is None else (phase,),
            listener=partial(listener.check_made, gate),
        )
        listener.gate_started(gate)
        with using(sets, check.note_input):
            result = _run_gate(gate, check)
        listener.gate_finished(result)
        yield result


def _run_gate(gate: Gate, check: Check) -> GateResult:
    begin = perf_counter()
    error = None
    if gate.missing:
        check.not_run.append(f"it needs the package {gate.missing}, which is not installed")
    elif gate.function is None:
        error = {"type": gate.fault.partition(":")[0], "text": gate.fault}
    else:
        error = _call(gate.function, check)
    return GateResult(
        gate=gate,
        checks=tuple(check.results),
        duration_s=perf_counter() - begin,
        error=error,
        not_run=tuple(check.not_run),
        clauses=dict(check.clauses),
        inputs=dict(check.inputs),
    )


def _call(function: Callable[[Check], None], check: Check) -> dict[str, str] | None:
    try:
        with context(gate=check.gate.id), _quiet_stdout():
            function(check)
    except NotRun as absent:
        check.not_run.append(absent.reason)
    except Refusal as refusal:
        if refusal.code in _MISUSE:
            return {"type": refusal.code, "text": refusal.diagnostic.message}
        check.unexpected(refusal)
    except Exception as error:
        # A gate that breaks must not take the others with it.
        return {"type": type(error).__qualname__, "text": f"{error} (at {site(error)})"}
    if not check.results and not check.not_run:
        check.not_run.append("it made no check")
    return None


@contextmanager
def _quiet_stdout() -> Iterator[None]:
    # stdout holds the answer of the command; what a gate prints is talk.
    with redirect_stdout(sys.stderr):
        yield


def _coverage(plane: Plane, ledger: Path) -> tuple[Coverage, int]:
    if not plane.has_requirements:
        return Coverage(covered={}, uncovered=(), unregistered=()), 0
    registry = load_registry(plane.registry)
    return coverage(read_entries(ledger), registry), len(registry.live)


def _inputs(results: Sequence[GateResult]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for result in results:
        for name, digest in result.inputs.items():
            if merged.get(name, digest) != digest:
                name = f"{name}#{digest[7:15]}"
            merged[name] = digest
    return dict(sorted(merged.items()))
