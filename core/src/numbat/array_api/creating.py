"""Fresh tensors, by the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

import numbat.ops as ops
from numbat.tensors import creation, interchange
from numbat.tensors.device import check_device
from numbat.tensors.dtypes import as_dtype
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of Python numbers, sequences, or what has a buffer or `__dlpack__`.

    Raises CORE-0115 where a copy is needed and refused, and what `numbat.tensor` raises.
    """
    check_device(device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        if wanted is not None and wanted is not obj.dtype:
            if copy is False:
                raise refuse("CORE-0115", protocol="asarray", because="another type needs a copy")
            return obj.to(wanted)
        return ops.clone(obj) if copy else obj
    if copy is False and not isinstance(obj, np.ndarray) and not hasattr(obj, "__dlpack__"):
        raise refuse(
            "CORE-0115",
            protocol="asarray",
            because=f"a {type(obj).__name__} has no memory to share",
        )
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
        return asarray(interchange.from_dlpack(obj), dtype=wanted, copy=copy)
    if isinstance(obj, np.ndarray) and not copy:
        return creation.as_tensor(obj, dtype=wanted)
    return creation.tensor(obj, dtype=wanted)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of what has `__dlpack__`; see `numbat.from_dlpack`."""
    return interchange.from_dlpack(x, device=device, copy=copy)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from `start` up to `stop`; none where the step leads away from it."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step < 0:
        stop = start
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """Evenly spaced numbers, the last of which is `stop` unless `endpoint` is false."""
    check_device(device)
    from numbat.tensors.dtypes import get_default_dtype

    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    return wrap(np.linspace(start, stop, num, endpoint=endpoint).astype(chosen.numpy))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose values are whatever its memory holds."""
    return creation.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of zeros."""
    return creation.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of ones."""
    return creation.ones(_shape(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value."""
    return creation.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`empty` with another tensor's shape and type."""
    check_device(device)
    return creation.empty_like(x, dtype=dtype)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`zeros` with another tensor's shape and type."""
    check_device(device)
    return creation.zeros_like(x, dtype=dtype)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`ones` with another tensor's shape and type."""
    check_device(device)
    return creation.ones_like(x, dtype=dtype)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`full` with another tensor's shape and type."""
    check_device(device)
    return creation.full_like(x, fill_value, dtype=dtype)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """A matrix with ones on its diagonal number `k`."""
    check_device(device)
    like = creation.eye(0, dtype=dtype)
    return wrap(np.eye(n_rows, n_cols, k, dtype=like.array.dtype))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The grid that vectors span; see `numbat.meshgrid`."""
    return list(ops.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """A copy with zero above a diagonal."""
    return ops.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """A copy with zero below a diagonal."""
    return ops.triu(x, k)
