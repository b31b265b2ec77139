"""The matrix products of numpy's own OpenBLAS, called with strides and sums that `np.matmul` has no words for.

numpy's wheels bundle OpenBLAS under private names. Where it is not found (another BLAS, a numpy of a
distribution), `GEMM` is None and callers go by `np.matmul`; nothing but speed depends on it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
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
        enum, enum, enum, whole, whole, whole, real, address, whole, address, whole, real, address, whole,
    ]  # fmt: skip
    function.restype = None
    return functools.partial(function, _ROW_MAJOR)


_LIBRARY = _found()
GEMM: dict[str, Any] = {}
"""By letter of type (`f`, `d`): `gemm(ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)` over addresses
of matrices by rows; `ta` and `tb` are `PLAIN` or `TRANSPOSED`. Empty where OpenBLAS was not found."""
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
