"""The verbs about reports: `verify`, `report render` and `keygen`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from numbat_gates.command import answer_json, malformed
from numbat_gates.freshness import Finding
from numbat_gates.keys import PASSPHRASE
from numbat_gates.keys import keygen as make_key
from numbat_gates.reporting.document import read_report
from numbat_gates.reporting.folder import (
    RENDERINGS,
    render_files,
    signature_beside,
    write_reports,
)
from numbat_gates.verdicts import ExitCode
from numbat_gates.verify import Verification
from numbat_gates.verify import verify as verify_report

__all__ = ["keygen", "report", "verify", "write_reports"]

_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Public key of a signer; may be given several times.",
)
@click.option(
    "--envelope",
    type=click.Path(path_type=Path),
    help="The signed envelope; by default report.dsse.json beside the report.",
)
@click.option(
    "--threshold",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many different keys must have signed.",
)
@_json
def verify(
    file: Path, keys: tuple[Path, ...], envelope: Path | None, threshold: int, as_json: bool
) -> ExitCode:
    """Say whether a report can still be believed, and name what is stale.

    FILE is a report.json or the folder that holds it. The exit status is that of the verdict which
    holds now: a gate whose evidence is stale is NOT RUN. A report, ledger or signature that is not
    genuine is refused.
    """
    found = verify_report(file, key=keys, envelope=envelope, threshold=threshold)
    if as_json:
        answer_json(verification_json(found))
    else:
        click.echo("\n".join(verification_lines(found)))
    return found.verdict.exit_code


@click.group()
def report() -> None:
    """Render a report again from its report.json."""


@report.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--html", is_flag=True, help="One page to read or print: report.html.")
@click.option("--pdf", is_flag=True, help="The page on paper: report.pdf.")
@click.option("--sarif", is_flag=True, help="SARIF 2.1.0 for code scanning: report.sarif.")
@click.option("--junit", is_flag=True, help="JUnit XML for CI: report.junit.xml.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; by default that of the report.",
)
@_json
def render(file: Path, out: Path | None, as_json: bool, **asked: bool) -> ExitCode:
    """Render FILE, a report.json or the folder that holds it, in each format asked for."""
    if not any(asked.values()):
        names = ", ".join(f"--{name}" for name in RENDERINGS)
        raise malformed(
            f"ask for at least one of {names}", help="numbat-gates report render --help"
        )
    document = read_report(file)
    chosen = [name for name in RENDERINGS if asked[name]]
    written = render_files(
        document, chosen, out or document.path.parent, signature=signature_beside(document)
    )
    if as_json:
        answer_json({"files": [str(path) for path in written]})
    else:
        click.echo("\n".join(str(path) for path in written))
    return ExitCode.PASS


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_json
def keygen(file: Path, as_json: bool) -> ExitCode:
    """Make an Ed25519 key for signing reports: FILE holds the private half, FILE.pub the public.

    The private half is encrypted when NUMBAT_KEY_PASSPHRASE is set.
    """
    passphrase = os.environ.get(PASSPHRASE, "").encode() or None
    made = make_key(file, passphrase=passphrase)
    if as_json:
        answer_json(
            {
                "private": str(made.private),
                "public": str(made.public),
                "keyid": made.keyid,
                "encrypted": passphrase is not None,
            }
        )
    else:
        click.echo(f"{made.public}\n{made.keyid}")
        kept = "encrypted" if passphrase else "not encrypted"
        click.echo(f"keep {made.private} to yourself ({kept})", err=True)
    return ExitCode.PASS


def verification_json(found: Verification) -> dict[str, Any]:
    """What `verify` found, as JSON data."""
    return {
        "report": str(found.report),
        "recorded": str(found.recorded),
        "verdict": str(found.verdict),
        "exit_code": int(found.verdict.exit_code),
        "gates": {gate: str(verdict) for gate, verdict in found.gates.items()},
        "signature": {"state": found.signature.state, "keyids": list(found.signature.keyids)},
        "ledger": {"head": found.ledger.head, "length": found.ledger.length},
        "stale": [_finding_json(finding) for finding in found.stale],
        "notes": [_finding_json(finding) for finding in found.notes],
    }


def verification_lines(found: Verification) -> list[str]:
    """What `verify` found, as lines for a reader."""
    says = {
        "unsigned": "unsigned: nothing shows who made this report, nor that nobody edited it",
        "unchecked": "present and not checked: give the signer's public key with --key",
        "valid": "valid",
    }[found.signature.state]
    lines = [f"report     {found.report}", f"signature  {says}"]
    claimed = "claims to be by" if found.signature.state == "unchecked" else "by"
    lines += [f"           {claimed} {keyid}" for keyid in found.signature.keyids]
    lines.append(f"ledger     whole, {found.ledger.length} lines, head {found.ledger.head}")
    lines.append(f"recorded   {_words(found.recorded)}")
    lines += [f"stale      {finding.says}" for finding in found.stale]
    lines += [f"note       {finding.says}" for finding in found.notes]
    if not found.stale:
        lines.append("fresh      code, requirements, registry, gates and the inputs found here")
    lines.append(f"verdict    {_words(found.verdict)}")
    return lines


def _words(verdict: str) -> str:
    return str(verdict).replace("_", " ")


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "part": finding.part,
        "name": finding.name,
        "state": finding.state,
        "recorded": finding.recorded,
        "found": finding.found,
        "gates": list(finding.gates),
    }
