"""Clipping of gradients: by the norm of all of them, in one pass over all, or each element.

Source: PyTorch 2.13, `torch/nn/utils/clip_grad.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from numbat.kernels import updates
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

EPS = 1e-6
"""Added to the norm, so that a norm of zero divides."""


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Array]:
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [one.grad.array for one in several if one.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements together, float32 (float64 for float64), without axes.

    Raises CORE-0706 for a norm that is not finite, where that is asked for.
    """
    several = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return _total_norm([one.array for one in several], norm_type, error_if_nonfinite)


def _total_norm(arrays: list[Array], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    norm_type = float(norm_type)
    total = _norm(arrays, norm_type) if arrays else 0.0
    if error_if_nonfinite and not math.isfinite(total):
        raise refuse("CORE-0706", norm_type=str(norm_type), norm=str(total))
    wide = any(one.dtype == np.float64 for one in arrays)
    return wrap(np.array(total, np.float64 if wide else np.float32))


def _norm(arrays: list[Array], norm_type: float) -> float:
    if norm_type == 2:
        return math.sqrt(updates.square_sum(arrays))
    if math.isinf(norm_type):
        extremes = [float(np.abs(one).max() if norm_type > 0 else np.abs(one).min())
                    for one in arrays if one.size]  # fmt: skip
        if any(math.isnan(one) for one in extremes):
            return math.nan
        return (max if norm_type > 0 else min)(extremes, default=0.0)
    if norm_type == 0:
        # Of the tensors' own counts, as PyTorch: how many tensors have an element that is not zero.
        return float(sum(bool(np.count_nonzero(one)) for one in arrays))
    total = sum(float(np.power(np.abs(one, dtype=np.float64), norm_type).sum()) for one in arrays)
    return float(total ** (1.0 / norm_type))


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiplies the gradients by max_norm / (total_norm + 1e-6), where that is below one."""
    arrays = _gradients(parameters)
    if not arrays:
        return
    norm = total_norm.array
    factor = float(norm.dtype.type(max_norm) / (norm + norm.dtype.type(EPS)))
    # A factor that is not a number spoils the gradients, as in PyTorch; one of 1 changes nothing.
    if not factor >= 1.0:
        updates.scale(arrays, factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients down together where their norm is above `max_norm`; gives the norm
    before.

    Raises CORE-0706 for a norm that is not finite, where that is asked for.
    """
    several = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = _total_norm(_gradients(several), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(several, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Cuts each element of the gradients to [-clip_value, clip_value]."""
    bound: Any = float(clip_value)
    for one in _gradients(parameters):
        np.clip(one, one.dtype.type(-bound), one.dtype.type(bound), out=one)
