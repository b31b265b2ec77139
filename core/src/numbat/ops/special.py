"""Error, gamma and Bessel functions, element by element, by `kernels/special.c`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite
from numbat.autograd.tape import Node, record
from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run
from numbat.ops.division import div
from numbat.ops.exponential import exp, square
from numbat.ops.extremes import where
from numbat.ops.mapping import mapped_all, widened
from numbat.ops.pointwise import add, mul, neg, sub
from numbat.ops.registry import Sample, operator
from numbat.ops.rounding import sgn
from numbat.ops.samples import unary
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "digamma", "erf", "erfc", "erfinv", "i0", "lgamma", "mvlgamma", "polygamma",
]  # fmt: skip

_GRAIN = 1 << 14
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ONE_OF = {
    (name, kind): kernel(f"nb_{name}_{kind}", "PPll")
    for name in ("digamma", "erf", "erfc", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "trigamma")
    for kind in ("f32", "f64")
}
_ZETA = kernel("nb_zeta", "PPPll")


def special(name: str, array: Array) -> Array:
    """A function of `special.c` of each element; float16 and bfloat16 are computed in float32."""
    x = np.ascontiguousarray(widened(array))
    out = np.empty_like(x)
    function = _ONE_OF[name, "f64" if x.dtype.itemsize == 8 else "f32"]
    run(function, (address(x), address(out)), x.size, _GRAIN)
    return out.reshape(array.shape).astype(array.dtype, copy=False)


def zeta(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function in float64: the sum of (q + k)**-x over k = 0, 1, 2, ..."""
    shape = np.broadcast_shapes(x.shape, q.shape)
    one, other = (
        np.ascontiguousarray(np.broadcast_to(value, shape), np.float64) for value in (x, q)
    )
    out = np.empty(shape)
    run(_ZETA, (address(one), address(other), address(out)), out.size, _GRAIN)
    return out


@operator(unary(), in_place=True)
def erf(input: Tensor) -> Tensor:
    """The error function."""
    x = floating(input)
    return record(special("erf", x.array), erf_backward, (x,), (x,))


def _bell(x: Tensor) -> Tensor:
    """The derivative of the error function."""
    return mul(exp(neg(square(x))), _TWO_OVER_ROOT_PI)


def erf_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, _bell(x)),)


@operator(unary(), in_place=True)
def erfc(input: Tensor) -> Tensor:
    """`1 - erf(x)`, exact also where that is small."""
    x = floating(input)
    return record(special("erfc", x.array), erfc_backward, (x,), (x,))


def erfc_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (neg(mul(grad, _bell(x))),)


@operator(unary(-0.9, 0.9), in_place=True)
def erfinv(input: Tensor) -> Tensor:
    """The number whose error function it is: infinite at -1 and 1, NaN beyond."""
    x = floating(input)
    return record(special("erfinv", x.array), erfinv_backward, (x,), keep_result=True)


def erfinv_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(mul(grad, exp(square(node.unpack_result()))), math.sqrt(math.pi) / 2),)


@operator(unary(0.3, 4.0), in_place=True)
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of the magnitude of the gamma function."""
    x = floating(input)
    return record(special("lgamma", x.array), lgamma_backward, (x,), (x,))


def lgamma_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, digamma(x)),)


@operator(unary(0.3, 4.0), in_place=True)
def digamma(input: Tensor) -> Tensor:
    """The derivative of `lgamma`: infinite at zero, NaN at negative whole numbers."""
    x = floating(input)
    return record(special("digamma", x.array), digamma_backward, (x,), (x,))


def digamma_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, polygamma(1, x)),)


def _sample_polygamma(rng: np.random.Generator) -> Any:
    for order in (0, 1, 2):
        yield Sample((order, rng.uniform(0.8, 4, (2, 3))))


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of `digamma`."""
    return polygamma(n, self)


def _polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of `digamma`, over its tensor."""
    return overwrite(self, polygamma(n, self), "polygamma_")


@operator(
    _sample_polygamma,
    torch="polygamma.polygamma_n_0",
    method=_polygamma_method,
    in_place=_polygamma_in_place,
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order `n` of `digamma`.

    Raises CORE-0223 for a negative order.
    """
    if n < 0:
        raise refuse(
            "CORE-0223", operator="polygamma", argument="n", given=str(n), wanted="zero or more"
        )
    if n == 0:
        return digamma(input)
    x = floating(input)

    def computed(array: Array) -> Any:
        if n == 1:
            return special("trigamma", array)
        sign = 1.0 if n % 2 else -1.0
        found = sign * math.gamma(n + 1) * zeta(np.array(n + 1.0), array.astype(np.float64))
        return found.astype(array.dtype)

    return record(mapped_all("polygamma", computed, x.array), polygamma_backward, (x,), (x,), n)


def polygamma_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, polygamma(node.values + 1, x)),)


def _sample_mvlgamma(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(2.2, 5, (2, 3)), 3))


@operator(_sample_mvlgamma, torch="mvlgamma.mvlgamma_p_3", in_place=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions, of numbers above `(p - 1) / 2`.

    Raises CORE-0223 for fewer than one dimension.
    """
    if p < 1:
        raise refuse(
            "CORE-0223", operator="mvlgamma", argument="p", given=str(p), wanted="one or more"
        )
    x = floating(input)
    total = lgamma(x)
    for index in range(1, p):
        total = add(total, lgamma(sub(x, index / 2)))
    return add(total, p * (p - 1) / 4 * math.log(math.pi))


@operator(unary(0.3, 4.0), in_place=True)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""
    x = floating(input)
    return record(special("i0", x.array), i0_backward, (x,), (x,))


def i0_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, i1(x)),)


def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""
    x = floating(input)
    return record(special("i1", x.array), i1_backward, (x,), (x,))


def i1_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    # I1(x) / x tends to one half at zero.
    small = np.abs(x.array) < 1e-6
    ratio = where(wrap(small), 0.5, div(i1(x), where(wrap(small), 1.0, x)))
    return (mul(grad, sub(i0(x), ratio)),)


def i0e(input: Tensor) -> Tensor:
    """`exp(-|x|) i0(x)`, which does not overflow."""
    x = floating(input)
    return record(special("i0e", x.array), i0e_backward, (x,), (x,), keep_result=True)


def i0e_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, sub(i1e(x), mul(sgn(x), node.unpack_result()))),)


def i1e(input: Tensor) -> Tensor:
    """`exp(-|x|) i1(x)`, which does not overflow."""
    x = floating(input)
    return record(special("i1e", x.array), i1e_backward, (x,), (x,), keep_result=True)


def i1e_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    small = np.abs(x.array) < 1e-6
    result = node.unpack_result()
    ratio = where(wrap(small), 0.5, div(result, where(wrap(small), 1.0, x)))
    return (mul(grad, sub(sub(i0e(x), mul(sgn(x), result)), ratio)),)
