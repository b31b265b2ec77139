"""The matrix products of numpy's own OpenBLAS, called with strides and sums that `np.matmul` has no
words for.

numpy's wheels bundle OpenBLAS under private names. Where it is not found (another BLAS, a numpy of
a distribution), `GEMM` is None and callers go by `np.matmul`; nothing but speed depends on it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from numbat.kernels.calling import address

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


class _Single:
    """How many callers want products on their own threads, and how many threads there were
    before."""

    lock = threading.Lock()
    callers = 0
    before: int | None = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Within it each product runs on the thread that asks for it, so that a pool may share the
    work.

    The first caller sets it, the last one to leave takes it back.
    """
    with _Single.lock:
        if not _Single.callers and _LIBRARY is not None:
            library, prefix, suffix = _LIBRARY
            getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            _Single.before = None if getter is None else int(getter())
            if _Single.before is not None and _Single.before > 1:
                limit_threads(1)
        _Single.callers += 1
    try:
        yield
    finally:
        with _Single.lock:
            _Single.callers -= 1
            if not _Single.callers and _Single.before is not None and _Single.before > 1:
                limit_threads(_Single.before)


def _layout(array: np.ndarray[Any, Any]) -> tuple[int, int] | None:
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


def gemm(
    a: np.ndarray[Any, Any],
    b: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any],
    alpha: float = 1.0,
    beta: float = 0.0,
) -> np.ndarray[Any, Any]:
    """`out = alpha * a @ b + beta * out` in place, by `np.matmul` where BLAS does not read a
    layout.

    Args:
        a: (m, k) float32 or float64; rows or columns hold their neighbours without gaps.
        b: (k, n), as `a`.
        out: (m, n) of the same type; its rows hold their neighbours without gaps.
        alpha: the factor of the product.
        beta: the factor of what `out` holds; at 0 it is not read.
    """
    function = GEMM.get(out.dtype.char)
    if function is not None and out.size and a.shape[1] and a.dtype == b.dtype == out.dtype:
        of_a, of_b, of_out = _layout(a), _layout(b), _layout(out)
        if of_a is not None and of_b is not None and of_out is not None and of_out[0] == _PLAIN:
            function(
                of_a[0], of_b[0], a.shape[0], b.shape[1], a.shape[1], alpha,
                address(a), of_a[1], address(b), of_b[1], beta, address(out), of_out[1],
            )  # fmt: skip
            return out
    product = np.matmul(a, b)
    if alpha != 1.0:
        product *= alpha
    if beta == 0.0:
        out[...] = product
    else:
        if beta != 1.0:
            out *= beta
        out += product
    return out


def function_address(kind: str) -> int | None:
    """The address of `cblas_sgemm` (kind "f") or `cblas_dgemm` ("d") with 64-bit extents, for C
    kernels that call it themselves; None where there is none."""
    if _LIBRARY is None or not _LIBRARY[2]:
        return None
    library, prefix, suffix = _LIBRARY
    name = {"f": "sgemm", "d": "dgemm"}[kind]
    return ctypes.cast(library[f"{prefix}cblas_{name}{suffix}"], ctypes.c_void_p).value
