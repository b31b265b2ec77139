"""Products of matrices and vectors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.kernels import products
from numbat.ops.broadcasting import check_broadcast
from numbat.ops.pointwise import add, mul, neg
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import unsqueeze
from numbat.ops.viewing import axis_of, expand, permute, reshape, transpose
from numbat.tensors import dtypes
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "cross",
    "dot", "ger", "inner", "kron", "linear", "matmul", "mm", "mv", "outer", "tensordot", "vdot",
]  # fmt: skip

_BLAS = ("f", "d")

_SMALL = 1 << 18
"""Multiplications below which the bias is added afterwards; above, BLAS adds to it."""


def product(x: Array, y: Array) -> Array:
    """`x @ y` by BLAS; float16 and bfloat16 are multiplied in float32 and rounded once."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        return products.matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return products.matmul(x, y)


def _check_types(operator: str, first: Tensor, second: Tensor) -> None:
    x, y = first.array.dtype, second.array.dtype
    if x is not y and x != y:
        raise refuse(
            "CORE-0111", operator=operator, first=first.dtype.name, second=second.dtype.name
        )


def _mismatch(operator: str, first: Tensor, second: Tensor) -> Any:
    return refuse(
        "CORE-0210", operator=operator, first=list(first.shape), second=list(second.shape)
    )


def _check_axes(operator: str, tensor: Tensor, ndim: int, wanted: str) -> None:
    if tensor.array.ndim != ndim:
        raise refuse("CORE-0248", operator=operator, shape=list(tensor.shape), wanted=wanted)


def _sample_matmul(rng: np.random.Generator) -> Any:
    shapes = [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((2, 2, 3), (3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3,)),
    ]
    for one, other in shapes:
        yield Sample((rng.normal(size=one), rng.normal(size=other)))


@operator(_sample_matmul)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors gain an axis that the result loses, further axes broadcast.

    Raises CORE-0210 where the inner extents differ, CORE-0111 where the element types do.
    """
    x, y = input.array, other.array
    if x.dtype is not y.dtype:
        _check_types("matmul", input, other)
    try:
        array = product(x, y)
    except ValueError:
        raise _mismatch("matmul", input, other) from None
    saved = (input if other.requires_grad else None, other if input.requires_grad else None)
    return record(array, matmul_backward, (input, other), saved, (x.shape, y.shape))


def matmul_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    shape_x, shape_y = node.values
    to_first, to_second = node.needs
    if len(shape_y) <= 2 < len(shape_x):
        return _folded_gradients(grad, x, y, shape_x, shape_y, node)
    if len(shape_y) == 1:
        grad = unsqueeze(grad, -1)
        y = None if y is None else reshape(y, (-1, 1))
    if len(shape_x) == 1:
        grad = unsqueeze(grad, -2)
        x = None if x is None else reshape(x, (1, -1))
    to_x = to_y = None
    if to_first:
        to_x = matmul(grad, transpose(y, -1, -2))
        if len(shape_x) == 1:
            to_x = reshape(to_x.sum_to_size((1, *shape_x)), shape_x)
    if to_second:
        to_y = matmul(transpose(x, -1, -2), grad)
        if len(shape_y) == 1:
            to_y = reshape(to_y.sum_to_size((*shape_y, 1)), shape_y)
    return to_x, to_y


def _folded_gradients(
    grad: Tensor, x: Tensor | None, y: Tensor | None, shape_x: Any, shape_y: Any, node: Node
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of a product of many matrices with one: the many are rows of one large matrix, so
    that no
    sum over them is made afterwards."""
    width = 1 if len(shape_y) == 1 else shape_y[1]
    rows = reshape(grad, (_count(shape_x[:-1]), width))
    to_x = to_y = None
    if node.needs[0]:
        assert y is not None
        to_x = reshape(matmul(rows, transpose(reshape(y, (shape_y[0], width)), 0, 1)), shape_x)
    if node.needs[1]:
        assert x is not None
        flat = reshape(x, (_count(shape_x[:-1]), shape_x[-1]))
        to_y = reshape(matmul(transpose(flat, 0, 1), rows), shape_y)
    return to_x, to_y


