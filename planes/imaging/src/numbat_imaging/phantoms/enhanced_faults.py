"""Faults of enhanced objects: in the slices that become frames, and in the object itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.sequence import Sequence as Items

from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.enhanced_modules import code
from numbat_imaging.phantoms.geometry_faults import Slices, Transform, move
from numbat_imaging.phantoms.phantom import decimal_text, derived_uid, get_pixels, set_pixels

Change = Callable[[Dataset], None]


# Slices, before they are frames.


def for_each(change: Callable[[Dataset, int], None]) -> Transform:
    """Every slice changed by its number."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            change(ds, index)
        return slices

    return transform


def doubled(*indices: int) -> Transform:
    """Positions that hold two frames of other pixels, and nothing that tells them apart."""

    def transform(slices: Slices) -> Slices:
        more = [_with_other_pixels(slices[index]) for index in indices]
        return [*slices, *more]

    return transform


def _with_other_pixels(ds: Dataset) -> Dataset:
    extra = deepcopy(ds)
    extra.SOPInstanceUID = derived_uid(ds.SOPInstanceUID, "other pixels")
    set_pixels(extra, get_pixels(extra)[::-1])
    return extra


def second_stack(start: int, gap_mm: float) -> Transform:
    """Slices from `start` on are of StackID 2, `gap_mm` above the first stack."""

    def transform(slices: Slices) -> Slices:
        step = np.array([float(b) - float(a) for a, b in _ends(slices)])
        for ds in slices[start:]:
            ds.StackID = "2"
            move(ds, ((gap_mm / np.linalg.norm(step) - 1) * step).tolist())
        return slices

    return transform


def _ends(slices: Slices) -> zip[tuple[Any, Any]]:
    first, second = slices[0].ImagePositionPatient, slices[1].ImagePositionPatient
    return zip(first, second, strict=True)


def turned_from(start: int) -> Transform:
    """Slices from `start` on are sagittal, in the same stack as the others."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices[start:]):
            ds.ImageOrientationPatient = ["0", "1", "0", "0", "0", "-1"]
            ds.ImagePositionPatient = [decimal_text(x) for x in (-10.0 - 2.0 * index, -12.0, 40.0)]
        return slices

    return transform


def timed(ds: Dataset, index: int) -> None:
    """A time for each slice: 50 ms from slice to slice."""
    ds.AcquisitionTime = (
        f"10{12 + index // 1000:02d}{index // 20 % 50:02d}.{index % 20 * 5:02d}0000"
    )


def mosaic(ds: Dataset, index: int) -> None:
    """A frame that is called a mosaic and is none, as in objects of Siemens XA30."""
    ds.Manufacturer = "SIEMENS"
    ds.ImageType = ["ORIGINAL", "PRIMARY", "FMRI", "MOSAIC"]


def with_derived_map(count: int) -> Transform:
    """A map of diffusion coefficients behind the images that it was made from, as scanners do."""

    def transform(slices: Slices) -> Slices:
        maps = []
        for ds in slices[:count]:
            one = _with_other_pixels(ds)
            one.ImageType = ["DERIVED", "PRIMARY", "DIFFUSION", "ADC"]
            one.DiffusionDirectionality = "ISOTROPIC"
            one.DiffusionBValue = 0.0
            maps.append(one)
        return [*slices, *maps]

    return transform


def repeated_b0(volumes: Sequence[int], count: int, *, told_by: str | None) -> Transform:
    """Unweighted volumes of a diffusion scan, told apart by one element or by none."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            t = index // count
            if t in volumes:
                ds.DiffusionBValue, ds.DiffusionDirectionality = 0.0, "NONE"
                if "DiffusionGradientOrientation" in ds:
                    del ds.DiffusionGradientOrientation
            if told_by is not None:
                setattr(ds, told_by, t + 1)
        return slices

    return transform


