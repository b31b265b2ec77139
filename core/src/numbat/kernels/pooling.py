"""The greatest cell of each window, and cells laid back at their places.

Windows are told by the places of their cells along each axis, `(windows, cells)` with -1 for a cell
outside the input; so strides, dilation, padding and adaptive windows are all the same here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run
from numbat.tensors.tensor import Array

_greatest_kernel = kernel("nb_max_pool", "PPPPPPPll")
_back_kernel = kernel("nb_max_pool_back", "PPPlllll")
_BLOCK = 32
_WORK = 1 << 16
"""Cells read that are worth a piece of their own."""
_ALONE = np.zeros((1, 1), np.int64)
"""The one window of an axis that is not there."""


@lru_cache(maxsize=512)
def places(extent: int, windows: int, cells: int, stride: int, begin: int, gap: int) -> Array:
    """The places of the cells of evenly spaced windows, `(windows, cells)`; -1 outside the
    input."""
    at = np.arange(windows)[:, None] * stride - begin + np.arange(cells) * gap
    return np.where((at >= 0) & (at < extent), at, -1)


@lru_cache(maxsize=512)
def adaptive_places(extent: int, windows: int) -> Array:
    """The places of the cells of windows that cover the input evenly, overlapping where they must.

    Window `i` holds the places from `floor(i * extent / windows)` up to `ceil((i + 1) * extent /
    windows)`.
    """
    index = np.arange(windows)
    first = index * extent // windows
    end = -(-(index + 1) * extent // windows)
    at = first[:, None] + np.arange(int((end - first).max(initial=1)))
    return np.where(at < end[:, None], at, -1)


def greatest(x: Array, windows: tuple[Array, ...]) -> tuple[Array, Array]:
    """The greatest value of each window of `x` `(N, *in, C)`, and its place in the flattened space.

    A NaN is greater than every number, as in PyTorch; of equal values the first is taken.
    """
    if x.dtype != np.float32 or x[0, ..., 0].size >= 1 << 31 or not x.size:
        return greatest_reference(x, windows)
    outs = [len(one) for one in windows]
    best = np.empty((x.shape[0], *outs, x.shape[-1]), np.float32)
    index = np.empty(best.shape, np.int32)
    lead = 3 - len(windows)
    at = [_ALONE] * lead + list(windows)
    shape = np.array(
        [1] * lead + list(x.shape[1:-1]) + [len(one) for one in at]
        + [one.shape[1] for one in at] + [x.shape[-1]], np.int64,
    )  # fmt: skip
    args = (
        address(x), address(best), address(index), *map(address, at), address(shape),
    )  # fmt: skip
    rows = x.shape[0] * len(at[0]) * len(at[1])
    work = len(at[2]) * x.shape[-1] * int(np.prod(shape[6:9]))
    run(_greatest_kernel, args, rows, max(1, _WORK // max(work, 1)))
    return best, index


def greatest_reference(x: Array, windows: tuple[Array, ...]) -> tuple[Array, Array]:
    """`greatest` by numpy: cell by cell of all windows at once."""
    space = x.shape[1:-1]
    shape = (x.shape[0], *(len(one) for one in windows), x.shape[-1])
    lowest = np.array(-np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min, x.dtype)
    best = np.full(shape, lowest)
    index = np.full(shape, -1, np.int64)
    for cell in product(*(range(one.shape[1]) for one in windows)):
        at = [one[:, part] for one, part in zip(windows, cell, strict=True)]
        inside = np.ones(1, bool)
        flat: Any = np.zeros(1, np.int64)
        for axis, one in enumerate(at):
            inside = inside[..., None] & (one >= 0)
            flat = flat[..., None] * space[axis] + one
        selected: tuple[Any, ...] = (slice(None), *np.ix_(*at))
        part = x[selected]
        inside, flat = inside[0][..., None], flat[0][..., None]
        taken = inside & ((part > best) | (part != part) | (index < 0))
        best = np.where(taken, part, best)
        index = np.where(taken, flat, index)
    return best, index


def laid_back(grad: Array, index: Array, space: tuple[int, ...]) -> Array:
    """Zeros `(N, *space, C)` with each value of `grad` `(N, *out, C)` added at its place."""
    if grad.dtype != np.float32 or index.dtype != np.int32 or not grad.size:
        return laid_back_reference(grad, index, space)
    batch, channels = grad.shape[0], grad.shape[-1]
    out = np.empty((batch, *space, channels), np.float32)
    outs, cells = int(np.prod(grad.shape[1:-1])), int(np.prod(space))
    units = batch * -(-channels // _BLOCK)
    args = (address(grad), address(index), address(out), outs, cells, channels)
    run(_back_kernel, args, units, max(1, _WORK // ((outs + cells) * min(channels, _BLOCK))))
    return out


def laid_back_reference(grad: Array, index: Array, space: tuple[int, ...]) -> Array:
    """`laid_back` by numpy; sums are kept in float64."""
    batch, channels = grad.shape[0], grad.shape[-1]
    cells = int(np.prod(space))
    flat = _flat(index, batch, cells, channels)
    held = index >= 0  # A window without a cell inside has no place.
    sums = np.bincount(
        flat[held], grad[held].astype(np.float64), minlength=batch * cells * channels
    )
    return sums.astype(grad.dtype).reshape(batch, *space, channels)


def laid_out(values: Array, index: Array, space: tuple[int, ...]) -> Array:
    """Zeros `(N, *space, C)` with each value `(N, *out, C)` written at its place; the last one
    stays."""
    batch, channels = values.shape[0], values.shape[-1]
    out = np.zeros((batch, *space, channels), values.dtype)
    out.reshape(-1)[_flat(index, batch, int(np.prod(space)), channels)] = values
    return out


def taken(x: Array, index: Array) -> Array:
    """The values of `x` `(N, *space, C)` at the places that `index` `(N, *out, C)` names."""
    batch, channels = x.shape[0], x.shape[-1]
    cells = int(np.prod(x.shape[1:-1]))
    return np.asarray(x.reshape(-1)[_flat(index, batch, cells, channels)])


def _flat(index: Array, batch: int, cells: int, channels: int) -> Array:
    """Places within `(N, cells, C)` from places within the cells."""
    lead = np.arange(batch).reshape(-1, *([1] * (index.ndim - 1))) * cells
    return np.asarray((index + lead) * channels + np.arange(channels))
