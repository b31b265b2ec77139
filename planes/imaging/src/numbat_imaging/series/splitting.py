"""What one SeriesInstanceUID hides: the keys that tell its stacks apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from numbat_imaging.geometry.orientation import corner_displacements_mm
from numbat_imaging.geometry.tolerances import Tolerances
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.series.instance import Instance
from numbat_registries import refuse


@dataclass(frozen=True, slots=True)
class Stack:
    """Instances that share everything but position and the fourth axis.

    `differs_by` names the keys by which a series was split, with this stack's values;
    `series_images` counts the images of the whole series.
    """

    instances: tuple[Instance, ...]
    differs_by: tuple[tuple[str, str], ...] = ()
    series_images: int = 0


def _echo(instance: Instance) -> str:
    time = "" if instance.echo_time_ms is None else f"{instance.echo_time_ms:g} ms"
    number = "" if instance.echo_number is None else f"{instance.echo_number}"
    return f"{number} {time}".strip()


#: In the order in which they name the stacks of a split series.
_KEYS: tuple[tuple[str, Callable[[Instance], str]], ...] = (
    ("frame of reference", lambda i: i.frame_of_reference_uid or ""),
    ("image type", lambda i: "\\".join(i.image_type)),
    ("echo", _echo),
    ("complex component", lambda i: i.complex_component),
    ("vendor image kind", lambda i: i.vendor_split),
    ("reconstruction kernel", lambda i: i.convolution_kernel),
    ("stack", lambda i: i.stack_id),
    ("matrix", lambda i: f"{i.columns}x{i.rows}"),
    ("colour", lambda i: f"{i.pixels.photometric} {i.pixels.samples}"),
    ("object class", lambda i: i.sop_class_uid),
)


def split_stacks(instances: Sequence[Instance], tolerances: Tolerances) -> list[Stack]:
    """The stacks of one series, in order of their first instance number.

    Raises IMG-1204 when images of one orientation have different PixelSpacing: a stack that lacks
    them would look complete; IMG-1013 for more stacks than are believed.
    """
    groups: dict[tuple[str, ...], list[Instance]] = {}
    orientations = _Orientations(tolerances)
    for instance in instances:
        turned = orientations.index(instance)
        key = (*(value(instance) for _, value in _KEYS), turned)
        groups.setdefault(key, []).append(instance)
        if len(groups) > DEFAULT_LIMITS.stacks:
            # Each would be a volume of its own.
            raise refuse(
                "IMG-1013",
                file=instance.ref.label,
                what="stacks in one series",
                measured=len(groups),
                limit=DEFAULT_LIMITS.stacks,
            )
    names = [*(name for name, _ in _KEYS), "orientation"]
    varying = [p for p in range(len(names)) if len({key[p] for key in groups}) > 1]
    stacks = [
        Stack(tuple(members), tuple((names[p], key[p]) for p in varying), len(instances))
        for key, members in groups.items()
    ]
    for stack in stacks:
        _refuse_mixed_spacing(stack.instances)
    return sorted(stacks, key=_first_number)


def _first_number(stack: Stack) -> tuple[tuple[int, int], str]:
    orders = [i.order for i in stack.instances if i.order is not None]
    return (min(orders, default=(0, 0)), stack.instances[0].sop_instance_uid)


class _Orientations:
    """The orientations met so far, each compared with all at once: a scan may have thousands."""

    def __init__(self, tolerances: Tolerances) -> None:
        self._limit_mm = 2 * tolerances.orientation_mm
        self._known = np.empty((64, 6))
        self._count = 0
        # Slices of one stack say the same: most are looked up and not measured.
        self._told: dict[tuple[object, ...], str] = {}

    def index(self, instance: Instance) -> str:
        """The number of an orientation; "none" without one."""
        if instance.orientation is None:
            return "none"
        spacing = instance.pixel_spacing_mm or (1.0, 1.0)
        corner = (instance.columns * spacing[1], instance.rows * spacing[0])
        key = (instance.orientation, corner)
        if key not in self._told:
            self._told[key] = self._measured(instance.orientation, corner)
        return self._told[key]

    def _measured(self, cosines: tuple[float, ...], corner_mm: tuple[float, float]) -> str:
        known = self._known[: self._count]
        off_mm = corner_displacements_mm(cosines, known, corner_mm=corner_mm)
        alike = np.flatnonzero(off_mm <= self._limit_mm)
        if len(alike):
            return str(alike[0] + 1)
        if self._count == len(self._known):
            self._known = np.concatenate([self._known, np.empty_like(self._known)])
        self._known[self._count] = cosines
        self._count += 1
        return str(self._count)


def _refuse_mixed_spacing(instances: Sequence[Instance]) -> None:
    first = instances[0].pixel_spacing_mm
    for instance in instances:
        spacing = instance.pixel_spacing_mm
        if spacing is None or first is None:
            continue
        off_mm = max(
            abs(spacing[0] - first[0]) * instance.rows,
            abs(spacing[1] - first[1]) * instance.columns,
        )
        if off_mm > 0.05:
            raise refuse(
                "IMG-1204",
                first_mm=list(first),
                other_mm=list(spacing),
                file=instance.ref.label,
                displacement_mm=off_mm,
            )
