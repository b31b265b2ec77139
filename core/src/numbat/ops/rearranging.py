"""Elements in another order, and the diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record, record_view
from numbat.ops.indexing import basic_view
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import distinct_axes, extents_of
from numbat.ops.viewing import axis_of, expand, reshape, transpose
from numbat.tensors import dtypes
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "flip", "fliplr", "flipud",
    "roll", "rot90", "select_scatter", "slice_scatter", "trace", "tril", "tril_indices", "triu",
    "triu_indices",
]  # fmt: skip

_ALL = slice(None)


# -- Order ----------------------------------------------------------------------------------------


def _sample_flip(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), (0,)))
    yield Sample((rng.normal(size=(2, 3, 2)), (0, -1)))


@operator(_sample_flip)
def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """A copy with the given axes reversed.

    Raises CORE-0204, CORE-0207.
    """
    array = input.array
    given = extents_of(axes if dims is None else (dims,))
    turned = distinct_axes(given, array.ndim, "flip")
    index = tuple([slice(None, None, -1) if axis in turned else _ALL for axis in range(array.ndim)])
    return record(np.array(array[index], order="C"), flip_backward, (input,), values=turned)


def flip_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (flip(grad, node.values),)


def _sample_matrix(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))


@operator(_sample_matrix)
def fliplr(input: Tensor) -> Tensor:
    """A copy with the second axis reversed.

    Raises CORE-0248 for fewer than two axes.
    """
    if input.array.ndim < 2:
        raise refuse(
            "CORE-0248", operator="fliplr", shape=list(input.shape), wanted="two axes or more"
        )
    return flip(input, 1)


@operator(_sample_matrix)
def flipud(input: Tensor) -> Tensor:
    """A copy with the first axis reversed.

    Raises CORE-0248 for a tensor without axes.
    """
    if not input.array.ndim:
        raise refuse("CORE-0248", operator="flipud", shape=[], wanted="one axis or more")
    return flip(input, 0)


def _sample_roll(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), 1))
    yield Sample((rng.normal(size=(2, 3)), (1, -2), (0, 1)))


@operator(_sample_roll)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """A copy with the elements moved along axes (or along the flattened tensor), the last ones
    first.

    Raises CORE-0204, and CORE-0246 where there are not as many shifts as axes.
    """
    several = (int(shifts),) if isinstance(shifts, int) else extents_of((shifts,))
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        if len(several) != 1:
            raise refuse("CORE-0246", operator="roll", sizes=list(several), extent=1)
        array = np.roll(input.array, several[0])
        return record(array, roll_backward, (input,), values=(tuple(-one for one in several), None))
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    axes = tuple([axis_of(int(one), input.array.ndim, "roll") for one in axes])
    if len(axes) != len(several):
        raise refuse("CORE-0246", operator="roll", sizes=list(several), extent=len(axes))
    array = np.roll(input.array, several, axes) if input.array.ndim else input.array.copy()
    return record(array, roll_backward, (input,), values=(tuple(-one for one in several), axes))


def roll_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    shifts, dims = node.values
    return (roll(grad, shifts, dims),)


def _sample_rot90(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3, 2)), -1, (1, 2)))
    yield Sample((rng.normal(size=(2, 3)), 2))


@operator(_sample_rot90)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A copy turned by `k` quarters in the plane of two axes, from the first towards the second.

    Raises CORE-0204, CORE-0207, and CORE-0246 for other than two axes.
    """
    axes = tuple(int(one) for one in dims)
    if len(axes) != 2:
        raise refuse("CORE-0246", operator="rot90", sizes=list(axes), extent=2)
    first, second = distinct_axes(axes, input.array.ndim, "rot90")
    turns = k % 4
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, first, second)
    # A turn is a reversal and an exchange of axes.
    turned = flip(input, second if turns == 1 else first)
    return transpose(turned, first, second)


# -- Diagonals ------------------------------------------------------------------------------------


def _diagonal_view(array: Array, offset: int, first: int, second: int) -> Array:
    """numpy's diagonal as a view that may be written to; empty where the offset lies outside."""
    found = array.diagonal(offset, first, second)
    found.flags.writeable = array.flags.writeable
    return found


