"""Convolutions over arrays: three products (forward, for the input, for the weight).

float32 and the half types go by C kernels (convolution.c), other types by numpy.

Public layout is PyTorch's, `(N, C, *space)`; inside, channels come last, and what is returned is a
view of a channels-last array. Arrays that already lie so are taken without a copy.

A convolution is told by a `Window`; padding at the far end follows from the extents of the result,
so uneven padding and PyTorch's `output_padding` need no words of their own.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.loading import LIBRARY
from numbat.kernels.pool import pieces, run
from numbat.kernels.products import matmul
from numbat.tensors.tensor import Array


class Window(NamedTuple):
    """How a kernel of weights moves over the input; each but the last has one number per axis of
    space.

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
    """`(N, C, *space)` as a C-contiguous `(N, *space, C)`; the same memory where it lies so
    already."""
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
    """The convolution of `x` `(N, C, *in)` with `weight` `(O, C / groups, *kernel)`: `(N, O,
    *space)`."""
    work = _work_type(x.dtype)
    last, weight = channels_last(x).astype(work, copy=False), weight.astype(work, copy=False)
    if bias is not None:
        bias = bias.astype(work, copy=False)
    if work == np.float32 and x.size and weight.size:
        out = _forward(last, weight, bias, window, space)
    else:
        out = forward_reference(last, weight, bias, window, space)
    return channels_first(out.astype(x.dtype, copy=False))


def input_gradient(
    grad: Array, weight: Array, window: Window, space: tuple[int, ...], bias: Array | None = None
) -> Array:
    """What `x` `(N, C, *space)` receives from the gradient of the result.

    With a bias, it is the transposed convolution.
    """
    work = _work_type(grad.dtype)
    last, weight = channels_last(grad).astype(work, copy=False), weight.astype(work, copy=False)
    if bias is not None:
        bias = bias.astype(work, copy=False)
    if work == np.float32 and grad.size and weight.size:
        out = _input_gradient(last, weight, bias, window, space)
    else:
        out = input_gradient_reference(last, weight, bias, window, space)
    return channels_first(out.astype(grad.dtype, copy=False))


def weight_gradient(x: Array, grad: Array, window: Window, kernel: tuple[int, ...]) -> Array:
    """What `weight` `(O, C / groups, *kernel)` receives from the gradient of the result."""
    work = _work_type(grad.dtype)
    last, given = (channels_last(one).astype(work, copy=False) for one in (x, grad))
    if work == np.float32 and x.size and grad.size:
        out = _weight_gradient(last, given, window, kernel)
    else:
        out = weight_gradient_reference(last, given, window, kernel)
    return out.astype(grad.dtype, copy=False)


# -- kernels ---------------------------------------------------------------------------------------

_forward_kernel = kernel("nb_conv_forward", "PPPPPPPll")
_pack_kernel = kernel("nb_conv_pack", "PPPllllllll")
_weight_kernel = kernel("nb_conv_weight", "PPPPPlll")
_gather_kernel = kernel("nb_conv_weight_gather", "PPlllllll")
_depthwise_kernel = kernel("nb_conv_depthwise", "PPPPPPll")
_depthwise_weight_kernel = kernel("nb_conv_depthwise_weight", "PPPPPlll")
LANES = int(LIBRARY.nb_conv_lanes())
_PIXELS = int(LIBRARY.nb_conv_pixels())
_ALONE = 1 << 20
"""Products below which a convolution is not worth handing to other threads."""

_Extents = tuple[int, ...]


class _Plan(NamedTuple):
    """A geometry as the kernels read it (`plan` in convolution.c), for one part of the result.

    Attributes:
        plan, taps: the C structure, and the taps' offsets `(taps, 3)`.
        cells: for each tap, its cell in the flattened kernel of weights.
        pixels: how many cells of the result the part has.
        grain: how many of them one piece takes.
    """

    plan: Array
    taps: Array
    cells: Array
    pixels: int
    grain: int


def _three(values: tuple[int, ...], fill: int) -> _Extents:
    return (fill,) * (3 - len(values)) + tuple(values)


