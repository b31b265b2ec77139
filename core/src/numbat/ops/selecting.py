"""Elements chosen along an axis by tensors of indices or masks: gather and scatter, take and
put."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.accumulating import accumulated_at
from numbat.ops.casting import cast_array
from numbat.ops.indexing import (
    check_bounds,
    cleared,
    index_put_backward,
    indexed,
    indexed_backward,
)
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of, reshape
from numbat.tensors.creation import array_of
from numbat.tensors.promotion import scalar_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "argwhere", "gather", "index_add", "index_copy", "index_fill", "index_reduce", "index_select",
    "masked_fill", "masked_scatter", "masked_select", "nonzero", "put", "scatter", "scatter_add",
    "scatter_reduce", "take", "take_along_dim",
]  # fmt: skip

_ALL = slice(None)


def index_array(index: Any, operator: str) -> Array:
    """The array of a tensor of whole numbers.

    Raises CORE-0241 for another type.
    """
    array: Array = index.array if isinstance(index, Tensor) else array_of(index)
    if not array.size:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.dtype == np.uint8:
        raise refuse("CORE-0241", operator=operator, given=f"a tensor of {array.dtype.name}")
    return array


def _value(value: Any, like: Tensor) -> Tensor:
    """A tensor of one value, in the type of another tensor."""
    if isinstance(value, Tensor):
        return value
    scalar_dtype(value)
    return wrap(cast_array(np.asarray(value), like.array.dtype))


# -- Along an axis, one index an element ----------------------------------------------------------


def _check_index(input: Tensor, dim: int, index: Any, operator: str) -> tuple[Array, int]:
    places = index_array(index, operator)
    array = input.array
    axis = axis_of(dim, array.ndim, operator)
    shape, wanted = array.shape or (1,), places.shape or (1,)
    fits = len(shape) == len(wanted) and all(
        mine >= theirs or at == axis
        for at, (mine, theirs) in enumerate(zip(shape, wanted, strict=True))
    )
    if places.size and not fits:
        raise refuse(
            "CORE-0254", operator=operator, index_shape=list(places.shape),
            shape=list(array.shape), dim=axis,
        )  # fmt: skip
    check_bounds(places, shape[axis], axis, operator, from_back=False)
    return places, axis


def places_along(index: Array, axis: int) -> tuple[Any, ...]:
    """For each axis the indices that `index` along `axis` stands for, broadcasting to its shape."""
    grid: list[Any] = []
    for at, extent in enumerate(index.shape):
        steps = (1,) * at + (extent,) + (1,) * (index.ndim - at - 1)
        grid.append(index if at == axis else np.arange(extent).reshape(steps))
    return tuple(grid)


def _sample_gather(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)), 1, np.array([[0, 0, 3], [2, 1, 1]])))
    yield Sample((rng.normal(size=(3, 4)), 0, np.array([[2, 0, 1, 1]])))
    yield Sample((rng.normal(size=()), 0, np.array(0)))


@operator(_sample_gather)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """For each index the element at it along `dim`; the shape is the index's.

    Raises CORE-0204, CORE-0240 (negative ones too), CORE-0241, CORE-0254.
    """
    places, axis = _check_index(input, dim, index, "gather")
    return record(_gathered(input.array, places, axis), gather_backward, (input,),
                  values=(input.array.shape, places, axis))  # fmt: skip


def _gathered(array: Array, places: Array, axis: int) -> Array:
    if not places.ndim or not array.ndim:
        return array.reshape(-1)[places].reshape(places.shape)
    if not places.size:
        return np.empty(places.shape, array.dtype)
    cut = tuple(_ALL if at == axis else slice(extent) for at, extent in enumerate(places.shape))
    return np.take_along_axis(array[cut], places.astype(np.intp, copy=False), axis)


def gather_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, places, axis = node.values
    zeros = wrap(np.zeros(shape, grad.array.dtype))
    return (scatter_add(zeros, axis, wrap(places), grad),)


def _gather_known(grad: Tensor, places: Array, axis: int) -> Tensor:
    return record(_gathered(grad.array, places, axis), gather_backward, (grad,),
                  values=(grad.array.shape, places, axis))  # fmt: skip


def _check_source(src: Tensor, input: Tensor, places: Array, dim: int, operator: str) -> Array:
    """The part of `src` that the index names."""
    if src.array.dtype != input.array.dtype:
        raise refuse("CORE-0111", operator=operator, first=input.dtype.name, second=src.dtype.name)
    array = src.array
    mine, wanted = array.shape or (1,), places.shape or (1,)
    if places.size and (
        len(mine) != len(wanted)
        or any(held < asked for held, asked in zip(mine, wanted, strict=True))
    ):
        raise refuse(
            "CORE-0254", operator=operator, index_shape=list(places.shape),
            shape=list(array.shape), dim=dim,
        )  # fmt: skip
    if not places.ndim or not array.ndim:
        return array.reshape(places.shape)
    return array[tuple(slice(extent) for extent in places.shape)]


def _sample_scatter(rng: np.random.Generator) -> Any:
    index = np.array([[0, 2, 1], [1, 0, 3]])
    yield Sample((rng.normal(size=(2, 4)), 1, index, rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(2, 4)), 1, index, 1.5))
    yield Sample((rng.normal(size=(3, 4)), 0, index[:1, :2], rng.normal(size=(2, 3))))


def _flat_and_places(array: Array, places: Array, axis: int) -> tuple[Array, tuple[Any, ...]]:
    """An array of one axis or more, and the places of an index in it."""
    if not array.ndim or not places.ndim or not places.size:
        return array.reshape(-1), (places.reshape(-1),)
    return array, places_along(places, axis)


@operator(_sample_scatter, in_place=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """A copy with `src` (a tensor or one value) written to the places that the index names along
    `dim`.

    `reduce` may be 'add' or 'multiply'; no gradient flows through it then ('add' apart).
    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0254, CORE-0111, CORE-0247.
    """
    given = _value(value if src is None else src, input)
    places, axis = _check_index(input, dim, index, "scatter")
    if isinstance(src, Tensor):
        part = _check_source(src, input, places, axis, "scatter")
    else:
        part = np.broadcast_to(cast_array(given.array, input.array.dtype), places.shape)
    array = input.array.copy()
    flat, where = _flat_and_places(array, places, axis)
    part = part.reshape(-1) if flat is not array else part
    if reduce is None:
        flat[where] = part
        return record(
            array, scatter_backward, (input, given), values=(places, axis, given.array.shape)
        )
    if reduce == "add":
        accumulated_at(flat, where, part)
        return record(
            array, scatter_add_backward, (input, given), values=(places, axis, given.array.shape)
        )
    if reduce != "multiply":
        raise refuse(
            "CORE-0247", operator="scatter", argument="reduce", value=str(reduce),
            known=["add", "multiply"],
        )  # fmt: skip
    np.multiply.at(flat, where, part)
    return wrap(array)


def scatter_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    places, axis, shape = node.values
    to_input, to_source = node.needs
    return (
        _cleared_along(grad, places, axis) if to_input else None,
        _at_source(grad, places, axis, shape) if to_source else None,
    )


def _cleared_along(grad: Tensor, places: Array, axis: int) -> Tensor:
    if not grad.array.ndim or not places.ndim:
        return reshape(cleared(reshape(grad, (-1,)), (places.reshape(-1),)), grad.array.shape)
    return cleared(grad, places_along(places, axis))


def _at_source(grad: Tensor, places: Array, axis: int, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a source, of which the index may name the first part only."""
    from numbat.ops.indexing import placed

    part = _gather_known(grad, places, axis)
    if part.array.shape == shape or not shape:
        return part
    if not places.ndim:
        return reshape(part, shape)
    return placed(part, shape, tuple(slice(extent) for extent in places.shape))


