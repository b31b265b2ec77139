"""Where each element of an encoded DICOM file lies, down to items and fragments.

For files that are sound; what reads files of any kind is `numbat_imaging.intake`, and this is kept
apart from it so that a fault of the reader is no fault of what tests it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack, unpack_from

UNDEFINED = 0xFFFFFFFF
ITEM = 0xFFFEE000
PIXEL_DATA = 0x7FE00010

ITEM_END = 0xFFFEE00D

#: Whether VRs are left out, and whether the low byte comes first.
Syntax = tuple[bool, bool]

_LONG = frozenset(("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"))
_SYNTAXES = {
    "1.2.840.10008.1.2": (True, True),
    "1.2.840.10008.1.2.2": (False, False),
    "1.2.840.113619.5.2": (True, True),
}


@dataclass(frozen=True, slots=True)
class Place:
    """One element, item or fragment of an encoded file, by byte offsets.

    `length_at` is where its length field lies, `length_size` bytes wide; `undefined` when that
    field says so. `around` are the starts of the places it lies in, outermost first.
    """

    tag: int
    vr: str
    start: int
    length_at: int
    length_size: int
    value: int
    value_end: int
    stop: int
    undefined: bool
    around: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return self.value_end - self.value


@dataclass(frozen=True, slots=True)
class Splice:
    """Bytes `start` to `stop` of a file replaced by `new`.

    The length fields of the places that start at `around` follow when the size changes.
    """

    start: int
    stop: int
    new: bytes
    around: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementMap:
    """The places of one file: the file meta information, and the data set with all it nests."""

    implicit: bool
    little: bool
    meta: tuple[Place, ...]
    places: tuple[Place, ...]

    @property
    def top(self) -> tuple[Place, ...]:
        """The elements of the data set itself."""
        return tuple(place for place in self.places if not place.around)

    def find(self, tag: int) -> Place | None:
        """The first element of this tag at the top level."""
        return next((p for p in self.places if p.tag == tag and not p.around), None)

    def length_field(self, place: Place, length: int) -> bytes:
        """A length in the width and byte order of a place's own length field."""
        order = "<" if self.little or place.tag >> 16 == 2 else ">"
        if place.length_size == 2:
            return pack(f"{order}H", length & 0xFFFF)
        return pack(f"{order}I", length & UNDEFINED)

    def encoded(self, tag: int, vr: str, value: bytes) -> bytes:
        """An element as this file would have it."""
        order = "<" if self.little else ">"
        value += b"\0" * (len(value) % 2)
        head = pack(f"{order}HH", tag >> 16, tag & 0xFFFF)
        if self.implicit or tag >> 16 == 0xFFFE:
            return head + pack(f"{order}I", len(value)) + value
        if vr in _LONG:
            return head + vr.encode() + pack(f"{order}HI", 0, len(value)) + value
        return head + vr.encode() + pack(f"{order}H", len(value) & 0xFFFF) + value[:0xFFFE]


def map_elements(content: bytes) -> ElementMap:
    """The map of a file with file meta information; a damaged tail stays without places."""
    start = 132 if content[128:132] == b"DICM" else 0
    meta = tuple(_elements(content, start, len(content), (False, True), (), group=2))
    syntax = next((_text(content, p) for p in meta if p.tag == 0x00020010), "")
    implicit, little = _SYNTAXES.get(syntax, (False, True))
    begin = meta[-1].stop if meta else start
    places = tuple(_elements(content, begin, len(content), (implicit, little), ()))
    return ElementMap(implicit, little, meta, places)


def _text(content: bytes, place: Place) -> str:
    return content[place.value : place.value_end].rstrip(b"\0 ").decode("ascii", "replace")


