"""The largest and smallest elements over axes, and where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numbat.autograd.tape import Node, record, record_many
from numbat.ops.along import put, take
from numbat.ops.mapping import add_over, is_half, weighted
from numbat.ops.reductions import axes_of, kept_shape, spread
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, reshape
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "amax", "amin", "aminmax", "argmax", "argmin", "max", "min",
]  # fmt: skip


class Chosen(NamedTuple):
    """Elements chosen along an axis, and their indices there."""

    values: Tensor
    indices: Tensor


class Bounds(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


def grid(rng: np.random.Generator, *shape: int) -> Array:
    """Numbers of which no two are equal or close."""
    count = int(np.prod(shape))
    return np.asarray(rng.permutation(np.arange(count) * 0.4 - 1.1).reshape(shape))


def _sample_axes(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 2, 3), 1), {"keepdim": True})
    yield Sample((grid(rng, 2, 3, 2), (0, 2)))


def _sample_axis(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 2, 3), 1), {"keepdim": True})
    yield Sample((grid(rng, 2, 3), 0))


def check_choice(operator: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Raises CORE-0221 where there is nothing to choose from."""
    if any(not shape[axis] for axis in axes):
        raise refuse("CORE-0221", operator=operator, shape=list(shape), dims=list(axes))


def _extreme(
    name: str, ufunc: Any, input: Tensor, dim: Any, keepdim: bool, nan: bool = False
) -> Tensor:
    array = input.array
    axes = axes_of(dim, array.ndim, name)
    check_choice(name, array.shape, axes)
    found = ufunc.reduce(array, axes, None, None, keepdim)
    return record(found, _extreme_backward, (input,), (input,), (axes, nan), keep_result=True)


def _extreme_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    axes, nan = node.values
    return (shared_among(grad, x.array, node.unpack_result().array, axes, nan),)


def shared_among(
    grad: Tensor, x: Array, extreme: Array, axes: tuple[int, ...], nan: bool
) -> Tensor:
    """The gradient of an extreme, in even shares to all elements that are equal to it.

    Where it is NaN the elements that are NaN share it, or all get NaN, as PyTorch has it for the
    operator at hand (`nan`).
    """
    kept = extreme.reshape(kept_shape(x.shape, axes))
    mask = np.asarray(x == kept)
    if nan:
        mask = mask | ((kept != kept) & (x != x))
    count = add_over(mask, axes, np.float64, None, True)
    return weighted(spread(grad, x.shape, axes), mask / count)


def _sample_both(rng: np.random.Generator) -> Any:
    yield Sample((grid(rng, 2, 3),))
    yield Sample((grid(rng, 2, 3),), {"dim": 1, "keepdim": True})


@operator(_sample_axes)
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The largest element over axes, NaN where one is; equal ones share the gradient evenly.

    Raises CORE-0221 where there are no elements.
    """
    return _extreme("amax", np.maximum, input, dim, keepdim)


@operator(_sample_axes)
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """The smallest element over axes, NaN where one is; equal ones share the gradient evenly.

    Raises CORE-0221 where there are no elements.
    """
    return _extreme("amin", np.minimum, input, dim, keepdim)


@operator(_sample_both)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Bounds:
    """The smallest and the largest elements over an axis, or over all.

    Raises CORE-0221 where there are no elements.
    """
    return Bounds(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _index(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    array = input.array
    if dim is None:
        check_choice(name, array.shape, tuple(range(array.ndim)))
        found = places_of(name, array.reshape(-1), 0)
        return wrap(np.reshape(found, (1,) * array.ndim) if keepdim else found[0])
    axis = axis_of(dim, array.ndim, name)
    if not array.ndim:
        return wrap(np.zeros((), np.int64))
    check_choice(name, array.shape, (axis,))
    found = places_of(name, array, axis)
    return wrap(found if keepdim else found.squeeze(axis))


def places_of(name: str, array: Array, axis: int) -> Array:
    """The places of the first largest ("argmax") or smallest along an axis, which is kept."""
    function: Any = np.argmax if name in ("argmax", "max") else np.argmin
    if is_half(array.dtype):
        array = array.astype(np.float32)
    return np.asarray(function(array, axis=axis, keepdims=True), np.int64)


@operator(_sample_axis, differentiable=False)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first largest element along an axis, or in the flattened tensor.

    Raises CORE-0221 where there are no elements.
    """
    return _index("argmax", input, dim, keepdim)


@operator(_sample_axis, differentiable=False)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first smallest element along an axis, or in the flattened tensor.

    Raises CORE-0221 where there are no elements.
    """
    return _index("argmin", input, dim, keepdim)


def chosen(
    name: str, input: Tensor, places: Array, axis: int, keepdim: bool, values: Any = None
) -> Chosen:
    """The elements at places along an axis, and the places, recorded; the axis is dropped or kept.

    `places` has the tensor's axes, with extent one at `axis` unless it is kept.
    """
    array = take(input.array, places, axis) if values is None else values
    shown = places
    if input.array.ndim and not keepdim:
        array, shown = array.squeeze(axis), places.squeeze(axis)
    outs = record_many(
        (array, shown),
        chosen_backward,
        (input,),
        (),
        (places, axis, input.array.shape),
        (True, False),
    )
    return Chosen(*outs)


def chosen_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor | None]:
    places, axis, shape = node.values
    if grads[0] is None:
        return (None,)
    return (put(reshape(grads[0], places.shape), places, axis, shape),)


def _max_or_min(
    name: str, ufunc: Any, pairwise: str, input: Tensor, dim: Any, keepdim: bool
) -> Any:
    import numbat.ops.extremes as extremes

    if dim is None:
        return _extreme(name, ufunc, input, None, False, True)
    if isinstance(dim, Tensor):
        return getattr(extremes, pairwise)(input, dim)
    axis = axis_of(dim, input.array.ndim, name)
    if not input.array.ndim:
        return chosen(name, input, np.zeros((), np.int64), 0, keepdim)
    check_choice(name, input.array.shape, (axis,))
    return chosen(name, input, places_of(name, input.array, axis), axis, keepdim)


@operator(_sample_axis, torch="max.reduction_with_dim")
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; along an axis with the first one's index; with another, `maximum`.

    Raises CORE-0221 where there are no elements.
    """
    return _max_or_min("max", np.maximum, "maximum", input, dim, keepdim)


@operator(_sample_axis, torch="min.reduction_with_dim")
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; along an axis with the first one's index; with another, `minimum`.

    Raises CORE-0221 where there are no elements.
    """
    return _max_or_min("min", np.minimum, "minimum", input, dim, keepdim)
