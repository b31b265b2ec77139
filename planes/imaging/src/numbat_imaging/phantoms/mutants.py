"""Damaged files without end: each a function of a real file and a number.

Most damage is done where it counts (lengths, tags, VRs, items, fragments, values that decide what
is allocated) and leaves the rest sound, so that it is met deep in the reader and not at the door.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from struct import pack

import pydicom

from numbat_imaging.phantoms.element_map import (
    ITEM,
    PIXEL_DATA,
    UNDEFINED,
    ElementMap,
    Place,
    Splice,
    map_elements,
    spliced,
)
from numbat_imaging.phantoms.hostile_values import (
    DECISIVE,
    damaged_block,
    hostile_value,
    strangers,
)

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
_DEFLATED = b"1.2.840.10008.1.2.1.99"
_VRS = (
    *("AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO", "LT", "OB", "OD", "OF"),
    *("OL", "OV", "OW", "PN", "SH", "SL", "SQ", "SS", "ST", "SV", "TM", "UC", "UI", "UL", "UN"),
    *("UR", "US", "UT", "UV", "ZZ", "\0\0"),
)
_LENGTHS = (0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, UNDEFINED)
_WIDE_VRS = frozenset(("OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT"))

#: The beginnings of real files in pydicom's wheel, the slow to decode among them left out.
BUNDLED = (
    *("CT_small.dcm", "MR_small.dcm", "MR_small_RLE.dcm", "MR_small_bigendian.dcm"),
    *("MR_small_implicit.dcm", "MR_small_expb.dcm", "MR_small_jpeg_ls_lossless.dcm"),
    *("MR_small_jp2klossless.dcm", "MR_small_padded.dcm", "MR_truncated.dcm", "693_J2KI.dcm"),
    *("JPEG-lossy.dcm", "JPGExtended.dcm", "JPEG2000.dcm", "JPEGLSNearLossless_16.dcm"),
    *("JPEG2000-embedded-sequence-delimiter.dcm", "SC_rgb_rle.dcm", "SC_rgb_rle_2frame.dcm"),
    *("SC_rgb_rle_16bit_2frame.dcm", "SC_rgb_rle_32bit.dcm", "SC_rgb_dcmtk_+eb+cy+s2.dcm"),
    *("SC_rgb_jls_lossy_sample.dcm", "SC_rgb_jpeg_dcmtk.dcm", "SC_rgb_small_odd.dcm"),
    *("SC_rgb_small_odd_big_endian.dcm", "SC_rgb_small_odd_jpeg.dcm", "SC_rgb_gdcm_KY.dcm"),
    *("SC_ybr_full_422_uncompressed.dcm", "examples_palette.dcm", "examples_ybr_color.dcm"),
    *("image_dfl.dcm", "liver_1frame.dcm", "liver_expb_1frame.dcm", "rtdose.dcm"),
    *("rtdose_1frame.dcm", "rtdose_expb.dcm", "rtdose_rle.dcm", "ExplVR_BigEnd.dcm"),
    *("ExplVR_LitEndNoMeta.dcm", "no_meta.dcm", "badVR.dcm", "UN_sequence.dcm", "rtplan.dcm"),
    *("reportsi.dcm", "nested_priv_SQ.dcm", "zipMR.gz", "dicomdirtests/DICOMDIR"),
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A real file: its bytes unpacked, the map of its elements, and how it was packed.

    `packing` is "", "gzip" or "deflate" (the data set alone, from byte `packed_from`).
    """

    name: str
    content: bytes
    digest: str
    elements: ElementMap
    packing: str = ""
    packed_from: int = 0

    @property
    def top(self) -> tuple[Place, ...]:
        """The elements of the data set itself."""
        return self.elements.top

    def packed(self, content: bytes) -> bytes:
        """Other bytes in the packing of this file."""
        if self.packing == "gzip":
            return gzip.compress(content, 1, mtime=0)
        if self.packing == "deflate":
            engine = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
            body = engine.compress(content[self.packed_from :]) + engine.flush()
            return content[: self.packed_from] + body
        return content


def seed_of(path: str | os.PathLike[str], *, name: str | None = None) -> Seed:
    """The seed that the file at `path` is; an image without geometry is given some.

    Without position, orientation and pixel spacing a reader stops before the pixels.
    """
    stored = Path(path).read_bytes()
    digest = hashlib.sha256(stored).hexdigest()
    content, packing, start = stored, "", 0
    if stored[:2] == b"\x1f\x8b":
        content, packing = gzip.decompress(stored), "gzip"
    elements = map_elements(content)
    if elements.meta and _DEFLATED in content[: elements.meta[-1].stop]:
        start = elements.meta[-1].stop
        packing = "deflate"
        content = content[:start] + zlib.decompress(content[start:], -zlib.MAX_WBITS)
        elements = map_elements(content)
    content = _with_geometry(content, elements)
    return Seed(name or Path(path).name, content, digest, map_elements(content), packing, start)


