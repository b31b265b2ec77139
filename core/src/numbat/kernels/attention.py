"""Attention in tiles: `attention.c` over arrays (batches, heads, rows, width) of float32."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from numbat.kernels.blas import THREADS, function_address
from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run

Array = np.ndarray[Any, np.dtype[Any]]

TILE = 128


class _Matrix(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p)] + [
        (name, ctypes.c_int64) for name in ("batch", "head", "row")
    ]


class _Attention(ctypes.Structure):
    _fields_ = [
        *((name, _Matrix) for name in (
            "query", "key", "value", "out", "mask", "grad", "for_query", "for_key", "for_value",
        )),
        ("log_sums", ctypes.c_void_p), ("gemm", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in (
            "batches", "heads", "rows", "key_rows", "width", "value_width", "share", "causal",
        )),
        ("scale", ctypes.c_double),
    ]  # fmt: skip


_FORWARD = kernel("nb_attention_forward", "PPll")
_BACKWARD = kernel("nb_attention_backward", "PPll")
_GEMM = function_address("f")
AVAILABLE = _GEMM is not None
"""Whether numpy's BLAS was found; without it attention is composed of operators."""


def readable(array: Array) -> bool:
    """Whether the kernels read the array as it is: float32, rows without gaps, no repeated or
    turned rows."""
    item = array.itemsize
    return (
        array.dtype == np.float32
        and (array.shape[-1] == 1 or array.strides[-1] == item)
        and (array.shape[-2] == 1 or array.strides[-2] >= array.shape[-1] * item)
        and all(step % item == 0 for step in array.strides)
    )


def _matrix(array: Array | None) -> _Matrix:
    if array is None:
        return _Matrix(None, 0, 0, 0)
    steps = [
        0 if extent == 1 else step // 4
        for extent, step in zip(array.shape, array.strides, strict=True)
    ]
    # BLAS wants a step between rows of a row's length at least, also where there is one row.
    row = steps[2] if array.shape[2] > 1 else array.shape[3]
    return _Matrix(address(array), steps[0], steps[1], row)


def _mask(mask: Array | None) -> _Matrix:
    """A mask may repeat over rows, so its steps are taken as they are."""
    if mask is None:
        return _Matrix(None, 0, 0, 0)
    return _Matrix(address(mask), *[step // 4 for step in mask.strides[:3]])


def _by_rows(shape: tuple[int, ...], *, zeros: bool = False) -> Array:
    """An array (batches, heads, rows, width) whose memory is (batches, rows, heads, width)."""
    batches, heads, rows, width = shape
    make = np.zeros if zeros else np.empty
    return make((batches, rows, heads, width), np.float32).transpose(0, 2, 1, 3)


def _problem(
    query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> _Attention:
    batches, heads, rows, width = query.shape
    return _Attention(
        query=_matrix(query), key=_matrix(key), value=_matrix(value), mask=_mask(mask), gemm=_GEMM,
        batches=batches, heads=heads, rows=rows, key_rows=key.shape[2], width=width,
        value_width=value.shape[3], share=heads // key.shape[1], causal=int(causal), scale=scale,
    )  # fmt: skip


def forward(
    arrays: tuple[Array, Array, Array], mask: Array | None, *, causal: bool, scale: float
) -> tuple[Array, Array]:
    """softmax(scale Q K^T + mask) V, and the logarithms of the sums of exponentials of its rows.

    Args:
        arrays: query (batches, heads, rows, width), then key and value (batches, heads / share, key
            rows, width of key or value); all as `readable` wants them.
        mask: added to the scores; it broadcasts by strides of zero to (batches, heads, rows, key
            rows).
        causal: row i sees the keys up to i.
        scale: the factor of the scores.
    """
    query, key, value = arrays
    batches, heads, rows, _ = query.shape
    out = _by_rows((batches, heads, rows, value.shape[3]))
    log_sums = np.empty((batches, heads, rows), np.float32)
    problem = _problem(query, key, value, mask, causal, scale)
    problem.out, problem.log_sums = _matrix(out), address(log_sums)
    tiles = -(-rows // TILE)
    where, floats = ctypes.addressof(problem), min(rows, TILE) * key.shape[2]

    def piece(begin: int, end: int) -> None:
        scratch = np.empty(floats, np.float32)
        _FORWARD(where, address(scratch), begin, end)

    with THREADS:
        run(piece, (), batches * heads * tiles, _grain(floats))
    return out, log_sums


def _grain(floats: int) -> int:
    """Tiles in a piece: some 65,536 scores."""
    return max(1, 65536 // max(floats, 1))


def backward(
    grad: Array, arrays: tuple[Array, Array, Array], mask: Array | None, out: Array,
    log_sums: Array,
    *, causal: bool, scale: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients of query, key and value; arguments as in `forward`, and what it gave."""
    query, key, value = arrays
    batches, _, rows, _ = query.shape
    for_query = _by_rows(query.shape)
    for_key, for_value = _by_rows(key.shape, zeros=True), _by_rows(value.shape, zeros=True)
    problem = _problem(query, key, value, mask, causal, scale)
    problem.out, problem.log_sums, problem.grad = _matrix(out), address(log_sums), _matrix(grad)
    problem.for_query, problem.for_key = _matrix(for_query), _matrix(for_key)
    problem.for_value = _matrix(for_value)
    where, floats = ctypes.addressof(problem), TILE * key.shape[2]

    def piece(begin: int, end: int) -> None:
        scratch = np.empty(2 * floats, np.float32)
        _BACKWARD(where, address(scratch), begin, end)

    with THREADS:
        run(piece, (), batches * key.shape[1], _grain(rows * key.shape[2] * problem.share))
    return for_query, for_key, for_value
