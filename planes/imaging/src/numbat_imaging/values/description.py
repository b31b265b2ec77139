"""What a header says about stored pixels, and whether that can be (PS3.3 C.7.6.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.syntaxes import check_syntax
from numbat_registries import refuse

Pixels = NDArray[Any]

RGB = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])

#: A single plane larger than this is taken for a broken header.
MAX_PLANE_BYTES = 1 << 31

YBR_422 = "YBR_FULL_422"
PALETTE = "PALETTE COLOR"

_GREY = frozenset({"MONOCHROME1", "MONOCHROME2"})
_COLOUR = frozenset({"RGB", "YBR_FULL", YBR_422, "YBR_ICT", "YBR_RCT"})
_FLOATS = {"FloatPixelData": 32, "DoubleFloatPixelData": 64}


def check_format(pixels: PixelFormat, *, file: str) -> None:
    """Refuse pixels that no volume can hold: a wrong description, an unread syntax or colour form.

    Raises IMG-1402 for a colour form that is not read, and what `check_stored` raises.
    """
    check_stored(pixels, file=file)
    if pixels.samples == 3 and (pixels.bits_allocated, pixels.bits_stored) != (8, 8):
        raise refuse("IMG-1402", file=file, photometric=pixels.photometric, samples=pixels.samples)


def check_stored(pixels: PixelFormat, *, file: str) -> None:
    """Refuse a pixel description that contradicts itself, or a syntax that is not read.

    Raises IMG-1401 for impossible values, IMG-1402 for a colour form that is not read, IMG-1404,
    IMG-1409 and IMG-1410 for the transfer syntax. Source: PS3.3 C.7.6.3.1, PS3.5 8.1.1.
    """
    reasons = [*_impossible(pixels), *_layout_faults(pixels)]
    if reasons:
        raise refuse("IMG-1401", file=file, reasons=reasons)
    grey = pixels.photometric in _GREY and pixels.samples == 1
    palette = pixels.photometric == PALETTE and pixels.samples == 1 and is_indexed(pixels)
    colour = pixels.photometric in _COLOUR and pixels.samples == 3 and not pixels.signed
    if not (grey or palette or colour):
        raise refuse("IMG-1402", file=file, photometric=pixels.photometric, samples=pixels.samples)
    check_syntax(pixels, file=file)


def is_float(pixels: PixelFormat) -> bool:
    """Whether the pixels are FloatPixelData or DoubleFloatPixelData."""
    return pixels.location.keyword in _FLOATS


def is_indexed(pixels: PixelFormat) -> bool:
    """Whether stored values can be indices into a palette."""
    return not pixels.signed and pixels.bits_allocated in (8, 16) and not is_float(pixels)


def _impossible(pixels: PixelFormat) -> list[str]:
    allocated, stored = pixels.bits_allocated, pixels.bits_stored
    faults = [
        (pixels.rows < 1 or pixels.columns < 1, "Rows and Columns must be positive"),
        (pixels.frames < 1, "NumberOfFrames must not be negative"),
        (pixels.samples not in (1, 3), "SamplesPerPixel must be 1 or 3"),
        (pixels.planar not in (0, 1), "PlanarConfiguration must be 0 or 1"),
        (plane_bytes(pixels) > MAX_PLANE_BYTES, "the plane would be larger than 2 GiB"),
    ]
    if is_float(pixels):
        width = _FLOATS[pixels.location.keyword]
        faults += [
            (allocated != width, f"BitsAllocated of {pixels.location.keyword} must be {width}"),
            (pixels.samples != 1, "floating point pixels have one sample"),
        ]
    else:
        faults += [
            (allocated not in (1, 8, 16, 32, 64), "BitsAllocated must be 1, 8, 16, 32 or 64"),
            (not 1 <= stored <= allocated, "BitsStored outside BitsAllocated"),
            (
                not stored - 1 <= pixels.high_bit < allocated,
                "HighBit does not fit BitsStored and BitsAllocated",
            ),
        ]
    return [reason for wrong, reason in faults if wrong]


def _layout_faults(pixels: PixelFormat) -> list[str]:
    one_bit = pixels.bits_allocated == 1
    halved = pixels.photometric == YBR_422 and pixels.location.length is not None
    faults = [
        (one_bit and (pixels.samples != 1 or pixels.signed), "one bit holds one unsigned sample"),
        (halved and pixels.columns % 2 == 1, "4:2:2 colours need an even number of columns"),
        (halved and pixels.bits_allocated != 8, "4:2:2 colours need 8 bits"),
        (
            pixels.location.keyword not in ("PixelData", *_FLOATS),
            "the pixels are in no element of the standard",
        ),
    ]
    return [reason for wrong, reason in faults if wrong]


def sample_dtype(pixels: PixelFormat) -> np.dtype[Any]:
    """The type that holds one stored sample exactly, in the machine's byte order."""
    if is_float(pixels):
        return np.dtype(f"f{pixels.bits_allocated // 8}")
    return np.dtype(f"{'i' if pixels.signed else 'u'}{max(pixels.bits_allocated // 8, 1)}")


def stored_dtype(pixels: PixelFormat) -> np.dtype[Any]:
    """The type of a plane: stored values, or 8-bit red, green, blue for colours and palettes."""
    if pixels.samples == 3 or pixels.photometric == PALETTE:
        return RGB
    return sample_dtype(pixels)


def stack_dtype(formats: list[PixelFormat]) -> np.dtype[Any]:
    """The smallest common type that holds every instance's stored values exactly."""
    dtypes = {stored_dtype(pixels) for pixels in formats}
    return dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)


def plane_bytes(pixels: PixelFormat) -> int:
    """Size of one decoded frame as a plane of `stored_dtype`."""
    coloured = pixels.samples == 3 or pixels.photometric == PALETTE
    cell = 3 if coloured else max(pixels.bits_allocated // 8, 1)
    return pixels.rows * pixels.columns * cell


def frame_bits(pixels: PixelFormat) -> int:
    """Size of one uncompressed frame in the file, in bits: frames of one bit follow bit by bit."""
    samples = 2 if pixels.photometric == YBR_422 and pixels.samples == 3 else pixels.samples
    return pixels.rows * pixels.columns * samples * pixels.bits_allocated


def samples_shape(pixels: PixelFormat) -> tuple[int, ...]:
    """(rows, columns) or (rows, columns, 3)."""
    return (pixels.rows, pixels.columns) + ((3,) if pixels.samples == 3 else ())


def without_unused_bits(raw: Pixels, pixels: PixelFormat) -> Pixels:
    """Stored values with the bits outside BitsStored removed and the sign carried from HighBit.

    Bits above HighBit may hold overlays or rubbish (retired use, PS3.5 8.1.1).
    """
    unused = pixels.bits_allocated - pixels.bits_stored
    if unused == 0 or is_float(pixels):
        return raw
    above = pixels.bits_allocated - 1 - pixels.high_bit
    # A shift up drops what lies above; the shift down is arithmetic for signed types and so carries
    # the sign bit, and drops what lies below.
    return (raw << above) >> unused
