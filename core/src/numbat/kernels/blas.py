"""numpy's own OpenBLAS: its functions, its threads, and how it reads a matrix.

numpy's wheels bundle OpenBLAS under private names. Where it is not found (another BLAS, a numpy of
a distribution), `GEMM` is None and callers go by `np.matmul`; nothing but speed depends on it.
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


def limit_threads(threads: int) -> None:
    """Sets how many threads matrix products take, where that can be set."""
    if _LIBRARY is None:
        return
    library, prefix, suffix = _LIBRARY
    setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
    if setter is not None:
        setter(ctypes.c_int(threads))


class _SingleThreaded:
    """Within it each product runs on the thread that asks for it, so that a pool may share the
    work.

    The first caller sets it, the last one to leave takes it back.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.callers = 0
        self.before = 1
        self.get: Any = None
        self.set: Any = None
        if _LIBRARY is not None:
            library, prefix, suffix = _LIBRARY
            self.get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
            if self.get is not None and setter is not None:
                setter.argtypes, setter.restype = [ctypes.c_int], None
                self.set = setter

    def __enter__(self) -> None:
        with self.lock:
            if not self.callers and self.set is not None:
                self.before = self.get()
                if self.before > 1:
                    self.set(1)
            self.callers += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.callers -= 1
            if not self.callers and self.before > 1:
                self.set(self.before)


_SINGLE_THREADED = _SingleThreaded()


def single_threaded() -> _SingleThreaded:
    """A context within which no product wakes threads of BLAS; the caller's pool shares work."""
    return _SINGLE_THREADED


def layout(array: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """How BLAS reads a matrix, and the step between its rows or columns; None where it cannot."""
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
