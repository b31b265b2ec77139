"""Sums, means, extremes and their kin over axes, by the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

import numbat.ops as ops
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std",
    "sum", "var",
]  # fmt: skip


def _axes(x: Tensor, axis: Any, operator: str) -> tuple[int, ...]:
    from numbat.ops.shaping import distinct_axes

    return tuple(range(x.ndim)) if axis is None else distinct_axes(axis, x.ndim, operator)


def _flat(x: Tensor, axis: Any, operator: str) -> tuple[Tensor, list[int]]:
    """The tensor with the axes to reduce as one, its last, and the shape with those axes kept."""
    axes = _axes(x, axis, operator)
    rest = [at for at in range(x.ndim) if at not in axes]
    moved = ops.permute(x, (*rest, *axes))
    shape = [x.shape[at] for at in rest]
    count = 1
    for at in axes:
        count *= x.shape[at]
    kept = [1 if at in axes else extent for at, extent in enumerate(x.shape)]
    return ops.reshape(moved, (*shape, count)), kept


def _none(x: Tensor, axis: Any) -> bool:
    # In torch an empty sequence names all axes, in the standard none.
    return axis is not None and not isinstance(axis, int) and len(axis) == 0


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, of whole numbers in int64."""
    if dtype is None and not x.is_floating_point():
        dtype = "int64"
    if _none(x, axis):
        return x.to(as_dtype(dtype)) if dtype is not None else ops.clone(x)
    return ops.sum(x, axis, keepdims, dtype=None if dtype is None else as_dtype(dtype))


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes, of whole numbers in int64."""
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else "int64"
    flat, kept = _flat(x.to(as_dtype(dtype)), axis, "prod")
    found = ops.prod(flat, -1)
    return ops.reshape(found, kept) if keepdims else found


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes."""
    return ops.clone(x) if _none(x, axis) else ops.mean(x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over axes, of the count less `correction`."""
    flat, kept = _flat(x, axis, "var")
    found = ops.var(flat, -1, correction=correction)
    return ops.reshape(found, kept) if keepdims else found


def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation over axes."""
    return ops.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _extreme(operator: Any, name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    flat, kept = _flat(x, axis, name)
    if not flat.shape[-1]:
        raise refuse("CORE-0205", operator=name, shape=list(x.shape), wanted=kept)
    found: Tensor = operator(flat, -1)
    return ops.reshape(found, kept) if keepdims else found


def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes (CORE-0205 over none)."""
    return _extreme(ops.amax, "max", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes (CORE-0205 over none)."""
    return _extreme(ops.amin, "min", x, axis, keepdims)


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element over axes is zero."""
    axes = _axes(x, axis, "all")
    return wrap(np.asarray(np.all(x.array, axis=axes, keepdims=keepdims), np.bool_))


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element over axes is not zero."""
    axes = _axes(x, axis, "any")
    return wrap(np.asarray(np.any(x.array, axis=axes, keepdims=keepdims), np.bool_))


def _cumulative(
    operator: Any, start: int, name: str, x: Tensor, axis: int | None, dtype: Any, initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise refuse("CORE-0248", operator=name, shape=list(x.shape), wanted="one axis")
        axis = 0
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else "int64"
    found: Tensor = operator(x.to(as_dtype(dtype)), axis)
    if initial:
        shape = list(x.shape)
        shape[axis] = 1
        found = ops.cat([wrap(np.full(shape, start, found.array.dtype)), found], axis)
    return found


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements so far along an axis."""
    return _cumulative(ops.cumsum, 0, "cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements so far along an axis."""
    return _cumulative(ops.cumprod, 1, "cumulative_prod", x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """The differences of neighbours along an axis, `n` times over."""
    parts = [one for one in (prepend, x, append) if one is not None]
    whole = ops.cat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        extent = whole.shape[axis]
        after = ops.narrow(whole, axis, 1, extent - 1) if extent else whole
        before = ops.narrow(whole, axis, 0, extent - 1) if extent else whole
        whole = ops.sub(after, before) if whole.dtype.category else ops.logical_xor(after, before)
    return whole
