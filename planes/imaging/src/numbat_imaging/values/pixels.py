"""Stored pixel values of one frame, exactly as the scanner meant them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydicom import dcmread
from pydicom.uid import UID

from numbat_imaging.series.instance import Instance, PixelFormat
from numbat_registries import Refusal, refuse

Pixels = NDArray[Any]

RGB = np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")])

#: A single plane larger than this is taken for a broken header.
MAX_PLANE_BYTES = 1 << 31

_decoding = threading.Lock()

_NATIVE = frozenset({"1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2"})

_COLOUR = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"})


def check_format(pixels: PixelFormat, *, file: str) -> None:
    """Refuse a pixel description that contradicts itself or that this phase does not read.

    Raises IMG-1401 for impossible values, IMG-1402 for a colour form that is not read.
    Source: PS3.3 C.7.6.3.1, PS3.5 8.1.1.
    """
    faults = [
        (pixels.rows < 1 or pixels.columns < 1, "Rows and Columns must be positive"),
        (pixels.bits_allocated not in (8, 16, 32), "BitsAllocated must be 8, 16 or 32 here"),
        (pixels.location.keyword != "PixelData", "floating point pixels are not read yet"),
        (not 1 <= pixels.bits_stored <= pixels.bits_allocated, "BitsStored outside BitsAllocated"),
        (
            not pixels.bits_stored - 1 <= pixels.high_bit < pixels.bits_allocated,
            "HighBit does not fit BitsStored and BitsAllocated",
        ),
        (pixels.samples not in (1, 3), "SamplesPerPixel must be 1 or 3"),
        (plane_bytes(pixels) > MAX_PLANE_BYTES, "the plane would be larger than 2 GiB"),
    ]
    reasons = [reason for wrong, reason in faults if wrong]
    if reasons:
        raise refuse("IMG-1401", file=file, reasons=reasons)
    grey = pixels.photometric in ("MONOCHROME1", "MONOCHROME2") and pixels.samples == 1
    whole_bytes = pixels.bits_allocated == pixels.bits_stored == 8 and not pixels.signed
    colour = pixels.photometric in _COLOUR and pixels.samples == 3 and whole_bytes
    if not grey and not colour:
        raise refuse("IMG-1402", file=file, photometric=pixels.photometric, samples=pixels.samples)


def plane_bytes(pixels: PixelFormat) -> int:
    """Size of one decoded frame."""
    return pixels.rows * pixels.columns * pixels.samples * (pixels.bits_allocated // 8)


def stored_dtype(pixels: PixelFormat) -> np.dtype[Any]:
    """The type that holds the stored values of an instance exactly."""
    if pixels.samples == 3:
        return RGB
    return np.dtype(f"{'i' if pixels.signed else 'u'}{pixels.bits_allocated // 8}")


def stack_dtype(formats: list[PixelFormat]) -> np.dtype[Any]:
    """The smallest common type that holds every instance's stored values exactly."""
    dtypes = {stored_dtype(pixels) for pixels in formats}
    return dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)


def read_planes(instances: Sequence[Instance], planes: Sequence[Pixels]) -> None:
    """Decode slices of one file into `planes`, each (rows, columns) of its slice."""
    frame: Pixels | None = None
    held = -1
    for instance, plane in zip(instances, planes, strict=True):
        if instance.window is None:
            read_into(instance, plane)
            continue
        if frame is None or held != instance.frame:
            pixels = instance.pixels
            frame = np.empty((pixels.rows, pixels.columns), stored_dtype(pixels))
            read_into(instance, frame)
            held = instance.frame
        window = instance.window
        plane[...] = frame[
            window.row : window.row + window.rows, window.column : window.column + window.columns
        ]


def read_into(instance: Instance, plane: Pixels) -> None:
    """Decode one instance into `plane`, shape (rows, columns).

    Raises IMG-1403 when the pixel data are shorter or longer than the header says, IMG-1404 when
    no decoder for the transfer syntax is installed, IMG-1405 when a decoder fails.
    """
    pixels = instance.pixels
    native = pixels.transfer_syntax_uid in _NATIVE
    if native and pixels.samples == 1 and pixels.location.length is not None:
        _read_native(instance, plane)
        return
    plane[...] = _decoded(instance)


