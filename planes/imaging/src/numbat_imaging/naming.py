"""File names of written volumes: series number, description, and what tells siblings apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from numbat_imaging.series.instance import Instance
from numbat_imaging.series.splitting import Stack

#: Room is left for suffixes such as ".nii.gz" within the 255 bytes that file systems allow.
_LONGEST_STEM = 120

_UNSAFE = re.compile(r"[^A-Za-z0-9+=-]+")


def safe(text: str) -> str:
    """The text with everything but letters, digits, + - = turned into single underscores."""
    return _UNSAFE.sub("_", text).strip("_")


def stems(stacks: Sequence[Stack]) -> list[str]:
    """One name for each stack, in the same order, all different whatever their letter case."""
    return unique_names([stem(stack) for stack in stacks])


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, those that several share numbered from 1; no number makes another's name."""
    # Some file systems take "T1" and "t1" for one name.
    shared = Counter(name.casefold() for name in names)
    taken = {name for name, count in shared.items() if count == 1}
    unique = []
    for name in names:
        shown, number = name, 0
        while shared[name.casefold()] > 1 and (not number or shown.casefold() in taken):
            number += 1
            shown = f"{name}_{number}"
        taken.add(shown.casefold())
        unique.append(shown)
    return unique


def stem(stack: Stack) -> str:
    """The name of one stack, such as "5_T1_SAG_e2"."""
    first = stack.instances[0]
    number = "" if first.series_number is None else str(first.series_number)
    parts = [number, safe(first.series_description) or safe(first.modality) or "series"]
    parts += [_suffix(name, value, first) for name, value in stack.differs_by]
    return "_".join(part for part in parts if part)[:_LONGEST_STEM]


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