def _sample_scatter_add(rng: np.random.Generator) -> Any:
    index = np.array([[0, 2, 2], [1, 1, 1]])
    yield Sample((rng.normal(size=(2, 4)), 1, index, rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(3, 4)), 0, index, rng.normal(size=(3, 4))))


@operator(_sample_scatter_add, in_place=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy with `src` added at the places that the index names along `dim`.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0254, CORE-0111.
    """
    places, axis = _check_index(input, dim, index, "scatter_add")
    part = _check_source(src, input, places, axis, "scatter_add")
    array = input.array.copy()
    flat, where = _flat_and_places(array, places, axis)
    accumulated_at(flat, where, part.reshape(-1) if flat is not array else part)
    return record(array, scatter_add_backward, (input, src), values=(places, axis, src.array.shape))


def scatter_add_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    places, axis, shape = node.values
    return grad, _at_source(grad, places, axis, shape) if node.needs[1] else None


def _sample_scatter_reduce(rng: np.random.Generator) -> Any:
    index = np.array([[0, 2, 2], [1, 1, 3]])
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            yield Sample(
                (rng.normal(size=(2, 4)), 1, index, rng.normal(size=(2, 3)), reduce),
                {"include_self": include_self},
            )


_REDUCES = {
    "sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def _reduced_at(
    array: Array, where: tuple[Any, ...], part: Array, reduce: str, include_self: bool
) -> tuple[Array, Array]:
    """`array` with the values reduced into it at their places, and how many met at each place (for
    a
    mean, else none)."""
    wide = array.astype(np.float32) if _is_half(array.dtype) else array.copy()
    if not include_self:
        wide[where] = _neutral(reduce, wide.dtype)
    part = np.broadcast_to(part.astype(wide.dtype, copy=False), np.broadcast_shapes(
        part.shape, *[one.shape for one in where if type(one) is not slice]
    ) if all(type(one) is not slice for one in where) else part.shape)  # fmt: skip
    if reduce in ("sum", "mean"):
        accumulated_at(wide, where, part)
    elif wide.dtype.kind == "b":
        (np.logical_or if reduce == "amax" else np.logical_and).at(wide, where, part)
    else:
        _REDUCES[reduce].at(wide, where, part)
    met = np.ones(0, wide.dtype)
    if reduce == "mean":
        met = np.full(array.shape, 1 if include_self else 0, wide.dtype)
        accumulated_at(met, where, np.ones_like(part))
        met[met == 0] = 1
        if wide.dtype.kind in "iu":
            np.floor_divide(wide, met, out=wide)
        elif wide.dtype.kind != "b":
            np.true_divide(wide, met, out=wide)
    return wide.astype(array.dtype, copy=False), met


def _is_half(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def _check_reduce(reduce: str, known: tuple[str, ...], operator: str) -> None:
    if reduce not in known:
        raise refuse(
            "CORE-0247", operator=operator, argument="reduce", value=str(reduce), known=list(known)
        )


@operator(_sample_scatter_reduce, in_place=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy with the values of `src` reduced into the places that the index names along `dim`.

    `reduce` is 'sum', 'prod', 'mean', 'amax' or 'amin'; without `include_self` what stood there
    does not
    count. Raises CORE-0204, CORE-0240, CORE-0241, CORE-0254, CORE-0111, CORE-0247.
    """
    _check_reduce(reduce, tuple(_REDUCES), "scatter_reduce")
    places, axis = _check_index(input, dim, index, "scatter_reduce")
    part = _check_source(src, input, places, axis, "scatter_reduce")
    array = input.array
    if not array.ndim or not places.ndim:
        whole, where = array.reshape(-1), (places.reshape(-1),)
        part = part.reshape(-1)
    else:
        whole, where = array, places_along(places, axis)
    reduced, _ = _reduced_at(whole, where, part, reduce, include_self)
    values = (where, tuple(slice(n) for n in places.shape) if array.ndim else (), reduce,
              include_self)  # fmt: skip
    return record(
        reduced.reshape(array.shape), reduce_at_backward, (input, src), (input, src), values,
        keep_result=True,
    )  # fmt: skip


def reduce_at_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    from numbat.ops.indexing import placed

    where, cut, reduce, include_self = node.values
    input, src = node.unpack()
    flat = (-1,) if not input.array.ndim else input.array.shape
    whole, given = reshape(input, flat), reshape(grad, flat)
    if cut:
        from numbat.ops.indexing import basic_view

        part = basic_view(src, cut)
    else:
        part = reshape(src, (-1,))
    result = reshape(node.unpack_result(), flat)
    to_input, to_part = _REDUCE_GRADIENTS[reduce](given, whole, part, result, where, include_self)
    if not include_self:
        to_input = cleared(to_input, where)
    to_src = None
    if node.needs[1]:
        held = part.array.shape
        to_src = to_part if to_part.array.shape == held else reshape(to_part, held)
        if src.array.shape != held:
            to_src = placed(to_src, src.array.shape, cut) if cut else reshape(
                to_src, src.array.shape
            )  # fmt: skip
    return reshape(to_input, input.array.shape) if node.needs[0] else None, to_src


def _mask(array: Array, like: Tensor) -> Tensor:
    return wrap(np.asarray(array).astype(like.array.dtype))


def _sum_gradients(grad: Tensor, whole: Tensor, part: Tensor, result: Tensor, where: Any,
                   include_self: bool) -> tuple[Tensor, Tensor]:  # fmt: skip
    return grad, indexed(grad, where)


def _mean_gradients(grad: Tensor, whole: Tensor, part: Tensor, result: Tensor, where: Any,
                    include_self: bool) -> tuple[Tensor, Tensor]:  # fmt: skip
    met = np.full(grad.array.shape, 1 if include_self else 0, grad.array.dtype)
    accumulated_at(met, where, np.ones(part.array.shape, met.dtype))
    met[met == 0] = 1
    shared = grad / wrap(met)
    return shared, indexed(shared, where)


def _prod_gradients(grad: Tensor, whole: Tensor, part: Tensor, result: Tensor, where: Any,
                    include_self: bool) -> tuple[Tensor, Tensor]:  # fmt: skip
    # A product's gradient is the product of the others: the quotient, except where a factor is
    # zero.
    zero_whole = _mask(whole.array == 0, whole)
    safe_whole = whole + zero_whole
    others, _ = _product_at(safe_whole, where, part, include_self)
    to_whole = grad * others / safe_whole
    zero_part = part.array == 0
    zeros = np.zeros(whole.array.shape, np.int64)
    accumulated_at(zeros, where, zero_part.astype(np.int64))
    single = _mask(zero_part & (zeros[where] == 1), part)
    filled, _ = _product_at(whole, where, part + single, include_self)
    quotient = indexed(grad * result, where) / (part + _mask(zero_part, part))
    to_part = single * indexed(grad * filled, where) + (1 - single) * quotient
    return to_whole, to_part


def _product_at(whole: Tensor, where: Any, part: Tensor, include_self: bool) -> tuple[Tensor, None]:
    array, _ = _reduced_at(whole.array, where, part.array, "prod", include_self)
    out = record(array, reduce_at_backward, (whole, part), (whole, part),
                 (where, tuple(slice(n) for n in part.array.shape), "prod", include_self),
                 keep_result=True)  # fmt: skip
    return out, None


def _extreme_gradients(grad: Tensor, whole: Tensor, part: Tensor, result: Tensor, where: Any,
                       include_self: bool) -> tuple[Tensor, Tensor]:  # fmt: skip
    # Equal extremes share the gradient evenly.
    mine = _mask(whole.array == result.array, grad)
    theirs = _mask(part.array == result.array[where], grad)
    among = mine.array.copy()
    accumulated_at(among, where, theirs.array)
    shared = grad / wrap(among)
    return mine * shared, theirs * indexed(shared, where)


_REDUCE_GRADIENTS: dict[str, Any] = {
    "sum": _sum_gradients, "mean": _mean_gradients, "prod": _prod_gradients,
    "amax": _extreme_gradients, "amin": _extreme_gradients,
}  # fmt: skip


def _sample_take_along(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)), np.array([[0], [3], [1]]), 1))
    yield Sample((rng.normal(size=(3, 1)), np.array([[0, 2, -1]]), 0))
    yield Sample((rng.normal(size=(2, 2)), np.array([3, 0])))


