"""Elements taken along one axis by known places, and gradients put back there: each is the other's
derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.tensors.tensor import Array, Tensor


def taken(input: Tensor, places: Array, axis: int) -> Tensor:
    """The elements at places along an axis; `places` has the tensor's axes."""
    array = take(input.array, places, axis)
    return record(array, taken_backward, (input,), values=(places, axis, input.array.shape))


def take(array: Array, places: Array, axis: int) -> Any:
    """`np.take_along_axis`, also of an array of no axes."""
    return np.take_along_axis(array, places, axis) if array.ndim else array.copy()


def taken_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (put(grad, *node.values),)


def put(grad: Tensor, places: Array, axis: int, shape: tuple[int, ...]) -> Tensor:
    """Zeros of a shape with the elements added at places along an axis."""
    array = np.zeros(shape, grad.array.dtype)
    if not shape:
        array[...] = grad.array
    elif places.shape[axis] == 1:
        np.put_along_axis(array, places, grad.array, axis)
    else:
        index = list(np.ogrid[tuple(slice(extent) for extent in places.shape)])
        index[axis] = places
        np.add.at(array, tuple(index), grad.array)
    return record(array, put_backward, (grad,), values=(places, axis))


def put_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (taken(grad, *node.values),)
