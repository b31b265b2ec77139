"""Objects that are no single-frame image: enhanced multi-frame, segmentation, report."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian

from numbat_imaging.phantoms.phantom import Phantom, decimal_text

_ENHANCED = {"MR": "1.2.840.10008.5.1.4.1.1.4.1", "CT": "1.2.840.10008.5.1.4.1.1.2.1"}
_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
_BASIC_TEXT_SR = "1.2.840.10008.5.1.4.1.1.88.11"


def enhanced(phantom: Phantom, modality: Literal["MR", "CT"]) -> list[Dataset]:
    """All slices in one multi-frame object, its geometry only in the functional groups (A.36)."""
    ds = _shell(phantom, _ENHANCED[modality], modality)
    columns, rows, slices = phantom.shape
    ds.NumberOfFrames = slices
    frames = np.stack([phantom.plane(k) for k in range(slices)])
    _describe_pixels(ds, rows, columns, bits=phantom.bits)
    ds.PixelData = frames.astype("<u2").tobytes()
    ds["PixelData"].VR = "OW"
    ds.SharedFunctionalGroupsSequence = [_shared_groups(phantom)]
    ds.PerFrameFunctionalGroupsSequence = [_frame_groups(phantom, k) for k in range(slices)]
    organization = Dataset()
    organization.DimensionOrganizationUID = phantom.uid("dimensions")
    ds.DimensionOrganizationSequence = [organization]
    ds.DimensionIndexSequence = [_dimension(phantom, 0x00209056), _dimension(phantom, 0x00209057)]
    return [ds]


def segmentation(phantom: Phantom) -> list[Dataset]:
    """A one-frame binary segmentation object that belongs to the scan (A.51)."""
    ds = _shell(phantom, _SEGMENTATION, "SEG")
    columns, rows, _ = phantom.shape
    _describe_pixels(ds, rows, columns, bits=1)
    ds.BitsAllocated = 1
    ds.NumberOfFrames = 1
    ds.SegmentationType = "BINARY"
    bits = np.zeros((rows, columns), np.uint8)
    bits[0, 0] = 1
    packed = np.packbits(bits.ravel(), bitorder="little").tobytes()
    ds.PixelData = packed + b"\0" * (len(packed) % 2)
    ds["PixelData"].VR = "OB"
    return [ds]


def report(phantom: Phantom) -> list[Dataset]:
    """A structured report with one line of text: no pixels at all (A.35.1)."""
    ds = _shell(phantom, _BASIC_TEXT_SR, "SR")
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator = "121071", "DCM"
    code.CodeMeaning = "Finding"
    item = Dataset()
    item.RelationshipType, item.ValueType = "CONTAINS", "TEXT"
    item.ConceptNameCodeSequence, item.TextValue = [code], "a phantom"
    ds.ValueType, ds.ContinuityOfContent = "CONTAINER", "SEPARATE"
    ds.CompletionFlag, ds.VerificationFlag = "COMPLETE", "UNVERIFIED"
    ds.ContentSequence = [item]
    return [ds]


def _shell(phantom: Phantom, sop_class: str, modality: str) -> Dataset:
    ds = Dataset()
    ds.SOPClassUID = sop_class
    ds.SOPInstanceUID = phantom.uid(sop_class)
    ds.ImageType = ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    ds.StudyDate = ds.ContentDate = "20200102"
    ds.StudyTime = ds.ContentTime = "101112"
    ds.Modality, ds.Manufacturer = modality, phantom.manufacturer
    ds.PatientName, ds.PatientID = phantom.patient_name, phantom.patient_id
    ds.PatientBirthDate, ds.PatientSex = "19700101", "O"
    ds.StudyInstanceUID = phantom.uid(phantom.study)
    ds.SeriesInstanceUID = phantom.uid(phantom.study, phantom.series, modality)
    ds.FrameOfReferenceUID = phantom.uid(phantom.study, "frame of reference")
    ds.SeriesNumber, ds.InstanceNumber = phantom.series_number, 1
    ds.SeriesDescription = phantom.series_description
    ds.file_meta = FileMetaDataset()
    ds.file_meta.MediaStorageSOPClassUID = UID(sop_class)
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return ds


def _describe_pixels(ds: Dataset, rows: int, columns: int, *, bits: int) -> None:
    ds.Rows, ds.Columns, ds.SamplesPerPixel = rows, columns, 1
    ds.PhotometricInterpretation = "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, bits, bits - 1, 0


def _shared_groups(phantom: Phantom) -> Dataset:
    measures, orientation, groups = Dataset(), Dataset(), Dataset()
    i_mm, j_mm, k_mm = phantom.spacing_mm
    measures.PixelSpacing = [decimal_text(j_mm), decimal_text(i_mm)]
    measures.SliceThickness = decimal_text(k_mm)
    orientation.ImageOrientationPatient = [decimal_text(x) for x in phantom.orientation]
    groups.PixelMeasuresSequence = [measures]
    groups.PlaneOrientationSequence = [orientation]
    return groups


def _frame_groups(phantom: Phantom, k: int) -> Dataset:
    position, content, groups = Dataset(), Dataset(), Dataset()
    point = np.asarray(phantom.origin_lps_mm) + k * phantom.step_mm
    position.ImagePositionPatient = [decimal_text(x) for x in point]
    content.StackID, content.InStackPositionNumber = "1", k + 1
    content.DimensionIndexValues = [1, k + 1]
    groups.PlanePositionSequence = [position]
    groups.FrameContentSequence = [content]
    return groups


def _dimension(phantom: Phantom, pointer: int) -> Dataset:
    item = Dataset()
    item.DimensionOrganizationUID = phantom.uid("dimensions")
    item.DimensionIndexPointer = pointer
    item.FunctionalGroupPointer = 0x00209111
    return item
