"""Convolutions: known answers, properties, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat_registries import Refusal


def code_of(call):
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.code


def test_a_known_answer():
    x = nb.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    w = nb.tensor([[[1.0, 0.0, -1.0]]])
    assert nb.conv1d(x, w, padding=1).tolist() == [[[-2.0, -2.0, -2.0, 3.0]]]
    assert nb.conv_transpose1d(x, w, stride=2).tolist() == [
        [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -4.0]]
    ]


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_same_padding_keeps_extents(axes, cells, gap, groups):
    space = (7, 6, 5)[:axes]
    x = nb.ones(2, 2 * groups, *space)
    w = nb.ones(3 * groups, 2, *(cells,) * axes)
    out = getattr(nb, f"conv{axes}d")(x, w, padding="same", dilation=gap, groups=groups)
    assert out.shape == (2, 3 * groups, *space)


def test_transposed_is_the_adjoint():
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((nb.float32, 1e-4), (nb.float64, 1e-10)):
        x = nb.tensor(rng.normal(size=(2, 4, 9, 8)), dtype=dtype)
        w = nb.tensor(rng.normal(size=(6, 2, 3, 2)), dtype=dtype)
        keywords = {"stride": 2, "padding": 1, "groups": 2}
        out = nb.conv2d(x, w, **keywords)
        y = nb.tensor(rng.normal(size=out.shape), dtype=dtype)
        back = nb.conv_transpose2d(y, w, output_padding=(0, 0), **keywords)
        missing = [(0, a - b) for a, b in zip((9, 8), back.shape[2:], strict=True)]
        back = np.pad(back.array, [(0, 0), (0, 0), *missing])
        assert abs(float((out * y).sum()) - float((x.array * back).sum())) < tolerance * 100


def test_results_keep_channels_last():
    x, w = nb.ones(2, 16, 6, 6), nb.ones(8, 16, 3, 3)
    first = nb.conv2d(x, w, padding=1)
    assert np.moveaxis(first.array, 1, -1).flags.c_contiguous
    second = nb.conv2d(first, nb.ones(4, 8, 3, 3))
    assert second.shape == (2, 4, 4, 4)
    assert float(second[0, 0, 1, 1]) == 8 * 9 * 144


def test_gradients_of_half_types_are_rounded_once():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(1, 40, 6, 6)).astype(np.float16)
    w = rng.normal(size=(8, 40, 3, 3)).astype(np.float16)
    exact = nb.conv2d(nb.tensor(wide.astype(np.float64)), nb.tensor(w.astype(np.float64))).array
    found = nb.conv2d(nb.tensor(wide), nb.tensor(w)).array
    assert found.dtype == np.float16
    assert np.abs(found - exact).max() <= np.abs(exact).max() * 2**-10


def test_empty_batch():
    x, w = nb.zeros(0, 3, 5, 5).requires_grad_(), nb.ones(2, 3, 3, 3).requires_grad_()
    out = nb.conv2d(x, w)
    assert out.shape == (0, 2, 3, 3)
    out.sum().backward()
    assert x.grad.shape == (0, 3, 5, 5)
    assert float(w.grad.abs().sum()) == 0


def test_refusals():
    x, w = nb.zeros(1, 4, 8), nb.zeros(4, 4, 3)
    assert code_of(lambda: nb.conv2d(x, w)) == "CORE-0401"
    assert code_of(lambda: nb.conv1d(nb.zeros(1, 3, 8), w)) == "CORE-0402"
    assert code_of(lambda: nb.conv1d(x, w, groups=3)) == "CORE-0403"
    assert code_of(lambda: nb.conv1d(nb.zeros(1, 4, 2), w)) == "CORE-0404"
    assert code_of(lambda: nb.conv1d(x, w, stride=0)) == "CORE-0405"
    assert code_of(lambda: nb.conv1d(x, w, padding=-1)) == "CORE-0405"
    assert code_of(lambda: nb.conv1d(x, w, padding="same", stride=2)) == "CORE-0405"
    assert code_of(lambda: nb.conv_transpose1d(x, w, output_padding=1)) == "CORE-0405"
    assert code_of(lambda: nb.conv1d(x, w.double())) == "CORE-0111"
    assert code_of(lambda: nb.conv1d(x, w, nb.zeros(3))) == "CORE-0202"
