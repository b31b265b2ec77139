"""Norms, powers and exponentials of matrices, condition numbers, and products of several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.division import div
from numbat.ops.factorising import check_matrices, check_square, inv, solved, svdvals
from numbat.ops.matrix import chained, crossed, matmul
from numbat.ops.pointwise import add, mul, sub
from numbat.ops.rearranging import diagonal as diagonal_of
from numbat.ops.reductions import axes_of, spread
from numbat.ops.reductions import sum as total
from numbat.ops.registry import Sample, operator
from numbat.ops.selecting import masked_fill
from numbat.ops.shaping import unsqueeze
from numbat.ops.viewing import axis_of, permute, reshape
from numbat.tensors import dtypes
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = ["matrix_exp", "matrix_power"]

_INF = math.inf


def _check_floating(tensor: Tensor, operator: str) -> None:
    if not tensor.is_floating_point():
        raise refuse("CORE-0102", dtype=tensor.dtype.name, operation=operator)


# -- Norms of vectors -----------------------------------------------------------------------------


def _sample_vector_norm(rng: np.random.Generator) -> Any:
    for order in (2, 1, 3, 0.5, _INF, -_INF, 0):
        yield Sample((rng.uniform(0.3, 2, (2, 3)) * rng.choice([-1, 1], (2, 3)), order))
    yield Sample((rng.normal(size=(2, 3)), 2, 1), {"keepdim": True})


@operator(_sample_vector_norm, name="linalg.vector_norm")
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of the elements over some axes, or of all: `sum(|x|**ord) ** (1 / ord)`, the
    largest or
    smallest size for an infinite order, the number of elements that are not zero for 0.

    Raises CORE-0102, CORE-0204, CORE-0207, CORE-0247 for an order that is no number, CORE-0253 for
    an
    order below 0 or infinite over no elements.
    """
    if not isinstance(ord, (int, float)):
        raise refuse(
            "CORE-0247", operator="vector_norm", argument="ord", value=str(ord), known=["a number"]
        )
    _check_floating(x, "vector_norm")
    if dtype is not None:
        x = x.to(as_dtype(dtype))
    axes = axes_of(dim, x.array.ndim, "vector_norm")
    array = x.array
    if (ord < 0 or ord == _INF) and any(array.shape[axis] == 0 for axis in axes):
        raise refuse(
            "CORE-0253", operator="vector_norm", argument="ord", value=0.0 if ord == _INF else ord,
            wanted="0 or more, and finite, over no elements",
        )  # fmt: skip
    held = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    value = np.asarray(_norm_array(held, float(ord), axes)).astype(array.dtype)
    shown = value if keepdim else value.reshape(_dropped(array.shape, axes))
    return record(shown, vector_norm_backward, (x,), (x,), (float(ord), axes), keep_result=True)


def _norm_array(array: Array, order: float, axes: tuple[int, ...]) -> Any:
    if order == 2:
        return np.sqrt(np.square(array).sum(axis=axes, keepdims=True))
    sizes = np.abs(array)
    if order == 0:
        return (sizes != 0).sum(axis=axes, keepdims=True, dtype=array.dtype)
    if order == 1:
        return sizes.sum(axis=axes, keepdims=True)
    if math.isinf(order):
        reduce = np.max if order > 0 else np.min
        return reduce(sizes, axis=axes, keepdims=True)
    return (sizes**order).sum(axis=axes, keepdims=True) ** (1 / order)


def vector_norm_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    order, axes = node.values
    shape = x.array.shape
    grad = spread(grad, shape, axes)
    if order == 0:
        return (wrap(np.zeros(shape, x.array.dtype)),)
    sign = wrap(np.sign(x.array))
    if order == 1:
        return (mul(grad, sign),)
    norm_of = spread(node.unpack_result(), shape, axes)
    zero = wrap(norm_of.array == 0)
    if order == 2:
        return (masked_fill(mul(div(x, norm_of), grad), zero, 0.0),)
    if math.isinf(order):
        # Equal extremes share the gradient evenly.
        mine = (np.abs(x.array) == norm_of.array).astype(x.array.dtype)
        share = mine / mine.sum(axis=axes, keepdims=True)
        return (mul(mul(grad, sign), wrap(share)),)
    from numbat.ops import abs as size_of
    from numbat.ops import pow as power

    size = size_of(x)
    if order < 1:
        part = mul(sign, masked_fill(power(size, order - 1), wrap(x.array == 0), 0.0))
        return (mul(part, mul(grad, power(norm_of, 1 - order))),)
    if order < 2:
        scaled = div(mul(sign, power(size, order - 1)), power(norm_of, order - 1))
        return (mul(masked_fill(scaled, zero, 0.0), grad),)
    scaled = mul(mul(x, power(size, order - 2)), div(grad, power(norm_of, order - 1)))
    return (masked_fill(scaled, zero, 0.0),)


