"""Comparisons, and questions about values: finite, close, member of a set."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.broadcasting import apply, check_broadcast
from numbat.ops.mapping import widened
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import unary
from numbat.tensors.promotion import operands
from numbat.tensors.tensor import Array, Tensor, wrap

__all__ = [
    "allclose", "eq", "equal", "ge", "gt", "isclose", "isfinite", "isin", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "le", "lt", "ne",
]  # fmt: skip


def _sample_compared(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 3, (2, 3)) * 1.0, rng.integers(0, 3, (3,)) * 1.0))
    yield Sample((rng.integers(0, 3, (2, 3)), 1))


def compared(name: str, ufunc: Any, input: Any, other: Any) -> Tensor:
    """The bools of a comparison; whole numbers are compared exactly, whatever the type."""
    if type(other) is int and isinstance(input, Tensor) and input.array.dtype.kind in "iu":
        return wrap(ufunc(input.array, other))
    x, y = operands(input, other)
    return wrap(apply(name, ufunc, x, y))


@operator(_sample_compared, differentiable=False, in_place=True)
def eq(input: Tensor, other: Any) -> Tensor:
    """Whether the elements are equal."""
    return compared("eq", np.equal, input, other)


@operator(_sample_compared, differentiable=False, in_place=True)
def ne(input: Tensor, other: Any) -> Tensor:
    """Whether the elements differ."""
    return compared("ne", np.not_equal, input, other)


@operator(_sample_compared, differentiable=False, in_place=True)
def lt(input: Tensor, other: Any) -> Tensor:
    """Whether the first is less."""
    return compared("lt", np.less, input, other)


@operator(_sample_compared, differentiable=False, in_place=True)
def le(input: Tensor, other: Any) -> Tensor:
    """Whether the first is less or equal."""
    return compared("le", np.less_equal, input, other)


@operator(_sample_compared, differentiable=False, in_place=True)
def gt(input: Tensor, other: Any) -> Tensor:
    """Whether the first is greater."""
    return compared("gt", np.greater, input, other)


@operator(_sample_compared, differentiable=False, in_place=True)
def ge(input: Tensor, other: Any) -> Tensor:
    """Whether the first is greater or equal."""
    return compared("ge", np.greater_equal, input, other)


def _sample_odd(rng: np.random.Generator) -> Any:
    yield Sample((np.array([0.0, np.nan, np.inf, -np.inf, 1.0]),))
    yield Sample((np.array([1, 2]),))


def _of_floating(input: Tensor, ufunc: Any, otherwise: bool) -> Tensor:
    if input.dtype.is_floating_point:
        return wrap(ufunc(input.array))
    return wrap(np.full(input.array.shape, otherwise))


@operator(_sample_odd, differentiable=False)
def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return _of_floating(input, np.isnan, False)


@operator(_sample_odd, differentiable=False)
def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return _of_floating(input, np.isinf, False)


@operator(_sample_odd, differentiable=False)
def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return _of_floating(input, np.isfinite, True)


@operator(_sample_odd, differentiable=False)
def isposinf(input: Tensor) -> Tensor:
    """Whether each element is infinite and positive."""
    return _of_floating(input, lambda x: x == np.inf, False)


@operator(_sample_odd, differentiable=False)
def isneginf(input: Tensor) -> Tensor:
    """Whether each element is infinite and negative."""
    return _of_floating(input, lambda x: x == -np.inf, False)


@operator(unary(), differentiable=False)
def isreal(input: Tensor) -> Tensor:
    """Whether each element is real: all are."""
    return wrap(np.ones(input.array.shape, np.bool_))


def _sample_close(rng: np.random.Generator) -> Any:
    values = rng.normal(size=(2, 3))
    yield Sample((values, values + rng.choice([0, 1e-9, 1e-3], (2, 3))))


@operator(_sample_close, differentiable=False)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `|input - other| <= atol + rtol * |other|`; infinities to themselves alone."""
    check_broadcast("isclose", input.array.shape, other.array.shape)
    return wrap(_close(input.array, other.array, rtol, atol, equal_nan))


def _close(x: Array, y: Array, rtol: float, atol: float, equal_nan: bool) -> Any:
    close = x == y
    if equal_nan and x.dtype.kind not in "iub":
        close = close | ((x != x) & (y != y))
    if rtol == 0 and atol == 0:
        return close
    # Whole numbers and half types are compared in float64, so that no difference wraps or rounds.
    if x.dtype.kind in "iub" or y.dtype.kind in "iub":
        x, y = x.astype(np.float64), y.astype(np.float64)
    x, y = widened(x), widened(y)
    apart = np.abs(x - y)
    return close | (np.isfinite(apart) & (apart <= atol + np.abs(y * y.dtype.type(rtol))))


@operator(_sample_close, differentiable=False)
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close (`isclose`), as a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


@operator(_sample_close, differentiable=False)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape and the same elements, as a Python bool."""
    x, y = input.array, other.array
    return x.shape == y.shape and bool((x == y).all())


def _sample_isin(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 5, (2, 3)), np.array([1, 3])))


@operator(_sample_isin, differentiable=False, method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among the test elements; either may be a number."""
    x, y = operands(elements, test_elements)
    return wrap(
        np.isin(widened(x.array), widened(y.array), assume_unique=assume_unique, invert=invert)
    )
