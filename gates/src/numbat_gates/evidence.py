"""Measured and required values as JSON data, small enough to be kept with every report.

numpy and its kin are read by their own methods and never imported here. Undefined numbers become
objects with a reason; long arrays become a summary with a digest; objects of unknown types give
only their type, for their text might hold what belongs to a patient.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

#: Values beyond these sizes are summarised: a report is evidence to read, not a copy of the data.
ITEMS_SHOWN = 64
CHARACTERS_SHOWN = 2000
_DEPTH_SHOWN = 6


def to_json(value: Any, *, depth: int = 0) -> Any:
    """The value as JSON data without NaN, infinity or more than a screen of numbers."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return to_json(value.value, depth=depth)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, str):
        return _text(str(value))
    if depth >= _DEPTH_SHOWN:
        return {"type": _type_name(value)}
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return _array(value, depth)
    return _composite(value, depth)


def _composite(value: Any, depth: int) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if isinstance(value, Fraction | UUID | timedelta):
        return str(value)
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else {"undefined": "not a finite number"}
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, complex):
        return {"real": _number(value.real), "imaginary": _number(value.imag)}
    if is_dataclass(value) and not isinstance(value, type):
        return _mapping({item.name: getattr(value, item.name) for item in fields(value)}, depth)
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if isinstance(value, Set):
        return _sequence(sorted(value, key=lambda item: (str(type(item)), str(item))), depth)
    if isinstance(value, Sequence):
        return _sequence(value, depth)
    return {"type": _type_name(value)}


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """JSON text with sorted keys in UTF-8; a NaN that slipped through is an error, not text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)


def _number(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"undefined": "not a number" if math.isnan(value) else "infinite"}


def _text(value: str) -> str:
    # Lone surrogates come out of badly encoded files and are no UTF-8.
    value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(value) <= CHARACTERS_SHOWN:
        return value
    return f"{value[:CHARACTERS_SHOWN]} … ({len(value)} characters)"


def _array(value: Any, depth: int) -> Any:
    size = math.prod(value.shape)
    if size > ITEMS_SHOWN:
        return {
            "shape": [int(extent) for extent in value.shape],
            "dtype": str(value.dtype),
            "sha256": hashlib.sha256(value.tobytes()).hexdigest(),
        } | _extremes(value)
    # A scalar or a short array: its own Python values, by the rules above.
    return to_json(value.tolist(), depth=depth + (1 if value.shape else 0))


def _extremes(value: Any) -> dict[str, Any]:
    try:
        return {"min": to_json(value.min().item()), "max": to_json(value.max().item())}
    except (TypeError, ValueError, AttributeError):
        return {}


def _sequence(value: Sequence[Any], depth: int) -> Any:
    shown = [to_json(item, depth=depth + 1) for item in value[:ITEMS_SHOWN]]
    if len(value) <= ITEMS_SHOWN:
        return shown
    return {"items": len(value), "first": shown}


def _mapping(value: Mapping[Any, Any], depth: int) -> Any:
    items = list(value.items())
    shown = {str(key): to_json(item, depth=depth + 1) for key, item in items[:ITEMS_SHOWN]}
    return shown if len(items) <= ITEMS_SHOWN else {"items": len(items), "first": shown}


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
