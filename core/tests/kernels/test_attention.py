"""Tiled attention against its reference in operators, and over threads."""

from __future__ import annotations

import numpy as np
import pytest

import numbat as nb
from numbat.kernels.pool import get_num_threads, set_num_threads
from numbat.ops import attention

SHAPES = [(1, 1, 1, 1, 1), (2, 3, 5, 9, 4), (1, 2, 130, 130, 8), (1, 4, 257, 100, 16)]


def drawn(shape: tuple[int, ...], seed: int) -> nb.Tensor:
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return nb.tensor(values, requires_grad=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "blind"])
def test_tiles_are_the_whole(shape: tuple[int, ...], kind: str) -> None:
    batch, heads, rows, keys, width = shape
    given = [
        drawn((batch, heads, rows, width), 1), drawn((batch, heads, keys, width), 2),
        drawn((batch, heads, keys, width + 1), 3),
    ]  # fmt: skip
    mask = None
    if kind in ("mask", "blind"):
        mask = nb.tensor(
            np.random.default_rng(4).normal(size=(heads, rows, keys)).astype(np.float32)
        )
        if kind == "blind":
            mask.array[:, 0] = -np.inf
    causal, grad = kind == "causal", drawn((batch, heads, rows, width + 1), 5).detach()
    found = nb.scaled_dot_product_attention(*given, mask, is_causal=causal)
    whole = attention.composed(*given, mask, 0.0, causal, width**-0.5)
    np.testing.assert_allclose(found.array, whole.array, 2e-5, 2e-6)
    for one, other in zip(
        nb.autograd.grad(found, given, grad), nb.autograd.grad(whole, given, grad), strict=True
    ):
        np.testing.assert_allclose(one.array, other.array, 1e-4, 2e-5)


def test_nan_shows() -> None:
    query, key, value = (drawn((1, 1, 4, 3), seed).detach() for seed in (1, 2, 3))
    key.array[0, 0, 3, 0] = np.nan
    found = nb.scaled_dot_product_attention(query, key, value, is_causal=True).array[0, 0]
    assert np.isnan(found).any(axis=1).tolist() == [False, False, False, True]


def test_threads_change_no_bit() -> None:
    before, found = get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            given = [
                drawn((2, 4, 200, 16), 1),
                drawn((2, 2, 200, 16), 2),
                drawn((2, 2, 200, 16), 3),
            ]
            out = nb.scaled_dot_product_attention(*given, is_causal=True, enable_gqa=True)
            grads = nb.autograd.grad(out.sum(), given)
            found.append([one.array.tobytes() for one in (out, *grads)])
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]
