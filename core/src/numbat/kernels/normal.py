"""The standard normal's upper tail in float64, by the C library's erfc."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run

Array = np.ndarray[Any, np.dtype[Any]]

_TAIL = kernel("nb_normal_tail_f64", "PPll")


def normal_tail(x: Array) -> Array:
    """The probability that a standard normal lies above x, of x's type."""
    exact = np.ascontiguousarray(x, np.float64)
    out = np.empty(x.shape, np.float64)
    run(_TAIL, (address(exact), address(out)), out.size, 2048)
    return out.astype(x.dtype, copy=False)
