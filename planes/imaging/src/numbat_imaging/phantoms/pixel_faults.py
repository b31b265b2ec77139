"""Faults of pixels, value scale and vendor form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.pixels.processing import convert_color_space
from pydicom.uid import UID

from numbat_imaging.phantoms.encapsulation import Change, planes_of
from numbat_imaging.phantoms.geometry_faults import Slices, Transform
from numbat_imaging.phantoms.phantom import decimal_text, get_pixels, set_pixels


def mixed_representation(index: int) -> Transform:
    """One slice of signed pixels, some negative, in an unsigned stack."""

    def transform(slices: Slices) -> Slices:
        ds = slices[index]
        plane = get_pixels(ds).astype(np.int16) - 500
        ds.PixelRepresentation = 1
        set_pixels(ds, plane)
        return slices

    return transform


def truncated_pixels(index: int) -> Transform:
    """One slice whose last rows never arrived."""

    def transform(slices: Slices) -> Slices:
        ds = slices[index]
        ds.PixelData = ds.PixelData[: len(ds.PixelData) * 3 // 4]
        return slices

    return transform


def slope_per_slice(slices: Slices) -> Slices:
    """A PET whose RescaleSlope differs from slice to slice."""
    for index, ds in enumerate(slices):
        ds.RescaleSlope, ds.RescaleIntercept = decimal_text(1.0 + 0.5 * index), "0"
    return slices


def overlay_in_high_bits(slices: Slices) -> Slices:
    """12-bit pixels with a retired overlay in the bits above HighBit (PS3.5 8.1.1)."""
    for ds in slices:
        plane = get_pixels(ds)
        plane[::2, ::3] |= 0xF000
        set_pixels(ds, plane)
    return slices


def undeclared_mosaic(slices: Slices) -> Slices:
    """Images that call themselves mosaics, without the header that tells the tiles."""
    for ds in slices:
        ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]
        ds.Manufacturer = "SIEMENS"
    return slices


def announced_images(count: int) -> Transform:
    """PET NumberOfSlices: how many slices the scanner made."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            ds.NumberOfSlices = count
        return slices

    return transform


def colour_map_of_palette(slices: Slices) -> Slices:
    """Pixels that are indices into a palette, which are no values."""
    for ds in slices:
        ds.PhotometricInterpretation = "PALETTE COLOR"
        for colour in ("Red", "Green", "Blue"):
            setattr(ds, f"{colour}PaletteColorLookupTableDescriptor", [256, 0, 16])
            setattr(ds, f"{colour}PaletteColorLookupTableData", bytes(512))
    return slices


