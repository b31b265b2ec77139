"""Volumes for gates on grids: a header that was read, with voxels on a grid of the case."""

from dataclasses import replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.volume import Volume

Array = NDArray[np.float64]


def turn_about(axis: int, degrees: float) -> Array:
    """A rotation about one axis."""
    angle = np.radians(degrees)
    rotation = np.eye(3)
    a, b = ((1, 2), (2, 0), (0, 1))[axis]
    rotation[a, a] = rotation[b, b] = np.cos(angle)
    rotation[a, b], rotation[b, a] = -np.sin(angle), np.sin(angle)
    return rotation


SPACING = np.array([1.0, 1.5, 2.5])
ORIGIN = np.array([10.0, -20.0, 30.0])
#: A rotation with no zero in it, and no two axes as near to one direction.
OBLIQUE = turn_about(0, 29.0) @ turn_about(1, -38.0) @ turn_about(2, 17.0)
SLIDE = np.array([0.4, -0.7])

#: All that a volume can be turned to.
CODES = tuple(
    "".join(letters) for pairs in permutations(("LR", "PA", "SI")) for letters in product(*pairs)
)


def affine_of(axes: Array, spacing: Array = SPACING, slide_mm: Array | None = None) -> Array:
    """(4, 4): columns of `axes` times `spacing`, the step sliding along the first two."""
    affine = np.eye(4)
    affine[:3, :3] = axes * spacing
    if slide_mm is not None:
        affine[:3, 2] += axes[:, :2] @ slide_mm
    affine[:3, 3] = ORIGIN
    return affine


GRIDS = {
    "axial": affine_of(np.eye(3)),
    "sagittal": affine_of(np.array([[0.0, 0, -1], [1, 0, 0], [0, -1, 0]])),
    "tipped": affine_of(turn_about(0, 17.0) @ turn_about(2, -23.0)),
    "oblique": affine_of(OBLIQUE),
    "sheared": affine_of(turn_about(1, 9.0), slide_mm=SLIDE),
    "sheared oblique": affine_of(OBLIQUE, slide_mm=SLIDE),
}


@cache
def _first() -> Volume:
    return read_fault("clean")


def volume_on(voxels: NDArray[Any], affine: Array, **changes: Any) -> Volume:
    """A volume of `voxels` (i, j, k[, t]) whose slices lie at `affine`."""
    linear = affine[:3, :3]
    lengths = np.linalg.norm(linear, axis=0)
    row, column = linear[:, 0] / lengths[0], linear[:, 1] / lengths[1]
    normal = np.cross(row, column)
    grid = Grid(
        axes=np.column_stack([row, column, normal]),
        origin_mm=affine[:3, 3],
        step_mm=linear[:, 2],
        spacing_mm=np.array([lengths[0], lengths[1], linear[:, 2] @ normal]),
        residuals_mm=np.arange(3.0 * voxels.shape[2]).reshape(-1, 3) * 1e-4,
        is_sheared=bool(abs(lengths[2] - linear[:, 2] @ normal) > 1e-3),
    )
    return replace(_first(), voxels=voxels, affine_lps_mm=affine, grid=grid, **changes)


def places(affine: Array, shape: tuple[int, ...]) -> Array:
    """(i, j, k, 3): where the centre of every voxel lies."""
    index = np.stack(np.meshgrid(*map(np.arange, shape[:3]), indexing="ij"), axis=-1)
    return np.asarray(index @ affine[:3, :3].T + affine[:3, 3])


def numbered(shape: tuple[int, ...], dtype: Any = np.uint16) -> NDArray[Any]:
    """Voxels that are all different."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
