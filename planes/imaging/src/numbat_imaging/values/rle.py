"""RLE frames: byte planes packed by PackBits (PS3.5 Annex G)."""

from __future__ import annotations

from struct import unpack_from

import numpy as np

from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.codestreams import Damaged
from numbat_imaging.values.description import Pixels, sample_dtype, samples_shape

_HEADER_BYTES = 64
_MOST_SEGMENTS = 15


def rle_frame(data: bytes, pixels: PixelFormat) -> Pixels:
    """One RLE frame as stored samples, (rows, columns[, 3]), unused bits included.

    pydicom decodes neither one-bit frames nor bounds what a segment unpacks to, hence this one.
    One-bit frames are packed eight to a byte and begin at a byte. Raises Damaged.
    """
    one_bit = pixels.bits_allocated == 1
    width = 1 if one_bit else pixels.bits_allocated // 8
    size = pixels.rows * pixels.columns
    size = -(-size // 8) if one_bit else size
    segments = _segments(data, expected=pixels.samples * width)
    planes = np.stack([np.frombuffer(unpacked(part, size), "u1") for part in segments])
    if one_bit:
        bits = np.unpackbits(planes[0], bitorder="little")[: pixels.rows * pixels.columns]
        return bits.reshape(samples_shape(pixels))
    # The segments of a sample come from its most significant byte downward (PS3.5 G.2).
    words = planes.reshape(pixels.samples, width, size).transpose(0, 2, 1)
    dtype = sample_dtype(pixels)
    found = np.ascontiguousarray(words).view(dtype.newbyteorder(">"))[..., 0].astype(dtype)
    return found.T.reshape(samples_shape(pixels))


def _segments(data: bytes, *, expected: int) -> list[bytes]:
    if len(data) < _HEADER_BYTES:
        raise Damaged("the RLE header is cut off")
    count, *offsets = unpack_from("<16I", data)
    if count != expected or count > _MOST_SEGMENTS:
        raise Damaged(f"{count} RLE segments where the header describes {expected}")
    starts = offsets[:count]
    ends = [*starts[1:], len(data)]
    if starts[0] != _HEADER_BYTES or any(a >= b for a, b in zip(starts, ends, strict=True)):
        raise Damaged("the RLE segments do not follow each other within the frame")
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def unpacked(segment: bytes, size: int) -> bytearray:
    """Exactly `size` bytes from a PackBits segment, and never much more. Raises Damaged."""
    found = bytearray()
    extend = found.extend
    position, room = 0, size
    try:
        while room > 0:
            head = segment[position]
            if head < 128:
                end = position + 2 + head
                extend(segment[position + 1 : end])
                position, room = end, room - head - 1
            elif head > 128:
                extend(segment[position + 1 : position + 2] * (257 - head))
                position, room = position + 2, room - 257 + head
            else:
                position += 1
    except IndexError:
        raise Damaged(f"an RLE segment gives {len(found)} bytes of {size}") from None
    if room == 0 and len(found) < size:
        raise Damaged("an RLE segment ends inside a run")
    # What may follow is padding to an even length, and no-operation bytes.
    if room < 0 or segment[position:].strip(b"\0\x80"):
        raise Damaged("an RLE segment holds more than one plane")
    return found
