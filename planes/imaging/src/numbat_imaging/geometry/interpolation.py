"""Values between voxels: nearest, linear and cubic, along any affine map of voxel indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Order of the B-spline by name; nearest is a choice and no spline.
ORDERS = {"nearest": 0, "linear": 1, "cubic": 3}

#: Variance of a Gaussian whose full width at half maximum is 1.
_FWHM_VARIANCE = 1.0 / (8.0 * np.log(2.0))
#: Halfway between two voxels, up to rounding, the upper one is the nearest.
_TIE = 1e-6
#: Growth of a voxel below this (square of its width) is rounding.
_GROWTH = 1e-6
#: Parts of a voxel that no index can carry to a difference are rounding.
_DUST = 1e-9
_SLAB_VOXELS = 1 << 22


@dataclass(frozen=True, slots=True)
class IndexMap:
    """Where the voxels of one grid lie among those of another.

    `matrix` (3, 3), `offset` (3,): index in the source = matrix @ index in the result + offset.
    `source`, `result`: sizes along i, j, k.
    """

    matrix: Array
    offset: Array
    source: tuple[int, ...]
    result: tuple[int, ...]

    @classmethod
    def between(
        cls,
        source_lps_mm: Array,
        source: Sequence[int],
        result_lps_mm: Array,
        result: Sequence[int],
    ) -> IndexMap:
        """The map between two affines (4, 4) of one coordinate frame."""
        linear = source_lps_mm[:3, :3]
        matrix = np.linalg.solve(linear, result_lps_mm[:3, :3])
        offset = np.linalg.solve(linear, result_lps_mm[:3, 3] - source_lps_mm[:3, 3])
        matrix[np.abs(matrix) * np.array(result[:3]) < _DUST] = 0.0
        return cls(
            np.asarray(matrix, np.float64),
            np.asarray(offset, np.float64),
            tuple(source[:3]),
            tuple(result[:3]),
        )

    def sigma_voxels(self) -> Array:
        """(3,), standard deviation of the low-pass along each source axis, in source voxels.

        A voxel is taken to see as a Gaussian does whose full width at half maximum is its size.
        Along a source axis a result voxel is as wide as the norm of that row of the matrix; the
        variance that a source voxel lacks of it is added, and none where the image does not shrink.
        Source: Cardoso, Modat, Vercauteren, Ourselin, "Scale factor point spread function matching:
        beyond aliasing in image resampling", MICCAI 2015.
        """
        growth = np.sum(self.matrix**2, axis=1) - 1.0
        growth[(growth < _GROWTH) | (np.array(self.source) == 1)] = 0.0
        return np.asarray(np.sqrt(growth * _FWHM_VARIANCE))

    def slabs(self) -> Iterator[slice]:
        """Runs of result slices, each of few enough voxels to be worked on in double precision."""
        planes = max(1, _SLAB_VOXELS // (self.result[0] * self.result[1]))
        for start in range(0, self.result[2], planes):
            yield slice(start, min(start + planes, self.result[2]))

    def positions(self, slab: slice) -> list[Array]:
        """Source indices along i, j, k of the voxels of a slab; each (i, j, k) once broadcast.

        An axis of the result that a source index does not depend on has length 1.
        """
        counts = np.ogrid[0 : self.result[0], 0 : self.result[1], slab.start : slab.stop]
        found = []
        for row, start in zip(self.matrix, self.offset, strict=True):
            position = np.full((1, 1, 1), start)
            for factor, count in zip(row, counts, strict=True):
                position = position + factor * count if factor else position
            found.append(position)
        return found

    def inside(self, slab: slice) -> NDArray[np.bool_]:
        """Which voxels of a slab have their centre in a source voxel; broadcasts to (i, j, k)."""
        within = np.ones((1, 1, 1), bool)
        for position, size in zip(self.positions(slab), self.source, strict=True):
            within = within & (position >= -0.5 - _TIE) & (position <= size - 0.5 + _TIE)
        return within

    def outside_count(self) -> int:
        """How many result voxels have their centre in no source voxel."""
        ends = np.array([(0, size - 1) for size in self.result], float)
        corners = np.array([(i, j, k) for i in ends[0] for j in ends[1] for k in ends[2]])
        found = corners @ self.matrix.T + self.offset
        if np.all(found >= -0.5 - _TIE) and np.all(found <= np.array(self.source) - 0.5 + _TIE):
            return 0
        total = prod(self.result)
        for slab in self.slabs():
            within = np.broadcast_to(self.inside(slab), self._slab_shape(slab))
            total -= int(np.count_nonzero(within))
        return total

    def _slab_shape(self, slab: slice) -> tuple[int, int, int]:
        return (self.result[0], self.result[1], slab.stop - slab.start)

    def nearest(self, voxels: NDArray[Any], slab: slice) -> NDArray[Any]:
        """The voxel of (i, j, k) that each centre of a slab lies in; outside, that at the edge."""
        indices = tuple(
            np.clip(np.floor(position + (0.5 + _TIE)).astype(np.intp), 0, size - 1)
            for position, size in zip(self.positions(slab), self.source, strict=True)
        )
        return np.broadcast_to(voxels[indices], self._slab_shape(slab))

    def spline(self, coefficients: NDArray[Any], order: int, slab: slice) -> Array:
        """Values in double precision at the centres of a slab, (i, j, k).

        `coefficients` (i, j, k): voxels for order 1, `spline_coefficients` for order 3.
        """
        if np.count_nonzero(self.matrix) == 3:
            return self._spline_by_axis(coefficients, order, slab)
        ndimage: Any = import_module("scipy.ndimage")
        offset = self.offset + self.matrix[:, 2] * slab.start
        # scipy walks the last axis fastest: with i last, both sides are read as they lie.
        found = ndimage.affine_transform(
            coefficients.T,
            self.matrix[::-1, ::-1],
            offset=offset[::-1],
            output_shape=self._slab_shape(slab)[::-1],
            output=np.float64,
            order=order,
            mode="nearest" if order == 1 else "mirror",
            prefilter=False,
        )
        return np.asarray(found.T)

    def _spline_by_axis(self, coefficients: NDArray[Any], order: int, slab: slice) -> Array:
        """`spline` of grids with parallel axes: one axis after the other, which is far faster."""
        found: NDArray[Any] = coefficients
        # The slab may need a few source slices only: they go first.
        for axis in np.argsort(self.matrix[:, 2] == 0.0, kind="stable"):
            position = self.positions(slab)[axis].reshape(-1)
            found = _along(found, position, order, int(axis))
        return np.asarray(found.transpose(np.argmax(self.matrix != 0.0, axis=0)), np.float64)


def _along(voxels: NDArray[Any], position: Array, order: int, axis: int) -> Array:
    """The spline of `order` along one axis, at `position` in voxels."""
    start = np.floor(position)
    part, size = position - start, voxels.shape[axis]
    weights = (1.0 - part, part) if order == 1 else _cubic_weights(part)
    shape = np.ones(voxels.ndim, int)
    shape[axis] = -1
    total: Any = 0.0
    for step, weight in enumerate(weights, start=0 if order == 1 else -1):
        index = start.astype(np.intp) + step
        index = np.clip(index, 0, size - 1) if order == 1 else _mirrored(index, size)
        # Memory is walked as it lies: i, the first axis, is the fastest.
        total = total + np.take(voxels.T, index, axis=voxels.ndim - 1 - axis).T * weight.reshape(
            shape
        )
    return np.asarray(total)


def _cubic_weights(part: Array) -> tuple[Array, ...]:
    """The B-spline of order 3 at the two voxels before and the two after a place between."""
    rest = 1.0 - part
    before = 2 / 3 - part**2 * (2.0 - part) / 2
    after = 2 / 3 - rest**2 * (2.0 - rest) / 2
    return rest**3 / 6, before, after, part**3 / 6


def _mirrored(index: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Indices beyond an end, mirrored at the outermost voxel centres."""
    if size == 1:
        return np.zeros_like(index)
    period = 2 * size - 2
    folded = np.abs(index) % period
    found: NDArray[np.intp] = np.minimum(folded, period - folded)
    return found


