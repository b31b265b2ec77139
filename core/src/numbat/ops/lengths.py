"""Norms over axes, distances by them, and slices held to a norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.extremals import check_choice
from numbat.ops.mapping import (
    add_over,
    maximum_over,
    minimum_over,
    nothing,
    weighted,
    widened,
)
from numbat.ops.pointwise import mul, sub
from numbat.ops.reductions import axes_of, spread
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "dist", "norm", "renorm",
]  # fmt: skip


def _sample_norm(rng: np.random.Generator) -> Any:
    values = rng.uniform(0.3, 2, (2, 3)) * rng.choice([-1, 1], (2, 3))
    yield Sample((values,))
    for p in (1, 2, 3, 0.5, 1.5, math.inf, -math.inf, 0):
        yield Sample((values, p, 1))
    yield Sample((values, 2, (0, 1)), {"keepdim": True})


@operator(_sample_norm, torch="norm")
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The p-norm of the elements over axes: `sum(|x|**p) ** (1/p)`; its gradient at zero is zero.

    "fro" is 2; "nuc" is the sum of a matrix's singular values.

    Raises CORE-0102 for whole numbers, CORE-0222 for another name.
    """
    if isinstance(p, str):
        if p == "nuc":
            return _nuclear(input, dim, keepdim)
        if p != "fro":
            raise refuse("CORE-0222", operator="norm", argument="p", given=p, known=["fro", "nuc"])
        p = 2
    x = input if dtype is None else input.to(dtype=as_dtype(dtype))
    return vector_norm(x, 2 if p is None else p, dim, keepdim, "norm")


def _nuclear(input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    from numbat.ops.matrix_functions import matrix_norm

    return matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim)


def vector_norm(x: Tensor, p: float, dim: Any, keepdim: bool, name: str) -> Tensor:
    """The p-norm over axes, in the tensor's own floating type.

    Raises CORE-0102 for whole numbers, CORE-0221 for a norm of no elements that needs one.
    """
    if not x.dtype.is_floating_point:
        raise refuse("CORE-0102", dtype=x.dtype.name, operation=name)
    axes = axes_of(dim, x.array.ndim, name)
    if math.isinf(p) or p < 0:
        check_choice(name, x.array.shape, axes)
    array = np.asarray(_norm_of(widened(x.array), float(p), axes, keepdim)).astype(x.array.dtype)
    return record(array, norm_backward, (x,), (x,), (float(p), axes), keep_result=True)


def _norm_of(x: Array, p: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    add = add_over
    if p == 2:
        return np.sqrt(add(x * x, axes, None, None, keepdim))
    if p == 0:
        return add(x != 0, axes, x.dtype, None, keepdim)
    size = np.abs(x)
    if p == 1:
        return add(size, axes, None, None, keepdim)
    if math.isinf(p):
        return (maximum_over if p > 0 else minimum_over)(size, axes, None, None, keepdim)
    total = add(np.power(size, x.dtype.type(p)), axes, None, None, keepdim)
    return np.power(total, x.dtype.type(1 / p))


def norm_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    """Zero where the norm is: the subgradient of least norm, as PyTorch's `norm_backward`."""
    (x,) = node.unpack()
    p, axes = node.values
    shape = x.array.shape
    grad = spread(grad, shape, axes)
    if p == 0:
        return (nothing(grad),)
    if p == 1:
        return (x.sgn() * grad,)
    result = spread(node.unpack_result(), shape, axes)
    alive = np.asarray(result.array != 0)
    if p == 2:
        return (weighted(x / result, alive) * grad,)
    if math.isinf(p):
        mask = np.abs(x.array) == result.array
        mask = mask | np.isnan(widened(x.array)) & np.isnan(widened(result.array))
        count = add_over(mask, axes, np.float64, None, True)
        return (weighted(x.sgn() * grad, mask / count),)
    if p < 1:
        steep = weighted(x.sgn() * x.abs().pow(p - 1), np.asarray(x.array != 0))
        return (steep * grad * result.pow(1 - p),)
    if p < 2:
        steep = x.sgn() * x.abs().pow(p - 1)
    else:
        steep = x * x.abs().pow(p - 2)
    return (steep * weighted(grad / result.pow(p - 1), alive),)


def _sample_dist(rng: np.random.Generator) -> Any:
    for p in (2, 1, 3):
        yield Sample((rng.uniform(1, 2, (2, 3)), rng.uniform(3, 4, (3,)), p))


@operator(_sample_dist)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors."""
    return vector_norm(floating(sub(input, other)), p, None, False, "dist")


def _sample_renorm(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)), 2, 0, 1.5))
    yield Sample((rng.normal(size=(3, 4)), 1, 1, 0.8))


@operator(_sample_renorm, in_place=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The tensor with each slice along an axis scaled down to a p-norm of `maxnorm`, where it
    exceeds it.

    Raises CORE-0204 for an axis that is not there.
    """
    axis = axis_of(dim, input.array.ndim, "renorm")
    axes = tuple(one for one in range(input.array.ndim) if one != axis)
    size = vector_norm(input, p, axes, True, "renorm")
    factor = (maxnorm / (size + 1e-7)).where(wrap(np.asarray(size.array > maxnorm)), 1.0)
    return mul(input, factor)
