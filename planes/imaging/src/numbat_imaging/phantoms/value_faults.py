"""Faults of the value scale, the pixel description, and vendors' private elements."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import MPEG2MPML, JPEG2000Lossless, RTDoseStorage

from numbat_imaging.phantoms.geometry_faults import Slices, Transform, move
from numbat_imaging.phantoms.phantom import get_pixels, set_pixels


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


def with_modality_lut(
    first: int, entries: Sequence[int], *, bits: int = 16, count: int | None = None
) -> Transform:
    """Values by a table from stored value `first` on (PS3.3 C.11.1.1).

    Entries of 8 bits lie two to a word. `count`: the number of entries that the descriptor states,
    when it is not to be the right one.
    """
    stated = len(entries) if count is None else count
    words = np.asarray(entries, "<u2")
    if bits == 8:
        data = words.astype("u1").tobytes()
        words = np.frombuffer(data + b"\0" * (len(data) % 2), "<u2")

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            order = "<u2" if ds.file_meta.TransferSyntaxUID.is_little_endian else ">u2"
            item = Dataset()
            item.add_new("LUTDescriptor", "US", [stated & 0xFFFF, first & 0xFFFF, bits])
            item.add_new("LUTData", "OW", words.astype(order).tobytes())
            item.ModalityLUTType = "OD"
            ds.ModalityLUTSequence = [item]
        return slices

    return transform


def real_world_item(
    label: str,
    unit: str,
    mapped: tuple[float, float],
    *,
    line: tuple[float, float] | None = None,
    table: Sequence[float] | None = None,
    vr: str = "US",
) -> Dataset:
    """One real-world map: `line` is slope and intercept; `vr` that of the mapped range."""
    item = Dataset()
    item.LUTLabel, item.LUTExplanation = label, f"{label} of a phantom"
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = unit, "UCUM", unit
    item.MeasurementUnitsCodeSequence = [code]
    ends = [int(end) & 0xFFFF for end in mapped] if vr == "US" else mapped
    if vr == "FD":
        item.DoubleFloatRealWorldValueFirstValueMapped = float(mapped[0])
        item.DoubleFloatRealWorldValueLastValueMapped = float(mapped[1])
    else:
        item.add_new("RealWorldValueFirstValueMapped", vr, int(ends[0]))
        item.add_new("RealWorldValueLastValueMapped", vr, int(ends[1]))
    if line is not None:
        item.RealWorldValueSlope, item.RealWorldValueIntercept = line
    if table is not None:
        item.RealWorldValueLUTData = [float(value) for value in table]
    return item


def with_real_world(*items: Dataset) -> Transform:
    """Real-world maps in every slice."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            ds.RealWorldValueMappingSequence = [deepcopy(item) for item in items]
        return slices

    return transform


def as_dose(scaling: str) -> Transform:
    """Each slice a dose grid of one frame (PS3.3 A.18)."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = RTDoseStorage
            ds.Modality, ds.DoseUnits, ds.DoseType = "RTDOSE", "GY", "PHYSICAL"
            ds.DoseSummationType, ds.DoseGridScaling = "PLAN", scaling
        return slices

    return transform


def raised(by: int, *, intercepts: Sequence[float]) -> Transform:
    """Stored values raised, and a rescale with another intercept in every slice."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            plane = get_pixels(ds)
            set_pixels(ds, plane + plane.dtype.type(by))
            ds.RescaleSlope, ds.RescaleIntercept = "1", str(intercepts[index % len(intercepts)])
        return slices

    return transform


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


def with_philips_scale(
    scale_slope: float | None = 1.6765,
    *,
    creator: bool = True,
    first: int = 0,
    rescale: tuple[str, str] = ("0.596581", "0"),
) -> Transform:
    """Philips' two scales: displayed by `rescale`, precise by the private scale slope.

    `scale_slope`: None for a file without. `creator`: whether the private block is reserved.
    `first`: the first slice that has the private element.
    """

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            ds.Manufacturer = "Philips Medical Systems"
            ds.RescaleSlope, ds.RescaleIntercept = rescale
            if scale_slope is None or index < first:
                continue
            if creator:
                block = ds.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
                block.add_new(0x0E, "FL", scale_slope)
            else:
                ds.add_new(0x2005100E, "FL", scale_slope)
        return slices

    return transform


def moved_volume(start: int, by_mm: tuple[float, float, float]) -> Transform:
    """All slices from `start` on lie elsewhere in their planes."""

    def transform(slices: Slices) -> Slices:
        for ds in slices[start:]:
            move(ds, by_mm)
        return slices

    return transform
