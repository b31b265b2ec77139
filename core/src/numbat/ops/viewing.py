"""Views: the same memory under another shape; and regions of memory, for writes through views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided as strided

from numbat.autograd.in_place import Region, laid_out, region_backward, region_of
from numbat.autograd.tape import Node, record, record_view
from numbat.kernels.calling import address
from numbat.ops.accumulating import accumulated_at
from numbat.ops.registry import Sample, operator
from numbat.tensors.creation import shape_of
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "as_strided", "expand", "permute", "reshape", "sum_to_size", "transpose", "view",
]  # fmt: skip


def axis_of(dim: int, ndim: int, operator: str) -> int:
    """An axis counted from the front, from one that may be counted from the back.

    Raises CORE-0204 where there is no such axis.
    """
    extent = max(ndim, 1)
    if not -extent <= dim < extent:
        raise refuse("CORE-0204", operator=operator, dim=dim, ndim=ndim)
    return dim % extent


def identity_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


def _resolved(operator: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The wanted shape with its one -1 computed.

    Raises CORE-0205 where the shapes hold different numbers of elements.
    """
    count = 1
    for extent in shape:
        count *= extent
    known, open_axis = 1, None
    for axis, extent in enumerate(wanted):
        if extent == -1 and open_axis is None:
            open_axis = axis
        else:
            known *= extent
    if open_axis is not None and known > 0 and count % known == 0:
        return (*wanted[:open_axis], count // known, *wanted[open_axis + 1 :])
    if open_axis is not None or known != count:
        raise refuse("CORE-0205", operator=operator, shape=list(shape), wanted=list(wanted))
    return wanted


def _sample_reshape(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 6)), (3, 4)))
    yield Sample((rng.normal(size=(4, 3)).T, (2, -1)))
    yield Sample((rng.normal(size=()), (1, 1)))


@operator(_sample_reshape)
def reshape(input: Tensor, *extents: Any, shape: Any = None) -> Tensor:
    """The elements in order under another shape: a view where the memory allows it, else a copy."""
    wanted = _resolved("reshape", input.array.shape, _extents(extents or (shape,)))
    array = input.array.reshape(wanted)
    # numpy's view has the array, or what the array is itself a view of, as its base; a copy has
    # not.
    held = array.base
    if held is not None and (held is input.array or held is input.array.base):
        return record_view(array, reshape_backward, input, input.array.shape)
    return record(array, reshape_backward, (input,), values=input.array.shape)


def reshape_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (reshape(grad, node.values),)


def _extents(size: Any) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int) and hasattr(size[0], "__len__"):
        size = size[0]
    return tuple([int(extent) for extent in size])


def _sample_view(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 6)), (3, 4)))


@operator(_sample_view)
def view(input: Tensor, *shape: Any) -> Tensor:
    """The same memory under another shape, or bit for bit in another type of the same size.

    Raises CORE-0206 where no view has that shape, CORE-0205 where the numbers of elements differ.
    """
    from numbat.tensors.dtypes import DType

    if len(shape) == 1 and isinstance(shape[0], DType):
        return _in_type(input, shape[0].numpy)
    wanted = _resolved("view", input.array.shape, _extents(shape))
    array = input.array.reshape(wanted)
    held = array.base
    if array.size and held is not input.array and (held is None or held is not input.array.base):
        raise refuse(
            "CORE-0206", shape=list(input.shape), stride=list(input.stride()), wanted=list(wanted)
        )
    return record_view(array, reshape_backward, input, input.array.shape)


def _in_type(input: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """The same memory read in another type; no gradient flows through another type's bits."""
    if dtype == input.array.dtype:
        return record_view(input.array.view(), identity_backward, input)
    try:
        array = input.array.view(dtype)
    except (ValueError, TypeError):
        raise refuse(
            "CORE-0206", shape=list(input.shape), stride=list(input.stride()),
            wanted=[*input.shape[:-1], -1],
        ) from None  # fmt: skip
    out = Tensor.__new__(Tensor)
    out.array = array
    out.root = input if input.root is None else input.root
    return out


def _sample_permute(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)), (2, 0, 1)))
    yield Sample((rng.normal(size=(2, 3)), (-1, 0)))