def _with_geometry(content: bytes, elements: ElementMap) -> bytes:
    pixels = elements.find(PIXEL_DATA)
    if pixels is None or elements.find(0x52009229) is not None:
        return content
    wanted = {
        0x0020000D: ("UI", b"2.25.1"),
        0x0020000E: ("UI", b"2.25.2"),
        0x00180050: ("DS", b"2"),
        0x00200032: ("DS", b"0\\0\\0"),
        0x00200037: ("DS", b"1\\0\\0\\0\\1\\0"),
        0x00280030: ("DS", b"1\\1"),
    }
    splices = [
        _inserted(elements, tag, elements.encoded(tag, vr, value))
        for tag, (vr, value) in sorted(wanted.items())
        if elements.find(tag) is None
    ]
    return spliced(content, elements, splices)


def _inserted(elements: ElementMap, tag: int, encoded: bytes) -> Splice:
    """The splice that puts an element where its tag belongs."""
    tops = elements.top
    at = next((place.start for place in tops if place.tag > tag), tops[-1].stop if tops else 0)
    return Splice(at, at, encoded)


@cache
def bundled_seeds() -> tuple[Seed, ...]:
    """The seeds inside pydicom's wheel."""
    return tuple(seed_of(_BUNDLED / name, name=name) for name in BUNDLED)


@cache
def _bundled(name: str) -> Seed:
    return seed_of(_BUNDLED / name, name=name)