def _count(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


# -- With the number of axes fixed ----------------------------------------------------------------


def _sample_mm(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3, 4))))
    yield Sample((rng.normal(size=(3, 2)).T, rng.normal(size=(4, 3)).T))


@operator(_sample_mm)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices.

    Raises CORE-0248, CORE-0210, CORE-0111.
    """
    _check_axes("mm", input, 2, "two axes")
    _check_axes("mm", mat2, 2, "two axes")
    return matmul(input, mat2)


def _sample_bmm(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3, 2))))


def _check_batches(operator: str, first: Tensor, second: Tensor) -> None:
    _check_axes(operator, first, 3, "three axes")
    _check_axes(operator, second, 3, "three axes")
    if first.array.shape[0] != second.array.shape[0]:
        raise _mismatch(operator, first, second)


@operator(_sample_bmm)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of each two matrices of two batches.

    Raises CORE-0248, CORE-0210, CORE-0111.
    """
    _check_batches("bmm", input, mat2)
    return matmul(input, mat2)


def _sample_mv(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3,))))


@operator(_sample_mv)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector.

    Raises CORE-0248, CORE-0210, CORE-0111.
    """
    _check_axes("mv", input, 2, "two axes")
    _check_axes("mv", vec, 1, "one axis")
    return matmul(input, vec)


def _sample_dot(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3,)), rng.normal(size=(3,))))


@operator(_sample_dot)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements.

    Raises CORE-0248, CORE-0210, CORE-0111.
    """
    _check_axes("dot", input, 1, "one axis")
    _check_axes("dot", tensor, 1, "one axis")
    return matmul(input, tensor)


