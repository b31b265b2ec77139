"""Variances and standard deviations over axes, covariances and correlations."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.extremes import clamp
from numbat.ops.mapping import add_over, weighted, widened
from numbat.ops.reductions import axes_of, extent_of, mean, spread
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import reshape
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "corrcoef", "cov", "std", "std_mean", "var", "var_mean",
]  # fmt: skip


def _sample_var(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), 1), {"keepdim": True})
    yield Sample((rng.normal(size=(2, 3)), (0, 1)), {"correction": 0})


def _arguments(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    """The axes and the correction, from torch's two ways of writing them."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def _variance(
    name: str, input: Tensor, dim: Any, keepdim: bool, correction: float
) -> tuple[Array, tuple[Any, ...]]:
    if not input.dtype.is_floating_point:
        raise refuse("CORE-0102", dtype=input.dtype.name, operation=name)
    wide = widened(input.array)
    axes = axes_of(dim, wide.ndim, name)
    count = extent_of(wide.shape, axes)
    centre = add_over(wide, axes, None, None, True) / np.float64(count).astype(wide.dtype)
    gap = wide - centre
    free = max(count - correction, 0)
    total = add_over(np.multiply(gap, gap, out=gap), axes, None, None, keepdim)
    return np.true_divide(total, free, dtype=wide.dtype), (axes, count, correction)


@operator(_sample_var)
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False,
    *, correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The variance over axes: squared deviations over their number less `correction`, 1 by default.

    Raises CORE-0102 for whole numbers.
    """
    dim, corrected = _arguments(dim, unbiased, correction)
    array, values = _variance("var", input, dim, keepdim, corrected)
    return record(array.astype(input.array.dtype), var_backward, (input,), (input,), values)


def var_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_slope(x, grad, *node.values),)


def _slope(x: Tensor, grad: Tensor, axes: tuple[int, ...], count: int, correction: float) -> Tensor:
    shape = x.array.shape
    free = count - correction
    factor = 2 / free if free > 0 else float("nan") if free == 0 and count == 1 else float("inf")
    gap = x - mean(x, axes or None, True)
    return spread(grad, shape, axes) * (gap * factor)


@operator(_sample_var)
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False,
    *, correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation over axes (see `var`); its gradient is zero where it is zero.

    Raises CORE-0102 for whole numbers.
    """
    dim, corrected = _arguments(dim, unbiased, correction)
    array, values = _variance("std", input, dim, keepdim, corrected)
    return record(
        np.sqrt(array).astype(input.array.dtype), std_backward, (input,), (input,), values,
        keep_result=True,
    )  # fmt: skip


def std_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    result = node.unpack_result()
    over = weighted(grad / (result * 2), result.array != 0)
    return (_slope(x, over, *node.values),)


@operator(_sample_var)
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False,
    *, correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The variance and the mean over axes.

    Raises CORE-0102 for whole numbers.
    """
    dim, corrected = _arguments(dim, unbiased, correction)
    return var(input, dim, None, keepdim, correction=corrected), mean(input, dim, keepdim)


@operator(_sample_var)
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False,
    *, correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The standard deviation and the mean over axes.

    Raises CORE-0102 for whole numbers.
    """
    dim, corrected = _arguments(dim, unbiased, correction)
    return std(input, dim, None, keepdim, correction=corrected), mean(input, dim, keepdim)


def _sample_cov(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 5)),))
    yield Sample((rng.normal(size=(2, 4)),), {"correction": 0, "fweights": np.array([1, 2, 1, 3])})
    yield Sample((rng.normal(size=(2, 4)),), {"aweights": np.array([0.3, 0.2, 0.9, 1.2])})


@operator(_sample_cov)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The covariances of variables (rows) over observations (columns), by counts and weights.

    Raises CORE-0227 for more than two axes.
    """
    if input.array.ndim > 2:
        raise refuse(
            "CORE-0227", operator="cov", argument="input", shape=list(input.shape),
            wanted="two axes or fewer",
        )  # fmt: skip
    from numbat.tensors.promotion import floating

    x = floating(reshape(input, (1, -1)) if input.array.ndim < 2 else input)
    weights: Tensor | None = None
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else aweights * weights
    count = x.array.shape[1]
    if weights is None:
        total: Any = float(count)
        centre = x.sum(1) / total
    else:
        total = weights.sum()
        centre = (x * weights).sum(1) / total
    if weights is not None and aweights is not None and correction != 0:
        free = total - correction * (weights * aweights).sum() / total
    else:
        free = total - correction
    if not isinstance(free, Tensor):
        free = max(free, 0.0)
    else:
        free = free.clamp(min=0)
    gap = x - reshape(centre, (-1, 1))
    scaled = gap if weights is None else gap * weights
    result = (scaled @ gap.transpose(0, 1)) / free
    return reshape(result, ()) if result.array.size == 1 else result


def _sample_corrcoef(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 5)),))


@operator(_sample_corrcoef)
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables (rows) over observations (columns), held within [-1, 1].

    Raises CORE-0227 for more than two axes.
    """
    c = cov(input)
    if not c.array.ndim:
        return c / c
    scale = c.diagonal().sqrt()
    result = c / reshape(scale, (-1, 1)) / reshape(scale, (1, -1))
    return clamp(result, -1, 1)
