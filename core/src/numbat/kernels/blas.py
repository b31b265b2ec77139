"""numpy's own OpenBLAS: its functions, its threads, and how it reads a matrix.

numpy's wheels bundle OpenBLAS under private names. Where it is not found (another BLAS, a numpy of
a distribution), `GEMM` is empty and callers go by `np.matmul`; nothing but speed depends on it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112


def _found() -> tuple[Any, str, str] | None:
    """The library that numpy loaded, and the prefix and suffix of its names."""
    package = Path(np.__file__).parent
    folder = package / ".dylibs" if sys.platform == "darwin" else package.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
        try:
            library = ctypes.CDLL(str(path))  # Already loaded by numpy: this is the same one.
        except OSError:
            continue
        for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
            if hasattr(library, f"{prefix}cblas_sgemm{suffix}"):
                return library, prefix, suffix
    return None


def _gemm(library: Any, name: str, whole: Any, real: Any) -> Any:
    function = library[name]
    enum, address = ctypes.c_int, ctypes.c_void_p
    function.argtypes = [
        enum, enum, enum, whole, whole, whole, real, address, whole, address, whole, real, address,
        whole,
    ]  # fmt: skip
    function.restype = None
    return functools.partial(function, _ROW_MAJOR)


_LIBRARY = _found()
GEMM: dict[str, Any] = {}
"""By letter of type (`f`, `d`): `gemm(ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)` over
addresses of matrices by rows; `ta` and `tb` are `PLAIN` or `TRANSPOSED`. Empty where OpenBLAS was
not found."""
PLAIN, TRANSPOSED = _PLAIN, _TRANSPOSED

if _LIBRARY is not None:
    _library, _prefix, _suffix = _LIBRARY
    _whole = ctypes.c_int64 if _suffix else ctypes.c_int32
    GEMM["f"] = _gemm(_library, f"{_prefix}cblas_sgemm{_suffix}", _whole, ctypes.c_float)
    GEMM["d"] = _gemm(_library, f"{_prefix}cblas_dgemm{_suffix}", _whole, ctypes.c_double)


class Threads:
    """How many threads BLAS takes, and a context in which it takes one.

    Within the context each product runs on the thread that asks for it, so that a pool may share
    the work. The first caller to enter sets it, the last one to leave takes it back.

    Args:
        get, set: BLAS's own functions; None where it has none, and then nothing is changed.
    """

    def __init__(self, get: Any, set: Any) -> None:
        self._get, self._set = get, set
        self._lock = threading.Lock()
        self._callers = 0
        self._before = 1

    def limit(self, threads: int) -> None:
        """Sets how many threads products take, once nobody is in the context."""
        with self._lock:
            if self._callers:
                self._before = threads
            elif self._set is not None:
                self._set(threads)

    def __enter__(self) -> None:
        with self._lock:
            if not self._callers and self._set is not None:
                self._before = self._get()
                if self._before > 1:
                    self._set(1)
            self._callers += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._callers -= 1
            if not self._callers and self._before > 1 and self._set is not None:
                self._set(self._before)


def _threads() -> Threads:
    if _LIBRARY is None:
        return Threads(None, None)
    library, prefix, suffix = _LIBRARY
    getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
    setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
    if getter is None or setter is None:
        return Threads(None, None)
    setter.argtypes, setter.restype = [ctypes.c_int], None
    return Threads(getter, setter)


THREADS = _threads()
"""The threads of numpy's BLAS; `with THREADS:` wakes none of them."""


def layout(array: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """How BLAS reads a matrix of two axes (`PLAIN`: by rows, `TRANSPOSED`: by columns), and the
    step between its rows or columns in elements; None where it cannot."""
    item = array.itemsize
    (rows, columns), (down, across) = array.shape, array.strides
    if across == item or columns == 1:
        if rows == 1:
            return _PLAIN, max(columns, 1)
        if down % item == 0 and down >= columns * item:
            return _PLAIN, down // item
    if down == item or rows == 1:
        if columns == 1:
            return _TRANSPOSED, max(rows, 1)
        if across % item == 0 and across >= rows * item:
            return _TRANSPOSED, across // item
    return None


def function_address(kind: str) -> int | None:
    """The address of `cblas_sgemm` (kind "f") or `cblas_dgemm` ("d") with 64-bit extents, for C
    kernels that call it themselves; None where there is none."""
    if _LIBRARY is None or not _LIBRARY[2]:
        return None
    library, prefix, suffix = _LIBRARY
    name = {"f": "sgemm", "d": "dgemm"}[kind]
    return ctypes.cast(library[f"{prefix}cblas_{name}{suffix}"], ctypes.c_void_p).value