def two_axes(count: int, **axes: Sequence[Any]) -> Transform:
    """Volumes along two axes: each element runs through its values, the last one fastest."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            t = index // count
            for keyword, values in reversed(axes.items()):
                t, at = divmod(t, len(values))
                setattr(ds, keyword, values[at])
        return slices

    return transform


def with_world_values(ds: Dataset, index: int) -> None:
    """A real-world value map that repeats the rescale and names its unit (C.7.6.16.2.11)."""
    item = Dataset()
    item.RealWorldValueFirstValueMapped, item.RealWorldValueLastValueMapped = 0, 65535
    item.RealWorldValueSlope = float(ds.get("RescaleSlope", 1.0))
    item.RealWorldValueIntercept = float(ds.get("RescaleIntercept", 0.0))
    item.LUTExplanation, item.LUTLabel = "activity", "BQML"
    item.MeasurementUnitsCodeSequence = [code("Bq/ml", "UCUM", "Becquerels/milliliter")]
    ds.RealWorldValueMappingSequence = [item]


# The object.


def _frames(ds: Dataset) -> Any:
    return ds.PerFrameFunctionalGroupsSequence


def without_groups(*names: str, frame: int | None = None) -> Change:
    """A functional group missing: everywhere, or of one frame."""

    def change(ds: Dataset) -> None:
        groups = [*ds.SharedFunctionalGroupsSequence, *_frames(ds)]
        for item in groups if frame is None else [_frames(ds)[frame]]:
            for name in names:
                if name in item:
                    delattr(item, name)

    return change


def shuffled_in_stack(ds: Dataset) -> None:
    """InStackPositionNumber in an order that is not that of the positions."""
    count = len(_frames(ds))
    for index, frame in enumerate(_frames(ds)):
        content = frame.FrameContentSequence[0]
        content.InStackPositionNumber = 1 + index * 3 % count
        content.DimensionIndexValues = [1, content.InStackPositionNumber]


def indices_in(frame: int, indices: list[int]) -> Change:
    """Other DimensionIndexValues in one frame."""

    def change(ds: Dataset) -> None:
        _frames(ds)[frame].FrameContentSequence[0].DimensionIndexValues = indices

    return change


def without_content(*keywords: str) -> Change:
    """Elements of FrameContentSequence absent from every frame."""

    def change(ds: Dataset) -> None:
        for frame in _frames(ds):
            for keyword in keywords:
                if keyword in frame.FrameContentSequence[0]:
                    delattr(frame.FrameContentSequence[0], keyword)

    return change


def content_in(frame: int, **elements: Any) -> Change:
    """Elements of FrameContentSequence with another value in one frame."""

    def change(ds: Dataset) -> None:
        for keyword, value in elements.items():
            setattr(_frames(ds)[frame].FrameContentSequence[0], keyword, value)

    return change


def swapped_indices(first: int, second: int) -> Change:
    """DimensionIndexValues of two frames exchanged; what they stand for stays."""

    def change(ds: Dataset) -> None:
        one, other = (_frames(ds)[at].FrameContentSequence[0] for at in (first, second))
        kept = list(one.DimensionIndexValues)
        one.DimensionIndexValues = list(other.DimensionIndexValues)
        other.DimensionIndexValues = kept

    return change


def frame_count(count: int | None) -> Change:
    """NumberOfFrames that says another number, or is absent."""

    def change(ds: Dataset) -> None:
        if count is None:
            del ds.NumberOfFrames
        else:
            ds.NumberOfFrames = count

    return change


def fewer_groups(count: int) -> Change:
    """Per-frame groups for the first `count` frames only."""

    def change(ds: Dataset) -> None:
        ds.PerFrameFunctionalGroupsSequence = Items(list(_frames(ds))[:count])

    return change


def two_shared(ds: Dataset) -> None:
    """Two items of shared groups."""
    first = ds.SharedFunctionalGroupsSequence[0]
    ds.SharedFunctionalGroupsSequence = [first, deepcopy(first)]


def empty_groups(ds: Dataset) -> None:
    """Groups without items, in the shared ones even of those that each frame states."""
    shared = ds.SharedFunctionalGroupsSequence[0]
    shared.PlanePositionSequence = []
    shared.ReferencedImageSequence = []
    for frame in _frames(ds):
        frame.DerivationImageSequence = []
        frame.PixelMeasuresSequence = []


def undefined_lengths(ds: Dataset) -> None:
    """Sequences and items without lengths, ended by delimiters (PS3.5 7.5.2)."""
    for element in ds:
        if element.VR == "SQ":
            element.is_undefined_length = True
            for item in element.value:
                item.is_undefined_length_sequence_item = True
                undefined_lengths(item)


def decoys_at_top(ds: Dataset) -> None:
    """Single-frame elements at the top level, as some converters leave them: those of no frame."""
    ds.ImagePositionPatient = ["0", "0", "0"]
    ds.ImageOrientationPatient = ["0", "1", "0", "0", "0", "-1"]
    ds.PixelSpacing, ds.SliceThickness = ["3", "3"], "7"
    ds.RescaleSlope, ds.RescaleIntercept = "5", "100"
    ds.SpacingBetweenSlices = "2"


def wrong_spacing_tag(ds: Dataset) -> None:
    """SpacingBetweenSlices of another distance than the frames have."""
    for group in ds.SharedFunctionalGroupsSequence:
        group.PixelMeasuresSequence[0].SpacingBetweenSlices = "3"


def geometry_at_top(ds: Dataset) -> None:
    """One position for all frames, at the top level, and none in their groups."""
    content = _frames(ds)[0]
    ds.ImagePositionPatient = content.PlanePositionSequence[0].ImagePositionPatient
    without_groups("PlanePositionSequence")(ds)


def philips_frames(ds: Dataset) -> None:
    """Philips' private group of each frame: a single-frame header, private scale included."""
    ds.Manufacturer = "Philips Medical Systems"
    for number, frame in enumerate(_frames(ds)):
        item = Dataset()
        item.InstanceNumber = number + 1
        item.SliceLocation = "0"
        item.ImagePositionPatient = ["0", "0", "0"]
        one = item.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
        one.add_new(0x0E, "FL", 1.0)
        block = frame.private_block(0x2005, "Philips MR Imaging DD 005", create=True)
        block.add_new(0x0F, "SQ", [item])


