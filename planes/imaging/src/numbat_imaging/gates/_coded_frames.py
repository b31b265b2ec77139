"""Fragments and RLE segments byte by byte; part of IMG-G30."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from struct import pack
from typing import Any

import numpy as np

from numbat_gates import Check
from numbat_imaging.gates._native_frames import format_of
from numbat_imaging.phantoms.encapsulation import DEFLATED, JPEG_2000, RLE
from numbat_imaging.values.codestreams import Damaged
from numbat_imaging.values.fragments import FrameFragments
from numbat_imaging.values.rle import rle_frame, unpacked

_END = pack("<HHI", 0xFFFE, 0xE0DD, 0)
_SOC = b"\xff\x4f\xff\x51"
_JP2 = b"\0\0\0\x0cjP  \r\n\x87\n"
_RLE_1 = pack("<II", 1, 64)


def coded_frames(check: Check) -> None:
    """Which fragments are which frame, and what a run of bytes unpacks to."""
    _plain(check)
    _by_table(check)
    _by_starts(check)
    _starts(check)
    _counts(check)
    _broken(check)
    _runs(check)
    _damaged_runs(check)
    _segments(check)
    _planes(check)


class _Packed(BytesIO):
    """A stream that goes no further than its end, as those that unpack do."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return super().seek(min(offset, len(self.getbuffer())), whence)


def _item(content: bytes) -> bytes:
    return pack("<HHI", 0xFFFE, 0xE000, len(content)) + content


def _frames(
    items: Sequence[bytes],
    frames: int,
    *,
    syntax: str = DEFLATED,
    end: bytes = _END,
    size: bool = False,
) -> list[bytes]:
    """The encoded frames of an element with these items, the offset table among them."""
    data = b"\xee" * 4 + b"".join(map(_item, items)) + end
    pixels = format_of(16, length=None, frames=frames, transfer_syntax_uid=syntax)
    found = FrameFragments(
        _Packed(data), pixels, file="a file", size_bytes=len(data) if size else None
    )
    return [found.data(frame) for frame in range(len(found.frames))]


def _table(*offsets: int) -> bytes:
    return pack(f"<{len(offsets)}I", *offsets)


def _plain(check: Check) -> None:
    """A fragment for each frame, whatever the offset table says."""
    for says, table in (
        ("no table", b""),
        ("a table", _table(0, 12, 24)),
        ("a wrong table", _table(7, 7, 7)),
        ("a table of odd length", b"\1\2\3\4\5\6"),
    ):
        for size in (False, True):
            found = _frames([table, b"aaaa", b"bbbb", b"cccc"], 3, size=size)
            check.equal(f"three fragments, {says}", found, [b"aaaa", b"bbbb", b"cccc"])
    blank = _frames([b"", b"aaaa", b"", b"bbbb", b""], 2)
    check.equal("blank fragments are no frames", blank, [b"aaaa", b"bbbb"])
    whole = _frames([b"", b"aaaa", b"bbbb", b"cccc"], 1)
    check.equal("one frame in three fragments", whole, [b"aaaabbbbcccc"])
    unended = _frames([b"", b"aaaa", b"bbbb"], 2, end=b"")
    check.equal("no delimiter at the end", unended, [b"aaaa", b"bbbb"])
    more = _frames([b"", b"aaaa"], 1, end=_END + b"\xff" * 9)
    check.equal("bytes behind the delimiter", more, [b"aaaa"])


