"""Axes added, taken away, moved and cut: views wherever torch gives views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as strided

from numbat.autograd.tape import Node, record_view
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, expand, permute, reshape, transpose, view
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "expand_as", "flatten", "moveaxis",
    "movedim", "narrow", "ravel", "reshape_as", "select", "squeeze", "swapaxes", "swapdims", "t",
    "unflatten", "unfold", "unsqueeze", "view_as",
]  # fmt: skip

_ALL = slice(None)


def extents_of(values: Any) -> tuple[int, ...]:
    """Whole numbers given one by one or as one sequence."""
    if len(values) == 1 and not isinstance(values[0], int) and hasattr(values[0], "__len__"):
        values = values[0]
    return tuple([int(one) for one in values])


def distinct_axes(dims: Any, ndim: int, operator: str) -> tuple[int, ...]:
    """Axes counted from the front, in the order given.

    Raises CORE-0204 for an axis that is not there, CORE-0207 for one named twice.
    """
    several = (dims,) if isinstance(dims, int) else tuple(dims)
    axes = tuple([axis_of(int(one), ndim, operator) for one in several])
    if len(set(axes)) != len(axes):
        raise refuse("CORE-0207", operator=operator, dims=list(axes), ndim=ndim)
    return axes


def _sample_squeeze(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(1, 3, 1)),))
    yield Sample((rng.normal(size=(1, 3, 1)), 0))
    yield Sample((rng.normal(size=(2, 3, 1)), (0, -1)))
    yield Sample((rng.normal(size=()), 0))


@operator(_sample_squeeze)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """A view without the axes of extent one: all of them, or those among `dim`.

    Raises CORE-0204, CORE-0207.
    """
    array = input.array
    shape = array.shape
    if dim is None:
        axes = tuple([axis for axis, extent in enumerate(shape) if extent == 1])
    else:
        chosen = distinct_axes(dim, len(shape), "squeeze")
        axes = tuple([axis for axis in chosen if shape and shape[axis] == 1])
    return record_view(array.squeeze(axes), squeeze_backward, input, shape)


def squeeze_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (reshape(grad, node.values),)


def _sample_unsqueeze(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 1))
    yield Sample((rng.normal(size=(2, 3)), -1))
    yield Sample((rng.normal(size=()), 0))


@operator(_sample_unsqueeze)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a further axis of extent one at `dim`.

    Raises CORE-0204.
    """
    array = input.array
    axis = axis_of(dim, array.ndim + 1, "unsqueeze")
    return record_view(array[(_ALL,) * axis + (None,)], unsqueeze_backward, input, axis)


def unsqueeze_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (squeeze(grad, node.values),)


def _sample_flatten(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 2)),))
    yield Sample((rng.normal(size=(2, 3, 2)).transpose(2, 1, 0), 1))
    yield Sample((rng.normal(size=(2, 3, 2)), 0, 1))
    yield Sample((rng.normal(size=()),))


@operator(_sample_flatten)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` as one: a view where the memory allows it, else a
    copy.

    Raises CORE-0204, and CORE-0253 where the last axis lies before the first.
    """
    shape = input.array.shape
    first = axis_of(start_dim, len(shape), "flatten")
    last = axis_of(end_dim, len(shape), "flatten")
    if first > last:
        raise refuse(
            "CORE-0253", operator="flatten", argument="end_dim", value=end_dim,
            wanted="an axis not before start_dim",
        )  # fmt: skip
    if first == last and shape:
        return input
    count = 1
    for extent in shape[first : last + 1]:
        count *= extent
    return reshape(input, (*shape[:first], count, *shape[last + 1 :]))


def _sample_ravel(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)).T,))


@operator(_sample_ravel)
def ravel(input: Tensor) -> Tensor:
    """All elements along one axis: a view where the memory allows it, else a copy."""
    return reshape(input, (input.array.size,))


def _sample_unflatten(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(6, 2)), 0, (2, 3)))
    yield Sample((rng.normal(size=(2, 6)), -1, (-1, 2)))


@operator(_sample_unflatten)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """A view with the axis `dim` cut into several, one of whose extents may be -1.

    Raises CORE-0204, and CORE-0246 where the extents do not make up the axis.
    """
    shape = input.array.shape
    axis = axis_of(dim, len(shape), "unflatten")
    wanted = list(extents_of((sizes,)))
    extent = shape[axis] if shape else 1
    known = 1
    for size in wanted:
        known *= size if size != -1 else 1
    if wanted.count(-1) == 1 and known and extent % known == 0:
        wanted[wanted.index(-1)] = extent // known
    elif known != extent or -1 in wanted:
        raise refuse("CORE-0246", operator="unflatten", sizes=wanted, extent=extent)
    return view(input, (*shape[:axis], *wanted, *shape[axis + 1 :]))


def _sample_movedim(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)), 0, -1))
    yield Sample((rng.normal(size=(2, 3, 4)), (0, 1), (2, 0)))


@operator(_sample_movedim)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with the axes `source` moved to the places `destination`; the others keep their order.

    Raises CORE-0204, CORE-0207, and CORE-0246 where there are not as many places as axes.
    """
    ndim = input.array.ndim
    taken = distinct_axes(source, ndim, "movedim")
    places = distinct_axes(destination, ndim, "movedim")
    if len(taken) != len(places):
        raise refuse("CORE-0246", operator="movedim", sizes=list(places), extent=len(taken))
    if not ndim:
        return permute(input, ())
    rest = iter([axis for axis in range(ndim) if axis not in taken])
    at = dict(zip(places, taken, strict=True))
    return permute(input, [at[place] if place in at else next(rest) for place in range(ndim)])


@operator(_sample_movedim)
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """`movedim` under numpy's name."""
    return movedim(input, source, destination)


def _sample_swapaxes(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)), 0, -1))


@operator(_sample_swapaxes)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` under numpy's name."""
    return transpose(input, axis0, axis1)


