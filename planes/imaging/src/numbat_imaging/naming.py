"""File names of written volumes: series number, description, and what tells siblings apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from numbat_imaging.series.instance import Instance
from numbat_imaging.series.splitting import Stack

_UNSAFE = re.compile(r"[^A-Za-z0-9+=-]+")


def safe(text: str) -> str:
    """The text with everything but letters, digits, + - = turned into single underscores."""
    return _UNSAFE.sub("_", text).strip("_")


def stems(stacks: Sequence[Stack]) -> list[str]:
    """One name for each stack, all different, in the same order."""
    names = [stem(stack) for stack in stacks]
    taken: dict[str, int] = {}
    unique = []
    for name in names:
        taken[name] = taken.get(name, 0) + 1
        unique.append(name if names.count(name) == 1 else f"{name}_{taken[name]}")
    return unique


def stem(stack: Stack) -> str:
    """The name of one stack, such as "5_T1_SAG_e2"."""
    first = stack.instances[0]
    number = "" if first.series_number is None else str(first.series_number)
    parts = [number, safe(first.series_description) or safe(first.modality) or "series"]
    parts += [_suffix(name, value, first) for name, value in stack.differs_by]
    return "_".join(part for part in parts if part)


def _suffix(name: str, value: str, first: Instance) -> str:
    if name == "echo":
        number = first.echo_number
        return f"e{number}" if number else f"te{safe(value)}"
    if name == "image type":
        return (
            safe(first.image_type[2])
            if len(first.image_type) == 3
            else safe("-".join(first.image_type[2:]))
        )
    if name == "orientation":
        return f"o{value}"
    if name in ("matrix", "reconstruction kernel", "colour"):
        return safe(value)
    return ""
