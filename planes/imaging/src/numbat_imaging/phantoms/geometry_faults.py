"""Faults of position and orientation: each takes the slices of a scan and gives faulty ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
from pydicom import Dataset
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag
from pydicom.uid import UID

from numbat_imaging.phantoms.phantom import decimal_text, get_pixels, set_pixels

Slices = list[Dataset]
Transform = Callable[[Slices], Slices]


def move(ds: Dataset, by_mm: Sequence[float]) -> None:
    """Shift a slice's ImagePositionPatient, LPS mm."""
    old = [float(x) for x in ds.ImagePositionPatient]
    ds.ImagePositionPatient = [decimal_text(a + b) for a, b in zip(old, by_mm, strict=True)]


def set_raw(ds: Dataset, keyword: str, text: str) -> None:
    """Store text in an element as it is, valid for its VR or not; it is written unchanged."""
    tag, vr = Tag(keyword), ds[keyword].VR
    value = text.encode("ascii")
    value += b" " * (len(value) % 2)
    syntax = ds.file_meta.TransferSyntaxUID
    ds[tag] = RawDataElement(
        tag, vr, len(value), value, 0, syntax.is_implicit_VR, syntax.is_little_endian
    )


def unchanged(slices: Slices) -> Slices:
    """The clean scan."""
    return slices


def shuffled_numbers(slices: Slices) -> Slices:
    """InstanceNumber in another order than position: allowed by the standard."""
    numbers = [int(ds.InstanceNumber) for ds in slices]
    random.Random(7).shuffle(numbers)
    for ds, number in zip(slices, numbers, strict=True):
        ds.InstanceNumber = number
    return slices


def jittered_text(amount_mm: float) -> Transform:
    """Positions off by up to `amount_mm`, as coarse DS rounding leaves them."""

    def transform(slices: Slices) -> Slices:
        source = random.Random(11)
        for ds in slices:
            move(ds, [source.uniform(-amount_mm, amount_mm) for _ in range(3)])
        return slices

    return transform


def without(*indices: int) -> Transform:
    """Slices missing, counted from 0; negative from the end."""

    def transform(slices: Slices) -> Slices:
        gone = {index % len(slices) for index in indices}
        return [ds for index, ds in enumerate(slices) if index not in gone]

    return transform


def every_second(slices: Slices) -> Slices:
    """Every second slice missing: what is left is a regular grid."""
    return slices[::2]


def spread_along_normal(extra_mm: Callable[[int], float]) -> Transform:
    """Slice `index` moved along the normal by `extra_mm(index)`."""

    def transform(slices: Slices) -> Slices:
        for index, ds in enumerate(slices):
            cosines = np.array([float(x) for x in ds.ImageOrientationPatient])
            normal = np.cross(cosines[:3], cosines[3:])
            move(ds, (extra_mm(index) * normal).tolist())
        return slices

    return transform


def two_slabs(wide_mm: float, spacing_mm: float) -> Transform:
    """The second half of the stack `wide_mm` apart, the first half `spacing_mm`."""

    def transform(slices: Slices) -> Slices:
        half = len(slices) // 2
        return spread_along_normal(lambda k: max(0, k - half + 1) * (wide_mm - spacing_mm))(slices)

    return transform


def tilted(angle_deg: float, *, tag: str) -> Transform:
    """Gantry tilt: slices turned about the i axis while the table moves along the patient.

    `tag`: "right", "absent" or "opposite" sign of GantryDetectorTilt.
    """
    angle = math.radians(angle_deg)

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            cosines = (1.0, 0.0, 0.0, 0.0, math.cos(angle), -math.sin(angle))
            ds.ImageOrientationPatient = [decimal_text(x) for x in cosines]
            if tag != "absent":
                ds.GantryDetectorTilt = decimal_text(angle_deg if tag == "right" else -angle_deg)
        return slices

    return transform


def other_spacing(index: int) -> Transform:
    """One slice with another PixelSpacing."""

    def transform(slices: Slices) -> Slices:
        slices[index].PixelSpacing = ["1.25", "1.25"]
        return slices

    return transform


def other_orientation(index: int) -> Transform:
    """One slice turned by ten degrees about the normal of an axial scan."""

    def transform(slices: Slices) -> Slices:
        c, s = math.cos(math.radians(10)), math.sin(math.radians(10))
        slices[index].ImageOrientationPatient = [decimal_text(x) for x in (c, s, 0, -s, c, 0)]
        return slices

    return transform


def with_localizer(slices: Slices) -> Slices:
    """A sagittal localizer of another matrix in the same series."""
    extra = deepcopy(slices[0])
    extra.SOPInstanceUID = UID(f"{extra.SOPInstanceUID}.9")
    extra.file_meta.MediaStorageSOPInstanceUID = extra.SOPInstanceUID
    extra.ImageType = ["ORIGINAL", "PRIMARY", "LOCALIZER"]
    extra.InstanceNumber = len(slices) + 1
    extra.ImageOrientationPatient = ["0", "1", "0", "0", "0", "-1"]
    extra.ImagePositionPatient = ["0", "-12", "40"]
    extra.PixelSpacing = ["1.5", "1.5"]
    plane = get_pixels(slices[0])[:20, :24]
    extra.Rows, extra.Columns = plane.shape
    set_pixels(extra, plane)
    return [*slices[:3], extra, *slices[3:]]


def with_cosines(cosines: Sequence[float]) -> Transform:
    """Every slice with the same six cosines, valid or not."""

    def transform(slices: Slices) -> Slices:
        for ds in slices:
            ds.ImageOrientationPatient = [decimal_text(x) for x in cosines]
        return slices

    return transform


def with_text(keyword: str, text: str, *, index: int | None = None) -> Transform:
    """An element with unchecked text, on one slice or on all."""

    def transform(slices: Slices) -> Slices:
        for ds in slices if index is None else [slices[index]]:
            set_raw(ds, keyword, text)
        return slices

    return transform


def without_element(keyword: str, *, index: int | None = None) -> Transform:
    """An element missing, on one slice or on all."""

    def transform(slices: Slices) -> Slices:
        for ds in slices if index is None else [slices[index]]:
            delattr(ds, keyword)
        return slices

    return transform
