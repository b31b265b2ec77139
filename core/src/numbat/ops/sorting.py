"""Orders along an axis: sorted elements, the largest few, and the one at a rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import record_many
from numbat.ops.along import take
from numbat.ops.cumulative import running_backward
from numbat.ops.extremals import Chosen, chosen, grid
from numbat.ops.mapping import widened
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "argsort", "kthvalue", "msort", "sort", "topk",
]  # fmt: skip


def _sample_sort(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 3, 2), 0, True))


def order(array: Array, axis: int, descending: bool = False) -> Array:
    """The places of the elements in order, equal ones in their own; NaN counts as the largest."""
    keys = widened(array)
    if not array.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.asarray(np.argsort(keys, axis, kind="stable"), np.int64)
    found = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.ascontiguousarray(array.shape[axis] - 1 - np.flip(found, axis), np.int64)


def _ordered(input: Tensor, places: Array, axis: int) -> Chosen:
    array = take(input.array, places, axis)
    outs = record_many(
        (array, places), running_backward, (input,), (), (places, axis, input.array.shape),
        (True, False),
    )  # fmt: skip
    return Chosen(*outs)


@operator(_sample_sort)
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> Chosen:
    """The elements in order along an axis and their indices; stable, with NaN as the largest.

    Raises CORE-0204 for an axis that is not there.
    """
    axis = axis_of(dim, input.array.ndim, "sort")
    return _ordered(input, order(input.array, axis, descending), axis)


@operator(_sample_sort, differentiable=False)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices of the elements in order along an axis (see `sort`).

    Raises CORE-0204 for an axis that is not there.
    """
    return wrap(order(input.array, axis_of(dim, input.array.ndim, "argsort"), descending))


def _sample_msort(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 3, 2),))


@operator(_sample_msort)
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return sort(input, 0).values


def _sample_topk(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 4), 2))
    yield Sample((grid(rng, 4, 2), 3, 0, False))


def check_rank(operator: str, k: int, lowest: int, extent: int) -> None:
    """Raises CORE-0223 for a rank that the axis has not."""
    if not lowest <= k <= extent:
        raise refuse(
            "CORE-0223", operator=operator, argument="k", given=str(k),
            wanted=f"from {lowest} to {extent}",
        )  # fmt: skip


@operator(_sample_topk)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Chosen:
    """The `k` largest (or smallest) elements along an axis, in falling (rising) order.

    Raises CORE-0223 for more than there are, CORE-0204 for an axis that is not there.
    """
    array = input.array
    axis = axis_of(dim, array.ndim, "topk")
    extent = array.shape[axis] if array.ndim else 1
    check_rank("topk", k, 0, extent)
    if not array.ndim:
        return chosen("topk", input, np.zeros((), np.int64), 0, True)
    if k * 8 > extent or not largest:
        places = _part(order(array, axis, largest), axis, slice(0, k))
    else:
        # A few of many: the largest are parted off, and only those are put in order.
        keys = widened(array)
        few = _part(np.argpartition(keys, extent - k, axis), axis, slice(extent - k, None))
        ranked = order(np.take_along_axis(keys, few, axis), axis, True)
        places = np.take_along_axis(few, ranked, axis)
    return _ordered(input, np.ascontiguousarray(places, np.int64), axis)


def _part(array: Array, axis: int, part: slice) -> Array:
    return array[(*[slice(None)] * axis, part)]


def _sample_kthvalue(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 4), 2))
    yield Sample((grid(rng, 4, 2), 3, 0, True))


@operator(_sample_kthvalue)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The `k`-th smallest element along an axis, counted from 1, and its index.

    Raises CORE-0223 for a rank that the axis has not.
    """
    array = input.array
    axis = axis_of(dim, array.ndim, "kthvalue")
    check_rank("kthvalue", k, 1, array.shape[axis] if array.ndim else 1)
    places = order(array, axis)
    if array.ndim:
        places = _part(places, axis, slice(k - 1, k))
    return chosen("kthvalue", input, places, axis, keepdim)