@operator(_sample_dot)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot`, there being no complex numbers."""
    return dot(input, other)


def _sample_outer(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(3,))))


@operator(_sample_outer)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The products of each element of one vector with each of another.

    Raises CORE-0248.
    """
    _check_axes("outer", input, 1, "one axis")
    _check_axes("outer", vec2, 1, "one axis")
    return mul(unsqueeze(input, 1), vec2)


@operator(_sample_outer)
def ger(input: Tensor, vec2: Tensor) -> Tensor:
    """`outer` under its old name."""
    return outer(input, vec2)


def _sample_inner(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(4, 3))))
    yield Sample((rng.normal(size=(3,)), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=()), rng.normal(size=(3,))))


@operator(_sample_inner)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along both last axes; with a tensor of no axes, the product.

    Raises CORE-0210, CORE-0111.
    """
    if not input.array.ndim or not other.array.ndim:
        return mul(input, other)
    if input.array.shape[-1] != other.array.shape[-1]:
        raise _mismatch("inner", input, other)
    return tensordot(input, other, ((-1,), (-1,)))


# -- With a sum -----------------------------------------------------------------------------------


def _sample_addmm(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4)), rng.normal(size=(2, 3)), rng.normal(size=(3, 4))))
    yield Sample(
        (rng.normal(size=(4,)), rng.normal(size=(2, 3)), rng.normal(size=(3, 4))),
        {"beta": 0.5, "alpha": 2.0},
    )
    yield Sample(
        (rng.normal(size=(2, 4)), rng.normal(size=(2, 3)), rng.normal(size=(3, 4))), {"beta": 0}
    )


def _scaled(tensor: Tensor, factor: Any) -> Tensor:
    return tensor if factor == 1 else mul(tensor, factor)


def _check_spread(operator: str, input: Tensor, shape: tuple[int, ...]) -> None:
    if check_broadcast(operator, input.array.shape, shape) != shape:
        raise refuse("CORE-0208", shape=list(input.shape), wanted=list(shape))


def _plus(
    operator: str,
    input: Tensor,
    beta: Any,
    multiply: Any,
    factors: tuple[Tensor, Tensor],
    alpha: Any,
) -> Tensor:
    """`beta * input + alpha * multiply(*factors)`; with a beta of 0 the input, NaN or not, plays
    no part.
    float16 and bfloat16 are computed in float32 and rounded once."""
    _check_types(operator, *factors)
    _check_types(operator, input, factors[0])
    if not input.dtype.is_floating_point:
        beta, alpha = int(beta), int(alpha)
    elif input.dtype.itemsize == 2:
        wide = _plus(
            operator, input.to(dtypes.float32), beta, multiply,
            (factors[0].to(dtypes.float32), factors[1].to(dtypes.float32)), alpha,
        )  # fmt: skip
        return wide.to(input.dtype)
    term = multiply(*factors)
    _check_spread(operator, input, term.array.shape)
    term = _scaled(term, alpha)
    return term if beta == 0 else add(_scaled(input, beta), term)


@operator(_sample_addmm, in_place=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`, the input broadcast; a beta of 0 leaves it out.

    Raises CORE-0248, CORE-0210, CORE-0111, CORE-0201, CORE-0208.
    """
    _check_axes("addmm", mat1, 2, "two axes")
    _check_axes("addmm", mat2, 2, "two axes")
    x, y = mat1.array, mat2.array
    if x.dtype.char not in _BLAS:
        return _plus("addmm", input, beta, matmul, (mat1, mat2), alpha)
    _check_types("addmm", mat1, mat2)
    _check_types("addmm", input, mat1)
    if x.shape[1] != y.shape[0]:
        raise _mismatch("addmm", mat1, mat2)
    shape = (x.shape[0], y.shape[1])
    _check_spread("addmm", input, shape)
    array = np.empty(shape, x.dtype)
    if beta != 0:
        # BLAS adds the product to what the result holds already.
        np.multiply(input.array, beta, out=array) if beta != 1 else np.copyto(array, input.array)
    products.multiply(x, y, array, float(alpha), 0.0 if beta == 0 else 1.0)
    saved = (mat1 if mat2.requires_grad else None, mat2 if mat1.requires_grad else None)
    return record(array, addmm_backward, (input, mat1, mat2), saved, (beta, alpha))


def addmm_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y = node.unpack()
    beta, alpha = node.values
    to_input, to_x, to_y = node.needs
    scaled = _scaled(grad, alpha)
    return (
        _scaled(grad, beta) if to_input else None,
        matmul(scaled, transpose(y, 0, 1)) if to_x else None,
        matmul(transpose(x, 0, 1), scaled) if to_y else None,
    )


def _sample_baddbmm(rng: np.random.Generator) -> Any:
    first, second = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3, 2))
    yield Sample((rng.normal(size=(2, 2, 2)), first, second))
    yield Sample((rng.normal(size=(2,)), first, second), {"beta": 0.5, "alpha": 2.0})


@operator(_sample_baddbmm, in_place=True)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2)`; see `addmm`."""
    _check_batches("baddbmm", batch1, batch2)
    return _plus("baddbmm", input, beta, matmul, (batch1, batch2), alpha)


def _sample_addbmm(rng: np.random.Generator) -> Any:
    first, second = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3, 2))
    yield Sample((rng.normal(size=(2, 2)), first, second))
    yield Sample((rng.normal(size=(2,)), first, second), {"beta": 0.5, "alpha": 2.0})


