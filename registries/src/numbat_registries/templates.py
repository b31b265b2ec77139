"""Message templates: "{gap_mm} mm" filled from typed evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

#: The planes that are installed are told whole; the slices of a series are not.
_LISTED = 12


def template_faults(template: str, known: Iterable[str]) -> list[str]:
    """What keeps a template from being filled, one line each: it may hold plain {names} alone."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        return [f"text {template!r} is no template: {error}"]
    faults = []
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if name not in known:
            faults.append(f"text uses {{{name}}}, which is not a field")
        if spec or conversion:
            faults.append(f"text formats {{{name}}} itself; units and digits are the renderer's")
    return faults


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The template with each field as people read it: 6 significant digits, short lists."""
    return template.format_map(_Readable(values))


class _Readable(dict[str, str]):
    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self.values_given = values

    def __missing__(self, key: str) -> str:
        return readable(self.values_given[key]) if key in self.values_given else "(not given)"


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
    if isinstance(value, Mapping):
        return readable([f"{name}: {readable(item)}" for name, item in value.items()])
    text = str(value)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    # Evidence may come from a hostile file: no line break or terminal command gets into a text.
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
