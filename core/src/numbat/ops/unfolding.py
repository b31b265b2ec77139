"""Windows as columns (im2col) and back, and cells that change place with channels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.pooling import batched, unbatched
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import permute, reshape
from numbat.ops.windows import numbers, output_extents
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold_windows",
]  # fmt: skip

Pair = tuple[int, int]
Settings = tuple[Pair, Pair, Pair, Pair, Pair, Pair]
"""Kernel, dilation, padding, stride, extents of the space, numbers of windows."""


def _settings(
    name: str, space: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Settings:
    cells = numbers(name, "kernel_size", kernel, 2, 1)
    gaps = numbers(name, "dilation", dilation, 2, 1)
    begin = numbers(name, "padding", padding, 2, 0)
    steps = numbers(name, "stride", stride, 2, 1)
    counts = output_extents(name, space, cells, steps, [2 * one for one in begin], gaps)
    return cells, gaps, begin, steps, space, counts  # type: ignore[return-value]


def _met(settings: Settings) -> Any:
    """For each cell of the window: its index, and the slices of the padded space that it meets."""
    cells, gaps, _, steps, _, counts = settings
    for cell in product(range(cells[0]), range(cells[1])):
        yield (
            cell,
            tuple(
                slice(at * gap, at * gap + (count - 1) * step + 1, step)
                for at, gap, step, count in zip(cell, gaps, steps, counts, strict=True)
            ),
        )


def _columns(x: Array, settings: Settings) -> Array:
    cells, _, begin, _, _, counts = settings
    batch, channels = x.shape[:2]
    padded = np.pad(x, ((0, 0), (0, 0), (begin[0],) * 2, (begin[1],) * 2)) if any(begin) else x
    out = np.empty((batch, channels, *cells, *counts), x.dtype)
    for cell, met in _met(settings):
        out[(slice(None), slice(None), *cell)] = padded[(slice(None), slice(None), *met)]
    return out.reshape(batch, channels * cells[0] * cells[1], counts[0] * counts[1])


def _summed(columns: Array, settings: Settings) -> Array:
    cells, _, begin, _, space, counts = settings
    work = columns.dtype
    if work.itemsize == 2 and work.kind not in "iu":
        work = np.dtype(np.float32)
    batch = columns.shape[0]
    channels = columns.shape[1] // (cells[0] * cells[1])
    given = columns.reshape(batch, channels, *cells, *counts)
    wide = [extent + 2 * pad for extent, pad in zip(space, begin, strict=True)]
    out = np.zeros((batch, channels, *wide), work)
    for cell, met in _met(settings):
        out[(slice(None), slice(None), *met)] += given[(slice(None), slice(None), *cell)]
    inside = [slice(pad, pad + extent) for extent, pad in zip(space, begin, strict=True)]
    return np.ascontiguousarray(out[(slice(None), slice(None), *inside)]).astype(
        columns.dtype, copy=False
    )


def _sample_unfold(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 2, 4, 3)), 2))
    yield Sample((rng.normal(size=(2, 5, 5)), (2, 3)), {"dilation": 2, "padding": 1, "stride": 2})


@operator(_sample_unfold, torch="nn.functional.unfold", method=False)
def unfold_windows(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows of `(N, C, H, W)` or `(C, H, W)` as columns: `(N, C * KH * KW, windows)`.

    It is `torch.nn.functional.unfold`; `Tensor.unfold`, as in PyTorch, is another operator.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or settings that do not fit.
    """
    whole, alone = batched("unfold_windows", 2, input)
    settings = _settings(
        "unfold_windows", whole.array.shape[2:], kernel_size, dilation, padding, stride
    )
    out = record(
        _columns(whole.array, settings), unfold_windows_backward, (whole,), values=settings
    )
    return unbatched(out, alone)


def unfold_windows_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    settings = node.values
    return (record(_summed(grad.array, settings), fold_backward, (grad,), values=settings),)


def _sample_fold(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 8, 6)), (4, 3), 2))
    keywords = {"dilation": 2, "padding": 1, "stride": 2}
    yield Sample((rng.normal(size=(12, 6)), (5, 5), (2, 3)), keywords)


