"""Palettes and colour spaces by their elements; part of IMG-G27."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.values.colour import as_rgb, expanded, palette_of

_COLOURS = ("Red", "Green", "Blue")


def palettes(check: Check) -> None:
    """Every width of entries, every form of table, and each reason to refuse one."""
    _widths(check)
    _indices(check)
    _segments(check)
    _refused(check)
    _refused_segments(check)
    _spaces(check)


def _palette(descriptor: Sequence[int], *tables: NDArray[Any], prefix: str = "") -> Dataset:
    """One table for all colours, or one for each."""
    ds = Dataset()
    for number, colour in enumerate(_COLOURS):
        table = tables[number % len(tables)]
        ds.add_new(f"{colour}PaletteColorLookupTableDescriptor", "US", list(descriptor))
        ds.add_new(f"{prefix}{colour}PaletteColorLookupTableData", "OW", table.tobytes())
    return ds


def _segmented(descriptor: Sequence[int], words: NDArray[Any]) -> Dataset:
    return _palette(descriptor, words, prefix="Segmented")


def _red(ds: Dataset) -> list[int]:
    colours: list[int] = palette_of(ds, file="a file").colours[:, 0].tolist()
    return colours


def _widths(check: Check) -> None:
    five = [9, 8, 7, 6, 5]
    cases: tuple[tuple[str, list[int], NDArray[Any], list[int]], ...] = (
        ("bytes and their padding", [5, 0, 8], np.array([*five, 0], "u1"), five),
        ("bytes, an even number", [4, 0, 8], np.array(five[:4], "u1"), five[:4]),
        ("a byte to a word", [5, 0, 8], np.array(five, "<u2"), five),
        ("a byte to a word, both the same", [5, 0, 8], np.array(five, "<u2") * 257, five),
        ("words of which the upper byte counts", [5, 0, 16], np.array(five, "<u2") << 8, five),
        ("words times 257", [5, 0, 16], np.array(five, "<u2") * 257, five),
        ("the smallest word of 16 bits", [2, 0, 16], np.array([0, 256], "<u2"), [0, 1]),
        (
            "words rounded to the nearest of 255",
            [7, 0, 16],
            np.array([0, 128, 129, 385, 386, 65406, 65407], "<u2"),
            [0, 0, 1, 1, 2, 254, 255],
        ),
        ("65536 words", [0, 0, 16], np.full(65536, 771, "<u2"), [3] * 65536),
    )
    for says, descriptor, table, required in cases:
        check.equal(f"a palette of {says}", _red(_palette(descriptor, table)), required)
    tables = [np.array([k, 10 + k, 20 + k, 30 + k], "u1") for k in (1, 2, 3)]
    colours = palette_of(_palette([4, 7, 8], *tables), file="a file")
    check.equal("red, green and blue", colours.colours[1].tolist(), [11, 12, 13])
    check.equal("the first stored value", colours.first, 7)


def _indices(check: Check) -> None:
    tables = [np.array([k, 10 + k, 20 + k, 30 + k], "u1") for k in (1, 2, 3)]
    palette = palette_of(_palette([4, 7, 8], *tables), file="a file")
    stored = np.array([[0, 6, 7, 8], [9, 10, 11, 255]], "u1")
    found = palette.of(stored)[..., 0].tolist()
    check.equal("colours of indices inside and outside", found, [[1, 1, 1, 11], [21, 31, 31, 31]])


def _segments(check: Check) -> None:
    cases: tuple[tuple[str, str, list[int], list[int]], ...] = (
        ("a line upwards", "u2", [0, 1, 10, 1, 3, 20], [10, 13, 17, 20]),
        ("a line downwards", "u2", [0, 1, 20, 1, 3, 10], [20, 17, 13, 10]),
        ("a level line", "u1", [0, 1, 20, 1, 2, 20], [20, 20, 20]),
        ("one step", "u1", [0, 1, 20, 1, 1, 90], [20, 90]),
        ("a copy from the middle", "u2", [0, 2, 5, 6, 0, 1, 9, 2, 1, 8, 0], [5, 6, 9, 9]),
        ("the same in bytes", "u1", [0, 2, 5, 6, 0, 1, 9, 2, 1, 4, 0, 0, 0], [5, 6, 9, 9]),
        (
            "something after a copy",
            "u2",
            [0, 2, 5, 6, 2, 1, 0, 0, 0, 1, 7],
            [5, 6, 5, 6, 7],
        ),
        (
            "something after a copy in bytes",
            "u1",
            [0, 2, 5, 6, 2, 1, 0, 0, 0, 0, 1, 2, 8],
            [5, 6, 5, 6, 7, 8],
        ),
        ("two copies of one segment each", "u2", [0, 1, 5, 2, 1, 0, 0, 2, 1, 0, 0], [5, 5, 5]),
        ("a copied line", "u2", [0, 1, 0, 1, 2, 4, 2, 1, 6, 0], [0, 2, 4, 4, 4]),
        ("words behind the table", "u2", [0, 2, 5, 6, 0, 1, 9], [5, 6]),
    )
    for says, dtype, words, required in cases:
        found = expanded(np.array(words, dtype), len(required), file="a file")
        check.equal(f"segments: {says}", found.tolist(), required)
    far = [0, 254, *range(254), 0, 1, 77, 2, 1, 0, 1, 0, 0]
    found = expanded(np.array(far, "u1"), 256, file="a file")
    check.equal("segments: a copy from byte 256", found.tolist()[-3:], [253, 77, 77])
    wide = np.array([0, 2, 0, 257, 1, 2, 771], "<u2")
    check.equal("a segmented palette of 16 bits", _red(_segmented([4, 0, 16], wide)), [0, 1, 2, 3])
    narrow = np.array([0, 2, 1, 2, 1, 2, 4, 0], "u1")
    check.equal("a segmented palette of 8 bits", _red(_segmented([4, 0, 8], narrow)), [1, 2, 3, 4])


def _refused(check: Check) -> None:
    five = np.array([9, 8, 7, 6, 5, 0], "u1")
    other = _palette([5, 0, 8], five)
    other.GreenPaletteColorLookupTableDescriptor = [5, 1, 8]
    two = _palette([5, 0], five)
    without = _palette([5, 0, 8], five)
    del without.BluePaletteColorLookupTableDescriptor
    empty = _palette([5, 0, 8], five)
    del empty.BluePaletteColorLookupTableData
    absent = "a descriptor is absent or has not three values"
    dark = "entries of 16 bits hold values of 8: black, or 8 bits mislabelled"
    for reason, ds in (
        (absent, without),
        (absent, two),
        ("the three colours have tables of different form", other),
        ("entries of 12 bits", _palette([5, 0, 12], five)),
        ("entries of 0 bits", _palette([5, 0, 0], five)),
        ("a table is absent", empty),
        ("6 bytes for 7 entries of 8 bits", _palette([7, 0, 8], five)),
        ("6 bytes for 4 entries of 8 bits", _palette([4, 0, 8], five)),
        ("6 bytes for 5 entries of 16 bits", _palette([5, 0, 16], five)),
        ("6 bytes for 6 entries of 16 bits", _palette([6, 0, 16], five)),
        (dark, _palette([3, 0, 16], np.array([0, 1, 255], "<u2"))),
    ):
        _told(check, reason, lambda ds=ds: palette_of(ds, file="a file"))


def _refused_segments(check: Check) -> None:
    outside = "a segment is empty, of no known kind, or runs past the table"
    cases: tuple[tuple[str, list[int]], ...] = (
        (outside, [0, 0, 5, 5]),
        (outside, [0, 5, 1, 2, 3, 4, 5]),
        (outside, [3, 1, 5, 0]),
        (outside, [0, 1, 5, 1, 4, 9]),
        ("a segment is cut off", [0, 4, 1, 2, 3]),
        ("a segment is cut off", [0, 1, 5, 1, 3]),
        ("a segment is cut off", [0, 1, 5, 2, 1, 90, 0]),
        ("a linear segment has nothing to begin from", [1, 4, 9]),
        ("an indirect segment points to another", [0, 1, 5, 2, 1, 6, 0]),
        ("3 entries where 4 are described", [0, 3, 5, 6, 7]),
        ("3 entries where 4 are described", [0, 3, 5, 6, 7, 0]),
        ("0 entries where 4 are described", [0]),
    )
    for reason, words in cases:
        _told(
            check,
            reason,
            lambda words=words: expanded(np.array(words, "u2"), 4, file="a file"),
            of=f" ({words})",
        )


def _told(check: Check, reason: str, read: Any, *, of: str = "") -> None:
    with check.refuses("IMG-1418", f"refused: {reason}{of}") as caught:
        read()
    if caught.diagnostic is not None:
        check.equal(f"told: {reason}{of}", caught.diagnostic.fields["reason"], reason)


def _spaces(check: Check) -> None:
    samples = np.array([[[10, 20, 30], [200, 128, 128]]], "u1")
    check.equal("red, green and blue as they are", as_rgb(samples, "RGB", file="a"), samples)
    for name in ("YBR_FULL", "YBR_FULL_422"):
        found = as_rgb(samples, name, file="a file")[0, 1].tolist()
        check.equal(f"{name} without chroma is grey", found, [200, 200, 200])
    for name in ("YBR_ICT", "YBR_RCT", "HSV"):
        with check.refuses("IMG-1417", f"{name} outside JPEG 2000") as caught:
            as_rgb(samples, name, file="a file")
        if caught.diagnostic is not None:
            check.equal(f"{name} told", caught.diagnostic.fields["photometric"], name)
