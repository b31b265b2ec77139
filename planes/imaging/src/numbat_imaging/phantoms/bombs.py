"""Files that ask for far more than they are: of memory, of time, of depth.

Each is a few kilobytes to a few megabytes, well formed up to what makes it a bomb, and would cost
gigabytes or minutes if its header were believed or its parts compared each with each.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, sin
from pathlib import Path
from struct import pack

from numbat_imaging.phantoms.element_map import ITEM, PIXEL_DATA, ElementMap

_EXPLICIT = "1.2.840.10008.1.2.1"
_IMPLICIT = "1.2.840.10008.1.2"
_DEFLATED = "1.2.840.10008.1.2.1.99"
_RLE = "1.2.840.10008.1.2.5"
_JPEG = "1.2.840.10008.1.2.4.50"
_JPEG_LS = "1.2.840.10008.1.2.4.80"
_JPEG_2000 = "1.2.840.10008.1.2.4.90"
_MR = "1.2.840.10008.5.1.4.1.1.4"
_ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4.1"
_SECONDARY = "1.2.840.10008.5.1.4.1.1.7"
_MANY = 1_000_000
_HUGE = 0x7FFFFFFF
_MEBI = 1 << 20

_PLAIN = ElementMap(False, True, (), ())
_BARE = ElementMap(True, True, (), ())


@dataclass(frozen=True, slots=True)
class Bomb:
    """A named bomb: `write` puts it into a folder; `outcome` is the code that refuses it.

    `outcome` is "value" where what makes it a bomb is never looked at.
    """

    name: str
    write: Callable[[Path], None]
    outcome: str


def _element(tag: int, vr: str, value: bytes | str | Sequence[int]) -> bytes:
    if isinstance(value, str):
        value = value.encode()
    elif not isinstance(value, bytes):
        value = pack(f"<{len(value)}{'H' if vr == 'US' else 'I'}", *value)
    if vr not in ("SQ", "OB", "OW", "UN", "UT") and len(value) > 0xFFFE:
        vr = "UN"
    return _PLAIN.encoded(tag, vr, value)


def _items(*contents: bytes) -> bytes:
    return b"".join(_PLAIN.encoded(ITEM, "", content) for content in contents)


def _sequence(tag: int, *contents: bytes) -> bytes:
    return _element(tag, "SQ", _items(*contents))


_END = pack("<HHI", 0xFFFE, 0xE0DD, 0)


def _fragments(*contents: bytes) -> bytes:
    """Encapsulated pixel data with an empty offset table."""
    head = pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, 0xFFFFFFFF)
    return head + _items(b"", *contents) + _END


def _pixels(size: int, *, length: int | None = None) -> bytes:
    head = pack("<HH2sHI", 0x7FE0, 0x0010, b"OW", 0, size if length is None else length)
    return head + bytes(size)


def image(
    *more: bytes,
    pixels: bytes | None = None,
    syntax: str = _EXPLICIT,
    sop_class: str = _MR,
    rows: int = 2,
    columns: int = 2,
    bits: int = 16,
    without: Sequence[int] = (),
) -> bytes:
    """A small MR image with `more` elements in their places; the later of two of one tag counts."""
    body = {
        0x00080016: _element(0x00080016, "UI", sop_class),
        0x00080018: _element(0x00080018, "UI", "2.25.11"),
        0x00080060: _element(0x00080060, "CS", "MR"),
        0x00180050: _element(0x00180050, "DS", "2"),
        0x0020000D: _element(0x0020000D, "UI", "2.25.12"),
        0x0020000E: _element(0x0020000E, "UI", "2.25.13"),
        0x00200013: _element(0x00200013, "IS", "1"),
        0x00200032: _element(0x00200032, "DS", "0\\0\\0"),
        0x00200037: _element(0x00200037, "DS", "1\\0\\0\\0\\1\\0"),
        0x00280002: _element(0x00280002, "US", (1,)),
        0x00280004: _element(0x00280004, "CS", "MONOCHROME2"),
        0x00280010: _element(0x00280010, "US", (rows,)),
        0x00280011: _element(0x00280011, "US", (columns,)),
        0x00280030: _element(0x00280030, "DS", "1\\1"),
        0x00280100: _element(0x00280100, "US", (bits,)),
        0x00280101: _element(0x00280101, "US", (bits,)),
        0x00280102: _element(0x00280102, "US", (bits - 1,)),
        0x00280103: _element(0x00280103, "US", (0,)),
        PIXEL_DATA: _pixels(rows * columns * bits // 8) if pixels is None else pixels,
    }
    for element in more:
        group, number = element[0] | element[1] << 8, element[2] | element[3] << 8
        body[group << 16 | number] = element
    return _part10(b"".join(body[tag] for tag in sorted(body) if tag not in without), syntax)


def _part10(body: bytes, syntax: str) -> bytes:
    meta = _element(0x00020010, "UI", syntax)
    return bytes(128) + b"DICM" + _element(0x00020000, "UL", (len(meta),)) + meta + body


def _frame_group(
    position: str, orientation: str = "1\\0\\0\\0\\1\\0", spacing: str = "1\\1"
) -> bytes:
    return b"".join(
        (
            _sequence(0x00209113, _element(0x00200032, "DS", position)),
            _sequence(0x00209116, _element(0x00200037, "DS", orientation)),
            _sequence(0x00289110, _element(0x00280030, "DS", spacing)),
        )
    )


def _enhanced(groups: Sequence[bytes], *more: bytes, frames: int | None = None) -> bytes:
    count = len(groups) if frames is None else frames
    return image(
        _element(0x00280008, "IS", str(count)),
        _sequence(0x52009230, *groups),
        *more,
        pixels=_pixels(2 * count if count < 1 << 22 else 8),
        rows=1,
        columns=1,
        sop_class=_ENHANCED_MR,
    )


# -- compressed files ----------------------------------------------------------------------------


def _gzip_pixels() -> bytes:
    """2 GiB of zeros as pixels, in 2 MB of gzip."""
    return _zeros_behind(image(rows=32767, columns=32767, pixels=_pixels(0, length=0x7FFE0002)))


def _gzip_header() -> bytes:
    """An element of 1 GiB before the pixels."""
    head = pack("<HH2sHI", 0x0009, 0x1010, b"UN", 0, 1 << 30)
    start = _part10(_element(0x00080016, "UI", _MR), _EXPLICIT)
    return _zeros_behind(start + head)


def _zeros_behind(start: bytes) -> bytes:
    # A gzip file may be several, one after the other (RFC 1952 2.2).
    zeros = gzip.compress(bytes(16 * _MEBI), 6, mtime=0)
    return gzip.compress(start, 6, mtime=0) + zeros * 128


def _deflated() -> bytes:
    """A deflated data set whose pixels are 512 MiB of zeros."""
    start = image(rows=16384, columns=16384, pixels=_pixels(0, length=512 * _MEBI))
    meta = start.index(b"1.2.840.10008.1.2.1\0")
    head = _part10(b"", _DEFLATED)
    engine = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = engine.compress(start[meta + 20 :]) + engine.flush(zlib.Z_FULL_FLUSH)
    # After a full flush a block says the same wherever it stands.
    zeros = engine.compress(bytes(16 * _MEBI)) + engine.flush(zlib.Z_FULL_FLUSH)
    return head + body + zeros * 32 + b"\3\0"


def _zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(64 * _MEBI))
        archive.writestr("b", gzip.compress(bytes(32 * _MEBI), mtime=0))


def _zips_in_zips(folder: Path) -> None:
    inner = folder / "inner"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(48 * _MEBI))
    content = inner.read_bytes()
    inner.unlink()
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(60):
            archive.writestr(f"{number}.zip", content)


# -- structure -----------------------------------------------------------------------------------


def _nested(depth: int, *, defined: bool) -> bytes:
    """Sequences inside sequences; of undefined length, or each of a length that counts the rest."""
    content = _element(0x00080100, "SH", "X")
    if defined:
        for _ in range(depth):
            content = (
                pack("<HH2sHI", 8, 0x1140, b"SQ", 0, len(content) + 8)
                + pack("<HHI", 0xFFFE, 0xE000, len(content))
                + content
            )
        return image(content)
    head = pack("<HH2sHI", 8, 0x1140, b"SQ", 0, 0xFFFFFFFF) + pack(
        "<HHI", 0xFFFE, 0xE000, (1 << 32) - 1
    )
    tail = pack("<HHI", 0xFFFE, 0xE00D, 0) + _END
    return image(head * depth + content + tail * depth)


def _empty_items(tag: int) -> bytes:
    return image(_element(tag, "SQ", pack("<HHI", 0xFFFE, 0xE000, 0) * _MANY))


def _empty_elements() -> bytes:
    """A million private elements without a value, 8 bytes each."""
    numbers = range(_MANY)
    body = b"".join(pack("<HHI", 0x1001 + 2 * (n >> 15), 0x1000 + (n & 0x7FFF), 0) for n in numbers)
    start = _BARE.encoded(0x00080016, "", _MR.encode())
    return _part10(start + body, _IMPLICIT)


def _frames_by_elements() -> bytes:
    """Many frames times many elements: each frame's own data set would have all of them."""
    private = [_element(0x00090000 | 0x1000 + n, "LO", b"") for n in range(30_000)]
    return _enhanced([b""] * 100_000, b"".join(private))


