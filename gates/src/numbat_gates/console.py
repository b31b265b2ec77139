"""What a run prints: each gate as it ends, then what is not proved, the coverage and the verdict.

All of it but the gates' own lines is read from the report, so that nothing is said here that the
report does not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numbat_gates.planes import Plane
from numbat_gates.registration import Gate
from numbat_gates.requirements import Requirements
from numbat_gates.results import CheckResult, GateResult
from numbat_gates.runner import Listener
from numbat_gates.verdicts import ExitCode, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

STYLES = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "ERROR": "bold magenta",
    "NOT_RUN": "bold yellow",
}
#: Failing checks shown below a gate; the report holds all of them.
FAILURES_SHOWN = 12
_WORD = {"NOT_RUN": "NOT RUN"}


def verdict_text(verdict: str, *, width: int = 7) -> Text:
    """A verdict in its colour, padded to a column."""
    return Text(_WORD.get(verdict, verdict).ljust(width), style=STYLES[verdict])


class RunPrinter(Listener):
    """Prints each gate when it ends, and on a terminal which one is running."""

    def __init__(self, answer: Console, talk: Console) -> None:
        self.answer = answer
        self.talk = talk
        self.total = 0
        self.done = 0
        self._checks = 0
        self._phase: tuple[int, bool] | None = None
        self._phases: Mapping[int, str] = {}
        self._status: Status | None = None

    def started(self, plane: Plane, gates: Sequence[Gate], requirements: Requirements) -> None:
        """Say what will run."""
        self.total = len(gates)
        self._phases = {number: phase.title for number, phase in requirements.phases.items()}
        head = Text()
        head.append(f"{plane.distribution_name} {plane.version}", style="bold")
        asked = len(requirements.requirements)
        head.append(f" · {_count(len(gates), 'gate')}, {_count(asked, 'requirement')}")
        self.answer.print(head)

    def gate_started(self, gate: Gate) -> None:
        """Show the gate that runs, on a terminal only."""
        self._checks = 0
        if self.talk.is_terminal:
            self._status = self.talk.status(self._running(gate))
            self._status.start()

    def check_made(self, gate: Gate, result: CheckResult) -> None:
        """Count the checks of the gate that runs, on a terminal only."""
        self._checks += 1
        if self._status is not None:
            self._status.update(self._running(gate))

    def _running(self, gate: Gate) -> Text:
        checks = f", {self._checks} checks" if self._checks else ""
        return Text(f"{gate.id} {gate.title} (gate {self.done + 1} of {self.total}{checks})")

    def gate_finished(self, result: GateResult) -> None:
        """Print one gate's line, and under it what failed or was not run."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self.done += 1
        self._heading(result.gate)
        self.answer.print(self._line(result), no_wrap=True, overflow="ellipsis")
        for text in _remarks(result):
            self.answer.print(_indented(text, 12))

    def _heading(self, gate: Gate) -> None:
        if self._phase == (gate.phase, gate.last):
            return
        self._phase = (gate.phase, gate.last)
        after = " (after all others)" if gate.last else ""
        title = f"Phase {gate.phase}  {self._phases.get(gate.phase, '')}{after}"
        self.answer.print(Text(f"\n{title}", style="bold"))

    def _line(self, result: GateResult) -> Text:
        line = Text("  ")
        line.append_text(verdict_text(str(result.verdict)))
        line.append(f"  {result.gate.id}  ", style="bold")
        line.append(f"{result.passed:>5}/{len(result.checks):<5}")
        line.append(f"{result.duration_s:7.2f} s  ", style="dim")
        line.append(result.gate.title)
        return line


def _indented(text: Text, columns: int) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _remarks(result: GateResult) -> list[Text]:
    remarks = []
    if result.error is not None:
        remarks.append(Text(f"error: {result.error['text']}", style="magenta"))
    remarks += [Text(f"not run: {reason}", style="yellow") for reason in result.not_run]
    failing = [check for check in result.checks if check.verdict is Verdict.FAIL]
    remarks += [_failure(check) for check in failing[:FAILURES_SHOWN]]
    if len(failing) > FAILURES_SHOWN:
        more = len(failing) - FAILURES_SHOWN
        remarks.append(Text(f"… and {more} more failing checks, all of them in the report"))
    return remarks


def _failure(check: CheckResult) -> Text:
    text = Text()
    text.append("✗ ", style="red")
    text.append(check.name, style="bold")
    unit = f" {check.unit}" if check.unit else ""
    sign = {"at_most": "at most ", "at_least": "at least "}.get(check.kind, "")
    within = f" ± {check.tolerance:g}" if check.tolerance is not None else ""
    text.append(f"\n  measured {_short(check.measured)}{unit}")
    text.append(f"\n  required {sign}{_short(check.required)}{within}{unit}")
    if check.detail:
        text.append(f"\n  {check.detail}", style="dim")
    return text


