"""`numbat-gates`: run a plane's gates, and ask what it has to prove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numbat_gates.command import (
    answer_console,
    answer_json,
    command_group,
    malformed,
    talk_console,
    verb,
)
from numbat_gates.verdicts import ExitCode

if TYPE_CHECKING:
    from numbat_gates.results import Run

cli = command_group(
    "numbat-gates",
    "Run the gates of a plane and ask what it has to prove.",
    lazy={
        "corpus": "numbat_gates.cli_corpus:corpus",
        "keygen": "numbat_gates.cli_reports:keygen",
        "mutate": "numbat_gates.cli_mutation:mutate",
        "report": "numbat_gates.cli_reports:report",
        "verify": "numbat_gates.cli_reports:verify",
    },
)


def main() -> None:
    """The console script."""
    cli.main(prog_name="numbat-gates")


@verb(cli)
@click.argument("plane")
@click.option("--phase", type=int, help="Run the gates of one phase only.")
@click.option("--gate", "gates", multiple=True, metavar="ID", help="Run one gate; may be repeated.")
@click.option(
    "--report",
    "report_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write report.json, its renderings and the ledger into this folder.",
)
@click.option(
    "--ledger",
    "ledger_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the run's ledger in this new file.",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Sign the report with this private key; needs --report.",
)
@click.option("--pdf", is_flag=True, help="Write the report as PDF too; needs --report.")
def run(
    plane: str,
    phase: int | None,
    gates: tuple[str, ...],
    report_folder: Path | None,
    ledger_file: Path | None,
    key: Path | None,
    pdf: bool,
    as_json: bool,
) -> ExitCode:
    """Run the gates of PLANE and give its verdict."""
    if (key is not None or pdf) and report_folder is None:
        raise malformed("--key and --pdf need --report", help="numbat-gates run --help")
    done = _run(plane, phase=phase, gates=gates, ledger_file=ledger_file, quiet=as_json)
    from numbat_gates.report import build

    document = build(done)
    written = _written(document, done, report_folder, key=key, pdf=pdf)
    if as_json:
        answer_json(document)
    else:
        from numbat_gates.console import print_summary

        print_summary(document, answer_console())
        if written:
            talk_console().print(f"wrote {', '.join(path.name for path in written)}", style="dim")
    return done.verdict.exit_code


def _run(
    plane: str,
    *,
    phase: int | None = None,
    gates: tuple[str, ...] = (),
    ledger_file: Path | None = None,
    quiet: bool,
) -> Run:
    from numbat_gates.planes import find_plane
    from numbat_gates.runner import run_plane

    found = find_plane(plane)
    listener = None
    if not quiet:
        from numbat_gates.console import RunPrinter

        listener = RunPrinter(answer_console(), talk_console())
    return run_plane(found, phase=phase, gates=gates, ledger_file=ledger_file, listener=listener)


def _written(
    document: dict[str, Any], done: Run, folder: Path | None, *, key: Path | None, pdf: bool
) -> list[Path]:
    if folder is None:
        return []
    from numbat_gates.cli_reports import write_reports

    written: list[Path] = write_reports(
        document, folder, ledger_file=done.ledger_file, key=key, pdf=pdf
    )
    return written


@verb(cli, "list")
@click.argument("plane", required=False)
def list_(plane: str | None, as_json: bool) -> None:
    """List the installed planes, or the gates and requirements of PLANE."""
    from numbat_gates import listing

    if plane is None:
        rows = listing.list_planes()
        if as_json:
            answer_json({"planes": rows})
        else:
            listing.print_planes(rows, answer_console())
        return
    found = listing.describe_plane(plane)
    if as_json:
        answer_json(found)
    else:
        listing.print_plane(found, answer_console())


@verb(cli)
@click.argument("plane")
@click.option(
    "--report",
    "report_file",
    type=click.Path(exists=True, path_type=Path),
    help="Read this report instead of running the gates now.",
)
@click.option("--gaps", "only_gaps", is_flag=True, help="Show only what is not proved.")
def matrix(plane: str, report_file: Path | None, only_gaps: bool, as_json: bool) -> None:
    """Show PLANE's requirements by gate and check, with every gap as a row."""
    from numbat_gates.matrix import gaps, print_matrix, rows

    found = rows(_report(plane, report_file))
    shown = gaps(found) if only_gaps else found
    if as_json:
        answer_json({"plane": plane, "rows": [row.to_dict() for row in shown]})
    else:
        print_matrix(shown, answer_console())


@verb(cli)
@click.argument("plane")
@click.option(
    "--report",
    "report_file",
    type=click.Path(exists=True, path_type=Path),
    help="Read this report instead of running the gates now.",
)
def coverage(plane: str, report_file: Path | None, as_json: bool) -> ExitCode:
    """Show which of PLANE's codes a check raised and asserted, and which none did."""
    measured = _report(plane, report_file)["coverage"]
    if as_json:
        answer_json(measured)
    else:
        from numbat_gates.console import print_coverage

        print_coverage(measured, answer_console(), whole=True)
    if not measured["registered"]:
        return ExitCode.NOT_RUN
    complete = not measured["uncovered"] and not measured["unregistered"]
    return ExitCode.PASS if complete else ExitCode.FAIL


def _report(plane: str, file: Path | None) -> dict[str, Any]:
    from numbat_gates.planes import find_plane
    from numbat_gates.report import build

    find_plane(plane)
    if file is None:
        return build(_run(plane, quiet=True))
    from numbat_gates.reporting.document import REPORT, read_report

    document = dict(read_report(file / REPORT if file.is_dir() else file).report)
    if document["plane"] != plane:
        raise malformed(f"{file.name} is a report of {document['plane']}, not of {plane}")
    return document


@verb(cli)
@click.argument("id")
def explain(id: str, as_json: bool) -> None:  # noqa: A002 - the argument's name on the command line
    """Explain a diagnostic code, a requirement or a gate by its ID."""
    from numbat_gates.explaining import explain as page_of

    page = page_of(id)
    if as_json:
        answer_json(page.data)
        return
    console = answer_console()
    if console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(page.markdown))
    else:
        click.echo(page.markdown, nl=False)
