"""Pools: the maximum, the average and the p-norm of windows, of fixed and of adaptive extent."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.kernels import pooling as kernels
from numbat.kernels.convolution import channels_first, channels_last
from numbat.kernels.resampling import Table
from numbat.ops.division import div
from numbat.ops.registry import Sample, operator
from numbat.ops.resampling import resampled, resampling
from numbat.ops.viewing import reshape
from numbat.ops.windows import numbers, output_extents
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def batched(name: str, axes: int, input: Tensor, kernel: Any = ()) -> tuple[Tensor, bool]:
    """The input with a batch axis, and whether it had none.

    Raises CORE-0401 where it has neither `axes + 1` nor `axes + 2` axes.
    """
    shape = input.array.shape
    if len(shape) == axes + 2:
        return input, False
    if len(shape) == axes + 1:
        return reshape(input, (1, *shape)), True
    raise refuse("CORE-0401", operator=name, input=list(shape), weight=list(kernel), axes=axes)


def unbatched(out: Tensor, alone: bool) -> Tensor:
    """The result without the batch axis that `batched` added."""
    return reshape(out, out.array.shape[1:]) if alone else out


def _pool_settings(
    name: str, axes: int, kernel: Any, stride: Any, padding: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Window, steps and padding as one number per axis; CORE-0405 where padding exceeds half a
    window."""
    cells = numbers(name, "kernel_size", kernel, axes, 1)
    absent = stride is None or (not isinstance(stride, int) and len(stride) == 0)
    steps = cells if absent else numbers(name, "stride", stride, axes, 1)
    begin = numbers(name, "padding", padding, axes, 0)
    if any(2 * pad > extent for pad, extent in zip(begin, cells, strict=True)):
        raise refuse(
            "CORE-0405", operator=name, setting="padding", given=str(padding),
            wanted="at most half the window",
        )  # fmt: skip
    return cells, steps, begin


# -- maxima ----------------------------------------------------------------------------------------


def _max_pool(
    name: str, axes: int, input: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, return_indices: bool,
) -> Any:  # fmt: skip
    cells, steps, begin = _pool_settings(name, axes, kernel, stride, padding)
    gaps = numbers(name, "dilation", dilation, axes, 1)
    whole, alone = batched(name, axes, input, cells)
    space = whole.array.shape[2:]
    counts = output_extents(
        name, space, cells, steps, [2 * one for one in begin], gaps, ceil_mode, begin
    )
    windows = tuple([
        kernels.places(*one) for one in zip(space, counts, cells, steps, begin, gaps, strict=True)
    ])  # fmt: skip
    return _maxima(whole, alone, windows, return_indices)


def _maxima(input: Tensor, alone: bool, windows: tuple[Array, ...], return_indices: bool) -> Any:
    best, index = kernels.greatest(channels_last(input.array), windows)
    out = record(
        channels_first(best), max_pool_backward, (input,), values=(index, input.array.shape[2:])
    )
    out = unbatched(out, alone)
    if not return_indices:
        return out
    places = channels_first(index.astype(np.int64, copy=False))
    return out, wrap(places[0] if alone else places)


def max_pool_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (lay_back(grad, *node.values),)


def lay_back(grad: Tensor, index: Array, space: tuple[int, ...]) -> Tensor:
    """Zeros `(N, C, *space)` with each value of `grad` added at its place; `index` has channels
    last."""
    array = kernels.laid_back(channels_last(grad.array), index, space)
    return record(channels_first(array), lay_back_backward, (grad,), values=(index, space))


def lay_back_backward(node: Node, above: Tensor) -> tuple[Tensor]:
    return (take_back(above, *node.values),)


def take_back(input: Tensor, index: Array, space: tuple[int, ...]) -> Tensor:
    """The values of `(N, C, *space)` at the places that `index`, channels last, names."""
    array = kernels.taken(channels_last(input.array), index)
    return record(channels_first(array), take_back_backward, (input,), values=(index, space))


def take_back_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (lay_back(grad, *node.values),)


