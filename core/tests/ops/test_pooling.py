"""Pools: known answers, properties, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import numbat as nb
from numbat_registries import Refusal


def code_of(call):
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("dtype", [nb.float32, nb.float64, nb.int64, nb.bfloat16])
def test_known_answers(dtype):
    x = nb.tensor([[[1, 5, 2, 4, 3]]], dtype=dtype)
    out, places = nb.max_pool1d(x, 2, return_indices=True)
    assert (out.tolist(), places.tolist()) == ([[[5, 4]]], [[[1, 3]]])
    assert nb.max_pool1d(x, 2, ceil_mode=True).tolist() == [[[5, 4, 3]]]
    mean = 11 / 3 if dtype.is_floating_point else 3
    assert nb.avg_pool1d(x, 3, 1).tolist()[0][0][1] == pytest.approx(mean, rel=1e-2)
    assert places.dtype is nb.int64


def test_adaptive_pools_to_one_are_the_whole():
    x = nb.tensor(np.random.default_rng(0).normal(size=(2, 3, 5, 7)))
    assert np.allclose(nb.adaptive_avg_pool2d(x, 1).array[..., 0, 0], x.array.mean(axis=(2, 3)))
    assert np.array_equal(nb.adaptive_max_pool2d(x, 1).array[..., 0, 0], x.array.max(axis=(2, 3)))
    assert nb.adaptive_avg_pool2d(x, (None, 2)).shape == (2, 3, 5, 2)


def test_unpooling_gives_back_the_maxima():
    x = nb.tensor(np.random.default_rng(0).normal(size=(2, 3, 6, 8)), dtype=nb.float32)
    out, places = nb.max_pool2d(x, 2, return_indices=True)
    back = nb.max_unpool2d(out, places, 2)
    kept = back.array != 0
    assert kept.sum() == out.numel()
    assert np.array_equal(back.array[kept], x.array[kept])


def test_gradient_of_overlapping_windows_adds_up():
    for dtype in (nb.float32, nb.float64):
        x = nb.tensor([[[0.0, 3.0, 1.0, 2.0]]], dtype=dtype, requires_grad=True)
        nb.max_pool1d(x, 3, 1).sum().backward()
        assert x.grad.tolist() == [[[0.0, 2.0, 0.0, 0.0]]]


def test_infinities_of_the_padding_do_not_leak():
    x = np.ones((1, 1, 4), np.float32)
    x[..., 0] = np.inf
    assert nb.avg_pool1d(nb.tensor(x), 2, 2, 1).tolist() == [[[np.inf, 1.0, 0.5]]]


def test_refusals():
    x = nb.ones(1, 2, 6)
    assert code_of(lambda: nb.max_pool2d(nb.ones(2, 2), 2)) == "CORE-0401"
    assert code_of(lambda: nb.max_pool1d(x, 7)) == "CORE-0404"
    assert code_of(lambda: nb.max_pool1d(x, 2, padding=2)) == "CORE-0405"
    assert code_of(lambda: nb.avg_pool2d(nb.ones(1, 4, 4), 2, divisor_override=0)) == "CORE-0405"
    assert code_of(lambda: nb.adaptive_avg_pool2d(nb.ones(1, 4, 4), (1, 2, 3))) == "CORE-0405"
    places = nb.tensor([[[0, 9], [0, 1]]])
    assert code_of(lambda: nb.max_unpool1d(nb.ones(1, 2, 2), places, 2)) == "CORE-0406"
    assert (
        code_of(lambda: nb.max_unpool1d(nb.ones(1, 2, 2), places, 2, output_size=[9]))
        == "CORE-0405"
    )
    assert code_of(lambda: nb.max_unpool1d(nb.ones(1, 2, 3), places, 2)) == "CORE-0202"
