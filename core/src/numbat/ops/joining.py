"""Tensors joined, cut into parts, repeated and laid out as grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.indexing import basic_view, indexed_backward
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import atleast_1d, atleast_2d, atleast_3d, extents_of
from numbat.ops.viewing import axis_of, expand, reshape
from numbat.tensors.promotion import result_type
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "block_diag", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "cartesian_prod", "cat",
    "chunk", "column_stack", "combinations", "concat", "concatenate", "dsplit", "dstack", "hsplit",
    "hstack", "meshgrid", "repeat", "repeat_interleave", "row_stack", "split", "split_with_sizes",
    "stack", "tensor_split", "tile", "unbind", "vsplit", "vstack",
]  # fmt: skip

_ALL = slice(None)


def _several(tensors: Any, operator: str) -> list[Tensor]:
    found = list(tensors)
    if not found:
        raise refuse("CORE-0245", operator=operator)
    return found


def _of_one_type(tensors: list[Tensor]) -> list[Tensor]:
    first = tensors[0].array.dtype
    if all(one.array.dtype is first for one in tensors):
        return tensors
    common = result_type(*tensors)
    return [one.to(common) for one in tensors]


# -- Joining --------------------------------------------------------------------------------------


def _sample_cat(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(1, 3))],))
    yield Sample(([rng.normal(size=(2, 1)), rng.normal(size=(2, 2)), rng.normal(size=(0,))], -1))


@operator(_sample_cat, method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after another along an axis, in the type in which they meet.

    Raises CORE-0245 for none, CORE-0248 for tensors without axes, CORE-0204, CORE-0244.
    """
    parts = _of_one_type(_several(tensors, "cat"))
    arrays = [one.array for one in parts]
    for one in arrays:
        if not one.ndim:
            raise refuse("CORE-0248", operator="cat", shape=[], wanted="one axis or more")
    # Empty vectors join with anything, as they do in torch.
    shown = [one for one in arrays if one.ndim != 1 or one.shape[0]] or arrays[:1]
    axis = axis_of(dim, shown[0].ndim, "cat")
    try:
        array = np.concatenate(shown, axis)
    except ValueError:
        raise refuse(
            "CORE-0244", operator="cat", shapes=[list(one.shape) for one in arrays], dim=axis
        ) from None
    return record(array, cat_backward, tuple(parts), values=([one.shape for one in arrays], axis))


def cat_backward(node: Node, grad: Tensor) -> list[Tensor | None]:
    shapes, axis = node.values
    lead = (_ALL,) * axis
    found: list[Tensor | None] = []
    begin = 0
    for shape, source in zip(shapes, node.sources, strict=True):
        if len(shape) == 1 and not shape[0]:
            found.append(None)
            continue
        end = begin + shape[axis]
        found.append(None if source is None else basic_view(grad, (*lead, slice(begin, end))))
        begin = end
    return found


@operator(_sample_cat, method=False)
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat` under its long name."""
    return cat(tensors, dim)


@operator(_sample_cat, method=False)
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat` under its longest name."""
    return cat(tensors, dim)


def _sample_stack(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(2, 3))],))
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(2, 3))], -1))
    yield Sample(([rng.normal(size=()), rng.normal(size=())],))


@operator(_sample_stack, method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, of one shape, side by side along a new axis.

    Raises CORE-0245 for none, CORE-0244 where their shapes differ, CORE-0204.
    """
    parts = _of_one_type(_several(tensors, "stack"))
    shape = parts[0].array.shape
    axis = axis_of(dim, len(shape) + 1, "stack")
    if any(one.array.shape != shape for one in parts):
        raise refuse(
            "CORE-0244", operator="stack", shapes=[list(one.shape) for one in parts], dim=axis
        )
    array = np.stack([one.array for one in parts], axis)
    return record(array, stack_backward, tuple(parts), values=axis)


def stack_backward(node: Node, grad: Tensor) -> list[Tensor | None]:
    lead = (_ALL,) * node.values
    return [
        None if source is None else basic_view(grad, (*lead, index))
        for index, source in enumerate(node.sources)
    ]