def _plane(input: Tensor, dim1: int, dim2: int, operator: str) -> tuple[int, int]:
    first, second = distinct_axes((dim1, dim2), input.array.ndim, operator)
    return first, second


def _sample_diagonal(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 3)),))
    yield Sample((rng.normal(size=(2, 3, 4)), 1, 0, 2))
    yield Sample((rng.normal(size=(2, 3, 4)), -1, -1, 1))


@operator(_sample_diagonal)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of a diagonal of the plane of two axes, as a last axis.

    Raises CORE-0204, CORE-0207.
    """
    first, second = _plane(input, dim1, dim2, "diagonal")
    found = _diagonal_view(input.array, offset, first, second)
    return record_view(found, diagonal_backward, input, (input.array.shape, offset, first, second))


def diagonal_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (_on_diagonal(grad, *node.values),)


def _on_diagonal(
    grad: Tensor, shape: tuple[int, ...], offset: int, first: int, second: int
) -> Tensor:
    """A tensor of `shape` with the given diagonal, zero elsewhere."""
    whole = np.zeros(shape, grad.array.dtype)
    _diagonal_view(whole, offset, first, second)[...] = grad.array
    return record(whole, _on_diagonal_backward, (grad,), values=(offset, first, second))


def _on_diagonal_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (diagonal(grad, *node.values),)


def _sample_diag(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3,)),))
    yield Sample((rng.normal(size=(3,)), -1))
    yield Sample((rng.normal(size=(3, 4)), 1))


@operator(_sample_diag)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or a copy of the diagonal of a matrix.

    Raises CORE-0248 for other than one or two axes.
    """
    ndim = input.array.ndim
    if ndim not in (1, 2):
        raise refuse(
            "CORE-0248", operator="diag", shape=list(input.shape), wanted="one or two axes"
        )
    if ndim == 1:
        return diag_embed(input, diagonal)
    found = _diagonal_view(input.array, diagonal, 0, 1).copy()
    return record(found, diagonal_backward, (input,), values=(input.array.shape, diagonal, 0, 1))


def _sample_diagflat(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 2)),))
    yield Sample((rng.normal(size=(3,)), 1))


@operator(_sample_diagflat)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements, in order, on a diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


def _sample_diag_embed(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), 1, 0, 2))
    yield Sample((rng.normal(size=(2, 3)), -1, -1, 0))


@operator(_sample_diag_embed)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in the plane of two new axes, with the last axis on a diagonal.

    Raises CORE-0204, CORE-0207, CORE-0248 for a tensor without axes.
    """
    array = input.array
    if not array.ndim:
        raise refuse("CORE-0248", operator="diag_embed", shape=[], wanted="one axis or more")
    first, second = distinct_axes((dim1, dim2), array.ndim + 1, "diag_embed")
    size = array.shape[-1] + abs(offset)
    rest = list(array.shape[:-1])
    for axis in sorted((first, second)):
        rest.insert(axis, size)
    if first > second:
        # The offset counts along the second of the two axes named.
        first, second, offset = second, first, -offset
    return _on_diagonal(input, tuple(rest), offset, first, second)


def _sample_trace(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)),))


@operator(_sample_trace)
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal.

    Raises CORE-0248 for other than two axes.
    """
    array = input.array
    if array.ndim != 2:
        raise refuse("CORE-0248", operator="trace", shape=list(array.shape), wanted="two axes")
    from numbat.ops.reductions import accumulated, sum_dtype

    found = accumulated(array.diagonal(), (0,), False, sum_dtype(input, None))
    return record(found, trace_backward, (input,), values=array.shape)


def trace_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    rows, columns = node.values
    return (_on_diagonal(expand(grad, (min(rows, columns),)), (rows, columns), 0, 0, 1),)


# -- Triangles ------------------------------------------------------------------------------------


def _sample_triangle(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 3)),))
    yield Sample((rng.normal(size=(2, 3, 4)), 1))
    yield Sample((rng.normal(size=(4, 3)), -1))


def _check_matrices(input: Tensor, operator: str) -> None:
    if input.array.ndim < 2:
        raise refuse(
            "CORE-0248", operator=operator, shape=list(input.shape), wanted="two axes or more"
        )


