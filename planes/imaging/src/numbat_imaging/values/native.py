"""Uncompressed pixels: frames one after the other, bit by bit (PS3.5 8.1)."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO, Literal, NoReturn

import numpy as np

from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.description import (
    PALETTE,
    YBR_422,
    Pixels,
    frame_bits,
    is_float,
    sample_dtype,
    samples_shape,
    without_unused_bits,
)
from numbat_imaging.values.syntaxes import GE_BIG_ENDIAN_PIXELS
from numbat_registries import refuse


class NativeFrames:
    """The frames of one file without compression, in any order.

    Raises IMG-1403 when the element, or what the file holds of it, is not what the header says.
    """

    def __init__(self, stream: BinaryIO, pixels: PixelFormat, *, file: str) -> None:
        self.stream, self.pixels, self.file = stream, pixels, file
        self.bits = frame_bits(pixels)
        self._check_length(pixels.location.length or 0)

    def check_present(self, size_bytes: int | None) -> None:
        """Refuse a file that ends before its pixels do; `size_bytes` of the whole file if known."""
        length = self.pixels.location.length or 0
        if size_bytes is not None and size_bytes - self.pixels.location.offset < length:
            self._refuse_length(size_bytes - self.pixels.location.offset)

    def into(self, frame: int, plane: Pixels) -> bool:
        """Read a frame straight into `plane`, or say that its layout differs."""
        pixels = self.pixels
        direct = (
            plane.dtype == sample_dtype(pixels)
            and plane.flags.c_contiguous
            and pixels.samples == 1
            and pixels.photometric != PALETTE
            and (is_float(pixels) or pixels.bits_stored == pixels.bits_allocated > 1)
            and (_order(pixels) == "<") == (sys.byteorder == "little")
        )
        if direct and not self._swapped:
            self._seek(frame * self.bits // 8)
            view = memoryview(plane).cast("B")  # type: ignore[arg-type]
            got = self.stream.readinto(view)  # type: ignore[attr-defined]
            if got != len(view):
                self._refuse_length(frame * self.bits // 8 + int(got or 0))
        return bool(direct and not self._swapped)

    def frame(self, frame: int) -> Pixels:
        """One frame as stored samples, (rows, columns[, 3]); colours are as they are stored."""
        first_bit = frame * self.bits
        start, end = first_bit // 8, -(-(first_bit + self.bits) // 8)
        if self._swapped:
            # Words are whole: take the word that the frame begins in, and the one it ends in.
            start, end = start - start % 2, end + end % 2
        self._seek(start)
        data = self.stream.read(end - start)
        if len(data) < end - start:
            self._refuse_length(start + len(data))
        if self._swapped:
            data = np.frombuffer(data, "u2").byteswap().tobytes()
        return samples_of(data, self.pixels, skipped_bits=first_bit - start * 8)

    @property
    def _swapped(self) -> bool:
        # Pixels of up to 8 bits in OW: in big endian the first is the low byte (PS3.5 A.3, D.1).
        pixels = self.pixels
        return pixels.bits_allocated <= 8 and _order(pixels) == ">" and pixels.location.vr == "OW"

    def _seek(self, start: int) -> None:
        self.stream.seek(self.pixels.location.offset + start, os.SEEK_SET)

    def _check_length(self, length: int) -> None:
        whole = -(-self.bits * self.pixels.frames // 8)
        # An odd number of bytes is padded to an even length (PS3.5 8.1.1).
        if not whole <= length <= whole + whole % 2:
            self._refuse_length(length)

    def _refuse_length(self, found: int) -> NoReturn:
        frames = found * 8 // self.bits
        size = -(-frames * self.bits // 8)
        whole = frames > 0 and size <= found <= size + size % 2
        raise refuse(
            "IMG-1403",
            file=self.file,
            expected_bytes=-(-self.bits * self.pixels.frames // 8),
            found_bytes=found,
            frames=self.pixels.frames,
            frames_found=frames if whole else None,
        )


def samples_of(data: bytes, pixels: PixelFormat, *, skipped_bits: int = 0) -> Pixels:
    """The uncompressed bytes of one frame as stored samples, (rows, columns[, 3]).

    `skipped_bits` come before the first sample.
    """
    count = frame_bits(pixels) // pixels.bits_allocated
    if pixels.bits_allocated == 1:
        bits = np.unpackbits(np.frombuffer(data, "u1"), bitorder="little")
        return bits[skipped_bits : skipped_bits + count].reshape(samples_shape(pixels))
    dtype = sample_dtype(pixels)
    raw = np.frombuffer(data, dtype.newbyteorder(_order(pixels)), count, skipped_bits // 8)
    found = without_unused_bits(raw.astype(dtype), pixels)
    if pixels.samples == 1:
        return found.reshape(samples_shape(pixels))
    if pixels.photometric == YBR_422:
        return _full_chroma(found).reshape(samples_shape(pixels))
    if pixels.planar == 1:
        return found.reshape(3, pixels.rows, pixels.columns).transpose(1, 2, 0)
    return found.reshape(samples_shape(pixels))


def _full_chroma(halved: Pixels) -> Pixels:
    """Y1 Y2 B R as Y1 B R, Y2 B R (PS3.3 C.7.6.3.1.2)."""
    pairs = halved.reshape(-1, 4)
    full: Pixels = np.empty((len(pairs), 2, 3), halved.dtype)
    full[:, :, 0] = pairs[:, :2]
    full[:, :, 1:] = pairs[:, None, 2:]
    return full


def _order(pixels: PixelFormat) -> Literal["<", ">"]:
    big = pixels.transfer_syntax_uid == GE_BIG_ENDIAN_PIXELS or not pixels.little_endian
    return ">" if big else "<"
