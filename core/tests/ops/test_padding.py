"""Padding against numpy's own, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat_registries import Refusal

NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}


@given(st.sampled_from(list(NUMPY)), st.integers(1, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_pads_as_numpy(mode, axes, data):
    x = np.random.default_rng(0).normal(size=(2, 3, *(4, 5, 6)[:axes])).astype(np.float32)
    x[0, 0, 0] = np.nan
    widths = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in range(axes)]
    flat = [width for pair in reversed(widths) for width in pair]
    found = nb.pad(nb.tensor(x), flat, mode)
    wanted = np.pad(x, [(0, 0), (0, 0), *widths], NUMPY[mode])
    np.testing.assert_array_equal(found.array, wanted)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_gradients_count_how_often_a_cell_is_shown(mode):
    x = nb.ones(1, 1, 4, dtype=nb.float64).requires_grad_()
    nb.pad(x, (2, 1), mode).sum().backward()
    wanted = {
        "constant": [1, 1, 1, 1], "reflect": [1, 2, 3, 1], "replicate": [3, 1, 1, 2],
        "circular": [2, 1, 2, 2],
    }[mode]  # fmt: skip
    assert x.grad.tolist() == [[wanted]]


def test_negative_widths_cut():
    x = nb.arange(12).reshape(3, 4)
    assert nb.pad(x, (-1, 1, 0, -2), value=7).tolist() == [[1, 2, 3, 7]]


@pytest.mark.parametrize(
    ("widths", "mode"),
    [
        ((1,), "constant"),
        ((1, 1), "mirror"),
        ((3, 0), "reflect"),
        ((-2, -2), "constant"),
        ((4, 0), "circular"),
    ],
)
def test_refusals(widths, mode):
    with pytest.raises(Refusal) as caught:
        nb.pad(nb.ones(1, 1, 3), widths, mode)
    assert caught.value.code == "CORE-0410"
