"""Softmax along an axis, its logarithm, and cross-entropy of rows: `softmax.c` and numpy
references.

The functions over an axis take any floating array; float32 goes by the kernel, float16 and bfloat16
are computed in float32 and rounded once, float64 goes by the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run

Array = np.ndarray[Any, np.dtype[Any]]

_FLOAT32 = np.dtype(np.float32)
_SOFTMAX = kernel("nb_softmax", "PPlll")
_SOFTMAX_BACKWARD = kernel("nb_softmax_backward", "PPPlll")
_LOG_SOFTMAX = kernel("nb_log_softmax", "PPlll")
_LOG_SOFTMAX_BACKWARD = kernel("nb_log_softmax_backward", "PPPlll")
_CROSS_ENTROPY = kernel("nb_cross_entropy", "PPPPPllffll")
_CROSS_ENTROPY_BACKWARD = kernel("nb_cross_entropy_backward", "PPPPPPllffll")


def grain(columns: int) -> int:
    """Rows in a piece: some 65,536 elements."""
    return max(1, 65536 // max(columns, 1))


def _along(
    function: Callable[..., None], reference: Callable[..., Array], axis: int, *arrays: Array
) -> Array:
    """A kernel over rows, or its reference, along an axis; the result has no gaps in memory."""
    first = arrays[0]
    dtype = first.dtype
    wide = dtype.itemsize == 2
    if first.ndim == 0:
        return _along(function, reference, 0, *[one.reshape(1) for one in arrays]).reshape(())
    if dtype == _FLOAT32 or wide:
        rows = [np.ascontiguousarray(np.moveaxis(one, axis, -1), _FLOAT32) for one in arrays]
        out = np.empty(rows[0].shape, _FLOAT32)
        columns: int = out.shape[first.ndim - 1]
        if out.size:
            run(
                function,
                (*[address(one) for one in rows], address(out), columns),
                out.size // columns,
                grain(columns),
            )
        if wide:
            out = out.astype(dtype)
        return np.ascontiguousarray(np.moveaxis(out, -1, axis))
    return reference(*arrays, axis) if first.size else np.empty(first.shape, dtype)


def softmax(x: Array, axis: int) -> Array:
    """exp(x), divided by its sum along the axis."""
    return _along(_SOFTMAX, softmax_reference, axis, x)


def softmax_reference(x: Array, axis: int) -> Any:
    """Softmax in numpy."""
    out = np.exp(x - x.max(axis=axis, keepdims=True))
    out /= out.sum(axis=axis, keepdims=True)
    return out


def softmax_backward(grad: Array, y: Array, axis: int) -> Array:
    """The gradient of softmax from its result."""
    return _along(_SOFTMAX_BACKWARD, softmax_backward_reference, axis, grad, y)


def softmax_backward_reference(grad: Array, y: Array, axis: int) -> Any:
    """The gradient of softmax in numpy."""
    weighted = grad * y
    return weighted - y * weighted.sum(axis=axis, keepdims=True)


def log_softmax(x: Array, axis: int) -> Array:
    """The logarithm of softmax."""
    return _along(_LOG_SOFTMAX, log_softmax_reference, axis, x)


def log_softmax_reference(x: Array, axis: int) -> Any:
    """The logarithm of softmax in numpy."""
    out = x - x.max(axis=axis, keepdims=True)
    out -= np.log(np.exp(out).sum(axis=axis, keepdims=True))
    return out


def log_softmax_backward(grad: Array, y: Array, axis: int) -> Array:
    """The gradient of log_softmax from its result."""
    return _along(_LOG_SOFTMAX_BACKWARD, log_softmax_backward_reference, axis, grad, y)


def log_softmax_backward_reference(grad: Array, y: Array, axis: int) -> Array:
    """The gradient of log_softmax in numpy."""
    return np.asarray(grad - np.exp(y) * grad.sum(axis=axis, keepdims=True))


def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignored: int, smoothing: float
) -> tuple[Array, Array]:
    """For each row its loss (zero where ignored) and the logarithm of its sum of exponentials.

    Args:
        x: (rows, classes) float32 without gaps.
        target: (rows,) int64; each a class, or `ignored`.
        weight: (classes,) float32, or None for ones.
        ignored: the target that counts for nothing.
        smoothing: the part of each target that is spread over all classes.
    """
    rows, columns = x.shape
    loss, log_sum = np.empty(rows, _FLOAT32), np.empty(rows, _FLOAT32)
    where = (
        address(x), address(target), None if weight is None else address(weight), address(loss),
        address(log_sum), columns, ignored, smoothing, _total(weight, columns),
    )  # fmt: skip
    run(_CROSS_ENTROPY, where, rows, grain(columns))
    return loss, log_sum


def _total(weight: Array | None, columns: int) -> float:
    return float(columns) if weight is None else float(weight.sum())


def cross_entropy_reference(
    x: Array, target: Array, weight: Array | None, ignored: int, smoothing: float
) -> tuple[Array, Array]:
    """`cross_entropy` in numpy."""
    counted = target != ignored
    classes = np.where(counted, target, 0)
    top = x.max(axis=1)
    log_sum = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
    weights = np.ones(x.shape[1], x.dtype) if weight is None else weight
    rows = np.arange(len(x))
    sharp = (1 - smoothing) * weights[classes] * (log_sum - x[rows, classes])
    smooth = smoothing / x.shape[1] * ((log_sum[:, None] - x) * weights).sum(axis=1)
    return np.where(counted, sharp + smooth, 0).astype(x.dtype), np.where(counted, log_sum, 0)


def cross_entropy_backward(
    scale: Array, x: Array, target: Array, weight: Array | None, log_sum: Array, ignored: int,
    smoothing: float, out: Array | None = None,
) -> Array:  # fmt: skip
    """The gradient of x where the loss of each row has the gradient `scale`; into `out`, which may
    be x."""
    rows, columns = x.shape
    result = np.empty_like(x) if out is None else out
    where = (
        address(scale), address(x), address(target), None if weight is None else address(weight),
        address(log_sum), address(result), columns, ignored, smoothing, _total(weight, columns),
    )  # fmt: skip
    run(_CROSS_ENTROPY_BACKWARD, where, rows, grain(columns))
    return result


def cross_entropy_backward_reference(
    scale: Array, x: Array, target: Array, weight: Array | None, log_sum: Array, ignored: int,
    smoothing: float,
) -> Array:  # fmt: skip
    """`cross_entropy_backward` in numpy."""
    counted = target != ignored
    classes = np.where(counted, target, 0)
    weights = np.ones(x.shape[1], x.dtype) if weight is None else weight
    a = (1 - smoothing) * weights[classes] * scale
    b = smoothing / x.shape[1] * scale
    result = (a + b * weights.sum())[:, None] * np.exp(x - log_sum[:, None])
    result -= b[:, None] * weights
    result[np.arange(len(x)), classes] -= a
    return np.where(counted[:, None], result, 0).astype(x.dtype)
