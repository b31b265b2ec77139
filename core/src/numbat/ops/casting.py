"""Other element types, copies, and the same memory without history."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.registry import operator
from numbat.ops.samples import unary
from numbat.tensors.device import Device, check_device
from numbat.tensors.dtypes import DType, as_dtype, from_numpy_dtype
from numbat.tensors.tensor import Array, Tensor

__all__ = [
    "clone", "contiguous", "detach", "to", "type_as",
]  # fmt: skip


def cast_array(array: Array, dtype: np.dtype[Any]) -> Array:
    """The values in another type, rounded and wrapped as PyTorch's `to` does on x86.

    Floating values that no integer of the target holds are undefined in C; as PyTorch on x86, they
    go through int64 (or int32) and keep the low bits.
    """
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu" and array.dtype.kind not in "iub":
        if array.dtype.kind != "f":
            array = array.astype(np.float32)
        return array.astype(np.int64).astype(dtype)
    return array.astype(dtype, order="K")


@operator(unary(), torch=None)
def to(
    input: Tensor,
    *target: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """The tensor in another element type; itself where nothing changes and no copy is asked for."""
    for one in target:
        if isinstance(one, Tensor):
            dtype = one.dtype
        elif isinstance(one, DType) or one in (float, int, bool):
            dtype = one
        elif isinstance(one, str | Device):
            check_device(one)
    check_device(device)
    wanted = input.dtype if dtype is None else as_dtype(dtype)
    if wanted is input.dtype:
        return clone(input) if copy else input
    array = cast_array(input.array, wanted.numpy)
    if not wanted.is_floating_point:
        out = Tensor.__new__(Tensor)
        out.array = array
        return out
    return record(array, to_backward, (input,), values=input.dtype)


def to_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (to(grad, node.values),)


@operator(unary())
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with memory of its own, through which gradients flow."""
    return record(input.array.copy(order="K"), clone_backward, (input,))


def clone_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


@operator(unary())
def contiguous(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor itself where its memory has no gaps, else a copy in the order of its indices."""
    if input.array.flags.c_contiguous:
        return input
    return record(np.ascontiguousarray(input.array), contiguous_backward, (input,))


def contiguous_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


def detach(input: Tensor) -> Tensor:
    """The same memory and version counter without history."""
    out = Tensor.__new__(Tensor)
    out.array = input.array
    out.root = input if input.root is None else input.root
    return out


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the element type of another."""
    return to(input, from_numpy_dtype(other.array.dtype))
