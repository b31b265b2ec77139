"""The grid through slice positions: exact, free of order, and moved by what moves the patient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid, compare_with_tags, fit_grid, slice_order
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_registries import Refusal

Array = NDArray[np.float64]

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(3, 40)
spacings = st.floats(0.6, 10.0)


def rotation(seed: int) -> Array:
    """A proper rotation, uniformly drawn."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    if np.linalg.det(q) < 0:
        q[:, 0] *= -1.0
    return np.asarray(q)


def stack(axes: Array, step: Array, count: int, origin: Array) -> Array:
    return np.asarray(origin + np.arange(count)[:, None] * step)


def fit(positions: Array, axes: Array) -> Grid:
    order = slice_order(positions, axes[:, 2])
    return fit_grid(
        positions[order],
        axes,
        (0.8, 1.1),
        tolerances=DEFAULT_TOLERANCES,
    )


@given(seeds, counts, spacings)
@settings(max_examples=30)
def test_a_perfect_stack_is_found_exactly(seed: int, count: int, spacing: float) -> None:
    axes, origin = rotation(seed), np.random.default_rng(seed + 1).normal(size=3) * 300
    grid = fit(stack(axes, spacing * axes[:, 2], count, origin), axes)
    assert not grid.is_sheared
    assert grid.max_residual_mm < 1e-9
    np.testing.assert_allclose(grid.spacing_mm, [0.8, 1.1, spacing], rtol=1e-9)
    np.testing.assert_allclose(grid.affine_lps_mm[:3, 3], origin, atol=1e-9)
    np.testing.assert_allclose(grid.affine_lps_mm[:3, 2], spacing * axes[:, 2], atol=1e-9)


@given(seeds, counts, spacings, st.floats(1.0, 40.0), st.floats(0.0, 360.0))
@settings(max_examples=30)
def test_a_sheared_stack_keeps_its_step(
    seed: int, count: int, spacing: float, tilt_deg: float, toward_deg: float
) -> None:
    """Whatever direction it slides in: along i, along j, or between them."""
    axes = rotation(seed)
    toward = np.radians(toward_deg)
    slide = np.tan(np.radians(tilt_deg)) * spacing
    in_plane = np.cos(toward) * axes[:, 0] + np.sin(toward) * axes[:, 1]
    step = spacing * axes[:, 2] + slide * in_plane
    positions = stack(axes, step, count, np.zeros(3))
    grid = fit(positions, axes)
    slides_mm = slide * (count - 1)
    if slides_mm > 2 * DEFAULT_TOLERANCES.position_limit_mm(spacing):
        assert grid.is_sheared
        np.testing.assert_allclose(grid.step_mm, step, atol=1e-9)
        assert grid.shear_deg == pytest.approx(tilt_deg, abs=1e-6)
        assert grid.max_residual_mm < 1e-9


@given(seeds, counts, spacings)
@settings(max_examples=30)
def test_residuals_are_the_distances_to_the_grid(seed: int, count: int, spacing: float) -> None:
    axes, rng = rotation(seed), np.random.default_rng(seed)
    limit_mm = DEFAULT_TOLERANCES.position_limit_mm(spacing)
    jitter = rng.uniform(-1, 1, size=(count, 3)) * 0.2 * limit_mm
    positions = stack(axes, spacing * axes[:, 2], count, rng.normal(size=3)) + jitter
    grid = fit(positions, axes)
    places = grid.origin_mm + np.arange(count)[:, None] * grid.step_mm
    np.testing.assert_allclose(grid.residuals_mm, positions - places, atol=1e-12)
    assert grid.max_residual_mm <= limit_mm
    assert grid.rms_residual_mm <= grid.max_residual_mm + 1e-12


@given(seeds, st.integers(5, 40), spacings, st.integers(0, 100))
@settings(max_examples=30)
def test_one_slice_beyond_the_limit_is_refused(
    seed: int, count: int, spacing: float, where: int
) -> None:
    axes = rotation(seed)
    limit_mm = DEFAULT_TOLERANCES.position_limit_mm(spacing)
    positions = stack(axes, spacing * axes[:, 2], count, np.zeros(3))
    # The fit gives way by at most the leverage of one end of the stack.
    leverage = 1 / count + ((count - 1) / 2) ** 2 / (count * (count**2 - 1) / 12)
    positions[where % count] += axes[:, 0] * limit_mm * 1.5 / (1 - leverage)
    with pytest.raises(Refusal) as caught:
        fit(positions, axes)
    assert caught.value.code == "IMG-1207"
    assert caught.value.diagnostic.fields["residual_mm"] > limit_mm


