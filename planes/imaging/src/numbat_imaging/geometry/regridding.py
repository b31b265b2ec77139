"""What a conversion does to the grid of every volume: turned, resampled, or left as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from numbat_imaging.geometry.placement import TargetGrid, turn_to, voxel_size
from numbat_imaging.geometry.reorientation import reorient
from numbat_imaging.geometry.resampling import Interpolation, resample, resample_to

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume


@dataclass(frozen=True, slots=True)
class Regridding:
    """A request for axes and a spacing, or for the grid `like`; none by default.

    `axes`, `spacing_mm`, `interpolation`, `fill`, `registered` as in `reorient`, `resample` and
    `resample_to`; a spacing counts along the axes asked for.

    Raises IMG-1224 for a spacing that is none, IMG-1227 for axes that are none.
    """

    axes: str | None = None
    spacing_mm: tuple[float, ...] | None = None
    like: TargetGrid | None = None
    interpolation: Interpolation = "linear"
    fill: float | None = None
    registered: bool = False

    def __post_init__(self) -> None:
        if self.like is not None and (self.axes is not None or self.spacing_mm is not None):
            raise TypeError("a grid has its own axes and spacing")
        if self.axes is not None:
            turn_to(np.eye(4), self.axes)
        if self.spacing_mm is not None:
            voxel_size(self.spacing_mm)

    def apply(self, volume: Volume) -> Volume:
        """The volume as it was asked for.

        Raises what `reorient`, `resample` and `resample_to` do.
        """
        if self.like is not None:
            return resample_to(
                volume,
                self.like,
                interpolation=self.interpolation,
                fill=self.fill,
                registered=self.registered,
            )
        if self.axes is not None:
            volume = reorient(volume, self.axes)
        if self.spacing_mm is None:
            return volume
        return resample(volume, spacing_mm=self.spacing_mm, interpolation=self.interpolation)


#: Volumes as they are.
UNCHANGED = Regridding()
