"""Quotients and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite, written_by
from numbat.autograd.tape import Node, record
from numbat.ops.broadcasting import apply
from numbat.ops.mapping import mapped, mapped_all, of_halves, zero_backward
from numbat.ops.pointwise import mul, neg
from numbat.ops.registry import operator
from numbat.ops.samples import binary
from numbat.tensors.promotion import floating_operands, operands
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "div", "floor_divide", "fmod", "remainder",
]  # fmt: skip


def _div_in_place(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divides the tensor by another or by a number."""
    if (
        rounding_mode is None
        and self.dtype.is_floating_point
        and written_by(np.true_divide, self, other, "div_")
    ):
        return self
    return overwrite(self, div(self, other, rounding_mode=rounding_mode), "div_")


@operator(binary(low2=0.5, high2=2.0), in_place=_div_in_place)
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`, broadcast; whole numbers are divided in the default floating type.

    `rounding_mode` "trunc" rounds the quotient towards zero, "floor" downwards, and both keep whole
    numbers whole.

    Raises CORE-0222 for another mode, CORE-0225 for a whole number over zero where it is rounded.
    """
    if rounding_mode is not None:
        return _rounded(input, other, rounding_mode)
    x, y = floating_operands(input, other)
    if x.array.dtype.itemsize == 2:
        array, y = of_halves("div", np.true_divide, x, y, other)
    else:
        array = apply("div", np.true_divide, x, y)
    saved = (x if y.requires_grad else None, y)
    return record(array, div_backward, (x, y), saved)


def div_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    over = div(grad, y)
    return (
        over if for_x is not None else None,
        neg(mul(over, div(x, y))) if for_y is not None else None,
    )


def _rounded(input: Any, other: Any, mode: str) -> Tensor:
    if mode not in ("trunc", "floor"):
        raise refuse(
            "CORE-0222", operator="div", argument="rounding_mode", given=str(mode),
            known=["trunc", "floor"],
        )  # fmt: skip
    x, y = operands(input, other)
    check_divisor("div", y.array)
    if mode == "floor":
        array = mapped_all("div", np.floor_divide, x.array, y.array)
    elif x.dtype.is_floating_point:
        # float16 and bfloat16 are rounded before the fraction is cut off, as in PyTorch.
        array = mapped(np.trunc, np.asarray(apply("div", np.true_divide, x, y)))
    else:
        array = mapped_all("div", _truncated, x.array, y.array)
    return record(array, zero_backward, (x, y))


def _truncated(x: Array, y: Array) -> Any:
    if x.dtype.kind in "bu":
        return np.floor_divide(x, y)
    quotient, rest = np.divmod(x, y)
    return quotient + ((rest != 0) & ((x < 0) != (y < 0))).astype(x.dtype)


def check_divisor(operator: str, divisor: Array) -> None:
    """Raises CORE-0225 where a whole number would be divided by zero."""
    if divisor.dtype.kind in "iub" and not divisor.all():
        raise refuse("CORE-0225", operator=operator)


@operator(binary(low2=0.5, high2=2.0), differentiable=False, in_place=True)
def floor_divide(input: Tensor, other: Any) -> Tensor:
    """The quotient rounded downwards, as Python's `//`.

    Raises CORE-0225 for a whole number over zero.
    """
    return _rounded(input, other, "floor")


@operator(binary(low2=2.1, high2=3.0), torch="remainder", in_place=True)
def remainder(input: Tensor, other: Any) -> Tensor:
    """What a division rounded downwards leaves, with the divisor's sign, as Python's `%`.

    Raises CORE-0225 for a whole number over zero.
    """
    return _rest("remainder", np.remainder, input, other, "floor")


@operator(binary(low2=2.1, high2=3.0), in_place=True)
def fmod(input: Tensor, other: Any) -> Tensor:
    """What a division rounded towards zero leaves, with the dividend's sign, as C's.

    Raises CORE-0225 for a whole number over zero.
    """
    return _rest("fmod", np.fmod, input, other, "trunc")


def _rest(name: str, ufunc: Any, input: Any, other: Any, mode: str) -> Tensor:
    x, y = operands(input, other)
    check_divisor(name, y.array)
    saved = (x, y) if y.requires_grad else (None, None)
    return record(mapped_all(name, ufunc, x.array, y.array), _rest_backward, (x, y), saved, mode)


def _rest_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    x, y = node.unpack()
    if node.sources[1] is None:
        return grad, None
    return grad, neg(mul(grad, _rounded(x, y, node.values)))
