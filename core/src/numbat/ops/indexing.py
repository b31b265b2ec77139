"""Elements by their indices: `x[...]` and `x[...] = value`, with torch's rules.

Whole numbers, slices, None and Ellipsis make a view; what is left of the index, tensors of whole
numbers and masks, copies. (numpy treats a whole number beside a tensor as a tensor, which moves
axes;
torch does not.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.in_place import adopt, bump, check_writable
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record, record_view
from numbat.ops.accumulating import accumulated_at
from numbat.ops.registry import Sample, operator
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "index_put",
]  # fmt: skip

_ALL = slice(None)
_WHOLE = "biu"


# -- Views by whole numbers, slices, None and Ellipsis --------------------------------------------


def basic_view(input: Tensor, index: Any) -> Tensor:
    """The view that numpy's basic indexing gives; `index` is known to be within the tensor."""
    array = input.array[index]
    if type(array) is not np.ndarray:
        # numpy gives a number for one element, which shares nothing.
        array = input.array[(*index, ...) if type(index) is tuple else (index, ...)]
    return record_view(array, basic_view_backward, input, (input.array.shape, index))


def basic_view_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, index = node.values
    return (placed(grad, shape, index),)


def placed(grad: Tensor, shape: tuple[int, ...], index: Any) -> Tensor:
    """A tensor of `shape` with the gradient at a basic index, zero elsewhere."""
    whole = np.zeros(shape, grad.array.dtype)
    whole[index] = grad.array
    return record(whole, placed_backward, (grad,), values=index)


def placed_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (basic_view(grad, node.values),)


# -- Reading an index -----------------------------------------------------------------------------


def getitem(input: Tensor, index: Any) -> Tensor:
    """`input[index]`: a view for whole numbers, slices, None and Ellipsis, else a copy.

    Raises CORE-0240 to CORE-0243.
    """
    kind = type(index)
    if kind is int or kind is slice:
        try:
            return basic_view(input, index)
        except IndexError:
            pass
        except TypeError:
            index = _plain_slice(index)
    basic, advanced = parsed(index, input.array.shape)
    seen = input if basic is None else basic_view(input, basic)
    if advanced is None:
        return seen if basic is not None else basic_view(input, ())
    return indexed(seen, advanced)


def parsed(index: Any, shape: tuple[int, ...]) -> tuple[Any, tuple[Any, ...] | None]:
    """The basic part of an index (None where it changes nothing), and its tensors at the axes that
    the
    basic part leaves (None where there are none).

    Raises CORE-0240 to CORE-0243.
    """
    given = index if type(index) is tuple else (index,)
    items = [_item(one) for one in given]
    taken = 0
    ellipsis = None
    for place, one in enumerate(items):
        if one is Ellipsis:
            if ellipsis is not None:
                raise refuse("CORE-0243", operator="index", given=len(items), ndim=len(shape))
            ellipsis = place
        elif isinstance(one, np.ndarray) and one.dtype.kind == "b":
            taken += one.ndim
        elif one is not None and one is not True and one is not False:
            taken += 1
    if taken > len(shape):
        raise refuse("CORE-0243", operator="index", given=taken, ndim=len(shape))
    if ellipsis is not None:
        items[ellipsis : ellipsis + 1] = [_ALL] * (len(shape) - taken)
    return _separated(items, shape)


