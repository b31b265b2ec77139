"""A sheared stack made square, against interpolation worked out voxel by voxel."""

from math import floor

import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.shear import square_stack
from numbat_imaging.values.rescale import ValueScale

Array = NDArray[np.float64]

_AXES = np.array([[2.0, -1.0, 2.0], [2.0, 2.0, -1.0], [-1.0, 2.0, 2.0]]) / 3.0
_ORIGIN = np.array([10.0, -20.0, 30.0])
_SPACING = np.array([2.0, 1.5, 4.0])
_SCALE = ValueScale(slope=2.0, intercept=5.0, unit="HU", source="RescaleSlope")


@gate(
    "IMG-G21",
    phase=1,
    discharges=["IMG-R007"],
    title="A stack made square holds each value where interpolation puts it",
)
def resampling(check: Check) -> None:
    # Voxels that a slice slides along i and j, up and down, by parts and by more than one.
    for slide in ((0.25, -0.375), (-1.3, 0.4), (0.0, 1.7), (-0.5, 0.0), (2.0, -1.0)):
        for volumes in (None, 2):
            _resampled(check, np.array(slide), volumes)
    colours = np.zeros((3, 3, 3), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    with check.refuses("IMG-1215", "colours"):
        square_stack(colours, _grid(np.array([0.5, 0.0])), _SCALE)


def _grid(slide: Array, slices: int = 3) -> Grid:
    step = _AXES @ np.array([*(slide * _SPACING[:2]), _SPACING[2]])
    return Grid(
        axes=_AXES,
        origin_mm=_ORIGIN,
        step_mm=step,
        spacing_mm=_SPACING,
        residuals_mm=np.zeros((slices, 3)),
        is_sheared=True,
    )


def _resampled(check: Check, slide: Array, volumes: int | None) -> None:
    name = f"sliding by {tuple(slide.tolist())} voxels" + (
        f", {volumes} volumes" if volumes else ""
    )
    shape = (4, 5, 3) if volumes is None else (4, 5, 3, volumes)
    voxels = np.random.default_rng(7).integers(-50, 1000, shape, dtype=np.int16)
    grid = _grid(slide)
    found, square, scale = square_stack(voxels, grid, _SCALE)
    # The far corner of all slices, in voxels of the first one.
    ends = np.array([np.zeros(2), 2.0 * slide])
    low, high = np.floor(ends.min(axis=0)), np.ceil(ends.max(axis=0))
    size = np.array([4, 5]) + (high - low).astype(int)
    check.equal(f"{name}: shape", found.shape, (*size.tolist(), *shape[2:]))
    stack = voxels[..., None] if volumes is None else voxels
    values = np.asarray(stack, float) * 2.0 + 5.0
    required = np.empty((*size, 3, stack.shape[3]))
    for i, j, k, t in np.ndindex(required.shape):
        at = np.array([i, j]) + low - k * slide
        required[i, j, k, t] = _between(values[:, :, k, t], at, outside=float(values.min()))
    measured = found[..., None] if volumes is None else found
    check.close(f"{name}: values", measured=measured, required=required, atol=2e-3, unit="HU")
    check.equal(f"{name}: type", str(found.dtype), "float32")
    _where(check, name, grid, square, low)
    told = (scale.slope, scale.intercept, scale.unit, scale.applied)
    check.equal(f"{name}: scale", told, (1.0, 0.0, "HU", True))
    check.true(f"{name}: the scale says so", "tilt resampled" in scale.source)


def _where(check: Check, name: str, grid: Grid, square: Grid, low: Array) -> None:
    affine = np.eye(4)
    affine[:3, :3] = _AXES * _SPACING
    affine[:3, 3] = _ORIGIN + _AXES[:, :2] @ (low * _SPACING[:2])
    check.close(f"{name}: affine", measured=square.affine_lps_mm, required=affine, atol=1e-9)
    check.equal(f"{name}: square now", (grid.is_sheared, square.is_sheared), (True, False))
    check.close(f"{name}: no shear", measured=square.shear_deg, required=0.0, atol=1e-6)


def _between(plane: Array, at: Array, *, outside: float) -> float:
    """The value of a plane between its voxels, where it has any; each voxel beyond is `outside`."""
    total = 0.0
    x, y = (floor(part) for part in at)
    for i, weight_i in ((x, 1 - (at[0] - x)), (x + 1, at[0] - x)):
        for j, weight_j in ((y, 1 - (at[1] - y)), (y + 1, at[1] - y)):
            inside = 0 <= i < plane.shape[0] and 0 <= j < plane.shape[1]
            total += weight_i * weight_j * (float(plane[i, j]) if inside else outside)
    return total
