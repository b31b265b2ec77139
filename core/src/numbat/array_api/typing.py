"""Element types by the array API standard: promotion, which takes no heed of axes, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np

import numbat.ops as ops
from numbat.tensors import dtypes
from numbat.tensors.dtypes import BOOL, FLOATING, DType, as_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

DEFAULT_INT = dtypes.int64


def promoted(first: DType, second: DType) -> DType:
    """The type in which two meet: within a kind the larger one, signed and unsigned the signed one
    that
    holds both.

    Raises CORE-0106 across kinds, where the standard leaves it open and a choice would be a guess.
    """
    if first is second:
        return first
    if first.category != second.category or first.category == BOOL:
        raise refuse("CORE-0106", first=first.name, second=second.name)
    if first.category == FLOATING:
        return _wider_float(first, second)
    if first.is_signed == second.is_signed:
        return first if first.itemsize >= second.itemsize else second
    signed, unsigned = (first, second) if first.is_signed else (second, first)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return {1: dtypes.int16, 2: dtypes.int32, 4: dtypes.int64}[unsigned.itemsize]


def _wider_float(first: DType, second: DType) -> DType:
    if dtypes.float64 in (first, second):
        return dtypes.float64
    return dtypes.float32


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type in which all meet; Python numbers take the type of the others, where it has their
    kind.

    Raises CORE-0106.
    """
    found: DType | None = None
    numbers = []
    for one in arrays_and_dtypes:
        if isinstance(one, (bool, int, float)):
            numbers.append(one)
            continue
        mine = one.dtype if isinstance(one, Tensor) else as_dtype(one)
        found = mine if found is None else promoted(found, mine)
    if found is None:
        from numbat.tensors.promotion import result_type as of_numbers

        return of_numbers(*numbers)
    for one in numbers:
        kind = 0 if isinstance(one, bool) else 1 if isinstance(one, int) else 2
        if kind > found.category and not (kind == 2 and found.category == 1):
            raise refuse("CORE-0106", first=type(one).__name__, second=found.name)
        if kind == 2 and found.category == 1:
            found = dtypes.get_default_dtype()
    return found


def together(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of the type in which the values meet."""
    common = result_type(*values)
    return tuple(
        one.to(common) if isinstance(one, Tensor) else wrap(np.asarray(one, common.numpy))
        for one in values
    )


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The tensor in another type; a copy also where it has it, unless `copy` is false."""
    from numbat.tensors.device import check_device

    check_device(device)
    chosen = as_dtype(dtype)
    if chosen is x.dtype:
        return ops.clone(x) if copy else x
    return x.to(chosen)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion of both types gives the second one."""
    source = from_.dtype if isinstance(from_, Tensor) else as_dtype(from_)
    target = as_dtype(to)
    if source.category != target.category:
        return False
    return promoted(source, target) is target


def finfo(type: Any, /) -> dtypes.finfo:
    """The limits of a floating type (CORE-0102 for another)."""
    found: Any = dtypes.finfo(type.dtype if isinstance(type, Tensor) else type)
    found.dtype = as_dtype(found.dtype)
    return found


def iinfo(type: Any, /) -> dtypes.iinfo:
    """The limits of a whole-number type (CORE-0102 for another)."""
    found: Any = dtypes.iinfo(type.dtype if isinstance(type, Tensor) else type)
    found.dtype = as_dtype(found.dtype)
    return found


_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
          "complex floating", "numeric")  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is another one, or of a kind that the standard names, or of one of several.

    Raises CORE-0247 for a kind that it does not name.
    """
    chosen = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(chosen, one) for one in kind)
    if not isinstance(kind, str):
        return chosen is as_dtype(kind)
    if kind not in _KINDS:
        raise refuse(
            "CORE-0247", operator="isdtype", argument="kind", value=kind, known=list(_KINDS)
        )
    return kind in kinds_of(chosen)


def kinds_of(dtype: DType) -> set[str]:
    """The standard's names for a type's kinds."""
    if dtype.category == BOOL:
        return {"bool"}
    if dtype.category == FLOATING:
        return {"real floating", "numeric"}
    return {"signed integer" if dtype.is_signed else "unsigned integer", "integral", "numeric"}


def plain(x: Any) -> Array:
    """The array of a tensor."""
    array: Array = x.array if isinstance(x, Tensor) else np.asarray(x)
    return array