@operator(_sample_swapaxes)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` under its other name."""
    return transpose(input, dim0, dim1)


def _sample_t(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(3,)),))


@operator(_sample_t)
def t(input: Tensor) -> Tensor:
    """A view of a matrix with its axes exchanged; of fewer axes, a view of the same shape.

    Raises CORE-0248 for more than two axes.
    """
    if input.array.ndim > 2:
        raise refuse("CORE-0248", operator="t", shape=list(input.shape), wanted="two axes or fewer")
    return transpose(input, 0, 1) if input.array.ndim == 2 else view(input, input.shape)


def _sample_adjoint(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)),))


@operator(_sample_adjoint)
def adjoint(input: Tensor) -> Tensor:
    """A view with the last two axes exchanged.

    Raises CORE-0248 for fewer than two axes.
    """
    return _matrix_transpose(input, "adjoint")


def _matrix_transpose(input: Tensor, name: str) -> Tensor:
    if input.array.ndim < 2:
        raise refuse("CORE-0248", operator=name, shape=list(input.shape), wanted="two axes or more")
    return transpose(input, -2, -1)


def reversed_axes(input: Tensor) -> Tensor:
    """`Tensor.T`: a view with its axes in the opposite order."""
    return permute(input, tuple(range(input.array.ndim - 1, -1, -1)))


def matrix_transpose(input: Tensor) -> Tensor:
    """`Tensor.mT`: a view with the last two axes exchanged (CORE-0248 for fewer)."""
    return _matrix_transpose(input, "mT")


def hermitian(input: Tensor) -> Tensor:
    """`Tensor.H`: the transpose of a matrix, there being no complex numbers (CORE-0248 for more
    axes)."""
    if input.array.ndim not in (0, 2):
        raise refuse("CORE-0248", operator="H", shape=list(input.shape), wanted="two axes")
    return transpose(input, 0, 1)


def _sample_select(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 0, 1))
    yield Sample((rng.normal(size=(2, 3)), -1, -1))


@operator(_sample_select)
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """A view of what lies at one index of an axis, which it loses.

    Raises CORE-0248 for a tensor without axes, CORE-0204, CORE-0240.
    """
    from numbat.ops.indexing import basic_view

    array = input.array
    if not array.ndim:
        raise refuse("CORE-0248", operator="select", shape=[], wanted="one axis or more")
    axis = axis_of(dim, array.ndim, "select")
    number = int(index)
    if not -array.shape[axis] <= number < array.shape[axis]:
        raise refuse(
            "CORE-0240", operator="select", index=number, dim=axis, extent=array.shape[axis]
        )
    return basic_view(input, (_ALL,) * axis + (number,))


def _sample_narrow(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(4, 3)), 0, 1, 2))
    yield Sample((rng.normal(size=(2, 4)), -1, -3, 2))


@operator(_sample_narrow)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A view of `length` elements of an axis from `start` on.

    Raises CORE-0248 for a tensor without axes, CORE-0204, CORE-0240 where it reaches outside.
    """
    from numbat.ops.indexing import basic_view

    array = input.array
    if not array.ndim:
        raise refuse("CORE-0248", operator="narrow", shape=[], wanted="one axis or more")
    axis = axis_of(dim, array.ndim, "narrow")
    extent, first = array.shape[axis], int(start)
    if length < 0:
        raise refuse(
            "CORE-0253", operator="narrow", argument="length", value=length, wanted="0 or more"
        )
    begin = first + extent if first < 0 else first
    if not 0 <= begin <= extent or begin + length > extent:
        index = first if not 0 <= begin <= extent else begin + length - 1
        raise refuse("CORE-0240", operator="narrow", index=index, dim=axis, extent=extent)
    return basic_view(input, (_ALL,) * axis + (slice(begin, begin + length),))


def _sample_unfold(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(7,)), 0, 3, 2))
    yield Sample((rng.normal(size=(2, 5)), 1, 2, 1))


@operator(_sample_unfold)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all slices of `size` along an axis, `step` apart, whose elements form a last axis.

    Raises CORE-0204, CORE-0253 where a slice is longer than the axis or the step is not positive.
    """
    array = input.array
    axis = axis_of(dimension, array.ndim, "unfold")
    extent = array.shape[axis] if array.ndim else 1
    if not 0 <= size <= extent:
        raise refuse(
            "CORE-0253", operator="unfold", argument="size", value=size,
            wanted=f"between 0 and the extent {extent}",
        )  # fmt: skip
    if step <= 0:
        raise refuse(
            "CORE-0253", operator="unfold", argument="step", value=step, wanted="1 or more"
        )
    if not array.ndim:
        array = array.reshape(1)
        windows = array[:size]
    else:
        count = (extent - size) // step + 1
        pace = array.strides[axis]
        windows = strided(
            array,
            (*array.shape[:axis], count, *array.shape[axis + 1 :], size),
            (*array.strides[:axis], pace * step, *array.strides[axis + 1 :], pace),
        )
    return record_view(windows, unfold_backward, input, (input.array.shape, axis, size, step))


def unfold_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (fold_back(grad, *node.values),)


def fold_back(grad: Tensor, shape: tuple[int, ...], axis: int, size: int, step: int) -> Tensor:
    """The sum of all slices at their places: what `unfold` is undone by."""
    from numbat.autograd.tape import record

    whole = np.zeros(shape, grad.array.dtype)
    if not shape:
        if size:
            whole[...] = grad.array.reshape(())
    else:
        # One strided addition for each place within a slice: no place is met twice in it.
        count = grad.array.shape[axis]
        for place in range(size if count else 0):
            stop = place + (count - 1) * step + 1
            whole[(_ALL,) * axis + (slice(place, stop, step),)] += grad.array[..., place]
    return record(whole, fold_back_backward, (grad,), values=(axis, size, step))


def fold_back_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (unfold(grad, *node.values),)


def _sample_like(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), np.zeros((3, 2), np.int64)))


@operator(_sample_like)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` in another tensor's shape."""
    return view(input, other.array.shape)


