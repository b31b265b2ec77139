"""Slices as the frames of one enhanced object, in any layout that the standard allows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.datadict import tag_for_keyword
from pydicom.dataset import FileMetaDataset
from pydicom.uid import UID, ExplicitVRLittleEndian

from numbat_imaging.phantoms.enhanced_modules import (
    FRAME_TYPES,
    LEGACY_CLASSES,
    SOP_CLASSES,
    describe_object,
    fixed_groups,
)
from numbat_imaging.phantoms.phantom import derived_uid, get_pixels

Groups = dict[str, Dataset]


@dataclass(frozen=True)
class Layout:
    """How slices become the frames of one enhanced object.

    `dimensions`: keys of DIMENSIONS, in the order in which the object lists them; none at all for
    an object without DimensionIndexSequence. `per_frame`: functional groups that every frame states
    although all are the same; "all" for every group. A group whose frames differ is per frame in
    any case, and FrameContentSequence always. `frame_order`: the order in which slices are stored.
    `counts_down`: InStackPositionNumber runs against the slice normal. `legacy`: a legacy converted
    object, whose unassigned attributes hold what has no group of its own.
    """

    dimensions: tuple[str, ...] = ("StackID", "InStackPositionNumber")
    per_frame: frozenset[str] | str = frozenset()
    frame_order: tuple[int, ...] | None = None
    counts_down: bool = False
    legacy: bool = False
    transfer_syntax_uid: str = ExplicitVRLittleEndian

    def is_per_frame(self, group: str, frames: Sequence[Groups]) -> bool:
        """Whether a group is stated by each frame."""
        if group in ("FrameContentSequence", _UNASSIGNED) or self.per_frame == "all":
            return True
        return group in self.per_frame or any(f.get(group) != frames[0][group] for f in frames)


_UNASSIGNED = "UnassignedPerFrameConvertedAttributesSequence"


def _b_value(ds: Dataset) -> float:
    return float(ds.get("DiffusionBValue", 0.0))


def _direction(ds: Dataset) -> tuple[float, ...]:
    return tuple(ds.get("DiffusionGradientOrientation", ()))


#: A dimension by its keyword: the functional group that holds it, and what a slice has of it.
DIMENSIONS: dict[str, tuple[str, Callable[[Dataset], Hashable]]] = {
    "StackID": ("FrameContentSequence", lambda ds: str(ds.StackID)),
    "InStackPositionNumber": ("FrameContentSequence", lambda ds: int(ds.InStackPositionNumber)),
    "TemporalPositionIndex": (
        "FrameContentSequence",
        lambda ds: int(ds.get("TemporalPositionIdentifier", 1)),
    ),
    "ImagePositionPatient": (
        "PlanePositionSequence",
        lambda ds: tuple(float(x) for x in reversed(ds.ImagePositionPatient)),
    ),
    "DiffusionBValue": ("MRDiffusionSequence", _b_value),
    "DiffusionGradientOrientation": ("MRDiffusionSequence", _direction),
    "NominalCardiacTriggerDelayTime": (
        "CardiacSynchronizationSequence",
        lambda ds: float(ds.get("TriggerTime", 0.0)),
    ),
    "EffectiveEchoTime": ("MREchoSequence", lambda ds: float(ds.get("EchoTime", 0.0))),
}


def enhanced_object(slices: Sequence[Dataset], layout: Layout = Layout()) -> Dataset:
    """One enhanced CT, MR or PET object (PS3.3 A.36, A.38, A.56, A.70) with `slices` as its frames.

    What a slice says of itself (place, orientation, spacing, rescale, echo, diffusion, trigger,
    kind, time) goes into its functional groups. StackID is 1 where a slice has none;
    InStackPositionNumber counts along the normal. The same slices always give the same bytes.
    """
    order = layout.frame_order or range(len(slices))
    number_in_stacks(slices, counts_down=layout.counts_down)
    indices = dimension_indices(slices, layout.dimensions)
    frames = [_groups(slices[i], indices[i], layout) for i in order]
    ds = _head(slices, layout)
    names = dict.fromkeys(name for frame in frames for name in frame)
    per_frame = [name for name in names if layout.is_per_frame(name, frames)]
    ds.SharedFunctionalGroupsSequence = [
        _item((name, [frames[0][name]]) for name in names if name not in per_frame)
    ]
    ds.PerFrameFunctionalGroupsSequence = [
        _item((name, [frame[name]]) for name in per_frame if name in frame) for frame in frames
    ]
    _dimensions(ds, layout.dimensions)
    _pixels(ds, [get_pixels(slices[i]) for i in order], layout.transfer_syntax_uid)
    return ds


def number_in_stacks(slices: Sequence[Dataset], *, counts_down: bool = False) -> None:
    """Give each slice its StackID, where it has none, and its InStackPositionNumber."""
    heights: dict[str, set[float]] = {}
    for ds in slices:
        ds.StackID = ds.get("StackID", "1")
        heights.setdefault(ds.StackID, set()).add(_height_mm(ds))
    for ds in slices:
        levels = sorted(heights[ds.StackID], reverse=counts_down)
        ds.InStackPositionNumber = 1 + levels.index(_height_mm(ds))


def dimension_indices(slices: Sequence[Dataset], dimensions: Sequence[str]) -> list[list[int]]:
    """For each slice, its rank from 1 along each dimension."""
    columns = []
    for name in dimensions:
        found = [DIMENSIONS[name][1](ds) for ds in slices]
        ranks = {value: 1 + rank for rank, value in enumerate(sorted(set(found)))}  # type: ignore[type-var]
        columns.append([ranks[value] for value in found])
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in slices]


def _height_mm(ds: Dataset) -> float:
    cosines = np.array([float(x) for x in ds.ImageOrientationPatient])
    normal = np.cross(cosines[:3], cosines[3:])
    place = np.array([float(x) for x in ds.ImagePositionPatient])
    return round(float(place @ normal), 4)


def _item(values: Iterable[tuple[str, Any]]) -> Dataset:
    """A dataset of these elements; what is None is absent."""
    item = Dataset()
    for keyword, value in values:
        if value is not None:
            setattr(item, keyword, value)
    return item


def _part(ds: Dataset, **elements: str) -> Dataset:
    """An item whose elements come from those of a slice that are named; absent ones stay so."""
    return _item((mine, ds.get(theirs)) for mine, theirs in elements.items())


def _groups(ds: Dataset, indices: list[int], layout: Layout) -> Groups:
    """The functional groups of one frame (PS3.3 C.7.6.16.2)."""
    groups = {
        "FrameContentSequence": _frame_content(ds, indices),
        "PlanePositionSequence": _part(ds, ImagePositionPatient="ImagePositionPatient"),
        "PlaneOrientationSequence": _part(ds, ImageOrientationPatient="ImageOrientationPatient"),
        "PixelMeasuresSequence": _part(
            ds, PixelSpacing="PixelSpacing", SliceThickness="SliceThickness"
        ),
        "PixelValueTransformationSequence": _item(
            (
                ("RescaleSlope", ds.get("RescaleSlope", "1")),
                ("RescaleIntercept", ds.get("RescaleIntercept", "0")),
                ("RescaleType", ds.get("RescaleType", "US")),
            )
        ),
        "FrameVOILUTSequence": _item((("WindowCenter", "5000"), ("WindowWidth", "10000"))),
        FRAME_TYPES[ds.Modality]: _frame_type(ds),
        **fixed_groups(ds),
    }
    if ds.Modality == "MR":
        groups |= _mr_groups(ds)
    if "TriggerTime" in ds:
        groups["CardiacSynchronizationSequence"] = _item(
            (
                ("NominalCardiacTriggerDelayTime", float(ds.TriggerTime)),
                ("RRIntervalTimeNominal", 900.0),
            )
        )
    if "RealWorldValueMappingSequence" in ds:
        groups["RealWorldValueMappingSequence"] = ds.RealWorldValueMappingSequence[0]
    if layout.legacy:
        kept = ("FrameContent", "Plane", "PixelMeasures", "PixelValue", "FrameVOI", "RealWorld")
        groups = {name: group for name, group in groups.items() if name.startswith(kept)}
        groups[FRAME_TYPES[ds.Modality]] = _frame_type(ds)
        groups[_UNASSIGNED] = _unassigned(ds)
    return groups


def _frame_content(ds: Dataset, indices: list[int]) -> Dataset:
    moment = f"{ds.AcquisitionDate}{ds.AcquisitionTime}"
    # Required of PET alone (C.7.6.16.2.2).
    alone = 1 if ds.Modality == "PT" else None
    item = _item(
        (
            ("FrameAcquisitionNumber", int(ds.AcquisitionNumber)),
            ("FrameReferenceDateTime", moment),
            ("FrameAcquisitionDateTime", moment),
            ("FrameAcquisitionDuration", 50.0),
            ("StackID", ds.StackID),
            ("InStackPositionNumber", ds.InStackPositionNumber),
            ("TemporalPositionIndex", ds.get("TemporalPositionIdentifier", alone)),
            ("DimensionIndexValues", indices or None),
        )
    )
    return item


def _frame_type(ds: Dataset) -> Dataset:
    kind = list(ds.ImageType)
    item = _item(
        (
            ("FrameType", four_values(kind)),
            ("PixelPresentation", "MONOCHROME"),
            ("VolumetricProperties", "VOLUME"),
            ("VolumeBasedCalculationTechnique", "NONE"),
        )
    )
    if ds.Modality == "MR":
        item.ComplexImageComponent = ds.get("ComplexImageComponent", "MAGNITUDE")
        item.AcquisitionContrast = "DIFFUSION" if "DiffusionBValue" in ds else "UNKNOWN"
    return item


def four_values(kind: Sequence[str]) -> list[str]:
    """An image type of a single-frame object as the four values of an enhanced one."""
    flavour = "VOLUME" if len(kind) < 3 or kind[2] in ("M", "AXIAL") else kind[2]
    return [kind[0], kind[1], flavour, kind[3] if len(kind) > 3 else "NONE"]


def _mr_groups(ds: Dataset) -> Groups:
    groups = {"MREchoSequence": _item((("EffectiveEchoTime", float(ds.EchoTime)),))}
    if "DiffusionBValue" in ds:
        item = _part(
            ds, DiffusionBValue="DiffusionBValue", DiffusionDirectionality="DiffusionDirectionality"
        )
        if "DiffusionGradientOrientation" in ds:
            item.DiffusionGradientDirectionSequence = [
                _part(ds, DiffusionGradientOrientation="DiffusionGradientOrientation")
            ]
        groups["MRDiffusionSequence"] = item
    return groups


def _unassigned(ds: Dataset) -> Dataset:
    """What a legacy converted object keeps of a slice and has no group for (C.7.6.16.2.25.2)."""
    names = (
        "TemporalPositionIdentifier",
        "NumberOfTemporalPositions",
        "TriggerTime",
        "AcquisitionNumber",
        "AcquisitionDate",
        "AcquisitionTime",
        "InstanceNumber",
        "EchoTime",
        "EchoNumbers",
        "DiffusionBValue",
        "DiffusionDirectionality",
        "DiffusionGradientOrientation",
        "SliceLocation",
        "Units",
        "DecayCorrection",
        "ActualFrameDuration",
    )
    return _part(ds, **{name: name for name in names})


def _head(slices: Sequence[Dataset], layout: Layout) -> Dataset:
    """Patient, study, series, equipment and the object itself."""
    first = slices[0]
    classes = LEGACY_CLASSES if layout.legacy else SOP_CLASSES
    ds = Dataset()
    for element in first:
        if element.keyword in _COMMON:
            ds.add(element)
    ds.SOPClassUID = classes[first.Modality]
    ds.SOPInstanceUID = derived_uid("numbat enhanced", *(s.SOPInstanceUID for s in slices))
    ds.ImageType = four_values(list(first.ImageType))
    ds.NumberOfFrames = len(slices)
    describe_object(ds, slices, legacy=layout.legacy)
    ds.file_meta = FileMetaDataset()
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return ds


#: Elements that an enhanced object has at the same place as a single-frame one.
_COMMON = frozenset(
    (
        "SpecificCharacterSet",
        "StudyDate",
        "SeriesDate",
        "ContentDate",
        "StudyTime",
        "SeriesTime",
        "ContentTime",
        "AccessionNumber",
        "Modality",
        "Manufacturer",
        "ManufacturerModelName",
        "SeriesDescription",
        "PatientName",
        "PatientID",
        "PatientBirthDate",
        "PatientSex",
        "PatientWeight",
        "PatientPosition",
        "StudyInstanceUID",
        "SeriesInstanceUID",
        "FrameOfReferenceUID",
        "StudyID",
        "SeriesNumber",
        "InstanceNumber",
        "Rows",
        "Columns",
        "SamplesPerPixel",
        "PhotometricInterpretation",
        "BitsAllocated",
        "BitsStored",
        "HighBit",
        "PixelRepresentation",
    )
)


def _dimensions(ds: Dataset, dimensions: Sequence[str]) -> None:
    if not dimensions:
        return
    organization = derived_uid("numbat dimensions", ds.SOPInstanceUID, *dimensions)
    ds.DimensionOrganizationSequence = [_item((("DimensionOrganizationUID", organization),))]
    ds.DimensionIndexSequence = [
        _item(
            (
                ("DimensionIndexPointer", tag_for_keyword(name)),
                ("FunctionalGroupPointer", tag_for_keyword(DIMENSIONS[name][0])),
                ("DimensionOrganizationUID", organization),
                ("DimensionDescriptionLabel", name),
            )
        )
        for name in dimensions
    ]


def _pixels(ds: Dataset, planes: Sequence[NDArray[Any]], syntax: str) -> None:
    data = np.stack(planes).tobytes()
    ds.PixelData = data + b"\0" * (len(data) % 2)
    ds["PixelData"].VR = "OB" if ds.BitsAllocated == 8 else "OW"
    if UID(syntax).is_encapsulated:
        ds.compress(syntax, generate_instance_uid=False)
    else:
        ds.file_meta.TransferSyntaxUID = UID(syntax)