def _sample_hstack(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(2, 1))],))
    yield Sample(([rng.normal(size=(2,)), rng.normal(size=())],))


def _sample_vstack(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(1, 3))],))
    yield Sample(([rng.normal(size=(2,)), rng.normal(size=(2,))],))


@operator(_sample_hstack, method=False)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one after another along the second axis, vectors along their only one.

    Raises what `cat` raises.
    """
    parts = [atleast_1d(one) for one in _several(tensors, "hstack")]
    return cat(parts, 0 if parts[0].array.ndim == 1 else 1)


@operator(_sample_vstack, method=False)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors, vectors as rows, one after another along the first axis; raises what `cat`
    raises."""
    return cat([atleast_2d(one) for one in _several(tensors, "vstack")], 0)


@operator(_sample_vstack, method=False)
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """`vstack` under its other name."""
    return vstack(tensors)


def _sample_dstack(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 2))],))
    yield Sample(([rng.normal(size=(2,)), rng.normal(size=(1, 2))],))


def _sample_columns(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(2, 1))],))
    yield Sample(([rng.normal(size=(2,)), rng.normal(size=(2, 2))],))


@operator(_sample_dstack, method=False)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors, with three axes or more, along the third.

    Raises what `cat` raises.
    """
    return cat([atleast_3d(one) for one in _several(tensors, "dstack")], 2)


@operator(_sample_columns, method=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors, vectors as columns, one after another along the second axis.

    Raises what `cat` raises.
    """
    parts = [
        reshape(one, (one.array.size, 1)) if one.array.ndim <= 1 else one
        for one in _several(tensors, "column_stack")
    ]
    return cat(parts, 1)


def _sample_block_diag(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(1, 1)), rng.normal(size=(2,))))
    yield Sample((rng.normal(size=()),))


@operator(_sample_block_diag, method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with the tensors, vectors as rows, as blocks along its diagonal.

    Raises CORE-0248 for more than two axes.
    """
    if not tensors:
        return wrap(np.zeros((1, 0), np.float32))
    for one in tensors:
        if one.array.ndim > 2:
            raise refuse(
                "CORE-0248", operator="block_diag", shape=list(one.shape),
                wanted="two axes or fewer",
            )  # fmt: skip
    parts = _of_one_type([atleast_2d(one) for one in tensors])
    arrays = [one.array for one in parts]
    rows = [0, *itertools.accumulate(one.shape[0] for one in arrays)]
    columns = [0, *itertools.accumulate(one.shape[1] for one in arrays)]
    whole = np.zeros((rows[-1], columns[-1]), arrays[0].dtype)
    blocks = [
        (slice(rows[at], rows[at + 1]), slice(columns[at], columns[at + 1]))
        for at in range(len(arrays))
    ]
    for block, array in zip(blocks, arrays, strict=True):
        whole[block] = array
    return record(whole, block_diag_backward, tuple(parts), values=blocks)


def block_diag_backward(node: Node, grad: Tensor) -> list[Tensor | None]:
    return [
        None if source is None else basic_view(grad, block)
        for block, source in zip(node.values, node.sources, strict=True)
    ]


# -- Cutting --------------------------------------------------------------------------------------


def _cut(input: Tensor, bounds: list[int], axis: int) -> tuple[Tensor, ...]:
    lead = (_ALL,) * axis
    return tuple([
        basic_view(input, (*lead, slice(begin, end))) for begin, end in itertools.pairwise(bounds)
    ])  # fmt: skip


def _check_axes(input: Tensor, operator: str) -> None:
    if not input.array.ndim:
        raise refuse("CORE-0248", operator=operator, shape=[], wanted="one axis or more")


def _sample_split(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)), 2))
    yield Sample((rng.normal(size=(2, 5)), [1, 4], 1))


@operator(_sample_split)
def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of one size along an axis, the last one smaller where it must be, or of given
    sizes.

    Raises CORE-0204, CORE-0248, CORE-0253, and CORE-0246 where given sizes do not make up the axis.
    """
    if not isinstance(split_size_or_sections, (int, np.integer, Tensor)):
        return split_with_sizes(input, split_size_or_sections, dim)
    _check_axes(input, "split")
    axis, size = axis_of(dim, input.array.ndim, "split"), int(split_size_or_sections)
    extent = input.array.shape[axis]
    if size < 0 or (size == 0 and extent):
        raise refuse(
            "CORE-0253", operator="split", argument="split_size", value=size, wanted="1 or more"
        )
    bounds = [*range(0, extent, size), extent] if extent else [0, 0]
    return _cut(input, bounds, axis)


def _sample_sizes(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)), [2, 0, 3]))


