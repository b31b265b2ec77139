"""Sums, means, products and questions over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.mapping import add_over, is_half, maximum_over, multiply_over, widened
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, expand, reshape
from numbat.tensors import dtypes
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "all", "any", "count_nonzero", "logsumexp", "mean", "nanmean", "nansum", "prod", "sum",
]  # fmt: skip


def axes_of(dim: Any, ndim: int, operator: str) -> tuple[int, ...]:
    """The axes to reduce, from the front and sorted; all of them for None or an empty sequence.

    Raises CORE-0204 for an axis that is not there, CORE-0207 for one named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int:
        return (axis_of(dim, ndim, operator),) if ndim else _none_of(dim, operator)
    several = tuple(dim) if hasattr(dim, "__iter__") else (int(dim),)
    if not several:
        return tuple(range(ndim))
    axes = tuple(sorted([axis_of(int(one), ndim, operator) for one in several]))
    if len(set(axes)) != len(axes):
        raise refuse("CORE-0207", operator=operator, dims=list(axes), ndim=ndim)
    return axes if ndim else ()


def _none_of(dim: int, operator: str) -> tuple[int, ...]:
    axis_of(dim, 0, operator)
    return ()


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with extent one at the reduced axes."""
    return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])


def spread(grad: Tensor, shape: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """A reduced tensor (its axes kept or not) broadcast over the axes that were reduced."""
    return expand(reshape(grad, kept_shape(shape, axes)), shape)


def extent_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def reductions(rng: np.random.Generator) -> Any:
    """Samples of a reduction: all axes, one, several, kept and not."""
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3, 2)), 1), {"keepdim": True})
    yield Sample((rng.normal(size=(2, 3, 2)), (0, -1)))
    yield Sample((np.asarray(rng.normal()),))


_BLOCK = 1024


def accumulated(array: Array, axes: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    """The sum of an array over axes; float16 and bfloat16 are added up in float32, as PyTorch does.

    numpy adds pairwise along rows, but one after another down columns; there the rows are added in
    blocks, and the blocks' sums after them, which keeps the rounding of long columns small.
    """
    if is_half(dtype):
        return add_over(array, axes, np.float32, None, keepdim).astype(dtype)
    if (
        axes == (0,)
        and dtype.kind == "f"
        and array.shape[0] >= 2 * _BLOCK
        and array.ndim > 1
        and array.flags.c_contiguous
    ):
        whole = array.shape[0] // _BLOCK
        blocks = array[: whole * _BLOCK].reshape(whole, _BLOCK, *array.shape[1:])
        total = add_over(add_over(blocks, 1, dtype), 0) + add_over(
            array[whole * _BLOCK :], 0, dtype
        )
        return total[None] if keepdim else total
    return add_over(array, axes, dtype, None, keepdim)


def sum_dtype(input: Tensor, dtype: Any) -> np.dtype[Any]:
    """The type of a sum or product: the one asked for, else int64 for whole numbers and bools."""
    if dtype is not None:
        return as_dtype(dtype).numpy
    held = input.array.dtype
    return held if held.kind not in "iub" else dtypes.int64.numpy


@operator(reductions)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over the given axes, or over all of them."""
    array = input.array
    axes = axes_of(dim, array.ndim, "sum")
    total = accumulated(array, axes, keepdim, sum_dtype(input, dtype))
    return record(total, sum_backward, (input,), values=(array.shape, axes))


def sum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (spread(grad, *node.values),)


def _with_nan(rng: np.random.Generator) -> Any:
    values = rng.normal(size=(2, 3))
    yield Sample((values,))
    yield Sample((values, 1), {"keepdim": True})


@operator(_with_nan)
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over axes of what is not NaN."""
    if not input.dtype.is_floating_point:
        return sum(input, dim, keepdim, dtype=dtype)
    array = input.array
    axes = axes_of(dim, array.ndim, "nansum")
    held = np.asarray(~np.isnan(array))
    total = accumulated(
        np.where(held, array, np.zeros((), array.dtype)), axes, keepdim, sum_dtype(input, dtype)
    )
    return record(total, nansum_backward, (input,), values=(array.shape, axes, held))


def nansum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, axes, held = node.values
    return (spread(grad, shape, axes) * wrap(held),)


@operator(reductions)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over the given axes, or over all of them.

    Raises CORE-0102 for whole numbers, whose mean has no type of its own.
    """
    array = input.array
    if dtype is None and array.dtype.kind in "iub":
        raise refuse("CORE-0102", dtype=input.dtype.name, operation="mean")
    axes = axes_of(dim, array.ndim, "mean")
    chosen = sum_dtype(input, dtype)
    count = extent_of(array.shape, axes)
    wide = np.dtype(np.float32) if chosen.itemsize == 2 else chosen
    total = accumulated(array, axes, keepdim, wide)
    result = np.true_divide(total, count, dtype=wide)
    if wide is not chosen:
        result = result.astype(chosen)
    return record(result, mean_backward, (input,), values=(array.shape, axes, count))