# -- what headers claim --------------------------------------------------------------------------


def _siz(rows: int, columns: int) -> bytes:
    size = pack(">HIIIIIIIIH", 0, columns, rows, 0, 0, columns, rows, 0, 0, 1) + b"\x0f\1\1"
    return b"\xff\x4f\xff\x51" + pack(">H", len(size) + 2) + size + bytes(64) + b"\xff\xd9"


def _sof(marker: int, rows: int, columns: int, bits: int) -> bytes:
    frame = pack(">BHHB", bits, rows, columns, 1) + b"\1\x11\0"
    scan = b"\1\1\0\0\x3f\0"
    return (
        b"\xff\xd8\xff"
        + bytes([marker])
        + pack(">H", len(frame) + 2)
        + frame
        + b"\xff\xda"
        + pack(">H", len(scan) + 2)
        + scan
        + bytes(64)
        + b"\xff\xd9"
    )


def _csa(tags: int, items: int) -> bytes:
    header = b"SV10\4\3\2\1" + pack("<II", tags, 77)
    tag = b"NumberOfImagesInMosaic".ljust(64, b"\0") + pack("<i4siii", 1, b"US\0\0", 6, items, 77)
    return header + tag + pack("<4i", _HUGE, _HUGE, 77, _HUGE) + bytes(40)


