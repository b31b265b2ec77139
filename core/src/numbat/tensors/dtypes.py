"""The twelve element types, named and promoted as PyTorch's are.

Source: PyTorch 2.13, "Tensor Attributes: torch.dtype" and `c10/core/ScalarType.cpp` for promotion.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from numbat_registries import refuse

BOOL, INTEGRAL, FLOATING = 0, 1, 2
"""The categories of promotion, lowest first."""


class DType:
    """One element type: its name, its numpy twin, its category and its size in bytes."""

    __slots__ = ("category", "is_signed", "itemsize", "name", "numpy", "order")

    def __init__(self, name: str, numpy: Any, category: int, *, signed: bool, order: int) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy)
        self.category = category
        self.is_signed = signed
        self.itemsize = self.numpy.itemsize
        self.order = order

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"numbat.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (dtype_named, (self.name,))


bool_ = DType("bool", np.bool_, BOOL, signed=False, order=0)
uint8 = DType("uint8", np.uint8, INTEGRAL, signed=False, order=1)
int8 = DType("int8", np.int8, INTEGRAL, signed=True, order=2)
int16 = DType("int16", np.int16, INTEGRAL, signed=True, order=3)
int32 = DType("int32", np.int32, INTEGRAL, signed=True, order=4)
int64 = DType("int64", np.int64, INTEGRAL, signed=True, order=5)
uint16 = DType("uint16", np.uint16, INTEGRAL, signed=False, order=6)
uint32 = DType("uint32", np.uint32, INTEGRAL, signed=False, order=7)
float16 = DType("float16", np.float16, FLOATING, signed=True, order=8)
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, FLOATING, signed=True, order=9)
float32 = DType("float32", np.float32, FLOATING, signed=True, order=10)
float64 = DType("float64", np.float64, FLOATING, signed=True, order=11)

DTYPES: Final = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, float16, bfloat16, float32, float64,
)  # fmt: skip
"""Every element type."""

BY_NUMBER: Final = {one.numpy.num: one for one in DTYPES}
"""From numpy's type number, the fastest key an array has."""

_BY_NAME: Final = {one.name: one for one in DTYPES} | {
    "half": float16, "float": float32, "double": float64,
    "short": int16, "int": int32, "long": int64,
}  # fmt: skip


def dtype_named(name: str) -> DType:
    """The element type of a name, PyTorch's aliases among them (`half`, `long`).

    Raises CORE-0101 where no element type is called that.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise refuse("CORE-0101", name=str(name), known=[one.name for one in DTYPES]) from None


def as_dtype(value: Any) -> DType:
    """A DType from a DType, a name, a Python type (`float` is the default type) or a numpy dtype.

    Raises CORE-0101 for anything else, complex types among them.
    """
    if isinstance(value, DType):
        return value
    if value is float:
        return get_default_dtype()
    if value is int:
        return int64
    if value is bool:
        return bool_
    if isinstance(value, str):
        return dtype_named(value)
    return from_numpy_dtype(np.dtype(value))


def from_numpy_dtype(dtype: np.dtype[Any]) -> DType:
    """The element type of a numpy array, whatever its byte order.

    Raises CORE-0101 where there is none (uint64, complex, text, objects).
    """
    found = BY_NUMBER.get(dtype.num)
    if found is None:
        # On some platforms numpy has two numbers for one integer of 64 bits.
        if dtype.kind == "i" and dtype.itemsize == 8:
            return int64
        raise refuse("CORE-0101", name=str(dtype), known=[one.name for one in DTYPES])
    return found


class _Default:
    dtype = float32


def get_default_dtype() -> DType:
    """The floating type that Python floats become; float32 unless it was set."""
    return _Default.dtype


def set_default_dtype(dtype: DType) -> None:
    """Sets the floating type that Python floats become.

    Raises CORE-0102 where the type is not a floating one.
    """
    chosen = as_dtype(dtype)
    if not chosen.is_floating_point:
        raise refuse("CORE-0102", dtype=chosen.name, operation="set_default_dtype")
    _Default.dtype = chosen


class _Limits:
    __slots__ = ("bits", "dtype", "max", "min")

    def __repr__(self) -> str:
        held = ", ".join(
            f"{name}={getattr(self, name)}" for name in type(self).__slots__ + _Limits.__slots__
        )
        return f"{type(self).__name__}({held})"


class finfo(_Limits):
    """The limits of a floating type: bits, eps, min, max, tiny, resolution (Python floats).

    Raises CORE-0102 for a type that is not floating.
    """

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: DType | None = None) -> None:
        chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
        if not chosen.is_floating_point:
            raise refuse("CORE-0102", dtype=chosen.name, operation="finfo")
        limits: Any = ml_dtypes.finfo(chosen.numpy)  # type: ignore[no-untyped-call]
        self.dtype = chosen.name
        self.bits = int(limits.bits)
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(limits.resolution)


class iinfo(_Limits):
    """The limits of an integer type: bits, min, max (Python ints).

    Raises CORE-0102 for a type that is not an integer.
    """

    __slots__ = ()

    def __init__(self, dtype: DType) -> None:
        chosen = as_dtype(dtype)
        if chosen.category != INTEGRAL:
            raise refuse("CORE-0102", dtype=chosen.name, operation="iinfo")
        limits = np.iinfo(chosen.numpy)
        self.dtype = chosen.name
        self.bits = int(limits.bits)
        self.min = int(limits.min)
        self.max = int(limits.max)
