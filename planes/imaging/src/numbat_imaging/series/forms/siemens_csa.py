"""The CSA headers of Siemens: named values in a private binary form, and the protocol in them.

Source: the format is not published; it is as nibabel and GDCM describe it. All numbers are little
endian whatever the file is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_registries import Refusal, refuse

Header = Mapping[str, tuple[str, ...]]

_CREATOR = "SIEMENS CSA HEADER"
_IMAGE, _SERIES = 0x10, 0x20

#: Real headers have about a hundred entries; no entry has more values than this.
_MOST_TAGS, _MOST_ITEMS = 1024, 4096

#: Name, number of values, VR, type, number of items, mark.
_TAG = struct.Struct("<64si4siii")
_ITEM = struct.Struct("<4i")
_COUNTS = struct.Struct("<II")

#: The marks that close every tag: a reader that lost its place meets another number.
_MARKS = (77, 205)


def image_header(ds: Dataset) -> Header | None:
    """(0029,xx10) of SIEMENS CSA HEADER, about one image; None without it.

    Raises IMG-1606 for a damaged header.
    """
    return _header(ds, _IMAGE)


def series_header(ds: Dataset) -> Header | None:
    """(0029,xx20) of SIEMENS CSA HEADER, about the series and its protocol; None without it.

    Raises IMG-1606 for a damaged header.
    """
    return _header(ds, _SERIES)


def image_entry(ds: Dataset, name: str) -> tuple[str, ...]:
    """One entry of the image header of an image that may do without it.

    Empty where there is no header, no such entry, or damage before the end of the entry. The rest
    of the header is not looked at: of ten thousand single slices, it would cost as much as reading
    them.
    """
    content = _content(ds, _IMAGE)
    at = content.find(name.encode() + b"\0") if content is not None else -1
    if content is None or at < 0 or content[:4] != b"SV10":
        return ()
    try:
        return _Reader(content, _IMAGE, at=at).tag()[1]
    except Refusal:
        return ()


def _header(ds: Dataset, element: int) -> Header | None:
    content = _content(ds, element)
    return read_csa(content, element=element) if content is not None else None


def _content(ds: Dataset, element: int) -> bytes | None:
    content = elements.private(ds, 0x0029, _CREATOR, element, vr="OB")
    return content if isinstance(content, bytes) else None


# The files of a series ask for one series header again and again.
@lru_cache(maxsize=64)
def read_csa(content: bytes, *, element: int = _IMAGE) -> Header:
    """The values of every entry of a CSA header by name, as text without padding.

    An entry without values is an empty tuple. Both forms are read: CSA2, which begins with SV10,
    and CSA1, which begins with the number of entries.

    Raises IMG-1606 when counts or lengths lead out of the header, or a mark is not where it
    belongs.
    """
    return _Reader(content, element).read()


class _Reader:
    """One pass over a header that may be damaged: nothing is read or counted past its end."""

    def __init__(self, content: bytes, element: int, *, at: int | None = None) -> None:
        self.content, self.element = content, element
        self.is_csa2 = content[:4] == b"SV10"
        self.at = at if at is not None else 8 if self.is_csa2 else 0
        #: What CSA1 adds to the length of every item: the number of items of the first entry.
        self.surplus: int | None = None

    def read(self) -> dict[str, tuple[str, ...]]:
        count, mark = self._unpack(_COUNTS)
        if not 0 < count <= _MOST_TAGS:
            self._refuse(f"{count} entries")
        self._check(mark)
        found: dict[str, tuple[str, ...]] = {}
        for _ in range(count):
            name, values = self.tag()
            found.setdefault(name, values)
        return found

    def tag(self) -> tuple[str, tuple[str, ...]]:
        name, multiplicity, _, _, items, mark = self._unpack(_TAG)
        self._check(mark)
        if not 0 <= items <= _MOST_ITEMS:
            self._refuse(f"an entry of {items} items")
        if self.surplus is None:
            self.surplus = items
        spans = self._spans(items)
        # Items beyond the number of values are there, and empty.
        most = multiplicity if multiplicity > 0 else items
        texts = [_text(self.content[start:end]) for start, end in spans[:most] if end > start]
        return _text(name), tuple(text for text in texts if text)

    def _spans(self, items: int) -> list[tuple[int, int]]:
        """Where each item of an entry begins and ends."""
        # A series has a hundred thousand items, nearly all of them empty.
        at, whole, unpack = self.at, len(self.content), _ITEM.unpack_from
        spans = []
        for _ in range(items):
            if at + _ITEM.size > whole:
                self._refuse_short(_ITEM.size, whole - at)
            first, second, _, _ = unpack(self.content, at)
            at += _ITEM.size
            length = second if self.is_csa2 else first - (self.surplus or 0)
            if length < 0:
                self._refuse(f"a value of {length} bytes")
            if at + length > whole:
                self._refuse_short(length, whole - at)
            spans.append((at, at + length))
            # The last value may lack its padding.
            at = min(at + length + -length % 4, whole)
        self.at = at
        return spans

    def _unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        left = len(self.content) - self.at
        if form.size > left:
            self._refuse_short(form.size, left)
        found = form.unpack_from(self.content, self.at)
        self.at += form.size
        return found

    def _check(self, mark: int) -> None:
        if mark not in _MARKS:
            self._refuse("no mark where one belongs")

    def _refuse_short(self, length: int, left: int) -> NoReturn:
        self._refuse(f"{length} bytes belong where {max(left, 0)} are left")

    def _refuse(self, reason: str) -> NoReturn:
        raise refuse("IMG-1606", element=f"(0029,xx{self.element:02X})", reason=reason)


def _text(value: bytes) -> str:
    return value.partition(b"\0")[0].decode("latin-1").strip()


_BEGIN, _END, _SLICES = "### ASCCONV BEGIN", "### ASCCONV END ###", "sSliceArray.asSlice["
_SLICE = re.compile(
    r"^sSliceArray\.asSlice\[(\d{1,4})\]\.(?:sPosition\.d(Sag|Cor|Tra)|\w+)[\w.]*\s*="
    r"\s*([-+.\deE]+)",
    re.MULTILINE,
)


def slice_centres(header: Header) -> tuple[tuple[float, float, float], ...]:
    """The centres of the slices that the protocol in a series header asks for, patient LPS mm.

    In the order of the protocol; empty without a protocol or without slices. Coordinates that are
    zero are not written.
    """
    for name in ("MrPhoenixProtocol", "MrProtocol"):
        for text in header.get(name, ()):
            return _centres(text)
    return ()


@lru_cache(maxsize=16)
def _centres(protocol: str) -> tuple[tuple[float, float, float], ...]:
    found: dict[int, dict[str, float]] = {}
    for index, axis, value in _SLICE.findall(_slice_lines(protocol)):
        coordinates = found.setdefault(int(index), {})
        if axis:
            try:
                coordinates[axis] = float(value)
            except ValueError:
                return ()
    if sorted(found) != list(range(len(found))):
        return ()
    centres = [found[k] for k in range(len(found))]
    return tuple((at.get("Sag", 0.0), at.get("Cor", 0.0), at.get("Tra", 0.0)) for at in centres)


def _slice_lines(protocol: str) -> str:
    """The lines of the protocol from the first that tells of a slice to the last."""
    begin = protocol.rfind(_BEGIN)
    end = protocol.find(_END, begin)
    first = protocol.find(_SLICES, begin, end)
    if begin < 0 or end < 0 or first < 0:
        return ""
    last = protocol.rfind(_SLICES, first, end)
    newline = protocol.find("\n", last, end)
    return protocol[first : end if newline < 0 else newline]