def mutant(seed: Seed | str, number: int) -> bytes:
    """Mutant `number` of a seed (or of the file of this name in pydicom's wheel): always the same.

    Depends on the bytes of the seed and the number alone.
    """
    source = _bundled(seed) if isinstance(seed, str) else seed
    chance = Random(f"numbat {source.digest} {number}")
    splices: list[Splice] = []
    for _ in range(chance.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        damage = chance.choices(_DAMAGES, _WEIGHTS)[0]
        splices += damage(source, chance)
    keeps_lengths = chance.random() < 0.9
    if not keeps_lengths:
        splices = [Splice(s.start, s.stop, s.new) for s in splices]
    content = spliced(source.content, source.elements, splices)
    if chance.random() < 0.12:
        content = _raw_damage(content, chance)
    packed = source.packed(content)
    return _raw_damage(packed, chance) if source.packing and chance.random() < 0.2 else packed


def sibling(seed: Seed) -> bytes:
    """The seed's sound neighbour: the slice after it, another object of the same series."""
    elements, content = seed.elements, seed.content
    splices = []
    uid, position = elements.find(0x00080018), elements.find(0x00200032)
    if uid is not None:
        splices.append(_valued(elements, uid, b"2.25.3\0\0"[: 6 + uid.size % 2]))
    if position is not None:
        stated = content[position.value : position.value_end].strip(b"\0 ").split(b"\\")
        moved = b"\\".join([*stated[:2], b"%g" % (float(stated[2]) + 2)])
        splices.append(_valued(elements, position, moved + b" " * (len(moved) % 2)))
    return seed.packed(spliced(content, elements, splices))


# -- damage to what is there ---------------------------------------------------------------------


def _picked(seed: Seed, chance: Random) -> Place | None:
    """An element or item, those that decide more often than others."""
    places = seed.elements.places
    if not places:
        return None
    decisive = [place for place in places if place.tag in DECISIVE]
    if decisive and chance.random() < 0.65:
        return chance.choice(decisive)
    return chance.choice(
        places if chance.random() < 0.9 or not seed.elements.meta else seed.elements.meta
    )


def _valued(elements: ElementMap, place: Place, value: bytes) -> Splice:
    """The element with another value, its own length field right."""
    if place.length_size == 2:
        value = value[:0xFFFE]
    value += b"\0" * (len(value) % 2)
    new = elements.length_field(place, len(value)) + value
    return Splice(place.length_at, place.stop, new, place.around)


def _value(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    if place is None or place.tag == ITEM or place.tag == PIXEL_DATA or place.undefined:
        return []
    old = seed.content[place.value : place.value_end]
    return [_valued(seed.elements, place, hostile_value(seed.elements, place, old, chance))]


def _length(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    if place is None:
        return []
    true = place.size
    length = chance.choice((0, 1, 2, true - 1, true + 1, true + 2, true // 2, true * 2, *_LENGTHS))
    new = seed.elements.length_field(place, max(length, 0))
    return [Splice(place.length_at, place.length_at + place.length_size, new)]


def _vr(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    if place is None or not place.vr:
        return []
    vr = chance.choice(_VRS).encode()
    wide = vr.decode() in _WIDE_VRS
    if place.length_size == (4 if wide else 2) or chance.random() < 0.3:
        return [Splice(place.start + 4, place.start + 6, vr)]
    # The length field changes its width with the VR, so that what follows stays readable.
    order = "<" if seed.elements.little else ">"
    size = place.size
    field = pack(f"{order}HI", 0, size) if wide else pack(f"{order}H", size & 0xFFFF)
    return [Splice(place.start + 4, place.value, vr + field, place.around)]


def _tag(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    if place is None:
        return []
    known = (*DECISIVE, ITEM, 0xFFFEE00D, 0xFFFEE0DD, 0, UNDEFINED, place.tag + 1, place.tag ^ 1)
    tag = chance.choice(known) & UNDEFINED
    order = "<" if seed.elements.little else ">"
    return [Splice(place.start, place.start + 4, pack(f"{order}HH", tag >> 16, tag & 0xFFFF))]


def _double(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    if place is None or place.stop - place.start > 1 << 16:
        return []
    copy = seed.content[place.start : place.stop]
    times = chance.choice((1, 1, 1, 2, 40))
    if chance.random() < 0.6:
        return [Splice(place.stop, place.stop, copy * times, place.around)]
    other = chance.choice(seed.elements.places)
    return [Splice(other.start, other.start, copy, other.around)]


def _drop(seed: Seed, chance: Random) -> list[Splice]:
    place = _picked(seed, chance)
    return [] if place is None else [Splice(place.start, place.stop, b"", place.around)]


def _swap(seed: Seed, chance: Random) -> list[Splice]:
    """Two elements, or two items of one sequence, in each other's place."""
    place = _picked(seed, chance)
    if place is None:
        return []
    peers = [
        other
        for other in seed.elements.places
        if other.around == place.around and (other.tag == ITEM) == (place.tag == ITEM)
    ]
    other = chance.choice(peers)
    if other.start == place.start:
        return []
    one, two = (seed.content[p.start : p.stop] for p in (place, other))
    return [
        Splice(place.start, place.stop, two, place.around),
        Splice(other.start, other.stop, one, other.around),
    ]


def _nest(seed: Seed, chance: Random) -> list[Splice]:
    """An element inside sequences inside sequences, of known or undefined length."""
    place = _picked(seed, chance)
    if place is None or place.tag == ITEM:
        return []
    content = seed.content[place.start : place.stop]
    sequence = chance.choice((0x52009229, 0x00081140, 0x00409096, place.tag))
    for _ in range(chance.choice((1, 1, 2, 10, 70, 300))):
        item = seed.elements.encoded(ITEM, "", content)
        content = seed.elements.encoded(sequence, "SQ", item)
    return [Splice(place.start, place.stop, content, place.around)]


def _stranger(seed: Seed, chance: Random) -> list[Splice]:
    """An element that was not there; instead of one that was, if it was."""
    tag, encoded = strangers(seed.elements, chance)
    old = seed.elements.find(tag)
    if old is not None:
        return [Splice(old.start, old.stop, encoded)]
    if not seed.top:
        return []
    return [_inserted(seed.elements, tag, encoded)]


def _items(seed: Seed, chance: Random) -> list[Splice]:
    """Items of functional groups, dimensions, fragments: dropped, doubled, emptied, many."""
    items = [place for place in seed.elements.places if place.tag == ITEM]
    if not items:
        return _stranger(seed, chance)
    item = chance.choice(items)
    content = seed.content[item.start : item.stop]
    match chance.randrange(4):
        case 0:
            return [Splice(item.start, item.stop, b"", item.around)]
        case 1:
            copies = content * chance.choice((1, 1, 2, 30))
            return [Splice(item.stop, item.stop, copies[: 1 << 16], item.around)]
        case 2:
            empty = seed.elements.encoded(ITEM, "", b"")
            return [Splice(item.start, item.stop, empty, item.around)]
        case _:
            return [_valued(seed.elements, item, damaged_block(content[8:], chance))]


def _pixels(seed: Seed, chance: Random) -> list[Splice]:
    """The pixel element: its fragments and offset table, or its length and its end."""
    pixels = seed.elements.find(PIXEL_DATA)
    if pixels is None:
        return _value(seed, chance)
    fragments = [place for place in seed.elements.places if place.around == (pixels.start,)]
    if not fragments:
        cut = chance.choice((0, 1, 2, pixels.size // 2, pixels.size - 1, pixels.size - 2))
        value = seed.content[pixels.value : pixels.value + max(cut, 0)]
        if chance.random() < 0.4:
            value = seed.content[pixels.value : pixels.value_end] + bytes(chance.randrange(70))
        return [_valued(seed.elements, pixels, value)]
    table, *frames = fragments
    choice = chance.randrange(7)
    if choice == 0 or not frames:
        count = chance.choice((0, 1, len(frames), len(frames) + 1, 50))
        offsets = [chance.choice((0, 1, 2, 8, 100, 0x7FFFFFFF, UNDEFINED)) for _ in range(count)]
        return [_valued(seed.elements, table, pack(f"<{count}I", *offsets))]
    frame = chance.choice(frames)
    content = seed.content[frame.value : frame.value_end]
    if choice == 1:
        parts = [content[: frame.size // 4 * 2], content[frame.size // 4 * 2 :]]
        split = b"".join(seed.elements.encoded(ITEM, "", part) for part in parts)
        return [Splice(frame.start, frame.stop, split)]
    if choice == 2:
        return [Splice(pixels.value_end, pixels.stop, b"")]
    return [_valued(seed.elements, frame, damaged_block(content, chance))]


def _graft(seed: Seed, chance: Random) -> list[Splice]:
    """The tail of another file from where this one is cut."""
    other = chance.choice([other for other in bundled_seeds() if _is_alike(seed, other)])
    if not seed.top:
        return []
    cut = chance.choice(seed.top)
    tails = [place for place in other.top if place.tag >= cut.tag] or [other.top[-1]]
    tail = other.content[tails[0].start :]
    return [Splice(cut.start, len(seed.content), tail[: 1 << 18])]


def _is_alike(seed: Seed, other: Seed) -> bool:
    one, two = seed.elements, other.elements
    return bool(two.places) and (one.implicit, one.little) == (two.implicit, two.little)


def _truncate(seed: Seed, chance: Random) -> list[Splice]:
    places = seed.elements.places
    size = len(seed.content)
    at = chance.randrange(size)
    if places and chance.random() < 0.7:
        place = chance.choice(places)
        at = chance.choice((place.start, place.value, place.stop - 1, place.length_at + 1))
    return [Splice(at, size, b"")]


def _bytes(seed: Seed, chance: Random) -> list[Splice]:
    pixels = seed.elements.find(PIXEL_DATA)
    size = len(seed.content)
    reach = pixels.value if pixels is not None and chance.random() < 0.8 else size
    at = chance.randrange(max(reach, 1))
    match chance.randrange(4):
        case 0:
            flipped = seed.content[at] ^ 1 << chance.randrange(8) if at < size else 0
            return [Splice(at, at + 1, bytes([flipped]))]
        case 1:
            return [Splice(at, at, chance.randbytes(chance.randrange(1, 9)))]
        case 2:
            return [Splice(at, min(at + chance.randrange(1, 9), size), b"")]
        case _:
            return [Splice(at, min(at + 4, size), chance.choice((b"\xff" * 4, bytes(4))))]


_COMMON: dict[Callable[[Seed, Random], list[Splice]], int] = {
    _value: 30,
    _stranger: 12,
    _pixels: 10,
    _items: 7,
    _length: 7,
    _vr: 5,
    _tag: 5,
    _drop: 6,
    _double: 4,
    _swap: 3,
    _nest: 2,
    _graft: 3,
    _truncate: 2,
    _bytes: 6,
}
_DAMAGES, _WEIGHTS = list(_COMMON), list(_COMMON.values())


def _raw_damage(content: bytes, chance: Random) -> bytes:
    """Damage without regard to what the bytes are."""
    data = bytearray(content)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(max(len(data), 1))
        match chance.randrange(5):
            case 0 if data:
                data[at] = chance.randrange(256)
            case 1:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 2:
                del data[at : at + chance.randrange(1, 9)]
            case 3:
                data[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\xfe\xff\xdd\xe0"))
            case _:
                start = chance.randrange(max(len(data), 1))
                data[at:at] = data[start : start + chance.randrange(1, 64)]
    return bytes(data)


def seeds_below(paths: Iterable[Path], *, limit_bytes: int, root: Path) -> list[Seed]:
    """Seeds from files on disk that are no larger than `limit_bytes`, named relative to `root`."""
    return [
        seed_of(path, name=path.relative_to(root).as_posix())
        for path in paths
        if path.stat().st_size <= limit_bytes
    ]
