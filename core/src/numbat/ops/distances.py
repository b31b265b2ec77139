"""Lengths of vectors and distances between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.mapping import weighted, widened
from numbat.ops.reductions import axes_of, spread
from numbat.ops.registry import Sample, operator
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "cdist", "cosine_similarity", "pairwise_distance", "pdist",
]  # fmt: skip


def lengths(input: Tensor, p: float, dim: Any, *, keepdim: bool = False) -> Tensor:
    """The p-norms of the vectors along one axis or several; at length zero the gradient is zero."""
    axes = axes_of(dim, input.array.ndim, "norm")
    array = _norms(widened(input.array), p, axes)
    if not keepdim:
        array = array.squeeze(axes)
    values = (float(p), axes)
    out = np.asarray(array).astype(input.array.dtype, copy=False)
    return record(out, lengths_backward, (input,), (input,), values, keep_result=True)


def _norms(x: Array, p: float, axes: tuple[int, ...]) -> Any:
    """The p-norms with the axes kept."""
    if p == 2:
        return np.sqrt((x * x).sum(axis=axes, keepdims=True))
    size = np.abs(x)
    if p == 1:
        return np.asarray(size.sum(axis=axes, keepdims=True))
    if p == 0:
        return (size != 0).sum(axis=axes, keepdims=True).astype(x.dtype)
    if math.isinf(p):
        return np.asarray(
            size.max(axis=axes, keepdims=True) if p > 0 else size.min(axis=axes, keepdims=True)
        )
    return (size**p).sum(axis=axes, keepdims=True) ** x.dtype.type(1 / p)


def lengths_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    p, axes = node.values
    shape = x.array.shape
    grad = spread(grad, shape, axes)
    if p == 0:
        return (weighted(grad, np.zeros(shape, bool)),)
    sign = np.sign(x.array)
    if p == 1:
        return (weighted(grad, sign),)
    norm = spread(node.unpack_result(), shape, axes)
    there = norm.array != 0
    if p == 2:
        return (weighted(grad * x / _safe(norm, there), there),)
    if math.isinf(p):
        chosen = np.abs(x.array) == norm.array
        count = chosen.sum(axis=axes, keepdims=True)
        return (weighted(grad, sign * chosen / count),)
    if p < 2:
        there = there & (x.array != 0)
        safe = _safe(x, there)
        return (
            weighted(grad, sign)
            * weighted(safe.abs() ** (p - 1) / _safe(norm, there) ** (p - 1), there),
        )
    return (weighted(grad * x * x.abs() ** (p - 2) / _safe(norm, there) ** (p - 1), there),)


def _safe(input: Tensor, there: Array) -> Tensor:
    """The tensor with one where a mask does not hold, so that dividing by it stays finite."""
    return weighted(input, there) + wrap((~there).astype(input.array.dtype))


def _sample_pairs(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(1, 3)), 3.0))


@operator(_sample_pairs, torch="nn.functional.pairwise_distance", method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis."""
    return lengths(x1 - x2 + eps, p, -1, keepdim=keepdim)


def _sample_cosine(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 1))), {"dim": 0})


@operator(_sample_cosine, torch="nn.functional.cosine_similarity", method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; their lengths count as `eps` at least.

    Raises CORE-0204 for an axis that is not there, CORE-0201 where the shapes do not broadcast.
    """
    from numbat.ops.broadcasting import check_broadcast
    from numbat.tensors.promotion import operands

    x1, x2 = operands(floating(x1), floating(x2))
    shape = check_broadcast("cosine_similarity", x1.array.shape, x2.array.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    first = lengths(x1, 2, dim, keepdim=True).clamp_min(eps)
    second = lengths(x2, 2, dim, keepdim=True).clamp_min(eps)
    result: Tensor = ((x1 / first) * (x2 / second)).sum(dim)
    return result


def _sample_cdist(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(4, 3))))
    yield Sample((rng.normal(size=(2, 2, 3)), rng.normal(size=(1, 3, 3)), 3.0))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), 1.0))


@operator(_sample_cdist, method=False)
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:  # fmt: skip
    """The p-norm distances between all rows of two collections.

    Args:
        x1: (..., P, M).
        x2: (..., R, M); leading axes broadcast.
        p: the norm, from 0 to infinity.
        compute_mode: how PyTorch chooses its method; the result here is the exact one.

    Gives (..., P, R). Raises CORE-0433 where the vectors differ in length, CORE-0431 for a negative
    p.
    """
    if p < 0:
        raise refuse(
            "CORE-0431", operator="cdist", argument="p", given=float(p), wanted="0 or more"
        )
    if x1.array.ndim < 2 or x2.array.ndim < 2 or x1.array.shape[-1] != x2.array.shape[-1]:
        raise refuse(
            "CORE-0433", operator="cdist", shape=list(x1.shape), weight_shape=list(x2.shape)
        )
    return lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def _sample_pdist(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 2)),))
    yield Sample((rng.normal(size=(4, 2)), 3.0))


@operator(_sample_pdist, torch="nn.functional.pdist", method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances between each two rows of (N, M): N (N - 1) / 2 of them, row by row.

    Raises CORE-0433 for other than two axes, CORE-0431 for a negative p.
    """
    if input.array.ndim != 2:
        raise refuse("CORE-0433", operator="pdist", shape=list(input.shape), weight_shape=[0, 0])
    if p < 0:
        raise refuse(
            "CORE-0431", operator="pdist", argument="p", given=float(p), wanted="0 or more"
        )
    first, second = np.triu_indices(input.array.shape[0], 1)
    return lengths(input[wrap(first)] - input[wrap(second)], p, -1)
