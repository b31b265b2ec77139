"""Shapes, places and sets, by the array API standard."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import numbat.ops as ops
from numbat.array_api.typing import together
from numbat.tensors.tensor import Tensor, wrap

__all__ = [
    "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_to", "concat", "count_nonzero",
    "expand_dims", "flip", "matmul", "matrix_transpose", "moveaxis", "nonzero", "permute_dims",
    "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "take",
    "take_along_axis", "tensordot", "tile", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "vecdot", "where",
]  # fmt: skip


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of the tensors, all of one shape."""
    return list(ops.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """A view in another shape, in which axes of extent one are repeated."""
    return ops.broadcast_to(x, tuple(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The tensors one after another; flattened first where no axis is named."""
    several = together(*arrays)
    if axis is None:
        return ops.cat([ops.reshape(one, (-1,)) for one in several], 0)
    return ops.cat(list(several), axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """The tensors side by side along a new axis."""
    return ops.stack(list(together(*arrays)), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """A view of what lies at each index of an axis."""
    return ops.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A view with a further axis of extent one."""
    return ops.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """A view without the named axes, each of extent one (else CORE-0205)."""
    from numbat.ops.shaping import distinct_axes
    from numbat_registries import refuse

    axes = distinct_axes(axis, x.ndim, "squeeze")
    kept = [extent for at, extent in enumerate(x.shape) if at not in axes]
    if any(x.shape[at] != 1 for at in axes):
        raise refuse("CORE-0205", operator="squeeze", shape=list(x.shape), wanted=kept)
    return ops.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """A copy with axes reversed, all of them where none is named."""
    return ops.flip(x, tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """A view with axes moved to other places."""
    return ops.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """A view with its axes in another order."""
    return ops.permute(x, tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
    return x.mT


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The elements under another shape: a view, a copy, or where `copy` is None what it takes.

    Raises CORE-0205, and CORE-0206 where a copy is needed and refused.
    """
    if copy is False:
        return ops.view(x, tuple(shape))
    return ops.reshape(ops.clone(x) if copy else x, tuple(shape))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """A copy with the elements moved along axes."""
    if axis is not None and isinstance(shift, int):
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        return ops.roll(x, (shift,) * len(axes), axes)
    return ops.roll(x, shift, axis)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """A copy with each element several times in a row."""
    return ops.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """A copy laid out several times along each axis."""
    return ops.tile(x, tuple(repetitions))


# -- Products -------------------------------------------------------------------------------------


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product, in the type in which both meet."""
    return ops.matmul(*together(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sums of products over pairs of axes, in the type in which both meet."""
    first, second = together(x1, x2)
    return ops.tensordot(first, second, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of products along an axis, of one extent in both (CORE-0210), in the type in which
    they
    meet."""
    from numbat.ops.linalg import vecdot as of_vectors
    from numbat_registries import refuse

    if not x1.ndim or not x2.ndim or x1.shape[axis] != x2.shape[axis]:
        raise refuse("CORE-0210", operator="vecdot", first=list(x1.shape), second=list(x2.shape))
    return of_vectors(*together(x1, x2), dim=axis)


# -- Places ---------------------------------------------------------------------------------------


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at the given indices of an axis; negative ones count from the back."""
    from numbat.ops.viewing import axis_of

    at = axis_of(-1 if axis is None else axis, x.ndim, "take")
    return x[(slice(None),) * at + (indices.to(dtype="int64"),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each index the element at it along an axis."""
    return ops.take_along_dim(x, indices.to(dtype="int64"), axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, a tensor for each axis."""
    from numbat_registries import refuse

    if not x.ndim:
        raise refuse("CORE-0248", operator="nonzero", shape=[], wanted="one axis or more")
    found: tuple[Tensor, ...] = ops.nonzero(x, as_tuple=True)
    return found


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of one tensor where the condition is true, else of the other."""
    return ops.where(condition, *together(x1, x2))


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return wrap(np.asarray(np.count_nonzero(x.array, axis=axis, keepdims=keepdims), np.int64))


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element, the first of several."""
    return wrap(np.asarray(np.argmax(x.array, axis=axis, keepdims=keepdims), np.int64))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element, the first of several."""
    return wrap(np.asarray(np.argmin(x.array, axis=axis, keepdims=keepdims), np.int64))


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that sort an axis."""
    array = x.array
    if not descending:
        return wrap(np.argsort(array, axis=axis, kind="stable"))
    # Sorted backwards and turned, so that equal elements keep their order.
    turned = np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
    return wrap(array.shape[axis] - 1 - turned)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """A copy with an axis sorted."""
    order = argsort(x, axis=axis, descending=descending)
    return ops.take_along_dim(x, order, axis)


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements belong in a sorted vector."""
    order = None if sorter is None else sorter.array
    first, second = together(x1, x2)
    searched: Any = np.searchsorted
    return wrap(np.asarray(searched(first.array, second.array, side, order), np.int64))


# -- Sets -----------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Distinct values, the first place of each, the value of each place, and how often each
    occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values and the value of each place."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values, sorted; each NaN is distinct."""
    values, first, inverse, counts = np.unique(x.array, True, True, True, equal_nan=False)
    return UniqueAll(wrap(values), wrap(first), wrap(inverse.reshape(x.shape)), wrap(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct values and the value of each place."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values, sorted; each NaN is distinct."""
    return unique_all(x).values
