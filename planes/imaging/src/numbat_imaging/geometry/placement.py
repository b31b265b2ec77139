"""Where a volume lies or shall lie: any affine with a shape, its axis letters, and its grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES
from numbat_registries import refuse

Array = NDArray[np.float64]
#: For each new axis: the old axis that it takes, and 1 or -1 for against it.
Turn = tuple[tuple[int, int], ...]

#: Letters towards which the LPS axes point, and away from which.
_TOWARDS, _AWAY = "LPS", "RAI"
#: A volume flatter than this (product of the axes against their box) has no inverse to trust.
_FLAT = 1e-6
#: Sizes are rounded up, except for what rounding leaves of a whole number.
_WHOLE_VOXEL = 1e-6


@dataclass(frozen=True, slots=True)
class TargetGrid:
    """A grid that a volume can be resampled to.

    `affine_lps_mm`: (4, 4), voxel index (i, j, k, 1) of a voxel centre to DICOM patient LPS mm.
    `shape`: sizes along i, j, k. `frame_of_reference_uid`: the frame of these coordinates; None
    where it is not known.
    """

    affine_lps_mm: Array
    shape: tuple[int, int, int]
    frame_of_reference_uid: str | None = None

    def check(self) -> None:
        """Raises IMG-1224 unless the grid has three axes of its own and a voxel at least."""
        affine = np.asarray(self.affine_lps_mm, float)
        if affine.shape != (4, 4) or not np.all(np.isfinite(affine)):
            raise refuse("IMG-1224", what="the affine is not four by four finite numbers")
        linear = affine[:3, :3]
        box = float(np.prod(np.linalg.norm(linear, axis=0)))
        if not abs(float(np.linalg.det(linear))) > _FLAT * box:
            raise refuse("IMG-1224", what="the axes of the affine lie in one plane")
        if not np.array_equal(affine[3], [0.0, 0.0, 0.0, 1.0]):
            raise refuse("IMG-1224", what="the last row of the affine is not 0 0 0 1")
        # A caller without types may hand over any sequence.
        sizes: tuple[int, ...] = tuple(self.shape)
        if len(sizes) != 3 or any(size < 1 for size in sizes):
            raise refuse("IMG-1224", what=f"the shape is {sizes}")


def axis_order(affine_lps_mm: Array) -> Turn:
    """For each LPS axis: the voxel axis nearest to it, and whether it runs with or against it.

    Of all six assignments the one with the largest sum of cosines is taken; where two are equal
    (45 degrees), the one that moves fewer axes out of order comes first.
    """
    linear = affine_lps_mm[:3, :3]
    cosines = linear / np.linalg.norm(linear, axis=0)
    best = -1.0
    order: tuple[int, ...] = (0, 1, 2)
    for candidate in permutations(range(3)):
        total = float(sum(abs(cosines[lps, axis]) for lps, axis in enumerate(candidate)))
        if total > best + 1e-9:
            best, order = total, candidate
    return tuple((axis, 1 if cosines[lps, axis] > 0 else -1) for lps, axis in enumerate(order))


def axis_code(affine_lps_mm: Array) -> str:
    """The patient directions that i, j and k run towards, nearest letters: "LPS" is axial DICOM."""
    letters = [""] * 3
    for lps, (axis, sign) in enumerate(axis_order(affine_lps_mm)):
        letters[axis] = (_TOWARDS if sign > 0 else _AWAY)[lps]
    return "".join(letters)


def turn_to(affine_lps_mm: Array, axes: str) -> Turn:
    """The turn that makes i, j and k run towards the letters of `axes`.

    Raises IMG-1227 when `axes` does not name left or right, front or back, and up or down once.
    """
    nearest = axis_order(affine_lps_mm)
    found: list[tuple[int, int]] = []
    named: set[int] = set()
    for letter in axes:
        lps = max(_TOWARDS.find(letter), _AWAY.find(letter))
        named.add(lps)
        axis, sign = nearest[lps]
        found.append((axis, sign if letter in _TOWARDS else -sign))
    if len(found) != 3 or named != {0, 1, 2}:
        raise refuse("IMG-1227", axes=axes)
    return tuple(found)


def turned_affine(affine_lps_mm: Array, shape: Sequence[int], turn: Turn) -> Array:
    """The affine after a turn: an axis that is turned round starts at its other end."""
    affine = np.eye(4)
    affine[:3, 3] = affine_lps_mm[:3, 3]
    for new, (old, sign) in enumerate(turn):
        affine[:3, new] = sign * affine_lps_mm[:3, old]
        if sign < 0:
            affine[:3, 3] += (shape[old] - 1) * affine_lps_mm[:3, old]
    return affine


def voxel_size(spacing_mm: float | Sequence[float]) -> tuple[float, float, float]:
    """A spacing along i, j, k from one number or three; raises IMG-1224 unless all are above 0."""
    asked = np.atleast_1d(np.asarray(spacing_mm, float))
    if asked.shape not in ((1,), (3,)) or not np.all(np.isfinite(asked) & (asked > 0)):
        raise refuse("IMG-1224", what=f"the spacing is {asked.tolist()} mm")
    first, second, third = (float(length) for length in np.broadcast_to(asked, 3))
    return first, second, third


def spaced(affine_lps_mm: Array, shape: Sequence[int], factors: Sequence[float]) -> TargetGrid:
    """The same box with voxels `factors` times as large along each axis.

    The middle of the box stays where it is. The number of voxels is rounded up, so that the new box
    reaches beyond the old one by less than half a voxel at either end, and every new centre lies
    inside the old box.
    """
    sizes = [
        max(1.0, np.ceil(size / factor - _WHOLE_VOXEL))
        for size, factor in zip(shape[:3], factors, strict=True)
    ]
    affine = np.array(affine_lps_mm, float)
    for axis, (size, factor) in enumerate(zip(sizes, factors, strict=True)):
        first = (shape[axis] - 1) / 2 - factor * (size - 1) / 2
        affine[:3, 3] += first * affine_lps_mm[:3, axis]
        affine[:3, axis] *= factor
    return TargetGrid(affine, (int(sizes[0]), int(sizes[1]), int(sizes[2])))


def grid_of_affine(affine_lps_mm: Array, shape: Sequence[int], *, source: str) -> Grid:
    """The grid of an affine that no slices vouch for: no residuals, `source` says where it is from.

    Of axes that are not perpendicular, the first two are the edges of a slice as they are; the
    normal points the way of the step.
    """
    linear = affine_lps_mm[:3, :3]
    lengths = np.linalg.norm(linear, axis=0)
    normal = np.cross(linear[:, 0], linear[:, 1])
    normal /= np.linalg.norm(normal)
    between = float(normal @ linear[:, 2])
    normal *= np.sign(between)
    return Grid(
        axes=np.column_stack([linear[:, 0] / lengths[0], linear[:, 1] / lengths[1], normal]),
        origin_mm=np.array(affine_lps_mm[:3, 3]),
        step_mm=np.array(linear[:, 2]),
        spacing_mm=np.array([lengths[0], lengths[1], abs(between)]),
        residuals_mm=np.zeros((shape[2], 3)),
        is_sheared=_is_sheared(affine_lps_mm, shape),
        thickness_source=source,
    )


def _is_sheared(affine_lps_mm: Array, shape: Sequence[int]) -> bool:
    """Whether one axis slides along another by more than the tolerance on positions."""
    linear = affine_lps_mm[:3, :3]
    lengths = np.linalg.norm(linear, axis=0)
    slides = [
        abs(float(linear[:, a] @ linear[:, b])) / float(lengths[b]) * (shape[a] - 1)
        for a, b in (*combinations(range(3), 2), *combinations((2, 1, 0), 2))
    ]
    return max(slides) > DEFAULT_TOLERANCES.position_mm