@operator(_sample_take_along)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with the other axes broadcast and negative indices; over the flattened tensor
    without `dim`.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0254, CORE-0201.
    """
    from numbat.ops.broadcasting import check_broadcast
    from numbat.ops.viewing import expand

    places = index_array(indices, "take_along_dim")
    if dim is None:
        input, places, dim = reshape(input, (-1,)), places.reshape(-1), 0
    axis = axis_of(dim, input.array.ndim, "take_along_dim")
    if places.ndim != input.array.ndim:
        raise refuse(
            "CORE-0254", operator="take_along_dim", index_shape=list(places.shape),
            shape=list(input.shape), dim=axis,
        )  # fmt: skip
    if not places.ndim:
        return gather(input, axis, wrap(places))
    mine, theirs = list(input.array.shape), list(places.shape)
    extent = mine[axis]
    mine[axis] = theirs[axis] = 1
    shape = list(check_broadcast("take_along_dim", tuple(mine), tuple(theirs)))
    wide = [*shape[:axis], places.shape[axis], *shape[axis + 1 :]]
    check_bounds(places, extent, axis, "take_along_dim")
    places = np.broadcast_to(np.where(places < 0, places + extent, places), wide)
    source = [*shape[:axis], extent, *shape[axis + 1 :]]
    return gather(expand(input, source), axis, wrap(places))


# -- Along an axis, one index a slice -------------------------------------------------------------


def _row_index(
    input: Tensor, dim: int, index: Any, operator: str
) -> tuple[Array, int, tuple[Any, ...]]:
    places = index_array(index, operator)
    if places.ndim > 1:
        raise refuse(
            "CORE-0248", operator=operator, shape=list(places.shape), wanted="an index of one axis"
        )
    places = places.reshape(-1)
    axis = axis_of(dim, input.array.ndim, operator)
    extent = input.array.shape[axis] if input.array.ndim else 1
    check_bounds(places, extent, axis, operator, from_back=operator == "index_fill")
    return places, axis, (_ALL,) * axis + (places,)


def _sample_index_select(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)), 0, np.array([2, 0, 2])))
    yield Sample((rng.normal(size=(3, 4)), -1, np.array([1])))


@operator(_sample_index_select)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices at the given indices of an axis.

    Raises CORE-0204, CORE-0240 (negative ones too), CORE-0241, CORE-0248.
    """
    places, axis, where = _row_index(input, dim, index, "index_select")
    if not input.array.ndim:
        return reshape(indexed(reshape(input, (1,)), (places,)), ())
    array = input.array.take(places, axis)
    return record(array, indexed_backward, (input,), values=(input.array.shape, where))


