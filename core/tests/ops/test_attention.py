"""Attention and embeddings: plain references, properties, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat_registries import Refusal


def drawn(*shape: int, seed: int = 0, kind: Any = np.float32) -> nb.Tensor:
    return nb.tensor(np.random.default_rng(seed).normal(size=shape).astype(kind))


def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: Any = True) -> np.ndarray:
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_plain_formula(kind: Any, causal: bool) -> None:
    q, k, v = (drawn(2, 3, 9, 4, seed=seed, kind=kind) for seed in range(3))
    found = nb.scaled_dot_product_attention(q, k, v, is_causal=causal)
    seen = np.tril(np.ones((9, 9), bool)) if causal else True
    np.testing.assert_allclose(found.array, plain(q.array, k.array, v.array, seen), 1e-5, 1e-6)


def test_the_past_does_not_see_the_future() -> None:
    q, k, v = (drawn(1, 1, 300, 8, seed=seed) for seed in range(3))
    before = nb.scaled_dot_product_attention(q, k, v, is_causal=True).array.copy()
    k.array[0, 0, 200:], v.array[0, 0, 200:] = 9, 9
    after = nb.scaled_dot_product_attention(q, k, v, is_causal=True).array
    assert before[:, :, :200].tobytes() == after[:, :, :200].tobytes()
    assert (before[:, :, 200:] != after[:, :, 200:]).any()


def test_a_row_that_sees_nothing_gives_zeros() -> None:
    q, k, v = (drawn(1, 1, 2, 4, seed=seed) for seed in range(3))
    for dtype in (nb.float32, nb.float64):
        given = [one.detach().to(dtype).requires_grad_() for one in (q, k, v)]
        mask = nb.tensor([[True, True], [False, False]])
        found = nb.scaled_dot_product_attention(*given, mask)
        assert (found.array[0, 0, 1] == 0).all()
        found.sum().backward()
        assert all(one.grad is not None and np.isfinite(one.grad.array).all() for one in given)


def test_embedding() -> None:
    table = drawn(5, 3).requires_grad_()
    index = nb.tensor([[0, 4], [4, 2]])
    rows = nb.embedding(index, table, padding_idx=2)
    assert (rows.array == table.array[index.array]).all()
    rows.sum().backward()
    assert table.grad is not None
    assert table.grad.array[:, 0].tolist() == [1, 0, 0, 0, 2]
    scaled = nb.embedding(index, table, scale_grad_by_freq=True)
    (grad,) = nb.autograd.grad(scaled.sum(), table)
    assert grad is not None
    assert grad.array[:, 0].tolist() == [1, 0, 1, 0, 1]


def test_bags() -> None:
    table = nb.tensor([[1.0], [2.0], [4.0]])
    index, starts = nb.tensor([0, 1, 2, 1]), nb.tensor([0, 3, 3])
    modes = {
        "sum": [[7.0], [0.0], [2.0]],
        "mean": [[7 / 3], [0.0], [2.0]],
        "max": [[4.0], [0.0], [2.0]],
    }
    for mode, expected in modes.items():
        found = nb.embedding_bag(index, table, starts, mode=mode)
        np.testing.assert_allclose(found.array, expected, rtol=1e-6)
    skipped = nb.embedding_bag(index, table, starts, mode="mean", padding_idx=2)
    np.testing.assert_allclose(skipped.array, [[1.5], [0.0], [2.0]])


def test_one_hot() -> None:
    assert nb.one_hot(nb.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert nb.one_hot(nb.tensor([1]), 4).tolist() == [[0, 1, 0, 0]]


ONES = nb.ones(1, 2, 3)
REFUSED = [
    ("CORE-0435", lambda: nb.scaled_dot_product_attention(ONES, nb.ones(1, 2, 4), ONES)),
    ("CORE-0435", lambda: nb.scaled_dot_product_attention(ONES, ONES, ONES.to(nb.float64))),
    (
        "CORE-0435",
        lambda: nb.scaled_dot_product_attention(ONES, ONES, ONES, nb.ones(2, 2), 0.0, True),
    ),
    ("CORE-0435", lambda: nb.scaled_dot_product_attention(nb.ones(3), ONES, ONES)),
    ("CORE-0437", lambda: nb.embedding(nb.ones(2), nb.ones(3, 4))),
    ("CORE-0240", lambda: nb.embedding(nb.tensor([3]), nb.ones(3, 4))),
    ("CORE-0240", lambda: nb.embedding(nb.tensor([-1]), nb.ones(3, 4))),
    ("CORE-0430", lambda: nb.embedding_bag(nb.tensor([[1]]), nb.ones(3, 4), mode="min")),
    ("CORE-0437", lambda: nb.embedding_bag(nb.tensor([1]), nb.ones(3, 4))),
    ("CORE-0437", lambda: nb.embedding_bag(nb.tensor([1]), nb.ones(3, 4), nb.tensor([1]))),
    ("CORE-0437", lambda: nb.one_hot(nb.ones(2))),
    ("CORE-0240", lambda: nb.one_hot(nb.tensor([3]), 2)),
]


@pytest.mark.parametrize(("code", "call"), REFUSED)
def test_refusals(code: str, call: Any) -> None:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.code == code
