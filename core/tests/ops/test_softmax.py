"""The softmax family: sums, shifts, known values, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import numbat as nb
from numbat_registries import Refusal

ROWS = arrays(np.float32, (3, 5), elements=st.floats(-80, 80, width=32))


@given(ROWS, st.sampled_from([0, 1, -1]))
def test_sums_to_one_and_ignores_a_shift(values: np.ndarray, dim: int) -> None:
    x = nb.tensor(values)
    y = nb.softmax(x, dim)
    np.testing.assert_allclose(y.array.sum(axis=dim), 1, rtol=1e-6)
    np.testing.assert_allclose(nb.softmax(x + 7, dim).array, y.array, rtol=2e-5, atol=1e-30)
    np.testing.assert_allclose(nb.log_softmax(x, dim).exp().array, y.array, rtol=2e-5, atol=1e-30)
    np.testing.assert_allclose(nb.softmin(-x, dim).array, y.array)


def test_known_values() -> None:
    y = nb.softmax(nb.tensor([0.0, np.log(3.0)], dtype=nb.float64), 0)
    np.testing.assert_allclose(y.array, [0.25, 0.75])
    assert nb.softmax(nb.tensor([1, 2]), 0, dtype=nb.float64).dtype is nb.float64
    assert nb.softmax(nb.tensor(3.0), 0).item() == 1


def test_gumbel_softmax_is_one_hot_with_a_soft_gradient() -> None:
    nb.manual_seed(0)
    x = nb.zeros(200, 4, requires_grad=True)
    hard = nb.gumbel_softmax(x, hard=True)
    np.testing.assert_allclose(np.sort(hard.array, axis=1), [[0, 0, 0, 1]] * 200, atol=1e-6)
    assert (hard.array.mean(axis=0) > 0.15).all()
    (hard * nb.arange(4, dtype=nb.float32)).sum().backward()
    assert x.grad is not None
    assert (x.grad.array != 0).any()


def test_refusals() -> None:
    for code, call in (
        ("CORE-0204", lambda: nb.softmax(nb.ones(2), 1)),
        ("CORE-0102", lambda: nb.softmax(nb.tensor([1, 2]), 0)),
    ):
        with pytest.raises(Refusal) as caught:
            call()
        assert caught.value.code == code
