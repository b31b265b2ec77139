"""The larger and the smaller of two, bounds, and choices between two, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.broadcasting import apply, check_broadcast
from numbat.ops.mapping import refuse_type, weighted
from numbat.ops.registry import Sample, operator
from numbat.tensors.promotion import as_operand, operands, result_type
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "clamp", "clamp_max", "clamp_min", "fmax", "fmin", "maximum", "minimum", "where",
]  # fmt: skip


def _sample_pair(rng: np.random.Generator) -> Any:
    # Numbers of one grid, shuffled: no two are equal or close.
    for one, other in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4,), ())):
        count = int(np.prod(one) + np.prod(other))
        values = rng.permutation(np.arange(count) * 0.5 - 1.3)
        yield Sample((
            values[: int(np.prod(one))].reshape(one), values[int(np.prod(one)) :].reshape(other)
        ))  # fmt: skip


@operator(_sample_pair)
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two, NaN where either is; at a tie each gets half of the gradient."""
    x, y = operands(input, other)
    return record(apply("maximum", np.maximum, x, y), maximum_backward, (x, y), (x, y))


def maximum_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    return _shared(node, grad, x.array < y.array, x.array == y.array, y.array < x.array)


@operator(_sample_pair)
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two, NaN where either is; at a tie each gets half of the gradient."""
    x, y = operands(input, other)
    return record(apply("minimum", np.minimum, x, y), minimum_backward, (x, y), (x, y))


def minimum_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    return _shared(node, grad, x.array > y.array, x.array == y.array, y.array > x.array)


def _shared(
    node: Node, grad: Tensor, not_x: Array, tie: Array, not_y: Array
) -> tuple[Tensor | None, Tensor | None]:
    """A gradient for the operand that was taken, half of it for each at a tie."""
    share = np.where(tie, 0.5, 1.0)
    for_x, for_y = node.sources
    return (
        weighted(grad, np.where(not_x, 0, share)) if for_x is not None else None,
        weighted(grad, np.where(not_y, 0, share)) if for_y is not None else None,
    )


@operator(_sample_pair)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two; a number where one is NaN. At a tie the first one gets the gradient."""
    x, y = operands(input, other)
    return record(apply("fmax", np.fmax, x, y), fmax_backward, (x, y), (x, y))


def fmax_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    return _taken(node, grad, (x.array >= y.array) | _nan(y.array))


@operator(_sample_pair)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two; a number where one is NaN. At a tie the first one gets the gradient."""
    x, y = operands(input, other)
    return record(apply("fmin", np.fmin, x, y), fmin_backward, (x, y), (x, y))


def fmin_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    return _taken(node, grad, (x.array <= y.array) | _nan(y.array))


def _nan(array: Array) -> Array:
    return np.asarray(array != array)


def _taken(node: Node, grad: Tensor, first: Array) -> tuple[Tensor | None, Tensor | None]:
    for_x, for_y = node.sources
    return (
        weighted(grad, first) if for_x is not None else None,
        weighted(grad, ~first) if for_y is not None else None,
    )


def _sample_where(rng: np.random.Generator) -> Any:
    mask = rng.uniform(size=(2, 3)) > 0.5
    yield Sample((mask, rng.normal(size=(2, 3)), rng.normal(size=(3,))))
    yield Sample((mask, rng.normal(size=(2, 1)), 0.5))
    yield Sample((mask[0], 1.5, rng.normal(size=(2, 1))))


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition holds, `other` elsewhere."""
    chosen: Tensor = where(condition, self, other)
    return chosen


@operator(_sample_where, method=_where_method)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; of the condition alone, its places.

    Raises CORE-0220 for a condition that is not of bools, CORE-0201 for shapes that do not meet.
    """
    if input is None and other is None:
        return tuple([wrap(one) for one in np.nonzero(condition.array)])
    mask = condition.array
    if mask.dtype.kind != "b":
        if mask.dtype != np.uint8:
            raise refuse_type("where", condition.dtype, "a condition holds or does not: bool")
        mask = mask != 0
    dtype = result_type(input, other)
    x, y = as_operand(input, dtype), as_operand(other, dtype)
    try:
        array = np.where(mask, x.array, y.array)
    except ValueError:
        check_broadcast("where", mask.shape, x.array.shape, y.array.shape)
        raise
    return record(array, where_backward, (x, y), values=mask)


def where_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    return _taken(node, grad, node.values)


def _sample_clamp(rng: np.random.Generator) -> Any:
    grid = rng.permutation(np.arange(6) * 0.5 - 1.3).reshape(2, 3)
    yield Sample((grid, -0.5, 0.5))
    yield Sample((grid,), {"max": 0.1})
    yield Sample((grid, np.array([-1.0, -0.4, 0.9]), np.array([[0.0], [0.33]])))


@operator(_sample_clamp, in_place=True)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The input held between two bounds, numbers or tensors; where they cross, `max` holds.

    Raises CORE-0226 where neither bound is given.
    """
    bounds = [one for one in (min, max) if one is not None]
    if not bounds:
        raise refuse("CORE-0226", operator="clamp")
    dtype = result_type(input, *bounds)
    x = as_operand(input, dtype)
    low = None if min is None else as_operand(min, dtype)
    high = None if max is None else as_operand(max, dtype)
    array: Any = x.array
    try:
        if low is not None:
            array = np.maximum(array, low.array)
        if high is not None:
            array = np.minimum(array, high.array)
    except ValueError:
        check_broadcast("clamp", *[one.array.shape for one in (x, low, high) if one is not None])
        raise
    inputs = tuple([one for one in (x, low, high) if one is not None])
    return record(array, clamp_backward, inputs, inputs, (low is not None, high is not None))


def clamp_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    tensors = list(node.unpack())
    has_low, has_high = node.values
    x = tensors.pop(0).array
    low = tensors.pop(0).array if has_low else None
    high = tensors.pop(0).array if has_high else None
    masks: list[Any] = []
    inside: Any = None
    if low is not None:
        inside = x >= low
        masks.append(x < low if high is None else (x < low) & (low < high))
    if high is not None:
        inside = x <= high if inside is None else inside & (x <= high)
        masks.append(x > high if low is None else (x > high) | (high < low))
    return tuple([
        weighted(grad, np.asarray(mask)) if source is not None else None
        for mask, source in zip([inside, *masks], node.sources, strict=True)
    ])  # fmt: skip


def _sample_clamp_one(rng: np.random.Generator) -> Any:
    grid = rng.permutation(np.arange(6) * 0.5 - 1.3).reshape(2, 3)
    yield Sample((grid, 0.1))
    yield Sample((grid, np.array([-1.0, -0.4, 0.9])))


@operator(_sample_clamp_one, torch=None, in_place=True)
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """The input, not below `min`."""
    return clamp(input, min=min)


@operator(_sample_clamp_one, torch=None, in_place=True)
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """The input, not above `max`."""
    return clamp(input, max=max)
