"""Faults of identity: duplicates, copies, and images of others under one series UID."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from pydicom import Dataset

from numbat_imaging.phantoms.geometry_faults import Slices, Transform
from numbat_imaging.phantoms.phantom import derived_uid, get_pixels, set_pixels


def _renamed(ds: Dataset, *parts: object) -> Dataset:
    ds.SOPInstanceUID = derived_uid(ds.SOPInstanceUID, *parts)
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    return ds


def duplicate_position(index: int, *, same_pixels: bool) -> Transform:
    """One position twice, under two SOPInstanceUIDs."""

    def transform(slices: Slices) -> Slices:
        extra = _renamed(deepcopy(slices[index]), "duplicate")
        extra.InstanceNumber = len(slices) + 1
        if not same_pixels:
            set_pixels(extra, get_pixels(extra)[::-1])
        return [*slices, extra]

    return transform


def same_uid_other_pixels(index: int) -> Transform:
    """One SOPInstanceUID with two contents: no reader can know which is right."""

    def transform(slices: Slices) -> Slices:
        extra = deepcopy(slices[index])
        set_pixels(extra, get_pixels(extra)[::-1])
        return [*slices, extra]

    return transform


def byte_identical_copy(index: int) -> Transform:
    """One file twice."""

    def transform(slices: Slices) -> Slices:
        return [*slices, deepcopy(slices[index])]

    return transform


def other_frame_of_reference(indices: Iterable[int]) -> Transform:
    """Some slices in another frame of reference: their coordinates mean another place."""
    chosen = tuple(indices)

    def transform(slices: Slices) -> Slices:
        for index in chosen:
            ds = slices[index]
            ds.FrameOfReferenceUID = derived_uid(ds.FrameOfReferenceUID, "other")
        return slices

    return transform


def two_patients(slices: Slices) -> Slices:
    """The second half is somebody else's, under the same study and series UIDs."""
    for ds in slices[len(slices) // 2 :]:
        ds.PatientID, ds.PatientName, ds.PatientBirthDate = "PHANTOM-2", "Phantom^Two", "19810203"
    return slices


def two_studies(slices: Slices) -> Slices:
    """The second half belongs to another study, under the same series UID."""
    for ds in slices[len(slices) // 2 :]:
        ds.StudyInstanceUID = derived_uid(ds.StudyInstanceUID, "other")
    return slices
