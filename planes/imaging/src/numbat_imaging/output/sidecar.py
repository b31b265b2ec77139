"""The JSON beside a NIfTI file: acquisition in BIDS names and units, and numbat's evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version as distribution_version
from typing import TYPE_CHECKING, Any

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.output.numbers import plain
from numbat_imaging.output.timing import PARTS, clock_text
from numbat_imaging.values.suv import SuvScale
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
    return lambda ds: clock_text(elements.text(ds, keyword))


def _either(*keywords: str) -> Getter:
    def get(ds: Dataset) -> float | int | None:
        for keyword in keywords:
            values = elements.decimals(ds, keyword)
            if values is not None and len(values) == 1:
                return plain(values[0])
        return None

    return get


def _is_on(keyword: str) -> Getter:
    """Whether a technique was used: NONE is no."""

    def get(ds: Dataset) -> bool | None:
        stated = elements.text(ds, keyword)
        return None if stated is None else stated not in ("NONE", "NO")

    return get


def _pulse_sequence(ds: Dataset) -> str | None:
    stated = elements.text(ds, "PulseSequenceName")
    private = elements.private(ds, 0x0019, "GEMS_ACQU_01", 0x9C, vr="LO")
    return stated or (private if isinstance(private, str) else None)


def _sequence(keyword: str, element: int) -> Getter:
    """A term of classic MR objects; Siemens XA keeps it private in (0021,xx..) of its enhanced."""

    def get(ds: Dataset) -> str | None:
        stated: Any = elements.texts(ds, keyword)
        if not stated:
            stated = elements.private(ds, 0x0021, "SIEMENS MR SDS 01", element, vr="CS")
        return stated if isinstance(stated, str) else "\\".join(stated or ()) or None

    return get


def _dwell_s(ds: Dataset) -> float | int | None:
    """Siemens' time between samples, which it states in ns."""
    stated = elements.private(ds, 0x0019, "SIEMENS MR HEADER", 0x18, vr="IS")
    if stated is None:
        stated = elements.private(ds, 0x0021, "SIEMENS MR SDI 02", 0x42, vr="IS")
    return plain(stated * 1e-9) if isinstance(stated, int | float) and stated > 0 else None


def _is_unwarped(ds: Dataset) -> bool | None:
    """Whether Siemens corrected the image for nonlinear gradients: DIS2D or DIS3D, against ND."""
    private = elements.private(ds, 0x0021, "SIEMENS MR SDI 02", 0x75, vr="CS")
    kinds = {*elements.texts(ds, "ImageType"), *(private if isinstance(private, tuple) else ())}
    if kinds & {"DIS2D", "DIS3D"}:
        return True
    return False if "ND" in kinds else None


def _inversion_s(ds: Dataset) -> float | int | None:
    value = _either("InversionTime", "InversionTimes")(ds)
    return None if value is None else plain(value * _MS)


_MS = 1e-3

