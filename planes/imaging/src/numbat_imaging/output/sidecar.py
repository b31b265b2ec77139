"""The JSON beside a NIfTI file: acquisition in BIDS names and units, and numbat's evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import version as distribution_version
from typing import TYPE_CHECKING, Any

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.output.nifti import volume_interval_s
from numbat_registries import Diagnostic, Refusal, notice
from numbat_registries.rendering import to_problem

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

Getter = Callable[[Dataset], Any]


def _text(keyword: str) -> Getter:
    return lambda ds: elements.text(ds, keyword)


def _texts(keyword: str) -> Getter:
    return lambda ds: list(elements.texts(ds, keyword)) or None


def _number(keyword: str, *, scale: float = 1.0) -> Getter:
    def get(ds: Dataset) -> float | int | None:
        value = elements.decimal(ds, keyword)
        return None if value is None else plain(value * scale)

    return get


def _numbers(keyword: str, *, scale: float = 1.0) -> Getter:
    def get(ds: Dataset) -> list[float | int] | None:
        values = elements.decimals(ds, keyword)
        return None if values is None else [plain(value * scale) for value in values]

    return get


def _first(keyword: str) -> Getter:
    def get(ds: Dataset) -> float | int | None:
        values = elements.decimals(ds, keyword)
        return plain(values[0]) if values else None

    return get


def _clock(keyword: str) -> Getter:
    def get(ds: Dataset) -> str | None:
        found = re.fullmatch(
            r"(\d\d)(\d\d)(\d\d)(?:\.(\d{1,6}))?", elements.text(ds, keyword) or ""
        )
        if found is None:
            return None
        hours, minutes, seconds, fraction = found.groups()
        return f"{hours}:{minutes}:{seconds}.{(fraction or '0'):0<6}"

    return get


_MS = 1e-3

#: What names the acquisition, by BIDS name (or dcm2niix's where BIDS has none); times in seconds.
ACQUISITION: Mapping[str, Getter] = {
    "Modality": _text("Modality"),
    "Manufacturer": _text("Manufacturer"),
    "ManufacturersModelName": _text("ManufacturerModelName"),
    "SoftwareVersions": lambda ds: "\\".join(elements.texts(ds, "SoftwareVersions")) or None,
    "BodyPartExamined": _text("BodyPartExamined"),
    "PatientPosition": _text("PatientPosition"),
    "ImageType": _texts("ImageType"),
    "SeriesNumber": lambda ds: elements.integer(ds, "SeriesNumber"),
    "SeriesDescription": _text("SeriesDescription"),
    "ProtocolName": _text("ProtocolName"),
    "AcquisitionNumber": lambda ds: elements.integer(ds, "AcquisitionNumber"),
    "AcquisitionTime": _clock("AcquisitionTime"),
    "SliceThickness": _number("SliceThickness"),
    "SpacingBetweenSlices": _number("SpacingBetweenSlices"),
    "ImageOrientationPatientDICOM": _numbers("ImageOrientationPatient"),
    "LossyImageCompression": _text("LossyImageCompression"),
}

MR: Mapping[str, Getter] = {
    "MagneticFieldStrength": _number("MagneticFieldStrength"),
    "ImagingFrequency": _number("ImagingFrequency"),
    "MRAcquisitionType": _text("MRAcquisitionType"),
    "ScanningSequence": lambda ds: "\\".join(elements.texts(ds, "ScanningSequence")) or None,
    "SequenceVariant": lambda ds: "\\".join(elements.texts(ds, "SequenceVariant")) or None,
    "ScanOptions": lambda ds: "\\".join(elements.texts(ds, "ScanOptions")) or None,
    "SequenceName": _text("SequenceName"),
    "EchoTime": _number("EchoTime", scale=_MS),
    "EchoNumber": _first("EchoNumbers"),
    "RepetitionTime": _number("RepetitionTime", scale=_MS),
    "InversionTime": _number("InversionTime", scale=_MS),
    "FlipAngle": _number("FlipAngle"),
    "EchoTrainLength": lambda ds: elements.integer(ds, "EchoTrainLength"),
    "NumberOfAverages": _number("NumberOfAverages"),
    "PixelBandwidth": _number("PixelBandwidth"),
    "PercentPhaseFOV": _number("PercentPhaseFieldOfView"),
    "PercentSampling": _number("PercentSampling"),
    "SAR": _number("SAR"),
    "ReceiveCoilName": _text("ReceiveCoilName"),
    "InPlanePhaseEncodingDirectionDICOM": _text("InPlanePhaseEncodingDirection"),
}

CT: Mapping[str, Getter] = {
    "KVP": _number("KVP"),
    "XRayTubeCurrent": _number("XRayTubeCurrent"),
    "XRayExposure": _number("Exposure"),
    "ExposureTime": _number("ExposureTime", scale=_MS),
    "ConvolutionKernel": lambda ds: "\\".join(elements.texts(ds, "ConvolutionKernel")) or None,
    "GantryDetectorTilt": _number("GantryDetectorTilt"),
    "ReconstructionDiameter": _number("ReconstructionDiameter"),
    "SpiralPitchFactor": _number("SpiralPitchFactor"),
}

PET: Mapping[str, Getter] = {
    "Units": _text("Units"),
    "DecayCorrection": _text("DecayCorrection"),
    "AttenuationCorrection": _text("AttenuationCorrectionMethod"),
    "ScatterCorrectionMethod": _text("ScatterCorrectionMethod"),
    "RandomsCorrectionMethod": _text("RandomsCorrectionMethod"),
    "ReconstructionMethod": _text("ReconstructionMethod"),
    "ConvolutionKernel": lambda ds: "\\".join(elements.texts(ds, "ConvolutionKernel")) or None,
    "CorrectedImage": _texts("CorrectedImage"),
    "CollimatorType": _text("CollimatorType"),
    "SeriesType": _texts("SeriesType"),
    "FrameDuration": _number("ActualFrameDuration", scale=_MS),
    "FrameReferenceTime": _number("FrameReferenceTime", scale=_MS),
    "DecayFactor": _number("DecayFactor"),
}

#: Of the first item of RadiopharmaceuticalInformationSequence; activities in Bq, half-life in s.
RADIOPHARMACEUTICAL: Mapping[str, Getter] = {
    "Radiopharmaceutical": _text("Radiopharmaceutical"),
    "RadionuclidePositronFraction": _number("RadionuclidePositronFraction"),
    "RadionuclideTotalDose": _number("RadionuclideTotalDose"),
    "RadionuclideHalfLife": _number("RadionuclideHalfLife"),
    "RadiopharmaceuticalStartTime": _clock("RadiopharmaceuticalStartTime"),
}

#: What may identify a person, a device or a place: written only when the caller asks.
IDENTIFYING: Mapping[str, Getter] = {
    "PatientName": _text("PatientName"),
    "PatientID": _text("PatientID"),
    "PatientBirthDate": _text("PatientBirthDate"),
    "PatientSex": _text("PatientSex"),
    "PatientAge": _text("PatientAge"),
    "PatientSize": _number("PatientSize"),
    "PatientWeight": _number("PatientWeight"),
    "AccessionNumber": _text("AccessionNumber"),
    "StudyID": _text("StudyID"),
    "StudyDescription": _text("StudyDescription"),
    "ProcedureStepDescription": _text("PerformedProcedureStepDescription"),
    "AcquisitionDate": _text("AcquisitionDate"),
    "AcquisitionDateTime": _text("AcquisitionDateTime"),
    "ImageComments": _text("ImageComments"),
    "InstitutionName": _text("InstitutionName"),
    "InstitutionAddress": _text("InstitutionAddress"),
    "InstitutionalDepartmentName": _text("InstitutionalDepartmentName"),
    "StationName": _text("StationName"),
    "DeviceSerialNumber": _text("DeviceSerialNumber"),
    "OperatorsName": _text("OperatorsName"),
    "ReferringPhysicianName": _text("ReferringPhysicianName"),
    "StudyInstanceUID": _text("StudyInstanceUID"),
    "FrameOfReferenceUID": _text("FrameOfReferenceUID"),
}

_CODE = {
    "CodeValue": "CodeValue",
    "CodingSchemeDesignator": "CodingSchemeDesignator",
    "CodingSchemeVersion": "CodingSchemeVersion",
    "CodeMeaning": "CodeMeaning",
}


def plain(value: float) -> float | int:
    """A number without the noise of a change of unit, and without ".0"."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def sidecar(
    volume: Volume,
    *,
    identifying: bool = False,
    source_digests: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The content of the JSON sidecar of one volume.

    Times are in seconds, lengths in mm, angles in degrees, as BIDS has them. The "numbat" object
    holds the value scale, the geometry with every slice's residual, the fourth axis, the source
    objects and the notices. Names, identifiers, dates and places are left out unless `identifying`.
    `source_digests`: SHA-256 of the source files by SOPInstanceUID. An element that cannot be read
    is left out, and IMG-1708 says so among the notices.
    """
    header = volume.header
    found: list[Diagnostic] = []
    body = {**_read(ACQUISITION, header, found), **_by_modality(header, found)}
    body |= _deidentification(header, found)
    if identifying:
        body |= _read(IDENTIFYING, header, found)
    body |= _timing(volume)
    body["ConversionSoftware"] = "numbat"
    body["ConversionSoftwareVersion"] = distribution_version("numbat-imaging")
    body["numbat"] = evidence(volume, source_digests=source_digests)
    body["numbat"]["notices"] += [to_problem(diagnostic) for diagnostic in found]
    return body


def _read(table: Mapping[str, Getter], ds: Dataset, found: list[Diagnostic]) -> dict[str, Any]:
    values = {}
    for name, get in table.items():
        try:
            value = get(ds)
        except Refusal as refusal:
            # What only describes the acquisition must not stand between a person and the volume.
            fields = refusal.diagnostic.fields
            found.append(
                notice(
                    "IMG-1708", name=name, tag=fields.get("tag", ""), reason=refusal.diagnostic.name
                )
            )
            continue
        if value is not None:
            values[name] = value
    return values


def _by_modality(header: Dataset, notices: list[Diagnostic]) -> dict[str, Any]:
    modality = elements.text(header, "Modality")
    if modality == "MR":
        return _read(MR, header, notices)
    if modality == "CT":
        return _read(CT, header, notices)
    if modality != "PT":
        return {}
    found = _read(PET, header, notices)
    for item in elements.sequence(header, "RadiopharmaceuticalInformationSequence")[:1]:
        found |= _read(RADIOPHARMACEUTICAL, item, notices)
        for code in elements.sequence(item, "RadionuclideCodeSequence")[:1]:
            found |= _read({"Radionuclide": _text("CodeMeaning")}, code, notices)
    return found


def _deidentification(header: Dataset, notices: list[Diagnostic]) -> dict[str, Any]:
    found = _read({"DeidentificationMethod": _texts("DeidentificationMethod")}, header, notices)
    codes = [
        _read({name: _text(keyword) for name, keyword in _CODE.items()}, item, notices)
        for item in elements.sequence(header, "DeidentificationMethodCodeSequence")
    ]
    if codes:
        found["DeidentificationMethodCodeSequence"] = codes
    return found


def _timing(volume: Volume) -> dict[str, Any]:
    """BIDS asks for the time from volume to volume, which may differ from the header's TR."""
    axis, interval_s = volume.fourth_axis, volume_interval_s(volume)
    if axis is None or interval_s is None or axis.unit not in ("s", "ms"):
        return {}
    scale = _MS if axis.unit == "ms" else 1.0
    starts = [plain((value - axis.values[0]) * scale) for value in axis.values]
    if elements.text(volume.header, "Modality") == "PT":
        return {"FrameTimesStart": starts}
    return {"VolumeTiming": starts}


