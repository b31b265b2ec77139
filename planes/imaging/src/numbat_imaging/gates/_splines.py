"""Interpolation by its definition, one voxel at a time: what fast code is held to."""

from math import floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mirrored(index: int, size: int) -> int:
    """An index beyond an end, mirrored at the centre of the outermost voxel."""
    if size == 1:
        return 0
    index = abs(index) % (2 * size - 2)
    return min(index, 2 * size - 2 - index)


def clamped(index: int, size: int) -> int:
    """An index beyond an end, taken back to it."""
    return min(max(index, 0), size - 1)


def _cubic_weights(part: float) -> list[tuple[int, float]]:
    """The cubic B-spline at -1 - part, -part, 1 - part and 2 - part."""
    found = []
    for step in (-1, 0, 1, 2):
        x = abs(step - part)
        inner = 2 / 3 - x * x + x**3 / 2
        found.append((step, inner if x < 1 else max(2 - x, 0.0) ** 3 / 6))
    return found


def _linear_weights(part: float) -> list[tuple[int, float]]:
    return [(0, 1 - part), (1, part)]


def cubic_coefficients(voxels: Array) -> Array:
    """Solve, axis by axis, for the spline that goes through all voxels."""
    found = np.asarray(voxels, float)
    for axis, size in enumerate(found.shape):
        system = np.zeros((size, size))
        for row in range(size):
            for step, weight in ((-1, 1 / 6), (0, 2 / 3), (1, 1 / 6)):
                system[row, mirrored(row + step, size)] += weight
        moved = np.moveaxis(found, axis, 0)
        solved = np.linalg.solve(system, moved.reshape(size, -1)).reshape(moved.shape)
        found = np.moveaxis(solved, 0, axis)
    return found


def low_passed(voxels: Array, sigma: Array) -> Array:
    """A Gaussian of four standard deviations along each axis, image mirrored."""
    found = np.asarray(voxels, float)
    for axis, size in enumerate(found.shape):
        if sigma[axis] <= 0:
            continue
        reach = int(4 * sigma[axis] + 0.5)
        steps = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (steps / sigma[axis]) ** 2)
        system = np.zeros((size, size))
        for row in range(size):
            for step, weight in zip(steps, weights / weights.sum(), strict=True):
                system[row, mirrored(row + int(step), size)] += weight
        moved = np.moveaxis(found, axis, 0)
        mixed = (system @ moved.reshape(size, -1)).reshape(moved.shape)
        found = np.moveaxis(mixed, 0, axis)
    return found


def sigma_of(widths: Array) -> Array:
    """The Gaussian that widens a voxel's own one to `widths` voxels, both at half maximum."""
    return np.array([sqrt(max(w * w - 1, 0.0) / (8 * log(2))) for w in widths])


def between(voxels: Array, at: Array, *, cubic: bool) -> float:
    """The value of an image between its voxels; `voxels` are coefficients if `cubic`."""
    weights, fold = (_cubic_weights, mirrored) if cubic else (_linear_weights, clamped)
    starts = [floor(x) for x in at]
    parts = [weights(x - start) for x, start in zip(at, starts, strict=True)]
    total = 0.0
    for i, weight_i in parts[0]:
        for j, weight_j in parts[1]:
            for k, weight_k in parts[2]:
                index = tuple(
                    fold(start + step, size)
                    for start, step, size in zip(starts, (i, j, k), voxels.shape, strict=True)
                )
                total += weight_i * weight_j * weight_k * float(voxels[index])
    return total


def resampled(
    voxels: Array,
    affine: Array,
    target: Array,
    shape: tuple[int, ...],
    *,
    cubic: bool,
    smooth: bool,
) -> tuple[Array, NDArray[np.bool_]]:
    """Values of (i, j, k) `voxels` at the centres of another grid, and which of them lie outside.

    Each centre is carried to the patient and back; what lies outside is 0.
    """
    inverse = np.linalg.inv(affine)
    edges = (inverse @ target)[:3, :3]
    source = low_passed(voxels, sigma_of(np.linalg.norm(edges, axis=1)) if smooth else np.zeros(3))
    source = cubic_coefficients(source) if cubic else source
    found, outside = np.zeros(shape), np.zeros(shape, bool)
    for index in np.ndindex(shape):
        at = (inverse @ (target @ np.array([*index, 1.0])))[:3]
        if np.any(at < -0.5) or np.any(at > np.array(voxels.shape) - 0.5):
            outside[index] = True
        else:
            found[index] = between(source, at, cubic=cubic)
    return found, outside
