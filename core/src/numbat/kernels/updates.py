"""Optimiser steps over many arrays at once, in place: the kernels of `update.c` and their
references.

    adam(params, grads, means, squares, step=3, lr=1e-3, weight_decay=0.01, decoupled=True)
    norm = sqrt(square_sum(grads))

Each function takes lists of arrays, index by index of one shape. Float32 and float64 arrays without
gaps are stepped by one call of a kernel for all of them, the others (float16, bfloat16, strided
ones) by the numpy reference, array by array. The order of the operations is PyTorch's. Every
element is stepped for itself, so neither the number of threads nor the company of other arrays
changes a bit of it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import pieces, run

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Sequence[Array]

GRAIN = 65536
"""Elements in a piece, and in a block whose squares are added up together."""


class _AdamScalars(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in (
        "beta1", "beta2", "eps", "step_size", "root_correction", "decay", "weight_decay",
        "grad_scale",
    )]  # fmt: skip


class _SgdScalars(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_double) for name in ("lr", "momentum", "dampening", "weight_decay",
        "grad_scale")),
        ("nesterov", ctypes.c_int64), ("first", ctypes.c_int64),
    ]  # fmt: skip


def _both(name: str, kinds: str) -> dict[str, Callable[..., None]]:
    return {"f": kernel(f"nb_{name}_f32", kinds), "d": kernel(f"nb_{name}_f64", kinds)}


_ADAM = _both("adam", "lPPPPPPPll")
_SGD = _both("sgd", "lPPPPPll")
_SQUARE_SUM = _both("square_sum", "lPPlPll")
_SCALE = _both("scale", "lPPdll")
_LERP = _both("lerp", "lPPPdll")


def _split(
    written: Sequence[Arrays], read: Sequence[Arrays]
) -> tuple[dict[str, list[int]], list[int]]:
    """The indices whose arrays a kernel takes, by letter of their type, and the other indices."""
    fast: dict[str, list[int]] = {}
    slow = []
    for index, first in enumerate((*written, *read)[0]):
        kind, shape = first.dtype.char, first.shape
        able = (
            kind in "fd"
            and all(
                one[index].flags.c_contiguous and one[index].dtype.char == kind for one in written
            )
            and all(one[index].dtype.char == kind and one[index].shape == shape for one in read)
        )
        if able:
            fast.setdefault(kind, []).append(index)
        else:
            slow.append(index)
    return fast, slow


class _Table:
    """Arrays laid end to end in thought: where each begins, and the addresses of each list's
    arrays."""

    def __init__(self, indices: list[int], *lists: Arrays | None) -> None:
        self.count = len(indices)
        sizes = next(one for one in lists if one is not None)
        self.offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum([sizes[index].size for index in indices], out=self.offsets[1:])
        self.total = int(self.offsets[-1])
        # Copies of strided arrays are kept here, for as long as the kernel reads them.
        self.held = [
            None if one is None else [np.ascontiguousarray(one[index]) for index in indices]
            for one in lists
        ]
        self.addresses = [
            None if one is None else np.array([address(array) for array in one], np.uintp)
            for one in self.held
        ]

    def pointers(self) -> list[int | None]:
        return [None if one is None else address(one) for one in self.addresses]


def _scalar(structure: ctypes.Structure) -> int:
    return ctypes.addressof(structure)


def adam(
    params: Arrays,
    grads: Arrays,
    means: Arrays,
    squares: Arrays,
    largest: Arrays | None = None,
    *,
    step: float,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    grad_scale: float = 1.0,
) -> None:
    """One step of Adam, or of AdamW where `decoupled`.

    Args:
        params, means, squares: are written over; `means` and `squares` are the running moments.
        grads: the gradients; read only.
        largest: the running maxima of `squares`, for AMSGrad; written over.
        step: how many steps were made, this one included.
        weight_decay: added to the gradient as a part of the parameter; taken from the parameter
            itself where `decoupled`.
        grad_scale: a factor of every gradient: -1 to maximise, a clip's factor, the inverse of a
            loss scale.
    """
    scalars = _AdamScalars(
        beta1, beta2, eps, lr / (1 - beta1**step), math.sqrt(1 - beta2**step),
        lr * weight_decay if decoupled else 0.0, 0.0 if decoupled else weight_decay, grad_scale,
    )  # fmt: skip
    lists = (params, means, squares) if largest is None else (params, means, squares, largest)
    fast, slow = _split(lists, (grads,))
    for kind, indices in fast.items():
        table = _Table(indices, params, grads, means, squares, largest)
        where = (table.count, address(table.offsets), *table.pointers(), _scalar(scalars))
        run(_ADAM[kind], where, table.total, GRAIN)
    for index in slow:
        top = None if largest is None else largest[index]
        adam_reference(params[index], grads[index], means[index], squares[index], top, scalars)


def adam_reference(
    p: Array, gradient: Array, m: Array, v: Array, top: Array | None, scalars: Any
) -> None:
    """One step of Adam on one array, in numpy."""
    kind = p.dtype.type
    if scalars.grad_scale != 1:
        gradient = gradient * kind(scalars.grad_scale)
    if scalars.weight_decay:
        gradient = gradient + kind(scalars.weight_decay) * p
    m += kind(1 - scalars.beta1) * (gradient - m)
    v *= kind(scalars.beta2)
    v += kind(1 - scalars.beta2) * gradient * gradient
    if top is not None:
        np.maximum(top, v, out=top)
    root = np.sqrt(v if top is None else top) / kind(scalars.root_correction)
    p *= kind(1 - scalars.decay)
    p -= kind(scalars.step_size) * (m / (root + kind(scalars.eps)))


def sgd(
    params: Arrays,
    grads: Arrays,
    buffers: Arrays | None = None,
    *,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    first: bool = False,
    grad_scale: float = 1.0,
) -> None:
    """One step of gradient descent.

    Args:
        params, buffers: are written over; `buffers` hold the momentum, None without any.
        grads: the gradients; read only.
        first: the buffers hold nothing yet and become the gradient, undamped, as in PyTorch.
        grad_scale: as in `adam`.
    """
    scalars = _SgdScalars(lr, momentum, dampening, weight_decay, grad_scale, nesterov, first)
    lists = (params,) if buffers is None else (params, buffers)
    fast, slow = _split(lists, (grads,))
    for kind, indices in fast.items():
        table = _Table(indices, params, grads, buffers)
        where = (table.count, address(table.offsets), *table.pointers(), _scalar(scalars))
        run(_SGD[kind], where, table.total, GRAIN)
    for index in slow:
        sgd_reference(
            params[index], grads[index], None if buffers is None else buffers[index], scalars
        )


def sgd_reference(p: Array, gradient: Array, buffer: Array | None, scalars: Any) -> None:
    """One step of gradient descent on one array, in numpy."""
    kind = p.dtype.type
    if scalars.grad_scale != 1:
        gradient = gradient * kind(scalars.grad_scale)
    if scalars.weight_decay:
        gradient = gradient + kind(scalars.weight_decay) * p
    if buffer is not None:
        if scalars.first:
            buffer[...] = gradient
        else:
            buffer *= kind(scalars.momentum)
            buffer += kind(1 - scalars.dampening) * gradient
        gradient = gradient + kind(scalars.momentum) * buffer if scalars.nesterov else buffer
    p -= kind(scalars.lr) * gradient


def square_sum(arrays: Arrays) -> float:
    """The sum of the squares of all elements, in float64; inf or NaN where an element is.

    Blocks of fixed bounds are added up in a fixed order, so the number of threads changes no bit.
    Its root is the global norm of a clip.
    """
    total = 0.0
    fast, slow = _split((), (arrays,))
    for kind, indices in fast.items():
        table = _Table(indices, arrays)
        partials = np.zeros(pieces(table.total, GRAIN))
        where = (table.count, address(table.offsets), *table.pointers(), GRAIN, address(partials))
        run(_SQUARE_SUM[kind], where, partials.size, 4)
        total += float(partials.sum())
    for index in slow:
        total += square_sum_reference(arrays[index])
    return total


def square_sum_reference(array: Array) -> float:
    """The sum of the squares of one array, in numpy."""
    return float(np.square(array, dtype=np.float64).sum())


def scale(arrays: Arrays, factor: float) -> None:
    """Multiplies every element by `factor`, in place."""
    fast, slow = _split((arrays,), ())
    for kind, indices in fast.items():
        table = _Table(indices, arrays)
        where = (table.count, address(table.offsets), *table.pointers(), factor)
        run(_SCALE[kind], where, table.total, GRAIN)
    for index in slow:
        np.multiply(arrays[index], arrays[index].dtype.type(factor), out=arrays[index])


def lerp(targets: Arrays, sources: Arrays, weight: float) -> None:
    """Moves `targets` by `weight` of the way to `sources`, in place: a moving average's step.

    An average that keeps the part d of itself is `lerp(averages, params, 1 - d)`.
    """
    fast, slow = _split((targets,), (sources,))
    for kind, indices in fast.items():
        table = _Table(indices, targets, sources)
        where = (table.count, address(table.offsets), *table.pointers(), weight)
        run(_LERP[kind], where, table.total, GRAIN)
    for index in slow:
        lerp_reference(targets[index], sources[index], weight)


def lerp_reference(x: Array, y: Array, weight: float) -> None:
    """A step of a moving average on one array, in numpy."""
    kind = x.dtype.type
    if weight < 0.5:
        x += kind(weight) * (y - x)
    else:
        x[...] = y - (y - x) * (kind(1) - kind(weight))