def _by_table(check: Check) -> None:
    """Fragments of a coding without marks: only the offset table tells frames apart."""
    items = [b"aaaa", b"bb", b"cccc", b"dd"]
    # Each item has a head of 8 bytes: they begin at 0, 12, 22 and 34.
    cases: tuple[tuple[str, bytes, int, list[bytes] | str], ...] = (
        ("three and one", _table(0, 34), 2, [b"aaaabbcccc", b"dd"]),
        ("one and three", _table(0, 12), 2, [b"aaaa", b"bbccccdd"]),
        ("three frames", _table(0, 22, 34), 3, [b"aaaabb", b"cccc", b"dd"]),
        ("a table with a word too many", _table(0, 22, 34, 46), 3, [b"aaaabb", b"cccc", b"dd"]),
        ("no table", b"", 2, "IMG-1412"),
        ("a table that begins later", _table(12, 22), 2, "IMG-1412"),
        ("a table without item heads", _table(0, 4), 2, "IMG-1412"),
        ("a table that falls", _table(0, 34, 22), 3, "IMG-1412"),
        ("a table that stands still", _table(0, 22, 22), 3, "IMG-1412"),
        ("a table of two for three frames", _table(0, 22), 3, "IMG-1412"),
        ("a table past the end", _table(0, 46), 2, "IMG-1412"),
    )
    for says, table, frames, required in cases:
        if isinstance(required, str):
            with check.refuses(required, f"fragments by {says}") as caught:
                _frames([table, *items], frames)
            if caught.diagnostic is not None:
                fields = caught.diagnostic.fields
                told = (fields["frames"], fields["fragments"])
                check.equal(f"fragments by {says}: told", told, (frames, 4))
            continue
        check.equal(f"fragments by {says}", _frames([table, *items], frames), required)
    many = [bytes([97 + k]) * 2 for k in range(6)]
    found = _frames([_table(0, 20, 30, 40, 50), *many], 5)
    check.equal("five frames of six fragments", found, [b"aabb", b"cc", b"dd", b"ee", b"ff"])
    found = _frames([_table(0, 20, 30, 40, 50, 60), *many], 5)
    check.equal("and a word more in the table", found, [b"aabb", b"cc", b"dd", b"ee", b"ff"])


def _by_starts(check: Check) -> None:
    """Fragments that begin code streams; a table may agree with them, and is else left aside."""
    one, two = _SOC + b"1", _SOC + b"2"
    # They begin at 0, 13, 22 and 35.
    items = [one, b"x", two, b"y"]
    split = [one + b"x", two + b"y"]
    for says, table in (
        ("no table", b""),
        ("a table that agrees", _table(0, 22)),
        ("a table that begins no stream", _table(0, 13)),
    ):
        found = _frames([table, *items], 2, syntax=JPEG_2000)
        check.equal(f"streams that begin in fragments, {says}", found, split)
    # Streams of three, of which the table says that two are one frame.
    three = [one, b"x", two, _SOC + b"3"]
    found = _frames([_table(0, 22), *three], 2, syntax=JPEG_2000)
    check.equal("a table among the starts", found, [one + b"x", two + _SOC + b"3"])
    for says, parts, joined in (
        ("begins at once", [one, b"x", b"y"], one + b"xy"),
        ("begins later", [b"x", one, b"y"], b"x" + one + b"y"),
        ("never begins", [b"x", b"z", b"y"], b"xzy"),
    ):
        found = _frames([b"", *parts], 1, syntax=JPEG_2000)
        check.equal(f"one frame whose stream {says}", found, [joined])
    untabled = _frames([one, b"x", two], 2, syntax=JPEG_2000)
    check.equal("no offset table at all", untabled, [one + b"x", two])


def _starts(check: Check) -> None:
    """What begins a stream: seen by whether four fragments become two frames."""
    for says, syntax, start, is_one in (
        ("a code stream", JPEG_2000, _SOC + b"12345678", True),
        ("a JP2 file", JPEG_2000, _JP2, True),
        ("a JP2 file that is cut", JPEG_2000, _JP2[:7], False),
        ("JPEG in JPEG 2000", JPEG_2000, b"\xff\xd8\xff\xf7", False),
        ("an RLE header", RLE, _RLE_1, True),
        ("15 segments", RLE, pack("<II", 15, 64), True),
        ("16 segments", RLE, pack("<II", 16, 64), False),
        ("no segment", RLE, pack("<II", 0, 64), False),
        ("a segment elsewhere", RLE, pack("<II", 1, 65), False),
        ("very many segments", RLE, pack("<II", 1 + (1 << 24), 64), False),
        ("very many segments in part", RLE, pack("<II", 1 + (1 << 16), 64), False),
        ("half an RLE header", RLE, _RLE_1[:6], False),
        ("a code stream in RLE", RLE, _SOC, False),
    ):
        items = [b"", start, b"x" * 16, start, b"y" * 16]
        if is_one:
            required = [start + b"x" * 16, start + b"y" * 16]
            check.equal(f"{says} begins a frame", _frames(items, 2, syntax=syntax), required)
            continue
        with check.refuses("IMG-1412", f"{says} begins no frame"):
            _frames(items, 2, syntax=syntax)