@operator(_sample_triangle, in_place=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy with zero above a diagonal.

    Raises CORE-0248 for fewer than two axes.
    """
    _check_matrices(input, "tril")
    return record(np.tril(input.array, diagonal), tril_backward, (input,), values=diagonal)


def tril_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (tril(grad, node.values),)


@operator(_sample_triangle, in_place=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy with zero below a diagonal.

    Raises CORE-0248 for fewer than two axes.
    """
    _check_matrices(input, "triu")
    return record(np.triu(input.array, diagonal), triu_backward, (input,), values=diagonal)


def triu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (triu(grad, node.values),)


def _sample_triangle_indices(rng: np.random.Generator) -> Any:
    yield Sample((3, 4))
    yield Sample((3, 4, 1))
    yield Sample((4, 3, -1))


@operator(_sample_triangle_indices, differentiable=False, method=False)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """Rows and columns of the elements on and below a diagonal, as two rows."""
    return wrap(np.stack(np.tril_indices(row, offset, col)).astype(as_dtype(dtype).numpy))


@operator(_sample_triangle_indices, differentiable=False, method=False)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """Rows and columns of the elements on and above a diagonal, as two rows."""
    return wrap(np.stack(np.triu_indices(row, offset, col)).astype(as_dtype(dtype).numpy))


# -- Copies with a region replaced ----------------------------------------------------------------


def _replaced(input: Tensor, src: Tensor, region: Any, back: Any, operator: str) -> Tensor:
    """A copy of `input` with `src` where `region` of an array is; `back` takes that region of a
    gradient."""
    array = input.array.copy()
    part = region(array)
    if part.shape != src.array.shape:
        raise refuse("CORE-0208", shape=list(src.array.shape), wanted=list(part.shape))
    part[...] = src.array
    return record(array, replaced_backward, (input, src), values=(region, back))


def replaced_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    region, back = node.values
    to_input = None
    if node.needs[0]:
        to_input = _emptied(grad, region, back)
    return to_input, back(grad) if node.needs[1] else None


def _emptied(grad: Tensor, region: Any, back: Any) -> Tensor:
    array = grad.array.copy()
    region(array)[...] = 0
    return record(array, _emptied_backward, (grad,), values=(region, back))


def _emptied_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (_emptied(grad, *node.values),)


def _sample_diagonal_scatter(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 3)), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 2)), 1, 0, 2))


@operator(_sample_diagonal_scatter)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy with another diagonal.

    Raises CORE-0204, CORE-0207, and CORE-0208 where `src` has not the diagonal's shape.
    """
    first, second = _plane(input, dim1, dim2, "diagonal_scatter")
    return _replaced(
        input, src,
        lambda array: _diagonal_view(array, offset, first, second),
        lambda grad: diagonal(grad, offset, first, second),
        "diagonal_scatter",
    )  # fmt: skip


def _sample_select_scatter(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2,)), 1, -1))


@operator(_sample_select_scatter)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with what lies at one index of an axis replaced.

    Raises CORE-0204, CORE-0240, CORE-0208.
    """
    axis = axis_of(dim, input.array.ndim, "select_scatter")
    extent = input.array.shape[axis]
    if not -extent <= index < extent:
        raise refuse(
            "CORE-0240", operator="select_scatter", index=int(index), dim=axis, extent=extent
        )
    where = (_ALL,) * axis + (int(index),)
    return _replaced(
        input, src, lambda array: array[(*where, ...)], lambda grad: basic_view(grad, where),
        "select_scatter",
    )  # fmt: skip


def _sample_slice_scatter(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)), rng.normal(size=(2, 2)), 0, 1, 5, 2))


@operator(_sample_slice_scatter)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Tensor:  # fmt: skip
    """A copy with a slice of an axis replaced.

    Raises CORE-0204, CORE-0208.
    """
    axis = axis_of(dim, input.array.ndim, "slice_scatter")
    where = (_ALL,) * axis + (slice(start, end, step),)
    return _replaced(
        input, src, lambda array: array[where], lambda grad: basic_view(grad, where),
        "slice_scatter",
    )  # fmt: skip
