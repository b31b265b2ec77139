"""Compressed and encapsulated phantoms, sound and broken, made fragment by fragment."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from struct import pack
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom import Dataset
from pydicom.pixels.decoders.base import get_decoder
from pydicom.pixels.encoders.base import get_encoder
from pydicom.uid import UID

JPEG_8 = "1.2.840.10008.1.2.4.50"
JPEG_LS = "1.2.840.10008.1.2.4.80"
JPEG_2000 = "1.2.840.10008.1.2.4.90"
RLE = "1.2.840.10008.1.2.5"
DEFLATED = "1.2.840.10008.1.2.8.1"
UNCOMPRESSED = "1.2.840.10008.1.2.1.98"

_ITEM = b"\xfe\xff\x00\xe0"
_END = b"\xfe\xff\xdd\xe0"

Planes = NDArray[Any]
#: Changes one dataset in place.
Change = Callable[[Dataset], None]


def planes_of(ds: Dataset) -> Planes:
    """The frames of a little endian dataset without compression, (frames, rows, columns[, 3])."""
    kind = "i" if ds.PixelRepresentation else "u"
    frames = int(ds.get("NumberOfFrames", 1) or 1)
    shape = (frames, ds.Rows, ds.Columns) + ((3,) if ds.SamplesPerPixel == 3 else ())
    dtype = np.dtype(f"<{kind}{ds.BitsAllocated // 8}")
    return np.frombuffer(ds.PixelData, dtype, int(np.prod(shape))).reshape(shape)


def stream_of(plane: Planes, syntax: str, *, bits: int = 0, transform: bool = False) -> bytes:
    """One frame as the stream of a transfer syntax.

    `bits`: depth that the stream states, that of the type by default. `transform`: JPEG 2000's
    component transform, for colours.
    """
    if syntax == DEFLATED:
        engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return engine.compress(plane.tobytes()) + engine.flush()
    if syntax == UNCOMPRESSED:
        return plane.tobytes()
    if syntax == JPEG_8:
        file = BytesIO()
        Image.fromarray(plane).save(file, "JPEG", quality=100, subsampling=0)
        return file.getvalue()
    colour = plane.ndim == 3
    options: dict[str, Any] = {
        "rows": plane.shape[0],
        "columns": plane.shape[1],
        "number_of_frames": 1,
        "samples_per_pixel": 3 if colour else 1,
        "bits_allocated": plane.dtype.itemsize * 8,
        "bits_stored": bits or plane.dtype.itemsize * 8,
        "pixel_representation": int(plane.dtype.kind == "i"),
        "photometric_interpretation": "RGB" if colour else "MONOCHROME2",
        "planar_configuration": 0,
    }
    if colour and syntax == JPEG_2000:
        options["photometric_interpretation"] = "YBR_RCT" if transform else "RGB"
    if syntax == RLE:
        options["encoding_plugin"] = "pydicom"
    encoded: bytes = get_encoder(UID(syntax)).encode(np.ascontiguousarray(plane), **options)
    return encoded


def items(fragments: Sequence[bytes]) -> bytes:
    """Fragments as items of even length."""
    padded = [fragment + b"\0" * (len(fragment) % 2) for fragment in fragments]
    return b"".join(_ITEM + pack("<I", len(part)) + part for part in padded)


def pieces(stream: bytes, count: int) -> list[bytes]:
    """A stream cut in `count` parts of even length."""
    if not stream:
        return [b""]
    stream += b"\0" * (len(stream) % 2)
    step = -(-len(stream) // count)
    step += step % 2
    return [stream[start : start + step] for start in range(0, len(stream), step)]


def set_streams(
    ds: Dataset,
    streams: Sequence[bytes],
    syntax: str,
    *,
    cut: int = 1,
    table: str = "empty",
    blanks: bool = False,
) -> None:
    """Put streams into PixelData, each in `cut` fragments, with an offset table of a kind.

    `table`: "empty", "right", "wrong" (offsets that hit no fragment), "absent" (not even an empty
    one), "extended" (an extended one that overruns the data). `blanks` puts a fragment without
    content between any two.
    """
    parts = [pieces(stream, cut) for stream in streams]
    offsets, position = [], 0
    for fragments in parts:
        offsets.append(position)
        position += len(items(fragments))
    if table == "wrong":
        offsets = [offset + 2 for offset in offsets]
    basic = pack(f"<{len(offsets)}I", *offsets) if table in ("right", "wrong") else b""
    head = b"" if table == "absent" else items([basic])
    flat = [fragment for fragments in parts for fragment in fragments]
    if blanks:
        flat = [part for fragment in flat for part in (fragment, b"")]
    ds.PixelData = head + items(flat)
    ds["PixelData"].VR = "OB"
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = UID(syntax)
    if table == "extended":
        ds.ExtendedOffsetTable = pack(f"<{len(offsets)}Q", *(1 << 40 for _ in offsets))
        ds.ExtendedOffsetTableLengths = pack(f"<{len(offsets)}Q", *(1 for _ in offsets))


def encoded(syntax: str, *, bits: int = 0, **layout: Any) -> Change:
    """All frames in another transfer syntax; `layout` as of `set_streams`."""

    def change(ds: Dataset) -> None:
        streams = [stream_of(plane, syntax, bits=bits) for plane in planes_of(ds)]
        set_streams(ds, streams, syntax, **layout)

    return change


def with_streams(syntax: str, alter: Callable[[list[bytes]], list[bytes]]) -> Change:
    """All frames in another transfer syntax, their streams altered."""

    def change(ds: Dataset) -> None:
        streams = [stream_of(plane, syntax) for plane in planes_of(ds)]
        set_streams(ds, alter(streams), syntax)

    return change


def of_another_size(syntax: str) -> Change:
    """Streams of frames that lack a row."""

    def change(ds: Dataset) -> None:
        streams = [stream_of(plane[:-1], syntax) for plane in planes_of(ds)]
        set_streams(ds, streams, syntax)

    return change


def with_last_fragment_cut(ds: Dataset) -> None:
    """The last fragment says that it is longer than the file."""
    encoded(RLE)(ds)
    last = ds.PixelData.rindex(_ITEM)
    data = bytearray(ds.PixelData)
    data[last + 4 : last + 8] = pack("<I", 1 << 20)
    ds.PixelData = bytes(data)


def with_broken_tables(ds: Dataset) -> None:
    """JPEG streams whose markers are sound and whose Huffman tables are none."""
    streams = [bytearray(stream_of(plane, JPEG_8)) for plane in planes_of(ds)]
    for stream in streams:
        start = stream.index(b"\xff\xc4") + 5
        stream[start : start + 16] = b"\xff" * 16
    set_streams(ds, [bytes(stream) for stream in streams], JPEG_8)


def of_a_huge_image(ds: Dataset) -> None:
    """A stream of a hundred bytes for an image of 128 MiB."""
    ds.Rows = ds.Columns = 8192
    set_streams(ds, [b"\xff\x4f\xff\x51" + bytes(96)], JPEG_2000)


def of_a_syntax(syntax: str, *, fragments: bool) -> Change:
    """Pixels that stay as they are, under another syntax."""

    def change(ds: Dataset) -> None:
        if fragments:
            set_streams(ds, [ds.PixelData], syntax)
        ds.file_meta.TransferSyntaxUID = UID(syntax)

    return change


def of_doubtful_sign(ds: Dataset) -> None:
    """Signed pixels of 16 bits in JPEG-LS streams of 12, whose top bit some values have."""
    planes = [(plane.astype("<u2") & 0x0FFF) | 0x0800 for plane in planes_of(ds)]
    ds.PixelRepresentation = 1
    set_streams(ds, [stream_of(plane, JPEG_LS, bits=12) for plane in planes], JPEG_LS)


def of_transformed_colours(ds: Dataset) -> None:
    """JPEG 2000 with its component transform, in a header that says YBR_FULL."""
    streams = [stream_of(plane, JPEG_2000, transform=True) for plane in planes_of(ds)]
    set_streams(ds, streams, JPEG_2000)
    ds.PhotometricInterpretation = "YBR_FULL"


@contextmanager
def without_decoders(syntax: str) -> Iterator[None]:
    """No package that decodes `syntax` is there, for pydicom, inside the block."""
    decoder = get_decoder(syntax)
    names = decoder.available_plugins
    for name in names:
        decoder.remove_plugin(name)
    try:
        yield
    finally:
        for name in names:
            decoder.add_plugin(name, (f"pydicom.pixels.decoders.{name}", "_decode_frame"))
