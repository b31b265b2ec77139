"""A sheared stack (gantry tilt) resampled onto a square grid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid
from numbat_registries import refuse

if TYPE_CHECKING:
    from numbat_imaging.values.rescale import ValueScale


def square_stack(
    voxels: NDArray[Any], grid: Grid, scale: ValueScale
) -> tuple[NDArray[Any], Grid, ValueScale]:
    """Slide each slice back in its own plane so that the step is along the normal.

    `voxels`: (i, j, k[, t]). Only in-plane linear interpolation is needed, since shearing moves a
    slice within its plane. The grid grows so that no voxel is lost; voxels that no slice reaches
    hold the smallest value of the stack. The result is float32 on the value scale.

    Raises IMG-1215 for colour volumes, whose channels have no fill value.
    """
    if voxels.dtype.fields is not None:
        raise refuse("IMG-1215", shear_deg=grid.shear_deg)
    per_slice = np.array([grid.step_mm @ grid.axes[:, 0], grid.step_mm @ grid.axes[:, 1]])
    shift = np.arange(grid.slices)[:, None] * per_slice / grid.spacing_mm[:2]
    low = np.floor(shift.min(axis=0)).astype(int)
    high = np.ceil(shift.max(axis=0)).astype(int)
    size_i, size_j = voxels.shape[0] + high[0] - low[0], voxels.shape[1] + high[1] - low[1]
    volumes = voxels[..., None] if voxels.ndim == 3 else voxels
    fill = float(volumes.min()) * scale.slope + scale.intercept
    shape = (volumes.shape[3], grid.slices, size_j, size_i)
    block = np.full(shape, fill, np.float32)
    for t in range(shape[0]):
        for k in range(grid.slices):
            plane = volumes[:, :, k, t].astype(np.float64) * scale.slope + scale.intercept
            block[t, k] = _shifted(plane, shift[k] - low, (size_i, size_j), fill).T
    step = float(grid.step_mm @ grid.normal) * grid.normal
    offset = low * grid.spacing_mm[:2]
    origin = grid.origin_mm + grid.axes[:, 0] * offset[0] + grid.axes[:, 1] * offset[1]
    square = replace(grid, origin_mm=origin, step_mm=step, is_sheared=False)
    moved = replace(
        scale, slope=1.0, intercept=0.0, applied=True, source=f"{scale.source}; tilt resampled"
    )
    out = block.transpose(3, 2, 1, 0)
    return (out[..., 0] if voxels.ndim == 3 else out), square, moved


def _shifted(
    plane: NDArray[np.float64], by: NDArray[np.float64], size: tuple[int, int], fill: float
) -> NDArray[np.float64]:
    """`plane` (i, j) moved by a fractional number of voxels into a larger plane, linearly."""
    whole = np.floor(by).astype(int)
    part = by - whole
    padded = np.pad(plane, 1, constant_values=fill)
    rows = (1 - part[0]) * padded[1:, :] + part[0] * padded[:-1, :]
    both = (1 - part[1]) * rows[:, 1:] + part[1] * rows[:, :-1]
    out = np.full(size, fill)
    i, j = min(size[0] - whole[0], both.shape[0]), min(size[1] - whole[1], both.shape[1])
    out[whole[0] : whole[0] + i, whole[1] : whole[1] + j] = both[:i, :j]
    return out
