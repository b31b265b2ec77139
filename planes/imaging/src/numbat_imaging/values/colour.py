"""Colours as 8-bit red, green and blue, whatever they are stored as (PS3.3 C.7.6.3.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from pydicom import Dataset
from pydicom.pixels.processing import convert_color_space

from numbat_imaging.intake import elements
from numbat_imaging.values.description import YBR_422, Pixels
from numbat_registries import refuse

_COLOURS = ("Red", "Green", "Blue")
_DISCRETE, _LINEAR, _INDIRECT = range(3)


def as_rgb(samples: Pixels, photometric: str, *, file: str) -> Pixels:
    """Stored colours of 8 bits as red, green, blue, (rows, columns, 3).

    Raises IMG-1417 for a colour form that only a JPEG 2000 stream can have.
    """
    if photometric == "RGB":
        return samples
    if photometric not in ("YBR_FULL", YBR_422):
        raise refuse(
            "IMG-1417", file=file, photometric=photometric, stream="no JPEG 2000 stream at all"
        )
    converted: Pixels = convert_color_space(samples, "YBR_FULL", "RGB")
    return converted


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by index: `colours` is (entries, 3) of 8 bits, the first for stored value `first`."""

    first: int
    colours: Pixels

    def of(self, samples: Pixels) -> Pixels:
        """Indices as red, green, blue; those outside take the colour at the nearer end."""
        places = samples.astype(np.int64) - self.first
        found: Pixels = self.colours[np.clip(places, 0, len(self.colours) - 1)]
        return found


def palette_of(ds: Dataset, *, file: str) -> Palette:
    """The palette of a PALETTE COLOR image, plain or segmented.

    Entries of 16 bits are taken to 8 as displays do. Raises IMG-1418 for a palette that is absent,
    cut off, or whose colours disagree. Source: PS3.3 C.7.6.3.1.5, C.7.9.2.
    """
    described = {_descriptor(ds, colour, file=file) for colour in _COLOURS}
    if len(described) != 1:
        _refuse(file, "the three colours have tables of different form")
    entries, first, bits = described.pop()
    tables = [_table(ds, colour, entries, bits, file=file) for colour in _COLOURS]
    return Palette(first, _eight_bits(np.stack(tables, axis=1), bits, file=file))


def _descriptor(ds: Dataset, colour: str, *, file: str) -> tuple[int, int, int]:
    data = elements.words(ds, f"{colour}PaletteColorLookupTableDescriptor")
    if data is None or len(data) != 6:
        _refuse(file, "a descriptor is absent or has not three values")
    entries, first, bits = (int(word) for word in np.frombuffer(data, "<u2"))
    if bits not in (8, 16):
        _refuse(file, f"entries of {bits} bits")
    return entries or 0x10000, first, bits


def _table(ds: Dataset, colour: str, entries: int, bits: int, *, file: str) -> Pixels:
    plain = elements.words(ds, f"{colour}PaletteColorLookupTableData")
    if plain is not None:
        return _entries(plain, entries, bits, file=file)
    segmented = elements.words(ds, f"Segmented{colour}PaletteColorLookupTableData")
    if segmented is None:
        _refuse(file, "a table is absent")
    return expanded(np.frombuffer(segmented, f"<u{bits // 8}"), entries, file=file)


def _entries(data: bytes, entries: int, bits: int, *, file: str) -> Pixels:
    if len(data) == 2 * entries:
        return np.frombuffer(data, "<u2")
    if bits == 8 and len(data) == entries + entries % 2:
        return np.frombuffer(data, "u1", entries)
    _refuse(file, f"{len(data)} bytes for {entries} entries of {bits} bits")


def expanded(words: Pixels, entries: int, *, file: str) -> Pixels:
    """A segmented table as its `entries` values (PS3.3 C.7.9.2).

    `words` are the entries of the data, 8 or 16 bits wide.
    """
    values: list[int] = []
    numbers = [int(word) for word in words]
    try:
        _expand(numbers, words.dtype.itemsize, values, entries, file=file)
    except IndexError:
        _refuse(file, "a segment is cut off")
    if len(values) != entries:
        _refuse(file, f"{len(values)} entries where {entries} are described")
    return np.array(values, np.uint16)


def _expand(words: list[int], width: int, values: list[int], entries: int, *, file: str) -> None:
    position = 0
    while len(values) < entries and position + 1 < len(words):
        if words[position] != _INDIRECT:
            position = _segment(words, position, values, entries, file=file)
            continue
        # Copies of segments: how many, and the byte that the first begins at, low word first.
        size = 4 // width
        offset = bytes(
            byte
            for word in words[position + 2 : position + 2 + size]
            for byte in word.to_bytes(width, "little")
        )
        begin = int.from_bytes(offset, "little") // width
        for _ in range(words[position + 1]):
            if words[begin] == _INDIRECT:
                _refuse(file, "an indirect segment points to another")
            begin = _segment(words, begin, values, entries, file=file)
        position += 2 + size


def _segment(words: list[int], position: int, values: list[int], entries: int, *, file: str) -> int:
    kind, count = words[position], words[position + 1]
    if kind not in (_DISCRETE, _LINEAR) or not 1 <= count <= entries - len(values):
        _refuse(file, "a segment is empty, of no known kind, or runs past the table")
    if kind == _DISCRETE:
        if position + 2 + count > len(words):
            _refuse(file, "a segment is cut off")
        values += words[position + 2 : position + 2 + count]
        return position + 2 + count
    if not values:
        _refuse(file, "a linear segment has nothing to begin from")
    steps = np.linspace(values[-1], words[position + 2], count + 1)[1:]
    values += [int(step) for step in np.round(steps)]
    return position + 3


def _eight_bits(table: Pixels, bits: int, *, file: str) -> Pixels:
    if bits == 8:
        return (table & 0xFF).astype(np.uint8)
    words = table.astype(np.uint32)
    if words.max() <= 0xFF:
        _refuse(file, "entries of 16 bits hold values of 8: black, or 8 bits mislabelled")
    if not np.any(words & 0xFF):
        return (words >> 8).astype(np.uint8)
    return ((words * 255 + 0x7FFF) // 0xFFFF).astype(np.uint8)


def _refuse(file: str, reason: str) -> NoReturn:
    raise refuse("IMG-1418", file=file, reason=reason)
