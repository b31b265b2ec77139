"""A volume turned to other axes: voxels change their order, never their value or their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.placement import (
    Turn,
    axis_code,
    grid_of_affine,
    turn_to,
    turned_affine,
)
from numbat_registries import notice

if TYPE_CHECKING:
    from numbat_imaging.series.slice_timing import Timing
    from numbat_imaging.volume import Volume

_Kind = TypeVar("_Kind", bound=np.generic)

#: The turn that changes nothing.
UNTURNED: Turn = ((0, 1), (1, 1), (2, 1))
#: Axes are parallel when the sine of their angle is below this.
_PARALLEL = 1e-6
#: Turning there and back rounds by less.
_SAME_PLACE_MM = 1e-9


def reorient(volume: Volume, axes: str) -> Volume:
    """A volume whose i, j and k run towards the letters of `axes`, such as "LPS" or "RAS".

    Of an oblique or sheared volume each axis runs as near to its letter as it can without
    resampling: axes are swapped and turned round, and nothing else. Voxels of any type keep their
    bits and their place in the patient; gradient directions are in patient coordinates and stay.
    The voxels are a view. `volume.axes` becomes `axes`, so that files keep this order of voxels.
    `sources` and `as_read` stay those of the slices.

    Raises IMG-1227 when `axes` is no such code; tells IMG-1218 when voxels change their order.
    """
    turn = turn_to(volume.affine_lps_mm, axes)
    if turn == UNTURNED:
        return replace(volume, axes=axes)
    told = notice("IMG-1218", from_axes=axis_code(volume.affine_lps_mm), axes=axes)
    return replace(turned(volume, turn), axes=axes, notices=(*volume.notices, told))


def turned(volume: Volume, turn: Turn) -> Volume:
    """The volume with its axes swapped and turned round as `turn` says."""
    affine = turned_affine(volume.affine_lps_mm, volume.voxels.shape, turn)
    read = volume.as_read or volume.grid
    is_back = np.allclose(affine, read.affine_lps_mm, rtol=0.0, atol=_SAME_PLACE_MM)
    return replace(
        volume,
        voxels=_turned_array(volume.voxels, turn),
        affine_lps_mm=affine,
        grid=read if is_back else turned_grid(volume.grid, volume.voxels.shape, turn),
        padded=None if volume.padded is None else _turned_array(volume.padded, turn),
        as_read=read,
        timing=_turned_timing(volume.timing, turn),
    )


def _turned_timing(timing: Timing, turn: Turn) -> Timing:
    """Times of slices go with the slices, and only while the third axis counts them."""
    old, sign = turn[2]
    times = timing.slice_times_s
    kept = times[::sign] if times is not None and old == 2 else None
    return replace(timing, slice_times_s=kept)


def turned_grid(grid: Grid, shape: tuple[int, ...], turn: Turn) -> Grid:
    """The grid after a turn; residuals go with the slices while k still counts them."""
    affine = turned_affine(grid.affine_lps_mm, shape, turn)
    sizes = [shape[old] for old, _ in turn]
    found = grid_of_affine(affine, sizes, source=grid.thickness_source)
    found = replace(found, is_sheared=grid.is_sheared)
    old, sign = turn[2]
    return replace(found, residuals_mm=grid.residuals_mm[::sign]) if old == 2 else found


def inverse(turn: Turn) -> Turn:
    """The turn that undoes `turn`."""
    back = [(0, 1)] * 3
    for new, (old, sign) in enumerate(turn):
        back[old] = (new, sign)
    return tuple(back)


def _turned_array(array: NDArray[_Kind], turn: Turn) -> NDArray[_Kind]:
    order = [old for old, _ in turn]
    steps = tuple(slice(None, None, sign) for _, sign in turn)
    return array.transpose(*order, *range(3, array.ndim))[steps]


def upright_turn(grid: Grid) -> Turn:
    """The turn after which the slices of a sheared grid are rectangles again.

    Of the three pairs of axes, the most perpendicular one becomes i and j.
    """
    linear = grid.affine_lps_mm[:3, :3]
    units = linear / np.linalg.norm(linear, axis=0)
    cosines = np.abs(units.T @ units)
    # k first: a stack as it was read stays as it is.
    across = min((2, 1, 0), key=lambda axis: round(float(_other(cosines, axis)), 9))
    if across == 2:
        return UNTURNED
    swapped = [0, 1, 2]
    swapped[across], swapped[2] = 2, across
    return tuple((old, 1) for old in swapped)


def _other(cosines: NDArray[Any], axis: int) -> Any:
    first, second = (other for other in range(3) if other != axis)
    return cosines[first, second]


def turn_since_read(volume: Volume) -> tuple[tuple[int, int] | None, ...]:
    """For each axis of the slices as read (i, j, k): the axis now parallel to it, and 1 or -1.

    None for an axis that no axis of the volume is parallel to, as after resampling to an oblique
    grid. What headers say of rows, columns and slices holds for the axes that this names.
    """
    if volume.as_read is None:
        return UNTURNED
    before, now = volume.as_read.affine_lps_mm[:3, :3], volume.affine_lps_mm[:3, :3]
    before, now = before / np.linalg.norm(before, axis=0), now / np.linalg.norm(now, axis=0)
    cosines = before.T @ now
    found: list[tuple[int, int] | None] = []
    for axis in range(3):
        nearest = int(np.argmax(np.abs(cosines[axis])))
        sine = float(np.linalg.norm(np.cross(before[:, axis], now[:, nearest])))
        sign = 1 if cosines[axis, nearest] > 0 else -1
        found.append((nearest, sign) if sine < _PARALLEL else None)
    return tuple(found)