@operator(_sample_sizes)
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of the given sizes along an axis.

    Raises CORE-0204, CORE-0248, and CORE-0246 where the sizes do not make up the axis.
    """
    _check_axes(input, "split")
    axis, sizes = axis_of(dim, input.array.ndim, "split"), list(extents_of((split_sizes,)))
    extent = input.array.shape[axis]
    if sum(sizes) != extent or any(size < 0 for size in sizes):
        raise refuse("CORE-0246", operator="split", sizes=sizes, extent=extent)
    return _cut(input, [0, *itertools.accumulate(sizes)], axis)


def _sample_chunk(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)), 3))
    yield Sample((rng.normal(size=(2, 4)), 2, -1))


@operator(_sample_chunk)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of at most `chunks` parts of one size along an axis; there may be fewer, as in torch.

    Raises CORE-0204, CORE-0248, CORE-0253.
    """
    _check_axes(input, "chunk")
    if chunks < 1:
        raise refuse(
            "CORE-0253", operator="chunk", argument="chunks", value=int(chunks), wanted="1 or more"
        )
    axis = axis_of(dim, input.array.ndim, "chunk")
    extent = input.array.shape[axis]
    size = -(-extent // chunks)
    if not size:
        return _cut(input, [0] * (chunks + 1), axis)
    return split(input, size, axis)


def _sample_tensor_split(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)), 3))
    yield Sample((rng.normal(size=(2, 5)), (1, 4), 1))


@operator(_sample_tensor_split)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of so many parts, nearly equal, along an axis, or of the parts between the given
    indices.

    Raises CORE-0204, CORE-0248, CORE-0253.
    """
    _check_axes(input, "tensor_split")
    axis = axis_of(dim, input.array.ndim, "tensor_split")
    extent = input.array.shape[axis]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, (int, np.integer)):
        if given < 1:
            raise refuse(
                "CORE-0253", operator="tensor_split", argument="sections", value=int(given),
                wanted="1 or more",
            )  # fmt: skip
        small, larger = divmod(extent, int(given))
        sizes = [small + 1] * larger + [small] * (int(given) - larger)
        return _cut(input, [0, *itertools.accumulate(sizes)], axis)
    inner = [int(one) for one in given]
    lead = (_ALL,) * axis
    pairs = itertools.pairwise([0, *inner, extent])
    return tuple(basic_view(input, (*lead, slice(begin, end))) for begin, end in pairs)


def _sections(input: Tensor, given: Any, dim: int, operator: str) -> tuple[Tensor, ...]:
    if isinstance(given, (int, np.integer)) and (given < 1 or input.array.shape[dim] % given):
        raise refuse(
            "CORE-0246", operator=operator, sizes=[int(given)], extent=input.array.shape[dim]
        )
    return tensor_split(input, given, dim)


def _least(input: Tensor, ndim: int, operator: str, wanted: str) -> None:
    if input.array.ndim < ndim:
        raise refuse(
            "CORE-0248", operator=operator, shape=list(input.shape), wanted=f"{wanted} or more"
        )


def _sample_split3(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4, 2)), 2))


@operator(_sample_split3)
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of parts along the second axis, of a vector along its only one; as many must divide it.

    Raises CORE-0248, CORE-0246.
    """
    _least(input, 1, "hsplit", "one axis")
    return _sections(input, indices_or_sections, 0 if input.array.ndim == 1 else 1, "hsplit")


