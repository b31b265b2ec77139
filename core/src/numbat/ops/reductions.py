"""Sums, means, products and extremes over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, expand, reshape
from numbat.tensors import dtypes
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "mean", "sum",
]  # fmt: skip


def axes_of(dim: Any, ndim: int, operator: str) -> tuple[int, ...]:
    """The axes to reduce, counted from the front and sorted; all of them for None or an empty sequence.

    Raises CORE-0204 for an axis that is not there, CORE-0207 for one named twice.
    """
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    several = (dim,) if isinstance(dim, int) else tuple(dim)
    axes = tuple(sorted(axis_of(int(one), ndim, operator) for one in several))
    if len(set(axes)) != len(axes):
        raise refuse("CORE-0207", operator=operator, dims=list(axes), ndim=ndim)
    return axes if ndim else ()


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with extent one at the reduced axes."""
    return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])


def spread(grad: Tensor, shape: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """A reduced tensor (its axes kept or not) broadcast over the axes that were reduced."""
    return expand(reshape(grad, kept_shape(shape, axes)), shape)


def reductions(rng: np.random.Generator) -> Any:
    """Samples of a reduction: all axes, one, several, kept and not."""
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3, 2)), 1), {"keepdim": True})
    yield Sample((rng.normal(size=(2, 3, 2)), (0, -1)))
    yield Sample((rng.normal(size=()),))


def accumulated(array: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    """The sum of an array over axes; float16 and bfloat16 are added up in float32, as PyTorch does."""
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        return array.sum(axis=axes, keepdims=keepdim, dtype=np.float32).astype(dtype)
    return array.sum(axis=axes, keepdims=keepdim, dtype=dtype)


def sum_dtype(input: Tensor, dtype: Any) -> np.dtype[Any]:
    """The type a sum or product is given in: int64 for whole numbers and bools, unless one is asked for."""
    if dtype is not None:
        return as_dtype(dtype).numpy
    return input.array.dtype if input.dtype.is_floating_point else dtypes.int64.numpy


@operator(reductions)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over the given axes, or over all of them."""
    axes = axes_of(dim, input.array.ndim, "sum")
    array = accumulated(input.array, axes, keepdim, sum_dtype(input, dtype))
    return record(array, sum_backward, (input,), values=(input.array.shape, axes))


def sum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (spread(grad, *node.values),)


@operator(reductions)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over the given axes, or over all of them.

    Raises CORE-0102 for whole numbers, whose mean has no type of its own.
    """
    if dtype is None and not input.dtype.is_floating_point:
        raise refuse("CORE-0102", dtype=input.dtype.name, operation="mean")
    axes = axes_of(dim, input.array.ndim, "mean")
    chosen = sum_dtype(input, dtype)
    count = 1
    for axis in axes:
        count *= input.array.shape[axis]
    wide = np.dtype(np.float32) if chosen.itemsize == 2 else chosen
    total = input.array.sum(axis=axes, keepdims=keepdim, dtype=wide)
    array = np.true_divide(total, count, dtype=wide)
    return record(
        array.astype(chosen), mean_backward, (input,), values=(input.array.shape, axes, count)
    )


def mean_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, axes, count = node.values
    return (spread(grad / count, shape, axes),)
