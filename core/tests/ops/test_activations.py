"""Activation functions: known values, symmetries, in-place forms, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numbat as nb
from numbat.ops.registry import OPERATORS
from numbat_registries import Refusal

REAL = st.floats(-50, 50, width=32)
VALUES = [
    ("relu", (), [0, 0, 2]), ("relu6", (), [0, 0, 2]), ("leaky_relu", (0.1,), [-0.2, 0, 2]),
    ("elu", (), [math.expm1(-2), 0, 2]), ("celu", (2.0,), [2 * math.expm1(-1), 0, 2]),
    ("hardtanh", (), [-1, 0, 1]), ("hardsigmoid", (), [1 / 6, 0.5, 5 / 6]),
    ("hardswish", (), [-1 / 3, 0, 5 / 3]), ("softsign", (), [-2 / 3, 0, 2 / 3]),
    ("hardshrink", (2.0,), [0, 0, 0]), ("softshrink", (), [-1.5, 0, 1.5]),
    ("tanhshrink", (), [-2 + math.tanh(2), 0, 2 - math.tanh(2)]), ("threshold", (0.0, 9.0), [9, 9,
    2]),
    ("softplus", (), [math.log1p(math.exp(-2)), math.log(2), math.log1p(math.exp(2))]),
    ("logsigmoid", (), [-math.log1p(math.exp(2)), -math.log(2), -math.log1p(math.exp(-2))]),
    ("silu", (), [-2 / (1 + math.exp(2)), 0, 2 / (1 + math.exp(-2))]),
    ("gelu", (), [-math.erfc(math.sqrt(2)), 0, 2 - math.erfc(math.sqrt(2))]),
    ("selu", (), [1.0507009873554805 * 1.6732632423543772 * math.expm1(-2), 0, 2.101401974710961]),
    ("mish", (), [-2 * math.tanh(math.log1p(math.exp(-2))), 0,
    2 * math.tanh(math.log1p(math.exp(2)))]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [nb.float32, nb.float64])
@pytest.mark.parametrize(("name", "numbers", "expected"), VALUES, ids=[one[0] for one in VALUES])
def test_known_values(name: str, numbers: tuple, expected: list, dtype: nb.dtype) -> None:
    found = getattr(nb, name)(nb.tensor([-2.0, 0.0, 2.0], dtype=dtype), *numbers)
    assert found.dtype is dtype
    np.testing.assert_allclose(found.array, expected, rtol=1e-6, atol=1e-7)


@given(REAL)
def test_identities(value: float) -> None:
    x = nb.tensor([value], dtype=nb.float64)
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose((nb.gelu(x) - nb.gelu(-x)).array, x.array, **close)
    np.testing.assert_allclose((nb.silu(x) - nb.silu(-x)).array, x.array, **close)
    np.testing.assert_allclose(
        (nb.softplus(x) - nb.softplus(-x)).array, x.array, rtol=1e-7, atol=3e-9
    )
    np.testing.assert_allclose(nb.logsigmoid(x).array, -nb.softplus(-x).array, rtol=1e-7, atol=3e-9)
    np.testing.assert_allclose((nb.relu(x) - nb.relu(-x)).array, x.array)
    np.testing.assert_allclose(nb.prelu(x, nb.tensor([0.2], dtype=nb.float64)).array,
                               nb.leaky_relu(x, 0.2).array)  # fmt: skip


def test_glu_halves_an_axis() -> None:
    x = nb.arange(8, dtype=nb.float64).reshape(2, 4)
    a, b = x.array[:, :2], x.array[:, 2:]
    np.testing.assert_allclose(nb.glu(x).array, a / (1 + np.exp(-b)))
    assert nb.glu(x, 0).shape == (1, 4)


def test_in_place_writes_and_has_a_gradient() -> None:
    leaf = nb.tensor([-1.0, 2.0], requires_grad=True)
    x = leaf * 1
    assert nb.silu(x, inplace=True) is x
    x.sum().backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(
        leaf.grad.array, [1 / (1 + math.e) * (1 - math.e / (1 + math.e)), 1.0907843], rtol=1e-6
    )


def test_second_derivative_of_gelu() -> None:
    x = nb.tensor([0.5], dtype=nb.float64, requires_grad=True)
    (first,) = nb.autograd.grad(nb.gelu(x), x, create_graph=True)
    assert first is not None
    (second,) = nb.autograd.grad(first, x)
    assert second is not None
    density = math.exp(-0.125) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(second.array, density * (2 - 0.25), rtol=1e-9)


def test_rrelu_draws_within_its_bounds() -> None:
    nb.manual_seed(1)
    x = -nb.ones(1000)
    slopes = -nb.rrelu(x, 0.2, 0.4, training=True).array
    assert 0.2 <= slopes.min() < 0.21
    assert 0.39 < slopes.max() <= 0.4


def test_whole_numbers_keep_their_type_where_pytorch_keeps_it() -> None:
    x = nb.tensor([-1, 3])
    assert nb.relu(x).tolist() == [0, 3]
    assert nb.relu6(nb.tensor([-1, 9])).tolist() == [0, 6]
    assert nb.threshold(x, 0, 7).tolist() == [7, 3]


REFUSED = [
    ("CORE-0430", lambda x: nb.gelu(x, approximate="sigmoid")),
    ("CORE-0431", lambda x: nb.softshrink(x, -1.0)),
    ("CORE-0431", lambda x: nb.hardtanh(x, 1.0, -1.0)),
    ("CORE-0431", lambda x: nb.celu(x, 0.0)),
    ("CORE-0432", lambda x: nb.glu(x)),
    ("CORE-0433", lambda x: nb.prelu(x, nb.ones(2))),
    ("CORE-0204", lambda x: nb.glu(x, 4)),
]


@pytest.mark.parametrize(("code", "call"), REFUSED)
def test_refusals(code: str, call: object) -> None:
    with pytest.raises(Refusal) as caught:
        call(nb.ones(2, 3))  # type: ignore[operator]
    assert caught.value.code == code


def test_registered_once_each() -> None:
    assert {name for name, _, _ in VALUES} <= set(OPERATORS)