@operator(_sample_addbmm, in_place=True)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`; see `addmm`."""
    _check_batches("addbmm", batch1, batch2)
    if batch1.array.shape[2] != batch2.array.shape[1]:
        raise _mismatch("addbmm", batch1, batch2)
    # The sum over the batch is a further inner axis of one product.
    count, rows, inner_extent = batch1.array.shape
    wide = reshape(permute(batch1, (1, 0, 2)), (rows, count * inner_extent))
    tall = reshape(batch2, (count * inner_extent, batch2.array.shape[2]))
    return _plus("addbmm", input, beta, matmul, (wide, tall), alpha)


def _sample_addmv(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(2, 3)), rng.normal(size=(3,))))
    yield Sample(
        (rng.normal(size=()), rng.normal(size=(2, 3)), rng.normal(size=(3,))),
        {"beta": 0.5, "alpha": 2.0},
    )


@operator(_sample_addmv, in_place=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`; see `addmm`."""
    return _plus("addmv", input, beta, mv, (mat, vec), alpha)


def _sample_addr(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2,)), rng.normal(size=(3,))))
    yield Sample(
        (rng.normal(size=(3,)), rng.normal(size=(2,)), rng.normal(size=(3,))),
        {"beta": 0.5, "alpha": 2.0},
    )


@operator(_sample_addr, in_place=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`; see `addmm`."""
    _check_axes("addr", vec1, 1, "one axis")
    _check_axes("addr", vec2, 1, "one axis")
    if input.dtype.category == vec1.dtype.category == 0:
        from numbat.ops.bitwise import bitwise_or

        term = outer(vec1, vec2)
        _check_spread("addr", input, term.array.shape)
        term = term if alpha else mul(term, False)
        return bitwise_or(input, term) if beta else term
    return _plus("addr", input, beta, outer, (vec1, vec2), alpha)


# -- Layers ---------------------------------------------------------------------------------------


def _sample_linear(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4,))))
    yield Sample((rng.normal(size=(2, 2, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4,))))
    yield Sample((rng.normal(size=(3,)), rng.normal(size=(4, 3))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3,)), rng.normal(size=())))