def _separated(items: list[Any], shape: tuple[int, ...]) -> tuple[Any, tuple[Any, ...] | None]:
    basic: list[Any] = []
    advanced: list[Any] = []
    axis = 0
    changed = found = False
    for one in items:
        kind = type(one)
        if kind is int:
            extent = shape[axis]
            if not -extent <= one < extent:
                raise refuse("CORE-0240", operator="index", index=one, dim=axis, extent=extent)
            basic.append(one)
            axis += 1
            changed = True
        elif kind is slice:
            basic.append(one)
            advanced.append(_ALL)
            axis += 1
            changed = changed or one != _ALL
        elif one is None:
            basic.append(None)
            advanced.append(_ALL)
            changed = True
        elif kind is bool:
            basic.append(None)
            advanced.append(np.zeros(1 if one else 0, np.int64))
            changed = found = True
        else:
            found = True
            if one.dtype.kind == "b":
                mine = shape[axis : axis + one.ndim]
                if one.shape != mine:
                    raise refuse(
                        "CORE-0242", operator="index", mask_shape=list(one.shape), shape=list(mine)
                    )
                basic.extend([_ALL] * one.ndim)
                advanced.extend(one.nonzero())
                axis += one.ndim
            else:
                check_bounds(one, shape[axis], axis, "index")
                basic.append(_ALL)
                advanced.append(one)
                axis += 1
    if found:
        _check_together(advanced)
    return tuple(basic) if changed else None, tuple(advanced) if found else None


def _check_together(advanced: list[Any]) -> None:
    arrays = [one for one in advanced if type(one) is not slice]
    if len(arrays) > 1:
        from numbat.ops.broadcasting import check_broadcast

        check_broadcast("index", *[one.shape for one in arrays])


def _item(one: Any) -> Any:
    """One part of an index as int, slice, None, Ellipsis, bool, or an array of whole numbers or
    bools.

    Raises CORE-0241.
    """
    kind = type(one)
    if kind is int or kind is bool or one is None or one is Ellipsis:
        return one
    if kind is slice:
        return _plain_slice(one)
    if isinstance(one, Tensor):
        array = one.array
        if not array.ndim:
            if array.dtype.kind == "b":
                return bool(array)
            if array.dtype.kind in "iu" and array.dtype != np.uint8:
                return int(array)
    elif isinstance(one, (list, np.ndarray, np.generic, range, tuple)):
        array = _listed(one)
        if isinstance(one, (np.ndarray, np.generic)) and not array.ndim:
            if array.dtype.kind in "iu":
                return int(array)
            if array.dtype.kind == "b":
                return bool(array)
    elif hasattr(one, "__index__"):
        return int(one.__index__())
    else:
        raise refuse("CORE-0241", operator="index", given=f"a {kind.__name__}")
    if array.dtype.kind not in _WHOLE or array.dtype == np.uint8:
        raise refuse("CORE-0241", operator="index", given=f"a tensor of {array.dtype.name}")
    return array


def _listed(one: Any) -> Array:
    if isinstance(one, np.ndarray):
        return one
    from numbat.tensors.creation import array_of

    array = array_of(one)
    return array.astype(np.int64) if not array.size else array


def _plain_slice(one: Any) -> Any:
    """A slice whose bounds are Python numbers.

    Raises CORE-0241 for bounds that are none, CORE-0253 for a step of zero.
    """
    if type(one) is not slice:
        return one
    bounds = []
    for bound in (one.start, one.stop, one.step):
        if bound is not None and type(bound) is not int:
            if not hasattr(bound, "__index__"):
                raise refuse(
                    "CORE-0241", operator="index", given=f"a slice by {type(bound).__name__}"
                )
            bound = int(bound.__index__())
        bounds.append(bound)
    if bounds[2] == 0:
        raise refuse("CORE-0253", operator="index", argument="step", value=0, wanted="not zero")
    return slice(*bounds)


def check_bounds(
    index: Array, extent: int, dim: int, operator: str, *, from_back: bool = True
) -> None:
    """Refuses, with CORE-0240, an index outside an axis; negative ones too unless counted from
    the back."""
    if not index.size:
        return
    low, high = int(index.min()), int(index.max())
    if low < (-extent if from_back else 0) or high >= extent:
        worst = high if high >= extent else low
        raise refuse("CORE-0240", operator=operator, index=worst, dim=dim, extent=extent)


# -- Copies by tensors of indices -----------------------------------------------------------------


