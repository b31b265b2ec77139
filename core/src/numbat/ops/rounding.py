"""Signs, magnitudes, and rounding to whole numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numbat.autograd.tape import Node, record, record_many
from numbat.ops.division import div
from numbat.ops.exponential import exp2
from numbat.ops.mapping import mapped, mapped_all, nothing, refuse_type, weighted, zero_backward
from numbat.ops.pointwise import mul
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import binary, unary
from numbat.tensors.dtypes import finfo
from numbat.tensors.promotion import floating_operands, operands
from numbat.tensors.tensor import Array, Tensor, wrap

__all__ = [
    "abs", "ceil", "copysign", "floor", "frac", "frexp", "heaviside", "ldexp", "nan_to_num",
    "round", "sgn", "sign", "signbit", "trunc",
]  # fmt: skip


@operator(unary(away_from=0.0), in_place=True)
def abs(input: Tensor) -> Tensor:
    """The magnitude; its gradient at zero is zero.

    Raises CORE-0220 for bools.
    """
    if input.array.dtype.kind == "b":
        raise refuse_type("abs", input.dtype, "bools have no magnitude")
    return record(np.absolute(input.array), abs_backward, (input,), (input,))


def abs_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, sgn(x)),)


def _signs(x: Array) -> Any:
    """-1, 0 or 1; 0 for NaN, as PyTorch."""
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind in "iu":
        return np.sign(x)
    return np.subtract(x > 0, x < 0, dtype=np.int8).astype(x.dtype)


@operator(unary(away_from=0.0), in_place=True)
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1, as the sign of each element."""
    return record(_signs(input.array), zero_backward, (input,))


@operator(unary(away_from=0.0), in_place=True)
def sgn(input: Tensor) -> Tensor:
    """-1, 0 or 1, as the sign of each element."""
    return record(_signs(input.array), zero_backward, (input,))


@operator(unary(), differentiable=False)
def signbit(input: Tensor) -> Tensor:
    """Whether the sign bit is set: also of -0.0."""
    array = input.array
    return wrap(array < 0 if array.dtype.kind in "iub" else np.signbit(array))


def _rounded(ufunc: Any, input: Tensor, name: str) -> Tensor:
    if input.array.dtype.kind == "b":
        raise refuse_type(name, input.dtype, "bools are not rounded")
    if input.array.dtype.kind in "iu":
        return wrap(input.array.copy())
    return record(mapped(ufunc, input.array), zero_backward, (input,))


def _sample_round(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(-4, 4, (2, 3)) + rng.uniform(0.1, 0.4, (2, 3)),))


@operator(_sample_round, in_place=True)
def ceil(input: Tensor) -> Tensor:
    """The next whole number upwards."""
    return _rounded(np.ceil, input, "ceil")


@operator(_sample_round, in_place=True)
def floor(input: Tensor) -> Tensor:
    """The next whole number downwards."""
    return _rounded(np.floor, input, "floor")


@operator(_sample_round, in_place=True)
def trunc(input: Tensor) -> Tensor:
    """The next whole number towards zero."""
    return _rounded(np.trunc, input, "trunc")


@operator(_sample_round, in_place=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest whole number, or multiple of 10**-decimals; halves go to the even one."""
    if decimals == 0:
        return _rounded(np.rint, input, "round")
    ten = 10.0 ** (decimals if decimals > 0 else -decimals)

    def computed(x: Array) -> Any:
        scale = x.dtype.type(ten)
        return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale

    return _rounded(computed, input, "round")


@operator(_sample_round, in_place=True)
def frac(input: Tensor) -> Tensor:
    """What `trunc` takes away.

    Raises CORE-0220 for whole numbers.
    """
    if not input.dtype.is_floating_point:
        raise refuse_type("frac", input.dtype, "whole numbers have no fraction")
    return record(mapped(lambda x: x - np.trunc(x), input.array), frac_backward, (input,))


def frac_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


def _sample_nan_to_num(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(3,)), 0.5, 2.0, -2.0))


@operator(_sample_nan_to_num, in_place=True)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN as zero and infinities as the largest finite numbers, or as what is given for them."""
    x = input.array
    if not input.dtype.is_floating_point:
        return record(x.copy(), zero_backward, (input,))
    limits = finfo(input.dtype)
    kind = x.dtype.type
    array = np.where(np.isnan(x), kind(0 if nan is None else nan), x)
    array = np.where(x == np.inf, kind(limits.max if posinf is None else posinf), array)
    array = np.where(x == -np.inf, kind(limits.min if neginf is None else neginf), array)
    return record(array.astype(x.dtype, copy=False), nan_to_num_backward, (input,), (input,))


def nan_to_num_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (weighted(grad, np.isfinite(x.array)),)


def _sample_copysign(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=(2, 3)), -1.0))


@operator(_sample_copysign, in_place=True)
def copysign(input: Tensor, other: Any) -> Tensor:
    """The magnitude of the input with the sign of `other`, signed zeros included."""
    x, y = floating_operands(input, other)
    array = mapped_all("copysign", np.copysign, x.array, y.array)
    return record(array, copysign_backward, (x, y), (x, y))


def copysign_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    ratio = _signs(x.array) * np.where(np.signbit(y.array), -1, 1).astype(x.array.dtype)
    return (
        weighted(grad, ratio) if for_x is not None else None,
        nothing(grad) if for_y is not None else None,
    )


@operator(binary(), differentiable=False, in_place=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, `values` at zero."""
    x, y = operands(input, values)
    array = mapped_all("heaviside", _step, x.array, y.array)
    return wrap(array)


def _step(x: Array, values: Array) -> Any:
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def _sample_ldexp(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.integers(-2, 3, (3,))))


@operator(_sample_ldexp, in_place=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input * 2**other`."""
    return mul(input, exp2(other))


class Frexp(NamedTuple):
    """Mantissas in [0.5, 1) with a sign, and exponents of 2 as int32."""

    mantissa: Tensor
    exponent: Tensor


@operator(unary(0.3, 2.0))
def frexp(input: Tensor) -> Frexp:
    """The mantissa and the exponent of each element: `input = mantissa * 2**exponent`.

    Raises CORE-0220 for whole numbers.
    """
    if not input.dtype.is_floating_point:
        raise refuse_type("frexp", input.dtype, "whole numbers have no mantissa")
    wide = input.array.astype(np.float64) if input.itemsize < 4 else input.array
    mantissa, exponent = np.frexp(wide)
    outs = record_many(
        (np.asarray(mantissa).astype(input.array.dtype), np.asarray(exponent, np.int32)),
        frexp_backward, (input,), (), exponent, (True, False),
    )  # fmt: skip
    return Frexp(*outs)


def frexp_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor | None]:
    given = grads[0]
    if given is None:
        return (None,)
    return (div(given, wrap(np.exp2(node.values).astype(given.array.dtype))),)