def _apart(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Values in random order that lie well apart, so that no step of a difference changes a
    maximum."""
    count = int(np.prod(shape))
    return rng.permutation(count).reshape(shape) / count * 4 - 2


def _max_samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        space = (5, 4, 4)[:axes]
        yield Sample((_apart(rng, (1, 2, *space)), 2))
        keywords = {"padding": 1, "dilation": 2, "ceil_mode": True}
        yield Sample((_apart(rng, (2, *(5 for _ in space))), 3, 2), keywords)

    return make


@operator(_max_samples(1), torch="nn.functional.max_pool1d", method=False)
def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest value of each window of `(N, C, L)` or `(C, L)`, and its place where asked for.

    The stride is the window's extent where none is given; `ceil_mode` lets a last window reach
    beyond the end. Places count the cells of one channel. NaN is greater than every number.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or settings that do not fit.
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@operator(_max_samples(2), torch="nn.functional.max_pool2d", method=False)
def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest value of each window of `(N, C, H, W)` or `(C, H, W)`; see `max_pool1d`."""
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@operator(_max_samples(3), torch="nn.functional.max_pool3d", method=False)
def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest value of each window of `(N, C, D, H, W)` or `(C, D, H, W)`; see
    `max_pool1d`."""
    return _max_pool(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


# -- the way back from maxima ----------------------------------------------------------------------


def _unpool(
    name: str, axes: int, input: Tensor, indices: Tensor, kernel: Any, stride: Any, padding: Any,
    output_size: Any,
) -> Tensor:  # fmt: skip
    cells = numbers(name, "kernel_size", kernel, axes, 1)
    steps = cells if stride is None else numbers(name, "stride", stride, axes, 1)
    begin = numbers(name, "padding", padding, axes, 0)
    whole, alone = batched(name, axes, input, cells)
    counts = whole.array.shape[2:]
    usual = tuple([
        (count - 1) * step - 2 * pad + extent
        for count, step, pad, extent in zip(counts, steps, begin, cells, strict=True)
    ])  # fmt: skip
    space = usual if output_size is None else tuple(int(one) for one in output_size)[-axes:]
    far = any(
        abs(one - other) >= step for one, other, step in zip(space, usual, steps, strict=False)
    )
    if len(space) != axes or far:
        raise refuse(
            "CORE-0405", operator=name, setting="output_size", given=str(output_size),
            wanted=f"{list(usual)}, each give or take less than the stride",
        )  # fmt: skip
    if indices.array.shape != input.array.shape:
        raise refuse(
            "CORE-0202", operator=name, shape=list(input.shape), result_shape=list(indices.shape)
        )
    total = int(np.prod(space))
    index = channels_last(indices.array.reshape(whole.array.shape)).astype(np.int64, copy=False)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= total):
        raise refuse(
            "CORE-0406",
            operator=name,
            lowest=int(index.min()),
            highest=int(index.max()),
            cells=total,
        )
    array = kernels.laid_out(channels_last(whole.array), index, space)
    out = record(channels_first(array), max_unpool_backward, (whole,), values=(index, space))
    return unbatched(out, alone)


def max_unpool_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (take_back(grad, *node.values),)


def _unpool_samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        windows = tuple(kernels.places(4, 2, 2, 2, 0, 1) for _ in range(axes))
        _, index = kernels.greatest(_apart(rng, (1, *([4] * axes), 2)), windows)
        places = np.ascontiguousarray(np.moveaxis(index, -1, 1))
        yield Sample((rng.normal(size=places.shape), places, 2))
        yield Sample((rng.normal(size=places.shape)[0], places[0], 2, 2, 0, [5] * axes))

    return make


@operator(_unpool_samples(1), torch="nn.functional.max_unpool1d", method=False)
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros with each value at the place that `max_pool1d` gave for it.

    Raises CORE-0406 for a place outside the result, CORE-0405 for another extent than could have
    been pooled, CORE-0202 where there is not one place for each value.
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@operator(_unpool_samples(2), torch="nn.functional.max_unpool2d", method=False)
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros with each value at the place that `max_pool2d` gave for it; see `max_unpool1d`."""
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@operator(_unpool_samples(3), torch="nn.functional.max_unpool3d", method=False)
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros with each value at the place that `max_pool3d` gave for it; see `max_unpool1d`."""
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# -- averages --------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _window_table(
    extent: int, windows: int, cells: int, stride: int, begin: int
) -> tuple[Table, Array]:
    """The table of evenly spaced windows, and how many cells each has with the padding it reaches
    into."""
    table = Table.of(kernels.places(extent, windows, cells, stride, begin, 1), extent)
    first = np.arange(windows) * stride - begin
    return table, np.minimum(first + cells, extent + begin) - first


@lru_cache(maxsize=512)
def _adaptive_table(extent: int, windows: int) -> tuple[Table, Array]:
    table = Table.of(kernels.adaptive_places(extent, windows), extent)
    return table, np.diff(table.starts)


def _over_space(counts: list[Array]) -> Array:
    """The product of the numbers of cells along each axis, for every window."""
    product = np.ones((), np.int64)
    for one in counts:
        product = product[..., None] * one
    return np.asarray(product)


def _averaged(input: Tensor, tables: tuple[Table, ...], divisor: Array) -> Tensor:
    """The sums of windows over their divisors; whole numbers are cut towards zero, as in C."""
    sums = resampled(input.array, tables)
    if sums.dtype.kind in "iu":
        array = np.trunc(sums / divisor).astype(sums.dtype)
        return wrap(array)
    divisor = divisor.astype(sums.dtype)
    array = np.true_divide(sums, divisor, dtype=sums.dtype)
    return record(array, average_backward, (input,), values=(tables, divisor))


def average_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    tables, divisor = node.values
    return (resampling(div(grad, wrap(divisor)), tuple([one.transposed for one in tables])),)


def _avg_pool(
    name: str, axes: int, input: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Tensor:  # fmt: skip
    cells, steps, begin = _pool_settings(name, axes, kernel, stride, padding)
    if divisor_override == 0:
        raise refuse(
            "CORE-0405",
            operator=name,
            setting="divisor_override",
            given="0",
            wanted="another number",
        )
    whole, alone = batched(name, axes, input, cells)
    space = whole.array.shape[2:]
    counts = output_extents(
        name, space, cells, steps, [2 * one for one in begin], [1] * axes, ceil_mode, begin
    )
    found = [_window_table(*one) for one in zip(space, counts, cells, steps, begin, strict=True)]
    tables = tuple([table for table, _ in found])
    if divisor_override is not None:
        divisor = np.array(divisor_override)
    elif count_include_pad:
        divisor = _over_space([count for _, count in found])
    else:
        divisor = _over_space([np.diff(table.starts) for table in tables])
    return unbatched(_averaged(whole, tables, divisor), alone)


def _avg_samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        space = (5, 4, 3)[:axes]
        yield Sample((rng.normal(size=(1, 2, *space)), 2))
        for counted in (True, False):
            keywords = {"padding": 1, "ceil_mode": True, "count_include_pad": counted}
            yield Sample((rng.normal(size=(2, *space)), 3, 2), keywords)

    return make


@operator(_avg_samples(1), torch="nn.functional.avg_pool1d", method=False)
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The average of each window of `(N, C, L)` or `(C, L)`.

    `count_include_pad` counts cells of the padding, which are zero.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or settings that do not fit.
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


@operator(_avg_samples(2), torch="nn.functional.avg_pool2d", method=False)
def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The average of each window of `(N, C, H, W)` or `(C, H, W)`; see `avg_pool1d`.

    `divisor_override` divides every sum, instead of the number of cells.
    """
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


@operator(_avg_samples(3), torch="nn.functional.avg_pool3d", method=False)
def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The average of each window of `(N, C, D, H, W)` or `(C, D, H, W)`; see `avg_pool2d`."""
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


# -- pools of a given extent -----------------------------------------------------------------------


def _adaptive_extents(
    name: str, axes: int, input: Tensor, output_size: Any
) -> tuple[Tensor, bool, tuple[int, ...]]:
    whole, alone = batched(name, axes, input)
    space = whole.array.shape[2:]
    several = (output_size,) * axes if isinstance(output_size, int) else tuple(output_size)
    several = several * axes if len(several) == 1 else several
    wanted = tuple([
        extent if one is None else int(one) for extent, one in zip(space, several, strict=False)
    ])  # fmt: skip
    if len(several) != axes or min(wanted) < 0:
        raise refuse(
            "CORE-0405", operator=name, setting="output_size", given=str(output_size),
            wanted=f"one extent, or {axes} of them (None keeps an extent)",
        )  # fmt: skip
    if min(space) < 1:
        raise refuse(
            "CORE-0404", operator=name, space=list(space), kernel=list(wanted), result=list(wanted)
        )
    return whole, alone, wanted


def adaptive_average(name: str, axes: int, input: Tensor, output_size: Any) -> Tensor:
    """The averages of windows that cover the input evenly; 'area' interpolation is the same."""
    whole, alone, wanted = _adaptive_extents(name, axes, input, output_size)
    found = [_adaptive_table(*one) for one in zip(whole.array.shape[2:], wanted, strict=True)]
    divisor = _over_space([count for _, count in found])
    return unbatched(_averaged(whole, tuple([table for table, _ in found]), divisor), alone)


def _adaptive_max(
    name: str, axes: int, input: Tensor, output_size: Any, return_indices: bool
) -> Any:
    whole, alone, wanted = _adaptive_extents(name, axes, input, output_size)
    windows = tuple([
        kernels.adaptive_places(*one) for one in zip(whole.array.shape[2:], wanted, strict=True)
    ])  # fmt: skip
    return _maxima(whole, alone, windows, return_indices)


def _adaptive_samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        space = (5, 4, 3)[:axes]
        yield Sample((_apart(rng, (2, 2, *space)), 1))
        yield Sample((_apart(rng, (2, *space)), (3, 2, None)[:axes]))

    return make


@operator(_adaptive_samples(1), torch="nn.functional.adaptive_avg_pool1d", method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The averages of `output_size` windows that cover `(N, C, L)` or `(C, L)` evenly.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or an extent that does not fit.
    """
    return adaptive_average("adaptive_avg_pool1d", 1, input, output_size)


@operator(_adaptive_samples(2), torch="nn.functional.adaptive_avg_pool2d", method=False)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The averages of windows that cover `(N, C, H, W)` or `(C, H, W)`; None keeps an extent."""
    return adaptive_average("adaptive_avg_pool2d", 2, input, output_size)


@operator(_adaptive_samples(3), torch="nn.functional.adaptive_avg_pool3d", method=False)
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The averages of windows that cover `(N, C, D, H, W)` or `(C, D, H, W)`; None keeps an
    extent."""
    return adaptive_average("adaptive_avg_pool3d", 3, input, output_size)


@operator(_adaptive_samples(1), torch="nn.functional.adaptive_max_pool1d", method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest values of `output_size` windows that cover `(N, C, L)` or `(C, L)` evenly.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or an extent that does not fit.
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


@operator(_adaptive_samples(2), torch="nn.functional.adaptive_max_pool2d", method=False)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest values of windows that cover `(N, C, H, W)` or `(C, H, W)`."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@operator(_adaptive_samples(3), torch="nn.functional.adaptive_max_pool3d", method=False)
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest values of windows that cover `(N, C, D, H, W)` or `(C, D, H, W)`."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


# -- norms -----------------------------------------------------------------------------------------


def _lp_pool(
    name: str, axes: int, input: Tensor, norm_type: float, kernel: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    from numbat.ops.exponential import pow as power

    cells = numbers(name, "kernel_size", kernel, axes, 1)
    mean = _avg_pool(name, axes, power(input, norm_type), cells, stride, 0, ceil_mode, True, None)
    return power(mean * int(np.prod(cells)), 1.0 / norm_type)


def _lp_samples(axes: int) -> Any:
    def make(rng: np.random.Generator) -> Any:
        space = (5, 4, 3)[:axes]
        yield Sample((rng.uniform(0.5, 2, size=(1, 2, *space)), 2.0, 2))
        yield Sample((rng.uniform(0.5, 2, size=(2, *space)), 3.0, 2, 1), {"ceil_mode": True})

    return make


@operator(_lp_samples(1), torch=None, method=False)
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-th root of the sum of each window's powers, over `(N, C, L)` or `(C, L)`.

    Raises CORE-0401, CORE-0404, CORE-0405 for an input or settings that do not fit.
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@operator(_lp_samples(2), torch=None, method=False)
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of `(N, C, H, W)` or `(C, H, W)`; see `lp_pool1d`."""
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@operator(_lp_samples(3), torch=None, method=False)
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of `(N, C, D, H, W)` or `(C, D, H, W)`; see `lp_pool1d`."""
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)