@operator(_sample_fold, torch="nn.functional.fold", method=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Tensor:  # fmt: skip
    """The sum of columns laid back as windows: `(N, C * KH * KW, windows)` to `(N, C,
    *output_size)`.

    Raises CORE-0401, CORE-0404, CORE-0405 for settings that do not fit, CORE-0411 where the columns
    are not those of such windows.
    """
    whole, alone = batched("fold", 1, input)
    space = numbers("fold", "output_size", output_size, 2, 1)
    settings = _settings("fold", space, kernel_size, dilation, padding, stride)
    cells, counts = settings[0], settings[5]
    rows, columns = whole.array.shape[1:]
    if rows % (cells[0] * cells[1]) or columns != counts[0] * counts[1]:
        raise refuse(
            "CORE-0411", shape=list(input.shape), cells=cells[0] * cells[1],
            windows=counts[0] * counts[1],
        )  # fmt: skip
    out = record(_summed(whole.array, settings), fold_backward, (whole,), values=settings)
    return unbatched(out, alone)


def fold_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    settings = node.values
    return (
        record(_columns(grad.array, settings), unfold_windows_backward, (grad,), values=settings),
    )


# -- channels and cells ----------------------------------------------------------------------------


def _divided(name: str, shape: tuple[int, ...], extent: int, divisor: int) -> None:
    if divisor < 1 or extent % divisor:
        raise refuse("CORE-0412", operator=name, shape=list(shape), extent=extent, divisor=divisor)


def _sample_shuffle(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 8, 2, 3)), 2))
    yield Sample((rng.normal(size=(4, 1, 2)), 2))


@operator(_sample_shuffle, torch="nn.functional.pixel_shuffle", method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become cells: `(*, C * r * r, H, W)` to `(*, C, H * r, W * r)`.

    Raises CORE-0401 for fewer than three axes, CORE-0412 where the channels are not divided.
    """
    shape, r = input.array.shape, int(upscale_factor)
    if len(shape) < 3:
        raise refuse("CORE-0401", operator="pixel_shuffle", input=list(shape), weight=[], axes=2)
    *lead, channels, high, wide = shape
    _divided("pixel_shuffle", shape, channels, r * r if r > 0 else 0)
    outs, first = channels // (r * r), len(lead)
    split = reshape(input, (*lead, outs, r, r, high, wide))
    turned = permute(split, (*range(first), *(first + one for one in (0, 3, 1, 4, 2))))
    return reshape(turned, (*lead, outs, high * r, wide * r))


def _sample_unshuffle(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 2, 4, 6)), 2))
    yield Sample((rng.normal(size=(1, 2, 4)), 2))


@operator(_sample_unshuffle, torch="nn.functional.pixel_unshuffle", method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Cells become channels: `(*, C, H * r, W * r)` to `(*, C * r * r, H, W)`.

    Raises CORE-0401 for fewer than three axes, CORE-0412 where an extent is not divided.
    """
    shape, r = input.array.shape, int(downscale_factor)
    if len(shape) < 3:
        raise refuse("CORE-0401", operator="pixel_unshuffle", input=list(shape), weight=[], axes=2)
    *lead, channels, high, wide = shape
    for extent in (high, wide):
        _divided("pixel_unshuffle", shape, extent, r)
    first = len(lead)
    split = reshape(input, (*lead, channels, high // r, r, wide // r, r))
    turned = permute(split, (*range(first), *(first + one for one in (0, 2, 4, 1, 3))))
    return reshape(turned, (*lead, channels * r * r, high // r, wide // r))


def _sample_channel_shuffle(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 6, 2)), 3))
    yield Sample((rng.normal(size=(2, 4, 2, 2)), 2))


@operator(_sample_channel_shuffle, torch="nn.functional.channel_shuffle", method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of `(N, C, *)` dealt out over groups: `(groups, C / groups)` exchanged.

    Raises CORE-0401 for fewer than three axes, CORE-0412 where the channels are not divided.
    """
    shape = input.array.shape
    if len(shape) < 3:
        raise refuse("CORE-0401", operator="channel_shuffle", input=list(shape), weight=[], axes=1)
    batch, channels, *space = shape
    _divided("channel_shuffle", shape, channels, int(groups))
    split = reshape(input, (batch, groups, channels // groups, *space))
    turned = permute(split, (0, 2, 1, *range(3, 3 + len(space))))
    return reshape(turned, shape)
