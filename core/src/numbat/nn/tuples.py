"""Options that are one number or one number an axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["repeated"]


def repeated(value: Any, times: int) -> tuple[Any, ...]:
    """The numbers given, or one number as often as there are axes."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * times
