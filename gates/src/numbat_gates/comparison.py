"""How a measured value is held against a required one: exactly, or within a tolerance.

Arrays of numpy are compared by their own operators; plain numbers and nested lists here. Shapes
are never broadcast, unsigned numbers never wrap, and nothing equals an undefined number.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KEYS_TOLD = 6


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference found and where; `fault` says why there is none to speak of."""

    worst: float
    place: tuple[int, ...] = ()
    fault: str = ""


def are_equal(measured: Any, required: Any) -> tuple[bool, str]:
    """Whether the two are the same value of the same shape, and in words why not."""
    if _is_array(measured) or _is_array(required):
        shapes = shape_of(measured), shape_of(required)
        if shapes[0] != shapes[1]:
            return False, f"shape {_shape_text(shapes[0])}, required {_shape_text(shapes[1])}"
        same = measured == required
        return bool(same.all()) if hasattr(same, "all") else bool(same), ""
    if _is_plain_sequence(measured) and _is_plain_sequence(required):
        if len(measured) != len(required):
            return False, f"{len(measured)} items, required {len(required)}"
        for index, (one, other) in enumerate(zip(measured, required, strict=True)):
            same, why = are_equal(one, other)
            if not same:
                return False, f"item {index}" + (f": {why}" if why else "")
        return True, ""
    if isinstance(measured, Mapping) and isinstance(required, Mapping):
        return _equal_mappings(measured, required)
    undefined = is_undefined(measured) or is_undefined(required)
    return bool(measured == required), "undefined number" if undefined else ""


def _equal_mappings(measured: Mapping[Any, Any], required: Mapping[Any, Any]) -> tuple[bool, str]:
    if set(measured) != set(required):
        apart = sorted(map(str, set(measured) ^ set(required)))
        return False, f"keys in one of the two only: {', '.join(apart[:_KEYS_TOLD])}"
    for key in measured:
        same, why = are_equal(measured[key], required[key])
        if not same:
            return False, f"{key}" + (f": {why}" if why else "")
    return True, ""


def difference(measured: Any, required: Any) -> Difference:
    """The largest absolute difference between two numbers or arrays of numbers.

    A difference of shape, an empty array or an undefined number is a fault, never a small number.
    """
    shapes = shape_of(measured), shape_of(required)
    if shapes[0] != shapes[1]:
        return Difference(
            math.inf, fault=f"shape {_shape_text(shapes[0])}, required {_shape_text(shapes[1])}"
        )
    if 0 in shapes[0]:
        return Difference(math.inf, fault="nothing to compare: the array is empty")
    if _is_array(measured) and _is_array(required):
        return _array_difference(measured, required)
    return _plain_difference(_plain(measured), _plain(required))


def shape_of(value: Any) -> tuple[int, ...]:
    """The extents of an array or of nested lists; () for a single value."""
    if _is_array(value):
        return tuple(int(extent) for extent in value.shape)
    if _is_plain_sequence(value):
        return (len(value), *(shape_of(value[0]) if len(value) else ()))
    return ()


def is_undefined(value: Any) -> bool:
    """Whether a number is NaN, of whatever type."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def _array_difference(measured: Any, required: Any) -> Difference:
    if not measured.shape:
        return _plain_difference(measured.item(), required.item())
    # float64 first: the difference of unsigned integers would wrap around to a small number.
    kind = "complex128" if "c" in (measured.dtype.kind, required.dtype.kind) else "float64"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        apart = abs(measured.astype(kind) - required.astype(kind))
    # Infinities that are equal subtract to NaN, and are equal.
    apart[measured == required] = 0.0
    flat = int(apart.argmax())
    return _judged(float(apart.flat[flat]), _unravel(flat, shape_of(apart)))


def _plain_difference(measured: Any, required: Any) -> Difference:
    worst = -1.0
    place: tuple[int, ...] = ()
    for index, one, other in _pairs(measured, required, ()):
        if isinstance(one, bool | str) or isinstance(other, bool | str):
            return Difference(math.inf, index, fault="not a number")
        apart = 0.0 if one == other else abs(one - other)
        if is_undefined(apart):
            return _judged(math.nan, index)
        if apart > worst:
            worst, place = float(apart), index
    return _judged(worst, place)


def _judged(worst: float, place: tuple[int, ...]) -> Difference:
    return Difference(worst, place, fault="undefined number" if math.isnan(worst) else "")


def _pairs(
    measured: Any, required: Any, place: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    if _is_plain_sequence(measured) and _is_plain_sequence(required):
        for index, (one, other) in enumerate(zip(measured, required, strict=True)):
            yield from _pairs(one, other, (*place, index))
    else:
        yield place, measured, required


def _plain(value: Any) -> Any:
    return value.tolist() if _is_array(value) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "astype")


def _is_plain_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place: list[int] = []
    for extent in reversed(shape):
        flat, index = divmod(flat, extent)
        place.append(index)
    return tuple(reversed(place))


def _shape_text(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "of a single value"