def smoothed(voxels: NDArray[Any], sigma_voxels: Array) -> NDArray[Any]:
    """Voxels (i, j, k) after a Gaussian along each axis with a sigma; as they are without one.

    Sampled to four standard deviations, sum 1; the image is mirrored at its outermost centres.
    """
    ndimage: Any = import_module("scipy.ndimage")
    # scipy lays a result out with the last axis fastest, which has to be i.
    block = voxels.T
    for axis in np.flatnonzero(sigma_voxels):
        sigma, down = float(sigma_voxels[axis]), voxels.ndim - 1 - int(axis)
        block = ndimage.gaussian_filter1d(block, sigma, axis=down, output=np.float64, mode="mirror")
    return np.asarray(block.T)


def spline_coefficients(voxels: NDArray[Any], order: int) -> NDArray[Any]:
    """What a spline of `order` weighs so that it goes through all voxels (i, j, k).

    For order 3 the image is mirrored at its outermost voxel centres, as in ITK.
    Source: Unser, Aldroubi, Eden, "B-spline signal processing: part II", IEEE TSP 41, 1993.
    """
    if order == 1:
        return voxels
    ndimage: Any = import_module("scipy.ndimage")
    block = ndimage.spline_filter(voxels.T, order=order, output=np.float64, mode="mirror")
    return np.asarray(block.T)
