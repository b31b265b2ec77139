"""Running sums, products and extremes along an axis, and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record, record_many
from numbat.ops.along import put, take
from numbat.ops.casting import clone
from numbat.ops.comparison import ne
from numbat.ops.extremals import Chosen, grid
from numbat.ops.mapping import is_half, weighted, widened
from numbat.ops.pointwise import sub
from numbat.ops.reductions import sum as total
from numbat.ops.reductions import sum_dtype
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, reshape
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap

__all__ = [
    "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "diff", "logcumsumexp",
    "trapezoid", "trapz",
]  # fmt: skip


def _sample_axis(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 1))
    yield Sample((rng.normal(size=(3, 2)), 0))
    yield Sample((np.asarray(rng.normal()), 0))


def running(ufunc: Any, array: Array, axis: int, dtype: Any) -> Any:
    """`ufunc` accumulated along an axis: float32 in float64, halves in float32, as PyTorch does."""
    if not array.ndim:
        return array.astype(dtype)
    wide = np.float32 if is_half(dtype) else np.float64 if dtype == np.float32 else dtype
    return ufunc.accumulate(array, axis, wide).astype(dtype, copy=False)


def turned(input: Tensor, axis: int) -> Tensor:
    """The tensor with an axis the other way round."""
    if not input.array.ndim:
        return input
    return record(np.flip(input.array, axis), turned_backward, (input,), values=axis)


def turned_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (turned(grad, node.values),)


@operator(_sample_axis, in_place=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running sum along an axis."""
    axis = axis_of(dim, input.array.ndim, "cumsum")
    array = running(np.add, input.array, axis, sum_dtype(input, dtype))
    return record(array, cumsum_backward, (input,), values=axis)


def cumsum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    axis = node.values
    return (turned(cumsum(turned(grad, axis), axis), axis),)


def _sample_cumprod(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(0.5, 2, (2, 3)), 1))
    yield Sample((np.array([[1.2, 0.0, 0.7, 0.0, 2.0], [0.0, 1.5, 1.1, 0.3, 0.0]]), 1))


@operator(_sample_cumprod, in_place=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running product along an axis; its gradient holds at zeros as well."""
    axis = axis_of(dim, input.array.ndim, "cumprod")
    array = running(np.multiply, input.array, axis, sum_dtype(input, dtype))
    return record(array, cumprod_backward, (input,), (input,), axis)


def cumprod_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    axis = node.values
    if not x.array.ndim:
        return (grad,)
    if x.array.dtype != grad.array.dtype:
        x = x.to(grad.dtype)
    if x.array.all():
        flow = turned(grad * cumprod(x, axis), axis)
        return (turned(cumsum(flow, axis), axis) / x,)
    # The gradient of x[k] is the product before it times s[k], s[k] = grad[k] + x[k+1] s[k+1].
    before = cumprod(shifted(x, axis, 1.0, 1), axis)
    return (before * recurrence(grad, shifted(x, axis, 0.0, -1), axis),)


def product_of_others(x: Tensor, axis: int) -> Tensor:
    """For each element the product of the others along an axis, without dividing."""
    before = cumprod(shifted(x, axis, 1.0, 1), axis)
    after = turned(cumprod(turned(shifted(x, axis, 1.0, -1), axis), axis), axis)
    return before * after


def _part(array: Array, axis: int, part: slice) -> Array:
    return array[(*[slice(None)] * axis, part)]


def shifted(x: Tensor, axis: int, fill: float, step: int) -> Tensor:
    """The tensor moved by one place along an axis, up for 1 and down for -1, and filled."""
    if not x.array.ndim or not x.array.shape[axis]:
        return x
    array = np.full_like(x.array, fill)
    if step > 0:
        _part(array, axis, slice(1, None))[...] = _part(x.array, axis, slice(0, -1))
    else:
        _part(array, axis, slice(0, -1))[...] = _part(x.array, axis, slice(1, None))
    return record(array, shifted_backward, (x,), values=(axis, step))


def shifted_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    axis, step = node.values
    return (shifted(grad, axis, 0.0, -step),)


def recurrence(start: Tensor, factor: Tensor, axis: int) -> Tensor:
    """s with s[k] = start[k] + factor[k] s[k+1] along an axis, from the end."""
    out = np.array(start.array, order="C")
    moved, held = np.moveaxis(out, axis, 0), np.moveaxis(factor.array, axis, 0)
    for place in range(moved.shape[0] - 2, -1, -1):
        moved[place] += held[place] * moved[place + 1]
    return record(out, recurrence_backward, (start, factor), (factor,), axis, keep_result=True)


def recurrence_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    (factor,) = node.unpack()
    axis = node.values
    # The transposed recurrence runs from the front: a[k] = grad[k] + factor[k-1] a[k-1].
    back = turned(
        recurrence(turned(grad, axis), turned(shifted(factor, axis, 0.0, 1), axis), axis), axis
    )
    if node.sources[1] is None:
        return back, None
    return back, back * shifted(node.unpack_result(), axis, 0.0, -1)


def _sample_extremes(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 4), 1))
    yield Sample((grid(rng, 4, 2), 0))


def _running_extreme(name: str, ufunc: Any, input: Tensor, dim: int) -> Chosen:
    axis = axis_of(dim, input.array.ndim, name)
    array = input.array
    if not array.ndim:
        places = np.zeros((), np.int64)
    else:
        best = ufunc.accumulate(array, axis)
        # Where the running extreme is the element itself (or both are NaN), the index moves on.
        fresh = (array == best) | (array != array)
        shape = [1] * array.ndim
        shape[axis] = -1
        index = np.arange(array.shape[axis], dtype=np.int64).reshape(shape)
        places = np.maximum.accumulate(np.where(fresh, index, 0), axis)
    outs = record_many(
        (take(array, places, axis), places), running_backward, (input,), (),
        (places, axis, array.shape), (True, False),
    )  # fmt: skip
    return Chosen(*outs)


def running_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor | None]:
    return (None if grads[0] is None else put(grads[0], *node.values),)


@operator(_sample_extremes)
def cummax(input: Tensor, dim: int) -> Chosen:
    """The largest element so far along an axis, and its index (of equal ones the last)."""
    return _running_extreme("cummax", np.maximum, input, dim)


@operator(_sample_extremes)
def cummin(input: Tensor, dim: int) -> Chosen:
    """The smallest element so far along an axis, and its index (of equal ones the last)."""
    return _running_extreme("cummin", np.minimum, input, dim)


@operator(_sample_axis)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sum of exponentials along an axis, without overflow."""
    x = floating(input)
    axis = axis_of(dim, x.array.ndim, "logcumsumexp")
    array = x.array.copy()
    if array.ndim and array.size:
        array = np.logaddexp.accumulate(widened(x.array), axis).astype(x.array.dtype)
    return record(array, logcumsumexp_backward, (x,), (x,), axis, keep_result=True)


def logcumsumexp_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    axis, result = node.values, node.unpack_result()
    total: Tensor | None = None
    # Positive and negative gradients apart, so that each has a logarithm.
    for side, mask in ((1, grad.array > 0), (-1, grad.array < 0)):
        if not mask.any():
            continue
        size = (grad if side > 0 else -grad).where(wrap(np.asarray(mask)), 1.0)
        part = (size.log() - result).where(wrap(np.asarray(mask)), float("-inf"))
        held = (turned(logcumsumexp(turned(part, axis), axis), axis) + x).exp()
        held = held if side > 0 else -held
        total = held if total is None else total + held
    return (weighted(grad, np.zeros(grad.array.shape, np.bool_)) if total is None else total,)


def _sample_diff(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4)),))
    yield Sample((rng.normal(size=(4, 2)), 2, 0))
    yield Sample((rng.normal(size=(2, 3)),), {"prepend": rng.normal(size=(2, 1))})


