"""Interpolation, grids, and channels as cells: known answers, properties, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import numbat as nb
from numbat_registries import Refusal


def code_of(call):
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.code


def test_known_answers():
    x = nb.tensor([[[0.0, 2.0]]])
    assert nb.interpolate(x, 4).tolist() == [[[0.0, 0.0, 2.0, 2.0]]]
    assert nb.interpolate(x, 4, mode="linear").tolist() == [[[0.0, 0.5, 1.5, 2.0]]]
    found = nb.interpolate(x, 5, mode="linear", align_corners=True)
    assert found.tolist() == [[[0.0, 0.5, 1.0, 1.5, 2.0]]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_constants_and_gradients_are_kept(mode):
    x = nb.full((1, 2, 5, 4), 3.0, dtype=nb.float64).requires_grad_()
    out = nb.interpolate(x, (9, 3), mode=mode)
    assert np.allclose(out.array, 3.0)
    out.sum().backward()
    assert float(x.grad.sum()) == pytest.approx(out.numel())


def test_the_identity_map_samples_the_input_itself():
    rng = np.random.default_rng(0)
    for axes in (2, 3):
        x = nb.tensor(rng.normal(size=(2, 3, *(4, 5, 6)[:axes])))
        maps = nb.tensor(np.broadcast_to(np.eye(axes, axes + 1), (2, axes, axes + 1)))
        for aligned in (False, True):
            grid = nb.affine_grid(maps, x.shape, aligned)
            found = nb.grid_sample(x, grid, align_corners=aligned)
            assert np.allclose(found.array, x.array, atol=1e-12)


def test_shuffles_undo_each_other():
    x = nb.arange(2 * 8 * 3 * 5).reshape(2, 8, 3, 5)
    assert np.array_equal(nb.pixel_unshuffle(nb.pixel_shuffle(x, 2), 2).array, x.array)
    assert np.array_equal(nb.channel_shuffle(nb.channel_shuffle(x, 2), 4).array, x.array)


def test_fold_counts_how_often_a_cell_was_unfolded():
    x = nb.ones(1, 1, 4, 4)
    counts = nb.fold(nb.unfold_windows(x, 3), (4, 4), 3).array[0, 0]
    assert counts.tolist() == [[1, 2, 2, 1], [2, 4, 4, 2], [2, 4, 4, 2], [1, 2, 2, 1]]


def test_refusals():
    x = nb.ones(1, 1, 4, 4)
    assert code_of(lambda: nb.interpolate(x, 8, mode="linear")) == "CORE-0413"
    assert code_of(lambda: nb.interpolate(x, 8, mode="cubic")) == "CORE-0413"
    assert code_of(lambda: nb.interpolate(x, 8, 2.0)) == "CORE-0413"
    assert code_of(lambda: nb.interpolate(x, 8, align_corners=True)) == "CORE-0413"
    assert code_of(lambda: nb.grid_sample(x, nb.zeros(2, 1, 1, 2))) == "CORE-0414"
    assert code_of(lambda: nb.grid_sample(x, nb.zeros(1, 1, 1, 2), "cubic")) == "CORE-0414"
    assert code_of(lambda: nb.affine_grid(nb.zeros(1, 2, 2), (1, 1, 2, 2))) == "CORE-0414"
    assert code_of(lambda: nb.pixel_shuffle(x, 2)) == "CORE-0412"
    assert code_of(lambda: nb.fold(nb.ones(1, 4, 3), (3, 3), 2)) == "CORE-0411"
