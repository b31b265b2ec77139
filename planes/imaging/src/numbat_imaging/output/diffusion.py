"""Diffusion gradients in patient space to FSL's tables, for the image as it is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.series.gradient import Gradient
from numbat_registries import Diagnostic, notice

Array = NDArray[np.float64]


def fsl_axes(affine_ras_mm: Array) -> Array:
    """(3, 3), the directions that FSL's x, y, z stand for, unit RAS vectors as columns.

    They are the image axes, x turned round when the affine has a positive determinant; a sheared
    image counts as if its slices were stacked squarely, since shearing turns no slice.
    Source: FSL, FDT user guide, on bvecs.
    """
    linear = affine_ras_mm[:3, :3]
    sign = 1.0 if np.linalg.det(linear) > 0 else -1.0
    i, j = (linear[:, axis] / np.linalg.norm(linear[:, axis]) for axis in (0, 1))
    return np.column_stack([-sign * i, j, sign * np.cross(i, j)])


def fsl_vectors(gradients: Sequence[Gradient], affine_ras_mm: Array) -> Array:
    """(3, T), FSL b-vectors for an image with this affine; zeros where there is no direction.

    `affine_ras_mm`: (4, 4), of the image as written.
    """
    axes = fsl_axes(affine_ras_mm)
    vectors = np.zeros((3, len(gradients)))
    for t, gradient in enumerate(gradients):
        if gradient.direction_lps is not None:
            direction_ras = np.asarray(gradient.direction_lps) * (-1.0, -1.0, 1.0)
            vectors[:, t] = axes.T @ direction_ras
    return vectors


def fsl_tables(gradients: Sequence[Gradient], affine_ras_mm: Array) -> tuple[str, str]:
    """The texts of a .bval and a .bvec file, one column for each volume."""
    values = " ".join(_number(gradient.b_value_s_mm2) for gradient in gradients)
    rows = [" ".join(map(_number, row)) for row in fsl_vectors(gradients, affine_ras_mm)]
    return f"{values}\n", "".join(f"{row}\n" for row in rows)


def _number(value: float) -> str:
    text = f"{float(value):.8g}"
    return "0" if text == "-0" else text


def directionless(gradients: Sequence[Gradient]) -> list[Diagnostic]:
    """What is said when weighted volumes have no direction: FSL's table holds zeros for them."""
    without = [
        t for t, g in enumerate(gradients) if g.b_value_s_mm2 > 0 and g.direction_lps is None
    ]
    if not without:
        return []
    return [notice("IMG-1706", volumes=without, of=len(gradients))]
