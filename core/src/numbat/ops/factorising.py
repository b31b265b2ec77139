"""Factorisations of matrices and what is solved by them: LAPACK's through numpy, gradients as
torch's.

Every function takes batches of matrices in the last two axes, float32 or float64 (else CORE-0258).
Source of the gradients: PyTorch, `torch/csrc/autograd/FunctionsManual.cpp`; Giles (2008),
"Collected
matrix derivative results for forward and reverse mode algorithmic differentiation".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numbat.autograd.tape import Node, record, record_many
from numbat.ops.division import div
from numbat.ops.indexing import basic_view
from numbat.ops.joining import cat
from numbat.ops.matrix import matmul
from numbat.ops.pointwise import add, mul, neg, sub
from numbat.ops.rearranging import diag_embed, diagonal, tril, triu
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import unsqueeze
from numbat.ops.viewing import reshape, transpose
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "pinverse", "slogdet",
]  # fmt: skip

_ALL = slice(None)


class SLogDet(NamedTuple):
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, smallest first, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """Left vectors as columns, singular values, largest first, right vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QR(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class LeastSquares(NamedTuple):
    """A solution of least squares, the sums of squares left over, the rank, the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# -- Checks ---------------------------------------------------------------------------------------


def check_matrices(operator: str, *tensors: Tensor) -> None:
    """Refuses tensors that hold no matrices (CORE-0248) or are not float32 or float64
    (CORE-0258)."""
    for one in tensors:
        if one.array.ndim < 2:
            raise refuse(
                "CORE-0248", operator=operator, shape=list(one.shape), wanted="two axes or more"
            )
        check_factorised(operator, one)


def check_factorised(operator: str, one: Tensor) -> None:
    if one.array.dtype.char not in "fd":
        raise refuse("CORE-0258", operator=operator, dtype=one.dtype.name)


def check_square(operator: str, *tensors: Tensor) -> None:
    """As `check_matrices`, and CORE-0252 where they are not square."""
    check_matrices(operator, *tensors)
    for one in tensors:
        if one.array.shape[-1] != one.array.shape[-2]:
            raise refuse("CORE-0252", operator=operator, shape=list(one.shape))


def _same_type(operator: str, first: Tensor, second: Tensor) -> None:
    if first.array.dtype != second.array.dtype:
        raise refuse(
            "CORE-0111", operator=operator, first=first.dtype.name, second=second.dtype.name
        )


def _factorised(operator: str, fault: str, function: Callable[[Array], Any], array: Array) -> Any:
    """`function` of the matrices.

    Raises CORE-0250 with the first matrix that has no such factorisation.
    """
    try:
        return function(array)
    except np.linalg.LinAlgError:
        flat = array.reshape(-1, *array.shape[-2:])
        for number, one in enumerate(flat):
            try:
                function(one)
            except np.linalg.LinAlgError:
                raise refuse("CORE-0250", operator=operator, batch=number, fault=fault) from None
        raise


def mT(tensor: Tensor) -> Tensor:
    """The matrices transposed."""
    return transpose(tensor, -2, -1)


def _spd(rng: np.random.Generator, *shape: int) -> Any:
    """Symmetric positive definite matrices, well apart from singular ones."""
    half = rng.normal(size=shape)
    return half @ half.swapaxes(-1, -2) + 2 * np.eye(shape[-1])


def _regular(rng: np.random.Generator, *shape: int) -> Any:
    """Square matrices far from singular ones."""
    return rng.normal(size=shape) + 3 * np.eye(shape[-1])


# -- Triangles and Cholesky -----------------------------------------------------------------------


def _sample_solve_triangular(rng: np.random.Generator) -> Any:
    matrices = _regular(rng, 2, 3, 3)
    yield Sample((matrices, rng.normal(size=(2, 3, 2))), {"upper": False})
    yield Sample((matrices, rng.normal(size=(3, 1))), {"upper": True})
    yield Sample((matrices[0], rng.normal(size=(2, 3))), {"upper": True, "left": False})
    yield Sample((matrices[0], rng.normal(size=(3, 2))), {"upper": False, "unitriangular": True})


@operator(_sample_solve_triangular, name="linalg.solve_triangular")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with `A @ X = B` (or `X @ A = B`), of A one triangle alone being read.

    Raises CORE-0248, CORE-0252, CORE-0258, CORE-0111, CORE-0210, and CORE-0250 for a zero on the
    diagonal.
    """
    check_square("solve_triangular", A)
    check_matrices("solve_triangular", B)
    _same_type("solve_triangular", A, B)
    if not left:
        return mT(solve_triangular(mT(A), mT(B), upper=not upper, unitriangular=unitriangular))
    if A.array.shape[-1] != B.array.shape[-2]:
        raise refuse(
            "CORE-0210", operator="solve_triangular", first=list(A.shape), second=list(B.shape)
        )
    array = _triangle(A.array, upper, unitriangular)
    diagonal_of = array.diagonal(0, -2, -1)
    if (diagonal_of == 0).any():
        batch = int(np.argmax((diagonal_of == 0).any(-1).reshape(-1)))
        raise refuse("CORE-0250", operator="solve_triangular", batch=batch, fault="singular")
    found = _substituted(array, B.array, upper)
    return record(
        found, solve_triangular_backward, (A, B), (A,), (upper, unitriangular), keep_result=True
    )


def _triangle(array: Array, upper: bool, unit: bool) -> Array:
    held = np.triu(array) if upper else np.tril(array)
    if unit:
        places = np.arange(array.shape[-1])
        held[..., places, places] = 1
    return held


def _substituted(a: Array, b: Array, upper: bool) -> Array:
    """By halves: what one half solves is taken from the other's right side by a matrix product."""
    size = a.shape[-1]
    if size <= 24:
        return np.linalg.solve(a, b)
    half = size // 2
    low, high = slice(half), slice(half, None)
    first, second = (high, low) if upper else (low, high)
    x = _substituted(a[..., first, first], b[..., first, :], upper)
    rest = b[..., second, :] - a[..., second, first] @ x
    y = _substituted(a[..., second, second], rest, upper)
    return np.concatenate((y, x) if upper else (x, y), axis=-2)


def solve_triangular_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    (a,) = node.unpack()
    upper, unit = node.values
    to_b = solve_triangular(mT(a), grad, upper=not upper, unitriangular=unit)
    to_a = None
    if node.needs[0]:
        whole = neg(matmul(to_b, mT(node.unpack_result())))
        to_a = triu(whole, 1 if unit else 0) if upper else tril(whole, -1 if unit else 0)
    return to_a, to_b if node.needs[1] else None


def _sample_cholesky(rng: np.random.Generator) -> Any:
    yield Sample((_spd(rng, 3, 3),))
    yield Sample((_spd(rng, 2, 2, 2),), {"upper": True})


# Of a triangle that alone is read no single element can be moved without its twin: torch's gradient
# is that of the symmetric matrix. `_symmetric` below has it checked against differences.
@operator(_sample_cholesky, name="linalg.cholesky", differentiable=False)
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangle L with `A = L @ L.mT` (or the upper one), of A one triangle being read.

    Raises CORE-0248, CORE-0252, CORE-0258, and CORE-0250 where A is not positive definite.
    """
    check_square("cholesky", A)
    if upper:
        return mT(cholesky(mT(A)))
    found = _factorised("cholesky", "not positive definite", np.linalg.cholesky, A.array)
    return record(found, cholesky_backward, (A,), keep_result=True)


def cholesky_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    low = node.unpack_result()
    inner = tril(matmul(mT(low), grad))
    inner = add(inner, mT(tril(inner, -1)))
    right = solve_triangular(low, inner, upper=False, left=False)
    return (mul(solve_triangular(mT(low), right, upper=True), 0.5),)


def _sample_cholesky_solve(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)), np.linalg.cholesky(_spd(rng, 3, 3))))
    yield Sample((rng.normal(size=(3, 2)), np.linalg.cholesky(_spd(rng, 3, 3)).T), {"upper": True})


@operator(_sample_cholesky_solve)
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with `(L @ L.mT) @ X = B` (or `(U.mT @ U) @ X = B`), from the Cholesky factor.

    Raises what `linalg.solve_triangular` raises.
    """
    if upper:
        half = solve_triangular(mT(L), B, upper=False)
        return solve_triangular(L, half, upper=True)
    half = solve_triangular(L, B, upper=False)
    return solve_triangular(mT(L), half, upper=True)


def _sample_cholesky_inverse(rng: np.random.Generator) -> Any:
    yield Sample((np.linalg.cholesky(_spd(rng, 3, 3)),))


@operator(_sample_cholesky_inverse)
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix of which L (or U) is the Cholesky factor."""
    check_square("cholesky_inverse", L)
    size = L.array.shape[-1]
    return cholesky_solve(wrap(np.eye(size, dtype=L.array.dtype)), L, upper)


# -- Solutions and determinants -------------------------------------------------------------------


def _sample_solve(rng: np.random.Generator) -> Any:
    matrices = _regular(rng, 2, 3, 3)
    yield Sample((matrices, rng.normal(size=(2, 3, 2))))
    yield Sample((matrices, rng.normal(size=(2, 3))))
    yield Sample((matrices[0], rng.normal(size=(3,))))
    yield Sample((matrices[0], rng.normal(size=(2, 3))), {"left": False})


def _is_vector(A: Tensor, B: Tensor) -> bool:
    return B.array.ndim == 1 or (
        A.array.ndim - 1 == B.array.ndim and B.array.shape == A.array.shape[:-1]
    )


@operator(_sample_solve, name="linalg.solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with `A @ X = B` (or `X @ A = B`); B may be a vector, or one for each matrix.

    Raises CORE-0248, CORE-0252, CORE-0258, CORE-0111, CORE-0210, CORE-0201, and CORE-0250 where a
    matrix
    is singular.
    """
    check_square("solve", A)
    check_factorised("solve", B)
    _same_type("solve", A, B)
    if not B.array.ndim:
        raise refuse("CORE-0248", operator="solve", shape=[], wanted="one axis or more")
    if _is_vector(A, B):
        return reshape(solved(A, unsqueeze(B, -1)), _vector_shape(A, B))
    if not left:
        return mT(solved(mT(A), mT(B)))
    return solved(A, B)


def _vector_shape(A: Tensor, B: Tensor) -> tuple[int, ...]:
    return A.array.shape[:-1] if B.array.ndim < A.array.ndim - 1 else B.array.shape


def solved(A: Tensor, B: Tensor) -> Tensor:
    """X with `A @ X = B`, matrices both."""
    from numbat.ops.broadcasting import check_broadcast

    if A.array.shape[-1] != B.array.shape[-2]:
        raise refuse("CORE-0210", operator="solve", first=list(A.shape), second=list(B.shape))
    check_broadcast("solve", A.array.shape[:-2], B.array.shape[:-2])
    found = _factorised(
        "solve", "singular", lambda array: _solved_array(array, B.array, A.array), A.array
    )
    return record(found, solve_backward, (A, B), (A,), keep_result=True)


def _solved_array(array: Array, right: Array, whole: Array) -> Array:
    # While the faulty matrix is looked for, one matrix at a time has any right side.
    if array.shape != whole.shape:
        right = np.zeros((array.shape[-1], 1), array.dtype)
    return np.linalg.solve(array, right)


def solve_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    (a,) = node.unpack()
    to_b = solved(mT(a), grad)
    to_a = neg(matmul(to_b, mT(node.unpack_result()))) if node.needs[0] else None
    return to_a, to_b if node.needs[1] else None


def _sample_regular(rng: np.random.Generator) -> Any:
    yield Sample((_regular(rng, 3, 3),))
    yield Sample((_regular(rng, 2, 2, 2),))


@operator(_sample_regular, name="linalg.inv")
def inv(A: Tensor) -> Tensor:
    """The inverse.

    Raises CORE-0248, CORE-0252, CORE-0258, and CORE-0250 where a matrix is singular.
    """
    check_square("inv", A)
    found = _factorised("inv", "singular", np.linalg.inv, A.array)
    return record(found, inv_backward, (A,), keep_result=True)


def inv_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    turned = mT(node.unpack_result())
    return (neg(matmul(turned, matmul(grad, turned))),)


@operator(_sample_regular)
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv` under its old name."""
    return inv(input)


def _sample_det(rng: np.random.Generator) -> Any:
    yield Sample((_regular(rng, 3, 3),))
    yield Sample((rng.normal(size=(2, 2, 2)),))


@operator(_sample_det, name="linalg.det")
def det(A: Tensor) -> Tensor:
    """The determinant.

    Raises CORE-0248, CORE-0252, CORE-0258.
    """
    check_square("det", A)
    return record(np.linalg.det(A.array), det_backward, (A,), (A,), keep_result=True)


def det_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (a,) = node.unpack()
    value = node.unpack_result()
    scale = np.abs(a.array).max(axis=(-2, -1), initial=1) ** a.array.shape[-1]
    if (np.abs(value.array) > scale * 1e-5).all():
        factor = reshape(mul(grad, value), (*grad.array.shape, 1, 1))
        return (mul(factor, mT(inv(a))),)
    if grad.requires_grad or (a.requires_grad and _recording()):
        if (value.array == 0).any():
            raise refuse("CORE-0312", operator="linalg.det of a singular matrix")
        factor = reshape(mul(grad, value), (*grad.array.shape, 1, 1))
        return (mul(factor, mT(inv(a))),)
    return (wrap(np.asarray(grad.array)[..., None, None] * _cofactors(a.array)),)


def _recording() -> bool:
    from numbat.autograd.mode import MODE

    return MODE.recording


def _cofactors(array: Array) -> Array:
    """The matrices of cofactors, of singular matrices too: products of the other singular
    values."""
    u, s, vh = np.linalg.svd(array)
    size = array.shape[-1]
    others = np.ones_like(s)
    for at in range(size):
        others[..., at] = np.delete(s, at, axis=-1).prod(axis=-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(sign[..., None, None] * ((u * others[..., None, :]) @ vh))


@operator(_sample_det, torch="linalg.det", name="det")
def _det(input: Tensor) -> Tensor:
    """`linalg.det` under its short name."""
    return det(input)


@operator(_sample_det, name="linalg.slogdet")
def slogdet(A: Tensor) -> SLogDet:
    """The sign of the determinant and the logarithm of its size, which overflows later than it
    does.

    Raises CORE-0248, CORE-0252, CORE-0258.
    """
    check_square("slogdet", A)
    sign, size = np.linalg.slogdet(A.array)
    # The sign's gradient is zero wherever there is one.
    return SLogDet(
        record(np.asarray(sign), sign_backward, (A,), values=A.array.shape),
        record(size, slogdet_backward, (A,), (A,)),
    )


def sign_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (wrap(np.zeros(node.values, grad.array.dtype)),)


def slogdet_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (a,) = node.unpack()
    return (mul(reshape(grad, (*grad.array.shape, 1, 1)), mT(inv(a))),)


@operator(_sample_det, torch="linalg.slogdet", name="slogdet")
def _slogdet(input: Tensor) -> SLogDet:
    """`linalg.slogdet` under its short name."""
    return slogdet(input)


def _sample_logdet(rng: np.random.Generator) -> Any:
    yield Sample((_spd(rng, 3, 3),))
    yield Sample((_spd(rng, 2, 2, 2),))


@operator(_sample_logdet)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative.

    Raises CORE-0248, CORE-0252, CORE-0258.
    """
    sign, size = slogdet(input)
    negative = sign.array < 0
    if not negative.any():
        return size
    from numbat.ops.selecting import masked_fill

    return masked_fill(size, wrap(negative), float("nan"))


# -- Eigenvalues and singular values --------------------------------------------------------------


def _converged(operator: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except np.linalg.LinAlgError:
        raise refuse("CORE-0251", operator=operator) from None


def _differences(values: Tensor) -> Tensor:
    """values[j] - values[i], with 1 on the diagonal."""
    apart = sub(unsqueeze(values, -2), unsqueeze(values, -1))
    return add(apart, wrap(np.eye(values.array.shape[-1], dtype=values.array.dtype)))


def _sample_symmetric_values(rng: np.random.Generator) -> Any:
    half = rng.normal(size=(3, 3))
    yield Sample((half + half.T,))
    yield Sample((half,), {"UPLO": "U"})


def _one_triangle(A: Tensor, UPLO: str, operator: str) -> Tensor:
    """The symmetric matrices of which one triangle is read."""
    if UPLO not in ("L", "U"):
        raise refuse(
            "CORE-0247", operator=operator, argument="UPLO", value=str(UPLO), known=["L", "U"]
        )
    check_square(operator, A)
    return A


@operator(_sample_symmetric_values, name="linalg.eigvalsh", differentiable=False)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, smallest first, of which one triangle is read.

    Raises CORE-0247, CORE-0248, CORE-0252, CORE-0258, CORE-0251.
    """
    _one_triangle(A, UPLO, "eigvalsh")
    if A.requires_grad:
        return eigh(A, UPLO).eigenvalues
    return wrap(_converged("eigvalsh", lambda: np.linalg.eigvalsh(A.array, UPLO)))  # type: ignore[call-overload]


def _sample_eigh(rng: np.random.Generator) -> Any:
    half = rng.normal(size=(3, 3))
    yield Sample((half + half.T,))


@operator(_sample_eigh, name="linalg.eigh", differentiable=False)
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """Eigenvalues, smallest first, and eigenvectors of symmetric matrices, of which one triangle
    is read.

    A gradient is that of the symmetric matrix, and exists where no two eigenvalues are equal.
    Raises CORE-0247, CORE-0248, CORE-0252, CORE-0258, CORE-0251.
    """
    _one_triangle(A, UPLO, "eigh")
    found = _converged("eigh", lambda: np.linalg.eigh(A.array, UPLO))  # type: ignore[call-overload]
    values, vectors = record_many(found, eigh_backward, (A,))
    _keep(values, found)
    return Eigen(values, vectors)


def _keep(first: Tensor, arrays: Any) -> None:
    """Hands the results of an operator with several to its node, without a cycle through their
    tensors."""
    if first.node is not None:
        whole = first.node.sources[0]
        assert isinstance(whole, Node)
        whole.values = tuple(arrays)


def _again(node: Node, index: int) -> Tensor:
    """A result of an operator with several, with its history, for second derivatives."""
    array = node.values[index]
    return record_part(node, array, index)


def record_part(node: Node, array: Array, index: int) -> Tensor:
    from numbat.autograd.tape import _part_backward

    out = wrap(array)
    out.node = Node(_part_backward, (node,), array.shape, array.dtype, (), index)
    out.wants_grad = True
    return out


def eigh_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor]:
    to_values, to_vectors = grads
    vectors = _again(node, 1)
    if to_vectors is None:
        assert to_values is not None
        return (matmul(mul(vectors, unsqueeze(to_values, -2)), mT(vectors)),)
    inner = div(matmul(mT(vectors), to_vectors), _differences(_again(node, 0)))
    inner = sub(inner, diag_embed(diagonal(inner, 0, -2, -1)))
    if to_values is not None:
        inner = add(inner, diag_embed(to_values))
    # The gradient of a symmetric matrix is symmetric.
    inner = mul(add(inner, mT(inner)), 0.5)
    return (matmul(vectors, matmul(inner, mT(vectors))),)


def _sample_svdvals(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)),))
    yield Sample((rng.normal(size=(2, 2, 3)),))


@operator(_sample_svdvals, name="linalg.svdvals")
def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
    """The singular values, largest first.

    Raises CORE-0248, CORE-0258, CORE-0251.
    """
    check_matrices("svdvals", A)
    if A.requires_grad:
        return svd(A, full_matrices=False).S
    return wrap(_converged("svdvals", lambda: np.linalg.svd(A.array, compute_uv=False)))


@operator(_sample_svdvals, name="linalg.svd", differentiable=False)
def svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """`A = U @ diag(S) @ Vh`, singular values largest first.

    A gradient exists where no two singular values are equal and, for the vectors, none is zero.
    Raises CORE-0248, CORE-0258, CORE-0251.
    """
    check_matrices("svd", A)
    found = _converged("svd", lambda: np.linalg.svd(A.array, full_matrices=full_matrices))
    results = record_many(found, svd_backward, (A,))
    _keep(results[0], found)
    return SVD(*results)


def _skew(tensor: Tensor) -> Tensor:
    return sub(tensor, mT(tensor))


def svd_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor]:
    to_u, to_s, to_vh = grads
    k = node.values[1].shape[-1]
    u = basic_view(_again(node, 0), (..., slice(k)))
    s = _again(node, 1)
    vh = basic_view(_again(node, 2), (..., slice(k), _ALL))
    rows, columns = u.array.shape[-2], vh.array.shape[-1]
    if to_u is None and to_vh is None:
        assert to_s is not None
        return (matmul(mul(u, unsqueeze(to_s, -2)), vh),)
    inner: Tensor | None = None if to_s is None else diag_embed(to_s)
    apart = _differences(mul(s, s))
    if to_u is not None:
        to_u = basic_view(to_u, (..., slice(k)))
        part = mul(div(_skew(matmul(mT(u), to_u)), apart), unsqueeze(s, -2))
        inner = part if inner is None else add(inner, part)
    if to_vh is not None:
        to_vh = basic_view(to_vh, (..., slice(k), _ALL))
        part = mul(unsqueeze(s, -1), div(_skew(matmul(vh, mT(to_vh))), apart))
        inner = part if inner is None else add(inner, part)
    assert inner is not None
    whole = matmul(matmul(u, inner), vh)
    if rows > k and to_u is not None:
        outside = div(to_u, unsqueeze(s, -2))
        outside = sub(outside, matmul(u, matmul(mT(u), outside)))
        whole = add(whole, matmul(outside, vh))
    if columns > k and to_vh is not None:
        outside = div(to_vh, unsqueeze(s, -1))
        outside = sub(outside, matmul(matmul(outside, mT(vh)), vh))
        whole = add(whole, matmul(u, outside))
    return (whole,)


# -- Orthogonal factors, least squares ------------------------------------------------------------


def _sample_qr(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)),))
    yield Sample((rng.normal(size=(2, 2, 3)),))
    yield Sample((rng.normal(size=(3, 3)),), {"mode": "complete"})


@operator(_sample_qr, name="linalg.qr")
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """`A = Q @ R` with orthonormal columns and an upper triangle; mode 'r' leaves Q empty.

    A gradient exists in mode 'reduced', and in 'complete' where A has no more rows than columns.
    Raises CORE-0247, CORE-0248, CORE-0258, and CORE-0312 in a backward pass of another mode.
    """
    check_matrices("qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise refuse(
            "CORE-0247", operator="qr", argument="mode", value=str(mode),
            known=["reduced", "complete", "r"],
        )  # fmt: skip
    if mode == "r":
        alone = np.asarray(np.linalg.qr(A.array, "r"))
        return QR(wrap(np.empty(0, A.array.dtype)), record(alone, qr_r_backward, (A,)))
    rows, columns = A.array.shape[-2:]
    if rows < columns:
        # The gradient of the wide part goes by products; the square part is factorised.
        square = basic_view(A, (..., slice(rows)))
        q, r = _square_qr(square, "reduced")
        rest = matmul(mT(q), basic_view(A, (..., slice(rows, None))))
        return QR(q, cat([r, rest], -1))
    return QR(*_square_qr(A, mode))


def _square_qr(A: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    found = np.linalg.qr(A.array, mode)
    arrays = (np.asarray(found[0]), np.asarray(found[1]))
    q, r = record_many(arrays, qr_backward, (A,))
    _keep(q, arrays)
    return q, r


def qr_r_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    raise refuse("CORE-0312", operator="linalg.qr in mode 'r'")


def qr_backward(node: Node, grads: list[Tensor | None]) -> tuple[Tensor]:
    to_q, to_r = grads
    q, r = _again(node, 0), _again(node, 1)
    if q.array.shape[-1] != r.array.shape[-1]:
        raise refuse("CORE-0312", operator="linalg.qr in mode 'complete' of a tall matrix")
    inner: Tensor | None = None if to_r is None else matmul(to_r, mT(r))
    if to_q is not None:
        part = neg(matmul(mT(q), to_q))
        inner = part if inner is None else add(inner, part)
    assert inner is not None
    upper = triu(inner)
    even = add(upper, mT(triu(inner, 1)))
    whole = matmul(q, even)
    if to_q is not None:
        whole = add(whole, to_q)
    return (solve_triangular(mT(r), whole, upper=False, left=False),)


def _sample_pinv(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)),))
    yield Sample((rng.normal(size=(2, 2, 3)),))


def _cutoff(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The absolute and relative bounds below which a singular value counts as zero."""
    if rtol is None:
        rtol = 0.0
        if atol is None or (isinstance(atol, (int, float)) and atol == 0):
            rtol = max(A.array.shape[-2:]) * float(np.finfo(A.array.dtype).eps)
        elif isinstance(atol, Tensor):
            default = max(A.array.shape[-2:]) * float(np.finfo(A.array.dtype).eps)
            rtol = np.where(atol.array > 0, 0.0, default)
    atol = 0.0 if atol is None else atol
    return (
        atol.array if isinstance(atol, Tensor) else atol,
        rtol.array if isinstance(rtol, Tensor) else rtol,
    )


def _bound(s: Array, atol: Any, rtol: Any) -> Array:
    largest = s.max(axis=-1, initial=0)
    return np.asarray(np.maximum(atol, np.asarray(rtol) * largest))[..., None]


@operator(_sample_pinv, name="linalg.pinv")
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse: singular values up to the larger of `atol` and `rtol` (or `rcond`) times
    the largest
    count as
    zero.

    Raises CORE-0248, CORE-0258, CORE-0251.
    """
    check_matrices("pinv", A)
    rtol = rcond if rtol is None else rtol
    if not A.array.size:
        return mT(mul(A, 0))
    atol, rtol = _cutoff(A, atol, rtol)
    if hermitian:
        values, vectors = _converged("pinv", lambda: np.linalg.eigh(A.array))
        sizes = np.abs(values)
        kept = sizes > _bound(sizes, atol, rtol)
        over = np.where(kept, 1 / np.where(kept, values, 1), 0).astype(A.array.dtype)
        found = (vectors * over[..., None, :]) @ vectors.swapaxes(-1, -2)
    else:
        u, s, vh = _converged("pinv", lambda: np.linalg.svd(A.array, full_matrices=False))
        kept = s > _bound(s, atol, rtol)
        over = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(A.array.dtype)
        found = (vh.swapaxes(-1, -2) * over[..., None, :]) @ u.swapaxes(-1, -2)
    return record(found, pinv_backward, (A,), (A,), keep_result=True)


def pinv_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    # Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares
    # problems whose variables separate".
    (a,) = node.unpack()
    p = node.unpack_result()
    turned, back = mT(p), mT(grad)
    if a.array.shape[-2] <= a.array.shape[-1]:
        k = matmul(back, p)
        kp = matmul(k, turned)
        first = sub(kp, mT(matmul(p, k)))
        second = matmul(matmul(turned, p), sub(back, matmul(k, a)))
        return (add(sub(first, matmul(a, matmul(p, kp))), second),)
    k = matmul(p, back)
    pk = matmul(turned, k)
    first = sub(pk, mT(matmul(k, p)))
    second = matmul(sub(back, matmul(a, k)), matmul(p, turned))
    return (add(sub(first, matmul(matmul(pk, p), a)), second),)


@operator(_sample_pinv)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv` with its old bound."""
    return pinv(input, rtol=rcond)


@operator(_sample_pinv, name="linalg.matrix_rank", differentiable=False)
def matrix_rank(
    A: Tensor, *, atol: Any = None, rtol: Any = None, tol: Any = None, hermitian: bool = False
) -> Tensor:
    """How many singular values are above the larger of `atol` and `rtol` times the largest.

    Raises CORE-0248, CORE-0258, CORE-0251.
    """
    check_matrices("matrix_rank", A)
    atol = tol if tol is not None else atol
    bounds = _cutoff(A, atol, 0.0 if tol is not None else rtol)
    if hermitian:
        s = np.abs(_converged("matrix_rank", lambda: np.linalg.eigvalsh(A.array)))
    else:
        s = _converged("matrix_rank", lambda: np.linalg.svd(A.array, compute_uv=False))
    return wrap(np.count_nonzero(s > _bound(s, *bounds), axis=-1))


def _sample_lstsq(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(4, 2)), rng.normal(size=(4, 2))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 1))))


@operator(_sample_lstsq, name="linalg.lstsq")
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """X with the least sum of squares of `A @ X - B`, the smallest such X where there are several.

    `residuals` are the sums of squares where A has full rank and more rows than columns and the
    driver is not gelsy (the default), else empty, as PyTorch's; `singular_values` are given for the
    drivers gelsd and gelss alone.
    Raises CORE-0248, CORE-0258, CORE-0111, CORE-0210, CORE-0247, CORE-0251.
    """
    known = ["gels", "gelsy", "gelsd", "gelss"]
    if driver is not None and driver not in known:
        raise refuse(
            "CORE-0247", operator="lstsq", argument="driver", value=str(driver), known=known
        )
    check_matrices("lstsq", A)
    _same_type("lstsq", A, B)
    vector = _is_vector(A, B)
    right = unsqueeze(B, -1) if vector else B
    if A.array.shape[-2] != right.array.shape[-2]:
        raise refuse("CORE-0210", operator="lstsq", first=list(A.shape), second=list(B.shape))
    rows, columns = A.array.shape[-2:]
    bound = max(rows, columns) * float(np.finfo(A.array.dtype).eps) if rcond is None else rcond
    solution = matmul(pinv(A, rtol=bound), right)
    s = _converged("lstsq", lambda: np.linalg.svd(A.array, compute_uv=False))
    rank = np.count_nonzero(s > _bound(s, 0.0, bound), axis=-1)
    residuals = wrap(np.empty(0, A.array.dtype))
    if driver not in (None, "gelsy") and rows > columns and (rank == columns).all():
        from numbat.ops.reductions import sum as total

        left_over = sub(matmul(A, solution), right)
        residuals = total(mul(left_over, left_over), -2)
    shown = s if driver in ("gelsd", "gelss") else np.empty(0, A.array.dtype)
    ranks = np.empty(0, np.int64) if driver == "gels" else rank
    if vector:
        solution = reshape(solution, solution.array.shape[:-1])
    return LeastSquares(solution, residuals, wrap(ranks), wrap(shown))


# -- What of them differences can check -----------------------------------------------------------


def _symmetric(A: Tensor) -> Tensor:
    return mul(add(A, mT(A)), 0.5)


@operator(_sample_cholesky, name="linalg.cholesky.of_symmetric", torch=None, method=False)
def _cholesky_of_symmetric(A: Tensor, *, upper: bool = False) -> Tensor:
    """`linalg.cholesky` of the symmetric part, of which each element counts."""
    return cholesky(_symmetric(A), upper=upper)


@operator(_sample_eigh, name="linalg.eigh.of_symmetric", torch=None, method=False)
def _eigh_of_symmetric(A: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, and squares of the eigenvectors of the symmetric part, which have one sign."""
    values, vectors = eigh(_symmetric(A))
    return values, mul(vectors, vectors)


@operator(_sample_svdvals, name="linalg.svd.of_one_sign", torch=None, method=False)
def _svd_of_one_sign(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`linalg.svd` with the vectors squared, which have one sign."""
    u, s, vh = svd(A, full_matrices=False)
    return mul(u, u), s, mul(vh, vh)
