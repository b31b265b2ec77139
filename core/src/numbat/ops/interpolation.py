"""Interpolation to another extent, and sampling at points of a grid."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.kernels.convolution import channels_first, channels_last
from numbat.kernels.resampling import Table
from numbat.ops.pooling import adaptive_average
from numbat.ops.registry import Sample, operator
from numbat.ops.resampling import resampling
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "affine_grid", "grid_sample", "interpolate", "upsample",
]  # fmt: skip

AXES = {
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,),
    "bicubic": (2,), "trilinear": (3,), "area": (1, 2, 3),
}  # fmt: skip
"""Over how many axes of space each mode goes."""


# -- interpolation ---------------------------------------------------------------------------------


def _sources(
    extent: int, wanted: int, factor: float | None, aligned: bool, cubic: bool, real: Any
) -> Array:
    """Where each cell of the result lies in the input, in cells from the first one's middle.

    Computed in the tensor's own precision, as PyTorch does (`area_pixel_compute_source_index`).
    """
    index = np.arange(wanted).astype(real)
    if aligned:
        step = real(real(extent - 1) / real(wanted - 1)) if wanted > 1 else real(0)
        return np.asarray(index * step)
    step = _step(extent, wanted, factor, real)
    at = step * (index + real(0.5)) - real(0.5)
    return np.asarray(at if cubic else np.maximum(at, real(0)))


def _step(extent: int, wanted: int, factor: float | None, real: Any) -> Any:
    return real(1.0 / factor) if factor is not None and factor > 0 else real(extent) / real(wanted)


@lru_cache(maxsize=512)
def _table(
    mode: str, extent: int, wanted: int, factor: float | None, aligned: bool, single: bool
) -> Table:
    """The table of one axis for an interpolation mode."""
    real: Any = np.float32 if single else np.float64
    if mode in ("nearest", "nearest-exact"):
        half = real(0.5 if mode == "nearest-exact" else 0)
        at = (np.arange(wanted).astype(real) + half) * _step(extent, wanted, factor, real)
        places = np.minimum(np.floor(at).astype(np.int64), extent - 1)
        return Table.of(places[:, None], extent)
    if mode == "bicubic":
        at = _sources(extent, wanted, factor, aligned, True, real)
        low = np.floor(at)
        places = low.astype(np.int64)[:, None] + np.arange(-1, 3)
        return Table.of(np.clip(places, 0, extent - 1), extent, cubic_weights(at - low))
    if wanted == extent and (factor is None or factor == 1.0 or aligned):
        return Table.of(np.arange(extent)[:, None], extent)
    at = _sources(extent, wanted, factor, aligned, False, real)
    low = np.minimum(at.astype(np.int64), extent - 1)
    part = np.clip(at - low.astype(real), real(0), real(1))
    places = np.stack([low, np.minimum(low + 1, extent - 1)], axis=1)
    return Table.of(places, extent, np.stack([real(1) - part, part], axis=1).astype(np.float64))


def cubic_weights(part: Array) -> Array:
    """Weights of the four cells around a point, by its distance from the second; `(..., 4)`.

    Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with
    A = -0.75 as PyTorch takes it.
    """
    a = -0.75
    part = part.astype(np.float64)

    def near(x: Array) -> Array:
        return np.asarray(((a + 2) * x - (a + 3)) * x * x + 1)

    def far(x: Array) -> Array:
        return np.asarray(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)

    return np.stack([far(part + 1), near(part), near(1 - part), far(2 - part)], axis=-1)


def _samples_interpolate(rng: np.random.Generator) -> Any:
    space = {1: (4,), 2: (4, 3), 3: (3, 2, 3)}
    for mode, axes in AXES.items():
        for count in axes:
            x = rng.normal(size=(1, 2, *space[count]))
            yield Sample((x, tuple(2 * one - 1 for one in space[count])), {"mode": mode})
        if mode in ("linear", "bilinear", "bicubic", "trilinear"):
            yield Sample((x, None, 1.5), {"mode": mode, "align_corners": True})
    keywords = {"mode": "bilinear", "recompute_scale_factor": True}
    yield Sample((rng.normal(size=(1, 1, 5, 4)), None, (0.7, 1.6)), keywords)


@operator(_samples_interpolate, torch="nn.functional.interpolate", method=False)
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """`(N, C, *in)` brought to other extents, given as such or as factors.

    Modes: 'nearest', 'nearest-exact' and 'area' over one to three axes, 'linear' over one,
    'bilinear'
    and 'bicubic' over two, 'trilinear' over three. With `align_corners` the middles of the corner
    cells lie on each other, else the outer edges of the corner cells do. A factor enters the steps
    as it is given, unless `recompute_scale_factor` asks for the ratio of the extents.

    Raises CORE-0413 for a mode, extents or settings that do not go together.
    """
    space = input.array.shape[2:]
    axes = len(space)

    def refused(because: str) -> Exception:
        return refuse("CORE-0413", mode=str(mode), shape=list(input.shape), because=because)

    if mode not in AXES:
        raise refused(f"the modes are {', '.join(AXES)}")
    if axes not in AXES[mode]:
        raise refused(f"the mode goes over {' or '.join(map(str, AXES[mode]))} axes after (N, C)")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise refused("align_corners goes with the linear and cubic modes alone")
    if (size is None) == (scale_factor is None):
        raise refused("give either size or scale_factor")
    if antialias:
        raise refused("antialias is not built in")
    factors: list[float | None] = [None] * axes
    if size is not None:
        wanted = [int(one) for one in ([size] * axes if isinstance(size, int) else size)]
        if recompute_scale_factor:
            raise refused("recompute_scale_factor goes with scale_factor")
    else:
        several = scale_factor if hasattr(scale_factor, "__len__") else [scale_factor] * axes
        wanted = [math.floor(extent * one) for extent, one in zip(space, several, strict=False)]
        if not recompute_scale_factor:
            factors = [float(one) for one in several]
    if len(wanted) != axes or len(factors) != axes:
        raise refused(f"{axes} extents are wanted")
    if min(wanted) < 1 or min(space) < 1:
        raise refused(f"extents of {list(wanted)} from {list(space)} are not all positive")
    if mode == "area":
        return adaptive_average("interpolate", axes, input, tuple(wanted))
    single = input.array.dtype != np.float64
    aligned = bool(align_corners)
    tables = tuple([
        _table(mode, extent, out, factor, aligned, single)
        for extent, out, factor in zip(space, wanted, factors, strict=True)
    ])  # fmt: skip
    return resampling(input, tables)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate` under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


# -- sampling at points ----------------------------------------------------------------------------

INSIDE = ("zeros", "border", "reflection")


def _cells_of(at: Array, extent: int, aligned: bool) -> tuple[Array, float]:
    """Grid coordinates in [-1, 1] as cells from the first one's middle, and the slope of that."""
    if aligned:
        return (at + 1) * (at.dtype.type(extent - 1) / 2), (extent - 1) / 2
    return ((at + 1) * at.dtype.type(extent) - 1) / 2, extent / 2


