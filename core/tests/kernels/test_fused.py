"""Fused chains equal their parts, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat.ops import fused


def drawn(shape: tuple[int, ...], seed: int, kind: Any = np.float32) -> nb.Tensor:
    return nb.tensor(
        np.random.default_rng(seed).normal(size=shape).astype(kind), requires_grad=True
    )


def same(found: nb.Tensor, parts: nb.Tensor, inputs: list[nb.Tensor], close: float = 2e-5) -> None:
    assert found.dtype is parts.dtype
    np.testing.assert_allclose(found.array, parts.array, close, close)
    weight = nb.tensor(np.random.default_rng(7).normal(size=found.shape), dtype=found.dtype)
    mine = nb.autograd.grad(found, inputs, weight)
    for one, other in zip(mine, nb.autograd.grad(parts, inputs, weight), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.array, other.array, close * 10, close * 10)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5, 33), (70, 64)])
def test_bias_gelu(shape: tuple[int, ...], approximate: str) -> None:
    x, bias = drawn(shape, 1), drawn(shape[-1:], 2)
    same(
        nb.bias_gelu(x, bias, approximate=approximate),
        nb.gelu(x + bias, approximate=approximate),
        [x, bias],
    )


@pytest.mark.parametrize("shape", [(5, 3), (4, 33, 6, 5), (2, 3, 3, 4, 5)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_silu(shape: tuple[int, ...], last: bool, training: bool) -> None:
    x = drawn(shape, 1)
    if last:
        memory = np.ascontiguousarray(np.moveaxis(x.array, 1, -1))
        x = nb.from_numpy(np.moveaxis(memory, -1, 1))
        x.requires_grad = True
    weight, bias = drawn(shape[1:2], 2), drawn(shape[1:2], 3)
    running = [[nb.zeros(shape[1]), nb.ones(shape[1])] for _ in range(2)]
    found = nb.batch_norm_silu(x, *running[0], weight, bias, training)
    parts = nb.silu(nb.batch_norm(x, *running[1], weight, bias, training))
    assert found.stride() == x.stride()
    same(found, parts, [x, weight, bias])
    for one, other in zip(*running, strict=True):
        assert one.array.tobytes() == other.array.tobytes()


@pytest.mark.parametrize("training", [False, True])
def test_dropout_add(training: bool) -> None:
    x, residual = drawn((7, 9), 1), drawn((7, 9), 2)
    nb.manual_seed(5)
    found = nb.dropout_add(x, residual, 0.3, training)
    nb.manual_seed(5)
    same(found, nb.dropout(x, 0.3, training) + residual, [x, residual])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [False, True])
def test_linear_cross_entropy(kind: Any, reduction: str, smoothing: float, biased: bool) -> None:
    rows = fused.ROWS + 13
    x, weight = drawn((rows, 6), 1, kind), drawn((11, 6), 2, kind)
    bias = drawn((11,), 3, kind) if biased else None
    target = np.random.default_rng(4).integers(0, 11, rows)
    target[::5] = -100
    given = [x, weight] if bias is None else [x, weight, bias]
    options = {"reduction": reduction, "label_smoothing": smoothing}
    found = nb.linear_cross_entropy(x, weight, nb.tensor(target), linear_bias=bias, **options)
    parts = nb.cross_entropy(nb.linear(x, weight, bias), nb.tensor(target), **options)
    same(found, parts, given, 1e-4 if kind is np.float32 else 1e-10)


def test_linear_cross_entropy_scales_its_gradient() -> None:
    x, weight, target = drawn((4, 6), 1), drawn((5, 6), 2), nb.tensor([0, 1, 2, 3])
    one = nb.autograd.grad(nb.linear_cross_entropy(x, weight, target), [x, weight])
    quarter = nb.autograd.grad(nb.linear_cross_entropy(x, weight, target) / 4, [x, weight])
    for whole, part in zip(one, quarter, strict=True):
        np.testing.assert_allclose(part.array, whole.array / 4, rtol=1e-6)
