"""A tilted stack whose values are a linear function of place, for judging a resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.phantoms.catalogue import TILTED
from numbat_imaging.phantoms.geometry_faults import tilted
from numbat_imaging.phantoms.oracle import slice_affine_lps_mm
from numbat_imaging.phantoms.phantom import set_pixels, write_datasets

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

Array = NDArray[np.float64]

#: Change of the value along L, P and S, in HU for each mm; large enough that rounding to whole
#: stored values stays well below what a displacement of a tenth of a millimetre makes.
_SLOPE_PER_MM = np.array([11.0, -17.0, 5.0])


def read_tilted_ramp(*, angle_deg: float) -> tuple[Volume, Callable[[Array], Array]]:
    """The volume of a tilted scan of the ramp, and the ramp as a function of LPS points (…, 3).

    The ramp is stored in steps of 0.05 HU, so its values are right to 0.025 HU.
    """
    from numbat_imaging.volume import read_series

    phantom = replace(TILTED, shape=(24, 20, 12), slope=0.05, intercept=0.0)
    slices = tilted(angle_deg, tag="right")(phantom.slices())
    for ds in slices:
        index = np.stack(np.meshgrid(np.arange(24), np.arange(20), indexing="xy"), axis=-1)
        affine = slice_affine_lps_mm(ds)
        points = index @ affine[:3, :2].T + affine[:3, 3]
        set_pixels(ds, np.rint(ramp(points) / 0.05).astype("int16"))
    with TemporaryDirectory() as folder:
        write_datasets(slices, folder)
        return read_series(folder), ramp


def ramp(points_lps_mm: NDArray[Any]) -> Array:
    """The value at each point (…, 3), HU."""
    return np.asarray(points_lps_mm @ _SLOPE_PER_MM)
