"""Memory shared with others: numpy, DLPack and the buffer protocol.

What another library writes into shared memory is seen here, but counts for no version.
Source: Python array API standard 2024.12 (`__dlpack__`), DLPack 1.0 (`dlpack.h`), PEP 688.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from numbat.tensors import dtypes
from numbat.tensors.creation import from_numpy
from numbat.tensors.device import check_device
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

CPU_DEVICE = (1, 0)
"""DLPack's number for the CPU (kDLCPU), and which one."""

_UINT, _BFLOAT = 1, 4  # DLDataTypeCode
_CODE_AT = 20  # of DLTensor: data 8, device 8, ndim 4, then the type's code
_TENSOR_AT = {b"dltensor": 0, b"dltensor_versioned": 32}


def _check_exchange(tensor: Tensor, operation: str) -> None:
    if tensor.requires_grad:
        raise refuse("CORE-0112", operation=operation, shape=list(tensor.shape))


def to_numpy(self: Tensor, *, force: bool = False) -> Array:
    """A numpy array over the tensor's memory; `force` lets go of the history first.

    Raises CORE-0112 for a tensor that requires a gradient.
    """
    if not force:
        _check_exchange(self, "numpy()")
    return self.array.view()


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """`numpy.asarray`: the tensor's memory, or a copy in another type.

    Raises CORE-0112 for a tensor that requires a gradient, CORE-0115 where a copy is needed and
    refused.
    """
    _check_exchange(self, "conversion to numpy")
    array = self.array.view()
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise refuse(
                "CORE-0115", protocol="__array__",
                because=f"{array.dtype.name} becomes {np.dtype(dtype).name} by a copy alone",
            )  # fmt: skip
        return array.astype(dtype)
    return array.copy() if copy else array


def as_buffer(self: Tensor, flags: int = 0) -> memoryview:
    """A memoryview of the tensor's memory.

    Raises CORE-0112 for a tensor that requires a gradient, CORE-0113 for bfloat16, which buffers
    lack.
    """
    _check_exchange(self, "a buffer")
    if self.array.dtype == dtypes.bfloat16.numpy:
        raise refuse("CORE-0113", protocol="the buffer protocol", dtype="bfloat16")
    return self.array.data


def cpu(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor itself: its memory is the CPU's."""
    return self


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """DLPack's numbers for where the memory is: the CPU, the first."""
    return CPU_DEVICE


def to_dlpack(
    self: Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """A DLPack capsule over the tensor's memory.

    Raises CORE-0112 for a tensor that requires a gradient; CORE-0115 for a stream, another device
    than
    the CPU, or memory that is read-only where the consumer cannot be told.
    """
    _check_exchange(self, "__dlpack__")
    if stream is not None:
        raise refuse("CORE-0115", protocol="__dlpack__", because="memory of the CPU has no stream")
    if dl_device is not None and tuple(dl_device) != CPU_DEVICE:
        raise refuse(
            "CORE-0115", protocol="__dlpack__", because=f"the memory is not on device {dl_device}"
        )
    array = self.array.copy() if copy else self.array
    half = array.dtype == dtypes.bfloat16.numpy
    source = array.view(np.uint16) if half else array
    try:
        capsule = (
            source.__dlpack__()
            if max_version is None
            else source.__dlpack__(max_version=max_version)
        )
    except BufferError as fault:
        raise refuse("CORE-0115", protocol="__dlpack__", because=str(fault)) from None
    if half:
        _type_code(capsule).value = _BFLOAT
    return capsule


def _type_code(capsule: Any) -> ctypes.c_uint8:
    """Where a capsule says what its elements are; numpy names no bfloat16, so that we write it
    there."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = python.PyCapsule_GetName(capsule)
    if name not in _TENSOR_AT:
        raise refuse("CORE-0115", protocol="__dlpack__", because="the capsule was used before")
    start = int(python.PyCapsule_GetPointer(capsule, name))
    return ctypes.c_uint8.from_address(start + _TENSOR_AT[name] + _CODE_AT)


class _Producer:
    """Another library's tensor, whose bfloat16 numpy is told to be uint16."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.half = False

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        try:
            capsule = self.held.__dlpack__(**keywords)
        except TypeError:
            # Producers from before DLPack 1.0 take a stream alone.
            capsule = self.held.__dlpack__()
        code = _type_code(capsule)
        if code.value == _BFLOAT:
            code.value, self.half = _UINT, True
        return capsule


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any object with `__dlpack__`, or over a copy where one is asked
    for.

    Raises CORE-0101 for a type that is no element type, CORE-0104 for another device, CORE-0115
    where
    the object cannot be taken over.
    """
    check_device(device)
    if not hasattr(x, "__dlpack__"):
        raise refuse(
            "CORE-0115", protocol="from_dlpack", because=f"a {type(x).__name__} has no __dlpack__"
        )
    if isinstance(x, Tensor):
        _check_exchange(x, "from_dlpack")
    producer = _Producer(x)
    try:
        array = np.from_dlpack(producer)
    except (BufferError, RuntimeError, ValueError) as fault:
        raise refuse("CORE-0115", protocol="from_dlpack", because=str(fault)) from None
    if producer.half:
        array = array.view(dtypes.bfloat16.numpy)
    if copy:
        dtypes.from_numpy_dtype(array.dtype)
        return wrap(array.copy())
    return from_numpy(array)


# -- The array API standard -----------------------------------------------------------------------


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module of functions over tensors that the array API standard asks for.

    Raises CORE-0115 for a version that it does not follow.
    """
    import numbat.array_api as namespace

    known = ("2021.12", "2022.12", "2023.12", "2024.12")
    if api_version is not None and api_version not in known:
        raise refuse(
            "CORE-0115", protocol="__array_namespace__",
            because=f"version {api_version} of the standard is not followed",
        )  # fmt: skip
    return namespace


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor itself: its memory is the CPU's.

    Raises CORE-0104 for another device, CORE-0115 for a stream.
    """
    check_device(device)
    if stream is not None:
        raise refuse("CORE-0115", protocol="to_device", because="memory of the CPU has no stream")
    return self
