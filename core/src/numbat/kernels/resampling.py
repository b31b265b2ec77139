"""Sums over chosen places of an axis: what average pools, interpolation and padding have in common.

A `Table` names, for every cell of the result along one axis, the places of the input that are added
up, and their weights: a sparse matrix. Its transpose is the table of the gradient.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run
from numbat.tensors.tensor import Array

_resample_kernel = kernel("nb_resample", "PPPPPlllll")
_WORK = 1 << 16
"""Cells read that are worth a piece of their own."""


class Table:
    """A sparse matrix over one axis, by rows.

    Attributes:
        starts: row `o` holds the entries `starts[o]` to `starts[o + 1]`.
        places: for each entry, the place in the input.
        weights: for each entry, its weight (float64); None where all are 1.
        extent: how many places the input has.
    """

    def __init__(self, starts: Array, places: Array, weights: Array | None, extent: int) -> None:
        self.starts = starts
        self.places = places
        self.weights = weights
        self.extent = extent

    @classmethod
    def of(cls, places: Array, extent: int, weights: Array | None = None) -> Table:
        """From `(rows, k)` places, of which negative ones are left out, and weights of the same
        shape."""
        held = places >= 0
        starts = np.zeros(len(places) + 1, np.int64)
        np.cumsum(held.sum(axis=1), out=starts[1:])
        return cls(
            starts,
            places[held].astype(np.int64),
            None if weights is None else weights[held],
            extent,
        )

    @property
    def rows(self) -> int:
        """How many cells the result has."""
        return len(self.starts) - 1

    @cached_property
    def transposed(self) -> Table:
        """The table of the gradient; its entries keep the order of rows."""
        rows = np.repeat(np.arange(self.rows), np.diff(self.starts))
        order = np.argsort(self.places, kind="stable")
        starts = np.zeros(self.extent + 1, np.int64)
        np.cumsum(np.bincount(self.places, minlength=self.extent), out=starts[1:])
        weights = None if self.weights is None else self.weights[order]
        found = Table(starts, rows[order], weights, self.rows)
        found.__dict__["transposed"] = self
        return found

    @cached_property
    def single(self) -> Array | None:
        """The weights in float32."""
        return None if self.weights is None else self.weights.astype(np.float32)

    @cached_property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return (
            self.weights is None
            and self.rows == self.extent == len(self.places)
            and bool((self.places == np.arange(self.extent)).all())
            and bool((np.diff(self.starts) == 1).all())
        )


def resample(x: Array, tables: tuple[Table, ...]) -> Array:
    """`x` `(N, *in, C)` with a table applied along each axis between the first and the last.

    The half types are added up in float32 and rounded once. Axes that shrink most come first.
    """
    work = np.dtype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.dtype
    out = x.astype(work, copy=False)
    order = sorted(
        range(len(tables)), key=lambda axis: -tables[axis].extent / max(tables[axis].rows, 1)
    )
    for axis in order:
        if not tables[axis].is_identity:
            out = along_axis(out, axis + 1, tables[axis])
    return out.astype(x.dtype, copy=False)


def along_axis(x: Array, axis: int, table: Table) -> Array:
    """`x` with one axis replaced by the table's sums."""
    if x.dtype != np.float32 or not x.flags.c_contiguous or not x.size or not len(table.places):
        return along_axis_reference(x, axis, table)
    out = np.empty((*x.shape[:axis], table.rows, *x.shape[axis + 1 :]), np.float32)
    inner = 1
    for extent in x.shape[axis + 1 :]:
        inner *= extent
    weights = table.single
    args = (
        address(x), address(out), address(table.starts), address(table.places),
        None if weights is None else address(weights), table.rows, table.extent, inner,
    )  # fmt: skip
    rows = out.size // max(inner, 1)
    work = inner * max(len(table.places) // max(table.rows, 1), 1)
    run(_resample_kernel, args, rows, max(1, _WORK // work))
    return out


def along_axis_reference(x: Array, axis: int, table: Table) -> Array:
    """`along_axis` by numpy: entry by entry of all rows at once."""
    counts = np.diff(table.starts)
    shape: list[int] = [1] * x.ndim
    shape[axis] = -1
    out: Any = None
    for entry in range(int(counts.max(initial=0))):
        rows = counts > entry
        at = table.starts[:-1][rows] + entry
        part = x.take(table.places[at], axis=axis)
        if table.weights is not None:
            part = part * table.weights[at].astype(x.dtype).reshape(shape)
        if out is None and rows.all():
            out = part
            continue
        if out is None:
            out = np.zeros((*x.shape[:axis], table.rows, *x.shape[axis + 1 :]), x.dtype)
        if rows.all():
            out += part
        else:
            out[(slice(None),) * axis + (rows,)] += part
    if out is None:
        out = np.zeros((*x.shape[:axis], table.rows, *x.shape[axis + 1 :]), x.dtype)
    return np.asarray(out)
