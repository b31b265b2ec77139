"""Arithmetic element by element over two tensors or a tensor and a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.broadcasting import apply
from numbat.ops.registry import operator
from numbat.ops.samples import binary, unary
from numbat.tensors.promotion import floating_operands, operands
from numbat.tensors.tensor import Tensor

__all__ = [
    "add", "div", "mul", "neg", "sub",
]  # fmt: skip


@operator(binary(), in_place=True)
def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`input + alpha * other`, broadcast."""
    if alpha != 1:
        other = mul(other, alpha)
    x, y = operands(input, other)
    return record(apply("add", np.add, x, y), add_backward, (x, y))


def add_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad, grad


@operator(binary(), in_place=True)
def sub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`input - alpha * other`, broadcast."""
    if alpha != 1:
        other = mul(other, alpha)
    x, y = operands(input, other)
    return record(apply("sub", np.subtract, x, y), sub_backward, (x, y))


def sub_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    return grad, neg(grad) if node.sources[1] is not None else None


@operator(binary(), in_place=True)
def mul(input: Tensor, other: Any) -> Tensor:
    """`input * other`, broadcast."""
    x, y = operands(input, other)
    # Each factor is saved for the other's gradient alone, so that it may be written over otherwise.
    saved = (x if y.requires_grad else None, y if x.requires_grad else None)
    return record(apply("mul", np.multiply, x, y), mul_backward, (x, y), saved)


def mul_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    return (
        mul(grad, y) if for_x is not None else None,
        mul(grad, x) if for_y is not None else None,
    )


@operator(binary(low2=0.5, high2=2.0), torch="div.no_rounding_mode", in_place=True)
def div(input: Tensor, other: Any) -> Tensor:
    """`input / other`, broadcast; whole numbers are divided in the default floating type."""
    x, y = floating_operands(input, other)
    saved = (x if y.requires_grad else None, y)
    return record(apply("div", np.true_divide, x, y), div_backward, (x, y), saved)


def div_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    over = div(grad, y)
    return (
        over if for_x is not None else None,
        neg(mul(over, div(x, y))) if for_y is not None else None,
    )


@operator(unary(), in_place=True)
def neg(input: Tensor) -> Tensor:
    """`-input`."""
    return record(np.negative(input.array), neg_backward, (input,))


def neg_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (neg(grad),)