def _rows_source(source: Tensor, input: Tensor, operator: str) -> Tensor:
    if source.array.dtype != input.array.dtype:
        raise refuse(
            "CORE-0111", operator=operator, first=input.dtype.name, second=source.dtype.name
        )
    return source


def _rows_shape(
    input: Tensor, places: Array, axis: int, source: Tensor, operator: str
) -> tuple[int, ...]:
    shape = input.array.shape
    wanted = (*shape[:axis], places.size, *shape[axis + 1 :]) if shape else (places.size,)
    mine = source.array.shape
    # A source or a tensor of no axes counts as one of one element.
    lone = (not mine or not shape) and source.array.size == places.size
    if mine != wanted and not lone:
        raise refuse("CORE-0208", shape=list(mine), wanted=list(wanted))
    return wanted


def _sample_index_add(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)), 0, np.array([2, 0, 2]), rng.normal(size=(3, 2))))
    yield Sample(
        (rng.normal(size=(2, 3)), 1, np.array([1, 1]), rng.normal(size=(2, 2))), {"alpha": 2.0}
    )


@operator(_sample_index_add, in_place=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy with the slices of `alpha * source` added at the given indices of an axis.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0248, CORE-0111, CORE-0208.
    """
    places, axis, where = _row_index(input, dim, index, "index_add")
    source = _rows_source(source, input, "index_add")
    shape = _rows_shape(input, places, axis, source, "index_add")
    if alpha != 1:
        source = source * alpha
    array = input.array.copy()
    rows = source.array.reshape(shape)
    whole = array.reshape(-1) if not array.ndim else array
    if axis and places.size:
        accumulated_at(whole.swapaxes(0, axis), (places,), rows.swapaxes(0, axis))
    else:
        accumulated_at(whole, (places,), rows)
    return record(array, rows_added_backward, (input, source), values=(where, source.array.shape))


def rows_added_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    return grad, _rows_gradient(node, grad) if node.needs[1] else None


def _rows_gradient(node: Node, grad: Tensor) -> Tensor:
    where, shape = node.values
    if not grad.array.ndim:
        grad = reshape(grad, (1,))
    return reshape(indexed(grad, where), shape)


def _sample_index_copy(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)), 0, np.array([2, 0]), rng.normal(size=(2, 2))))
    yield Sample((rng.normal(size=(2, 3)), 1, np.array([1]), rng.normal(size=(2, 1))))


@operator(_sample_index_copy, in_place=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy with the slices of `source` written at the given indices of an axis.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0248, CORE-0111, CORE-0208.
    """
    places, axis, where = _row_index(input, dim, index, "index_copy")
    source = _rows_source(source, input, "index_copy")
    shape = _rows_shape(input, places, axis, source, "index_copy")
    array = input.array.copy()
    whole = array.reshape(-1) if not array.ndim else array
    whole[where] = source.array.reshape(shape)
    return record(array, index_copy_backward, (input, source), values=(where, source.array.shape))


def index_copy_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    to_input = None
    if node.needs[0]:
        flat = grad if grad.array.ndim else reshape(grad, (1,))
        to_input = reshape(cleared(flat, node.values[0]), grad.array.shape)
    return to_input, _rows_gradient(node, grad) if node.needs[1] else None


def _sample_index_fill(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)), 0, np.array([2, 0]), 1.5))
    yield Sample((rng.normal(size=(2, 3)), 1, np.array([1]), rng.normal(size=())))