@operator(_sample_permute)
def permute(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """A view with its axes in another order.

    Raises CORE-0204 for an axis that is not there, CORE-0207 where the order is no permutation.
    """
    ndim = input.array.ndim
    order = tuple(
        [axis_of(dim, ndim, "permute") for dim in _extents(axes if dims is None else (dims,))]
    )
    if len(order) != ndim or len(set(order)) != ndim:
        raise refuse("CORE-0207", operator="permute", dims=list(order), ndim=ndim)
    return record_view(input.array.transpose(order), permute_backward, input, order)


def permute_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    order = node.values
    inverse = [0] * len(order)
    for place, axis in enumerate(order):
        inverse[axis] = place
    return (permute(grad, inverse),)


def _sample_transpose(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)), 0, -1))
    yield Sample((rng.normal(size=(2, 3)), 1, 0))


@operator(_sample_transpose)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two axes exchanged.

    Raises CORE-0204 for an axis that is not there.
    """
    ndim = input.array.ndim
    first, second = axis_of(dim0, ndim, "transpose"), axis_of(dim1, ndim, "transpose")
    if not ndim:
        return record_view(input.array.view(), identity_backward, input)
    return record_view(
        input.array.swapaxes(first, second), transpose_backward, input, (first, second)
    )


def transpose_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (transpose(grad, *node.values),)


def _sample_expand(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 1)), (2, 3, 4)))
    yield Sample((rng.normal(size=(1, 3)), (2, -1)))


@operator(_sample_expand)
def expand(input: Tensor, *extents: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view in which axes of extent one are repeated without copying; -1 keeps an extent.

    Raises CORE-0208 where another axis would have to be repeated.
    """
    wanted = _extents(extents if size is None else (size,))
    shape = input.array.shape
    lead = len(wanted) - len(shape)
    filled = tuple([
        shape[axis - lead] if extent == -1 and axis >= lead else extent
        for axis, extent in enumerate(wanted)
    ])  # fmt: skip
    try:
        array = np.broadcast_to(input.array, filled)
    except ValueError:
        raise refuse("CORE-0208", shape=list(shape), wanted=list(wanted)) from None
    array.flags.writeable = bool(input.array.flags.writeable)
    return record_view(array, expand_backward, input)


def expand_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (grad,)


def _sample_sum_to_size(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 4)), (3, 1)))
    yield Sample((rng.normal(size=(2, 3)), ()))


@operator(_sample_sum_to_size)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the axes along which a tensor of `size` would be broadcast to this shape.

    Raises CORE-0208 where a tensor of `size` does not broadcast to this shape.
    """
    wanted = _extents(size)
    shape = input.array.shape
    if wanted == shape and (shape or input.dtype.is_floating_point):
        return input
    lead = len(shape) - len(wanted)
    if lead < 0 or any(
        mine != theirs and theirs != 1 for mine, theirs in zip(shape[lead:], wanted, strict=True)
    ):
        raise refuse("CORE-0208", shape=list(wanted), wanted=list(shape))
    axes = tuple(range(lead)) + tuple(
        axis for axis in range(lead, len(shape)) if wanted[axis - lead] == 1 and shape[axis] != 1
    )
    from numbat.ops.reductions import sum as total

    summed = total(input, axes, keepdim=False) if axes or not shape else input
    return reshape(summed, wanted)


def _sample_as_strided(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)), (2, 2), (4, 1), 1))
    yield Sample((rng.normal(size=(6,)), (3, 3), (1, 1)))


@operator(_sample_as_strided)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view with any strides of the memory in which the tensor lies: its own, or that of the
    tensor it is
    a view of. The offset counts elements of that memory; without one, it is the tensor's own.

    Raises CORE-0209 where it would reach outside that memory.
    """
    array, item = input.array, input.array.itemsize
    shape, strides = shape_of((size,)), tuple(int(step) * item for step in stride)
    low, high = byte_bounds(array if input.root is None else input.root.array)
    own = address(array)
    if not low <= own <= high:
        # The memory was exchanged since (`data`): what is left is the tensor's own.
        low, high = byte_bounds(array)
    start = own - low if storage_offset is None else storage_offset * item
    last = (
        start + item + sum(step * (extent - 1) for extent, step in zip(shape, strides, strict=True))
    )
    outside = start < 0 or last > high - low or min(strides, default=0) < 0
    if 0 in shape:
        return record_view(
            np.empty(shape, array.dtype), region_backward, input,
            Region(array.shape, array.strides, 0, shape, strides),
        )  # fmt: skip
    if outside:
        raise refuse(
            "CORE-0209", shape=list(shape), stride=[int(step) for step in stride],
            offset=start // item,
        )  # fmt: skip
    root = array if input.root is None else input.root.array
    if not low <= address(root) < high:
        root = array
    # From the array's first element to the memory's lowest one, whatever the strides' signs.
    lowest = strided(root, (1,), (item,))
    shift = (low + start - address(root)) // item
    seen = _moved(lowest, shift, shape, strides)
    return record_view(seen, region_backward, input, region_of(seen, array))


