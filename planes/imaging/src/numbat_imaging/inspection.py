"""What lies in a folder: series, geometry, value scale, and why something would be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numbat_imaging.conversion import Paths, Plan, Reasons, plan_paths
from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.orientation import plane_name
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
from numbat_imaging.values.scales import DEFAULT
from numbat_imaging.volume import grid_of, stack_notices
from numbat_registries import Diagnostic, Refusal
from numbat_registries.rendering import to_problem


@dataclass(frozen=True, slots=True)
class StackReport:
    """One stack as `inspect` shows it; `grid` is None when it is refused.

    `form` is the kind of object that its slices came from, of which it takes `images` from `files`.
    """

    name: str
    series_instance_uid: str
    modality: str
    manufacturer: str
    form: str
    files: int
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
            "manufacturer": self.manufacturer,
            "form": self.form,
            "files": self.files,
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
                "key": axis.key,
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
    return replace(
        _described(name, stack.instances),
        grid=grid,
        fourth_axis=prepared.arrangement.axis,
        scale=scale.travels,
        notices=(*prepared.arrangement.notices, *found),
        reasons={aside.instance.ref: aside.why for aside in prepared.aside},
    )


def _blank(name: str, instances: tuple[Instance, ...], why: Refusal) -> StackReport:
    return replace(
        _described(name, instances),
        refusal=why.diagnostic,
        reasons={instance.ref: why for instance in instances},
    )


def _described(name: str, instances: tuple[Instance, ...]) -> StackReport:
    first = instances[0]
    return StackReport(
        name=name,
        series_instance_uid=first.series_instance_uid,
        modality=first.modality,
        manufacturer=first.manufacturer,
        form=" and ".join(sorted({instance.form for instance in instances})),
        files=len({instance.ref for instance in instances}),
        images=len(instances),
        matrix=(first.columns, first.rows),
    )