@operator(_sample_index_fill, in_place=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with one value written over the slices at the given indices of an axis.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0248, and CORE-0103 for a tensor of more than one
    element.
    """
    if not input.array.ndim:
        axis_of(dim, 0, "index_fill")
        return reshape(index_fill(reshape(input, (1,)), 0, index, value), ())
    places, axis, _ = _row_index(input, dim, index, "index_fill")
    # Each place once, for the value's gradient.
    where = ((_ALL,) * axis) + (np.unique(places % max(input.array.shape[axis], 1)),)
    given = _value(value, input)
    if given.array.ndim:
        raise refuse("CORE-0103", shape=list(given.shape), wanted="one element without axes")
    array = input.array.copy()
    array[where] = cast_array(given.array, array.dtype)
    return record(array, index_put_backward, (input, given), values=(where, False))


def _sample_index_reduce(rng: np.random.Generator) -> Any:
    for reduce in ("prod", "mean", "amax", "amin"):
        yield Sample(
            (rng.normal(size=(3, 2)), 0, np.array([2, 0, 2]), rng.normal(size=(3, 2)), reduce)
        )
    yield Sample(
        (rng.normal(size=(2, 3)), 1, np.array([1, 1]), rng.normal(size=(2, 2)), "mean"),
        {"include_self": False},
    )


@operator(_sample_index_reduce, in_place=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """A copy with the slices of `source` reduced into the given indices of an axis; see
    `scatter_reduce`.

    Raises CORE-0204, CORE-0240, CORE-0241, CORE-0248, CORE-0111, CORE-0208, CORE-0247.
    """
    _check_reduce(reduce, ("prod", "mean", "amax", "amin"), "index_reduce")
    places, axis, _ = _row_index(input, dim, index, "index_reduce")
    source = _rows_source(source, input, "index_reduce")
    shape = _rows_shape(input, places, axis, source, "index_reduce")
    if not input.array.ndim:
        wide = scatter_reduce(
            reshape(input, (1,)), 0, wrap(places), reshape(source, shape), reduce,
            include_self=include_self,
        )  # fmt: skip
        return reshape(wide, ())
    steps = (1,) * axis + (places.size,) + (1,) * (len(shape) - axis - 1)
    spread = np.broadcast_to(places.reshape(steps), shape)
    return scatter_reduce(
        input, axis, wrap(spread), reshape(source, shape), reduce, include_self=include_self
    )


# -- In the flattened tensor ----------------------------------------------------------------------


def _flat_index(input: Tensor, index: Any, operator: str) -> Array:
    places = index_array(index, operator)
    check_bounds(places, input.array.size, 0, operator)
    return places


def _sample_take(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), np.array([[0, 5], [-1, 2]])))
    yield Sample((rng.normal(size=(2, 3)).T, np.array(4)))


@operator(_sample_take)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at the given places of the flattened tensor.

    Raises CORE-0240, CORE-0241.
    """
    places = _flat_index(input, index, "take")
    flat = reshape(input, (-1,))
    return record(flat.array[places], indexed_backward, (flat,), values=(flat.shape, (places,)))


def _sample_put(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), np.array([0, 5]), rng.normal(size=(2,))))
    yield Sample((rng.normal(size=(2, 3)), np.array([1, 1]), rng.normal(size=(2,)), True))


