"""Image orientation: cosines checked, made orthonormal, compared and named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.tolerances import Tolerances
from numbat_registries import refuse

Vector = NDArray[np.float64]

#: DICOM patient LPS to NIfTI RAS: the first two axes change sign.
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])


def orthonormal_axes(
    cosines: Sequence[float], *, corner_mm: tuple[float, float], tolerances: Tolerances
) -> NDArray[np.float64]:
    """Row direction (along columns, i), column direction (along rows, j) and normal, as columns.

    `cosines`: the six numbers of ImageOrientationPatient, LPS. `corner_mm`: extent of the image
    along i and j. Returns (3, 3), a right-handed orthonormal frame in LPS.

    Raises IMG-1202 when the two directions are not of unit length, IMG-1203 when they are not
    perpendicular, each measured as the displacement of the far corner.
    Source: DICOM PS3.3 C.7.6.2.1.1.
    """
    row, column = np.asarray(cosines[:3], float), np.asarray(cosines[3:], float)
    lengths = np.array([np.linalg.norm(row), np.linalg.norm(column)])
    stretch_mm = float(np.max(np.abs(lengths - 1.0) * corner_mm))
    limit_mm = tolerances.orientation_mm
    if stretch_mm > limit_mm or not np.all(lengths > 0):
        raise refuse("IMG-1202", lengths=lengths, displacement_mm=stretch_mm, limit_mm=limit_mm)
    row, column = row / lengths[0], column / lengths[1]
    cosine = float(row @ column)
    skew_mm = abs(cosine) * max(corner_mm)
    if skew_mm > limit_mm:
        raise refuse("IMG-1203", cosine=cosine, displacement_mm=skew_mm, limit_mm=limit_mm)
    normal = np.cross(row, column)
    normal /= np.linalg.norm(normal)
    # The remaining departure is below the tolerance; it is shared evenly between the two axes.
    bisector = (row + column) / np.linalg.norm(row + column)
    across = np.cross(normal, bisector)
    row, column = (bisector - across) / np.sqrt(2.0), (bisector + across) / np.sqrt(2.0)
    return np.column_stack([row, column, normal])


def corner_displacement_mm(
    first: Sequence[float], second: Sequence[float], *, corner_mm: tuple[float, float]
) -> float:
    """How far apart two orientations carry the far corner of one image."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    return float(
        np.linalg.norm((a[:3] - b[:3]) * corner_mm[0])
        + np.linalg.norm((a[3:] - b[3:]) * corner_mm[1])
    )


def corner_displacements_mm(
    cosines: Sequence[float], others: NDArray[np.float64], *, corner_mm: tuple[float, float]
) -> NDArray[np.float64]:
    """`corner_displacement_mm` of one orientation against many, (n, 6) to (n,)."""
    apart = np.asarray(others, float) - np.asarray(cosines, float)
    found: NDArray[np.float64] = (
        np.linalg.norm(apart[:, :3], axis=1) * corner_mm[0]
        + np.linalg.norm(apart[:, 3:], axis=1) * corner_mm[1]
    )
    return found


def axis_letters(direction_lps: Vector) -> str:
    """The patient direction that a vector points to, such as "L" or "PL" (largest part first)."""
    names = (("R", "L"), ("A", "P"), ("I", "S"))
    order = np.argsort(-np.abs(direction_lps), kind="stable")
    letters = [names[k][int(direction_lps[k] > 0)] for k in order if abs(direction_lps[k]) > 0.2]
    return "".join(letters)


def plane_name(normal_lps: Vector) -> str:
    """The plane of a normal: axial, coronal or sagittal, "oblique" in front beyond 1 degree."""
    k = int(np.argmax(np.abs(normal_lps)))
    name = ("sagittal", "coronal", "axial")[k]
    oblique = abs(float(normal_lps[k])) < np.cos(np.radians(1.0))
    return f"oblique {name}" if oblique else name
