"""An activation function as the engine calls it: a kernel of `activation.c` and its numpy
reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run

Array = np.ndarray[Any, np.dtype[Any]]

GRAIN = 65536
"""Elements in a piece; one takes some 50 to 100 us."""

_FLOAT32 = np.dtype(np.float32)
_NONE = (0.0, 0.0, 0.0)


class Activation:
    """f(x) and grad * f'(x), element by element.

    The kernel takes float32 without gaps in memory (in any order of axes), the reference everything
    else; float16 and bfloat16 are computed in float32 and rounded once.

    Attributes:
        value: the reference of f, over an array and the function's parameters.
        slope: the reference of f', likewise.
        selects: the slope is a choice, so that where it is zero no gradient passes, not even an
            infinite one.
    """

    def __init__(
        self,
        name: str,
        value: Callable[..., Array],
        slope: Callable[..., Array],
        *,
        selects: bool = False,
    ) -> None:
        self.value = value
        self.slope = slope
        self.selects = selects
        self._forward = kernel(f"nb_{name}", "PPfffll")
        self._backward = kernel(f"nb_{name}_backward", "PPPfffll")

    def forward(self, x: Array, *numbers: float) -> Array:
        """f(x), laid out as x."""
        if x.dtype is _FLOAT32:
            out = np.empty_like(x)
            if out.strides == x.strides:
                numbers = (*numbers, *_NONE)[:3]
                run(self._forward, (address(x), address(out), *numbers), x.size, GRAIN)
                return out
        return _rounded(self.value(_wide(x), *numbers), x)

    def backward(self, grad: Array, x: Array, *numbers: float) -> Array:
        """grad * f'(x), laid out as x."""
        if x.dtype is _FLOAT32 and grad.dtype is _FLOAT32:
            out = np.empty_like(x)
            if out.strides == x.strides:
                if grad.strides != x.strides:
                    given, grad = grad, np.empty_like(x)
                    grad[...] = given
                numbers = (*numbers, *_NONE)[:3]
                where = (address(grad), address(x), address(out), *numbers)
                run(self._backward, where, x.size, GRAIN)
                return out
        slope = self.slope(_wide(x), *numbers)
        result = _wide(grad) * slope
        if self.selects:
            result = np.where(slope == 0, np.zeros((), result.dtype), result)
        return _rounded(result, x)


def _wide(array: Array) -> Array:
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":
        return array.astype(_FLOAT32)
    return array


def _rounded(result: Any, like: Array) -> Array:
    return np.asarray(result).astype(like.dtype, copy=False)
