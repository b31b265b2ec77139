"""Message templates: "{gap_mm} mm" filled from typed evidence."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

_LISTED = 6


def names_in(template: str) -> set[str]:
    """The field names that a template uses."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The template with each field in a form that people read: 6 significant digits, short lists."""
    return template.format_map(_Readable(values))


class _Readable(dict[str, str]):
    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({name: readable(value) for name, value in values.items()})

    def __missing__(self, key: str) -> str:
        return "(not given)"


def readable(value: Any) -> str:
    """One value as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        shown = ", ".join(readable(item) for item in value[:_LISTED])
        more = len(value) - _LISTED
        return f"{shown} … and {more} more" if more > 0 else shown
    return str(value)
