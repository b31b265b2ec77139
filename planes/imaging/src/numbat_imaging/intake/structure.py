"""The data elements of an encoded data set, found without trusting any length in it (PS3.5 §7).

pydicom decodes values; where elements begin and end is settled here, because a length field is the
first thing that a damaged or hostile file gets wrong: nothing is allocated or recursed into on the
word of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple

from pydicom.dataelem import RawDataElement, empty_value_for_VR
from pydicom.tag import BaseTag
from pydicom.valuerep import EXPLICIT_VR_LENGTH_32, VR

from numbat_imaging.intake.limits import Limits

UNDEFINED = 0xFFFFFFFF
ITEM = 0xFFFEE000
ITEM_END = 0xFFFEE00D
SEQUENCE_END = 0xFFFEE0DD
PIXEL_TAGS = {
    0x7FE00008: "FloatPixelData",
    0x7FE00009: "DoubleFloatPixelData",
    0x7FE00010: "PixelData",
}

_LONG = {str(vr).encode(): str(vr) for vr in EXPLICIT_VR_LENGTH_32}
_SHORT = {
    str(vr).encode(): str(vr) for vr in VR if len(str(vr)) == 2 and str(vr) not in _LONG.values()
}
_EMPTY: dict[str | None, Any] = {
    vr: empty_value_for_VR(vr, raw=True) for vr in (*_LONG.values(), *_SHORT.values(), None)
}
_TAGS: dict[int, BaseTag] = {}


class Syntax(NamedTuple):
    """How a data set is encoded: VRs left out or written, and the order of bytes."""

    implicit: bool
    little_endian: bool


IMPLICIT_LE = Syntax(True, True)
EXPLICIT_LE = Syntax(False, True)
EXPLICIT_BE = Syntax(False, False)

_MOST_REMEMBERED = 1 << 16

# The same 200 tags come back in every file of a series; the class built from a plain tuple is what
# its own constructor makes, at half the cost.
_element = tuple.__new__


def remembered(tag: int) -> BaseTag:
    """The one object for a tag: as a key of a dictionary it is found without being compared."""
    if len(_TAGS) >= _MOST_REMEMBERED:
        return _TAGS.get(tag) or BaseTag(tag)
    return _TAGS.setdefault(tag, BaseTag(tag))


_STRUCTS = {
    True: (Struct("<HHI"), Struct("<HH2sH"), Struct("<I")),
    False: (Struct(">HHI"), Struct(">HH2sH"), Struct(">I")),
}


_UNPACKERS = {
    little: tuple(struct.unpack_from for struct in structs) for little, structs in _STRUCTS.items()
}


class Short(Exception):
    """The window ends before byte `need`: read more, or find that the file holds no more."""

    def __init__(self, need: int, *, tag: int | None = None, length: int | None = None) -> None:
        super().__init__(need)
        self.need, self.tag, self.length = need, tag, length


class Broken(Exception):
    """The bytes at `offset` are no data element."""

    def __init__(self, reason: str, *, offset: int, tag: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.offset, self.tag = reason, offset, tag


class Exceeded(Exception):
    """A bound of `Limits` was reached."""

    def __init__(self, what: str, *, measured: int, limit: int) -> None:
        super().__init__(what)
        self.what, self.measured, self.limit = what, measured, limit


class PixelStart(NamedTuple):
    """Where a top-level pixel element begins; `length` is None when undefined (encapsulated)."""

    tag: int
    vr: str
    offset: int
    length: int | None


@dataclass(slots=True)
class Walk:
    """A walk over the top level of one data set, which may go on in a longer window.

    `position` is the next element's offset in the window; `base` is the window's offset in the
    file, for what is reported. `group` ends the walk at the first element of another group;
    `nested` walks an item, in which pixel data are an element like others.
    """

    syntax: Syntax
    limits: Limits
    position: int = 0
    base: int = 0
    group: int | None = None
    nested: bool = False
    found: dict[BaseTag, RawDataElement] = field(default_factory=dict)
    pixel: PixelStart | None = None
    skipped: int = 0

    def run(self, window: bytes, *, complete: bool) -> None:
        """Take elements until the pixel data, another group, or the end of a `complete` window.

        Raises Short when the window must grow, Broken and Exceeded.
        """
        implicit, little = self.syntax
        plain_at, explicit_at, wide_at = _UNPACKERS[little]
        found, position, end, base = self.found, self.position, len(window), self.base
        only, limit = self.group, self.limits.dataset_elements
        previous = max(found, default=-1)
        while True:
            self.position = position
            if position + 8 > end:
                if complete and not window[position:].strip(b"\0"):
                    return
                raise Short(position + 8)
            start, unwritten = position + 8, implicit
            if implicit:
                group, element, length = plain_at(window, position)
                vr = None
            else:
                group, element, code, length = explicit_at(window, position)
                vr = _SHORT.get(code)
                if vr is None:
                    vr = _LONG.get(code)
                    if vr is None:
                        self._check_unwritten(code)
                        length, unwritten = plain_at(window, position)[2], True
                    elif start + 4 > end:
                        raise Short(start + 4)
                    else:
                        (length,) = wide_at(window, start)
                        start += 4
            if only is not None and group != only:
                return
            tag = group << 16 | element
            if group >= 0x7FE0 or group == 0:
                if tag in PIXEL_TAGS and not self.nested:
                    size = None if length == UNDEFINED else length
                    self.pixel = PixelStart(tag, vr or "OW", start, size)
                    return
                if group == 0xFFFE or (group == 0 and previous >= 0x00010000):
                    self._check_padding(window, tag, complete)
                    return
            if length == UNDEFINED:
                value, vr, unwritten, position = self._undefined(window, tag, vr, start, unwritten)
                length = len(value)
            else:
                position = start + length
                if position > end:
                    raise Short(position, tag=tag, length=length)
                value = window[start:position] if length else _EMPTY[vr]
            key = _TAGS.get(tag) or remembered(tag)
            if tag > previous:
                previous = tag
            elif key in found and found[key].value != value:
                raise Broken("it appears twice, with two values", offset=base + start, tag=tag)
            found[key] = _element(
                RawDataElement,
                (key, vr, length, value, base + start, unwritten, little, True, False),
            )
            if len(found) > limit:
                raise Exceeded("data elements", measured=len(found), limit=limit)

    def _check_unwritten(self, code: bytes) -> None:
        # Some writers switch to implicit VR inside explicit data sets; two capitals that are no VR
        # of the standard cannot be told from damage, and their length field has no known width.
        if code.isalpha() and code.isupper():
            offset = self.base + self.position
            raise Broken("its VR is not one of the standard", offset=offset)

    def _check_padding(self, window: bytes, tag: int, complete: bool) -> None:
        # Zero padding up to a block size is common and harmless; anything else is damage.
        if tag == 0:
            if not complete:
                raise Short(len(window) + 1)
            if not window[self.position :].strip(b"\0"):
                return
        what = "delimiter" if tag >> 16 == 0xFFFE else "command element"
        raise Broken(
            f"a {what} stands where a data element belongs",
            offset=self.base + self.position,
            tag=tag,
        )

    def _undefined(
        self, window: bytes, tag: int, vr: str | None, start: int, implicit: bool
    ) -> tuple[bytes, str | None, bool, int]:
        skip = Skip(window, self.syntax.little_endian, self.limits, self.base, self.skipped)
        if vr in ("OB", "OW", "OF", "OD", "OL", "OV"):
            end = skip.fragments(start, tag)
        elif vr in (None, "SQ", "UN"):
            if vr == "UN":
                implicit = skip.looks_implicit(start)
            end = skip.items(start, tag, implicit, 1)
            vr = "SQ"
        else:
            raise Broken(f"VR {vr} with undefined length", offset=self.base + start, tag=tag)
        self.skipped = skip.count
        return window[start : end - 8], vr, implicit, end


class Skip:
    """Finds the end of elements of undefined length by walking what they hold."""

    def __init__(
        self, window: bytes, little: bool, limits: Limits, base: int, count: int = 0
    ) -> None:
        self.window, self.limits, self.base, self.count = window, limits, base, count
        self._plain, self._explicit, self._wide = _STRUCTS[little]

    def tag_length(self, position: int) -> tuple[int, int]:
        """The tag and the length field in implicit form at `position`."""
        if position + 8 > len(self.window):
            raise Short(position + 8)
        group, element, length = self._plain.unpack_from(self.window, position)
        self.count += 1
        if self.count > self.limits.elements:
            raise Exceeded("data elements", measured=self.count, limit=self.limits.elements)
        return group << 16 | element, length

    def fragments(self, position: int, owner: int) -> int:
        """The end of encapsulated fragments that begin at `position`."""
        while True:
            tag, length = self.tag_length(position)
            position += 8
            if tag == SEQUENCE_END:
                return position
            if tag != ITEM or length == UNDEFINED:
                raise Broken(
                    "fragments are not items of known length",
                    offset=self.base + position - 8,
                    tag=owner,
                )
            position += length

    def items(self, position: int, owner: int, implicit: bool, depth: int) -> int:
        """The end of a sequence of undefined length whose first item begins at `position`."""
        if depth > self.limits.depth:
            raise Exceeded("sequences inside one another", measured=depth, limit=self.limits.depth)
        while True:
            tag, length = self.tag_length(position)
            position += 8
            if tag == SEQUENCE_END:
                return position
            if tag != ITEM:
                raise Broken(
                    "a sequence holds something that is no item",
                    offset=self.base + position - 8,
                    tag=owner,
                )
            if length != UNDEFINED:
                position += length
                if position > len(self.window):
                    raise Short(position, tag=owner, length=length)
            else:
                position = self.item(position, owner, implicit, depth)

    def item(self, position: int, owner: int, implicit: bool, depth: int) -> int:
        """The end of an item of undefined length whose first element begins at `position`."""
        while True:
            tag, length = self.tag_length(position)
            if tag == ITEM_END:
                return position + 8
            if tag >> 16 == 0xFFFE:
                raise Broken(
                    "an item ends with the wrong delimiter", offset=self.base + position, tag=owner
                )
            vr, start, length, unwritten = self._header(position, length, implicit, owner)
            if length != UNDEFINED:
                position = start + length
                if position > len(self.window):
                    raise Short(position, tag=tag, length=length)
            elif vr in ("OB", "OW", "OF", "OD", "OL", "OV"):
                position = self.fragments(start, tag)
            elif vr in (None, "SQ", "UN"):
                inner = self.looks_implicit(start) if vr == "UN" else implicit or unwritten
                position = self.items(start, tag, inner, depth + 1)
            else:
                raise Broken(f"VR {vr} with undefined length", offset=self.base + position, tag=tag)

    def _header(
        self, position: int, length: int, implicit: bool, owner: int
    ) -> tuple[str | None, int, int, bool]:
        start = position + 8
        if implicit:
            return None, start, length, True
        _, _, code, short = self._explicit.unpack_from(self.window, position)
        if code in _SHORT:
            return _SHORT[code], start, short, False
        if code in _LONG:
            if start + 4 > len(self.window):
                raise Short(start + 4)
            return _LONG[code], start + 4, self._wide.unpack_from(self.window, start)[0], False
        if code.isalpha() and code.isupper():
            raise Broken(
                "its VR is not one of the standard", offset=self.base + position, tag=owner
            )
        return None, start, length, True

    def looks_implicit(self, position: int) -> bool:
        """Whether the first element of the first item has no VR written.

        UN of undefined length holds implicit VR by the standard (PS3.5 §6.2.2 note 5), and explicit
        VR by many writers.
        """
        if position + 16 > len(self.window):
            raise Short(position + 16)
        code = self.window[position + 12 : position + 14]
        return code not in _SHORT and code not in _LONG


def is_written_vr(code: bytes) -> bool:
    """Whether two bytes are a VR of the standard."""
    return code in _SHORT or code in _LONG