def _mosaic(tags: int, items: int) -> bytes:
    return image(
        _element(0x00080008, "CS", "ORIGINAL\\PRIMARY\\M\\MOSAIC"),
        _element(0x00290010, "LO", "SIEMENS CSA HEADER"),
        _element(0x00291010, "OB", _csa(tags, items)),
        _element(0x00291020, "OB", _csa(tags, items)),
        rows=64,
        columns=64,
    )


def _palette(*descriptor: int) -> bytes:
    tables = [
        part
        for number in range(3)
        for part in (
            _element(0x00281101 + number, "US", descriptor),
            _element(0x00281201 + number, "OW", b"\1\2"),
        )
    ]
    return image(_element(0x00280004, "CS", "PALETTE COLOR"), *tables, bits=8)


def _modality_table(*descriptor: int) -> bytes:
    table = _element(0x00283002, "US", descriptor) + _element(0x00283006, "OW", b"\1\2")
    return image(_sequence(0x00283000, table + _element(0x00283004, "LO", "US")))


def _real_world(first: int, last: int) -> bytes:
    mapping = _element(0x00409211, "US", (last,)) + _element(0x00409216, "US", (first,))
    mapping += _element(0x00409212, "FD", pack("<2d", 1.0, 2.0))
    return image(_sequence(0x00409096, *[mapping] * 5_000))


def _offset_tables() -> bytes:
    table = _PLAIN.encoded(ITEM, "", b"\xff\xff\xff\xff" * _MANY)
    head = pack("<HH2sHI", 0x7FE0, 0x0010, b"OB", 0, 0xFFFFFFFF)
    frames = _element(0x00280008, "IS", str(_MANY))
    pixels = head + table + _items(b"\0\0") + _END
    return image(frames, pixels=pixels, syntax=_RLE)