def with_one_cut(index: int) -> Callable[[list[bytes]], list[bytes]]:
    """One of several streams ends in its middle."""

    def alter(streams: list[bytes]) -> list[bytes]:
        kept = list(streams)
        kept[index] = kept[index][: len(kept[index]) // 2]
        return kept

    return alter


def renamed_syntax(change: Change, syntax: str) -> Change:
    """What `change` makes, under the name of another transfer syntax."""

    def renamed(ds: Dataset) -> None:
        change(ds)
        ds.file_meta.TransferSyntaxUID = UID(syntax)

    return renamed


def in_planes(ds: Dataset) -> None:
    """PlanarConfiguration 1."""
    ds.PlanarConfiguration = 1
    ds.PixelData = planes_of(ds)[0].transpose(2, 0, 1).tobytes()


def with_halved_chroma(ds: Dataset) -> None:
    """YBR_FULL_422: the colour of each pair of pixels once (PS3.3 C.7.6.3.1.2)."""
    ybr = convert_color_space(planes_of(ds)[0], "RGB", "YBR_FULL")
    quads = np.empty((ds.Rows, ds.Columns // 2, 4), np.uint8)
    quads[:, :, :2] = ybr[:, :, 0].reshape(ds.Rows, -1, 2)
    quads[:, :, 2:] = ybr[:, ::2, 1:]
    ds.PhotometricInterpretation = "YBR_FULL_422"
    ds.PixelData = quads.tobytes()


def palette_values(entries: int = 256) -> NDArray[Any]:
    """The colours of the phantom's palette, (entries, 3) of 8 bits."""
    index = np.arange(entries)
    return np.stack([index, 255 - index, (index * 7) % 256], axis=1).astype(np.uint8)


def with_palette(bits: int, *, scale: int = 257, missing: int = 0) -> Change:
    """Indices into a palette whose entries have 8 or 16 bits."""

    def change(ds: Dataset) -> None:
        ds.PhotometricInterpretation = "PALETTE COLOR"
        for column, colour in enumerate(("Red", "Green", "Blue")):
            setattr(ds, f"{colour}PaletteColorLookupTableDescriptor", [256, 0, bits])
            values = palette_values()[:, column].astype(np.uint16)
            words = values * scale if bits == 16 else values.astype(np.uint8)
            data = words[: len(words) - missing].astype(f"<u{bits // 8}").tobytes()
            setattr(ds, f"{colour}PaletteColorLookupTableData", data)

    return change


def with_segmented_palette(ds: Dataset) -> None:
    """A palette as a discrete segment, a linear one, and a copy of both (PS3.3 C.7.9.2)."""
    ds.PhotometricInterpretation = "PALETTE COLOR"
    words = [0, 2, 0, 257, 1, 126, 127 * 257, 2, 2, 0, 0]
    for colour in ("Red", "Green", "Blue"):
        setattr(ds, f"{colour}PaletteColorLookupTableDescriptor", [256, 0, 16])
        data = np.array(words, "<u2").tobytes()
        setattr(ds, f"Segmented{colour}PaletteColorLookupTableData", data)


def in_16_bits(ds: Dataset) -> None:
    """Samples of 16 bits."""
    _in(ds, planes_of(ds)[0].astype("<u2"))


def in_words_of(dtype: str) -> Change:
    """Samples of another width."""

    def change(ds: Dataset) -> None:
        _in(ds, planes_of(ds)[0].astype(f"<{dtype}"))

    return change


def _in(ds: Dataset, plane: NDArray[Any]) -> None:
    bits = plane.dtype.itemsize * 8
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = bits, bits, bits - 1
    ds.PixelData = plane.tobytes()
    ds["PixelData"].VR = "OW"


def unchanged(ds: Dataset) -> None:
    """Nothing."""


def with_one_bit(ds: Dataset) -> None:
    """0 and 1 by one bit of the phantom's values: which of them differs from slice to slice."""
    set_pixels(ds, (planes_of(ds)[0] >> (ds.InstanceNumber % 8)) & 1)


def in_one_bit(ds: Dataset) -> None:
    """What `with_one_bit` gives, eight pixels to a byte."""
    with_one_bit(ds)
    plane = planes_of(ds)[0]
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 1, 1, 0
    packed = np.packbits(plane.astype(np.uint8), bitorder="little").tobytes()
    ds.PixelData = packed + b"\0" * (len(packed) % 2)
    ds["PixelData"].VR = "OB"


def in_double_floats(ds: Dataset) -> None:
    """DoubleFloatPixelData instead of PixelData (PS3.3 C.7.6.24)."""
    plane = planes_of(ds)[0].astype("<f8")
    for keyword in ("PixelData", "BitsStored", "HighBit", "PixelRepresentation"):
        delattr(ds, keyword)
    ds.BitsAllocated = 64
    ds.DoubleFloatPixelData = plane.tobytes()


def with_vr(vr: str) -> Change:
    """PixelData under another VR, bytes unchanged."""

    def change(ds: Dataset) -> None:
        ds["PixelData"].VR = vr

    return change


def with_bits(allocated: int) -> Change:
    """BitsAllocated that no pixel has."""

    def change(ds: Dataset) -> None:
        ds.BitsAllocated = ds.BitsStored = allocated
        ds.HighBit = allocated - 1

    return change
