"""Uncompressed frames byte by byte: lengths, layouts, orders; part of IMG-G27."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np

from numbat_gates import Check
from numbat_imaging.intake.headers import PixelLocation
from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.description import RGB
from numbat_imaging.values.native import NativeFrames, samples_of

_OFFSET, _ROWS, _COLUMNS, _FRAMES = 4, 3, 5, 3
_GE = "1.2.840.113619.5.2"


def native_frames(check: Check) -> None:
    """Frames of 15 pixels, so that an odd one does not begin at a word."""
    _lengths(check)
    _present(check)
    _straight(check)
    _cut(check)
    _orders(check)
    _layouts(check)


def format_of(bits: int, *, length: int | None = 0, **changes: Any) -> PixelFormat:
    """The description of three grey frames of 3 × 5 pixels, changed."""
    location = PixelLocation(offset=_OFFSET, length=length, vr="OW", keyword="PixelData")
    plain = PixelFormat(
        rows=_ROWS,
        columns=_COLUMNS,
        samples=1,
        photometric="MONOCHROME2",
        bits_allocated=bits,
        bits_stored=bits,
        high_bit=bits - 1,
        signed=False,
        planar=0,
        transfer_syntax_uid="1.2.840.10008.1.2.1",
        location=location,
        little_endian=True,
        lossy=False,
        frames=_FRAMES,
    )
    return replace(plain, **changes)


def _with_keyword(pixels: PixelFormat, keyword: str) -> PixelFormat:
    return replace(pixels, location=replace(pixels.location, keyword=keyword))


def _open(data: bytes, pixels: PixelFormat) -> NativeFrames:
    """The frames of a file that holds `data` behind a few other bytes."""
    location = replace(pixels.location, length=len(data))
    return NativeFrames(
        BytesIO(b"\xee" * _OFFSET + data), replace(pixels, location=location), file="a file"
    )


def _lengths(check: Check) -> None:
    """Which lengths are the frames, and what is told of the others."""
    # Bits of a pixel, bytes that three frames have, bytes found, and whole frames in these.
    for bits, enough in ((8, 45), (8, 46), (16, 90), (1, 6), (32, 180)):
        NativeFrames(BytesIO(), format_of(bits, length=enough), file="a file")
        check.true(f"{enough} bytes for 3 frames of {bits} bits a pixel", True)
    cases: tuple[tuple[int, int, int | None, int | None], ...] = (
        (8, 45, 44, None),
        (8, 45, 47, None),
        (8, 45, 30, 2),
        (8, 45, 31, None),
        (8, 45, 15, 1),
        (8, 45, 16, 1),
        (8, 45, 17, None),
        (8, 45, 0, None),
        (8, 45, 14, None),
        (8, 45, 60, 4),
        (8, 45, None, None),
        (16, 90, 91, None),
        (16, 90, 89, None),
        (16, 90, 60, 2),
        (1, 6, 5, None),
        (1, 6, 7, None),
        (1, 6, 2, 1),
        (1, 6, 4, 2),
    )
    for bits, whole, length, frames in cases:
        name = f"{length} bytes where 3 frames of {bits} bits a pixel have {whole}"
        with check.refuses("IMG-1403", name) as caught:
            NativeFrames(BytesIO(), format_of(bits, length=length), file="a file")
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            told = [fields[key] for key in ("expected_bytes", "found_bytes", "frames")]
            check.equal(f"told of {name}", told, [whole, length or 0, 3])
            check.equal(f"whole frames in {name}", fields.get("frames_found"), frames)


def _present(check: Check) -> None:
    frames = NativeFrames(BytesIO(), format_of(16, length=90), file="a file")
    for size in (None, _OFFSET + 90, _OFFSET + 91):
        frames.check_present(size)
        check.true(f"a file of {size} bytes", True)
    with check.refuses("IMG-1403", "a file that lacks a byte") as caught:
        frames.check_present(_OFFSET + 89)
    if caught.diagnostic is not None:
        check.equal("bytes that are there", caught.diagnostic.fields["found_bytes"], 89)


def _straight(check: Check) -> None:
    """Which frames are read straight into a plane; of the others the plane is left alone."""
    words = np.arange(1, 46, dtype="<u2").reshape(_FRAMES, _ROWS, _COLUMNS)
    floats = _with_keyword(format_of(32, bits_stored=0), "FloatPixelData")
    shape = (_ROWS, _COLUMNS)
    cases: tuple[tuple[str, PixelFormat, np.ndarray[Any, Any], bool], ...] = (
        ("words", format_of(16), np.full(shape, 7, "u2"), True),
        ("signed words", format_of(16, signed=True), np.full(shape, 7, "i2"), True),
        ("long words", format_of(32), np.full(shape, 7, "u4"), True),
        ("floats", floats, np.full(shape, 7, "f4"), True),
        ("bytes", format_of(8), np.full(shape, 7, "u1"), True),
        ("12 of 16 bits", format_of(16, bits_stored=12), np.full(shape, 7, "u2"), False),
        ("a plane of another type", format_of(16), np.full(shape, 7, "i4"), False),
        ("a plane turned", format_of(16), np.full(shape[::-1], 7, "u2").T, False),
        ("indices", format_of(16, photometric="PALETTE COLOR"), np.full(shape, 7, "u2"), False),
        ("big endian", format_of(16, little_endian=False), np.full(shape, 7, "u2"), False),
        ("GE's words", format_of(16, transfer_syntax_uid=_GE), np.full(shape, 7, "u2"), False),
        ("one bit", format_of(1), np.full(shape, 7, "u1"), False),
        ("colours", format_of(8, samples=3, photometric="RGB"), np.zeros(shape, RGB), False),
        (
            "big endian bytes in words",
            format_of(8, little_endian=False),
            np.full(shape, 7, "u1"),
            False,
        ),
    )
    for says, pixels, plane, straight in cases:
        size = pixels.bits_allocated * pixels.samples
        data = np.resize(words.view("u1"), -(-size * 45 // 8)).tobytes()
        before = plane.copy()
        found = _open(data, pixels).into(1, plane)
        check.equal(f"{says}: straight", found, straight)
        own = len(data) // 3
        required = data[own : 2 * own] if straight else before.tobytes()
        check.equal(f"{says}: the plane", plane.tobytes(), required)


def _cut(check: Check) -> None:
    """A file that lost its end since its header was read."""
    pixels = format_of(16, length=90)
    for says, size, frame, found in (
        ("inside the frame", 70, 2, 70),
        ("before the frame", 50, 2, 60),
        ("inside the second", 31, 1, 31),
    ):
        short = NativeFrames(BytesIO(bytes(_OFFSET + size)), pixels, file="a file")
        for way in ("into", "frame"):
            with check.refuses("IMG-1403", f"{way}: the file ends {says}") as caught:
                if way == "into":
                    short.into(frame, np.empty((_ROWS, _COLUMNS), "u2"))
                else:
                    short.frame(frame)
            if caught.diagnostic is not None:
                told = caught.diagnostic.fields["found_bytes"]
                check.equal(f"{way}: bytes there, {says}", told, found)


def _orders(check: Check) -> None:
    truth = np.arange(45, dtype="u1").reshape(_FRAMES, _ROWS, _COLUMNS)
    padded = truth.tobytes() + b"\0"
    swapped = np.frombuffer(padded, "u2").byteswap().tobytes()
    big = format_of(8, little_endian=False)
    as_bytes = replace(big, location=replace(big.location, vr="OB"))
    for says, pixels, data in (
        ("bytes", format_of(8), padded),
        ("bytes in big endian words", big, swapped),
        ("bytes in big endian", as_bytes, padded),
        ("bytes in GE's words", format_of(8, transfer_syntax_uid=_GE), swapped),
    ):
        opened = _open(data, pixels)
        found = [opened.frame(number) for number in (2, 0, 1)]
        check.equal(f"{says}, in any order", np.stack(found), truth[[2, 0, 1]])
    bits = np.random.default_rng(1).integers(0, 2, (_FRAMES, _ROWS, _COLUMNS), "u1")
    packed = np.packbits(bits.ravel(), bitorder="little").tobytes()
    turned = np.frombuffer(packed, "u2").byteswap().tobytes()
    for says, pixels, data in (
        ("bits", format_of(1), packed),
        ("bits in big endian words", format_of(1, little_endian=False), turned),
    ):
        opened = _open(data, pixels)
        check.equal(f"{says}, frame by frame", np.stack([opened.frame(k) for k in range(3)]), bits)
    words = truth.astype(">u2")
    for says, pixels in (
        ("big endian words", format_of(16, little_endian=False)),
        ("GE's words", format_of(16, transfer_syntax_uid=_GE)),
    ):
        check.equal(f"{says}", _open(words.tobytes(), pixels).frame(1), truth[1].astype("u2"))


def _layouts(check: Check) -> None:
    """Three samples a pixel, and two pixels that share their chroma."""
    colours = np.arange(_ROWS * _COLUMNS * 3, dtype="u1").reshape(_ROWS, _COLUMNS, 3)
    rgb = format_of(8, samples=3, photometric="RGB")
    check.equal("colours by pixel", samples_of(colours.tobytes(), rgb), colours)
    grey = np.arange(15, dtype="<u2").reshape(_ROWS, _COLUMNS)
    found = samples_of(grey.tobytes(), format_of(16, planar=1))
    check.equal("planes of one sample", found, grey)
    planes = colours.transpose(2, 0, 1).tobytes()
    check.equal("colours by plane", samples_of(planes, replace(rgb, planar=1)), colours)
    halved = replace(rgb, rows=1, columns=4, photometric="YBR_FULL_422")
    found = samples_of(bytes([10, 11, 200, 100, 12, 13, 201, 101]), halved)
    required = [[[10, 200, 100], [11, 200, 100], [12, 201, 101], [13, 201, 101]]]
    check.equal("pairs that share their chroma", found.tolist(), required)
    skipped = samples_of(b"\xff\xff" + bytes(range(30)), format_of(16), skipped_bits=16)
    check.equal(
        "bits before the first sample",
        skipped,
        np.frombuffer(bytes(range(30)), "<u2").reshape(3, 5),
    )