def _elements(
    content: bytes,
    position: int,
    end: int,
    syntax: Syntax,
    around: tuple[int, ...],
    *,
    group: int | None = None,
) -> list[Place]:
    """The elements from `position` on and all they nest, up to a delimiter, `group`'s end or `end`.

    Ends early, without a word, where the bytes are no element.
    """
    found: list[Place] = []
    while position + 8 <= end:
        head = _head(content, position, syntax)
        if head is None or (group is not None and head[0] >> 16 != group) or head[0] == ITEM_END:
            break
        tag, vr, length_at, size, value, length = head
        pixels = tag == PIXEL_DATA and length == UNDEFINED
        nested = vr == "SQ" or (not vr and _begins_item(content, value, syntax))
        undefined = length == UNDEFINED
        value_end = end if undefined else value + length
        inner: list[Place] = []
        if nested or pixels:
            limit = min(value_end, end)
            inner, last = _items(content, value, limit, syntax, (*around, position), pixels)
            value_end = last if undefined else value_end
        elif undefined:
            break
        stop = value_end + 8 * undefined
        if stop > end:
            break
        place = Place(tag, vr, position, length_at, size, value, value_end, stop, undefined, around)
        found += [place, *inner]
        position = stop
    return found


def _head(
    content: bytes, position: int, syntax: Syntax
) -> tuple[int, str, int, int, int, int] | None:
    """Tag, VR, place and size of the length field, start of the value, length."""
    implicit, little = syntax
    order = "<" if little else ">"
    group, element = unpack_from(f"{order}HH", content, position)
    tag = group << 16 | element
    if implicit or group == 0xFFFE:
        return (
            tag,
            "",
            position + 4,
            4,
            position + 8,
            *unpack_from(f"{order}I", content, position + 4),
        )
    vr = content[position + 4 : position + 6].decode("latin-1")
    if not (vr.isalpha() and vr.isupper()):
        return None
    if vr not in _LONG:
        return (
            tag,
            vr,
            position + 6,
            2,
            position + 8,
            *unpack_from(f"{order}H", content, position + 6),
        )
    if position + 12 > len(content):
        return None
    return tag, vr, position + 8, 4, position + 12, *unpack_from(f"{order}I", content, position + 8)


def _begins_item(content: bytes, position: int, syntax: Syntax) -> bool:
    return content[position : position + 4] == (
        b"\xfe\xff\x00\xe0" if syntax[1] else b"\xff\xfe\xe0\x00"
    )


def _items(
    content: bytes,
    position: int,
    end: int,
    syntax: Syntax,
    around: tuple[int, ...],
    fragments: bool,
) -> tuple[list[Place], int]:
    """Items (with what they hold) or fragments, and where the value that holds them ends."""
    order = "<" if syntax[1] else ">"
    found: list[Place] = []
    while position + 8 <= end:
        group, element, length = unpack_from(f"{order}HHI", content, position)
        if group << 16 | element != ITEM:
            break
        start, undefined = position + 8, length == UNDEFINED
        value_end = end if undefined else start + length
        inner: list[Place] = []
        if not fragments:
            limit = min(value_end, end)
            inner = _elements(content, start, limit, syntax, (*around, position))
            if undefined:
                value_end = max((place.stop for place in inner), default=start)
        stop = value_end + 8 * undefined
        if stop > end:
            break
        found.append(
            Place(ITEM, "", position, position + 4, 4, start, value_end, stop, undefined, around)
        )
        found += inner
        position = stop
    return found, position


def spliced(content: bytes, elements: ElementMap, splices: Sequence[Splice]) -> bytes:
    """The file with all splices made; of two that overlap the first in the file counts."""
    ordered: list[Splice] = []
    grown: dict[int, int] = {}
    for splice in sorted(splices, key=lambda s: (s.start, s.stop)):
        if ordered and splice.start < ordered[-1].stop:
            continue
        ordered.append(splice)
        for start in splice.around:
            delta = len(splice.new) - (splice.stop - splice.start)
            grown[start] = grown.get(start, 0) + delta
    by_start = {place.start: place for place in elements.places}
    for start, delta in grown.items():
        place = by_start[start]
        at, end = place.length_at, place.length_at + place.length_size
        if (
            delta
            and not place.undefined
            and not any(s.start < end and at < s.stop for s in ordered)
        ):
            field = elements.length_field(place, place.size + delta)
            ordered.append(Splice(at, end, field))
    ordered.sort(key=lambda s: (s.start, s.stop))
    parts, position = [], 0
    for splice in ordered:
        parts += [content[position : splice.start], splice.new]
        position = max(position, splice.stop)
    parts.append(content[position:])
    return b"".join(parts)