def mean_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, axes, count = node.values
    return (spread(grad / count, shape, axes),)


@operator(_with_nan, torch="nanmean")
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over axes of what is not NaN.

    Raises CORE-0102 for whole numbers.
    """
    if not input.dtype.is_floating_point:
        raise refuse("CORE-0102", dtype=input.dtype.name, operation="nanmean")
    axes = axes_of(dim, input.array.ndim, "nanmean")
    count = (~np.isnan(input.array)).sum(axis=axes, keepdims=keepdim)
    total = nansum(input, axes or None, keepdim, dtype=dtype)
    return total / wrap(np.asarray(count).astype(total.array.dtype))


def _sample_prod(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(0.5, 2, (2, 3)),))
    yield Sample((rng.uniform(0.5, 2, (2, 3)), 1), {"keepdim": True})
    yield Sample((np.array([[0.0, 1.5, 2.0], [0.0, 0.0, 3.0], [0.7, 1.2, 1.1]]), 1))
    yield Sample((np.array([2.0, 0.0, 3.0]),))


@operator(_sample_prod)
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over an axis, or over all of them."""
    array = input.array
    axes = axes_of(dim, array.ndim, "prod")
    chosen = sum_dtype(input, dtype)
    wide = np.float32 if is_half(chosen) else chosen
    total = multiply_over(array, axes, wide, None, keepdim)
    return record(total.astype(chosen), prod_backward, (input,), (input,), (axes, keepdim))


def prod_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    from numbat.ops.cumulative import product_of_others

    (x,) = node.unpack()
    axes, _ = node.values
    shape = x.array.shape
    if x.array.dtype != grad.array.dtype:
        x = x.to(grad.dtype)
    if x.array.all():
        whole = reshape(prod(x, axes or None, True), kept_shape(shape, axes))
        return (spread(grad, shape, axes) * (whole / x),)
    if len(axes) == 1:
        others = product_of_others(x, axes[0])
    else:
        others = reshape(product_of_others(reshape(x, (-1,)), 0), shape)
    return (spread(grad, shape, axes) * others,)


def _sample_bools(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(size=(2, 3)) > 0.5,))
    yield Sample((rng.uniform(size=(2, 3)) > 0.5, 1), {"keepdim": True})


def _asked(name: str, ufunc: Any, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    axes = axes_of(dim, input.array.ndim, name)
    held = ufunc.reduce(input.array.astype(np.bool_), axes, np.bool_, None, keepdim)
    # torch answers uint8 for uint8, from the time before it had bools.
    return wrap(held.astype(np.uint8) if input.array.dtype == np.uint8 else held)


@operator(_sample_bools, differentiable=False)
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements over the axes are other than zero; True of none."""
    return _asked("all", np.logical_and, input, dim, keepdim)


@operator(_sample_bools, differentiable=False)
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether an element over the axes is other than zero; False of none."""
    return _asked("any", np.logical_or, input, dim, keepdim)


def _sample_count(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 3, (2, 3)),))
    yield Sample((rng.integers(0, 3, (2, 3)) * 1.0, 1))


@operator(_sample_count, differentiable=False)
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements over the axes are other than zero."""
    axes = axes_of(dim, input.array.ndim, "count_nonzero")
    return wrap(add_over(input.array.astype(np.bool_), axes, np.int64))


def _sample_logsumexp(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 1))
    yield Sample((rng.normal(size=(2, 3)), (0, 1)), {"keepdim": True})


@operator(_sample_logsumexp)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over axes, without overflow."""
    from numbat.tensors.promotion import floating

    x = floating(input)
    axes = axes_of(dim, x.array.ndim, "logsumexp")
    wide = widened(x.array)
    if wide.size:
        top = maximum_over(wide, axes, None, None, True)
        top = np.where(np.isfinite(top), top, 0)
    else:
        top = np.zeros(kept_shape(wide.shape, axes), wide.dtype)
    total = np.log(add_over(np.exp(wide - top), axes, None, None, keepdim))
    total = (total + top.reshape(np.shape(total))).astype(x.array.dtype)
    return record(total, logsumexp_backward, (x,), (x,), axes, keep_result=True)


def logsumexp_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    shape, axes = x.array.shape, node.values
    result = spread(node.unpack_result(), shape, axes)
    return (spread(grad, shape, axes) * (x - result).exp(),)