# One image or one series in several files.


def cut(ds: Dataset, *sizes: int) -> list[Dataset]:
    """The parts of a concatenation (C.7.6.16.2.2.4): frames of one image over several files."""
    frames, start = list(_frames(ds)), 0
    each = len(ds.PixelData) // len(frames)
    parts = []
    for number, size in enumerate(sizes, start=1):
        part = deepcopy(ds)
        part.SOPInstanceUID = derived_uid(ds.SOPInstanceUID, "part", number)
        part.file_meta.MediaStorageSOPInstanceUID = part.SOPInstanceUID
        part.ConcatenationUID = derived_uid(ds.SOPInstanceUID, "concatenation")
        part.SOPInstanceUIDOfConcatenationSource = ds.SOPInstanceUID
        part.InConcatenationNumber, part.InConcatenationTotalNumber = number, len(sizes)
        part.ConcatenationFrameOffsetNumber = start
        part.PerFrameFunctionalGroupsSequence = Items(frames[start : start + size])
        part.NumberOfFrames = size
        part.PixelData = ds.PixelData[each * start : each * (start + size)]
        start += size
        parts.append(part)
    return parts


def one_object_each(slices: Slices, count: int, layout: Layout) -> list[Dataset]:
    """An enhanced object for every `count` slices: a volume a file, as Siemens XA writes them."""
    starts = range(0, len(slices), count)
    objects = [enhanced_object(slices[start : start + count], layout) for start in starts]
    for number, ds in enumerate(objects, start=1):
        ds.InstanceNumber = ds.AcquisitionNumber = number
    return objects