def indexed(input: Tensor, index: tuple[Any, ...]) -> Tensor:
    """A copy of what arrays of whole numbers select; the other places of `index` are whole axes."""
    array = input.array[index]
    return record(array, indexed_backward, (input,), values=(input.array.shape, index))


def indexed_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, index = node.values
    return (scattered(grad, shape, index),)


def scattered(grad: Tensor, shape: tuple[int, ...], index: tuple[Any, ...]) -> Tensor:
    """A tensor of `shape` with the sum of what belongs to each place, zero elsewhere."""
    whole = accumulated_at(np.zeros(shape, grad.array.dtype), index, grad.array)
    return record(whole, scattered_backward, (grad,), values=index)


def scattered_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (indexed(grad, node.values),)


# -- Writing --------------------------------------------------------------------------------------


def setitem(input: Tensor, index: Any, value: Any) -> None:
    """`input[index] = value`, recorded as a write through a view.

    Raises CORE-0240 to CORE-0243, CORE-0208 where the value does not broadcast to what is written,
    CORE-0306 and CORE-0307 where it may not be written, CORE-0114 for memory that is read-only.
    """
    kind = type(index)
    if kind is int or kind is slice:
        index = (index,)
    basic, advanced = parsed(index, input.array.shape)
    target = input if basic is None else basic_view(input, basic)
    written = _as_value(value, target)
    if advanced is None:
        write_copy(target, written, "setitem")
    else:
        write_put(target, advanced, written, accumulate=False, name="setitem")


