"""Fresh tensors: from Python values, filled, counted, or of numpy's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbat.tensors import dtypes
from numbat.tensors.device import check_device
from numbat.tensors.dtypes import DType, as_dtype, from_numpy_dtype, get_default_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse


def array_of(data: Any, dtype: Any = None) -> Array:
    """A fresh array of Python numbers, sequences, arrays or tensors, with torch's default types.

    Raises CORE-0101 for values of no element type, CORE-0108 for ragged sequences.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        return np.array(data.array, dtype=None if wanted is None else wanted.numpy, order="C")
    if isinstance(data, (np.ndarray, np.generic)):
        held = from_numpy_dtype(data.dtype) if wanted is None else wanted
        return np.array(data, dtype=held.numpy, order="C")
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        data = _without_tensors(data)
    try:
        found = np.array(data)
    except ValueError:
        raise refuse("CORE-0108", given=type(data).__name__) from None
    if wanted is None:
        if (found.dtype.kind == "f" and not _holds_numpy(data)) or (
            found.size == 0 and found.dtype.kind == "f"
        ):
            wanted = get_default_dtype()
        else:
            wanted = from_numpy_dtype(found.dtype)
    return np.array(data if found.dtype.kind == "O" else found, dtype=wanted.numpy)


def _holds_tensors(data: Any) -> bool:
    return any(
        isinstance(one, Tensor) or (isinstance(one, (list, tuple)) and _holds_tensors(one))
        for one in data
    )


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, (list, tuple)):
        return [_without_tensors(one) for one in data]
    return data


def _holds_numpy(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic))


def _finished(array: Array, requires_grad: bool) -> Tensor:
    out = wrap(array)
    if requires_grad:
        out.requires_grad = True
    return out


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor that copies `data`: floats become the default type, whole numbers int64.

    Raises CORE-0101, CORE-0104, CORE-0108, CORE-0301.
    """
    check_device(device)
    return _finished(array_of(data, dtype), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` itself where it is a tensor of that type, numpy's memory where it is an array, else a
    copy."""
    check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is as_dtype(dtype) else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or as_dtype(dtype).numpy == data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype)


asarray = as_tensor


def from_numpy(array: Array) -> Tensor:
    """A tensor over numpy's memory; a write to either is a write to both.

    Raises CORE-0101 for a type that is no element type, CORE-0109 for foreign byte order.
    """
    from_numpy_dtype(array.dtype)
    if not array.dtype.isnative:
        raise refuse("CORE-0109", dtype=str(array.dtype))
    return wrap(array)


def shape_of(size: Any) -> tuple[int, ...]:
    """The extents given one by one or as one sequence.

    Raises CORE-0203 for a negative extent.
    """
    if len(size) == 1 and not isinstance(size[0], int) and hasattr(size[0], "__len__"):
        size = size[0]
    shape = tuple(int(extent) for extent in size)
    if any(extent < 0 for extent in shape):
        raise refuse("CORE-0203", shape=list(shape), operator="creation")
    return shape


def _chosen(dtype: Any) -> DType:
    return get_default_dtype() if dtype is None else as_dtype(dtype)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose values are whatever its memory holds."""
    check_device(device)
    return _finished(np.empty(shape_of(size), _chosen(dtype).numpy), requires_grad)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    check_device(device)
    return _finished(np.zeros(shape_of(size), _chosen(dtype).numpy), requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    check_device(device)
    return _finished(np.ones(shape_of(size), _chosen(dtype).numpy), requires_grad)


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value; its type is the value's where none is given."""
    check_device(device)
    from numbat.tensors.promotion import scalar_dtype

    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    chosen = scalar_dtype(value) if dtype is None else as_dtype(dtype)
    return _finished(np.full(shape_of((size,)), value, chosen.numpy), requires_grad)


def _like(input: Tensor, dtype: Any) -> np.dtype[Any]:
    return input.array.dtype if dtype is None else as_dtype(dtype).numpy


def empty_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """`empty` with the shape and type of another tensor."""
    return _finished(np.empty_like(input.array, dtype=_like(input, dtype)), requires_grad)


def zeros_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """`zeros` with the shape and type of another tensor."""
    return _finished(np.zeros_like(input.array, dtype=_like(input, dtype)), requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """`ones` with the shape and type of another tensor."""
    return _finished(np.ones_like(input.array, dtype=_like(input, dtype)), requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """`full` with the shape and type of another tensor."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return _finished(np.full_like(input.array, value, dtype=_like(input, dtype)), requires_grad)


def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` (0 when one bound is given) up to, not including, `end`.

    Raises CORE-0110 where the step is zero or leads away from the end.
    """
    check_device(device)
    if end is None:
        start, end = 0, start
    start, end, step = (
        one.item() if isinstance(one, Tensor) else one for one in (start, end, step)
    )
    if step == 0 or (end - start) * step < 0:
        raise refuse("CORE-0110", start=float(start), end=float(end), step=float(step))
    if dtype is None:
        whole = all(isinstance(one, (int, np.integer)) for one in (start, end, step))
        chosen = dtypes.int64 if whole else get_default_dtype()
    else:
        chosen = as_dtype(dtype)
    count = max(int(np.ceil((end - start) / step)), 0)
    if chosen.is_floating_point:
        values = start + step * np.arange(count, dtype=np.float64)
    else:
        values = int(start) + int(step) * np.arange(count, dtype=np.int64)
    return _finished(values.astype(chosen.numpy), requires_grad)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included; each half is counted from its own end.

    Source: `at::native::linspace` (symmetric evaluation).
    """
    check_device(device)
    chosen = _chosen(dtype)
    if steps < 0:
        raise refuse("CORE-0203", shape=[steps], operator="linspace")
    start, end = (float(one.item()) if isinstance(one, Tensor) else one for one in (start, end))
    work = chosen.numpy if chosen.name in ("float32", "float64") else np.dtype(np.float64)
    index = np.arange(steps)
    step = work.type((end - start) / (steps - 1)) if steps > 1 else work.type(0)
    low = work.type(start) + step * index.astype(work)
    high = work.type(end) - step * (steps - index - 1).astype(work)
    return _finished(np.where(index < steps // 2, low, high).astype(chosen.numpy) if steps != 1
                     else np.array([start], chosen.numpy), requires_grad)  # fmt: skip


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **keywords: Any
) -> Tensor:
    """`base` to the powers that `linspace` gives."""
    powers = linspace(start, end, steps, dtype="float64").array
    chosen = _chosen(dtype)
    return _finished(
        np.power(base, powers).astype(chosen.numpy), bool(keywords.get("requires_grad"))
    )


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on its diagonal."""
    check_device(device)
    return _finished(np.eye(n, m, dtype=_chosen(dtype).numpy), requires_grad)
