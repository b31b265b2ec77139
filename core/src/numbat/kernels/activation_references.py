"""Numpy references of the activations that also follow an affine map in one pass: GELU and SiLU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.kernels.normal import normal_tail

Array = np.ndarray[Any, np.dtype[Any]]

_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def logistic(x: Array) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, x.dtype.type(1)) / (1 + small)


def gelu_value(x: Array) -> Array:
    """x times the standard normal's distribution at x."""
    return x * normal_tail(-x)


def gelu_slope(x: Array) -> Any:
    """The derivative of `gelu_value`: distribution plus x times density."""
    return normal_tail(-x) + x * np.exp(-0.5 * x * x) * x.dtype.type(1 / math.sqrt(2 * math.pi))


def gelu_tanh_value(x: Array) -> Any:
    """GELU with the distribution approximated by a tanh, which is a logistic function of twice its
    argument."""
    return x * logistic(2 * _ROOT_2_OVER_PI * (x + _CUBE * x * x * x))


def gelu_tanh_slope(x: Array) -> Any:
    """The derivative of `gelu_tanh_value`."""
    s = logistic(2 * _ROOT_2_OVER_PI * (x + _CUBE * x * x * x))
    return s + x * s * (1 - s) * (2 * _ROOT_2_OVER_PI * (1 + 3 * _CUBE * x * x))


def silu_value(x: Array) -> Any:
    """x times its logistic function."""
    return x * logistic(x)


def silu_slope(x: Array) -> Any:
    """The derivative of `silu_value`."""
    s = logistic(x)
    return s * (1 + x * (1 - s))