@operator(_sample_split3)
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of parts along the first axis; as many must divide it.

    Raises CORE-0248, CORE-0246.
    """
    _least(input, 2, "vsplit", "two axes")
    return _sections(input, indices_or_sections, 0, "vsplit")


@operator(_sample_split3)
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of parts along the third axis; as many must divide it.

    Raises CORE-0248, CORE-0246.
    """
    _least(input, 3, "dsplit", "three axes")
    return _sections(input, indices_or_sections, 2, "dsplit")


def _sample_unbind(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), -1))


@operator(_sample_unbind)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A view of what lies at each index of an axis.

    Raises CORE-0204, CORE-0248.
    """
    _check_axes(input, "unbind")
    axis = axis_of(dim, input.array.ndim, "unbind")
    lead = (_ALL,) * axis
    return tuple([basic_view(input, (*lead, at)) for at in range(input.array.shape[axis])])


# -- Repeating ------------------------------------------------------------------------------------


def _sample_repeat(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 2, 1))
    yield Sample((rng.normal(size=(3,)), (2, 2)))


@operator(_sample_repeat)
def repeat(input: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """A copy laid out so many times along each axis; further counts in front make further axes.

    Raises CORE-0253 for a negative count, CORE-0246 for fewer counts than axes.
    """
    return _tiled(input, extents_of(counts if repeats is None else (repeats,)), "repeat")


def _tiled(input: Tensor, counts: tuple[int, ...], operator: str) -> Tensor:
    array = input.array
    if any(count < 0 for count in counts):
        raise refuse(
            "CORE-0253",
            operator=operator,
            argument="repeats",
            value=min(counts),
            wanted="0 or more",
        )
    if len(counts) < array.ndim:
        raise refuse("CORE-0246", operator=operator, sizes=list(counts), extent=array.ndim)
    # Each axis becomes two, the first of them repeated: one expansion and one copy.
    shape = (1,) * (len(counts) - array.ndim) + array.shape
    split = [extent for pair in zip((1,) * len(shape), shape, strict=True) for extent in pair]
    wide = [extent for pair in zip(counts, shape, strict=True) for extent in pair]
    whole = [count * extent for count, extent in zip(counts, shape, strict=True)]
    held = np.broadcast_to(array.reshape(split), wide).reshape(whole)
    if np.may_share_memory(held, array):
        held = held.copy()
    return record(held, tiled_backward, (input,), values=(array.shape, split, wide))


def tiled_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shape, split, wide = node.values
    return (reshape(reshape(grad, wide).sum_to_size(split), shape),)


def _sample_tile(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), (2,)))
    yield Sample((rng.normal(size=(3,)), (2, 2)))


@operator(_sample_tile)
def tile(input: Tensor, *given: Any, dims: Any = None) -> Tensor:
    """`repeat`, whose counts may be fewer than the axes; missing ones in front are one.

    Raises CORE-0253.
    """
    counts = extents_of(given if dims is None else (dims,))
    return _tiled(input, (1,) * (input.array.ndim - len(counts)) + counts, "tile")


def _sample_repeat_interleave(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 2))
    yield Sample((rng.normal(size=(2, 3)), 3), {"dim": 1})
    yield Sample((rng.normal(size=(2, 3)), np.array([2, 0])), {"dim": 0})


@operator(_sample_repeat_interleave)
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """A copy with each element (or slice of an axis) `repeats` times in a row; given counts alone,
    the
    indices that would do so.

    Raises CORE-0204, CORE-0253 for a negative count, CORE-0246 where counts do not fit the axis.
    """
    if repeats is None:
        counts = input.array
        _check_counts(counts)
        return wrap(np.repeat(np.arange(counts.size), counts))
    counts = repeats.array if isinstance(repeats, Tensor) else np.asarray(repeats)
    _check_counts(counts)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    elif not input.array.ndim:
        axis_of(dim, 0, "repeat_interleave")
        input = reshape(input, (1,))
        dim = 0
    axis = axis_of(dim, input.array.ndim, "repeat_interleave")
    extent = input.array.shape[axis]
    if counts.size != 1 and counts.size != extent:
        raise refuse(
            "CORE-0246", operator="repeat_interleave", sizes=counts.reshape(-1).tolist(),
            extent=extent,
        )  # fmt: skip
    places = np.repeat(np.arange(extent), counts.reshape(-1))
    array = input.array.take(places, axis)
    where = (_ALL,) * axis + (places,)
    return record(array, indexed_backward, (input,), values=(input.array.shape, where))


def _check_counts(counts: Array) -> None:
    if counts.dtype.kind not in "iu":
        raise refuse(
            "CORE-0241", operator="repeat_interleave", given=f"counts of {counts.dtype.name}"
        )
    if counts.size and int(counts.min()) < 0:
        raise refuse(
            "CORE-0253", operator="repeat_interleave", argument="repeats", value=int(counts.min()),
            wanted="0 or more",
        )  # fmt: skip


# -- Grids ----------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape in which the shapes meet.

    Raises CORE-0201.
    """
    from numbat.ops.broadcasting import check_broadcast

    several = [(one,) if isinstance(one, int) else tuple(one) for one in shapes]
    return check_broadcast("broadcast_shapes", *several)


