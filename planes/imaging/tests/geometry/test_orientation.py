"""Cosines: checked as displacements, made orthonormal, named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_imaging.geometry.orientation import (
    axis_letters,
    corner_displacement_mm,
    corner_displacements_mm,
    orthonormal_axes,
    plane_name,
)
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES
from numbat_registries import Refusal

CORNER = (256.0, 256.0)


def axes_of(cosines: list[float]) -> np.ndarray:
    return orthonormal_axes(cosines, corner_mm=CORNER, tolerances=DEFAULT_TOLERANCES)


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1e-5))
def test_rounded_cosines_become_orthonormal_and_stay_near(seed: int, rounding: float) -> None:
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    given_cosines = np.concatenate([q[:, 0], q[:, 1]]) + rng.uniform(-rounding, rounding, 6)
    axes = axes_of(given_cosines.tolist())
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    kept = np.concatenate([axes[:, 0], axes[:, 1]])
    assert corner_displacement_mm(kept, given_cosines, corner_mm=CORNER) < 0.05


@pytest.mark.parametrize(
    ("cosines", "code"),
    [
        ([0.99, 0, 0, 0, 1, 0], "IMG-1202"),
        ([1, 0, 0, 0, 1.01, 0], "IMG-1202"),
        ([0, 0, 0, 0, 1, 0], "IMG-1202"),
        ([1, 0, 0, math.sin(0.01), math.cos(0.01), 0], "IMG-1203"),
        ([1, 0, 0, 1, 0, 0], "IMG-1203"),
        ([1, 0, 0, -1, 0, 0], "IMG-1203"),
    ],
)
def test_bad_cosines_are_refused(cosines: list[float], code: str) -> None:
    with pytest.raises(Refusal) as caught:
        axes_of(cosines)
    assert caught.value.code == code


def test_directions_and_planes_have_names() -> None:
    assert axis_letters(np.array([1.0, 0, 0])) == "L"
    assert axis_letters(np.array([0, -1.0, 0])) == "A"
    assert axis_letters(np.array([0.5, 0.8, 0.1])) == "PL"
    assert plane_name(np.array([0, 0, 1.0])) == "axial"
    assert plane_name(np.array([0, -1.0, 0])) == "coronal"
    assert plane_name(np.array([0.5, 0, math.sqrt(0.75)])) == "oblique axial"


def test_one_orientation_is_compared_with_many_as_with_each() -> None:
    turned = (0.8, 0.6, 0.0, -0.6, 0.8, 0.0)
    others = np.array([(1.0, 0, 0, 0, 1, 0), (0, 1.0, 0, 0, 0, -1), turned])
    found = corner_displacements_mm(turned, others, corner_mm=(10.0, 100.0))
    singly = [corner_displacement_mm(turned, other, corner_mm=(10.0, 100.0)) for other in others]
    assert found.tolist() == pytest.approx(singly)
    assert found[2] == 0.0
    assert found[1] > found[0] > 60
    assert corner_displacements_mm(turned, others[:0], corner_mm=(1.0, 1.0)).shape == (0,)
