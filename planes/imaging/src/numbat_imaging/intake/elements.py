"""Typed values of data elements, validated here whatever pydicom would accept.

Every getter takes a data set and a keyword (or a tag, for private elements), gives None for what is
absent or empty, and raises IMG-1012 with tag, VR and reason, never the value, for what is there and
cannot be read as its meaning demands.

Source: PS3.5 §6.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from struct import Struct
from typing import Any, NoReturn, TypeVar

from pydicom import Dataset
from pydicom.datadict import dictionary_VR, keyword_for_tag, tag_for_keyword
from pydicom.dataelem import DataElement, RawDataElement
from pydicom.sequence import Sequence
from pydicom.tag import BaseTag, Tag
from pydicom.valuerep import PersonName

from numbat_imaging.intake.charsets import decode_text, encodings_of
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.intake.structure import (
    ITEM,
    SEQUENCE_END,
    UNDEFINED,
    Broken,
    Exceeded,
    Short,
    Skip,
    Syntax,
    Walk,
)
from numbat_registries import Diagnostic, notice, refuse

Key = str | int
T = TypeVar("T")

_ONE_BYTE_TEXT = frozenset({"AE", "AS", "CS", "DA", "DS", "DT", "IS", "TM", "UI", "UR"})
_CHARSET_TEXT = frozenset({"LO", "LT", "PN", "SH", "ST", "UC", "UT"})
_TEXT = _ONE_BYTE_TEXT | _CHARSET_TEXT
_LONG_TEXT = frozenset({"LT", "ST", "UC", "UR", "UT"})
_ONE_VALUE_TEXT = frozenset({"LT", "ST", "UR", "UT"})
_INTEGERS = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "UV": "Q", "SV": "q"}
_FLOATS = {"FL": "f", "FD": "d", "OF": "f", "OD": "d"}
_BINARY = {**_INTEGERS, **_FLOATS}
_NUMBER_CHARACTERS = b"0123456789+-.eE \\\0"
_UID_CHARACTERS = b"0123456789."

_CHARACTER_SET = BaseTag(0x00080005)
_PIXEL_REPRESENTATION = BaseTag(0x00280103)


def has(ds: Dataset, keyword: Key) -> bool:
    """Whether the element is there and not empty."""
    found = _find(ds, _tag(keyword))
    if found is None:
        return False
    value = found.value
    return value is not None and value != "" and value != b"" and value != []


def text(
    ds: Dataset, keyword: Key, *, vr: str | None = None, notices: list[Diagnostic] | None = None
) -> str | None:
    """The text without padding; several values stay joined by backslashes.

    Bytes that the declared character set has no meaning for become U+FFFD, and IMG-1018 says so
    (appended to `notices` when given).
    """
    found = _text(ds, _tag(keyword), vr, notices)
    if found is None:
        return None
    joined = found.strip(" \0\r\n\t") if "\\" not in found else _stripped(found)
    return joined or None


def distinct(ds: Dataset, keyword: Key) -> str:
    """The text for comparison alone: two values that differ in any byte that means nothing differ.

    U+FFFD hides which bytes it stands for, and "Müller" must not become "Möller"; the stored bytes
    follow in hexadecimal where it occurs. Empty when absent or empty.
    """
    value = text(ds, keyword) or ""
    found = _find(ds, _tag(keyword))
    if "\ufffd" not in value or found is None or not isinstance(found.value, bytes):
        return value
    return f"{value} {found.value.hex()}"


def texts(
    ds: Dataset, keyword: Key, *, vr: str | None = None, notices: list[Diagnostic] | None = None
) -> tuple[str, ...]:
    """Every value of a text element without padding; empty when absent or empty."""
    found = _text(ds, _tag(keyword), vr, notices)
    if found is None:
        return ()
    values = tuple(value.strip(" \0\r\n\t") for value in found.split("\\"))
    return values if any(values) else ()


def uid(ds: Dataset, keyword: Key) -> str | None:
    """One UID: at most 64 digits and dots, no empty component (PS3.5 §9.1)."""
    tag = _tag(keyword)
    found = _text(ds, tag, "UI", None)
    value = found.strip(" \0") if found is not None else ""
    if not value:
        return None
    _check_uid(ds, tag, value)
    return value


def uids(ds: Dataset, keyword: Key) -> tuple[str, ...]:
    """Every UID of a multi-valued element."""
    tag = _tag(keyword)
    values = tuple(value.strip(" \0") for value in (_text(ds, tag, "UI", None) or "").split("\\"))
    if not any(values):
        return ()
    for value in values:
        _check_uid(ds, tag, value)
    return values


def integer(ds: Dataset, keyword: Key, *, vr: str | None = None) -> int | None:
    """One whole number, from a binary VR or IS (a DS or IS such as "3.0" counts as 3)."""
    values = integers(ds, keyword, count=1, vr=vr)
    return values[0] if values else None


def integers(
    ds: Dataset, keyword: Key, *, count: int | None = None, vr: str | None = None
) -> tuple[int, ...] | None:
    """Whole numbers; `count` demands how many."""
    tag = _tag(keyword)
    values = _numbers(ds, tag, count, vr)
    if values is None:
        return None
    whole = tuple(int(value) for value in values)
    if any(number != value for number, value in zip(whole, values, strict=True)):
        _refuse(ds, tag, "a fraction where a whole number belongs")
    return whole


def decimal(ds: Dataset, keyword: Key, *, vr: str | None = None) -> float | None:
    """One finite number, from DS, IS or a binary VR."""
    values = _numbers(ds, _tag(keyword), 1, vr)
    return float(values[0]) if values else None


def decimals(
    ds: Dataset, keyword: Key, *, count: int | None = None, vr: str | None = None
) -> tuple[float, ...] | None:
    """Finite numbers; `count` demands how many."""
    values = _numbers(ds, _tag(keyword), count, vr)
    return None if values is None else tuple(float(value) for value in values)


def sequence(ds: Dataset, keyword: Key) -> list[Dataset]:
    """The items of a sequence; empty when absent or without items."""
    tag = _tag(keyword)
    found = _find(ds, tag)
    if found is None:
        return []
    if isinstance(found, DataElement):
        if isinstance(found.value, Sequence | list):
            return list(found.value)
        _refuse(ds, tag, "no sequence where one belongs")
    encodings = _encodings(ds)
    return [_item(item, encodings) for item in raw_items(found, ds)]


#: The elements of an item that was found, undecoded, and how they are encoded.
RawItem = tuple[dict[BaseTag, Any], Syntax]


class RawItems:
    """The items of a sequence element, each found at once and decoded when it is asked for.

    `ds` is for the words of a refusal alone. Raises IMG-1012.
    """

    def __init__(self, element: RawDataElement, ds: Dataset) -> None:
        self.element, self._ds = element, ds
        if element.VR not in ("SQ", "UN", None):
            _refuse(ds, element.tag, "no sequence where one belongs")
        self._syntax = Syntax(element.is_implicit_VR, element.is_little_endian)
        self._places = self._told(self._find_places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> RawItem:
        return self._told(lambda: self._decoded(*self._places[number]))

    def all(self) -> list[RawItem]:
        """Every item."""
        return self._told(lambda: [self._decoded(*place) for place in self._places])

    def _told(self, read: Callable[[], T]) -> T:
        tag = self.element.tag
        try:
            return read()
        except Short:
            _refuse(self._ds, tag, "the sequence ends inside an item")
        except Broken as broken:
            _refuse(self._ds, tag, broken.reason)
        except Exceeded as beyond:
            _refuse(self._ds, tag, f"more {beyond.what} than {beyond.limit}")

    def _find_places(self) -> list[tuple[int, int]]:
        value = self.element.value or b""
        implicit, little = self._syntax
        skip = Skip(value, little, DEFAULT_LIMITS, self.element.value_tell)
        if self.element.VR == "UN" and len(value) >= 16:
            implicit = skip.looks_implicit(0)
            self._syntax = Syntax(implicit, little)
        places: list[tuple[int, int]] = []
        position = 0
        while position < len(value):
            tag, length = skip.tag_length(position)
            if tag == SEQUENCE_END:
                break
            if tag != ITEM:
                raise Broken("a sequence holds something that is no item", offset=position)
            start = position + 8
            if length == UNDEFINED:
                position = skip.item(start, self.element.tag, implicit, 1)
                stop = position - 8
            else:
                position = stop = start + length
            if stop > len(value):
                raise Short(stop)
            places.append((start, stop))
            if len(places) > DEFAULT_LIMITS.items:
                raise Exceeded("items", measured=len(places), limit=DEFAULT_LIMITS.items)
        return places

    def _decoded(self, start: int, stop: int) -> RawItem:
        value = self.element.value or b""
        walk = Walk(self._syntax, DEFAULT_LIMITS, nested=True)
        walk.run(value[start:stop], complete=True)
        return walk.found, walk.syntax


def raw_items(element: RawDataElement, ds: Dataset) -> list[RawItem]:
    """The items of a sequence element without data sets built of them; raises IMG-1012."""
    return RawItems(element, ds).all()


def tags(ds: Dataset, keyword: Key) -> tuple[int, ...]:
    """The tags that an AT element points to; empty when absent or empty."""
    tag = _tag(keyword)
    found = _find(ds, tag)
    if found is None or not found.value:
        return ()
    if isinstance(found, DataElement):
        return tuple(int(part) for part in _built_numbers(ds, tag, found.value))
    halves = _unpacked(ds, tag, found, "H")
    if len(halves) % 2:
        _refuse(ds, tag, "half a tag")
    return tuple(int(halves[k]) << 16 | int(halves[k + 1]) for k in range(0, len(halves), 2))


def words(ds: Dataset, keyword: Key) -> bytes | None:
    """The 16-bit words of an element (OW, US, SS), little endian whatever the file is."""
    tag = _tag(keyword)
    found = _find(ds, tag)
    if found is None or not found.value:
        return None
    value, little = found.value, getattr(found, "is_little_endian", True)
    if not isinstance(value, bytes):
        numbers = _built_numbers(ds, tag, value)
        if any(number != int(number) or not -0x8000 <= number <= 0xFFFF for number in numbers):
            _refuse(ds, tag, "a number that is no 16-bit word")
        return b"".join((int(number) & 0xFFFF).to_bytes(2, "little") for number in numbers)
    if len(value) % 2:
        _refuse(ds, tag, f"{len(value)} bytes, no multiple of 2")
    if not little:
        swapped = bytearray(value)
        swapped[::2], swapped[1::2] = value[1::2], value[::2]
        value = bytes(swapped)
    return value


def binary(ds: Dataset, keyword: Key) -> bytes | None:
    """The bytes of an element as they are stored."""
    tag = _tag(keyword)
    found = _find(ds, tag)
    if found is None or not found.value:
        return None
    if isinstance(found.value, bytes):
        return found.value
    _refuse(ds, tag, "no bytes where they belong")


def private_tag(ds: Dataset, group: int, creator: str, element: int) -> BaseTag | None:
    """The tag of a private element in the block that `creator` reserved; None without the block.

    `element` is the offset in the block, 0x00 to 0xFF (PS3.5 §7.8.1).
    """
    # Shifted, a tag is a plain int: comparing tags themselves costs ten times as much, and a CT
    # header has hundreds.
    creators = group << 8
    blocks = [tag & 0xFF for tag in ds.keys() if tag >> 8 == creators]  # noqa: SIM118
    for block in sorted(blocks):
        if block >= 0x10 and text(ds, group << 16 | block, vr="LO") == creator:
            return BaseTag(group << 16 | block << 8 | element)
    return None


def private(ds: Dataset, group: int, creator: str, element: int, *, vr: str | None = None) -> Any:
    """The value of a private element: text, a number, a tuple, a list of items, or bytes.

    `vr` says what it is where the file does not (implicit VR, UN). None when absent or empty.
    """
    tag = private_tag(ds, group, creator, element)
    found = None if tag is None else _find(ds, tag)
    if tag is None or found is None:
        return None
    written = found.VR if found.VR not in (None, "UN") else vr
    if written == "SQ":
        return sequence(ds, tag)
    if written in _BINARY or written in ("DS", "IS"):
        values = _numbers(ds, tag, None, written)
        return values if values is None or len(values) > 1 else values[0]
    if written in _TEXT:
        several = texts(ds, tag, vr=written)
        return several if len(several) > 1 else text(ds, tag, vr=written)
    return binary(ds, tag)


# -- how a value is found and decoded ------------------------------------------------------------


@lru_cache(maxsize=4096)
def _tag(keyword: Key) -> BaseTag:
    tag = tag_for_keyword(keyword) if isinstance(keyword, str) else keyword
    if tag is None:
        raise KeyError(keyword)
    return Tag(tag)


@lru_cache(maxsize=4096)
def _dictionary_vr(tag: BaseTag) -> str | None:
    try:
        return dictionary_VR(tag)
    except KeyError:
        return "LO" if tag.is_private_creator else None


def _find(ds: Dataset, tag: BaseTag) -> DataElement | RawDataElement | None:
    found: DataElement | RawDataElement | None = ds.get_item(tag, keep_deferred=True)
    return found


def _vr_of(ds: Dataset, found: RawDataElement, vr: str | None) -> str | None:
    written = found.VR
    if written is None or written == "UN":
        written = vr or _dictionary_vr(found.tag)
    if written is not None and written.startswith("US or"):
        representation = _find(ds, _PIXEL_REPRESENTATION)
        value = representation.value if representation is not None else None
        signed = value in (1, b"\x01\x00", b"\x00\x01")
        return "SS" if signed and "SS" in written else "US"
    return written


def _text(
    ds: Dataset, tag: BaseTag, vr: str | None, notices: list[Diagnostic] | None
) -> str | None:
    found = _find(ds, tag)
    if found is None:
        return None
    if isinstance(found, DataElement):
        return _built_text(ds, tag, found.value)
    value = found.value
    if not value:
        return None
    written = _vr_of(ds, found, vr)
    if written not in _TEXT:
        _refuse(ds, tag, "no text where text belongs")
    limits = DEFAULT_LIMITS
    most = limits.long_text_bytes if written in _LONG_TEXT else limits.text_bytes
    if len(value) > most:
        _refuse(ds, tag, f"{len(value)} bytes of text, more than {most}")
    if value.isascii() and b"\x1b" not in value:
        return value.decode("ascii")
    if written in _ONE_BYTE_TEXT:
        decoded, whole = value.decode("ascii", "replace"), False
    else:
        decoded, whole = decode_text(value, _encodings(ds))
    if not whole:
        found_notice = notice("IMG-1018", tag=_shown(tag), keyword=keyword_for_tag(tag), vr=written)
        if notices is not None:
            notices.append(found_notice)
    return decoded


def _built_text(ds: Dataset, tag: BaseTag, value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, PersonName):
        return str(value) or None
    if isinstance(value, Iterable) and not isinstance(value, bytes | Dataset):
        return "\\".join(str(part) for part in value) or None
    _refuse(ds, tag, "no text where text belongs")


def _encodings(ds: Dataset) -> tuple[str, ...]:
    declared = _find(ds, _CHARACTER_SET)
    if isinstance(declared, RawDataElement):
        return encodings_of(declared.value)[0]
    known = ds.original_character_set
    return (known,) if isinstance(known, str) else tuple(known)


def _numbers(
    ds: Dataset, tag: BaseTag, count: int | None, vr: str | None
) -> tuple[int | float, ...] | None:
    found = _find(ds, tag)
    if found is None:
        return None
    if isinstance(found, DataElement):
        values = _built_numbers(ds, tag, found.value)
    elif not found.value:
        return None
    else:
        written = _vr_of(ds, found, vr)
        if written in ("DS", "IS"):
            values = _parsed(ds, tag, found.value)
        elif written in _BINARY:
            values = _unpacked(ds, tag, found, _BINARY[written])
        else:
            _refuse(ds, tag, "no number where one belongs")
    if not values:
        return None
    if count is not None and len(values) != count:
        _refuse(ds, tag, f"{len(values)} value(s) where {count} belong")
    for value in values:
        if not math.isfinite(value):
            _refuse(ds, tag, "a number that is not finite")
    return values


def _parsed(ds: Dataset, tag: BaseTag, value: bytes) -> tuple[int | float, ...]:
    if value.translate(None, _NUMBER_CHARACTERS):
        reason = "a decimal comma" if b"," in value else "characters that belong to no number"
        _refuse(ds, tag, reason)
    parts = value.rstrip(b"\0 ").split(b"\\")
    if parts == [b""]:
        return ()
    try:
        return tuple([_parsed_one(part) for part in parts])
    except ValueError:
        empty = any(not part.strip(b"\0 ") for part in parts)
        _refuse(ds, tag, "an empty value among others" if empty else "text that is no number")


def _parsed_one(part: bytes) -> int | float:
    stripped = part.strip(b"\0 ")
    # Not through int() alone: "1e2" and "12." are decimal strings too. Past 2**53 a float is not
    # exact, and a long string of digits costs quadratic time.
    if len(stripped) < 20 and stripped.isdigit():
        return int(stripped)
    if len(stripped) > 256:
        raise ValueError
    return float(stripped)


@lru_cache(maxsize=512)
def _struct(order: str, count: int, letter: str) -> Struct:
    return Struct(f"{order}{count}{letter}")


def _unpacked(
    ds: Dataset, tag: BaseTag, found: RawDataElement, letter: str
) -> tuple[int | float, ...]:
    value = found.value or b""
    size = _struct("<", 1, letter).size
    if len(value) % size:
        _refuse(ds, tag, f"{len(value)} bytes, no multiple of {size}")
    order = "<" if found.is_little_endian else ">"
    return _struct(order, len(value) // size, letter).unpack(value)


def _built_numbers(ds: Dataset, tag: BaseTag, value: Any) -> tuple[int | float, ...]:
    if value is None or value == "":
        return ()
    several = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    try:
        return tuple(
            int(number) if isinstance(number, int) else float(number) for number in several
        )
    except (TypeError, ValueError, OverflowError):
        _refuse(ds, tag, "text that is no number")


def _check_uid(ds: Dataset, tag: BaseTag, value: str) -> None:
    if "\\" in value:
        _refuse(ds, tag, "several UIDs where one belongs")
    if len(value) > 64:
        _refuse(ds, tag, f"a UID of {len(value)} characters, more than 64")
    if value.strip("0123456789.") or not value.isascii() or not value.replace(".", "").isdigit():
        _refuse(ds, tag, "a UID with characters other than digits and dots")
    if value[0] == "." or value[-1] == "." or ".." in value:
        _refuse(ds, tag, "a UID with an empty component")


def _item(found: RawItem, encodings: tuple[str, ...]) -> Dataset:
    content, syntax = found
    item = Dataset(content, parent_encoding=list(encodings))
    raw = content.get(_CHARACTER_SET)
    own = encodings if raw is None else encodings_of(raw.value)[0]
    item.set_original_encoding(syntax.implicit, syntax.little_endian, list(own))
    return item


def _stripped(joined: str) -> str:
    return "\\".join(part.strip(" \0\r\n\t") for part in joined.split("\\"))


def _shown(tag: BaseTag) -> str:
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X})"


def _refuse(ds: Dataset, tag: BaseTag, reason: str) -> NoReturn:
    found = _find(ds, tag)
    raise refuse(
        "IMG-1012",
        tag=_shown(tag),
        keyword=keyword_for_tag(tag) or ("private" if tag.is_private else "unknown"),
        vr=str(found.VR) if found is not None and found.VR is not None else "unwritten",
        reason=reason,
    )