# -- Norms of matrices ----------------------------------------------------------------------------


def _sample_matrix_norm(rng: np.random.Generator) -> Any:
    for order in ("fro", "nuc", 2, -2, 1, -1, _INF, -_INF):
        yield Sample((rng.normal(size=(2, 3, 2)), order))


@operator(_sample_matrix_norm, name="linalg.matrix_norm")
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of the matrices in two axes: 'fro', 'nuc' (the sum of singular values), 2 and -2
    (the
    largest and smallest), 1 and -1 (of sums of columns), inf and -inf (of sums of rows).

    Raises CORE-0102, CORE-0248, CORE-0204, CORE-0207, CORE-0247, CORE-0258.
    """
    from numbat.ops import abs as size_of

    _check_floating(A, "matrix_norm")
    if A.array.ndim < 2:
        raise refuse(
            "CORE-0248", operator="matrix_norm", shape=list(A.shape), wanted="two axes or more"
        )
    axes = tuple(axis_of(int(one), A.array.ndim, "matrix_norm") for one in dim)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise refuse("CORE-0207", operator="matrix_norm", dims=list(axes), ndim=A.array.ndim)
    if dtype is not None:
        A = A.to(as_dtype(dtype))
    if ord == "fro":
        return vector_norm(A, 2, axes, keepdim)
    known = ["fro", "nuc", "2", "-2", "1", "-1", "inf", "-inf"]
    if ord not in ("nuc", 2, -2, 1, -1, _INF, -_INF):
        raise refuse(
            "CORE-0247", operator="matrix_norm", argument="ord", value=str(ord), known=known
        )
    row, column = axes
    # Of sizes, the norms of infinite order are the largest and the smallest.
    extreme = _INF if ord == "nuc" or ord > 0 else -_INF
    if ord in (1, -1, _INF, -_INF):
        summed, over = (row, column) if abs(ord) == 1 else (column, row)
        found = vector_norm(total(size_of(A), summed, keepdim=True), extreme, over, keepdim=True)
    else:
        rest = [axis for axis in range(A.array.ndim) if axis not in axes]
        values = svdvals(permute(A, (*rest, row, column)))
        value = total(values, -1) if ord == "nuc" else vector_norm(values, extreme, -1)
        kept = [1 if axis in axes else extent for axis, extent in enumerate(A.array.shape)]
        found = reshape(value, kept)
    return found if keepdim else reshape(found, _dropped(A.array.shape, axes))


def _dropped(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    return [extent for axis, extent in enumerate(shape) if axis not in axes]


def _sample_norm(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), 3, 1))
    yield Sample((rng.normal(size=(2, 3)), "nuc"))


@operator(_sample_norm, name="linalg.norm")
def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of vectors along one axis, of matrices in two, or of all elements where no order is
    given.

    Raises what `vector_norm` and `matrix_norm` raise.
    """
    if dim is not None and not isinstance(dim, int) and len(dim) == 1:
        dim = int(dim[0])
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.array.ndim not in (1, 2):
        raise refuse(
            "CORE-0248", operator="norm", shape=list(A.shape), wanted="one or two axes, or a dim"
        )
    as_matrix = A.array.ndim == 2 if dim is None else not isinstance(dim, int)
    if as_matrix:
        return matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


def _sample_cond(rng: np.random.Generator) -> Any:
    for order in (None, 1, "fro", -2):
        yield Sample((rng.normal(size=(3, 3)) + 3 * np.eye(3), order))


