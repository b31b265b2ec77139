"""JSON for people: a member of an object, an object or row of a list, each on a line of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Of one line, the encoder in C is used; that which indents takes ten times as long.
_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_text(value: Any, *, margin: str = "") -> str:
    """JSON-safe data as text: objects in objects indented, and lists of objects or rows by entry.

    Raises ValueError for a number that JSON has no word for.
    """
    inner = f"{margin}  "
    if isinstance(value, Mapping) and value:
        parts = [f"{_line(name)}: {json_text(part, margin=inner)}" for name, part in value.items()]
        return _enclosed("{}", parts, margin)
    if isinstance(value, list) and value and isinstance(value[0], Mapping | list):
        return _enclosed("[]", [_line(part) for part in value], margin)
    return _line(value)


def _enclosed(marks: str, parts: list[str], margin: str) -> str:
    inside = f",\n{margin}  ".join(parts)
    return f"{marks[0]}\n{margin}  {inside}\n{margin}{marks[1]}"