def _sample_broadcast_tensors(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 1)), rng.normal(size=(3,))))


@operator(_sample_broadcast_tensors, method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of the tensors, all of the shape in which they meet.

    Raises CORE-0201.
    """
    several = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    shape = broadcast_shapes(*[one.array.shape for one in several])
    return tuple([expand(one, shape) for one in several])


def _sample_broadcast_to(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 1)), (2, 3, 2)))


@operator(_sample_broadcast_to)
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`expand` under numpy's name.

    Raises CORE-0208.
    """
    return expand(input, size)


def _sample_meshgrid(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(3,))), {"indexing": "ij"})
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(3,))), {"indexing": "xy"})


@operator(_sample_meshgrid, method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Views of vectors, one for each axis of the grid that they span; with 'xy' the first two axes
    change
    places.

    Raises CORE-0245, CORE-0247, and CORE-0248 for tensors of more than one axis.
    """
    several = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    if indexing not in ("ij", "xy"):
        raise refuse(
            "CORE-0247", operator="meshgrid", argument="indexing", value=str(indexing),
            known=["ij", "xy"],
        )  # fmt: skip
    parts = _several(several, "meshgrid")
    for one in parts:
        if one.array.ndim > 1:
            raise refuse(
                "CORE-0248", operator="meshgrid", shape=list(one.shape), wanted="one axis or none"
            )
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    shape: list[int] = [1] * len(parts)
    for one, axis in zip(parts, order, strict=True):
        shape[axis] = one.array.size
    found = []
    for one, axis in zip(parts, order, strict=True):
        lone = [1] * len(parts)
        lone[axis] = one.array.size
        found.append(expand(reshape(one, lone), shape))
    return tuple(found)


def _sample_cartesian_prod(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=(2,)),))


@operator(_sample_cartesian_prod, method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element of each vector, a row for each; of one vector, the vector.

    Raises CORE-0245, CORE-0248.
    """
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(one, (-1,)) for one in meshgrid(*tensors)], 1)


def _sample_combinations(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(4,)), 2))
    yield Sample((rng.normal(size=(3,)), 2, True))


@operator(_sample_combinations)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, in its order, a row for each.

    Raises CORE-0248 for other than one axis, CORE-0253 for a negative count.
    """
    if input.array.ndim != 1:
        raise refuse(
            "CORE-0248", operator="combinations", shape=list(input.shape), wanted="one axis"
        )
    if r < 0:
        raise refuse(
            "CORE-0253", operator="combinations", argument="r", value=r, wanted="0 or more"
        )
    if r == 0:
        return wrap(np.empty(0, input.array.dtype))
    choose: Any = (
        itertools.combinations_with_replacement if with_replacement else itertools.combinations
    )
    places = np.array(list(choose(range(input.array.size), r)), np.int64).reshape(-1, r)
    from numbat.ops.indexing import indexed

    return indexed(input, (places,))