@operator(_sample_cond, name="linalg.cond")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number in a matrix norm, 2 where none is named; infinite for singular matrices.

    Raises CORE-0247, CORE-0248, CORE-0252, CORE-0258.
    """
    check_matrices("cond", A)
    if p is None or p in (2, -2):
        values = svdvals(A)
        first, last = values[..., 0], values[..., -1]
        return div(last, first) if p == -2 else div(first, last)
    check_square("cond", A)
    singular = np.linalg.det(A.array) == 0
    if singular.any():
        found = np.where(singular, np.inf, _cond_of_regular(A, p, singular))
        return wrap(found.astype(A.array.dtype))
    return mul(matrix_norm(A, p), matrix_norm(inv(A), p))


def _cond_of_regular(A: Tensor, p: Any, singular: Array) -> Array:
    held = A.array.copy()
    held[singular] = np.eye(held.shape[-1], dtype=held.dtype)
    one = wrap(held)
    return mul(matrix_norm(one, p), matrix_norm(inv(one), p)).array


# -- Powers ---------------------------------------------------------------------------------------


def _sample_matrix_power(rng: np.random.Generator) -> Any:
    for power in (3, 0, -2):
        yield Sample((rng.normal(size=(2, 2)) + 3 * np.eye(2), power))


@operator(_sample_matrix_power, name="linalg.matrix_power")
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The matrices to a whole power; negative ones are powers of the inverse.

    Raises CORE-0248, CORE-0252, CORE-0250, CORE-0258.
    """
    if A.array.ndim < 2:
        raise refuse(
            "CORE-0248", operator="matrix_power", shape=list(A.shape), wanted="two axes or more"
        )
    if A.array.shape[-1] != A.array.shape[-2]:
        raise refuse("CORE-0252", operator="matrix_power", shape=list(A.shape))
    if n == 0:
        one = np.eye(A.array.shape[-1], dtype=A.array.dtype)
        return record(np.broadcast_to(one, A.array.shape).copy(), constant_backward, (A,))
    if n < 0:
        A, n = inv(A), -n
    found: Tensor | None = None
    while True:
        if n & 1:
            found = A if found is None else matmul(found, A)
        n >>= 1
        if not n:
            assert found is not None
            return found
        A = matmul(A, A)


def constant_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (wrap(np.zeros(grad.array.shape, grad.array.dtype)),)


def _sample_matrix_exp(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 2)),))
    yield Sample((3 * rng.normal(size=(2, 3, 3)),))


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_REACH = 5.371920351148152


