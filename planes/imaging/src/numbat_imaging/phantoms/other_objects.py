"""Objects that are no single-frame image: cine, dose, segmentation, report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian

from numbat_imaging.phantoms.phantom import Phantom, decimal_text

_MULTI_FRAME_CAPTURE = "1.2.840.10008.5.1.4.1.1.7.3"
_RT_DOSE = "1.2.840.10008.5.1.4.1.1.481.2"
_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
_BASIC_TEXT_SR = "1.2.840.10008.5.1.4.1.1.88.11"


def cine(phantom: Phantom) -> list[Dataset]:
    """All slices as frames of one secondary capture, which tells no place of any (A.8.4)."""
    return [_frames(phantom, _MULTI_FRAME_CAPTURE, "OT")]


def dose(phantom: Phantom, offsets_mm: Sequence[float]) -> list[Dataset]:
    """All slices as frames of one RT dose, at these offsets along the normal (A.18)."""
    ds = _frames(phantom, _RT_DOSE, "RTDOSE")
    i_mm, j_mm, k_mm = phantom.spacing_mm
    ds.ImagePositionPatient = [decimal_text(x) for x in phantom.origin_lps_mm]
    ds.ImageOrientationPatient = [decimal_text(x) for x in phantom.orientation]
    ds.PixelSpacing = [decimal_text(j_mm), decimal_text(i_mm)]
    ds.SliceThickness = decimal_text(k_mm)
    ds.FrameIncrementPointer = 0x3004000C
    ds.GridFrameOffsetVector = [decimal_text(x) for x in offsets_mm]
    ds.DoseUnits, ds.DoseType, ds.DoseSummationType = "GY", "PHYSICAL", "PLAN"
    ds.DoseGridScaling = "0.001"
    return [ds]


def _frames(phantom: Phantom, sop_class: str, modality: str) -> Dataset:
    ds = _shell(phantom, sop_class, modality)
    columns, rows, slices = phantom.shape
    ds.NumberOfFrames = slices
    frames = np.stack([phantom.plane(k) for k in range(slices)])
    _describe_pixels(ds, rows, columns, bits=phantom.bits)
    ds.PixelData = frames.astype("<u2").tobytes()
    ds["PixelData"].VR = "OW"
    return ds


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