def _counts(check: Check) -> None:
    one = _SOC + b"1"
    cases: tuple[tuple[str, list[bytes], int, str, int, int], ...] = (
        ("two fragments for three frames", [b"", b"a", b"b"], 3, DEFLATED, 2, 2),
        ("blanks for frames", [b"", b"a", b"", b""], 3, DEFLATED, 1, 1),
        ("no fragment", [b""], 1, DEFLATED, 0, 0),
        ("three streams for two frames", [b"", one, b"x", one, one], 2, JPEG_2000, 3, 4),
        ("one stream for two frames", [b"", one, b"x", b"y"], 2, JPEG_2000, 1, 3),
        ("two streams for one frame", [b"", one, b"x", one], 1, JPEG_2000, 2, 3),
        ("something before the streams", [b"", b"x", one, one, b"y"], 2, JPEG_2000, 2, 4),
    )
    for says, items, frames, syntax, found, fragments in cases:
        with check.refuses("IMG-1411", says) as caught:
            _frames(items, frames, syntax=syntax)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            told = [fields[key] for key in ("frames", "frames_found", "fragments")]
            check.equal(f"{says}: told", told, [frames, found, fragments])


def _broken(check: Check) -> None:
    """Where items stop to be items; the element begins at byte 4."""
    head = pack("<HHI", 0xFFFE, 0xE000, 4)
    cut = "a fragment is cut off"
    no_item = "something that is no item of known length"
    # A table and one fragment of 4 bytes end at byte 4 + 8 + 12.
    for reason, offset, items, end in (
        ("an item is cut off", 4, [], b""),
        ("an item is cut off", 4, [], _END[:7]),
        ("an item is cut off", 24, [b"", b"aaaa"], _END[:7]),
        ("an item is cut off", 24, [b"", b"aaaa"], b"\0"),
        ("no item at all", 4, [], _END),
        (cut, 24, [b"", b"aaaa"], head + b"bbb"),
        (cut, 12, [b""], head),
        (no_item, 24, [b"", b"aaaa"], pack("<HHI", 0xFFFE, 0xE00D, 0)),
        (no_item, 24, [b"", b"aaaa"], pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)),
        (no_item, 24, [b"", b"aaaa"], pack("<HHI", 0x7FE0, 0xE000, 0)),
    ):
        for size in (False, True):
            name = f"{reason} at {offset}, size {'known' if size else 'unknown'}, {end[:8].hex()}"
            with check.refuses("IMG-1413", name) as caught:
                _frames(items, 1, end=end, size=size)
            if caught.diagnostic is not None:
                told = (caught.diagnostic.fields["reason"], caught.diagnostic.fields["offset"])
                check.equal(f"{name}: told", told, (reason, offset))


# -- RLE ------------------------------------------------------------------------------------------


def _runs(check: Check) -> None:
    long = bytes(range(128))
    cases: tuple[tuple[str, bytes, bytes], ...] = (
        ("bytes as they are", b"\x02abc", b"abc"),
        ("one byte as it is", b"\x00a", b"a"),
        ("128 bytes as they are", b"\x7f" + long, long),
        ("a run of three", b"\xfea", b"aaa"),
        ("a run of two", b"\xffa", b"aa"),
        ("a run of 128", b"\x81a", b"a" * 128),
        ("nothing in between", b"\x80\xffa\x80\x80\x00b", b"aab"),
        ("both", b"\x01ab\xfec\x00d", b"abcccd"),
        ("zeros behind", b"\xffa\x00\x00", b"aa"),
        ("nothing behind", b"\xffa\x80\x00\x80", b"aa"),
    )
    for says, segment, required in cases:
        check.equal(f"a segment of {says}", bytes(unpacked(segment, len(required))), required)


def _damaged_runs(check: Check) -> None:
    more, inside = "an RLE segment holds more than one plane", "an RLE segment ends inside a run"
    for reason, segment, size in (
        (more, b"\x02abc", 2),
        (more, b"\xfea", 2),
        (more, b"\xfea\x01", 3),
        (more, b"\xfea\x00b", 3),
        (inside, b"\x04ab", 5),
        (inside, b"\xfe", 3),
        ("an RLE segment gives 2 bytes of 3", b"\xffa", 3),
        ("an RLE segment gives 0 bytes of 3", b"", 3),
        ("an RLE segment gives 0 bytes of 3", b"\x80", 3),
        ("an RLE segment gives 2 bytes of 9", b"\x04ab", 9),
    ):
        found = _damage(lambda segment=segment, size=size: unpacked(segment, size))
        check.equal(f"{segment!r} for {size} bytes", found, reason)


