"""Max pools whose windows begin at places drawn at random.

Source: Graham, "Fractional Max-Pooling", 2014 (arXiv 1412.6071); PyTorch,
`ATen/native/FractionalMaxPooling.h` for how a draw becomes the windows' places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.pooling import batched, unbatched
from numbat.ops.registry import Sample, operator
from numbat.ops.sampling import rand
from numbat.ops.selecting import gather
from numbat.ops.viewing import reshape
from numbat.ops.windows import numbers
from numbat.tensors.dtypes import from_numpy_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool3d",
]  # fmt: skip


def _starts(draws: Array, extent: int, kernel: int, count: int) -> Array:
    """Where `count` windows begin along an axis, for each draw: (..., count)."""
    if count == 1:
        return np.full((*draws.shape, 1), extent - kernel)
    kind = draws.dtype.type
    step = kind(kind(extent - kernel) / kind(count - 1))
    at = np.arange(count - 1, dtype=draws.dtype)
    found = ((at + draws[..., None]) * step).astype(np.int64)
    found -= (draws[..., None] * step).astype(np.int64)
    last = np.full((*draws.shape, 1), extent - kernel)
    return np.concatenate([found, last], -1)


def _counts(
    name: str, axes: int, space: tuple[int, ...], kernel: tuple[int, ...], size: Any, ratio: Any
) -> tuple[int, ...]:
    """How many windows there are along each axis.

    Raises CORE-0405 unless one of size and ratio is given, CORE-0404 where they do not fit.
    """
    if (size is None) == (ratio is None):
        raise refuse(
            "CORE-0405", operator=name, setting="output_size", given=str(size),
            wanted="one of output_size and output_ratio",
        )  # fmt: skip
    if size is None:
        ratios = (ratio,) * axes if isinstance(ratio, int | float) else tuple(ratio)
        counts = tuple(int(extent * one) for extent, one in zip(space, ratios, strict=True))
    else:
        counts = numbers(name, "output_size", size, axes, 1)
    fits = all(
        count > 0 and count + cells - 1 <= extent
        for extent, cells, count in zip(space, kernel, counts, strict=True)
    )
    if not fits:
        raise refuse(
            "CORE-0404", operator=name, space=list(space), kernel=list(kernel), result=list(counts)
        )
    return counts


def _pooled(
    name: str, axes: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Tensor | None,
) -> Any:  # fmt: skip
    kernel = numbers(name, "kernel_size", kernel_size, axes, 1)
    whole, alone = batched(name, axes, input, kernel)
    batch, channels, *extents = whole.array.shape
    space = tuple(extents)
    counts = _counts(name, axes, space, kernel, output_size, output_ratio)
    if samples is None:
        dtype = from_numpy_dtype(whole.array.dtype)
        samples = rand(batch, channels, axes, dtype=dtype)
    draws = samples.array
    if draws.ndim != 3 or draws.shape[1:] != (channels, axes) or len(draws) < batch:
        raise refuse(
            "CORE-0405", operator=name, setting="_random_samples", given=str(list(draws.shape)),
            wanted=f"the shape {[batch, channels, axes]}",
        )  # fmt: skip
    draws = draws[:batch]
    # In the plane torch takes the first draw for the width; in space for the depth.
    places = np.zeros((batch, channels, *(1,) * (2 * axes)), np.int64)
    for axis, (extent, cells, count) in enumerate(zip(space, kernel, counts, strict=True)):
        draw = draws[:, :, axes - 1 - axis] if axes == 2 else draws[:, :, axis]
        rows = _starts(draw, extent, cells, count)[..., None] + np.arange(cells)
        shape = [batch, channels, *(1,) * (2 * axes)]
        shape[2 + axis], shape[2 + axes + axis] = count, cells
        places = places * extent + rows.reshape(shape)
    windows = places.reshape(batch, channels, int(np.prod(counts)), -1)
    flat = whole.array.reshape(batch, channels, -1)
    values = np.take_along_axis(flat[:, :, None, :], windows, -1)
    best = values.argmax(-1)[..., None]
    chosen = wrap(np.take_along_axis(windows, best, -1)[..., 0])
    out = gather(reshape(whole, (batch, channels, -1)), 2, chosen)
    result = unbatched(reshape(out, (batch, channels, *counts)), alone)
    if not return_indices:
        return result
    return result, unbatched(wrap(chosen.array.reshape(batch, channels, *counts)), alone)


def _samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        x = rng.permutation(5**axes).reshape((1, 1, *(5,) * axes)) * 0.5
        yield Sample((x, 2), {"output_size": 3})
        yield Sample((x[0], 2), {"output_ratio": 0.5})

    return make


@operator(_samples(2), torch="nn.functional.fractional_max_pool2d", random=True, method=False)
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The largest element of windows over two axes whose places are drawn at random.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: the extents of a window.
        output_size, output_ratio: how many windows, or how many for each cell; one of both.
        return_indices: gives the places of the maxima in the flat plane as well.
        _random_samples: (N, C, 2), the draws, from 0 up to 1.

    Raises CORE-0401, CORE-0404, CORE-0405.
    """
    return _pooled(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip


@operator(_samples(3), torch="nn.functional.fractional_max_pool3d", random=True, method=False)
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The largest element of windows over three axes whose places are drawn at random.

    As `fractional_max_pool2d`, of (N, C, D, H, W) or (C, D, H, W). Raises CORE-0401, CORE-0404,
    CORE-0405.
    """
    return _pooled(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip
