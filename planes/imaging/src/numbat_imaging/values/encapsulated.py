"""Compressed frames, each decoded for itself from its own bytes."""

from __future__ import annotations

import threading
import warnings
import zlib
from importlib import import_module
from io import BytesIO
from struct import pack
from typing import Any, BinaryIO, NoReturn

import numpy as np
from PIL import Image
from pydicom.pixels.decoders.base import get_decoder

from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.codestreams import (
    Codestream,
    Damaged,
    read_codestream,
    without_wrapper,
)
from numbat_imaging.values.description import (
    YBR_422,
    Pixels,
    frame_bits,
    plane_bytes,
    sample_dtype,
    samples_shape,
    without_unused_bits,
)
from numbat_imaging.values.fragments import FrameFragments
from numbat_imaging.values.native import samples_of
from numbat_imaging.values.rle import rle_frame
from numbat_imaging.values.syntaxes import (
    CODINGS,
    DEFLATED_FRAMES,
    RLE,
    packages_for,
    syntax_name,
)
from numbat_registries import refuse

#: A frame above the floor that is this many times larger than its stream is taken for a bomb: even
#: blank frames of that size do not compress so well, or are not worth reading.
BOMB_RATIO = 2000
BOMB_FLOOR_BYTES = 64 << 20

#: Decoders in the order in which they are asked; the first that can is the only one that is asked,
#: since another one may make up what this one refuses.
_PREFERRED = {
    "JPEG": ("pylibjpeg",),
    "lossless JPEG": ("pylibjpeg", "gdcm"),
    "JPEG-LS": ("pyjpegls", "pylibjpeg", "gdcm"),
    "JPEG 2000": ("pylibjpeg", "pillow", "gdcm"),
}

_decoding = threading.Lock()


class EncapsulatedFrames:
    """The frames of one file with encapsulated pixel data, in any order.

    Raises IMG-1411 to IMG-1413 for fragments, and for a frame IMG-1404 without a decoder, IMG-1405
    when the decoder fails, IMG-1414 when its stream is of another size than the header says,
    IMG-1415 when the stream is damaged, IMG-1416 and IMG-1417 when depth, sign or colour contradict
    the header, IMG-1419 for a decompression bomb.
    """

    def __init__(
        self, stream: BinaryIO, pixels: PixelFormat, *, file: str, size_bytes: int | None = None
    ) -> None:
        self.pixels, self.file = pixels, file
        self.fragments = FrameFragments(stream, pixels, file=file, size_bytes=size_bytes)

    def check(self, frame: int) -> None:
        """Refuse a frame whose stream already says that it cannot be right; nothing is decoded."""
        data = self.fragments.data(frame)
        _Decoding(self.pixels, self.file, frame).stream(data)

    def frame(self, frame: int) -> tuple[Pixels, str]:
        """One frame as stored samples, (rows, columns[, 3]), and what its colours are."""
        return _Decoding(self.pixels, self.file, frame).decode(self.fragments.data(frame))


