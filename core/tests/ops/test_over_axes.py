"""Reductions, running results and orders against numpy and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import numbat as nb
from numbat.autograd.gradcheck import gradcheck, gradgradcheck
from numbat_registries import Refusal

ARRAYS = arrays(
    np.float64, array_shapes(min_dims=1, max_dims=3, max_side=4), elements=st.integers(-4, 4)
)


@given(ARRAYS, st.data())
def test_agrees_with_numpy(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    t = nb.tensor(x)
    pairs = [
        (t.sum(axis), x.sum(axis)), (t.mean(axis), x.mean(axis)), (t.prod(axis), x.prod(axis)),
        (t.amax(axis), x.max(axis)), (t.argmax(axis), x.argmax(axis)),
        (t.var(axis, correction=0), x.var(axis)),
        (t.cumsum(axis), x.cumsum(axis)), (t.cumprod(axis), x.cumprod(axis)),
        (t.sort(axis).values, np.sort(x, axis)), (t.count_nonzero(axis), np.count_nonzero(x, axis)),
        (t.quantile(0.3, axis), np.quantile(x, 0.3, axis)),
        (t.diff(dim=axis), np.diff(x, axis=axis)),
        (t.norm(3, axis), (np.abs(x) ** 3).sum(axis) ** (1 / 3)), (t.all(axis), x.all(axis)),
        (t.cummax(axis).values, np.maximum.accumulate(x, axis)), (t.unique(), np.unique(x)),
    ]  # fmt: skip
    for place, (mine, theirs) in enumerate(pairs):
        np.testing.assert_allclose(mine.array, theirs, rtol=1e-12, atol=1e-12, err_msg=str(place))


@given(ARRAYS)
def test_indices_lead_to_values(x: np.ndarray) -> None:
    t = nb.tensor(x)
    for chosen in (t.max(0, True), t.median(0, True), t.mode(0, True), t.sort(0), t.cummin(0)):
        np.testing.assert_array_equal(
            np.take_along_axis(x, chosen.indices.array, 0), chosen.values.array
        )


def test_products_with_zeros_have_second_derivatives() -> None:
    for values in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]):
        x = nb.tensor(values, dtype=nb.float64, requires_grad=True)
        assert gradcheck(lambda one: one.prod(), [x])
        assert gradgradcheck(lambda one: one.prod(), [x])
        assert gradcheck(lambda one: one.cumprod(0), [x])
        assert gradgradcheck(lambda one: one.cumprod(0), [x])


def test_ties_share_the_gradient() -> None:
    for call, expected in (
        (lambda x: x.max(), [0.5, 0.5, 0.0]),
        (lambda x: x.amax(0), [0.5, 0.5, 0.0]),
        (lambda x: x.max(0).values, [1.0, 0.0, 0.0]),
        (lambda x: nb.maximum(x, nb.tensor([3.0, 1.0, 4.0])).sum(), [0.5, 1.0, 0.0]),
        (lambda x: x.clamp(min=3.0).sum(), [1.0, 1.0, 0.0]),
        (lambda x: (x - x).abs().sum() + (x * 0).norm(), [0.0, 0.0, 0.0]),
    ):
        x = nb.tensor([3.0, 3.0, 1.0], requires_grad=True)
        call(x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == expected


def test_halves_add_up_in_float32() -> None:
    x = nb.ones(5000, dtype=nb.bfloat16)
    assert x.sum().item() == 4992.0  # 5000, rounded once
    assert nb.full((70000,), 1.0, dtype=nb.float16).mean().item() == 1.0


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("CORE-0220", lambda: nb.tensor([True]) - nb.tensor([True])),
        ("CORE-0220", lambda: nb.bitwise_and(nb.ones(2), 1)),
        ("CORE-0221", lambda: nb.ones(0).max()),
        ("CORE-0221", lambda: nb.ones(2, 0).median(1)),
        ("CORE-0222", lambda: nb.ones(2).quantile(0.5, interpolation="cubic")),
        ("CORE-0222", lambda: nb.searchsorted(nb.ones(2), nb.ones(2), side="middle")),
        ("CORE-0223", lambda: nb.ones(3).topk(4)),
        ("CORE-0223", lambda: nb.ones(3).quantile(1.5)),
        ("CORE-0224", lambda: nb.tensor([2]) ** -1),
        ("CORE-0225", lambda: nb.tensor([2]) % 0),
        ("CORE-0226", lambda: nb.ones(3).clamp()),
        ("CORE-0227", lambda: nb.bucketize(nb.ones(2), nb.ones(2, 2))),
        ("CORE-0102", lambda: nb.tensor([1, 2]).std()),
        ("CORE-0204", lambda: nb.ones(2).sum(1)),
        ("CORE-0207", lambda: nb.ones(2, 2).sum((0, 0))),
        ("CORE-0201", lambda: nb.where(nb.ones(2).bool(), nb.ones(3), 0.0)),
    ],
)
def test_refusals(code: str, call: object) -> None:
    with pytest.raises(Refusal, match=code):
        call()  # type: ignore[operator]