@operator(_sample_matrix_exp, name="linalg.matrix_exp", torch="matrix_exp")
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of the matrices, by a rational approximation of order 13 and repeated
    squaring.

    Source: Higham (2005), "The scaling and squaring method for the matrix exponential revisited".
    Raises CORE-0248, CORE-0252, CORE-0258.
    """
    if A.array.dtype.itemsize == 2 and A.is_floating_point():
        return matrix_exp(A.to(dtypes.float32)).to(A.dtype)
    check_square("matrix_exp", A)
    size = A.array.shape[-1]
    if not A.array.size:
        return mul(A, 1)
    largest = float(np.abs(A.array).sum(axis=-2).max())
    halvings = 0
    if math.isfinite(largest) and largest > _REACH:
        halvings = math.ceil(math.log2(largest / _REACH))
    x = mul(A, 0.5**halvings) if halvings else A
    one = wrap(np.eye(size, dtype=A.array.dtype))
    # Divided by the first, so that float32 holds them.
    b = [term / _PADE[0] for term in _PADE]
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)

    def combined(c6: float, c4: float, c2: float) -> Tensor:
        return add(add(mul(x6, c6), mul(x4, c4)), mul(x2, c2))

    odd = add(matmul(x6, combined(b[13], b[11], b[9])), combined(b[7], b[5], b[3]))
    odd = matmul(x, add(odd, mul(one, b[1])))
    even = add(matmul(x6, combined(b[12], b[10], b[8])), combined(b[6], b[4], b[2]))
    even = add(even, one)
    found = solved(sub(even, odd), add(even, odd))
    for _ in range(halvings):
        found = matmul(found, found)
    return found


# -- Products -------------------------------------------------------------------------------------


def _sample_multi_dot(rng: np.random.Generator) -> Any:
    yield Sample(([rng.normal(size=(2, 3)), rng.normal(size=(3, 1)), rng.normal(size=(1, 4))],))
    yield Sample(([rng.normal(size=(3,)), rng.normal(size=(3, 2)), rng.normal(size=(2,))],))


@operator(_sample_multi_dot, name="linalg.multi_dot")
def multi_dot(tensors: Any) -> Tensor:
    """The product of two or more matrices, the first and last of which may be vectors, in the
    order of
    multiplication that costs least.

    Raises CORE-0245, CORE-0248, CORE-0210, CORE-0111.
    """
    several = list(tensors)
    if len(several) < 2:
        raise refuse("CORE-0245", operator="multi_dot of fewer than two matrices, or")
    shape: list[int] = []
    if several[0].array.ndim == 1:
        several[0] = unsqueeze(several[0], 0)
    else:
        shape.append(several[0].array.shape[0])
    if several[-1].array.ndim == 1:
        several[-1] = unsqueeze(several[-1], 1)
    else:
        shape.append(several[-1].array.shape[-1])
    for one in several:
        if one.array.ndim != 2:
            raise refuse(
                "CORE-0248", operator="multi_dot", shape=list(one.shape), wanted="two axes"
            )
    return reshape(chained(several, "multi_dot"), shape)


def _sample_vecdot(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3,))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), {"dim": 0})


@operator(_sample_vecdot, name="linalg.vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products along an axis, the others broadcast.

    Raises CORE-0201, CORE-0204.
    """
    return total(mul(x, y), dim, dtype=None if x.is_floating_point() else x.dtype)


def _sample_cross(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(1, 3))))


@operator(_sample_cross, name="linalg.cross")
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product along an axis of three.

    Raises CORE-0201, CORE-0204, CORE-0248, CORE-0111.
    """
    return crossed(input, other, dim)


def _sample_diagonal(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3, 3)),))


@operator(_sample_diagonal, name="linalg.diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of the matrices in the last two axes.

    Raises CORE-0204, CORE-0207.
    """
    return diagonal_of(A, offset, dim1, dim2)


def _sample_tensorinv(rng: np.random.Generator) -> Any:
    yield Sample(((rng.normal(size=(6, 6)) + 4 * np.eye(6)).reshape(2, 3, 6), 2))


@operator(_sample_tensorinv, name="linalg.tensorinv")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of the matrix whose rows are the first `ind` axes together, its columns the
    others.

    Raises CORE-0253, CORE-0252, CORE-0250.
    """
    if ind <= 0:
        raise refuse(
            "CORE-0253", operator="tensorinv", argument="ind", value=ind, wanted="1 or more"
        )
    first, rest = A.array.shape[:ind], A.array.shape[ind:]
    rows = math.prod(first)
    if rows != math.prod(rest):
        raise refuse("CORE-0252", operator="tensorinv", shape=list(A.shape))
    return reshape(inv(reshape(A, (rows, rows))), (*rest, *first))


def _sample_tensorsolve(rng: np.random.Generator) -> Any:
    whole = (rng.normal(size=(6, 6)) + 4 * np.eye(6)).reshape(2, 3, 6)
    yield Sample((whole, rng.normal(size=(2, 3))))


@operator(_sample_tensorsolve, name="linalg.tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with `tensordot(A, X, X.ndim) = B`; the axes `dims` of A are moved to its end first.

    Raises CORE-0204, CORE-0252, CORE-0250.
    """
    if dims is not None:
        moved = [axis_of(int(one), A.array.ndim, "tensorsolve") for one in dims]
        A = permute(A, [*(axis for axis in range(A.array.ndim) if axis not in moved), *moved])
    shape = A.array.shape[B.array.ndim :]
    rows = math.prod(B.array.shape)
    if math.prod(shape) != rows:
        raise refuse("CORE-0252", operator="tensorsolve", shape=list(A.shape))
    return reshape(solved(reshape(A, (rows, rows)), reshape(B, (rows, 1))), shape)