@given(seeds, counts)
@settings(max_examples=40)
def test_the_order_of_files_does_not_matter(seed: int, count: int) -> None:
    axes, rng = rotation(seed), np.random.default_rng(seed)
    positions = stack(axes, 2.0 * axes[:, 2], count, np.zeros(3))
    positions += rng.uniform(-0.01, 0.01, positions.shape)
    grid, other = fit(positions, axes), fit(rng.permutation(positions), axes)
    np.testing.assert_array_equal(grid.affine_lps_mm, other.affine_lps_mm)
    np.testing.assert_array_equal(grid.residuals_mm, other.residuals_mm)


@given(seeds, counts)
@settings(max_examples=40)
def test_the_affine_moves_with_the_patient(seed: int, count: int) -> None:
    axes, rng = rotation(seed), np.random.default_rng(seed)
    step = 2.0 * axes[:, 2] + 0.7 * axes[:, 1]
    positions = stack(axes, step, count, rng.normal(size=3) * 100)
    positions += rng.uniform(-0.01, 0.01, positions.shape)
    turn, shift = rotation(seed + 1), rng.normal(size=3) * 50
    move = np.eye(4)
    move[:3, :3], move[:3, 3] = turn, shift
    grid, moved = fit(positions, axes), fit(positions @ turn.T + shift, turn @ axes)
    np.testing.assert_allclose(moved.affine_lps_mm, move @ grid.affine_lps_mm, atol=1e-8)
    np.testing.assert_allclose(moved.residuals_mm, grid.residuals_mm @ turn.T, atol=1e-8)


@pytest.mark.parametrize(
    ("gone", "missing"), [([1], 1), ([4], 1), ([3, 4], 2), ([2, 7], 2), ([8], 1)]
)
def test_a_gap_is_named_with_its_size(gone: list[int], missing: int) -> None:
    positions = np.delete(stack(np.eye(3), np.array([0, 0, 2.0]), 10, np.zeros(3)), gone, axis=0)
    with pytest.raises(Refusal) as caught:
        fit(positions, np.eye(3))
    assert caught.value.code == "IMG-1206"
    assert caught.value.diagnostic.fields["missing_slices"] == missing


def test_the_tolerance_table_grows_with_the_spacing_up_to_its_bound() -> None:
    limits = [DEFAULT_TOLERANCES.position_limit_mm(mm) for mm in np.linspace(0.01, 10, 200)]
    assert limits == sorted(limits)
    assert limits[-1] == DEFAULT_TOLERANCES.position_mm
    assert all(
        DEFAULT_TOLERANCES.position_limit_mm(mm) < mm / 2 for mm in np.linspace(0.01, 10, 50)
    )
    assert set(DEFAULT_TOLERANCES.to_dict()) == set(Tolerances.__dataclass_fields__)


def test_a_wider_tolerance_accepts_what_a_narrower_one_does() -> None:
    positions = stack(np.eye(3), np.array([0, 0, 2.0]), 9, np.zeros(3))
    positions[4, 0] += 0.3
    accepted = []
    for limit_mm in (0.05, 0.1, 0.2, 0.3, 0.5, 0.9):
        tolerances = Tolerances(position_mm=limit_mm, position_fraction=0.5)
        try:
            fit_grid(positions, np.eye(3), (1.0, 1.0), tolerances=tolerances)
        except Refusal:
            accepted.append(False)
        else:
            accepted.append(True)
    assert accepted == sorted(accepted)
    assert accepted[0] is False
    assert accepted[-1] is True


def test_tags_that_disagree_are_said_and_change_nothing() -> None:
    grid = fit(stack(np.eye(3), np.array([0, 0, 2.0]), 9, np.zeros(3)), np.eye(3))
    found = compare_with_tags(
        grid,
        spacing_between_slices_mm=3.0,
        gantry_tilt_deg=20.0,
        tolerances=DEFAULT_TOLERANCES,
    )
    assert [diagnostic.code for diagnostic in found] == ["IMG-1213", "IMG-1212"]