def _as_value(value: Any, target: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return wrap(np.asarray(value))
    from numbat.tensors.promotion import scalar_dtype

    scalar_dtype(value)  # refuses what is no number
    from numbat.ops.casting import cast_array

    return wrap(cast_array(np.asarray(value), target.array.dtype))


def _fitting(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A value without the leading axes of extent one that what is written lacks."""
    spare = value.array.ndim - len(shape)
    if spare > 0 and value.array.shape[:spare] == (1,) * spare:
        from numbat.ops.viewing import reshape

        return reshape(value, value.array.shape[spare:])
    return value


def _check_memory(target: Tensor, name: str) -> None:
    check_writable(target, name)
    if not target.array.flags.writeable:
        raise refuse("CORE-0114", operator=name, shape=list(target.shape))


def _finish(target: Tensor, result: Tensor) -> None:
    """Counts a write and hands its history on; `result` was recorded over the target's own
    array."""
    bump(target)
    if MODE.recording and result.wants_grad:
        adopt(target, result)


def write_copy(target: Tensor, value: Tensor, name: str) -> Tensor:
    """Writes `value`, broadcast and cast, over `target`."""
    _check_memory(target, name)
    value = _fitting(value, target.array.shape)
    try:
        np.broadcast_to(value.array, target.array.shape)
    except ValueError:
        raise refuse(
            "CORE-0208", shape=list(value.array.shape), wanted=list(target.array.shape)
        ) from None
    from numbat.ops.casting import cast_array

    result = record(target.array, copy_backward, (target, value))
    np.copyto(target.array, cast_array(value.array, target.array.dtype))
    _finish(target, result)
    return target


def copy_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor]:
    # What stood there is lost, and its gradient with it.
    to_target = None if node.sources[0] is None else wrap(np.zeros(node.shape, node.dtype))
    return to_target, grad


def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Writes `src`, broadcast and cast, over the tensor.

    Raises CORE-0208, CORE-0306, CORE-0307, CORE-0114.
    """
    return write_copy(input, _as_value(src, input), "copy_")


def fill_(input: Tensor, value: Any) -> Tensor:
    """Writes one value over every element.

    Raises CORE-0103 for a tensor of more than one element, and what `copy_` raises.
    """
    if isinstance(value, Tensor) and value.array.ndim:
        raise refuse("CORE-0103", shape=list(value.shape), wanted="one element without axes")
    return write_copy(input, _as_value(value, input), "fill_")


def zero_(input: Tensor) -> Tensor:
    """Writes zero over every element; raises what `copy_` raises."""
    return write_copy(input, _as_value(0, input), "zero_")


def write_put(
    target: Tensor, index: tuple[Any, ...], value: Tensor, *, accumulate: bool, name: str
) -> Tensor:
    """Writes `value` at the places that arrays of indices name, or adds it there."""
    _check_memory(target, name)
    shape = place_shape(target.array.shape, index)
    value = _fitting(value, shape)
    _check_fits(value, shape)
    result = record(target.array, index_put_backward, (target, value), values=(index, accumulate))
    _put_array(target.array, index, value.array, accumulate)
    _finish(target, result)
    return target


def _check_fits(value: Tensor, shape: tuple[int, ...]) -> None:
    try:
        np.broadcast_to(value.array, shape)
    except ValueError:
        raise refuse("CORE-0208", shape=list(value.array.shape), wanted=list(shape)) from None


def _put_array(array: Array, index: tuple[Any, ...], value: Array, accumulate: bool) -> None:
    from numbat.ops.casting import cast_array

    value = cast_array(value, array.dtype)
    if accumulate:
        accumulated_at(array, index, value)
    else:
        array[index] = value


def place_shape(shape: tuple[int, ...], index: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of `x[index]`, found without copying."""
    return np.broadcast_to(np.zeros((), np.int8), shape)[index].shape


def _sample_index_put(rng: np.random.Generator) -> Any:
    first, second = np.array([0, 2, 1]), np.array([1, 1, 3])
    yield Sample((rng.normal(size=(3, 4)), (first, second), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=(3, 4)), (np.array([0, 0]),), rng.normal(size=(2, 4)), True))
    yield Sample((rng.normal(size=(3, 4)), (np.array([2, 1]),), rng.normal(size=())))


@operator(_sample_index_put)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values`, broadcast, at (or added at) the places that the tensors of indices
    name.

    Raises CORE-0111 where the types differ, CORE-0240 to CORE-0243, CORE-0208.
    """
    if values.array.dtype != input.array.dtype:
        raise refuse(
            "CORE-0111", operator="index_put", first=input.dtype.name, second=values.dtype.name
        )
    _, index = parsed(_put_indices(indices), input.array.shape)
    if index is None:
        index = ()
    array = input.array.copy()
    shape = place_shape(array.shape, index)
    values = _fitting(values, shape)
    _check_fits(values, shape)
    _put_array(array, index, values.array, accumulate)
    return record(array, index_put_backward, (input, values), values=(index, accumulate))


def _put_indices(indices: Any) -> tuple[Any, ...]:
    # A tensor of no axes stays a tensor here: it names a place, and takes no axis away.
    found: list[Any] = []
    for one in indices:
        if one is None:
            found.append(_ALL)
        elif isinstance(one, Tensor) and not one.array.ndim and one.array.dtype.kind != "b":
            found.append(wrap(one.array.reshape(1)))
        else:
            found.append(one)
    return tuple(found)


def index_put_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    index, accumulate = node.values
    to_input, to_values = node.needs
    return (
        None if not to_input else grad if accumulate else cleared(grad, index),
        indexed(grad, index) if to_values else None,
    )


def cleared(grad: Tensor, index: tuple[Any, ...]) -> Tensor:
    """A copy with zero at the places that arrays of indices name."""
    array = grad.array.copy()
    array[index] = 0
    return record(array, cleared_backward, (grad,), values=index)


def cleared_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (cleared(grad, node.values),)


def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`index_put` written over the tensor, without a copy; raises what it raises, and what
    `copy_` does."""
    if values.array.dtype != input.array.dtype:
        raise refuse(
            "CORE-0111", operator="index_put_", first=input.dtype.name, second=values.dtype.name
        )
    _, index = parsed(_put_indices(indices), input.array.shape)
    return write_put(input, index or (), values, accumulate=accumulate, name="index_put_")