def _planned(
    batch: int, inside: _Extents, whole: _Extents, ins: int, outs: int, groups: int, step: _Extents,
    out: _Extents, first: _Extents, spread: _Extents, taps: list[tuple[_Extents, int]],
) -> _Plan:  # fmt: skip
    """A plan: the cells `first + spread * index` of the result's extents `whole`, for each index
    below
    `out`, from the input's cells `step * index + offset`."""
    channels = outs * groups
    strides = [0, 0, channels * spread[2]]
    strides[1] = channels * whole[2] * spread[1]
    strides[0] = channels * whole[2] * whole[1] * spread[0]
    offsets = np.array([offset for offset, _ in taps], np.int64).reshape(-1, 3)
    low = offsets.min(axis=0) if taps else np.zeros(3, np.int64)
    high = offsets.max(axis=0) if taps else np.zeros(3, np.int64)
    begin = channels * ((first[0] * whole[1] + first[1]) * whole[2] + first[2])
    plan = np.array([
        batch, *inside, *out, *step, len(taps), ins, outs, groups, ins * groups, channels,
        channels * whole[0] * whole[1] * whole[2], *strides, begin, *low, *high,
    ], np.int64)  # fmt: skip
    pixels = batch * out[0] * out[1] * out[2]
    if pixels * max(len(taps), 1) * ins * channels <= _ALONE:
        grain = max(pixels, 1)
    else:
        # A piece's part of the input stays in the second cache, and there are some pieces to share.
        grain = min(max(65536 // (ins * groups), 48), 384, max(-(-pixels // 8), 2 * _PIXELS))
        grain = -(-grain // _PIXELS) * _PIXELS
    cells = np.array([cell for _, cell in taps], np.int64)
    return _Plan(plan, np.ascontiguousarray(offsets), cells, pixels, grain)


@lru_cache(maxsize=1024)
def _forward_plan(
    batch: int,
    inside: _Extents,
    space: _Extents,
    kernel: _Extents,
    window: Window,
    ins: int,
    outs: int,
) -> _Plan:
    step, begin = _three(window.stride, 1), _three(window.begin, 0)
    gap, extents = _three(window.dilation, 1), _three(kernel, 1)
    taps = [
        (tuple(at * d - b for at, d, b in zip(cell, gap, begin, strict=True)), number)
        for number, cell in enumerate(np.ndindex(extents))
    ]
    out = _three(space, 1)
    return _planned(
        batch,
        _three(inside, 1),
        out,
        ins,
        outs,
        window.groups,
        step,
        out,
        (0, 0, 0),
        (1, 1, 1),
        taps,
    )


@lru_cache(maxsize=1024)
def _backward_plans(
    batch: int,
    space: _Extents,
    inside: _Extents,
    kernel: _Extents,
    window: Window,
    ins: int,
    outs: int,
) -> list[_Plan]:
    """A plan for each phase of the stride: the cells of the input that the same taps reach."""
    step, begin = _three(window.stride, 1), _three(window.begin, 0)
    gap, extents = _three(window.dilation, 1), _three(kernel, 1)
    whole, found = _three(space, 1), []
    for phase in np.ndindex(step):
        out = tuple(max(-(-(whole[a] - phase[a]) // step[a]), 0) for a in range(3))
        if 0 in out:
            continue
        taps = []
        for number, cell in enumerate(np.ndindex(extents)):
            at = [phase[a] + begin[a] - cell[a] * gap[a] for a in range(3)]
            if all(at[a] % step[a] == 0 for a in range(3)):
                taps.append((tuple(at[a] // step[a] for a in range(3)), number))
        found.append(
            _planned(
                batch,
                _three(inside, 1),
                whole,
                ins,
                outs,
                window.groups,
                (1, 1, 1),
                out,
                tuple(phase),
                step,
                taps,
            )
        )
    return found


@lru_cache(maxsize=64)
def _zeros(count: int) -> Array:
    return np.zeros(count, np.float32)


def _bias_of(bias: Array | None, groups: int, outs: int) -> Array:
    """The bias in the order of packed weights: `(groups, blocks of lanes)`, zero where there is
    none."""
    wide = -(-outs // LANES) * LANES
    if bias is None:
        return _zeros(groups * wide)
    padded = np.zeros((groups, wide), np.float32)
    padded[:, :outs] = bias.reshape(groups, outs)
    return padded


def _packed(
    weight: Array, cells: Array, ins: int, outs: int, groups: int, steps: tuple[int, int, int]
) -> Array:
    units = groups * -(-outs // LANES)
    packed = np.empty(units * len(cells) * ins * LANES, np.float32)
    args = (address(weight), address(packed), address(cells), len(cells), ins, outs, *steps)
    run(_pack_kernel, args, units, max(1, (1 << 15) // max(len(cells) * ins * LANES, 1)))
    return packed


def _is_depthwise(weight: Array, groups: int) -> bool:
    return weight.shape[1] == 1 and weight.shape[0] == groups and groups > 1


def _is_pointwise(kernel: _Extents, window: Window) -> bool:
    """Whether the convolution is one product of matrices."""
    return (
        window.groups == 1
        and set(kernel) == {1}
        and set(window.stride) == {1}
        and not any(window.begin)
    )


def _convolved(
    x: Array, weight: Array, bias: Array, out: Array, plan: _Plan, ins: int, outs: int, groups: int,
    steps: tuple[int, int, int],
) -> None:  # fmt: skip
    """Runs one plan; `bias` is padded, `steps` are the weight's strides by group, output and
    input."""
    packed = _packed(weight, plan.cells, ins, outs, groups, steps)
    args = (
        address(x), address(packed), address(bias), address(out), address(_zeros(ins)),
        address(plan.plan), address(plan.taps),
    )  # fmt: skip
    run(_forward_kernel, args, plan.pixels, plan.grain)


def _depthwise(x: Array, weight: Array, bias: Array | None, out: Array, plan: _Plan) -> None:
    channels = x.shape[-1]
    table = np.ascontiguousarray(weight.reshape(channels, -1).T[plan.cells])
    start = _zeros(channels) if bias is None else np.ascontiguousarray(bias)
    args = (
        address(x), address(table), address(start), address(out), address(plan.plan),
        address(plan.taps),
    )  # fmt: skip
    run(_depthwise_kernel, args, plan.pixels, _depthwise_grain(plan, channels))


def _depthwise_grain(plan: _Plan, channels: int) -> int:
    return max(1, 65536 // (channels * max(len(plan.taps), 1)))


def _forward(
    x: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """`forward_reference` in float32, by kernels."""
    groups, kernel = window.groups, weight.shape[2:]
    outs, ins = weight.shape[0] // groups, weight.shape[1]
    if _is_pointwise(kernel, window) and space == x.shape[1:-1]:
        found = matmul(x.reshape(-1, ins), weight.reshape(outs, ins).T)
        if bias is not None:
            found += bias
        return found.reshape(x.shape[0], *space, outs)
    out = np.empty((x.shape[0], *space, weight.shape[0]), np.float32)
    plan = _forward_plan(x.shape[0], x.shape[1:-1], space, kernel, window, ins, outs)
    weight = np.ascontiguousarray(weight)
    if _is_depthwise(weight, groups):
        _depthwise(x, weight, bias, out, plan)
        return out
    cells = int(np.prod(kernel))
    steps = outs * ins * cells, ins * cells, cells
    _convolved(x, weight, _bias_of(bias, groups, outs), out, plan, ins, outs, groups, steps)
    return out


def _input_gradient(
    grad: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """`input_gradient_reference` in float32, by kernels."""
    groups, kernel = window.groups, weight.shape[2:]
    ins, outs = weight.shape[0] // groups, weight.shape[1]
    if _is_pointwise(kernel, window) and space == grad.shape[1:-1]:
        found = matmul(grad.reshape(-1, ins), weight.reshape(ins, outs))
        if bias is not None:
            found += bias
        return found.reshape(grad.shape[0], *space, outs)
    out = np.empty((grad.shape[0], *space, outs * groups), np.float32)
    plans = _backward_plans(grad.shape[0], space, grad.shape[1:-1], kernel, window, ins, outs)
    weight = np.ascontiguousarray(weight)
    cells = int(np.prod(kernel))
    padded = _bias_of(bias, groups, outs)
    for plan in plans:
        if _is_depthwise(weight, groups):
            _depthwise(grad, weight, bias, out, plan)
        else:
            steps = ins * outs * cells, cells, outs * cells
            _convolved(grad, weight, padded, out, plan, ins, outs, groups, steps)
    return out


def _weight_gradient(x: Array, grad: Array, window: Window, kernel: tuple[int, ...]) -> Array:
    """`weight_gradient_reference` in float32, by kernels."""
    groups, space = window.groups, grad.shape[1:-1]
    outs, ins, cells = grad.shape[-1] // groups, x.shape[-1] // groups, int(np.prod(kernel))
    shape = (grad.shape[-1], ins, *kernel)
    if _is_pointwise(kernel, window) and space == x.shape[1:-1]:
        return matmul(grad.reshape(-1, outs).T, x.reshape(-1, ins)).reshape(shape)
    plan = _forward_plan(x.shape[0], x.shape[1:-1], space, kernel, window, ins, outs)
    plan_at, taps_at = address(plan.plan), address(plan.taps)
    if ins == 1 and outs == 1 and groups > 1:
        chunk = max(_depthwise_grain(plan, groups), -(-plan.pixels // 16))
        chunks = pieces(plan.pixels, chunk)
        part = np.empty((chunks, cells, groups), np.float32)
        args = (address(x), address(grad), address(part), plan_at, taps_at, chunk)
        run(_depthwise_weight_kernel, args, chunks, 1)
        return np.ascontiguousarray(part.sum(axis=0).T).reshape(shape)
    units = groups * -(-outs // LANES)
    chunks = 1
    if plan.pixels * cells * ins * outs * groups > _ALONE:
        # Enough units to share; not so many chunks that their sums weigh.
        chunks = max(1, min(-(-8 // units), plan.pixels // 256))
    chunk = -(-plan.pixels // chunks)
    chunks = pieces(plan.pixels, chunk)
    part = np.empty(chunks * units * cells * ins * LANES, np.float32)
    args = (address(x), address(grad), address(part), plan_at, taps_at, chunk)
    alone = plan.pixels * cells * ins * outs * groups <= _ALONE
    run(_weight_kernel, args, chunks * units, chunks * units if alone else 1)
    found = np.empty(shape, np.float32)
    sizes = (address(part), address(found), chunks, units, cells, ins, outs)
    run(_gather_kernel, sizes, units, max(1, (1 << 15) // (cells * ins * LANES)))
    return found


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
        part = part.reshape(*part.shape[:-1], groups, x.shape[-1] // groups)
        out += _grouped(part, split[(..., *cell)].swapaxes(1, 2))
    return out.reshape(*out.shape[:-2], outs)


def _grouped(x: Array, weight: Array) -> Array:
    """`(..., G, I)` times `(G, I, O)`."""
    groups, ins, outs = weight.shape
    if groups == 1:
        return np.asarray(np.matmul(x[..., 0, :], weight[0]))[..., None, :]
    if ins == 1 and outs == 1:
        return np.asarray(x * weight[:, 0])
    rows = x.reshape(int(np.prod(x.shape[:-2])), groups, ins).swapaxes(0, 1)
    flat = np.matmul(rows, weight).swapaxes(0, 1)
    return np.asarray(flat).reshape(*x.shape[:-1], outs)


def input_gradient_reference(
    grad: Array, weight: Array, bias: Array | None, window: Window, space: tuple[int, ...]
) -> Array:
    """`input_gradient` over channels-last arrays, one product for each cell of the window."""
    kernel, groups, outs = weight.shape[2:], window.groups, weight.shape[0]
    ins = weight.shape[1] * groups
    widths = [
        max((out - 1) * step + gap * (cells - 1) + 1, begin + extent)
        for extent, step, begin, gap, cells, out in zip(
            space, window.stride, window.begin, window.dilation, kernel, grad.shape[1:-1],
            strict=True,
        )
    ]  # fmt: skip
    padded = np.zeros((grad.shape[0], *widths, ins), grad.dtype)
    if bias is not None:
        padded += bias
    split = weight.reshape(groups, outs // groups, *weight.shape[1:])
    given = grad.reshape(*grad.shape[:-1], groups, outs // groups)
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
    count = int(np.prod(grad.shape[:-1]))
    given = grad.reshape(count, groups, outs).transpose(1, 2, 0)
    found = np.empty((groups, outs, ins, *kernel), grad.dtype)
    for cell, seen in _cells(window, kernel, space):
        part = padded[seen].reshape(count, groups, ins).transpose(1, 0, 2)
        found[(..., *cell)] = np.matmul(given, part)
    return found.reshape(groups * outs, ins, *kernel)
