"""Angles: sines, their inverses, and the hyperbolic ones, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.division import div
from numbat.ops.exponential import rsqrt, square
from numbat.ops.mapping import mapped, mapped_all, weighted
from numbat.ops.pointwise import add, mul, neg, rsub, sub
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import binary, unary
from numbat.tensors.promotion import floating, floating_operands
from numbat.tensors.tensor import Array, Tensor

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "hypot",
    "rad2deg", "sin", "sinc", "sinh", "tan",
]  # fmt: skip

_DEGREE = float(np.pi / 180)


@operator(unary(), in_place=True)
def sin(input: Tensor) -> Tensor:
    """The sine of each element, in radians."""
    x = floating(input)
    return record(mapped(np.sin, x.array), sin_backward, (x,), (x,))


def sin_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, cos(x)),)


@operator(unary(), in_place=True)
def cos(input: Tensor) -> Tensor:
    """The cosine of each element, in radians."""
    x = floating(input)
    return record(mapped(np.cos, x.array), cos_backward, (x,), (x,))


def cos_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (neg(mul(grad, sin(x))),)


@operator(unary(-1.2, 1.2), in_place=True)
def tan(input: Tensor) -> Tensor:
    """The tangent of each element, in radians."""
    x = floating(input)
    return record(mapped(np.tan, x.array), tan_backward, (x,), keep_result=True)


def tan_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(grad, add(square(node.unpack_result()), 1)),)


@operator(unary(-0.9, 0.9), in_place=True)
def asin(input: Tensor) -> Tensor:
    """The angle of a sine: in [-pi/2, pi/2], NaN outside [-1, 1]."""
    x = floating(input)
    return record(mapped(np.arcsin, x.array), asin_backward, (x,), (x,))


def asin_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, rsqrt(rsub(square(x), 1))),)


@operator(unary(-0.9, 0.9), in_place=True)
def acos(input: Tensor) -> Tensor:
    """The angle of a cosine: in [0, pi], NaN outside [-1, 1]."""
    x = floating(input)
    return record(mapped(np.arccos, x.array), acos_backward, (x,), (x,))


def acos_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (neg(mul(grad, rsqrt(rsub(square(x), 1)))),)


@operator(unary(), in_place=True)
def atan(input: Tensor) -> Tensor:
    """The angle of a tangent: in [-pi/2, pi/2]."""
    x = floating(input)
    return record(mapped(np.arctan, x.array), atan_backward, (x,), (x,))


def atan_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, add(square(x), 1)),)


@operator(unary(), in_place=True)
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine."""
    x = floating(input)
    return record(mapped(np.sinh, x.array), sinh_backward, (x,), (x,))


def sinh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, cosh(x)),)


@operator(unary(), in_place=True)
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    x = floating(input)
    return record(mapped(np.cosh, x.array), cosh_backward, (x,), (x,))


def cosh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, sinh(x)),)


@operator(unary(), in_place=True)
def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    x = floating(input)
    return record(mapped(np.arcsinh, x.array), asinh_backward, (x,), (x,))


def asinh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, rsqrt(add(square(x), 1))),)


@operator(unary(1.2, 3.0), in_place=True)
def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine: NaN below 1."""
    x = floating(input)
    return record(mapped(np.arccosh, x.array), acosh_backward, (x,), (x,))


def acosh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, rsqrt(sub(square(x), 1))),)


@operator(unary(-0.9, 0.9), in_place=True)
def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent: NaN outside [-1, 1]."""
    x = floating(input)
    return record(mapped(np.arctanh, x.array), atanh_backward, (x,), (x,))


def atanh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, rsub(square(x), 1)),)


def _sample_atan2(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.uniform(0.5, 2, (3,))))
    yield Sample((rng.uniform(0.5, 2, (2, 1)), -rng.uniform(0.5, 2, (3,))))


@operator(_sample_atan2, in_place=True)
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, input), in radians from -pi to pi."""
    x, y = floating_operands(input, other)
    return record(mapped_all("atan2", np.arctan2, x.array, y.array), atan2_backward, (x, y), (x, y))


def atan2_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    # At the origin there is no direction to give; PyTorch gives zero.
    norm = add(square(x), square(y))
    over = weighted(div(grad, norm), norm.array != 0)
    return (
        mul(over, y) if for_x is not None else None,
        neg(mul(over, x)) if for_y is not None else None,
    )


@operator(binary(0.5, 2.0), in_place=True)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """The length of the vector of both, without overflow."""
    x, y = floating_operands(input, other)
    array = mapped_all("hypot", np.hypot, x.array, y.array)
    return record(array, hypot_backward, (x, y), (x, y), keep_result=True)


def hypot_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    result = node.unpack_result()
    return (
        mul(grad, div(x, result)) if for_x is not None else None,
        mul(grad, div(y, result)) if for_y is not None else None,
    )


@operator(unary(-90, 90), in_place=True)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return mul(floating(input), _DEGREE)


@operator(unary(), in_place=True)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return mul(floating(input), 1 / _DEGREE)


def _sinc(x: Array) -> Any:
    turned = x * x.dtype.type(np.pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(turned) / turned)


@operator(unary(0.2, 2.0), in_place=True)
def sinc(input: Tensor) -> Tensor:
    """`sin(pi x) / (pi x)`, 1 at zero."""
    x = floating(input)
    return record(mapped(_sinc, x.array), sinc_backward, (x,), (x,))


def sinc_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    turned = mul(x, float(np.pi))
    squared = mul(turned, x)
    slope = div(sub(mul(turned, cos(turned)), sin(turned)), squared)
    return (weighted(mul(grad, slope), squared.array != 0),)