@operator(_sample_like)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to another tensor's shape."""
    return reshape(input, other.array.shape)


def _sample_expand_as(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 1)), np.zeros((2, 3, 2), np.int64)))


@operator(_sample_expand_as)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to another tensor's shape."""
    return expand(input, other.array.shape)


def _sample_atleast(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=()),))
    yield Sample((rng.normal(size=(2,)),))
    yield Sample((rng.normal(size=(2, 3)),))


def _each(tensors: tuple[Any, ...], change: Any) -> Any:
    if len(tensors) == 1:
        given = tensors[0]
        return change(given) if isinstance(given, Tensor) else tuple(change(one) for one in given)
    return tuple(change(one) for one in tensors)


@operator(_sample_atleast, method=False)
def atleast_1d(*tensors: Any) -> Any:
    """The tensor, or each of several, with one axis or more."""
    return _each(tensors, lambda one: one if one.array.ndim else reshape(one, (1,)))


@operator(_sample_atleast, method=False)
def atleast_2d(*tensors: Any) -> Any:
    """The tensor, or each of several, with two axes or more; new ones come first."""
    return _each(tensors, lambda one: _widened(one, (_front, _front)))


@operator(_sample_atleast, method=False)
def atleast_3d(*tensors: Any) -> Any:
    """The tensor, or each of several, with three axes or more: a vector along the middle one, a
    matrix
    along the first two."""
    return _each(tensors, lambda one: _widened(one, (_front, _front, _back)))


def _front(one: Tensor) -> Tensor:
    return unsqueeze(one, 0)


def _back(one: Tensor) -> Tensor:
    return unsqueeze(one, -1)


def _widened(one: Tensor, steps: tuple[Any, ...]) -> Tensor:
    for step in steps[one.array.ndim :]:
        one = step(one)
    return one
