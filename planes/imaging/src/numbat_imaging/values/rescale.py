"""The value scale of a volume: one for all slices, or one for each, and what else was possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.series.instance import Instance, PixelFormat
from numbat_imaging.values.scales import DEFAULT, DISPLAYED, PRECISE, Scale, Unreadable
from numbat_registries import Diagnostic, notice, refuse

Pixels = NDArray[Any]

#: Neighbouring numbers of single precision differ by this part of their size.
_SINGLE_STEP = 2.0**-23
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A value scale that the files state as well.

    `slope` and `intercept` are None where `form` is not "linear": "table", "varies" from slice to
    slice, or "unreadable".
    """

    name: str
    slope: float | None
    intercept: float | None
    unit: str | None
    form: str = "linear"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data."""
        return {
            "name": self.name,
            "form": self.form,
            "slope": self.slope,
            "intercept": self.intercept,
            "unit": self.unit,
        }


@dataclass(frozen=True, slots=True)
class ValueScale:
    """How voxels become values, where that is written, and what else was possible.

    value = slope × voxel + intercept, in `unit` (None where no tag states one). `applied` says that
    the voxels already are values. `name`: "stored", "displayed", "precise" (Philips), "dose", or
    "real-world:LABEL"; `source` names the elements that gave the scale; `alternatives` are the
    scales that `value_scale` could name instead.
    """

    slope: float
    intercept: float
    unit: str | None
    source: str
    applied: bool = False
    name: str = DISPLAYED
    alternatives: tuple[Alternative, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data."""
        return {
            "name": self.name,
            "slope": self.slope,
            "intercept": self.intercept,
            "unit": self.unit,
            "source": self.source,
            "applied": self.applied,
            "alternatives": [alternative.to_dict() for alternative in self.alternatives],
        }


@dataclass(frozen=True, slots=True)
class StackScale:
    """The scale of each slice of a stack, and the one that travels with the volume.

    `dtype`: type of the values of a stack whose scale is applied.
    """

    travels: ValueScale
    of_slices: tuple[Scale, ...]
    dtype: np.dtype[Any]
    notices: tuple[Diagnostic, ...] = ()

    def values(self, index: int, stored: Pixels) -> Pixels:
        """Values of one slice: looked up, or computed in double precision and rounded once."""
        return np.asarray(self.of_slices[index].apply(stored), self.dtype)


def stack_scale(instances: Sequence[Instance], value_scale: str = DEFAULT) -> StackScale:
    """The scale of a stack as `value_scale` names it; applied when it is a table or varies.

    Raises IMG-1501 when the slices have different units, IMG-1504 for a scale of colours, IMG-1505
    and IMG-1506 when `value_scale` names none or several, IMG-1507 when the slices are on different
    scales, and the refusals of scales that cannot be read.
    """
    chosen = [i.scales.chosen(value_scale, file=i.ref.label) for i in instances]
    coloured = any(instance.pixels.samples > 1 for instance in instances)
    if coloured and not all(scale.is_identity for scale in chosen):
        raise refuse("IMG-1504", form="a value scale of colour pixels")
    _refuse_mixed(chosen)
    first = chosen[0]
    alternatives = _alternatives(instances, first.name)
    same = len({scale.numbers for scale in chosen}) == 1
    pairs = zip(instances, chosen, strict=True)
    # The slices of one file share what it says.
    distinct = {(id(i.pixels), id(scale)): (i, scale) for i, scale in pairs}.values()
    dtype = np.result_type(*{_values_dtype(i.pixels, s, i.ref.label) for i, s in distinct})
    if same and first.table is None:
        travels = ValueScale(
            *(first.slope, first.intercept, first.unit, first.source),
            name=first.name,
            alternatives=alternatives,
        )
    else:
        source = f"{first.source}{'' if same else ' of each slice'}, applied"
        travels = ValueScale(
            1.0, 0.0, first.unit, source, applied=True, name=first.name, alternatives=alternatives
        )
    found = _notices(instances, chosen, travels, dtype, value_scale)
    return StackScale(travels, tuple(chosen), dtype, tuple(found))


def _refuse_mixed(chosen: Sequence[Scale]) -> None:
    units = sorted({str(scale.unit) for scale in chosen})
    if len(units) > 1:
        raise refuse("IMG-1501", units=units)
    names = sorted({scale.name for scale in chosen})
    if len(names) > 1 and len({scale.numbers for scale in chosen}) > 1:
        raise refuse("IMG-1507", scales=names)


def _notices(
    instances: Sequence[Instance],
    chosen: Sequence[Scale],
    travels: ValueScale,
    dtype: np.dtype[Any],
    value_scale: str,
) -> list[Diagnostic]:
    found = []
    slopes = [scale.slope for scale in chosen]
    if travels.applied and all(scale.table is None for scale in chosen):
        found.append(
            notice(
                "IMG-1503",
                smallest_slope=min(slopes),
                largest_slope=max(slopes),
                slices=len(chosen),
                dtype=str(dtype),
            )
        )
    first = instances[0]
    philips = first.modality == "MR" and first.manufacturer.upper().startswith("PHILIPS")
    plain = chosen[0].name == DISPLAYED and chosen[0].unit is None and not chosen[0].is_identity
    if value_scale == DEFAULT and philips and plain and PRECISE not in first.scales.names:
        found.append(notice("IMG-1513", slope=slopes[0]))
    return found


def _values_dtype(pixels: PixelFormat, scale: Scale, file: str) -> np.dtype[Any]:
    """The smallest type whose rounding keeps the values of two stored values apart.

    Raises IMG-1502 when a value is beyond double precision.
    """
    if scale.table is not None:
        dtype = np.dtype(scale.table.dtype)
        entries = scale.table.entries
        narrow = dtype == np.float64 and np.array_equal(entries.astype(np.float32), entries)
        return np.dtype(np.float32) if narrow else dtype
    if pixels.location.keyword != "PixelData":
        return np.dtype(np.float64 if pixels.bits_allocated > 32 else np.float32)
    low = -(2.0 ** (pixels.bits_stored - 1)) if pixels.signed else 0.0
    high = low + 2.0**pixels.bits_stored - 1
    largest = max(abs(scale.slope * end + scale.intercept) for end in (low, high))
    if not np.isfinite(largest):
        raise refuse("IMG-1502", slope=f"{scale.slope:g}, beyond double precision", file=file)
    single = largest < _LARGEST_SINGLE and largest * _SINGLE_STEP <= abs(scale.slope)
    return np.dtype(np.float32 if single else np.float64)


def _alternatives(instances: Sequence[Instance], chosen: str) -> tuple[Alternative, ...]:
    """What every slice states besides the chosen scale, in the order of the first slice."""
    told = {id(instance.scales): instance.scales for instance in instances}
    distinct = list(dict.fromkeys(told.values()))
    found = []
    for name in dict.fromkeys(distinct[0].names):
        of_name = [[scale for scale in scales if scale.name == name] for scales in distinct]
        if name == chosen or not all(of_name):
            continue
        found.append(_alternative(name, [scale for scales in of_name for scale in scales]))
    return tuple(found)


def _alternative(name: str, scales: Sequence[Scale | Unreadable]) -> Alternative:
    readable = [scale for scale in scales if isinstance(scale, Scale)]
    if len(readable) < len(scales):
        return Alternative(name, None, None, None, "unreadable")
    units = {scale.unit for scale in readable}
    unit = units.pop() if len(units) == 1 else None
    numbers = {scale.numbers for scale in readable}
    if len(numbers) > 1:
        return Alternative(name, None, None, unit, "varies")
    slope, intercept, table = numbers.pop()
    if table is not None:
        return Alternative(name, None, None, unit, "table")
    return Alternative(name, slope, intercept, unit)


def refuse_undefined(
    instance: Instance, scale: Scale, stored: Pixels, padding: NDArray[np.bool_] | None
) -> None:
    """Refuse a slice with stored values for which its scale is not defined.

    Raises IMG-1510; padding is not counted.
    """
    if scale.mapped is None:
        return
    first, last = scale.mapped
    outside = (stored < first) | (stored > last)
    if padding is not None:
        outside &= ~padding
    count = int(np.count_nonzero(outside))
    if count:
        raise refuse(
            "IMG-1510",
            count=count,
            lowest=float(stored[outside].min()),
            highest=float(stored[outside].max()),
            first=first,
            last=last,
            name=scale.name,
            file=instance.ref.label,
        )