class _Decoding:
    """One frame on its way from stream to samples."""

    def __init__(self, pixels: PixelFormat, file: str, frame: int) -> None:
        self.pixels, self.file, self.frame = pixels, file, frame
        self.coding = CODINGS.get(pixels.transfer_syntax_uid)
        self.name = syntax_name(pixels.transfer_syntax_uid)

    def decode(self, data: bytes) -> tuple[Pixels, str]:
        pixels = self.pixels
        if self.coding is None:
            return self._framed(data), pixels.photometric
        stream = self.stream(data)
        assert stream is not None
        colour = self._colour(stream)
        if self.coding == "JPEG" and stream.precision <= 8:
            found = self._attempt(lambda: _by_pillow(data, stream))
            fault = scan_fault(data)
            if fault is not None:
                self._damaged(fault)
        else:
            found = self._by_plugin(without_wrapper(data), stream)
        if found.shape != samples_shape(pixels):
            self._differs("rows and columns", [pixels.rows, pixels.columns], list(found.shape[:2]))
        return self._fitted(found, stream), colour

    def stream(self, data: bytes) -> Codestream | None:
        """The checked stream; None for codings without one."""
        decoded = plane_bytes(self.pixels)
        if decoded > max(BOMB_FLOOR_BYTES, BOMB_RATIO * len(data)):
            raise refuse(
                "IMG-1419",
                file=self.file,
                frame=self.frame,
                stored_bytes=len(data),
                decoded_bytes=decoded,
                limit=BOMB_RATIO,
            )
        if self.coding is None:
            return None
        try:
            found = read_codestream(data, self.coding)
        except Damaged as fault:
            self._damaged(str(fault))
        pixels = self.pixels
        for what, declared, stated in (
            ("rows", pixels.rows, found.rows),
            ("columns", pixels.columns, found.columns),
            ("components", pixels.samples, found.components),
        ):
            if declared != stated:
                self._differs(what, [declared], [stated])
        if found.precision > max(pixels.bits_allocated, 8 if pixels.bits_allocated == 1 else 0):
            self._differs("bits", [pixels.bits_allocated], [found.precision])
        return found

    # -- decoders --------------------------------------------------------------------------------

    def _framed(self, data: bytes) -> Pixels:
        """RLE, deflated and uncompressed frames, whose samples are as the header describes them."""
        uid, pixels = self.pixels.transfer_syntax_uid, self.pixels
        try:
            if uid == RLE:
                return without_unused_bits(rle_frame(data, pixels), pixels)
            size = -(-frame_bits(pixels) // 8)
            if uid == DEFLATED_FRAMES:
                data = _inflated(data, size)
            if not size <= len(data) <= size + size % 2:
                raise Damaged(f"{len(data)} bytes where the header describes {size}")
        except Damaged as fault:
            self._damaged(str(fault))
        return samples_of(data, pixels)

    def _by_plugin(self, data: bytes, stream: Codestream) -> Pixels:
        uid = self.pixels.transfer_syntax_uid
        decoder = get_decoder(uid)
        assert self.coding is not None
        able = [
            name
            for name in _PREFERRED[self.coding]
            if name in decoder.available_plugins and _is_able(name, stream)
        ]
        if not able:
            raise refuse(
                "IMG-1404", file=self.file, transfer_syntax=self.name, packages=packages_for(uid)
            )
        # A table without offsets, one item, and the end: the form in which pydicom takes a frame.
        item = b"\xfe\xff\x00\xe0" + pack("<I", 0) + b"\xfe\xff\x00\xe0" + pack("<I", len(data))
        source = item + data + b"\xfe\xff\xdd\xe0" + pack("<I", 0)
        options = _options(stream)
        # Warnings are process-wide, and these decoders hold the interpreter anyway.
        with _decoding, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = self._attempt(
                lambda: decoder.as_array(
                    source, index=0, raw=True, decoding_plugin=able[0], **options
                )
            )
        return np.asarray(found)

    def _attempt(self, decode: Any) -> Any:
        try:
            return decode()
        except Exception as error:
            raise refuse(
                "IMG-1405",
                file=self.file,
                transfer_syntax=self.name,
                fault=type(error).__name__,
            ) from error

    # -- what the header makes of them -----------------------------------------------------------

    def _fitted(self, found: Pixels, stream: Codestream) -> Pixels:
        """Samples of the stream as the header's type, or a refusal where the two disagree.

        A stream has a depth and a sign of its own. Only JPEG 2000 can state a sign; the others
        carry negative numbers as two's complement (PS3.5 8.2).
        """
        pixels, words = self.pixels, found.astype(sample_dtype(self.pixels))
        if pixels.bits_allocated == 1:
            if found.max(initial=0) > 1:
                self._contradicts("values above 1 in a one-bit image", stream)
            return words
        if stream.signed and not pixels.signed and found.min(initial=0) < 0:
            self._contradicts("negative values in an unsigned image", stream)
        # A stream of 12 bits in a signed image of 16: 4000 is itself or -96.
        doubtful = pixels.signed and not stream.signed and stream.precision < pixels.bits_stored
        if doubtful and int(found.max(initial=0)) >> (stream.precision - 1):
            self._contradicts("values that are negative or not by the depth taken", stream)
        if pixels.high_bit != pixels.bits_stored - 1 and stream.precision <= pixels.high_bit:
            self._contradicts("a HighBit above the depth of the stream", stream)
        kept = without_unused_bits(words, pixels)
        if stream.precision > pixels.bits_stored and pixels.high_bit == pixels.bits_stored - 1:
            mask = (1 << pixels.bits_stored) - 1
            plain = words == (kept & words.dtype.type(mask)) if pixels.signed else False
            if not np.all((kept == words) | plain):
                self._contradicts("values that need more bits than BitsStored", stream)
        return kept

    def _colour(self, stream: Codestream) -> str:
        """The colours of the decoded components."""
        stated = self.pixels.photometric
        if self.pixels.samples == 1:
            return stated
        if self.coding == "JPEG 2000":
            transformed = stated in ("YBR_ICT", "YBR_RCT")
            if stream.decorrelated != (transformed or (stated == "RGB" and stream.decorrelated)):
                self._refuse_colour("without" if transformed else "with")
            return "RGB" if stream.decorrelated else stated
        if stream.colour is not None:
            # The stream itself knows: writers often leave RGB in the header of YCbCr streams.
            return stream.colour
        return "YBR_FULL" if stated == YBR_422 else stated

    def _refuse_colour(self, how: str) -> NoReturn:
        raise refuse(
            "IMG-1417",
            file=self.file,
            photometric=self.pixels.photometric,
            stream=f"coded {how} a component transform",
        )

    def _differs(self, what: str, declared: list[int], found: list[int]) -> NoReturn:
        raise refuse(
            "IMG-1414",
            file=self.file,
            frame=self.frame,
            what=what,
            declared=declared,
            found=found,
        )

    def _damaged(self, fault: str) -> NoReturn:
        raise refuse(
            "IMG-1415", file=self.file, frame=self.frame, transfer_syntax=self.name, fault=fault
        )

    def _contradicts(self, what: str, stream: Codestream) -> NoReturn:
        raise refuse(
            "IMG-1416",
            file=self.file,
            frame=self.frame,
            what=what,
            bits_stored=self.pixels.bits_stored,
            precision=stream.precision,
        )


def _options(stream: Codestream) -> dict[str, Any]:
    """What the stream says, in pydicom's words: the values come back as the stream has them."""
    container = 8 if stream.precision <= 8 else 16 if stream.precision <= 16 else 32
    return {
        "rows": stream.rows,
        "columns": stream.columns,
        "number_of_frames": 1,
        "samples_per_pixel": stream.components,
        "photometric_interpretation": "RGB" if stream.components == 3 else "MONOCHROME2",
        "planar_configuration": 0,
        "bits_allocated": container,
        "bits_stored": stream.precision,
        "pixel_representation": int(stream.signed),
    }


def _is_able(plugin: str, stream: Codestream) -> bool:
    if plugin == "pillow":
        return stream.precision <= (8 if stream.components > 1 else 16)
    # GDCM refuses these depths of JPEG-LS.
    return plugin != "gdcm" or stream.precision not in (6, 7)


def _by_pillow(data: bytes, stream: Codestream) -> Pixels:
    image = Image.open(BytesIO(data), formats=("JPEG",))
    if stream.components == 3 and not stream.libjpeg_rgb:
        # Components as they are stored: what colours they are is settled elsewhere.
        image.draft("YCbCr", image.size)
    return np.asarray(image)


def scan_fault(data: bytes) -> str | None:
    """What libjpeg finds wrong inside the scan of an eight-bit JPEG stream; None when nothing.

    Pillow fills what a damaged scan lacks and does not say so. Without the optional package
    simplejpeg the scan is taken as it is.
    """
    try:
        library: Any = import_module("simplejpeg")
    except ImportError:
        return None
    try:
        library.decode_jpeg(data, colorspace="GRAY", strict=True)
    except ValueError as fault:
        text = str(fault)
        if "premature" in text.lower():
            return "the scan ends before the image does"
        if "corrupt" in text.lower():
            return "the scan holds codes that are none"
    return None


def _inflated(data: bytes, size: int) -> bytes:
    """At most one byte more than `size`, whatever the stream claims. Raises Damaged."""
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = engine.decompress(data, size + 2)
    except zlib.error:
        raise Damaged("the deflate stream is broken") from None
    if len(found) <= size + 1 and not engine.eof:
        raise Damaged("the deflate stream ends before its last block")
    return found
