"""Logic, bits, and divisors of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.broadcasting import apply, check_broadcast
from numbat.ops.mapping import refuse_type, whole_only
from numbat.ops.registry import Sample, operator
from numbat.tensors.promotion import operands
from numbat.tensors.tensor import Tensor, wrap

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "gcd", "lcm", "logical_and", "logical_not", "logical_or", "logical_xor",
]  # fmt: skip


def _sample_whole(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 9, (2, 3)), rng.integers(0, 5, (3,))))
    yield Sample((rng.integers(0, 9, (2, 3)), 3))


def _sample_bools(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 2, (2, 3)) * 1.0, rng.integers(0, 2, (3,)) > 0))


def _sample_one(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 9, (2, 3)),))
    yield Sample((rng.integers(0, 2, (2, 3)) > 0,))


def _of_bits(name: str, ufunc: Any, input: Any, other: Any) -> Tensor:
    x, y = operands(input, other)
    whole_only(name, x)
    return wrap(apply(name, ufunc, x, y))


@operator(_sample_whole, differentiable=False, in_place=True)
def bitwise_and(input: Any, other: Any) -> Tensor:
    """The bits that both have; of bools, whether both hold.

    Raises CORE-0220 for floating types.
    """
    return _of_bits("bitwise_and", np.bitwise_and, input, other)


@operator(_sample_whole, differentiable=False, in_place=True)
def bitwise_or(input: Any, other: Any) -> Tensor:
    """The bits that either has; of bools, whether either holds.

    Raises CORE-0220 for floating types.
    """
    return _of_bits("bitwise_or", np.bitwise_or, input, other)


@operator(_sample_whole, differentiable=False, in_place=True)
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """The bits that one of them has; of bools, whether they differ.

    Raises CORE-0220 for floating types.
    """
    return _of_bits("bitwise_xor", np.bitwise_xor, input, other)


@operator(_sample_one, differentiable=False, in_place=True)
def bitwise_not(input: Tensor) -> Tensor:
    """The bits it has not; of bools, whether it does not hold.

    Raises CORE-0220 for floating types.
    """
    whole_only("bitwise_not", input)
    return wrap(np.invert(input.array))


def _shifted(name: str, ufunc: Any, input: Any, other: Any) -> Tensor:
    x, y = operands(input, other)
    whole_only(name, x)
    if x.array.dtype.kind == "b":
        raise refuse_type(name, x.dtype, "a bool is one bit")
    return wrap(apply(name, ufunc, x, y))


@operator(_sample_whole, differentiable=False, in_place=True)
def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """The bits moved up; by the type's width or more, zero.

    Raises CORE-0220 for floating types and bools.
    """
    return _shifted("bitwise_left_shift", np.left_shift, input, other)


@operator(_sample_whole, differentiable=False, in_place=True)
def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """The bits moved down, the sign kept; by the type's width or more, 0 or -1.

    Raises CORE-0220 for floating types and bools.
    """
    return _shifted("bitwise_right_shift", np.right_shift, input, other)


def _logical(name: str, ufunc: Any, input: Tensor, other: Any) -> Tensor:
    y = other.array if isinstance(other, Tensor) else np.asarray(other)
    check_broadcast(name, input.array.shape, y.shape)
    return wrap(ufunc(input.array.astype(np.bool_), y.astype(np.bool_)))


@operator(_sample_bools, differentiable=False, in_place=True)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Whether both are other than zero."""
    return _logical("logical_and", np.logical_and, input, other)


@operator(_sample_bools, differentiable=False, in_place=True)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Whether either is other than zero."""
    return _logical("logical_or", np.logical_or, input, other)


@operator(_sample_bools, differentiable=False, in_place=True)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Whether one of both is other than zero."""
    return _logical("logical_xor", np.logical_xor, input, other)


@operator(_sample_one, differentiable=False, in_place=True)
def logical_not(input: Tensor) -> Tensor:
    """Whether it is zero."""
    return wrap(np.logical_not(input.array.astype(np.bool_)))


def _divisors(name: str, ufunc: Any, input: Tensor, other: Tensor) -> Tensor:
    x, y = operands(input, other)
    whole_only(name, x)
    if x.array.dtype.kind == "b":
        raise refuse_type(name, x.dtype, "it is defined for whole numbers")
    return wrap(apply(name, ufunc, x, y))


@operator(_sample_whole, differentiable=False, in_place=True)
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, not negative; of two zeros, zero.

    Raises CORE-0220 for floating types and bools.
    """
    return _divisors("gcd", np.gcd, input, other)


@operator(_sample_whole, differentiable=False, in_place=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple, not negative; with a zero, zero.

    Raises CORE-0220 for floating types and bools.
    """
    out = _divisors("lcm", np.lcm, input, other)
    # A multiple that does not fit wraps round; PyTorch takes its sign off in the wider types.
    return out if out.itemsize < 4 else wrap(np.absolute(out.array))