@operator(_sample_linear, torch="nn.functional.linear", method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias` over the last axis.

    Shapes: (..., inner), (outer, inner), (outer,). Raises CORE-0210, CORE-0111, CORE-0201.
    """
    x, w = input.array, weight.array
    if w.ndim == 1:
        out = matmul(input, weight)
        return out if bias is None else add(out, bias)
    _check_types("linear", input, weight)
    if bias is not None:
        _check_types("linear", input, bias)
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1]:
        raise _mismatch("linear", input, weight)
    shape = (*x.shape[:-1], w.shape[0])
    rows = x.reshape(_count(shape[:-1]), x.shape[-1]) if x.ndim != 2 else x
    saved = (input if weight.requires_grad else None, weight if input.requires_grad else None)
    if x.dtype.char in _BLAS and rows.size * w.shape[0] < _SMALL:
        array = products.matmul(rows, w.T)
        if bias is not None:
            _check_spread("linear", bias, array.shape)
            array += bias.array
    elif x.dtype.char in _BLAS:
        array = np.empty((rows.shape[0], w.shape[0]), x.dtype)
        if bias is not None:
            _check_spread("linear", bias, array.shape)
            array[...] = bias.array
        products.multiply(rows, w.T, array, 1.0, 0.0 if bias is None else 1.0)
    else:
        wide = np.float32 if x.dtype.kind not in "iu" else x.dtype
        array = products.matmul(rows.astype(wide), w.T.astype(wide))
        if bias is not None:
            _check_spread("linear", bias, array.shape)
            array += bias.array.astype(wide)
        array = array.astype(x.dtype)
    inputs = (input, weight) if bias is None else (input, weight, bias)
    return record(array.reshape(shape), linear_backward, inputs, saved, x.shape)


def linear_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, w = node.unpack()
    needs, shape = node.needs, node.values
    width = grad.array.shape[-1]
    rows = grad if grad.array.ndim == 2 else reshape(grad, (_count(shape[:-1]), width))
    to_x = to_w = None
    if needs[0]:
        to_x = reshape(matmul(rows, w), shape)
    if needs[1]:
        flat = reshape(x, (_count(shape[:-1]), shape[-1]))
        to_w = matmul(transpose(rows, 0, 1), flat)
    if len(needs) == 2:
        return to_x, to_w
    return to_x, to_w, rows if needs[2] else None


def _sample_bilinear(rng: np.random.Generator) -> Any:
    weight = rng.normal(size=(2, 3, 4))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), weight, rng.normal(size=(2,))))
    yield Sample((rng.normal(size=(3,)), rng.normal(size=(4,)), weight))


@operator(_sample_bilinear, torch="nn.functional.bilinear", method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each output `input1 @ weight[output] @ input2 + bias[output]`.

    Shapes: (..., first), (..., second), (outer, first, second), (outer,). Raises CORE-0248,
    CORE-0210.
    """
    _check_axes("bilinear", weight, 3, "three axes")
    x, y, w = input1.array.shape, input2.array.shape, weight.array.shape
    if not x or not y or x[:-1] != y[:-1] or x[-1] != w[1] or y[-1] != w[2]:
        raise refuse("CORE-0210", operator="bilinear", first=list(x), second=list(y))
    rows = _count(x[:-1])
    wide = reshape(permute(weight, (1, 0, 2)), (w[1], w[0] * w[2]))
    half = reshape(matmul(reshape(input1, (rows, w[1])), wide), (rows, w[0], w[2]))
    out = reshape(matmul(half, reshape(input2, (rows, w[2], 1))), (*x[:-1], w[0]))
    return out if bias is None else add(out, bias)


# -- Further products -----------------------------------------------------------------------------


def _sample_tensordot(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2, 2))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), ([0, 1], [0, 1])))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), ([1], [1])))
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(3,)), 0))


@operator(_sample_tensordot, method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sums of products over pairs of axes: the last of `a` with the first of `b`, or those
    named.

    Raises CORE-0204, CORE-0207, CORE-0210, CORE-0111, CORE-0253.
    """
    from numbat.ops.shaping import distinct_axes

    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.array.ndim, b.array.ndim):
            raise refuse(
                "CORE-0253", operator="tensordot", argument="dims", value=dims,
                wanted="0 or more, and no more than there are axes",
            )  # fmt: skip
        first = tuple(range(a.array.ndim - dims, a.array.ndim))
        second = tuple(range(dims))
    else:
        first = distinct_axes(_numbers(dims[0]), a.array.ndim, "tensordot")
        second = distinct_axes(_numbers(dims[1]), b.array.ndim, "tensordot")
    if len(first) != len(second):
        raise refuse("CORE-0246", operator="tensordot", sizes=list(second), extent=len(first))
    for one, other in zip(first, second, strict=True):
        mine, theirs = a.array.shape[one], b.array.shape[other]
        if mine != theirs:
            # An extent of one is summed with every element of the other.
            if theirs == 1:
                a = a.sum(one, keepdim=True, dtype=a.dtype)
            elif mine == 1:
                b = b.sum(other, keepdim=True, dtype=b.dtype)
            else:
                raise _mismatch("tensordot", a, b)
    rest_a = [axis for axis in range(a.array.ndim) if axis not in first]
    rest_b = [axis for axis in range(b.array.ndim) if axis not in second]
    shape_a = [a.array.shape[axis] for axis in rest_a]
    shape_b = [b.array.shape[axis] for axis in rest_b]
    inner_extent = _count([a.array.shape[axis] for axis in first])
    wide = reshape(permute(a, [*rest_a, *first]), (_count(shape_a), inner_extent))
    tall = reshape(permute(b, [*second, *rest_b]), (inner_extent, _count(shape_b)))
    return reshape(matmul(wide, tall), (*shape_a, *shape_b))


def _numbers(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(int(one) for one in given)


def _sample_kron(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 2)), rng.normal(size=(1, 3))))
    yield Sample((rng.normal(size=(2,)), rng.normal(size=(2, 2))))


@operator(_sample_kron)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of one tensor times the whole other, side by side."""
    ndim = max(input.array.ndim, other.array.ndim)
    first = (1,) * (ndim - input.array.ndim) + input.array.shape
    second = (1,) * (ndim - other.array.ndim) + other.array.shape
    wide = reshape(input, [extent for one in first for extent in (one, 1)])
    narrow = reshape(other, [extent for one in second for extent in (1, one)])
    return reshape(mul(wide, narrow), [x * y for x, y in zip(first, second, strict=True)])


def _sample_cross(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(3, 2)), rng.normal(size=(3, 1)), 0))


@operator(_sample_cross)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along an axis of three; without `dim`, along the first axis of three.

    Raises CORE-0201, CORE-0204, CORE-0248 where there is no axis of three, CORE-0111.
    """
    if dim is None:
        threes = [axis for axis, extent in enumerate(input.array.shape) if extent == 3]
        if not threes:
            raise refuse(
                "CORE-0248", operator="cross", shape=list(input.shape),
                wanted="an axis of extent 3",
            )  # fmt: skip
        dim = threes[0]
    return crossed(input, other, dim)


def crossed(input: Tensor, other: Tensor, dim: int) -> Tensor:
    """`cross` along a given axis."""
    _check_types("cross", input, other)
    if input.array.ndim != other.array.ndim:
        raise _mismatch("cross", input, other)
    shape = check_broadcast("cross", input.array.shape, other.array.shape)
    axis = axis_of(dim, len(shape), "cross")
    for one in (input, other):
        if one.array.shape[axis] != 3:
            raise refuse(
                "CORE-0248", operator="cross", shape=list(one.shape),
                wanted=f"an extent of 3 along axis {axis}",
            )  # fmt: skip
    x, y = np.moveaxis(input.array, axis, 0), np.moveaxis(other.array, axis, 0)
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    array = np.stack(parts, axis)
    saved = (input if other.requires_grad else None, other if input.requires_grad else None)
    return record(array, cross_backward, (input, other), saved, axis)


def cross_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    axis = node.values
    shape = grad.array.shape
    return (
        crossed(expand(y, shape), grad, axis) if node.needs[0] else None,
        neg(crossed(expand(x, shape), grad, axis)) if node.needs[1] else None,
    )


def _sample_chain(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3, 1)), rng.normal(size=(1, 4))))


@operator(_sample_chain, method=False, torch=None)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order of multiplication that costs least.

    Raises CORE-0245, CORE-0248, CORE-0210, CORE-0111.
    """
    for one in matrices:
        _check_axes("chain_matmul", one, 2, "two axes")
    return chained(list(matrices), "chain_matmul")


def chained(matrices: list[Tensor], operator: str) -> Tensor:
    """The product of matrices, by the order of least multiplications."""
    if not matrices:
        raise refuse("CORE-0245", operator=operator)
    for first, second in itertools.pairwise(matrices):
        if first.array.shape[1] != second.array.shape[0]:
            raise _mismatch(operator, first, second)
    sizes = [matrices[0].array.shape[0], *(one.array.shape[1] for one in matrices)]
    count = len(matrices)
    cost = [[0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    # Cormen et al., Introduction to Algorithms, "Matrix-chain multiplication".
    for length in range(1, count):
        for begin in range(count - length):
            end = begin + length
            choices = [
                (
                    cost[begin][at]
                    + cost[at + 1][end]
                    + sizes[begin] * sizes[at + 1] * sizes[end + 1],
                    at,
                )
                for at in range(begin, end)
            ]
            cost[begin][end], cut[begin][end] = min(choices)

    def multiplied(begin: int, end: int) -> Tensor:
        if begin == end:
            return matrices[begin]
        at = cut[begin][end]
        return matmul(multiplied(begin, at), multiplied(at + 1, end))

    return multiplied(0, count - 1)