def evidence(volume: Volume, *, source_digests: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What vouches for a volume, as JSON-safe data: scale, geometry, axis, sources, notices."""
    axis = volume.fourth_axis
    return {
        "series_instance_uid": volume.key.series_instance_uid,
        "value_scale": volume.scale.to_dict(),
        "padding": None if volume.padding is None else list(volume.padding),
        "geometry": _geometry(volume),
        "fourth_axis": None
        if axis is None
        else {"name": axis.name, "unit": axis.unit, "values": list(axis.values)},
        "diffusion": _diffusion(volume),
        "sources": _sources(volume, source_digests or {}),
        "notices": [to_problem(diagnostic) for diagnostic in volume.notices],
    }


def _geometry(volume: Volume) -> dict[str, Any]:
    grid = volume.grid
    return {
        "voxel_order": "i along rows, j down columns, k along the normal; the file flips j",
        "affine_lps_mm": volume.affine_lps_mm.tolist(),
        "spacing_mm": [float(value) for value in grid.spacing_mm],
        "step_lps_mm": [float(value) for value in grid.step_mm],
        "is_sheared": grid.is_sheared,
        "shear_deg": grid.shear_deg,
        "max_residual_mm": grid.max_residual_mm,
        "residuals_lps_mm": grid.residuals_mm.tolist(),
        "spacing_source": grid.thickness_source,
    }


def _diffusion(volume: Volume) -> list[dict[str, Any]] | None:
    if volume.diffusion is None:
        return None
    return [
        {
            "b_value_s_mm2": gradient.b_value_s_mm2,
            "direction_lps": None
            if gradient.direction_lps is None
            else list(gradient.direction_lps),
        }
        for gradient in volume.diffusion
    ]


def _sources(volume: Volume, digests: Mapping[str, str]) -> dict[str, Any]:
    slices = []
    for source in volume.sources:
        entry: dict[str, Any] = {
            "sop_instance_uid": source.sop_instance_uid,
            "k": source.k,
            "t": source.t,
        }
        if source.sop_instance_uid in digests:
            entry["sha256"] = digests[source.sop_instance_uid]
        slices.append(entry)
    return {"count": len(slices), "slices": slices}