def _extended_offsets() -> bytes:
    tables = pack("<2Q", 0, 1 << 62), pack("<2Q", 1 << 62, 1 << 62)
    extended = [
        pack("<HH2sHI", 0x7FE0, number, b"OV", 0, 16) + table
        for number, table in zip((1, 2), tables, strict=True)
    ]
    return image(
        _element(0x00280008, "IS", "2"), *extended, pixels=_fragments(b"\0\0"), syntax=_JPEG
    )


# -- what is compared each with each --------------------------------------------------------------


def _turned(count: int) -> list[bytes]:
    """Frames that share no orientation."""
    found = []
    for number in range(count):
        c, s = cos(3.1 * number / count), sin(3.1 * number / count)
        cosines = f"{c:.9f}\\{s:.9f}\\0\\{-s:.9f}\\{c:.9f}\\0"
        found.append(_frame_group("0\\0\\0", cosines, "1000\\1000"))
    return found


def _same_place(count: int) -> list[bytes]:
    return [_frame_group("0\\0\\0")] * count


def _dimensions(count: int) -> bytes:
    """Index values far longer than the dimensions are many."""
    values = _element(0x00209157, "UL", range(5000))
    group = _sequence(0x00209111, values) + _frame_group("0\\0\\0")
    pointer = _element(0x00209165, "AT", pack("<HH", 0x20, 0x9057))
    return _enhanced([group] * count, _sequence(0x00209222, *[pointer] * 5000))


def _file(outcome: str, name: str, content: Callable[[], bytes]) -> Bomb:
    return Bomb(name, lambda folder: _written(folder, content()), outcome)


def _written(folder: Path, content: bytes) -> None:
    (folder / "bomb.dcm").write_bytes(content)


def _claims(syntax: str, code: bytes) -> bytes:
    return _vast(_fragments(code), syntax=syntax)


def _vast(pixels: bytes, *, syntax: str = _EXPLICIT) -> bytes:
    """65,535 rows and columns, whatever the pixels are."""
    return image(pixels=pixels, syntax=syntax, rows=65535, columns=65535)