def _held(at: Array, extent: int, mode: str, aligned: bool) -> tuple[Array, Array]:
    """Coordinates brought inside as the padding mode says, and the slope of that (0, 1 or -1)."""
    slope = np.ones_like(at)
    if mode == "zeros":
        return at, slope
    if mode == "reflection":
        low, high = (0, 2 * (extent - 1)) if aligned else (-1, 2 * extent - 1)
        if low == high:
            at, slope = np.zeros_like(at), np.zeros_like(at)
        else:
            least, span = at.dtype.type(low / 2), at.dtype.type((high - low) / 2)
            beyond = at - least
            slope = np.where(beyond < 0, -slope, slope)
            beyond = np.abs(beyond)
            flips = np.floor(beyond / span)
            extra = beyond - flips * span
            even = np.mod(flips, 2) == 0
            at = np.where(even, extra + least, span - extra + least)
            slope = np.where(even, slope, -slope)
    inside = (at > 0) & (at < extent - 1)
    # NaN goes to the first cell, as in PyTorch.
    return np.where(at > 0, np.minimum(at, extent - 1), 0).astype(at.dtype), slope * inside


def _rounded(at: Array) -> Array:
    return np.rint(at)


class _Corner:
    """One of the cells that a point is mixed from: place, weights along each axis, and their
    slopes."""

    __slots__ = ("inside", "places", "slopes", "weights")

    def __init__(
        self, places: list[Array], weights: list[Array], slopes: list[Array], inside: Array
    ):
        self.places, self.weights, self.slopes, self.inside = places, weights, slopes, inside

    @property
    def weight(self) -> Array:
        """The product of the weights along all axes."""
        return math.prod(self.weights[1:], start=self.weights[0])

    def slope(self, axis: int) -> Array:
        """The weight's derivative by the coordinate of one axis."""
        found = self.slopes[axis]
        for other, weight in enumerate(self.weights):
            if other != axis:
                found = found * weight
        return found


