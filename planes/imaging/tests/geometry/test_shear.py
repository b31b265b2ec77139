"""A tilted stack made square: judged by a ramp whose value is known at every point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.shear import square_stack
from numbat_imaging.values.rescale import ValueScale
from numbat_registries import Refusal

SIZE = (14, 11, 6)


def tilted_ramp(slide_mm: tuple[float, float]) -> tuple[np.ndarray, Grid]:
    grid = Grid(
        axes=np.eye(3),
        origin_mm=np.array([10.0, -20.0, 30.0]),
        step_mm=np.array([*slide_mm, 2.5]),
        spacing_mm=np.array([0.9, 1.2, 2.5]),
        residuals_mm=np.zeros((SIZE[2], 3)),
        is_sheared=True,
    )
    return ramp(grid, SIZE), grid


def ramp(grid: Grid, size: tuple[int, ...]) -> np.ndarray:
    index = np.stack(np.meshgrid(*map(np.arange, size), indexing="ij"), axis=-1)
    points = index @ grid.affine_lps_mm[:3, :3].T + grid.affine_lps_mm[:3, 3]
    return np.asarray(points @ np.array([3.0, -2.0, 5.0]))


SCALE = ValueScale(2.0, -7.0, "HU", "a test")


@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
@settings(max_examples=40)
def test_the_ramp_is_where_it_was(along_i_mm: float, along_j_mm: float) -> None:
    """Linear interpolation of a linear function is exact: only places can be wrong."""
    voxels, grid = tilted_ramp((along_i_mm, along_j_mm))
    out, square, scale = square_stack(voxels, grid, SCALE)
    truth = ramp(square, out.shape) * SCALE.slope + SCALE.intercept
    fill = voxels.min() * SCALE.slope + SCALE.intercept
    shift = np.arange(SIZE[2])[:, None] * np.array([along_i_mm, along_j_mm]) / [0.9, 1.2]
    low = np.floor(shift.min(axis=0))
    inside = np.zeros(out.shape, bool)
    for k in range(SIZE[2]):
        start = shift[k] - low
        i, j = np.arange(out.shape[0]), np.arange(out.shape[1])
        ok_i = (i >= start[0] + 1e-9) & (i <= start[0] + SIZE[0] - 1 - 1e-9)
        ok_j = (j >= start[1] + 1e-9) & (j <= start[1] + SIZE[1] - 1 - 1e-9)
        inside[:, :, k] = ok_i[:, None] & ok_j[None, :]
    assert inside.sum() >= (SIZE[0] - 2) * (SIZE[1] - 2) * SIZE[2]
    np.testing.assert_allclose(out[inside], truth[inside], atol=2e-3)
    assert out.min() >= fill - 1e-3
    np.testing.assert_allclose(square.step_mm, [0, 0, 2.5])
    assert not square.is_sheared
    assert (scale.slope, scale.intercept, scale.applied) == (1.0, 0.0, True)
    assert scale.unit == "HU"


def test_every_volume_of_four_dimensions_is_moved_alike() -> None:
    voxels, grid = tilted_ramp((0.0, 0.77))
    both = np.stack([voxels, voxels + 100.0], axis=-1)
    out, _, _ = square_stack(both, grid, SCALE)
    alone, _, _ = square_stack(voxels + 100.0, grid, SCALE)
    np.testing.assert_allclose(out[..., 1].max(), alone.max(), rtol=1e-6)


def test_colours_are_refused() -> None:
    _, grid = tilted_ramp((0.0, 0.5))
    colours = np.zeros(SIZE, [("R", "u1"), ("G", "u1"), ("B", "u1")])
    with pytest.raises(Refusal) as caught:
        square_stack(colours, grid, SCALE)
    assert caught.value.code == "IMG-1215"
