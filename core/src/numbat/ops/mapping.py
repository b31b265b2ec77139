"""numpy's functions element by element, rounded as in PyTorch; and gradients under masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.broadcasting import apply, check_broadcast
from numbat.tensors.dtypes import FLOATING, DType
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

_WIDE = np.dtype(np.float32)

# numpy's reductions, called by position: array, axes, dtype, out, keepdims.
add_over: Any = np.add.reduce
multiply_over: Any = np.multiply.reduce
maximum_over: Any = np.maximum.reduce
minimum_over: Any = np.minimum.reduce


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether a type is float16 or bfloat16, which are computed in float32 and rounded once."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def widened(array: Array) -> Array:
    """The values in the type they are computed in: float32 for halves, else their own."""
    return array.astype(_WIDE) if is_half(array.dtype) else array


def mapped(function: Any, array: Array) -> Any:
    """`function` of an array, in float32 for float16 and bfloat16, and rounded once."""
    if is_half(array.dtype):
        return function(array.astype(_WIDE)).astype(array.dtype)
    return function(array)


def mapped_all(operator: str, function: Any, *arrays: Array) -> Any:
    """`function` of several arrays of one type that broadcast, as `mapped`.

    Raises CORE-0201 where their shapes do not broadcast.
    """
    dtype = arrays[0].dtype
    try:
        if is_half(dtype):
            return function(*[one.astype(_WIDE) for one in arrays]).astype(dtype)
        return function(*arrays)
    except ValueError:
        check_broadcast(operator, *[one.shape for one in arrays])
        raise


def of_halves(operator: str, ufunc: Any, x: Tensor, y: Tensor, given: Any) -> tuple[Any, Tensor]:
    """`ufunc` of two operands of a 2-byte type, and the second operand to save.

    float16 and bfloat16 are computed in float32; a number, or a tensor of no axes, that was given
    as the second operand is not rounded to them before, as in PyTorch's products and quotients.
    """
    dtype = x.array.dtype
    if dtype.kind in "iu":
        return apply(operator, ufunc, x, y), y
    if not isinstance(given, Tensor):
        y = wrap(np.array(given, _WIDE))
    second = given.array if isinstance(given, Tensor) and not given.array.ndim else y.array
    try:
        array = ufunc(x.array.astype(_WIDE), second.astype(_WIDE)).astype(dtype)
    except ValueError:
        check_broadcast(operator, x.array.shape, second.shape)
        raise
    return array, y


def weighted(grad: Tensor, weights: Array) -> Tensor:
    """A gradient times constant weights or under a mask; zero where these are, always."""
    if weights.dtype.kind == "b":
        array = np.where(weights, grad.array, np.zeros((), grad.array.dtype))
    else:
        scaled = grad.array * weights.astype(grad.array.dtype)
        array = np.where(weights != 0, scaled, np.zeros((), grad.array.dtype))
    return record(array, weighted_backward, (grad,), values=weights)


def weighted_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (weighted(grad, node.values),)


def nothing(grad: Tensor) -> Tensor:
    """A gradient of zeros, in the shape and type of another."""
    return wrap(np.zeros(grad.array.shape, grad.array.dtype))


def zero_backward(node: Node, grad: Tensor) -> tuple[Tensor, ...]:
    """Of an operator that is constant almost everywhere: zeros, as PyTorch gives, not None."""
    return tuple([nothing(grad)] * len(node.sources))


def refuse_type(operator: str, dtype: DType, because: str) -> Any:
    """The refusal of an element type that an operator has no meaning for (CORE-0220)."""
    return refuse("CORE-0220", operator=operator, dtype=dtype.name, because=because)


def whole_only(operator: str, *tensors: Tensor) -> None:
    """Raises CORE-0220 where a tensor is floating and the operator works on bits or divisors."""
    for one in tensors:
        if one.dtype.category == FLOATING:
            raise refuse_type(operator, one.dtype, "it is defined for whole numbers")