@operator(_sample_put, in_place=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `source` written to (or added at) places of the flattened tensor.

    Raises CORE-0240, CORE-0241, CORE-0111, and CORE-0255 where there are not as many values as
    places.
    """
    places = _flat_index(input, index, "put").reshape(-1)
    source = _rows_source(source, input, "put")
    if source.array.size != places.size:
        raise refuse("CORE-0255", operator="put", given=source.array.size, wanted=places.size)
    array = np.array(input.array, order="C")
    flat, values = array.reshape(-1), source.array.reshape(-1)
    if accumulate:
        accumulated_at(flat, (places,), values)
    else:
        flat[places] = values
    return record(
        array, put_backward, (input, source), values=(places, accumulate, source.array.shape)
    )


def put_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    places, accumulate, shape = node.values
    flat = reshape(grad, (-1,))
    to_input = grad
    if not accumulate and node.needs[0]:
        to_input = reshape(cleared(flat, (places,)), grad.array.shape)
    return to_input, reshape(indexed(flat, (places,)), shape) if node.needs[1] else None


# -- By masks -------------------------------------------------------------------------------------


def mask_array(mask: Any, operator: str) -> Array:
    """The array of a mask.

    Raises CORE-0241 for another type than bool.
    """
    if not isinstance(mask, Tensor) or mask.array.dtype.kind != "b":
        given = (
            f"a tensor of {mask.dtype.name}" if isinstance(mask, Tensor) else type(mask).__name__
        )
        raise refuse("CORE-0241", operator=operator, given=f"{given} as a mask")
    return mask.array


def _sample_masked_fill(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.random((2, 3)) < 0.5, 1.5))
    yield Sample((rng.normal(size=(3,)), rng.random((2, 3)) < 0.5, rng.normal(size=())))
    yield Sample((rng.normal(size=(2, 3)), rng.random(3) < 0.5, -1))


@operator(_sample_masked_fill, in_place=True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with one value where the mask, broadcast, is true.

    Raises CORE-0241, CORE-0201, CORE-0103 for a tensor of more than one element, CORE-0105 where
    a floating value would be cut to a whole number.
    """
    from numbat.ops.broadcasting import check_broadcast

    held = mask_array(mask, "masked_fill")
    array = input.array
    given = value if isinstance(value, Tensor) else None
    if given is None:
        kind = scalar_dtype(value)
        constant = np.asarray(value)
    else:
        if given.array.ndim:
            raise refuse("CORE-0103", shape=list(given.shape), wanted="one element without axes")
        kind, constant = given.dtype, given.array
    if kind.is_floating_point and not input.dtype.is_floating_point:
        raise refuse("CORE-0105", operator="masked_fill", result=kind.name, target=input.dtype.name)
    if held.shape == array.shape:
        out = array.copy()
    else:
        shape = check_broadcast("masked_fill", array.shape, held.shape)
        out = np.array(np.broadcast_to(array, shape), order="C")
    np.copyto(out, cast_array(constant, array.dtype), where=held)
    inputs = (input,) if given is None else (input, given)
    return record(out, masked_fill_backward, inputs, values=held)


def masked_fill_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    held: Array = node.values
    to_input = _masked(grad, held, inside=False) if node.needs[0] else None
    if len(node.sources) == 1:
        return (to_input,)
    return to_input, _masked(grad, held, inside=True) if node.needs[1] else None


def _masked(grad: Tensor, mask: Array, *, inside: bool) -> Tensor:
    """A copy with zero outside the mask (or inside it)."""
    array = grad.array.copy()
    np.copyto(array, np.zeros((), array.dtype), where=~mask if inside else mask)
    return record(array, _masked_backward, (grad,), values=(mask, inside))


def _masked_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    mask, inside = node.values
    return (_masked(grad, mask, inside=inside),)


def _sample_masked_select(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), np.array([[True, False, True], [False, False, True]])))
    yield Sample((rng.normal(size=(3,)), np.array([[True, False, True], [True, True, False]])))


