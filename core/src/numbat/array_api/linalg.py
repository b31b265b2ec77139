"""The extension `linalg` of the array API standard."""

from __future__ import annotations

from typing import Any

import numbat.ops as ops
from numbat.array_api.laying import matmul, matrix_transpose, tensordot, vecdot
from numbat.array_api.typing import together
from numbat.ops import linalg as own
from numbat.ops.linalg import eigh, eigvalsh, inv, matrix_power, qr, slogdet, svdvals
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor; see `numbat.linalg.cholesky`."""
    return own.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product along an axis of three."""
    return own.cross(*together(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return own.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonals of the matrices in the last two axes."""
    return own.diagonal(x, offset=offset)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of the matrices in the last two axes."""
    return own.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above `rtol` times the largest."""
    return own.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another."""
    return ops.outer(*together(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse."""
    return own.pinv(x, rtol=rtol)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X with `x1 @ X = x2`; only a tensor of one axis is a vector."""
    first, second = together(x1, x2)
    if second.ndim == 1:
        return own.solve(first, second)
    from numbat.ops.factorising import check_square, solved

    check_square("solve", first)
    return solved(first, second)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> own.SVD:
    """The singular values and their vectors."""
    return own.svd(x, full_matrices)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of the matrices in the last two axes."""
    found = diagonal(x, offset=offset)
    return ops.sum(found, -1, dtype=None if dtype is None else as_dtype(dtype))


def vector_norm(
    x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of the elements over axes, or of all."""
    return own.vector_norm(x, ord, axis, keepdims)
