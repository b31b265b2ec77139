"""Faults of pixels, value scale and vendor form."""

from __future__ import annotations

import numpy as np

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