def _damage(read: Any) -> str:
    try:
        found = read()
    except Damaged as damage:
        return str(damage)
    return f"read as {found!r}"


def _stream(*segments: bytes, starts: Sequence[int] = (), count: int | None = None) -> bytes:
    """An RLE frame; `starts` and `count` in place of what the segments say."""
    places = list(starts) or [64 + sum(map(len, segments[:k])) for k in range(len(segments))]
    told = len(segments) if count is None else count
    return pack("<16I", told, *places, *[0] * (15 - len(places))) + b"".join(segments)


def _segments(check: Check) -> None:
    bytes_ = format_of(8, rows=1, columns=2, frames=1)
    words = replace(bytes_, bits_allocated=16, bits_stored=16, high_bit=15)
    high, low = b"\x01ab", b"\x01cd"
    apart = "the RLE segments do not follow each other within the frame"
    cases: tuple[tuple[str, Any, bytes, str], ...] = (
        ("a header cut", bytes_, _stream(high)[:63], "the RLE header is cut off"),
        ("no segment", bytes_, _stream(), "0 RLE segments where the header describes 1"),
        ("two for one", bytes_, _stream(high, low), "2 RLE segments where the header describes 1"),
        ("one for two", words, _stream(high), "1 RLE segments where the header describes 2"),
        ("a gap before", bytes_, _stream(b"\0" + high, starts=[65]), apart),
        ("one that begins early", bytes_, _stream(high, starts=[63]), apart),
        ("two at one place", words, _stream(high, low, starts=[64, 64]), apart),
        ("an order that falls", words, _stream(high, low, starts=[67, 64]), apart),
        ("one behind the end", words, _stream(high, low, starts=[64, 70]), apart),
        ("nothing in it", bytes_, _stream(b""), apart),
    )
    for says, pixels, data, reason in cases:
        found = _damage(lambda data=data, pixels=pixels: rle_frame(data, pixels))
        check.equal(f"RLE segments: {says}", found, reason)
    many = replace(bytes_, samples=2, bits_allocated=64, bits_stored=64, high_bit=63)
    sixteen = pack("<16I", 16, 64, *[0] * 14) + bytes(64)
    found = _damage(lambda: rle_frame(sixteen, many))
    check.equal("16 segments", found, "16 RLE segments where the header describes 16")


def _planes(check: Check) -> None:
    """Bytes of a sample come from the most significant one downwards, samples one by one."""

    def literal(*values: int) -> bytes:
        return bytes([len(values) - 1, *values])

    small = format_of(8, rows=1, columns=2, frames=1)

    def of_bits(bits: int, **more: Any) -> Any:
        return replace(small, bits_allocated=bits, bits_stored=bits, high_bit=bits - 1, **more)

    bytes_of_words = (literal(1, 2), literal(3, 4))
    cases: tuple[tuple[str, Any, bytes, Any], ...] = (
        ("bytes", small, _stream(literal(1, 200)), [[1, 200]]),
        ("words", of_bits(16), _stream(*bytes_of_words), [[0x0103, 0x0204]]),
        (
            "signed words",
            of_bits(16, signed=True),
            _stream(literal(255, 128), literal(254, 0)),
            [[-2, -32768]],
        ),
        (
            "long words",
            of_bits(32),
            _stream(*bytes_of_words, literal(5, 6), literal(7, 8)),
            [[0x01030507, 0x02040608]],
        ),
        (
            "colours",
            of_bits(8, samples=3, photometric="RGB"),
            _stream(*bytes_of_words, literal(5, 6)),
            [[[1, 3, 5], [2, 4, 6]]],
        ),
        (
            "nine bits in two bytes",
            of_bits(1, rows=3, columns=3),
            _stream(literal(0b01100001, 0b11111110)),
            [[1, 0, 0], [0, 0, 1], [1, 0, 0]],
        ),
        (
            "eight bits in one byte",
            of_bits(1, rows=2, columns=4),
            _stream(literal(0b10000001) + b"\0"),
            [[1, 0, 0, 0], [0, 0, 0, 1]],
        ),
        ("two rows", replace(small, rows=2, columns=1), _stream(literal(1, 2)), [[1], [2]]),
    )
    for says, pixels, data, required in cases:
        found = rle_frame(data, pixels)
        check.equal(f"RLE: {says}", found.tolist(), np.array(required).tolist())
