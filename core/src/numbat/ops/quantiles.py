"""Medians, quantiles and modes along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.along import take, taken
from numbat.ops.extremals import Chosen, check_choice, chosen, grid, shared_among
from numbat.ops.mapping import widened
from numbat.ops.pointwise import lerp
from numbat.ops.registry import Sample, operator
from numbat.ops.sorting import order, sort
from numbat.ops.viewing import axis_of, reshape
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "median", "mode", "nanmedian", "nanquantile", "quantile",
]  # fmt: skip


def _sample_median(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 2, 4), 1))
    yield Sample((grid(rng, 3, 2), 0, True))


def _nan_counts(array: Array, axis: int) -> Array:
    odd = np.isnan(array) if array.dtype.kind not in "iub" else np.zeros(array.shape, np.bool_)
    return np.asarray(odd.sum(axis=axis, keepdims=True))


def _median_places(array: Array, axis: int, skip_nan: bool) -> Array:
    """The places of the lower medians along an axis, which is kept; of a NaN where one counts."""
    places = order(array, axis)
    nans = _nan_counts(array, axis)
    extent = array.shape[axis]
    if skip_nan:
        rank = np.maximum((extent - nans - 1) // 2, 0)
    else:
        # NaN counts as the largest, so the first one stands right after the others.
        rank = np.where(nans > 0, extent - nans, (extent - 1) // 2)
    return np.take_along_axis(places, rank, axis)


def _median(name: str, input: Tensor, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    array = input.array
    if dim is None:
        if not array.size:
            return wrap(np.full((), np.nan, array.dtype))
        flat = array.reshape(-1)
        found = flat[_median_places(flat, 0, skip_nan)[0]]
        return record(found, median_backward, (input,), (input,), keep_result=True)
    axis = axis_of(dim, array.ndim, name)
    if not array.ndim:
        return chosen(name, input, np.zeros((), np.int64), 0, keepdim)
    check_choice(name, array.shape, (axis,))
    return chosen(name, input, _median_places(array, axis, skip_nan), axis, keepdim)


def median_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    axes = tuple(range(x.array.ndim))
    return (shared_among(grad, x.array, node.unpack_result().array, axes, True),)


@operator(_sample_median)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median, NaN where an element is; along an axis with its index.

    Of an even number of elements it is the lower of the two in the middle.

    Raises CORE-0221 for an axis without elements.
    """
    return _median("median", input, dim, keepdim, False)


@operator(_sample_median)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of what is not NaN (see `median`).

    Raises CORE-0221 for an axis without elements.
    """
    return _median("nanmedian", input, dim, keepdim, True)


def _sample_mode(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 3, 2), 0, True))


@operator(_sample_mode)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The most frequent element along an axis (of several the smallest), and its last index.

    Raises CORE-0221 for an axis without elements.
    """
    array = input.array
    axis = axis_of(dim, array.ndim, "mode")
    if not array.ndim:
        return chosen("mode", input, np.zeros((), np.int64), 0, keepdim)
    check_choice("mode", array.shape, (axis,))
    places = order(array, axis)
    keys = np.moveaxis(take(widened(array), places, axis), axis, -1)
    index = np.arange(keys.shape[-1])
    starts = np.zeros(keys.shape, np.int64)
    starts[..., 1:] = np.where(keys[..., 1:] != keys[..., :-1], index[1:], 0)
    count = index - np.maximum.accumulate(starts, -1)
    # The longest run's end: the first one of them, so that the smallest element wins.
    best = np.argmax(count, axis=-1)[..., None]
    found = np.take_along_axis(np.moveaxis(places, axis, -1), best, -1)
    return chosen("mode", input, np.ascontiguousarray(np.moveaxis(found, -1, axis)), axis, keepdim)


def _sample_quantile(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3), 0.4))
    yield Sample((grid(rng, 2, 4), 0.3, 1), {"keepdim": True})
    for way in ("lower", "higher", "midpoint", "nearest"):
        yield Sample((grid(rng, 4, 2), 0.4, 0), {"interpolation": way})


