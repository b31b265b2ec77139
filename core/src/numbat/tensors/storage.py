"""Where arrays live: blocks that begin on a cache line, kept and handed out again.

numpy allocates through a handler of `kernels/memory.c` (NEP 49), so that each fresh array, numpy's
own results among them, begins on a boundary of 64 bytes and no page is faulted in twice.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from numbat.kernels.loading import LIBRARY

ALIGNMENT_BYTES = 64
_SET_HANDLER = 304  # index of PyDataMem_SetHandler in numpy's C table, fixed since numpy 1.22


def _array_table() -> int:
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    core: Any = getattr(np, "_core", None) or np.core
    return int(python.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None))


def install() -> None:
    """Makes numpy allocate aligned blocks; `NUMBAT_ALLOCATOR=numpy` in the environment leaves
    numpy's own.

    The handler holds for the current context (contextvars), so for threads that start later it is
    installed by whoever starts them.
    """
    if os.environ.get("NUMBAT_ALLOCATOR") == "numpy":
        return
    python = ctypes.pythonapi
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = (ctypes.c_size_t * (_SET_HANDLER + 1)).from_address(_array_table())
    address = table[_SET_HANDLER]
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)
    set_handler(python.PyCapsule_New(LIBRARY.nb_memory_handler(), b"mem_handler", None))


def is_aligned(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's first element lies on a boundary of 64 bytes."""
    return int(array.ctypes.data) % ALIGNMENT_BYTES == 0


def memory_stats() -> dict[str, int]:
    """Bytes of arrays in use, their peak since `reset_peak_memory`, and bytes kept for reuse."""
    return {
        "used_bytes": LIBRARY.nb_memory_used(),
        "peak_bytes": LIBRARY.nb_memory_peak(),
        "kept_bytes": LIBRARY.nb_memory_kept(),
    }


def reset_peak_memory() -> None:
    """Makes what is in use now the peak."""
    LIBRARY.nb_memory_reset_peak()


def empty_cache() -> int:
    """Gives kept blocks back to the system; answers how many bytes they were."""
    return int(LIBRARY.nb_memory_release())