def _corners(
    points: Array, space: tuple[int, ...], mode: str, padding: str, aligned: bool
) -> list[_Corner]:
    """The cells that each point of a grid `(N, *out, axes)` is mixed from."""
    axes = len(space)
    per_axis: list[list[tuple[Array, Array, Array]]] = []
    for axis in range(axes):
        # The last coordinate goes along the first axis of space.
        at, scale = _cells_of(points[..., axes - 1 - axis], space[axis], aligned)
        extent = space[axis]
        choices = []
        if mode == "bicubic":
            low = np.floor(at)
            part = (at - low).astype(np.float64)
            weights, slopes = cubic_weights(part), _cubic_slopes(part)
            for cell in range(4):
                place, _ = _held(low + (cell - 1), extent, padding, aligned)
                weight = weights[..., cell].astype(at.dtype)
                choices.append((place, weight, (slopes[..., cell] * scale).astype(at.dtype)))
        else:
            at, slope = _held(at, extent, padding, aligned)
            if mode == "nearest":
                choices.append((_rounded(at), np.ones_like(at), np.zeros_like(at)))
            else:
                low = np.floor(at)
                slope = slope * at.dtype.type(scale)
                choices.append((low, low + 1 - at, -slope))
                choices.append((low + 1, at - low, slope))
        per_axis.append(choices)
    found: list[_Corner] = []
    for combined in np.ndindex(*(len(one) for one in per_axis)):
        chosen = [per_axis[axis][at] for axis, at in enumerate(combined)]
        inside = np.ones(points.shape[:-1], bool)
        places = []
        for (place, _, _), extent in zip(chosen, space, strict=True):
            inside = inside & (place >= 0) & (place <= extent - 1)
            places.append(np.where((place >= 0) & (place <= extent - 1), place, 0).astype(np.int64))
        found.append(
            _Corner(places, [one[1] for one in chosen], [one[2] for one in chosen], inside)
        )
    return found


def _cubic_slopes(part: Array) -> Array:
    a = -0.75

    def near(x: Array) -> Array:
        return np.asarray((3 * (a + 2) * x - 2 * (a + 3)) * x)

    def far(x: Array) -> Array:
        return np.asarray((3 * a * x - 10 * a) * x + 8 * a)

    return np.stack([far(part + 1), near(part), -near(1 - part), -far(2 - part)], axis=-1)


def _samples_grid(rng: np.random.Generator) -> Any:
    for space in ((3, 4), (2, 3, 3)):
        x = rng.normal(size=(1, 2, *space))
        grid = rng.uniform(-1.3, 1.3, size=(1, *(2,) * len(space), len(space)))
        for mode in ("bilinear", "nearest") + (("bicubic",) if len(space) == 2 else ()):
            for padding in INSIDE:
                yield Sample((x, grid), {"mode": mode, "padding_mode": padding})
        yield Sample((x, grid), {"align_corners": True})


