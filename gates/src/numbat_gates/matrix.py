"""The traceability matrix: requirement by gate by check, with every gap as a row of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Row:
    """One cell of the matrix; in a gap `check` or `gate` is None and `gap` says what is missing."""

    requirement: str
    phase: int
    text: str
    gate: str | None
    check: str | None
    verdict: str
    gap: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self)


def rows(report: Mapping[str, Any]) -> list[Row]:
    """The matrix of one report, in the order of its requirements."""
    gates = {gate["id"]: gate for gate in report["gates"]}
    clauses = report["undischarged"]
    return [
        row
        for requirement in report["requirements"]
        for row in _requirement_rows(requirement, gates, clauses)
    ]


def gaps(found: Sequence[Row]) -> list[Row]:
    """The rows that say what is not proved."""
    return [row for row in found if row.gap is not None]


def _requirement_rows(
    requirement: Mapping[str, Any],
    gates: Mapping[str, Mapping[str, Any]],
    clauses: Sequence[Mapping[str, Any]],
) -> Iterator[Row]:
    def row(
        gate: str | None = None,
        check: str | None = None,
        *,
        verdict: str = "NOT_RUN",
        gap: str | None = None,
        of: str = requirement["id"],
        text: str = requirement["text"],
    ) -> Row:
        return Row(of, requirement["phase"], text, gate, check, verdict, gap)

    for name in requirement["gates"]:
        gate = gates.get(name)
        if gate is None:
            yield row(name, gap="the gate was not part of this run")
            continue
        for check in gate["checks"]:
            skipped = f"skipped: {check['detail']}" if check["kind"] == "skip" else None
            yield row(name, check["name"], verdict=check["verdict"], gap=skipped)
        skips = {f"{c['name']}: {c['detail']}" for c in gate["checks"] if c["kind"] == "skip"}
        for reason in gate["not_run"]:
            if reason not in skips:
                yield row(name, gap=reason)
        if gate["error"]:
            yield row(name, verdict="ERROR", gap=f"it broke: {gate['error']['text']}")
    if not requirement["gates"]:
        yield row(gap=_no_gate(requirement))
    for clause in clauses:
        if clause["requirement"] == requirement["id"] and clause["clause"] != requirement["id"]:
            gap = f"awaits {clause['awaits']}: {clause['because']}"
            yield row(gap=gap, of=clause["clause"], text=clause["text"])


def _no_gate(requirement: Mapping[str, Any]) -> str:
    if requirement["awaits"]:
        return f"no gate; awaits {requirement['awaits']}: {requirement['because']}"
    return "no gate names it, and it declares no reason"


def print_matrix(found: Sequence[Row], console: Console) -> None:
    """Print the matrix: each requirement, under it its gates, under each its checks and gaps."""
    from rich.padding import Padding
    from rich.text import Text

    from numbat_gates.console import verdict_text

    for (name, text), mine in groupby(found, key=lambda row: (row.requirement, row.text)):
        head = Text(name, style="bold")
        head.append(f"  {text}", style="not bold")
        console.print(head)
        for gate, checks in groupby(mine, key=lambda row: row.gate):
            if gate is not None:
                console.print(Text(f"  {gate}", style="bold"))
            for row in checks:
                line = verdict_text(row.verdict)
                line.append(f"  {row.check}" if row.check else "")
                if row.gap:
                    line.append(f"  GAP {row.gap}", style="yellow")
                console.print(Padding(line, (0, 0, 0, 4), expand=False))
    requirements = {row.requirement.partition(".")[0] for row in found}
    missing = len(gaps(found))
    console.print(
        Text(
            f"\n{len(requirements)} requirements, {len(found)} rows, {missing} of them gaps",
            style="bold",
        )
    )
