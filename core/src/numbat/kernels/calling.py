"""Calls of C kernels: argument types are set once, and arrays are handed over by their addresses.

    convolve = kernel("nb_conv_forward", "PPPiil")
    convolve(address(x), address(w), address(out), 3, 3, x.shape[0])

ctypes lets go of Python's lock while a kernel runs, so kernels run side by side on several threads
(`pool.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.kernels.loading import LIBRARY

_KINDS: dict[str, Any] = {
    "P": ctypes.c_void_p,
    "i": ctypes.c_int32,
    "l": ctypes.c_int64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}

_HEAD = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def _read_address(array: np.ndarray[Any, Any]) -> int:
    # The first field of PyArrayObject after Python's own head, fixed by numpy's binary interface;
    # reading it takes 0.2 us, `array.ctypes.data` 2 us.
    return _word_at(id(array) + _HEAD).value


def _ask_address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def _holds() -> bool:
    probes: list[np.ndarray[Any, Any]] = [
        np.zeros(3),
        np.zeros((4, 5), np.float32)[1:, ::-1],
        np.zeros(0, np.int8),
    ]
    return all(_read_address(one) == _ask_address(one) for one in probes)


address: Callable[[np.ndarray[Any, Any]], int] = _read_address if _holds() else _ask_address
"""The address of an array's first element. Keep the array alive until the kernel has returned."""


def kernel(name: str, kinds: str) -> Callable[..., None]:
    """A kernel of the library that gives nothing back.

    Args:
        name: its name in C, as `nb_max_pool`.
        kinds: a letter for each argument: P address, i int32_t, l int64_t, f float, d double.
    """
    function = LIBRARY[name]  # A fresh object: its types are this caller's alone.
    function.argtypes = [_KINDS[kind] for kind in kinds]
    function.restype = None
    found: Callable[..., None] = function
    return found
