"""Arithmetic element by element over tensors and numbers: sums, products and blends."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite, written_by
from numbat.autograd.tape import Node, record
from numbat.ops.broadcasting import apply
from numbat.ops.mapping import is_half, mapped_all, of_halves, refuse_type
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import binary, unary
from numbat.tensors.dtypes import BOOL
from numbat.tensors.promotion import as_operand, operands, result_type
from numbat.tensors.tensor import Tensor

__all__ = [
    "add", "addcdiv", "addcmul", "lerp", "mul", "neg", "positive", "rsub", "sub",
]  # fmt: skip


def _add_in_place(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """Adds `alpha * other` to the tensor."""
    if alpha == 1 and written_by(np.add, self, other, "add_"):
        return self
    return overwrite(self, add(self, other, alpha=alpha), "add_")


@operator(binary(), in_place=_add_in_place)
def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`input + alpha * other`, broadcast."""
    if alpha != 1:
        other = mul(other, alpha) if isinstance(other, Tensor) else other * alpha
    x, y = operands(input, other)
    return record(apply("add", np.add, x, y), add_backward, (x, y))


def add_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad, grad


def _sub_in_place(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """Subtracts `alpha * other` from the tensor."""
    if alpha == 1 and self.array.dtype.kind != "b" and written_by(np.subtract, self, other, "sub_"):
        return self
    return overwrite(self, sub(self, other, alpha=alpha), "sub_")


@operator(binary(), in_place=_sub_in_place)
def sub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`input - alpha * other`, broadcast.

    Raises CORE-0220 for two bools, which have no difference.
    """
    if alpha != 1:
        other = mul(other, alpha) if isinstance(other, Tensor) else other * alpha
    x, y = operands(input, other)
    if x.array.dtype.kind == "b":
        raise refuse_type("sub", x.dtype, "use ^ or logical_xor")
    return record(apply("sub", np.subtract, x, y), sub_backward, (x, y))


def sub_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    return grad, neg(grad) if node.sources[1] is not None else None


@operator(binary(), method=True)
def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`other - alpha * input`."""
    return sub(other, input, alpha=alpha)


def _mul_in_place(self: Tensor, other: Any) -> Tensor:
    """Multiplies the tensor by another or by a number."""
    if written_by(np.multiply, self, other, "mul_"):
        return self
    return overwrite(self, mul(self, other), "mul_")


@operator(binary(), in_place=_mul_in_place)
def mul(input: Tensor, other: Any) -> Tensor:
    """`input * other`, broadcast."""
    x, y = operands(input, other)
    if x.array.dtype.itemsize == 2:
        array, y = of_halves("mul", np.multiply, x, y, other)
    else:
        array = apply("mul", np.multiply, x, y)
    # Each factor is saved for the other's gradient alone, so that it may be written over otherwise.
    # (A tensor that is no view is asked for its attribute alone: 0.1 us less than the property.)
    saved = (
        x if (y.wants_grad if y.base is None else y.requires_grad) else None,
        y if (x.wants_grad if x.base is None else x.requires_grad) else None,
    )
    return record(array, mul_backward, (x, y), saved)


def mul_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    return (
        mul(grad, y) if for_x is not None else None,
        mul(grad, x) if for_y is not None else None,
    )


@operator(unary(), in_place=True)
def neg(input: Tensor) -> Tensor:
    """`-input`.

    Raises CORE-0220 for bools.
    """
    if input.array.dtype.kind == "b":
        raise refuse_type("neg", input.dtype, "use ~ or logical_not")
    return record(np.negative(input.array), neg_backward, (input,))


def neg_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (neg(grad),)


@operator(unary())
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    Raises CORE-0220 for bools.
    """
    if input.dtype.category == BOOL:
        raise refuse_type("positive", input.dtype, "bools have no sign")
    return input


def _three(input: Any, second: Any, third: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Three operands in the type in which they meet."""
    dtype = result_type(input, second, third)
    return as_operand(input, dtype), as_operand(second, dtype), as_operand(third, dtype)


def _ternary(rng: np.random.Generator) -> Any:
    for shapes in (((2, 3), (2, 3), (2, 3)), ((2, 3), (3,), (2, 1)), ((), (2,), ())):
        one, two, three = (np.asarray(rng.uniform(0.5, 2.0, shape)) for shape in shapes)
        yield Sample((one, two, three), {"value": 0.7})


@operator(_ternary, in_place=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`, broadcast."""
    x, y, z = _three(input, tensor1, tensor2)

    def computed(a: Any, b: Any, c: Any) -> Any:
        product = b * c
        return a + (product if value == 1 else a.dtype.type(value) * product)

    array = mapped_all("addcmul", computed, x.array, y.array, z.array)
    saved = (y if z.requires_grad else None, z if y.requires_grad else None)
    return record(array, addcmul_backward, (x, y, z), saved, value)


def addcmul_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    y, z = node.unpack()
    scaled = grad if node.values == 1 else mul(grad, node.values)
    _, for_y, for_z = node.sources
    return (
        grad,
        mul(scaled, z) if for_y is not None else None,
        mul(scaled, y) if for_z is not None else None,
    )


@operator(_ternary, in_place=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`, broadcast.

    Raises CORE-0220 for whole numbers: PyTorch divides none here.
    """
    x, y, z = _three(input, tensor1, tensor2)
    if not x.dtype.is_floating_point:
        raise refuse_type("addcdiv", x.dtype, "it divides; use floating types")

    def computed(a: Any, b: Any, c: Any) -> Any:
        quotient = b / c if value == 1 else a.dtype.type(value) * b / c
        return a + quotient

    array = mapped_all("addcdiv", computed, x.array, y.array, z.array)
    saved = (y if z.requires_grad else None, z if y.requires_grad or z.requires_grad else None)
    return record(array, addcdiv_backward, (x, y, z), saved, value)


def addcdiv_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    from numbat.ops.division import div

    y, z = node.unpack()
    _, for_y, for_z = node.sources
    scaled = grad if node.values == 1 else mul(grad, node.values)
    over = div(scaled, z) if for_y is not None or for_z is not None else None
    return (
        grad,
        over if for_y is not None else None,
        neg(mul(over, div(y, z))) if for_z is not None and over is not None else None,
    )


def _sample_lerp(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), 0.3))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3,)), rng.uniform(0, 1, (2, 1))))
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(2,)), 0.8))


@operator(_sample_lerp, in_place=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """`input + weight * (end - input)`, counted from the nearer end so that both ends are exact.

    Raises CORE-0220 for whole numbers.
    """
    x, y, w = _three(input, end, weight)
    if not x.dtype.is_floating_point:
        raise refuse_type("lerp", x.dtype, "it needs a floating type")
    if not isinstance(weight, Tensor) and is_half(x.array.dtype):
        w = Tensor(np.array(weight, np.float32))

    def computed(a: Any, b: Any, c: Any) -> Any:
        gap = b - a
        return np.where(np.abs(c) < 0.5, a + c * gap, b - gap * (1 - c))

    array = mapped_all("lerp", computed, x.array, y.array, w.array)
    want = w.requires_grad
    saved = (x if want else None, y if want else None, w)
    return record(array, lerp_backward, (x, y, w), saved)


def lerp_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, w = node.unpack()
    for_x, for_y, for_w = node.sources
    return (
        mul(grad, rsub(w, 1)) if for_x is not None else None,
        mul(grad, w) if for_y is not None else None,
        mul(grad, sub(y, x)) if for_w is not None else None,
    )