def _moved(start: Any, shift: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view that begins so many elements after (or before) the first element of `start`."""
    item = start.itemsize
    if shift < 0:
        start = strided(start, (1 - shift,), (-item,))[-shift:]
    elif shift:
        start = strided(start, (shift + 1,), (item,))[shift:]
    return strided(start, shape, strides)


def scatter_region(grad: Tensor, region: Region) -> Tensor:
    """A tensor of the base's shape: the gradient of a view at its place, zero elsewhere."""
    if _is_plain(region, grad.array.itemsize):
        whole, part = laid_out(np.zeros(region.base_shape, grad.array.dtype), region)
        part[...] = grad.array
    else:
        inside, held, share = _meeting(region, grad.array.itemsize)
        whole = _through_memory(grad.array, inside, held, share)
    return record(whole, scatter_region_backward, (grad,), values=region)


def _meeting(region: Region, item: int) -> tuple[Any, Any, Any]:
    """The places in memory of the view's and of the base's indices, and how many of the base's
    indices
    each place has (which share what belongs to it)."""
    inside = _places(region.shape, region.strides, item) + region.offset // item
    held = _places(region.base_shape, region.base_strides, item)
    first = min(int(inside.min(initial=0)), int(held.min(initial=0)))
    size = max(int(inside.max(initial=0)), int(held.max(initial=0))) - first + 1
    share = np.zeros(size, np.int64)
    np.add.at(share, (held - first).reshape(-1), 1)
    return inside - first, held - first, np.maximum(share, 1)


def _through_memory(array: Any, source: Any, target: Any, share: Any) -> Any:
    """What `array`, laid into memory at the places `source` and summed there, has at `target`."""
    memory = np.zeros(share.size, array.dtype)
    accumulated_at(memory, (source.reshape(-1),), array.reshape(-1))
    return (memory / share).astype(array.dtype)[target]


def _is_plain(region: Region, item: int) -> bool:
    """Whether each index of view and base has an element of its own, the view's among the
    base's."""
    low = sum(min(step * (n - 1), 0) for n, step in zip(*region[:2], strict=True))
    high = sum(max(step * (n - 1), 0) for n, step in zip(*region[:2], strict=True))
    ends = [step * (n - 1) for n, step in zip(region.shape, region.strides, strict=True)]
    return (
        not _overlaps(region.shape, region.strides)
        and not _overlaps(region.base_shape, region.base_strides)
        and low <= region.offset + sum(min(end, 0) for end in ends)
        and region.offset + sum(max(end, 0) for end in ends) <= high
    )


def _places(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> Any:
    """The place in memory of each index, in elements from the first."""
    places = np.zeros(shape, np.int64)
    for axis, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent) * (step // item)
        places += steps.reshape((extent,) + (1,) * (len(shape) - axis - 1))
    return places


def scatter_region_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (gather_region(grad, node.values),)


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two indices may share an element (True also where it is not plain that none do)."""
    if 0 in shape:
        return False
    steps = sorted(
        (abs(step), extent) for step, extent in zip(strides, shape, strict=True) if extent > 1
    )
    reach = 0
    for step, extent in steps:
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False


def gather_region(grad: Tensor, region: Region) -> Tensor:
    """A copy of what a tensor of the base's shape holds at a view's place."""
    if _is_plain(region, grad.array.itemsize):
        part = laid_out(grad.array, region)[1].copy()
    else:
        inside, held, share = _meeting(region, grad.array.itemsize)
        part = _through_memory(grad.array, held, inside, share)
    return record(part, gather_region_backward, (grad,), values=region)


def gather_region_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (scatter_region(grad, node.values),)


def zero_region(grad: Tensor, region: Region) -> Tensor:
    """A copy of a tensor of the base's shape with zero at a view's place."""
    whole, part = laid_out(grad.array, region)
    part[...] = 0
    return record(whole, zero_region_backward, (grad,), values=region)


def zero_region_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (zero_region(grad, node.values),)