#: What names the acquisition, by BIDS name (or dcm2niix's where BIDS has none); times in seconds.
ACQUISITION: Mapping[str, Getter] = {
    "Modality": _text("Modality"),
    "Manufacturer": _text("Manufacturer"),
    "ManufacturersModelName": _text("ManufacturerModelName"),
    "SoftwareVersions": lambda ds: "\\".join(elements.texts(ds, "SoftwareVersions")) or None,
    "BodyPart": _text("BodyPartExamined"),
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
    "ImagingFrequency": _either("ImagingFrequency", "TransmitterFrequency"),
    "MRAcquisitionType": _text("MRAcquisitionType"),
    "ScanningSequence": _sequence("ScanningSequence", 0x5A),
    "SequenceVariant": _sequence("SequenceVariant", 0x5B),
    "ScanOptions": _sequence("ScanOptions", 0x5C),
    "SequenceName": _text("SequenceName"),
    "PulseSequenceName": _pulse_sequence,
    "EchoTime": _number("EchoTime", scale=_MS),
    "EchoNumber": _first("EchoNumbers"),
    "InversionTime": _inversion_s,
    "MTState": _is_on("MagnetizationTransfer"),
    "SpoilingState": _is_on("Spoiling"),
    "FlipAngle": _number("FlipAngle"),
    "EchoTrainLength": lambda ds: elements.integer(ds, "EchoTrainLength"),
    "NumberOfAverages": _number("NumberOfAverages"),
    "PixelBandwidth": _number("PixelBandwidth"),
    "PercentPhaseFOV": _number("PercentPhaseFieldOfView"),
    "PercentSampling": _number("PercentSampling"),
    "SAR": _number("SAR"),
    "ReceiveCoilName": _text("ReceiveCoilName"),
    "PhaseEncodingSteps": _either(
        "NumberOfPhaseEncodingSteps", "MRAcquisitionPhaseEncodingStepsInPlane"
    ),
    "FrequencyEncodingSteps": _either("MRAcquisitionFrequencyEncodingSteps"),
    "ParallelReductionFactorOutOfPlane": _number("ParallelReductionFactorOutOfPlane"),
    "ParallelAcquisitionTechnique": _text("ParallelAcquisitionTechnique"),
    "DwellTime": _dwell_s,
    "NonlinearGradientCorrection": _is_unwarped,
    "PartialFourierDirection": _text("PartialFourierDirection"),
    "NumberOfKSpaceTrajectories": _number("NumberOfKSpaceTrajectories"),
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
    body |= _uptake(volume)
    if identifying:
        body |= _read(IDENTIFYING, header, found)
    for name, part in PARTS.items():
        try:
            body |= part(volume, found)
        except Refusal as refusal:
            found.append(_unread(name, refusal))
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
            found.append(_unread(name, refusal))
            continue
        if value is not None:
            values[name] = value
    return values


def _unread(name: str, refusal: Refusal) -> Diagnostic:
    # What only describes the acquisition must not stand between a person and the volume.
    tag = refusal.diagnostic.fields.get("tag", "")
    return notice("IMG-1708", name=name, tag=tag, reason=refusal.diagnostic.name)


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


def _uptake(volume: Volume) -> dict[str, Any]:
    """The unit of SUV, in the place of the files': its inputs go with the value scale."""
    return {"Units": volume.scale.unit} if isinstance(volume.scale, SuvScale) else {}


def _deidentification(header: Dataset, notices: list[Diagnostic]) -> dict[str, Any]:
    found = _read({"DeidentificationMethod": _texts("DeidentificationMethod")}, header, notices)
    codes = [
        _read({name: _text(keyword) for name, keyword in _CODE.items()}, item, notices)
        for item in elements.sequence(header, "DeidentificationMethodCodeSequence")
    ]
    if codes:
        found["DeidentificationMethodCodeSequence"] = codes
    return found


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
        "slice_timing_source": volume.timing.source or None,
        "diffusion": _diffusion(volume),
        "sources": _sources(volume, source_digests or {}),
        "notices": [to_problem(diagnostic) for diagnostic in volume.notices],
    }


def _geometry(volume: Volume) -> dict[str, Any]:
    """The grid of the file, and the residuals of the slices it was made from."""
    grid, read = volume.grid, volume.as_read or volume.grid
    body: dict[str, Any] = {
        "voxel_order": _voxel_order(volume),
        "affine_lps_mm": volume.affine_lps_mm.tolist(),
        "spacing_mm": [float(value) for value in grid.spacing_mm],
        "step_lps_mm": [float(value) for value in grid.step_mm],
        "is_sheared": grid.is_sheared,
        "shear_deg": grid.shear_deg,
        "max_residual_mm": read.max_residual_mm,
        "residuals_lps_mm": read.residuals_mm.tolist(),
        "spacing_source": grid.thickness_source,
    }
    if volume.as_read is not None:
        body["as_read"] = {"affine_lps_mm": read.affine_lps_mm.tolist(), "slices": read.slices}
    return body


def _voxel_order(volume: Volume) -> str:
    if volume.axes is not None:
        return f"i, j, k towards {volume.axes}; the file keeps this order"
    order = "i along rows, j down columns, k along the normal; the file flips j"
    return order if volume.as_read is None else "the file flips j"


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