@operator(_sample_masked_select)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, both broadcast, along one axis.

    Raises CORE-0241, CORE-0201.
    """
    from numbat.ops.broadcasting import check_broadcast
    from numbat.ops.viewing import expand

    held = mask_array(mask, "masked_select")
    shape = check_broadcast("masked_select", input.array.shape, held.shape)
    if input.array.shape != shape:
        input = expand(input, shape)
    held = np.broadcast_to(held, shape)
    if not shape:
        return indexed(reshape(input, (1,)), np.atleast_1d(held).nonzero())
    return indexed(input, held.nonzero())


def _sample_masked_scatter(rng: np.random.Generator) -> Any:
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample((rng.normal(size=(2, 3)), mask, rng.normal(size=(2, 2))))
    yield Sample((rng.normal(size=(2, 3)), mask[0], rng.normal(size=(6,))))


@operator(_sample_masked_scatter, in_place=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements of `source`, in order, where the mask, broadcast, is true.

    Raises CORE-0241, CORE-0201, CORE-0111, and CORE-0255 where there are fewer elements than
    places.
    """
    from numbat.ops.broadcasting import check_broadcast
    from numbat.ops.viewing import expand

    held = mask_array(mask, "masked_scatter")
    source = _rows_source(source, input, "masked_scatter")
    shape = check_broadcast("masked_scatter", input.array.shape, held.shape)
    if input.array.shape != shape:
        input = expand(input, shape)
    held = np.broadcast_to(held, shape)
    count = int(np.count_nonzero(held))
    if source.array.size < count:
        raise refuse("CORE-0255", operator="masked_scatter", given=source.array.size, wanted=count)
    array = np.array(input.array, order="C")
    array[held] = source.array.reshape(-1)[:count]
    return record(
        array, masked_scatter_backward, (input, source), values=(held, count, source.array.shape)
    )


def masked_scatter_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    from numbat.ops.indexing import placed

    held, count, shape = node.values
    to_source = None
    if node.needs[1]:
        size = 1
        for extent in shape:
            size *= extent
        flat = np.flatnonzero(held)
        part = indexed(reshape(grad, (-1,)), (flat,))
        to_source = reshape(placed(part, (size,), slice(count)), shape)
    return _masked(grad, held, inside=False) if node.needs[0] else None, to_source


# -- Where something is ---------------------------------------------------------------------------


def _sample_nonzero(rng: np.random.Generator) -> Any:
    yield Sample((np.array([[0.0, 1.0], [2.0, 0.0]]),))
    yield Sample((np.array(3.0),))


@operator(_sample_nonzero, differentiable=False)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: a row for each, or a tensor for each axis."""
    array = input.array
    if as_tuple:
        return tuple(wrap(one.astype(np.int64)) for one in np.atleast_1d(array).nonzero())
    if not array.ndim:
        return wrap(np.zeros((1 if array else 0, 0), np.int64))
    return wrap(np.stack(array.nonzero(), axis=1).astype(np.int64))


@operator(_sample_nonzero, differentiable=False)
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each."""
    found: Tensor = nonzero(input)
    return found
