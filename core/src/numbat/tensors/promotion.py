"""Which element type two operands meet in: PyTorch's rules, tensors of no axes and Python numbers
included.

Source: PyTorch, "Tensor Attributes: type promotion", and `at::native::result_type`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.tensors import dtypes
from numbat.tensors.dtypes import BOOL, FLOATING, INTEGRAL, DType
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

_SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)


def promote_types(first: DType, second: DType) -> DType:
    """The element type in which both meet.

    Raises CORE-0106 for uint16 or uint32 with another type that is not floating: PyTorch defines
    none.
    """
    if first is second:
        return first
    if first.category > second.category or second.category > first.category:
        higher, lower = (first, second) if first.category > second.category else (second, first)
        unmixed = {"uint16", "uint32"} & {lower.name, higher.name}
        if unmixed and higher.category != FLOATING:
            raise refuse("CORE-0106", first=first.name, second=second.name)
        return higher
    if first.category == FLOATING:
        if dtypes.float64 in (first, second):
            return dtypes.float64
        return dtypes.float32
    if "uint16" in (first.name, second.name) or "uint32" in (first.name, second.name):
        raise refuse("CORE-0106", first=first.name, second=second.name)
    if dtypes.uint8 in (first, second):
        other = second if first is dtypes.uint8 else first
        return dtypes.int16 if other is dtypes.int8 else other
    return max(first, second, key=lambda one: one.itemsize)


_TABLE: dict[tuple[int, int], DType] = {}


def _meet(first: DType, second: DType) -> DType:
    key = (first.order, second.order)
    found = _TABLE.get(key)
    if found is None:
        found = _TABLE[key] = promote_types(first, second)
    return found


def scalar_dtype(value: Any) -> DType:
    """The element type of a Python or numpy number alone: bool, int64, or the default floating
    type."""
    if isinstance(value, (bool, np.bool_)):
        return dtypes.bool_
    if isinstance(value, (int, np.integer)):
        return dtypes.int64
    if isinstance(value, (float, np.floating)):
        return dtypes.get_default_dtype()
    raise refuse("CORE-0107", given=type(value).__name__)


def result_type(*operands: Any) -> DType:
    """The element type of an operator's result over tensors and Python numbers.

    Tensors with axes decide; a tensor of no axes, and after it a number, counts only where its
    category is higher.

    Raises CORE-0106, and CORE-0107 for an operand that is neither a tensor nor a number.
    """
    ranks: list[DType | None] = [None, None, None]
    for one in operands:
        if isinstance(one, Tensor):
            rank, found = (0 if one.array.ndim else 1), one.dtype
        elif isinstance(one, DType):
            rank, found = 0, one
        else:
            rank, found = 2, scalar_dtype(one)
        held = ranks[rank]
        ranks[rank] = found if held is None else _meet(held, found)
    result: DType | None = None
    for held in ranks:
        if held is None:
            continue
        if result is None:
            result = held
        elif held.category > result.category:
            result = _meet(result, held)
    assert result is not None
    return result


def can_cast(source: DType, target: DType) -> bool:
    """Whether PyTorch casts implicitly: never to a lower category."""
    return source.category <= target.category


def as_operand(value: Any, dtype: DType) -> Tensor:
    """A tensor of an operand in the given type; a number becomes a constant of no axes."""
    if isinstance(value, Tensor):
        return value if value.dtype is dtype else value.to(dtype)
    return wrap(np.array(value, dtype=dtype.numpy))


def operands(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of the type in which they meet.

    Raises CORE-0106, CORE-0107.
    """
    if isinstance(first, Tensor):
        if isinstance(second, Tensor):
            if first.array.dtype is second.array.dtype:
                return first, second
        else:
            kind = type(second)
            if kind is float:
                if first.array.dtype.kind == "f" or first.dtype.category == FLOATING:
                    return first, wrap(np.array(second, first.array.dtype))
            elif kind is int and first.array.dtype.kind != "b":
                return first, wrap(_integer_constant(second, first))
    dtype = result_type(first, second)
    return as_operand(first, dtype), as_operand(second, dtype)


def _integer_constant(value: int, like: Tensor) -> np.ndarray[Any, Any]:
    """A whole number in a tensor's type; it wraps round as PyTorch's does, where it does not
    fit."""
    dtype = like.array.dtype
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            return np.array(value & ((1 << limits.bits) - 1), f"u{dtype.itemsize}").view(dtype)
    return np.array(value, dtype)


def floating_operands(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Both operands in a floating type: whole numbers become the default one, as for a division."""
    first, second = operands(first, second)
    if first.dtype.category != FLOATING:
        default = dtypes.get_default_dtype()
        return first.to(default), second.to(default)
    return first, second


def floating(value: Tensor) -> Tensor:
    """The tensor itself where its type is floating, else in the default floating type."""
    if value.array.dtype.kind == "f" or value.dtype.category == FLOATING:
        return value
    return value.to(dtypes.get_default_dtype())


__all__ = [
    "BOOL", "FLOATING", "INTEGRAL", "as_operand", "can_cast", "floating", "floating_operands",
    "operands", "promote_types", "result_type", "scalar_dtype",
]  # fmt: skip