@operator(_sample_diff)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The differences of neighbours along an axis, `n` times; of bools, whether they differ."""
    from numbat.ops.joining import cat

    axis = axis_of(dim, input.array.ndim, "diff")
    if not n:
        return clone(input)
    parts = [one for one in (prepend, input, append) if one is not None]
    x = cat(parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, x.array.shape[axis])):
        upper, lower = _view(x, axis, slice(1, None)), _view(x, axis, slice(0, -1))
        x = ne(upper, lower) if x.array.dtype.kind == "b" else sub(upper, lower)
    return x


def _view(x: Tensor, axis: int, part: slice) -> Tensor:
    return x[(*[slice(None)] * axis, part)]


def _sample_trapezoid(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4)),))
    yield Sample((rng.normal(size=(2, 4)),), {"dx": 0.5, "dim": 0})
    yield Sample((rng.normal(size=(2, 4)), rng.normal(size=(4,))))


def _slabs(y: Tensor, x: Tensor | None, dx: float, dim: int, name: str) -> Tensor:
    """Twice the areas between neighbours, with their widths."""
    axis = axis_of(dim, y.array.ndim, name)
    both = _view(y, axis, slice(1, None)) + _view(y, axis, slice(0, -1))
    if x is None:
        return both * (dx * 0.5)
    width = _along(x, axis, y.array.ndim)
    if x.array.ndim > 1 or y.array.ndim == 1:
        at = axis_of(dim, x.array.ndim, name)
        width = diff(x, 1, at)
    else:
        width = diff(width, 1, axis)
    return both * width * 0.5


def _along(x: Tensor, axis: int, ndim: int) -> Tensor:
    """A tensor of one axis laid along one of several."""
    if x.array.ndim != 1:
        return x
    shape = [1] * ndim
    shape[axis] = x.array.shape[0]
    return reshape(x, shape)


@operator(_sample_trapezoid)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integral along an axis by trapezoids, at places `x` or in steps of `dx`."""
    axis = axis_of(dim, y.array.ndim, "trapezoid") - y.array.ndim
    return total(_slabs(y, x, dx, dim, "trapezoid"), axis)


@operator(_sample_trapezoid, torch=None, method=False)
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """`trapezoid` under its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


@operator(_sample_trapezoid)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1
) -> Tensor:
    """The running integral along an axis by trapezoids."""
    axis = axis_of(dim, y.array.ndim, "cumulative_trapezoid") - y.array.ndim
    return cumsum(_slabs(y, x, dx, dim, "cumulative_trapezoid"), axis)
