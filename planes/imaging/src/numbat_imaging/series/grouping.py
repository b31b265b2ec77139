"""From instances to stacks that are ready for a grid: identity, splitting, the fourth axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.orientation import orthonormal_axes
from numbat_imaging.geometry.tolerances import Tolerances
from numbat_imaging.series.fourth_axis import Arrangement, arrange, position_classes
from numbat_imaging.series.identity import (
    check_concatenations,
    check_identity,
    without_copies,
    without_twins,
)
from numbat_imaging.series.instance import Instance
from numbat_imaging.series.splitting import Stack, split_stacks
from numbat_registries import Diagnostic, notice, refuse


@dataclass(frozen=True, slots=True)
class Series:
    """All instances of one SeriesInstanceUID, in no order."""

    uid: str
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class SetAside:
    """An instance that is not part of any volume, and why."""

    instance: Instance
    why: Diagnostic


@dataclass(frozen=True, slots=True)
class PreparedStack:
    """A stack with its axes and its volumes in order; `aside` holds what was left out of it."""

    stack: Stack
    axes: NDArray[np.float64]
    arrangement: Arrangement
    aside: tuple[SetAside, ...]


def group_series(instances: Iterable[Instance]) -> list[Series]:
    """Instances by SeriesInstanceUID, in order of series number."""
    groups: dict[str, list[Instance]] = {}
    for instance in instances:
        groups.setdefault(instance.series_instance_uid, []).append(instance)
    series = [Series(uid, tuple(members)) for uid, members in groups.items()]
    return sorted(series, key=lambda s: (s.instances[0].series_number or 0, s.uid))


def stacks_of(series: Series, tolerances: Tolerances) -> tuple[list[Stack], list[SetAside]]:
    """The stacks that one series holds, and its byte-identical copies.

    Raises IMG-1101, IMG-1102, IMG-1103, IMG-1204 and IMG-1316.
    """
    check_identity(series.instances)
    kept, copies = without_copies(series.instances)
    check_concatenations(kept)
    return split_stacks(kept, tolerances), [SetAside(i, why) for i, why in copies]


def split_notice(series: Series, stacks: Sequence[Stack]) -> list[Diagnostic]:
    """What is said when one series holds several stacks."""
    if len(stacks) < 2:
        return []
    names = [name for name, _ in stacks[0].differs_by]
    sizes = [len(stack.instances) for stack in stacks]
    return [
        notice(
            "IMG-1306", series_uid=series.uid, stacks=len(stacks), by=names, images_of_each=sizes
        )
    ]


def prepare_stack(
    stack: Stack, *, tolerances: Tolerances, fourth_axis: str | None = None
) -> PreparedStack:
    """Check that a stack can have a grid, and sort it into volumes.

    Raises IMG-1201 without position or orientation, IMG-1202 and IMG-1203 for bad cosines,
    IMG-1205 for a bad PixelSpacing, IMG-13xx when the volumes cannot be told apart.
    """
    axes = stack_axes(stack, tolerances)
    instances: Sequence[Instance] = stack.instances
    aside: list[SetAside] = []
    labels, levels = position_classes(instances, axes[:, 2], tolerances)
    counts = np.bincount(labels, minlength=len(levels))
    if len(set(counts.tolist())) > 1:
        instances, twins = without_twins(instances, labels)
        aside = [SetAside(instance, why) for instance, why in twins]
    arrangement = arrange(instances, axes[:, 2], tolerances=tolerances, fourth_axis=fourth_axis)
    return PreparedStack(stack, axes, arrangement, tuple(aside))


def stack_axes(stack: Stack, tolerances: Tolerances) -> NDArray[np.float64]:
    """The orthonormal axes of a stack: the mean of its slices' cosines, checked."""
    lacking = [
        instance
        for instance in stack.instances
        if instance.position_lps_mm is None
        or instance.orientation is None
        or instance.pixel_spacing_mm is None
    ]
    if lacking:
        raise refuse(
            "IMG-1201",
            images=len(stack.instances),
            without_geometry=len(lacking),
            missing=_missing(lacking),
            file=lacking[0].ref.label,
        )
    spacing = stack.instances[0].pixel_spacing_mm
    assert spacing is not None
    if min(spacing) <= 0:
        raise refuse("IMG-1205", spacing_mm=list(spacing), file=stack.instances[0].ref.label)
    first = stack.instances[0]
    corner = (first.columns * spacing[1], first.rows * spacing[0])
    for distinct in {instance.orientation for instance in stack.instances}:
        assert distinct is not None
        orthonormal_axes(distinct, corner_mm=corner, tolerances=tolerances)
    cosines = np.mean([list(instance.orientation or ()) for instance in stack.instances], axis=0)
    return orthonormal_axes(cosines.tolist(), corner_mm=corner, tolerances=tolerances)


def _missing(lacking: Sequence[Instance]) -> list[str]:
    names = {
        "ImagePositionPatient": any(i.position_lps_mm is None for i in lacking),
        "ImageOrientationPatient": any(i.orientation is None for i in lacking),
        "PixelSpacing": any(i.pixel_spacing_mm is None for i in lacking),
    }
    return [name for name, absent in names.items() if absent]
