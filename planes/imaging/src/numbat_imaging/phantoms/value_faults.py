"""Faults of the value scale, the pixel description, and vendors' private elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import MPEG2MPML, JPEG2000Lossless

from numbat_imaging.phantoms.geometry_faults import Slices, Transform, move
from numbat_imaging.phantoms.phantom import get_pixels


def with_values(**elements: Any) -> Transform:
    """Elements with one value in every slice."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            for keyword, value in elements.items():
                setattr(ds, keyword, value)
        return slices

    return transform


def with_values_in(index: int, **elements: Any) -> Transform:
    """Elements with another value in one slice."""

    def transform(slices: Slices) -> Slices:
        for keyword, value in elements.items():
            setattr(slices[index], keyword, value)
        return slices

    return transform


def without_values(*keywords: str) -> Transform:
    """Elements absent from every slice."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            for keyword in keywords:
                if keyword in ds:
                    delattr(ds, keyword)
        return slices

    return transform


def interleaved_times(slices: Slices) -> Slices:
    """Every second slice is of the second time point."""
    for index, ds in enumerate(slices):
        ds.TemporalPositionIdentifier, ds.NumberOfTemporalPositions = index % 2 + 1, 2
    return slices


def interleaved_b_values(slices: Slices) -> Slices:
    """Every second slice is diffusion weighted."""
    for index, ds in enumerate(slices):
        ds.DiffusionBValue = 1000.0 * (index % 2)
        ds.DiffusionDirectionality = "ISOTROPIC"
    return slices


def restarting_times(slices: Slices) -> Slices:
    """The temporal positions of four volumes run 1, 2 in each of two acquisitions."""
    for ds in slices:
        t = ds.TemporalPositionIdentifier - 1
        ds.TemporalPositionIdentifier, ds.AcquisitionNumber = t % 2 + 1, t // 2 + 1
        ds.NumberOfTemporalPositions = 2
    return slices


def with_modality_lut(slices: Slices) -> Slices:
    """Values by a table (PS3.3 C.11.1.1)."""
    for ds in slices:
        item = Dataset()
        item.add_new("LUTDescriptor", "US", [4, 0, 16])
        item.add_new("LUTData", "US", [0, 10, 40, 90])
        item.ModalityLUTType = "OD"
        ds.ModalityLUTSequence = [item]
    return slices


def with_float_pixels(slices: Slices) -> Slices:
    """FloatPixelData instead of PixelData (PS3.3 C.7.6.24)."""
    for ds in slices:
        plane = get_pixels(ds).astype("<f4")
        for keyword in ("PixelData", "BitsStored", "HighBit", "PixelRepresentation"):
            delattr(ds, keyword)
        ds.BitsAllocated = 32
        ds.FloatPixelData = plane.tobytes()
    return slices


def in_words(slices: Slices) -> Slices:
    """8-bit pixels as OW words: in big endian the first pixel is the low byte (PS3.5 A.3)."""
    for ds in slices:
        data = np.frombuffer(ds.PixelData, "u2")
        ds.PixelData = data.byteswap().tobytes()
        ds["PixelData"].VR = "OW"
    return slices


def in_video_syntax(slices: Slices) -> Slices:
    """Pixels in a video syntax, for which pydicom has no decoder."""
    for ds in slices:
        ds.file_meta.TransferSyntaxUID = MPEG2MPML
        ds.PixelData = encapsulate([bytes(64)])
        ds["PixelData"].VR = "OB"
    return slices


def with_damaged_stream(index: int) -> Transform:
    """One slice whose JPEG 2000 stream is no JPEG 2000."""

    def transform(slices: Slices) -> Slices:
        ds = slices[index]
        ds.file_meta.TransferSyntaxUID = JPEG2000Lossless
        ds.PixelData = encapsulate([b"\xff\x4f\xff\x51" + bytes(100)])
        ds["PixelData"].VR = "OB"
        return slices

    return transform


def with_uih_grid(slices: Slices) -> Slices:
    """United Imaging's private sequence of the tiles of a grid."""
    for ds in slices:
        block = ds.private_block(0x0065, "Image Private Header", create=True)
        block.add_new(0x51, "SQ", [Dataset()])
    return slices


def with_philips_scale(slices: Slices) -> Slices:
    """Philips' two scales: displayed by RescaleSlope, floating point by its private scale slope."""
    for ds in slices:
        ds.Manufacturer = "Philips Medical Systems"
        ds.RescaleSlope, ds.RescaleIntercept = "0.596581", "0"
        block = ds.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
        block.add_new(0x0E, "FL", 1.6765)
    return slices


def moved_volume(start: int, by_mm: tuple[float, float, float]) -> Transform:
    """All slices from `start` on lie elsewhere in their planes."""

    def transform(slices: Slices) -> Slices:
        for ds in slices[start:]:
            move(ds, by_mm)
        return slices

    return transform