def _short(value: Any, *, limit: int = 160) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        text = "[" + ", ".join(_short(item) for item in value) + "]"
    elif isinstance(value, dict) and "shape" in value:
        extents = " × ".join(map(str, value["shape"]))
        text = f"an array of {extents} {value.get('dtype', '')}"
        if "min" in value:
            text += f" from {_short(value['min'])} to {_short(value['max'])}"
    elif isinstance(value, dict):
        text = ", ".join(f"{key} {_short(item)}" for key, item in value.items())
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 2] + " …"


def print_summary(report: Mapping[str, Any], console: Console) -> None:
    """Print what a report says beyond its gates: gaps, coverage, verdicts."""
    for reason in report["not_run"]:
        console.print(Text(f"\n{reason}", style="yellow"))
    print_undischarged(report, console)
    if report["requirements"]:
        print_coverage(report["coverage"], console)
    print_verdicts(report, console)


def print_undischarged(report: Mapping[str, Any], console: Console) -> None:
    """Print the clauses that are not discharged, each with its typed reason."""
    clauses = report["undischarged"]
    if not clauses:
        return
    status = {item["id"]: item["status"] for item in report["requirements"]}
    reasons = [
        f"awaits {clause['awaits']}" if clause["awaits"] else status[clause["requirement"]]
        for clause in clauses
    ]
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(reasons).items()))
    console.print(Text(f"\nClauses not discharged: {len(clauses)} ({counted})", style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for clause, reason in zip(clauses, reasons, strict=True):
        told = Text(clause["text"])
        told.append(f"\nbecause {clause['because']}", style="dim")
        style = "yellow" if clause["awaits"] else "red"
        table.add_row(Text(f"  {clause['clause']}", style="bold"), Text(reason, style=style), told)
    console.print(table)


def print_coverage(coverage: Mapping[str, Any], console: Console, *, whole: bool = False) -> None:
    """Print how many registered codes a check raised and asserted, and which were not."""
    covered, uncovered = coverage["covered"], coverage["uncovered"]
    console.print(
        Text(
            f"\nLedger coverage of the {coverage['registry']} registry: {len(covered)} of "
            f"{coverage['registered']} codes raised and asserted by a check",
            style="bold",
        )
    )
    if whole:
        for code, checks in covered.items():
            gate, check = checks[0]
            more = f" and {len(checks) - 1} more" if len(checks) > 1 else ""
            console.print(Text(f"  {code}  {gate}  {check}{more}"))
    if uncovered:
        listed = ", ".join(uncovered)
        console.print(_indented(Text(f"not asserted: {listed}", style="yellow"), 2))
    if coverage["unregistered"]:
        listed = ", ".join(coverage["unregistered"])
        console.print(_indented(Text(f"raised and not registered: {listed}", style="red"), 2))


def print_verdicts(report: Mapping[str, Any], console: Console) -> None:
    """Print the verdict of each phase and of the run, the last line of all."""
    if report["phases"]:
        console.print(Text("\nVerdict by phase", style="bold"))
    for phase in report["phases"]:
        line = Text("  ")
        line.append_text(verdict_text(phase["verdict"]))
        line.append(f"  phase {phase['phase']}  {phase['title']}")
        counts = [f"{len(ids)} {status}" for status, ids in phase["requirements"].items() if ids]
        line.append(f"  ({', '.join(counts) or 'no requirements'})", style="dim")
        if phase["awaited"]:
            line.append("  awaited, not counted", style="dim")
        console.print(line)
    passed = sum(gate["passed"] for gate in report["gates"])
    total = sum(gate["total"] for gate in report["gates"])
    last = Text("\n")
    last.append_text(verdict_text(report["verdict"], width=0))
    last.append(f"  {_scope(report)}", style="bold")
    last.append(
        f": {passed} of {total} checks passed in {_count(len(report['gates']), 'gate')}, "
        f"{_count(len(report['undischarged']), 'clause')} not discharged, "
        f"{report['duration_s']:.1f} s"
    )
    exit_code = ExitCode(report["exit_code"])
    last.append(f"  (exit {int(exit_code)}: {exit_code.says})", style="dim")
    console.print(last)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _scope(report: Mapping[str, Any]) -> str:
    if report["selected_gates"]:
        return f"{report['plane']}, only {', '.join(report['selected_gates'])}"
    if report["phase"] is not None:
        return f"{report['plane']}, phase {report['phase']}"
    return str(report["plane"])
