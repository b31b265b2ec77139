"""Convolutions over arrays: three products (forward, for the input, for the weight) by C kernels or by numpy.

Public layout is PyTorch's, `(N, C, *space)`; inside, channels come last, and what is returned is a view
of a channels-last array. Arrays that already lie so are taken without a copy.

A convolution is told by a `Window`; padding at the far end follows from the extents of the result, so
uneven padding and PyTorch's `output_padding` need no words of their own.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from numbat.tensors.tensor import Array


class Window(NamedTuple):
    """How a kernel of weights moves over the input; each but the last has one number per axis of space.

    Attributes:
        stride: steps between windows.
        begin: cells of padding before the first cell.
        dilation: steps between the cells of one window.
        groups: into how many parts the channels fall, each convolved with weights of its own.
    """

    stride: tuple[int, ...]
    begin: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def channels_last(array: Array) -> Array:
    """`(N, C, *space)` as a C-contiguous `(N, *space, C)`; the same memory where it lies so already."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def channels_first(array: Array) -> Array:
    """`(N, *space, C)` seen as `(N, C, *space)`."""
    return np.moveaxis(array, -1, 1)


def _work_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for the half types, which are rounded once at the end; else the type itself."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype


def forward(
    x: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """The convolution of `x` `(N, C, *in)` with `weight` `(O, C / groups, *kernel)`: `(N, O, *space)`."""
    work = _work_type(x.dtype)
    last, weight = channels_last(x).astype(work, copy=False), weight.astype(work, copy=False)
    if bias is not None:
        bias = bias.astype(work, copy=False)
    out = forward_reference(last, weight, bias, window, space)
    return channels_first(out.astype(x.dtype, copy=False))


def input_gradient(
    grad: Array, weight: Array, window: Window, space: tuple[int, ...], bias: Array | None = None
) -> Array:
    """What `x` `(N, C, *space)` receives from the gradient of the result; with a bias, the transposed
    convolution."""
    work = _work_type(grad.dtype)
    last, weight = channels_last(grad).astype(work, copy=False), weight.astype(work, copy=False)
    if bias is not None:
        bias = bias.astype(work, copy=False)
    out = input_gradient_reference(last, weight, bias, window, space)
    return channels_first(out.astype(grad.dtype, copy=False))


def weight_gradient(x: Array, grad: Array, window: Window, kernel: tuple[int, ...]) -> Array:
    """What `weight` `(O, C / groups, *kernel)` receives from the gradient of the result."""
    work = _work_type(grad.dtype)
    last, given = (channels_last(one).astype(work, copy=False) for one in (x, grad))
    return weight_gradient_reference(last, given, window, kernel).astype(grad.dtype, copy=False)


# -- references: one product for each cell of the window -------------------------------------------


def _padded(x: Array, window: Window, kernel: tuple[int, ...], space: tuple[int, ...]) -> Array:
    """`x` `(N, *in, C)` with zeros around it, so that every window lies inside."""
    widths = [(0, 0)]
    for extent, step, begin, gap, cells, out in zip(
        x.shape[1:-1], window.stride, window.begin, window.dilation, kernel, space, strict=True
    ):
        widths.append((begin, max((out - 1) * step + gap * (cells - 1) + 1 - begin - extent, 0)))
    widths.append((0, 0))
    return np.pad(x, widths) if any(max(one) for one in widths) else x


def _cells(window: Window, kernel: tuple[int, ...], space: tuple[int, ...]) -> Any:
    """For each cell of the window: its index, and the slices of the padded input that it meets."""
    for cell in product(*(range(extent) for extent in kernel)):
        yield cell, (slice(None), *(
            slice(at * gap, at * gap + (out - 1) * step + 1, step)
            for at, gap, out, step in zip(cell, window.dilation, space, window.stride, strict=True)
        ))  # fmt: skip


def forward_reference(
    x: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """`forward` over channels-last arrays, one product for each cell of the window."""
    kernel, groups, outs = weight.shape[2:], window.groups, weight.shape[0]
    padded = _padded(x, window, kernel, space)
    out = np.zeros((x.shape[0], *space, groups, outs // groups), x.dtype)
    if bias is not None:
        out += bias.reshape(groups, -1)
    split = weight.reshape(groups, outs // groups, *weight.shape[1:])
    for cell, seen in _cells(window, kernel, space):
        part = padded[seen]
        part = part.reshape(*part.shape[:-1], groups, -1)
        out += _grouped(part, split[(..., *cell)].swapaxes(1, 2))
    return out.reshape(*out.shape[:-2], outs)


def _grouped(x: Array, weight: Array) -> Array:
    """`(..., G, I)` times `(G, I, O)`."""
    groups, ins, outs = weight.shape
    if groups == 1:
        return np.asarray(np.matmul(x[..., 0, :], weight[0]))[..., None, :]
    if ins == 1 and outs == 1:
        return np.asarray(x * weight[:, 0])
    flat = np.matmul(x.reshape(-1, groups, ins).swapaxes(0, 1), weight).swapaxes(0, 1)
    return flat.reshape(*x.shape[:-1], outs)


def input_gradient_reference(
    grad: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """`input_gradient` over channels-last arrays, one product for each cell of the window."""
    kernel, groups, outs = weight.shape[2:], window.groups, weight.shape[0]
    ins = weight.shape[1] * groups
    widths = [
        max((out - 1) * step + gap * (cells - 1) + 1, begin + extent)
        for extent, step, begin, gap, cells, out in zip(
            space, window.stride, window.begin, window.dilation, kernel, grad.shape[1:-1], strict=True
        )
    ]  # fmt: skip
    padded = np.zeros((grad.shape[0], *widths, ins), grad.dtype)
    if bias is not None:
        padded += bias
    split = weight.reshape(groups, outs // groups, *weight.shape[1:])
    given = grad.reshape(*grad.shape[:-1], groups, -1)
    for cell, seen in _cells(window, kernel, grad.shape[1:-1]):
        part = padded[seen]
        part += _grouped(given, split[(..., *cell)]).reshape(part.shape)
    inside = tuple(
        slice(begin, begin + extent) for begin, extent in zip(window.begin, space, strict=True)
    )
    return padded[(slice(None), *inside)]


def weight_gradient_reference(
    x: Array, grad: Array, window: Window, kernel: tuple[int, ...]
) -> Array:
    """`weight_gradient` over channels-last arrays, one product for each cell of the window."""
    groups, space = window.groups, grad.shape[1:-1]
    outs, ins = grad.shape[-1] // groups, x.shape[-1] // groups
    padded = _padded(x, window, kernel, space)
    given = grad.reshape(-1, groups, outs).transpose(1, 2, 0)
    found = np.empty((groups, outs, ins, *kernel), grad.dtype)
    for cell, seen in _cells(window, kernel, space):
        part = padded[seen].reshape(-1, groups, ins).transpose(1, 0, 2)
        found[(..., *cell)] = np.matmul(given, part)
    return found.reshape(groups * outs, ins, *kernel)
