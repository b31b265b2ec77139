"""Code streams, fragments and RLE: what they say of themselves, and what damage does to them."""

from __future__ import annotations

import random
from dataclasses import replace
from io import BytesIO
from struct import pack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.pixels.decoders.rle import _rle_decode_segment

from numbat_imaging.intake.headers import PixelLocation
from numbat_imaging.phantoms import encapsulation as coded
from numbat_imaging.phantoms.reading import instance_of_fault
from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.codestreams import Damaged, read_codestream, without_wrapper
from numbat_imaging.values.encapsulated import EncapsulatedFrames, scan_fault
from numbat_imaging.values.fragments import FrameFragments
from numbat_imaging.values.rle import rle_frame, unpacked
from numbat_registries import Refusal

GREY = (np.add.outer(np.arange(36), 3 * np.arange(40)) % 251).astype("u1")
COLOUR = np.stack([GREY, 255 - GREY, GREY // 2], axis=-1)


def described(syntax: str, *, frames: int = 1, **values: object) -> PixelFormat:
    pixels = instance_of_fault("clean").pixels
    location = PixelLocation(offset=0, length=None, vr="OB", keyword="PixelData")
    plain = replace(pixels, transfer_syntax_uid=syntax, location=location, frames=frames)
    return replace(plain, **values)  # type: ignore[arg-type]


def eight_bits(syntax: str, **values: object) -> PixelFormat:
    return described(
        syntax, rows=36, columns=40, bits_allocated=8, bits_stored=8, high_bit=7, **values
    )


@pytest.mark.parametrize(
    ("syntax", "coding"),
    [(coded.JPEG_8, "JPEG"), (coded.JPEG_LS, "JPEG-LS"), (coded.JPEG_2000, "JPEG 2000")],
)
@pytest.mark.parametrize("plane", [GREY, COLOUR], ids=["grey", "colour"])
def test_a_stream_states_its_size(syntax: str, coding: str, plane: np.ndarray) -> None:
    found = read_codestream(coded.stream_of(plane, syntax), coding)
    size = (found.rows, found.columns, found.components, found.precision)
    assert size == (36, 40, plane.ndim * 2 - 3, 8)
    assert not found.signed


def test_jpeg_2000_states_sign_depth_and_transform() -> None:
    signed = coded.stream_of(GREY.astype("<i2") - 100, coded.JPEG_2000, bits=12)
    found = read_codestream(signed, "JPEG 2000")
    assert (found.precision, found.signed, found.decorrelated) == (12, True, False)
    transformed = coded.stream_of(COLOUR, coded.JPEG_2000, transform=True)
    assert read_codestream(transformed, "JPEG 2000").decorrelated


def test_jp2_boxes_around_a_stream_are_taken_off() -> None:
    stream = coded.stream_of(GREY, coded.JPEG_2000)
    head = b"\0\0\0\x0cjP  \r\n\x87\n" + pack(">I4s", 12, b"ftyp") + b"jp2 "
    for box in (
        pack(">I4s", 8 + len(stream), b"jp2c"),
        pack(">I4s", 0, b"jp2c"),
        pack(">I4sQ", 1, b"jp2c", 16 + len(stream)),
    ):
        assert without_wrapper(head + box + stream) == stream
    for broken in (head, head + pack(">I4s", 3, b"free")):
        with pytest.raises(Damaged):
            without_wrapper(broken)


@pytest.mark.parametrize(
    ("stream", "coding", "fault"),
    [
        (b"", "JPEG", "start of image"),
        (b"\xff\xd8\xff\xd9", "JPEG", "before its scan"),
        (b"\xff\xd8\x00\x00\xff\xd9", "JPEG", "marker is missing"),
        (b"\xff\xd8\xff\xe0\x00\x01\xff\xd9", "JPEG", "cut off"),
        (b"\xff\xd8\xff\xda\x00\x02\xff\xd9", "JPEG", "before the scan"),
        (b"\xff\x4f\xff\x51", "JPEG 2000", "inside its header"),
        (b"\xff\x4f\xff\x52", "JPEG 2000", "no image size"),
    ],
)
def test_broken_streams_say_why(stream: bytes, coding: str, fault: str) -> None:
    with pytest.raises(Damaged, match=fault):
        read_codestream(stream, coding)


def test_a_jpeg_of_another_process_is_no_match() -> None:
    with pytest.raises(Damaged, match="not lossless JPEG"):
        read_codestream(coded.stream_of(GREY, coded.JPEG_8), "lossless JPEG")
    stream = coded.stream_of(GREY, coded.JPEG_8)
    frame = stream.index(b"\xff\xc0")
    twice = stream[: frame + 13] + stream[frame:]
    with pytest.raises(Damaged, match="two frames"):
        read_codestream(twice, "JPEG")


def test_the_open_length_of_a_last_tile_part_is_allowed() -> None:
    stream = bytearray(coded.stream_of(GREY, coded.JPEG_2000))
    at = stream.index(b"\xff\x90") + 6
    stream[at : at + 4] = bytes(4)
    assert read_codestream(bytes(stream), "JPEG 2000").rows == 36


@given(data=st.data(), syntax=st.sampled_from([coded.JPEG_8, coded.JPEG_LS, coded.JPEG_2000]))
@settings(max_examples=150, deadline=None)
def test_no_damage_leaves_an_untyped_exception(data: st.DataObject, syntax: str) -> None:
    stream = bytearray(coded.stream_of(GREY, syntax))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        stream[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    element = coded.items([b"", bytes(stream)])
    found: object
    try:
        frames = EncapsulatedFrames(BytesIO(element), eight_bits(syntax), file="a file")
        found = frames.frame(0)[0].shape
    except Refusal as refusal:
        found = refusal.code[:6]
    assert found in ((36, 40), "IMG-14")


def test_damage_inside_a_jpeg_scan_is_told() -> None:
    stream = coded.stream_of(GREY, coded.JPEG_8)
    assert scan_fault(stream) is None
    middle = len(stream) - 200
    assert scan_fault(stream[:middle] + stream[middle + 100 :]) is not None


# -- RLE ------------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=400))
@settings(max_examples=100, deadline=None)
def test_packbits_unpack_as_pydicom_unpacks_them(segment: bytes) -> None:
    required = bytes(_rle_decode_segment(segment))
    try:
        found = unpacked(segment, len(required))
    except Damaged:
        # pydicom takes a run that is cut off.
        return
    assert bytes(found) == required


def in_literal_runs(plane: np.ndarray) -> bytes:
    """An RLE frame of any width, nothing compressed (PS3.5 G)."""
    samples = plane.reshape(plane.shape[0] * plane.shape[1], -1).T
    planes = []
    for sample in samples:
        columns = np.ascontiguousarray(sample).view("u1").reshape(sample.size, -1)
        planes += [columns[:, k].tobytes() for k in reversed(range(columns.shape[1]))]
    runs = [
        b"".join(
            bytes([len(part) - 1]) + part
            for part in (data[start : start + 128] for start in range(0, len(data), 128))
        )
        for data in planes
    ]
    offsets = np.cumsum([64, *map(len, runs[:-1])])
    return pack("<16I", len(runs), *offsets, *[0] * (15 - len(runs))) + b"".join(runs)


@pytest.mark.parametrize("dtype", ["u1", "<u2", "<i2", "<u4", "<i8"])
@pytest.mark.parametrize("samples", [1, 3])
def test_rle_frames_round_trip(dtype: str, samples: int) -> None:
    width = np.dtype(dtype).itemsize
    if samples * width > 15:
        samples = 1
    rng = np.random.default_rng(5)
    shape = (19, 11) + ((3,) if samples == 3 else ())
    low = -(1 << 8 * width - 1) if "i" in dtype else 0
    plane = rng.integers(low, low + (1 << 8 * width) - 1, shape, dtype="i8", endpoint=True)
    plane = plane.astype(dtype)
    stream = in_literal_runs(plane)
    pixels = described(
        coded.RLE,
        rows=19,
        columns=11,
        samples=samples,
        bits_allocated=8 * width,
        bits_stored=8 * width,
        high_bit=8 * width - 1,
        signed="i" in dtype,
    )
    np.testing.assert_array_equal(rle_frame(stream, pixels), plane)


@pytest.mark.parametrize(
    ("alter", "fault"),
    [
        (lambda s: s[:40], "cut off"),
        (lambda s: pack("<I", 2) + s[4:], "2 RLE segments"),
        (lambda s: pack("<2I", 1, 60) + s[8:], "do not follow"),
        (lambda s: pack("<2I", 1, 1 << 30) + s[8:], "do not follow"),
        (lambda s: s[:-30], "gives|inside a run"),
        (lambda s: s + b"\x05abcdef", "more than one plane"),
        (lambda s: s[:64] + b"\x81\x01" * 800, "more than one plane"),
    ],
)
def test_damaged_rle_says_why(alter: object, fault: str) -> None:
    stream = coded.stream_of(GREY, coded.RLE)
    with pytest.raises(Damaged, match=fault):
        rle_frame(alter(stream), eight_bits(coded.RLE))  # type: ignore[operator]


# -- fragments ------------------------------------------------------------------------------------


def layouts(count: int, cut: int, table: list[int] | None) -> bytes:
    streams = [coded.stream_of(GREY + k, coded.JPEG_LS) for k in range(count)]
    parts = [part for stream in streams for part in coded.pieces(stream, cut)]
    head = b"" if table is None else pack(f"<{len(table)}I", *table)
    return coded.items([head, *parts]) + b"\xfe\xff\xdd\xe0\0\0\0\0"


@given(
    count=st.integers(1, 5),
    cut=st.integers(1, 4),
    table=st.none() | st.lists(st.integers(0, 2**32 - 1), max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_an_offset_table_of_any_content_changes_no_frame(
    count: int, cut: int, table: list[int] | None
) -> None:
    element = layouts(count, cut, table)
    pixels = eight_bits(coded.JPEG_LS, frames=count)
    frames = EncapsulatedFrames(BytesIO(element), pixels, file="a file")
    for k in range(count):
        np.testing.assert_array_equal(frames.frame(k)[0], GREY + k)


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_fragments_of_any_bytes_are_frames_or_refused(tail: bytes, length: int) -> None:
    for element in (
        tail,
        coded.items([b""]) + tail,
        b"\xfe\xff\x00\xe0" + pack("<I", length) + tail,
    ):
        found: object
        try:
            frames = FrameFragments(BytesIO(element), eight_bits(coded.JPEG_LS), file="a file")
            found = len(frames.data(0)) <= len(element)
        except Refusal as refusal:
            found = refusal.code
        assert found in (True, "IMG-1411", "IMG-1413")


def test_a_random_order_of_frames_reads_each_rightly() -> None:
    element = layouts(5, 3, [])
    pixels = eight_bits(coded.JPEG_LS, frames=5)
    frames = EncapsulatedFrames(BytesIO(element), pixels, file="a file")
    order = list(range(5)) * 2
    random.Random(4).shuffle(order)
    for k in order:
        np.testing.assert_array_equal(frames.frame(k)[0], GREY + k)