WAYS = ["linear", "lower", "higher", "midpoint", "nearest"]


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, way: str, skip_nan: bool
) -> Tensor:
    if way not in WAYS:
        raise refuse(
            "CORE-0222", operator=name, argument="interpolation", given=str(way), known=WAYS
        )
    wanted = q.array if isinstance(q, Tensor) else np.asarray(q, input.array.dtype)
    if wanted.ndim > 1:
        raise refuse(
            "CORE-0227", operator=name, argument="q", shape=list(wanted.shape),
            wanted="one axis or none",
        )  # fmt: skip
    if wanted.size and not ((wanted >= 0) & (wanted <= 1)).all():
        raise refuse(
            "CORE-0223",
            operator=name,
            argument="q",
            given=str(wanted.tolist()),
            wanted="from 0 to 1",
        )
    if not input.array.size:
        raise refuse("CORE-0221", operator=name, shape=list(input.shape), dims=[0])
    x = reshape(input, (-1,)) if dim is None else input
    axis = axis_of(0 if dim is None else dim, x.array.ndim, name)
    if not x.array.ndim:
        x = reshape(x, (1,))
    ordered = sort(x, axis).values
    array = ordered.array
    extent, nans = array.shape[axis], _nan_counts(array, axis)
    # The rank in its own axis, at the front, so that several quantiles stack.
    shape = (wanted.size,) + (1,) * array.ndim
    share = wanted.reshape(shape).astype(array.dtype)
    if skip_nan:
        rank = share * np.maximum(extent - nans - 1, 0)[None].astype(array.dtype)
    else:
        rank = share * array.dtype.type(extent - 1)
        rank = np.where((nans > 0)[None], array.dtype.type(extent - 1), rank)
    if way == "lower":
        rank = np.floor(rank)
    elif way == "higher":
        rank = np.ceil(rank)
    elif way == "nearest":
        rank = np.rint(rank)
    below = np.floor(rank).astype(np.int64)
    one = _at_ranks(ordered, below, axis)
    if way in ("linear", "midpoint"):
        above = _at_ranks(ordered, np.ceil(rank).astype(np.int64), axis)
        weight = np.full_like(rank, 0.5) if way == "midpoint" else rank - below
        one = lerp(one, above, wrap(weight.astype(array.dtype)))
    single = wanted.ndim == 0
    kept = list(array.shape)
    kept[axis] = 1
    if dim is None:
        kept = [1] * input.array.ndim if keepdim else []
    elif not keepdim:
        del kept[axis]
    if input.array.ndim == 0:
        kept = []
    return reshape(one, tuple(kept) if single else (wanted.size, *kept))


def _at_ranks(ordered: Tensor, rank: Array, axis: int) -> Tensor:
    """The elements at ranks along an axis, one axis more at the front."""
    shape = ordered.array.shape
    kept = tuple([1 if place == axis else extent for place, extent in enumerate(shape)])
    several = np.moveaxis(np.broadcast_to(rank, (rank.shape[0], *kept)), 0, axis)
    # The axis of extent one and that of the quantiles become one.
    flat = several.reshape((*kept[:axis], rank.shape[0], *kept[axis + 1 :]))
    found = taken(ordered, np.ascontiguousarray(flat), axis)
    front = found.permute(axis, *[place for place in range(len(shape)) if place != axis])
    return reshape(front, (rank.shape[0], *kept))


@operator(_sample_quantile)
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Tensor:  # fmt: skip
    """The quantiles along an axis, or of all elements; NaN where an element is.

    Several `q` stack at the front.

    Raises CORE-0221 for a tensor without elements, CORE-0222 for an unknown interpolation,
    CORE-0223 for `q` outside [0, 1], CORE-0227 for `q` of more than one axis.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@operator(_sample_quantile)
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Tensor:  # fmt: skip
    """The quantiles of what is not NaN; raises what `quantile` raises."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)
