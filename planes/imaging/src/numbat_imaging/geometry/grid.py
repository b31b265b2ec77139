"""The grid that a stack of slices lies on: fitted to all positions, residuals kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.tolerances import Tolerances
from numbat_registries import Diagnostic, notice, refuse

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """A regular grid in DICOM patient LPS millimetres.

    `axes`: (3, 3), unit row direction (i), column direction (j), slice normal, as columns.
    `origin_mm`: (3,), centre of voxel (0, 0, 0) on the fitted grid.
    `step_mm`: (3,), from one slice to the next; parallel to the normal unless the stack is sheared.
    `spacing_mm`: (3,), along i, along j, and between slice planes (along the normal).
    `residuals_mm`: (K, 3), each slice's ImagePositionPatient minus its place on the grid.
    `is_sheared`: the slices slide over each other (gantry tilt) by more than the tolerance.
    `thickness_source`: what gave the distance of a single slice; "positions" otherwise.
    """

    axes: Array
    origin_mm: Array
    step_mm: Array
    spacing_mm: Array
    residuals_mm: Array
    is_sheared: bool
    thickness_source: str = "positions"

    @property
    def slices(self) -> int:
        """Number of slices."""
        return len(self.residuals_mm)

    @property
    def normal(self) -> Array:
        """Unit slice normal, row direction × column direction."""
        return np.asarray(self.axes[:, 2])

    @property
    def max_residual_mm(self) -> float:
        """Largest distance of a slice from the grid."""
        return float(np.max(np.linalg.norm(self.residuals_mm, axis=1)))

    @property
    def rms_residual_mm(self) -> float:
        """Root mean square distance of the slices from the grid."""
        return float(np.sqrt(np.mean(np.sum(self.residuals_mm**2, axis=1))))

    @property
    def shear_deg(self) -> float:
        """Angle between the step and the normal; 0 for a square stack.

        Of a stack that was turned, whose slices slide along i or j: between that axis and the
        normal of the other two.
        """
        linear = self.affine_lps_mm[:3, :3]
        angles = []
        for axis in range(3):
            normal = np.cross(linear[:, axis - 2], linear[:, axis - 1])
            normal /= np.linalg.norm(normal)
            along = abs(float(linear[:, axis] @ normal))
            across = float(np.linalg.norm(np.cross(linear[:, axis], normal)))
            angles.append(float(np.degrees(np.arctan2(across, along))))
        return max(angles)

    @property
    def affine_lps_mm(self) -> Array:
        """(4, 4), voxel index (i, j, k, 1) of a voxel centre to LPS mm."""
        affine = np.eye(4)
        affine[:3, 0] = self.axes[:, 0] * self.spacing_mm[0]
        affine[:3, 1] = self.axes[:, 1] * self.spacing_mm[1]
        affine[:3, 2] = self.step_mm
        affine[:3, 3] = self.origin_mm
        return affine


def slice_order(positions_mm: Array, normal: Array) -> NDArray[np.intp]:
    """Indices that sort slice positions (K, 3) upwards along the normal."""
    return np.argsort(positions_mm @ normal, kind="stable")


def fit_grid(
    positions_mm: Array,
    axes: Array,
    in_plane_mm: tuple[float, float],
    *,
    tolerances: Tolerances,
) -> Grid:
    """The least-squares grid through all slice positions, sorted along the normal.

    `positions_mm`: (K, 3), K ≥ 2, LPS, one for each slice. `in_plane_mm`: spacing along i and j.

    Raises IMG-1206 for a gap, IMG-1207 for uneven slices, each with the measured residuals.
    Source: PS3.3 C.7.6.2.1.1 for position and orientation; the fit is ordinary least squares of
    position on slice number, so that no single slice (nor the first gap) decides the spacing.
    """
    distances = positions_mm @ axes[:, 2]
    steps = np.diff(distances)
    _refuse_gaps(steps, distances, tolerances)
    count = len(positions_mm)
    number = np.arange(count, dtype=float)
    centred = number - number.mean()
    mean = positions_mm.mean(axis=0)
    step = centred @ (positions_mm - mean) / (centred @ centred)
    origin = mean - number.mean() * step
    residuals = positions_mm - (origin + number[:, None] * step)
    spacing = float(step @ axes[:, 2])
    _refuse_uneven(residuals, steps, spacing, tolerances)
    across = step - spacing * axes[:, 2]
    slide_mm = float(np.linalg.norm(across)) * (count - 1)
    sheared = slide_mm > tolerances.position_limit_mm(spacing)
    if not sheared:
        step = spacing * axes[:, 2]
        origin = mean - number.mean() * step
        residuals = positions_mm - (origin + number[:, None] * step)
        sheared = _exceeds(residuals, tolerances.position_limit_mm(spacing))
    if sheared:
        step = spacing * axes[:, 2] + across
        origin = mean - number.mean() * step
        residuals = positions_mm - (origin + number[:, None] * step)
    return Grid(
        axes=axes,
        origin_mm=origin,
        step_mm=step,
        spacing_mm=np.array([*in_plane_mm, spacing]),
        residuals_mm=residuals,
        is_sheared=sheared,
    )


def single_slice_grid(
    position_mm: Array,
    axes: Array,
    in_plane_mm: tuple[float, float],
    *,
    thickness_mm: float,
    thickness_source: str,
) -> Grid:
    """The grid of one slice, whose extent along the normal comes from a tag or from the caller."""
    return Grid(
        axes=axes,
        origin_mm=position_mm,
        step_mm=thickness_mm * axes[:, 2],
        spacing_mm=np.array([*in_plane_mm, thickness_mm]),
        residuals_mm=np.zeros((1, 3)),
        is_sheared=False,
        thickness_source=thickness_source,
    )


def _exceeds(residuals: Array, limit_mm: float) -> bool:
    return bool(np.max(np.linalg.norm(residuals, axis=1)) > limit_mm)


def _refuse_gaps(steps: Array, distances: Array, tolerances: Tolerances) -> None:
    usual = float(np.median(steps))
    if len(steps) == 2:
        # With two steps the median lies between them; the smaller one is the spacing of a stack
        # from which a slice is missing.
        usual = float(steps.min())
    wide = np.flatnonzero(steps > 1.5 * usual)
    if len(wide) and _whole_multiples(steps, usual, tolerances):
        first = int(wide[0])
        raise refuse(
            "IMG-1206",
            after_slice=first,
            gap_mm=float(steps[first]),
            spacing_mm=usual,
            missing_slices=int(np.sum(np.rint(steps[wide] / usual) - 1)),
            gaps=len(wide),
            at_mm=float(distances[first]),
        )


def _whole_multiples(steps: Array, usual: float, tolerances: Tolerances) -> bool:
    ratio = steps / usual
    off_mm = np.abs(ratio - np.rint(ratio)) * usual
    return bool(np.all(off_mm <= 2 * tolerances.position_fraction * usual))


def _refuse_uneven(residuals: Array, steps: Array, spacing: float, tolerances: Tolerances) -> None:
    limit_mm = tolerances.position_limit_mm(spacing)
    if not _exceeds(residuals, limit_mm):
        return
    sizes = np.linalg.norm(residuals, axis=1)
    worst = int(np.argmax(sizes))
    raise refuse(
        "IMG-1207",
        slice_index=worst,
        residual_mm=float(sizes[worst]),
        limit_mm=limit_mm,
        spacing_mm=spacing,
        smallest_step_mm=float(steps.min()),
        largest_step_mm=float(steps.max()),
        slices_beyond_limit=int(np.sum(sizes > limit_mm)),
    )


def compare_with_tags(
    grid: Grid,
    *,
    spacing_between_slices_mm: float | None,
    gantry_tilt_deg: float | None,
    tolerances: Tolerances,
) -> list[Diagnostic]:
    """Warnings where a tag repeats what the positions say and differs: the positions win."""
    found: list[Diagnostic] = []
    if grid.slices < 2:
        return found
    if spacing_between_slices_mm is not None:
        off_mm = abs(abs(spacing_between_slices_mm) - float(grid.spacing_mm[2]))
        if off_mm > tolerances.tag_mm:
            found.append(
                notice(
                    "IMG-1213",
                    spacing_mm=float(grid.spacing_mm[2]),
                    tag_mm=spacing_between_slices_mm,
                )
            )
    tag_deg = abs(gantry_tilt_deg or 0.0)
    height_mm = float(grid.spacing_mm[2]) * (grid.slices - 1)
    off_mm = abs(np.tan(np.radians(tag_deg)) - np.tan(np.radians(grid.shear_deg))) * height_mm
    if gantry_tilt_deg is not None and off_mm > tolerances.tag_mm:
        found.append(notice("IMG-1212", shear_deg=grid.shear_deg, tag_deg=gantry_tilt_deg))
    return found
