"""Functions of each element, by the array API standard: names, promotion and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import numbat.ops as ops
from numbat.array_api.typing import together
from numbat.tensors.tensor import Tensor, wrap

_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh",
    "atan": "atan", "atanh": "atanh", "bitwise_invert": "bitwise_not", "ceil": "ceil",
    "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1", "floor": "floor",
    "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan",
    "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "logical_not": "logical_not", "negative": "neg", "positive": "positive",
    "reciprocal": "reciprocal", "round": "round", "signbit": "signbit",
    "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
    "trunc": "trunc",
}  # fmt: skip

_BINARY = {
    "add": "add", "atan2": "atan2", "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "bitwise_left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor",
    "copysign": "copysign", "divide": "div", "equal": "eq", "floor_divide": "floor_divide",
    "greater": "gt", "greater_equal": "ge", "hypot": "hypot", "less": "lt", "less_equal": "le",
    "logaddexp": "logaddexp", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum", "multiply": "mul",
    "not_equal": "ne", "pow": "pow", "remainder": "remainder", "subtract": "sub",
}  # fmt: skip

__all__ = sorted([*_UNARY, *_BINARY, "clip", "conj", "imag", "nextafter", "real", "sign"])


def _unary(name: str, operator: str) -> Callable[[Tensor], Tensor]:
    function = getattr(ops, operator)

    def of_one(x: Tensor, /) -> Tensor:
        found: Tensor = function(x)
        return found

    of_one.__name__ = of_one.__qualname__ = name
    of_one.__doc__ = function.__doc__
    return of_one


def _binary(name: str, operator: str) -> Callable[[Any, Any], Tensor]:
    function = getattr(ops, operator)

    def of_two(x1: Any, x2: Any, /) -> Tensor:
        found: Tensor = function(*together(x1, x2))
        return found

    of_two.__name__ = of_two.__qualname__ = name
    of_two.__doc__ = function.__doc__
    return of_two


globals().update({name: _unary(name, operator) for name, operator in _UNARY.items()})
globals().update({name: _binary(name, operator) for name, operator in _BINARY.items()})


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the sign of each element; NaN of NaN, where PyTorch gives 0."""
    found: Tensor = ops.sign(x)
    if x.is_floating_point():
        found = ops.masked_fill(found, wrap(np.isnan(x.array)), float("nan"))
    return found


def conj(x: Tensor, /) -> Tensor:
    """The tensor itself, there being no complex numbers."""
    return x


def real(x: Tensor, /) -> Tensor:
    """The tensor itself, there being no complex numbers."""
    return x


def imag(x: Tensor, /) -> Tensor:
    """Zeros, there being no complex numbers."""
    return wrap(np.zeros_like(x.array))


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number from each element towards another's."""
    first, second = together(x1, x2)
    return wrap(np.nextafter(first.array, second.array))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Each element held between two bounds, which have no part in its type."""
    bounds = [
        None if one is None
        else one.to(x.dtype) if isinstance(one, Tensor) else wrap(_within(one, x))
        for one in (min, max)
    ]  # fmt: skip
    found = x if bounds[0] is None else ops.maximum(x, bounds[0])
    found = found if bounds[1] is None else ops.minimum(found, bounds[1])
    return ops.clone(found) if found is x else found


def _within(value: Any, x: Tensor) -> Any:
    dtype = x.array.dtype
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray(int(np.clip(value, limits.min, limits.max)), dtype)
    return np.asarray(value, dtype)
