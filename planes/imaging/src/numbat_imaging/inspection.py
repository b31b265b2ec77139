"""What lies in a folder: series, geometry, value scale, and why something would be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from numbat_imaging.conversion import Paths, Plan, Reasons, plan_paths
from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.orientation import axis_letters, plane_name
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_imaging.intake.account import Disposition, FileAccount
from numbat_imaging.naming import stems
from numbat_imaging.series.forms.siemens_mosaic import Direction
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.series.grouping import prepare_stack
from numbat_imaging.series.instance import Instance
from numbat_imaging.series.splitting import Stack
from numbat_imaging.values.pixels import check_format
from numbat_imaging.values.rescale import ValueScale, stack_scale
from numbat_imaging.values.scales import DEFAULT, STORED
from numbat_imaging.volume import grid_of, stack_notices
from numbat_registries import Diagnostic, Refusal
from numbat_registries.rendering import to_problem

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class StackReport:
    """One stack as `inspect` shows it; `grid` is None when it is refused."""

    name: str
    series_instance_uid: str
    modality: str
    manufacturer: str
    images: int
    matrix: tuple[int, int]
    grid: Grid | None = None
    fourth_axis: FourthAxis | None = None
    scale: ValueScale | None = None
    refusal: Diagnostic | None = None
    notices: tuple[Diagnostic, ...] = ()
    reasons: Reasons = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-safe data, residuals included."""
        body: dict[str, Any] = {
            "name": self.name,
            "series_instance_uid": self.series_instance_uid,
            "modality": self.modality,
            "images": self.images,
            "matrix": list(self.matrix),
            "status": "refused" if self.refusal else "readable",
            "notices": [to_problem(diagnostic) for diagnostic in self.notices],
        }
        if self.refusal is not None:
            body["refusal"] = to_problem(self.refusal)
        if self.grid is not None:
            body["geometry"] = geometry_dict(self.grid)
        if self.fourth_axis is not None:
            axis = self.fourth_axis
            body["fourth_axis"] = {
                "name": axis.name,
                "unit": axis.unit,
                "values": list(axis.values),
            }
        if self.scale is not None:
            body["value_scale"] = self.scale.to_dict()
        return body


def geometry_dict(grid: Grid) -> dict[str, Any]:
    """A grid as JSON-safe data: affine, spacing, shear and every slice's residual in mm."""
    return {
        "affine_lps_mm": grid.affine_lps_mm.tolist(),
        "spacing_mm": grid.spacing_mm.tolist(),
        "slices": grid.slices,
        "slice_distance_from": grid.thickness_source,
        "plane": plane_name(grid.normal),
        "shear_deg": grid.shear_deg if grid.is_sheared else 0.0,
        "max_residual_mm": grid.max_residual_mm,
        "rms_residual_mm": grid.rms_residual_mm,
        "residuals_mm": np.linalg.norm(grid.residuals_mm, axis=1).tolist(),
    }


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that `inspect` found."""

    stacks: tuple[StackReport, ...]
    account: FileAccount
    notices: tuple[Diagnostic, ...]
    tolerances: Tolerances

    @property
    def complete(self) -> bool:
        """Whether nothing was refused, neither a stack nor a file."""
        return not self.refusals and not self.account.having(Disposition.REFUSED)

    @property
    def refusals(self) -> tuple[Diagnostic, ...]:
        """Why stacks would not be read."""
        return tuple(s.refusal for s in self.stacks if s.refusal is not None)

    def to_dict(self) -> dict[str, Any]:
        """The inspection as JSON-safe data, without patient data."""
        return {
            "stacks": [stack.to_dict() for stack in self.stacks],
            "notices": [to_problem(diagnostic) for diagnostic in self.notices],
            "files": self.account.to_dict(),
            "tolerances_mm": self.tolerances.to_dict(),
        }


def inspect(
    paths: Paths,
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    fourth_axis: str | None = None,
    value_scale: str = DEFAULT,
    mosaic_slices: int | None = None,
    mosaic_direction: Direction | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Headers of everything in `paths`, sorted into stacks with their geometry; no pixels are read.

    Raises IMG-1801 when there is no image at all; refusals of stacks are in the result.
    """
    plan = plan_paths(
        paths,
        tolerances=tolerances,
        mosaic_slices=mosaic_slices,
        mosaic_direction=mosaic_direction,
        workers=workers,
        progress=progress,
    )
    reports = list(
        _reports(plan, tolerances=tolerances, fourth_axis=fourth_axis, value_scale=value_scale)
    )
    notices = tuple(diagnostic for _, _, found in plan.series for diagnostic in found)
    reasons = {ref: why for report in reports for ref, why in report.reasons.items()}
    return Inspection(tuple(reports), plan.account_with(reasons), notices, tolerances)


def _reports(
    plan: Plan, *, tolerances: Tolerances, fourth_axis: str | None, value_scale: str
) -> Iterator[StackReport]:
    stacks = [stack for _, found, _ in plan.series for stack in found]
    for name, stack in zip(stems(stacks), stacks, strict=True):
        yield _report(
            name,
            stack,
            tolerances=tolerances,
            fourth_axis=fourth_axis,
            value_scale=value_scale,
        )
    for series, why in plan.refused:
        yield _blank(f"series {series.instances[0].series_number or '?'}", series.instances, why)