BOMBS: dict[str, Bomb] = {
    bomb.name: bomb
    for bomb in (
        _file("IMG-1007", "gzip: 2 GiB of pixels", _gzip_pixels),
        _file("IMG-1013", "gzip: an element of 1 GiB in the header", _gzip_header),
        _file("IMG-1801", "gzip: zeros, no DICOM", lambda: _zeros_behind(b"")),
        _file("IMG-1007", "deflate: 512 MiB of pixels", _deflated),
        Bomb("zip: 64 MiB in one member", _zip, "IMG-1007"),
        Bomb("zip: 60 archives of 48 MiB in one", _zips_in_zips, "IMG-1007"),
        _file(
            "IMG-1013",
            "10,000 sequences of undefined length inside one another",
            lambda: _nested(10_000, defined=False),
        ),
        _file(
            "value",
            "2,000 sequences of known length inside one another",
            lambda: _nested(2_000, defined=True),
        ),
        _file("value", "a million empty items in a sequence", lambda: _empty_items(0x00081140)),
        _file("IMG-1012", "a million empty functional groups", lambda: _empty_items(0x52009230)),
        _file("IMG-1310", "a million empty shared groups", lambda: _empty_items(0x52009229)),
        _file("value", "a million empty real-world mappings", lambda: _empty_items(0x00409096)),
        _file("IMG-1013", "a million empty elements", _empty_elements),
        _file("IMG-1013", "100,000 frames of 30,000 elements", _frames_by_elements),
        _file(
            "IMG-1012", "a million groups for a million frames", lambda: _enhanced([b""] * _MANY)
        ),
        _file(
            "IMG-1601",
            "2^31 - 1 frames of nothing",
            lambda: image(_element(0x00280008, "IS", str(_HUGE))),
        ),
        _file(
            "IMG-1310",
            "2^31 - 1 frames in enhanced",
            lambda: _enhanced([_frame_group("0\\0\\0")], frames=_HUGE),
        ),
        _file(
            "IMG-1601",
            "2^31 - 1 frames in one fragment",
            lambda: image(
                _element(0x00280008, "IS", str(_HUGE)), pixels=_fragments(b"\0\0"), syntax=_RLE
            ),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns in 8 bytes",
            lambda: _vast(_pixels(8)),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns, length 4 GiB",
            lambda: _vast(_pixels(8, length=0xFFFFFFFE)),
        ),
        _file(
            "IMG-1419",
            "30,000 rows and columns in RLE",
            lambda: image(
                pixels=_fragments(pack("<16I", 2, 64, 70, *[0] * 13) + b"\x81\0" * 6),
                syntax=_RLE,
                rows=30_000,
                columns=30_000,
            ),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns in RLE",
            lambda: _claims(_RLE, pack("<16I", 2, 64, 70, *[0] * 13) + b"\x81\0" * 6),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns in JPEG",
            lambda: _claims(_JPEG, _sof(0xC0, 65535, 65535, 8)),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns in JPEG-LS",
            lambda: _claims(_JPEG_LS, _sof(0xF7, 65535, 65535, 16)),
        ),
        _file(
            "IMG-1401",
            "65,535 rows and columns in JPEG 2000",
            lambda: _claims(_JPEG_2000, _siz(65535, 65535)),
        ),
        _file(
            "IMG-1419",
            "30,000 rows and columns in JPEG 2000",
            lambda: image(
                pixels=_fragments(_siz(30000, 30000)), syntax=_JPEG_2000, rows=30000, columns=30000
            ),
        ),
        _file(
            "IMG-1415",
            "a large code stream for a small image in JPEG 2000",
            lambda: image(pixels=_fragments(_siz(30000, 30000)), syntax=_JPEG_2000),
        ),
        _file(
            "IMG-1414",
            "a large code stream for a small image in JPEG-LS",
            lambda: image(pixels=_fragments(_sof(0xF7, 30000, 30000, 16)), syntax=_JPEG_LS),
        ),
        _file(
            "IMG-1411",
            "a million fragments",
            lambda: image(pixels=_fragments(*[b""] * _MANY), syntax=_RLE),
        ),
        _file("IMG-1601", "a million offsets that lie", _offset_tables),
        _file("IMG-1601", "extended offsets beyond the world", _extended_offsets),
        _file(
            "IMG-1012",
            "an image type of 100,000 values",
            lambda: image(_element(0x00080008, "CS", "A\\" * 100_000 + "A")),
        ),
        _file(
            "IMG-1012",
            "a position of 100,000 values",
            lambda: image(_element(0x00200032, "DS", "1\\" * 100_000 + "1")),
        ),
        _file(
            "IMG-1012",
            "a patient name of 16 MB",
            lambda: image(_element(0x00100010, "PN", "A=^" * (5 << 20))),
        ),
        _file(
            "IMG-1012",
            "a patient name of escapes",
            lambda: image(
                _element(0x00080005, "CS", "\\ISO 2022 IR 87"),
                _element(0x00100010, "PN", b"\x1b$B0!\x1b(B" * 500_000),
            ),
        ),
        _file(
            "IMG-1012",
            "a series number of a million digits",
            lambda: image(_element(0x00200011, "IS", "9" * _MANY)),
        ),
        _file("IMG-1606", "CSA: 2^31 tags", lambda: _mosaic(_HUGE, 1)),
        _file("IMG-1606", "CSA: 2^31 items in a tag", lambda: _mosaic(1, _HUGE)),
        _file("IMG-1606", "CSA: negative counts", lambda: _mosaic(0xFFFFFFFF, -1)),
        _file("IMG-1418", "a palette of 65,536 entries in 2 bytes", lambda: _palette(0, 0, 16)),
        _file("IMG-1418", "a palette of 99 bits", lambda: _palette(65535, 65535, 99)),
        _file(
            "IMG-1508",
            "a modality table of 65,536 entries in 2 bytes",
            lambda: _modality_table(0, 0, 16),
        ),
        _file("value", "5,000 real-world tables", lambda: _real_world(0, 65535)),
        _file("IMG-1013", "3,000 frames of 3,000 orientations", lambda: _enhanced(_turned(3000))),
        _file("IMG-1302", "10,000 frames at one place", lambda: _enhanced(_same_place(10_000))),
        _file("IMG-1302", "index values of 5,000 dimensions", lambda: _dimensions(400)),
    )
}
