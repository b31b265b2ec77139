"""Distinct elements, places in sorted sequences, and counts by bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.mapping import widened
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "bincount", "bucketize", "histc", "searchsorted", "unique", "unique_consecutive",
]  # fmt: skip


def _sample_unique(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 4, (2, 3)),))
    yield Sample((rng.integers(0, 2, (4, 2)) * 1.0,), {"return_counts": True, "dim": 0})


def _given(values: Array, inverse: Array, counts: Array, want: tuple[bool, bool]) -> Any:
    outs = [wrap(values)]
    if want[0]:
        outs.append(wrap(inverse.astype(np.int64)))
    if want[1]:
        outs.append(wrap(counts.astype(np.int64)))
    return outs[0] if len(outs) == 1 else tuple(outs)


@operator(_sample_unique, differentiable=False)
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The distinct elements in order (or the distinct slices along an axis), with the place of each
    element among them and their counts, where asked for."""
    array = input.array
    axis = None if dim is None else axis_of(dim, array.ndim, "unique")
    values, inverse, counts = np.unique(
        widened(array), return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    shape = array.shape if dim is None else (-1,)
    return _given(
        values.astype(array.dtype, copy=False), inverse.reshape(shape), counts,
        (return_inverse, return_counts),
    )  # fmt: skip


@operator(_sample_unique, differentiable=False)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along an axis) without those equal to the one before."""
    array = input.array
    axis = 0 if dim is None else axis_of(dim, array.ndim, "unique_consecutive")
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, axis, 0)
    count = rows.shape[0]
    fresh = np.ones(count, np.bool_)
    if count:
        differ = rows[1:] != rows[:-1]
        fresh[1:] = differ if differ.ndim == 1 else differ.reshape(count - 1, -1).any(axis=1)
    starts = np.flatnonzero(fresh)
    values = rows[starts]
    inverse = np.cumsum(fresh) - 1
    counts = np.diff(np.append(starts, count))
    if dim is None:
        inverse = inverse.reshape(array.shape)
    else:
        values = np.ascontiguousarray(np.moveaxis(values, 0, axis))
    return _given(values, inverse, counts, (return_inverse, return_counts))


def _sample_search(rng: np.random.Generator) -> Any:
    yield Sample((np.array([0.1, 0.4, 0.9]), rng.uniform(size=(2, 3))))
    yield Sample((np.array([[1, 3, 5], [2, 4, 6]]), np.array([[3, 6], [3, 6]])), {"right": True})


@operator(_sample_search, differentiable=False, method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where elements go into sorted sequences: before equal ones, or after them (`right`).

    Raises CORE-0222 for an unknown side, CORE-0227 where the leading axes differ.
    """
    if side is not None:
        if side not in ("left", "right"):
            raise refuse(
                "CORE-0222", operator="searchsorted", argument="side", given=str(side),
                known=["left", "right"],
            )  # fmt: skip
        right = side == "right"
    sequences = widened(sorted_sequence.array)
    if sorter is not None:
        sequences = np.take_along_axis(sequences, sorter.array, -1)
    values = widened(input.array) if isinstance(input, Tensor) else np.asarray(input)
    which: Any = "right" if right else "left"
    kind = np.int32 if out_int32 else np.int64
    if sequences.ndim <= 1:
        found = np.searchsorted(sequences.reshape(-1), values, which)
        return wrap(np.asarray(found).astype(kind))
    if sequences.shape[:-1] != values.shape[:-1]:
        raise refuse(
            "CORE-0227", operator="searchsorted", argument="input", shape=list(values.shape),
            wanted=f"leading axes {list(sequences.shape[:-1])}",
        )  # fmt: skip
    rows = sequences.reshape(-1, sequences.shape[-1])
    out = np.empty((rows.shape[0], values.shape[-1]), kind)
    for place, row in enumerate(values.reshape(out.shape)):
        out[place] = np.searchsorted(rows[place], row, which)
    return wrap(out.reshape(values.shape))


def _sample_bucketize(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(size=(2, 3)), np.array([0.1, 0.4, 0.9])))


@operator(_sample_bucketize, differentiable=False, method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The bucket of each element between sorted boundaries; `right`: a boundary begins one.

    Raises CORE-0227 for boundaries of several axes.
    """
    if boundaries.array.ndim != 1:
        raise refuse(
            "CORE-0227", operator="bucketize", argument="boundaries",
            shape=list(boundaries.shape), wanted="one axis",
        )  # fmt: skip
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _sample_histc(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(size=(2, 5)), 4, 0, 1))
    yield Sample((rng.uniform(size=(2, 5)), 3))


@operator(_sample_histc, differentiable=False)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` bins from `min` to `max` (both 0: of the data).

    Raises CORE-0223 for no bins, or where `max` is below `min`.
    """
    if bins < 1:
        raise refuse(
            "CORE-0223", operator="histc", argument="bins", given=str(bins), wanted="one or more"
        )
    # The bins are computed in the tensor's own type, halves too, as PyTorch does.
    values = input.array.reshape(-1)
    low, high = float(min), float(max)
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if not low < high:
        raise refuse(
            "CORE-0223", operator="histc", argument="max", given=str(max), wanted=f"above {min}"
        )
    held = values[(values >= low) & (values <= high)]
    one = held.dtype.type
    place = ((held - one(low)) / one(high - low) * one(bins)).astype(np.float64).astype(np.int64)
    counts = np.bincount(np.minimum(place, bins - 1), minlength=bins)
    return wrap(counts.astype(input.array.dtype))


def _sample_bincount(rng: np.random.Generator) -> Any:
    yield Sample((rng.integers(0, 4, 6),))
    yield Sample((rng.integers(0, 4, 6), rng.uniform(size=6)), {"minlength": 7})


@operator(_sample_bincount, differentiable=False)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number from zero occurs, or the sum of its weights.

    Raises CORE-0220 for floating numbers, CORE-0223 for negative ones, CORE-0227 for several axes.
    """
    from numbat.ops.mapping import whole_only

    array = input.array
    if array.ndim != 1:
        raise refuse(
            "CORE-0227", operator="bincount", argument="input", shape=list(array.shape),
            wanted="one axis",
        )  # fmt: skip
    whole_only("bincount", input)
    if array.size and array.min() < 0:
        raise refuse(
            "CORE-0223", operator="bincount", argument="input", given=str(int(array.min())),
            wanted="zero or more",
        )  # fmt: skip
    places = array.astype(np.int64)
    if weights is None:
        return wrap(np.bincount(places, minlength=minlength).astype(np.int64))
    kind = weights.array.dtype if weights.array.dtype == np.float32 else np.dtype(np.float64)
    held = np.bincount(places, weights.array.astype(np.float64), minlength)
    return wrap(held.astype(kind))