def _report(
    name: str,
    stack: Stack,
    *,
    tolerances: Tolerances,
    fourth_axis: str | None,
    value_scale: str,
) -> StackReport:
    try:
        prepared = prepare_stack(stack, tolerances=tolerances, fourth_axis=fourth_axis)
        grid = grid_of(prepared, tolerances=tolerances)
        members = [instance for volume in prepared.arrangement.volumes for instance in volume]
        for instance in members:
            check_format(instance.pixels, file=instance.ref.label)
        scale = stack_scale(members, value_scale)
    except Refusal as refusal:
        return _blank(name, stack.instances, refusal)
    found = [*scale.notices, *stack_notices(prepared, grid, members, tolerances)]
    first = stack.instances[0]
    return StackReport(
        name=name,
        series_instance_uid=first.series_instance_uid,
        modality=first.modality,
        manufacturer=first.manufacturer,
        images=len(stack.instances),
        matrix=(first.columns, first.rows),
        grid=grid,
        fourth_axis=prepared.arrangement.axis,
        scale=scale.travels,
        notices=(*prepared.arrangement.notices, *found),
        reasons={aside.instance.ref: aside.why for aside in prepared.aside},
    )


def _blank(name: str, instances: tuple[Instance, ...], why: Refusal) -> StackReport:
    first = instances[0]
    return StackReport(
        name=name,
        series_instance_uid=first.series_instance_uid,
        modality=first.modality,
        manufacturer=first.manufacturer,
        images=len(instances),
        matrix=(first.columns, first.rows),
        refusal=why.diagnostic,
        reasons={instance.ref: why for instance in instances},
    )


def show(inspection: Inspection, console: Console, *, residuals: bool = False) -> None:
    """Print an inspection: a table of stacks, then notices and refusals, then the files."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "stack",
        "kind",
        "images",
        "grid",
        "spacing mm",
        "plane",
        "residual mm",
        "values",
        "",
    ):
        table.add_column(
            heading, justify="right" if heading in ("images", "residual mm") else "left"
        )
    for stack in inspection.stacks:
        table.add_row(*_cells(stack))
    console.print(table)
    for stack in inspection.stacks:
        for diagnostic in (*stack.notices, *((stack.refusal,) if stack.refusal else ())):
            console.print(f"{stack.name}: {diagnostic.code} {diagnostic.message}")
        if residuals and stack.grid is not None:
            _show_residuals(stack.name, stack.grid, console)
    for diagnostic in inspection.notices:
        console.print(f"{diagnostic.code} {diagnostic.message}")
    show_account(inspection.account, console)


def show_account(account: FileAccount, console: Console) -> None:
    """Print what became of the files: the counts, and how many each code refused or set aside."""
    counts = account.counts
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    console.print(f"{len(account.records)} files: {told}")
    for disposition in (Disposition.REFUSED, Disposition.SET_ASIDE):
        codes: dict[str, list[str]] = {}
        for record in account.having(disposition):
            if record.diagnostic is not None:
                name = f"{record.diagnostic.code} {record.diagnostic.name}"
                codes.setdefault(name, []).append(record.ref.label)
        for name, labels in sorted(codes.items()):
            more = f" and {len(labels) - 2} more" if len(labels) > 2 else ""
            console.print(f"  {disposition} {name}: {', '.join(labels[:2])}{more}")


def _cells(stack: StackReport) -> tuple[str, ...]:
    grid, scale = stack.grid, stack.scale
    size = "×".join(str(n) for n in stack.matrix)
    if grid is None or scale is None:
        code = stack.refusal.code if stack.refusal else ""
        return (
            stack.name,
            stack.modality,
            str(stack.images),
            size,
            "",
            "",
            "",
            "",
            f"refused {code}",
        )
    axis = stack.fourth_axis
    size = f"{size}×{grid.slices}" + (f"×{len(axis.values)} {axis.name}" if axis else "")
    spacing = "×".join(f"{value:.4g}" for value in grid.spacing_mm)
    letters = "/".join(axis_letters(grid.axes[:, k])[:1] for k in range(3))
    tilt = f", sheared {grid.shear_deg:.3g}°" if grid.is_sheared else ""
    return (
        stack.name,
        stack.modality,
        str(stack.images),
        size,
        spacing,
        f"{plane_name(grid.normal)} {letters}{tilt}",
        f"{grid.max_residual_mm:.4f}",
        _scale_words(scale),
        "readable",
    )


def _scale_words(scale: ValueScale) -> str:
    """The scale, and the names of the others; the stored values are always one of them."""
    unit = scale.unit or "no unit"
    how = "applied" if scale.applied else f"×{scale.slope:.6g}{scale.intercept:+.6g}"
    others = [other.name for other in scale.alternatives if other.name != STORED]
    more = f"; or {', '.join(others)}" if others else ""
    return f"{scale.name} {how}, {unit}{more}"


def _show_residuals(name: str, grid: Grid, console: Console) -> None:
    console.print(
        f"{name}: residual of each slice against the fitted grid, mm (i, j, along normal)"
    )
    local = grid.residuals_mm @ grid.axes
    for k, row in enumerate(local):
        console.print(f"  {k:4d}  {row[0]:+9.5f} {row[1]:+9.5f} {row[2]:+9.5f}")
