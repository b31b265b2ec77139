"""Products of matrices, cut into pieces that the pool shares; each piece is one call of BLAS on one
core.

BLAS has threads of its own, which go on turning for a while after each product and take the cores
from the kernels that follow. So they are never woken: where the pieces lie depends on the shapes
alone, and results are the same bit for bit for any number of threads.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numbat.kernels.blas import GEMM, PLAIN, THREADS, layout
from numbat.kernels.calling import address
from numbat.kernels.pool import run

Array = np.ndarray[Any, np.dtype[Any]]

_ALONE = 1 << 18
"""Multiplications up to which OpenBLAS itself stays on the calling thread."""
_VECTOR = 9216
"""The same, where a factor is a vector."""
_SHARED = 1 << 21
"""Multiplications below which a product is not cut: handing over costs as much as it saves."""
_WIDTH = 192
"""Rows or columns that a piece has at least, so that packing what all pieces read weighs little."""
_DEPTH = 1024
"""Terms that a piece of a sum has at least."""
_MOST = 8


def matmul(x: Array, y: Array) -> Array:
    """`np.matmul` of two arrays of one type, (..., m, k) and (..., k, n) or a vector (k,), on all
    cores.

    Types other than float32 and float64 are left to numpy. Raises ValueError where the shapes do
    not fit, as `np.matmul` does; operators refuse with CORE-0210.
    """
    if x.dtype.char not in GEMM or x.dtype is not y.dtype:
        return np.asarray(np.matmul(x, y))
    if x.ndim == 2 == y.ndim:
        (rows, inner), columns = x.shape, y.shape[1]
        alone = _ALONE if rows > 1 and columns > 1 else _VECTOR
        if rows * inner * columns <= alone or inner != y.shape[0]:
            return np.asarray(np.matmul(x, y))
        return multiply(x, y, np.empty((rows, columns), x.dtype))
    if x.ndim < 2 or y.ndim < 2:
        if max(x.size, y.size) <= _VECTOR:
            return np.asarray(np.matmul(x, y))
        with THREADS:
            return np.asarray(np.matmul(x, y))
    if y.ndim == 2:
        # One large product in place of many small ones.
        found = matmul(x.reshape(prod(x.shape[:-1]), x.shape[-1]), y)
        return found.reshape(*x.shape[:-1], y.shape[1])
    return _batches(x, y)


def _batches(x: Array, y: Array) -> Array:
    """Products of each two matrices of two batches, cut along the longest axis of the batch."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    work = x.shape[-2] * x.shape[-1] * y.shape[-1]
    longest = max(range(len(batch)), key=batch.__getitem__)
    extent = batch[longest]
    if work <= _VECTOR:
        return np.asarray(np.matmul(x, y))
    if work * prod(batch) < _SHARED or extent < 2 or x.shape[-1] != y.shape[-2]:
        with THREADS:
            return np.asarray(np.matmul(x, y))
    out = np.empty((*batch, x.shape[-2], y.shape[-1]), x.dtype)
    x, y = (np.broadcast_to(one, (*batch, *one.shape[-2:])) for one in (x, y))
    before = (slice(None),) * longest

    def piece(begin: int, end: int) -> None:
        at = (*before, slice(begin, end))
        np.matmul(x[at], y[at], out=out[at])

    with THREADS:
        run(piece, (), extent, _grain(extent, 1))
    return out


def multiply(a: Array, b: Array, out: Array, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """`out = alpha * a @ b + beta * out` in place, by `np.matmul` where BLAS does not read a
    layout.

    Args:
        a: (m, k) float32 or float64; rows or columns hold their neighbours without gaps.
        b: (k, n), as `a`.
        out: (m, n) of the same type; its rows hold their neighbours without gaps.
        alpha: the factor of the product.
        beta: the factor of what `out` holds; at 0 it is not read.
    """
    if out.size and a.shape[1] and out.dtype.char in GEMM and a.dtype == b.dtype == out.dtype:
        of_a, of_b, of_out = layout(a), layout(b), layout(out)
        if of_a is not None and of_b is not None and of_out is not None and of_out[0] == PLAIN:
            with THREADS:
                _cut(a, b, out, alpha, beta, (of_a, of_b, of_out[1]))
            return out
    with THREADS:
        product = np.matmul(a, b)
    if alpha != 1.0:
        product *= alpha
    if beta == 0.0:
        out[...] = product
    else:
        if beta != 1.0:
            out *= beta
        out += product
    return out


def _cut(a: Array, b: Array, out: Array, alpha: float, beta: float, layouts: Any) -> None:
    """One product in pieces of rows, of columns, or of the terms of its sums."""
    gemm, item = GEMM[out.dtype.char], out.itemsize
    (of_a, of_b, out_step), (rows, columns), inner = layouts, out.shape, a.shape[1]
    at_a, at_b, at_out = address(a), address(b), address(out)
    step = out_step * item
    if rows * columns * inner < _SHARED:
        gemm(
            of_a[0], of_b[0], rows, columns, inner, alpha, at_a, of_a[1], at_b, of_b[1], beta,
            at_out, out_step,
        )  # fmt: skip
    elif max(rows, columns) < 2 * _WIDTH and inner >= 2 * _DEPTH:
        _summed(a, b, out, alpha, beta, (of_a, of_b))
    elif rows >= columns:
        down = a.strides[0]

        def piece(begin: int, end: int) -> None:
            gemm(
                of_a[0], of_b[0], end - begin, columns, inner, alpha, at_a + begin * down, of_a[1],
                at_b, of_b[1], beta, at_out + begin * step, out_step,
            )  # fmt: skip

        run(piece, (), rows, _grain(rows, _WIDTH))
    else:
        across = b.strides[1]

        def piece(begin: int, end: int) -> None:
            gemm(
                of_a[0], of_b[0], rows, end - begin, inner, alpha, at_a, of_a[1],
                at_b + begin * across, of_b[1], beta, at_out + begin * item, out_step,
            )  # fmt: skip

        run(piece, (), columns, _grain(columns, _WIDTH))


def _summed(a: Array, b: Array, out: Array, alpha: float, beta: float, layouts: Any) -> None:
    """A product of few results and many terms: each piece sums some of the terms."""
    gemm, item = GEMM[out.dtype.char], out.itemsize
    (of_a, of_b), (rows, columns), inner = layouts, out.shape, a.shape[1]
    at_a, at_b, across, down = address(a), address(b), a.strides[1], b.strides[0]
    grain = _grain(inner, _DEPTH)
    parts = np.empty((-(-inner // grain), rows, columns), out.dtype)
    at_parts, size = address(parts), rows * columns * item

    def piece(begin: int, end: int) -> None:
        gemm(
            of_a[0], of_b[0], rows, columns, end - begin, alpha, at_a + begin * across, of_a[1],
            at_b + begin * down, of_b[1], 0.0, at_parts + begin // grain * size, columns,
        )  # fmt: skip

    run(piece, (), inner, grain)
    if beta == 0.0:
        np.add.reduce(parts, axis=0, out=out)
    else:
        if beta != 1.0:
            out *= beta
        out += np.add.reduce(parts, axis=0)


def _grain(extent: int, least: int) -> int:
    """The length of a piece: the extent in a power of two of equal pieces, none below `least`."""
    count = 1
    while 2 * count <= min(_MOST, extent // least):
        count *= 2
    return -(-extent // count)
