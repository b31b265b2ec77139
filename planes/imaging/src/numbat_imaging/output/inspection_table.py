"""An inspection as people read it: one line a stack, then why, then what became of the files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table

from numbat_imaging.geometry.orientation import axis_letters, plane_name
from numbat_imaging.intake.account import Disposition, FileAccount
from numbat_imaging.values.scales import STORED

if TYPE_CHECKING:
    from rich.console import Console

    from numbat_imaging.geometry.grid import Grid
    from numbat_imaging.inspection import Inspection, StackReport
    from numbat_imaging.intake.records import FileRecord
    from numbat_imaging.values.rescale import ValueScale

_HEADINGS = ("stack", "kind", "form", "files", "grid", "spacing mm", "plane", "off mm", "values")
_NAME_WIDTH = 32
_NUMBERS = frozenset({"files", "off mm"})


def show(inspection: Inspection, console: Console, *, residuals: bool = False) -> None:
    """Print an inspection: a table of stacks, then notices and refusals, then the files.

    "off mm" is the largest distance of a slice from the fitted grid.
    """
    console.print(_table([_cells(stack) for stack in inspection.stacks]))
    for stack in inspection.stacks:
        for diagnostic in (*stack.notices, *((stack.refusal,) if stack.refusal else ())):
            console.print(f"{stack.name}: {diagnostic.code} {diagnostic.message}")
        if residuals and stack.grid is not None:
            _show_residuals(stack.name, stack.grid, console)
    for diagnostic in inspection.notices:
        console.print(f"{diagnostic.code} {diagnostic.message}")
    told = {refusal.code for refusal in inspection.refusals}
    show_account(inspection.account, console, told=told)


def _table(rows: Sequence[tuple[str, ...]]) -> Table:
    """The rows, in which only a long name is cut and only the values are wrapped."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(_HEADINGS):
        widest = max((cell_len(row[place]) for row in rows), default=0)
        widest = max(widest, len(heading))
        table.add_column(
            heading,
            justify="right" if heading in _NUMBERS else "left",
            no_wrap=heading != "values",
            min_width=None if heading == "values" else min(widest, _NAME_WIDTH),
            max_width=_NAME_WIDTH if heading == "stack" else None,
        )
    for row in rows:
        table.add_row(*row)
    return table


def show_account(account: FileAccount, console: Console, *, told: Collection[str] = ()) -> None:
    """Print what became of the files: the counts, and why codes refused or set some aside.

    Of a code in `told` the reason stands elsewhere on the screen.
    """
    counts = account.counts
    parts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    console.print(f"{len(account.records)} files: {parts}")
    for disposition in (Disposition.REFUSED, Disposition.SET_ASIDE):
        codes: dict[str, list[FileRecord]] = {}
        for record in account.having(disposition):
            if record.diagnostic is not None:
                codes.setdefault(record.diagnostic.code, []).append(record)
        for code, records in sorted(codes.items()):
            _show_code(f"  {disposition} {code}", records, console, reason=code not in told)


def _show_code(
    heading: str, records: Sequence[FileRecord], console: Console, *, reason: bool
) -> None:
    first = records[0].diagnostic
    assert first is not None
    labels = ", ".join(record.ref.label for record in records[:2])
    more = f" and {len(records) - 2} more" if len(records) > 2 else ""
    console.print(f"{heading} {first.name}: {labels}{more}")
    if reason:
        console.print(f"    {first.message}")


def _cells(stack: StackReport) -> tuple[str, ...]:
    grid, scale = stack.grid, stack.scale
    size = "×".join(str(n) for n in stack.matrix)
    form = stack.form.removesuffix(" multi-frame").removesuffix("-frame")
    first = (stack.name, stack.modality, form, str(stack.files))
    if grid is None or scale is None:
        code = stack.refusal.code if stack.refusal else ""
        return (*first, size, "", "", "", f"refused {code}")
    axis = stack.fourth_axis
    size = f"{size}×{grid.slices}" + (f"×{len(axis.values)} {axis.name}" if axis else "")
    spacing = "×".join(f"{value:.3g}" for value in grid.spacing_mm)
    letters = "/".join(axis_letters(grid.axes[:, k])[:1] for k in range(3))
    tilt = f", sheared {grid.shear_deg:.3g}°" if grid.is_sheared else ""
    return (
        *first,
        size,
        spacing,
        f"{plane_name(grid.normal)} {letters}{tilt}",
        f"{grid.max_residual_mm:.4f}",
        _scale_words(scale),
    )


def _scale_words(scale: ValueScale) -> str:
    """The scale, and the names of the others; the stored values are always one of them."""
    unit = scale.unit or "no unit"
    linear = (scale.slope, scale.intercept)
    how = " applied" if scale.applied else f" ×{linear[0]:.6g}{linear[1]:+.6g}"
    how = "" if linear == (1.0, 0.0) and not scale.applied else how
    others = [other.name for other in scale.alternatives if other.name != STORED]
    more = f"; or {', '.join(others)}" if others else ""
    return f"{scale.name}{how}, {unit}{more}"


def _show_residuals(name: str, grid: Grid, console: Console) -> None:
    console.print(
        f"{name}: residual of each slice against the fitted grid, mm (i, j, along normal)"
    )
    local = grid.residuals_mm @ grid.axes
    for k, row in enumerate(local):
        console.print(f"  {k:4d}  {row[0]:+9.5f} {row[1]:+9.5f} {row[2]:+9.5f}")