def _read_native(instance: Instance, plane: Pixels) -> None:
    pixels = instance.pixels
    size = plane_bytes(pixels)
    length = pixels.location.length or 0
    whole = size * pixels.frames
    # An odd number of bytes is padded to an even length (PS3.5 8.1.1).
    if length < whole or length > whole + whole % 2:
        _refuse_length(instance, found=length)
    dtype = stored_dtype(pixels)
    direct = (
        plane.dtype == dtype
        and plane.flags.c_contiguous
        and pixels.bits_stored == pixels.bits_allocated
        and pixels.little_endian
    )
    # Two 8-bit pixels to an OW word: in big endian the first is the low byte (PS3.5 A.3, D.1).
    swapped = not pixels.little_endian and dtype.itemsize == 1 and pixels.location.vr == "OW"
    with instance.ref.open() as stream:
        stream.seek(pixels.location.offset + instance.frame * size)
        if direct:
            got = stream.readinto(memoryview(plane).cast("B"))  # type: ignore[attr-defined,arg-type]
            if got != size:
                _refuse_length(instance, found=int(got or 0))
            return
        data = stream.read(size + size % 2 if swapped else size)
    if len(data) < size:
        _refuse_length(instance, found=len(data))
    if swapped:
        data = np.frombuffer(data, "u2").byteswap().tobytes()
    order: Literal["<", ">"] = "<" if pixels.little_endian else ">"
    found = np.frombuffer(data, dtype=dtype.newbyteorder(order), count=plane.size)
    raw = found.reshape(plane.shape)
    plane[...] = without_unused_bits(raw.astype(dtype, copy=False), pixels)


def without_unused_bits(raw: Pixels, pixels: PixelFormat) -> Pixels:
    """Stored values with the bits outside BitsStored removed and the sign carried from HighBit.

    Bits above HighBit may hold overlays or rubbish (retired use, PS3.5 8.1.1).
    """
    unused = pixels.bits_allocated - pixels.bits_stored
    if unused == 0:
        return raw
    above = pixels.bits_allocated - 1 - pixels.high_bit
    # A shift up drops what lies above; the shift down is arithmetic for signed types and so carries
    # the sign bit, and drops what lies below.
    return (raw << above) >> unused


def _refuse_length(instance: Instance, *, found: int) -> None:
    raise refuse(
        "IMG-1403",
        file=instance.ref.label,
        expected_bytes=plane_bytes(instance.pixels),
        found_bytes=found,
    )


def _decoded(instance: Instance) -> Pixels:
    from pydicom.pixels.decoders.base import get_decoder

    pixels = instance.pixels
    uid = UID(pixels.transfer_syntax_uid)
    try:
        decoder = get_decoder(uid)
    except NotImplementedError:
        raise refuse(
            "IMG-1404", file=instance.ref.label, transfer_syntax=uid.name, packages=[]
        ) from None
    if not decoder.is_available:
        packages = sorted(
            {part for text in decoder.missing_dependencies for part in _packages(text)}
        )
        raise refuse(
            "IMG-1404", file=instance.ref.label, transfer_syntax=uid.name, packages=packages
        )
    array, remarks = _run_decoder(decoder, instance, name=uid.name)
    if remarks:
        # pydicom warns where it cut off or made up pixels: such a plane is no evidence.
        raise refuse(
            "IMG-1405", file=instance.ref.label, transfer_syntax=uid.name, fault=remarks[0]
        )
    return _as_plane(array, instance)


#: Warnings of pydicom that say nothing about pixel values: the frame before was read whole.
_HARMLESS = ("End of file reached before delimiter", "A value of type")


def _run_decoder(decoder: Any, instance: Instance, *, name: str) -> tuple[Pixels, list[str]]:
    # Warnings are process-wide, and a decoder holds the interpreter anyway: one at a time.
    with _decoding, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with instance.ref.open() as stream:
                dataset = dcmread(stream, force=True)
            colour = instance.pixels.samples == 3
            array, _ = decoder.as_array(dataset, index=instance.frame, raw=not colour)
        except Refusal:
            raise
        except Exception as error:
            raise refuse(
                "IMG-1405",
                file=instance.ref.label,
                transfer_syntax=name,
                fault=type(error).__name__,
            ) from error
    texts = [str(warning.message) for warning in caught]
    return array, [text.split(" - ")[0] for text in texts if not text.startswith(_HARMLESS)]


def _as_plane(array: Pixels, instance: Instance) -> Pixels:
    pixels = instance.pixels
    expected = (pixels.rows, pixels.columns) + ((3,) if pixels.samples == 3 else ())
    if array.shape != expected:
        raise refuse(
            "IMG-1403",
            file=instance.ref.label,
            expected_bytes=plane_bytes(pixels),
            found_bytes=int(array.nbytes),
        )
    if pixels.samples == 3:
        return np.ascontiguousarray(array, dtype="u1").view(RGB)[..., 0]
    return without_unused_bits(array.astype(stored_dtype(pixels), copy=False), pixels)


def _packages(text: str) -> list[str]:
    # pydicom writes "pylibjpeg-libjpeg - requires numpy, pylibjpeg>=2.0 and pylibjpeg-libjpeg".
    needs = text.partition("requires")[2].replace(" and ", ",")
    return [part.strip().split(">")[0] for part in needs.split(",") if part.strip()]
