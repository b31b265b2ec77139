"""Sums at places that may repeat: what the gradients of every selection are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.tensors.tensor import Array


def accumulated_at(target: Array, index: tuple[Any, ...], values: Array) -> Array:
    """Adds `values`, broadcast, to `target` at the places `index` names; gives `target`.

    float16 and bfloat16 are added up in float32 and rounded once.
    """
    if target.dtype.itemsize == 2 and target.dtype.kind not in "iu":
        wide = accumulated_at(target.astype(np.float32), index, values.astype(np.float32))
        target[...] = wide
        return target
    if target.dtype.kind == "b":
        np.logical_or.at(target, index, values)
        return target
    if len(index) == 1 and type(index[0]) is not slice and target.ndim > 1:
        return _add_rows(target, index[0], values)
    if _linear(target, index):
        places = _linear_places(target.shape, index)
        shape = places.shape + target.shape[len(index) :]
        flat = np.broadcast_to(values, shape).reshape(-1)
        np.add.at(target.reshape(-1), places.reshape(-1), flat)
        return target
    np.add.at(target, index, values)
    return target


def _linear(target: Array, index: tuple[Any, ...]) -> bool:
    return (
        target.flags.c_contiguous
        and len(index) == target.ndim > 0
        and all(type(one) is not slice for one in index)
    )


def _linear_places(shape: tuple[int, ...], index: tuple[Any, ...]) -> Array:
    """Places in the flattened array, from one array of (possibly negative) indices for each
    axis."""
    places: Any = 0
    for extent, one in zip(shape, index, strict=True):
        places = places * extent + np.where(one < 0, one + extent, one)
    return np.asarray(places)


def _add_rows(target: Array, rows: Array, values: Array) -> Array:
    """Adds whole rows: those of one place are gathered by sorting and summed in their order."""
    parts = np.broadcast_to(values, rows.shape + target.shape[1:])
    rows = np.where(rows < 0, rows + target.shape[0], rows).reshape(-1)
    if not rows.size or not target.size:
        return target
    parts = parts.reshape(rows.size, *target.shape[1:])
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if first.size == rows.size:
        target[rows] += parts
    else:
        target[ordered[first]] += np.add.reduceat(parts[order], first, axis=0)
    return target