@operator(_samples_grid, torch="nn.functional.grid_sample", twice=False, method=False)
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """Values of `(N, C, *in)` at the points of `grid` `(N, *out, axes)`: `(N, C, *out)`.

    A point's coordinates run from -1 to 1 over the input, that of the last axis first. Modes:
    'bilinear' (over three axes too), 'nearest', 'bicubic' (over two). Points outside meet 'zeros',
    the 'border' cell, or the cells in 'reflection'.

    Raises CORE-0414 for shapes, modes or settings that do not go together; CORE-0111 for two types.
    """
    x, points = input.array, grid.array
    axes = x.ndim - 2

    def refused(because: str) -> Exception:
        return refuse(
            "CORE-0414", operator="grid_sample", shape=list(input.shape), grid=list(grid.shape),
            because=because,
        )  # fmt: skip

    if x.dtype != points.dtype:
        raise refuse(
            "CORE-0111", operator="grid_sample", first=input.dtype.name, second=grid.dtype.name
        )
    if axes not in (2, 3) or points.ndim != x.ndim or points.shape[-1] != axes:
        raise refused("the input has two or three axes of space, a grid as many, and a last axis "
                      "with one coordinate for each")  # fmt: skip
    if x.shape[0] != points.shape[0] or min(x.shape[2:]) < 1:
        raise refused("input and grid have the same batch, and the input is not empty")
    modes = ("bilinear", "nearest", "bicubic") if axes == 2 else ("bilinear", "nearest")
    if mode not in modes or padding_mode not in INSIDE:
        raise refused(f"modes are {', '.join(modes)}, paddings {', '.join(INSIDE)}")
    settings = x.shape[2:], mode, padding_mode, bool(align_corners)
    last, points = channels_last(_wide(x)), _wide(points)
    lead = np.arange(x.shape[0]).reshape(-1, *([1] * axes))
    out = np.zeros((*points.shape[:-1], x.shape[1]), last.dtype)
    for corner in _corners(points, *settings):
        weight = np.where(corner.inside, corner.weight, 0)[..., None]
        part = last[(lead, *corner.places)]
        # A cell outside counts nothing, whatever stands at the place that is read for it.
        out += np.where(corner.inside[..., None], part * weight, 0).astype(last.dtype)
    saved = (input if grid.requires_grad else None, grid)
    return record(
        channels_first(out.astype(x.dtype, copy=False)), grid_sample_backward, (input, grid), saved,
        settings,
    )  # fmt: skip


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def grid_sample_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    if grad.requires_grad:
        raise refuse("CORE-0312", operator="grid_sample")
    from numbat.tensors.tensor import wrap

    input, grid = node.unpack()
    for_input, for_grid = node.sources
    space, *_ = node.values
    axes = len(space)
    points = _wide(grid.array)
    given = channels_last(_wide(grad.array))
    lead = np.arange(given.shape[0]).reshape(-1, *([1] * axes))
    last = None if input is None else channels_last(_wide(input.array))
    shape = (given.shape[0], *space, given.shape[-1])
    into = np.zeros(shape, given.dtype) if for_input is not None else None
    towards = np.zeros(points.shape, given.dtype)
    for corner in _corners(points, *node.values):
        held = corner.inside
        if into is not None:
            weight = np.where(held, corner.weight, 0)[..., None].astype(given.dtype)
            flat = np.ravel_multi_index(
                (np.broadcast_to(lead, held.shape), *corner.places), shape[:-1]
            )
            _add_rows(into.reshape(-1, shape[-1]), flat.reshape(-1), (given * weight))
        if for_grid is not None and last is not None:
            along = (last[(lead, *corner.places)] * given).sum(axis=-1)
            for axis in range(axes):
                towards[..., axes - 1 - axis] += np.where(held, along * corner.slope(axis), 0)
    dtype = grad.array.dtype
    return (
        None if into is None else wrap(channels_first(into.astype(dtype, copy=False))),
        None if for_grid is None else wrap(towards.astype(dtype, copy=False)),
    )


def _add_rows(target: Array, rows: Array, values: Array) -> None:
    """Adds rows at places that may repeat, in the order of the places."""
    values = values.reshape(len(rows), -1)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if len(rows):
        target[ordered[first]] += np.add.reduceat(values[order], first, axis=0)


def _sample_affine(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 2, 3)), (2, 1, 3, 2)))
    yield Sample((rng.normal(size=(1, 3, 4)), (1, 1, 2, 2, 3)), {"align_corners": True})


@operator(_sample_affine, torch="nn.functional.affine_grid", method=False)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid of points for `grid_sample` that affine maps `(N, axes, axes + 1)` give for an
    output of
    `size` `(N, C, *out)`.

    Raises CORE-0414 where the maps are not those of such a size.
    """
    from numbat.ops.matrix import matmul
    from numbat.ops.viewing import reshape, transpose
    from numbat.tensors.tensor import wrap

    extents = tuple(int(one) for one in size)
    axes = len(extents) - 2
    if axes not in (2, 3) or theta.array.shape != (extents[0], axes, axes + 1) or min(extents) < 1:
        raise refuse(
            "CORE-0414", operator="affine_grid", shape=list(extents), grid=list(theta.shape),
            because="maps are (N, axes, axes + 1) for a size of (N, C, *out)",
        )  # fmt: skip
    dtype = theta.array.dtype
    lines = []
    for extent in extents[2:]:
        line = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (extent - 1) / extent)
    meshes = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(meshes), np.ones_like(meshes[0])], axis=-1).astype(dtype)
    flat = wrap(base.reshape(1, -1, axes + 1))
    return reshape(matmul(flat, transpose(theta, 1, 2)), (extents[0], *extents[2:], axes))
