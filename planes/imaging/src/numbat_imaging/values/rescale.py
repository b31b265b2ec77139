"""The value scale of a volume: one rescale for all slices, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.series.instance import Instance
from numbat_registries import Diagnostic, notice, refuse


@dataclass(frozen=True, slots=True)
class ValueScale:
    """How voxels become values, and where that is written.

    value = slope × voxel + intercept, in `unit` (None where no tag states one). `applied` says that
    the voxels already are values. `source` names the elements that gave the scale.
    """

    slope: float
    intercept: float
    unit: str | None
    source: str
    applied: bool = False


def common_scale(instances: Sequence[Instance]) -> tuple[ValueScale, list[Diagnostic]]:
    """The scale of a stack; `applied` when it differs from slice to slice.

    Raises IMG-1501 when the slices have different units, IMG-1504 for a rescale of colours.
    """
    rescales = {instance.rescale for instance in instances}
    coloured = any(instance.pixels.samples > 1 for instance in instances)
    if coloured and any((r.slope, r.intercept) != (1.0, 0.0) for r in rescales):
        raise refuse("IMG-1504", form="a rescale of colour pixels")
    units = sorted({str(rescale.unit) for rescale in rescales})
    if len(units) > 1:
        raise refuse("IMG-1501", units=units)
    first = instances[0].rescale
    if len(rescales) == 1:
        return ValueScale(first.slope, first.intercept, first.unit, first.source), []
    slopes = [instance.rescale.slope for instance in instances]
    varies = notice(
        "IMG-1503", smallest_slope=min(slopes), largest_slope=max(slopes), slices=len(instances)
    )
    source = "RescaleSlope and RescaleIntercept of each slice (Modality LUT), applied"
    return ValueScale(1.0, 0.0, first.unit, source, applied=True), [varies]


def apply_rescale(stored: NDArray[np.generic], instance: Instance) -> NDArray[np.float32]:
    """Values of one slice in its own scale, computed in double and rounded once to float32."""
    rescale = instance.rescale
    return (stored.astype(np.float64) * rescale.slope + rescale.intercept).astype(np.float32)
