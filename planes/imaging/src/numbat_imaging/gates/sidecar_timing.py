"""The sidecar holds what BIDS asks of timing and phase encoding, or says why it does not."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import Dataset

from numbat_gates import Check, gate
from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.output.nifti import affine_ras_mm
from numbat_imaging.output.sidecar import sidecar
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms.enhanced import enhanced_object
from numbat_imaging.phantoms.timing import SCANS, read_datasets, read_timed
from numbat_imaging.phantoms.vendor_forms import csa2
from numbat_imaging.volume import Volume, read_volumes

#: dcm2niix prints six digits, scanners round to 2.5 ms.
_RELATIVE, _ABSOLUTE = 1e-5, 2e-6

#: Keys of the reference sidecars that are not written, and why.
_NOT_WRITTEN = {
    "may identify a person, a device or a place: written with `identifying` alone": (
        "InstitutionName InstitutionAddress InstitutionalDepartmentName DeviceSerialNumber "
        "StationName StudyDescription ProcedureStepDescription ImageComments"
    ),
    "a name of its own: BodyPart is BIDS's": "BodyPartExamined",
    "guesses of dcm2niix": "BidsGuess",
    "of two images of one scan, where one is described": "EchoTime1 EchoTime2",
    "in BIDS, of one volume: the header's is of the whole scan": "AcquisitionDuration",
    "the value scale has its own object, with its source": (
        "PhilipsRescaleSlope PhilipsRescaleIntercept PhilipsScaleSlope Units "
        "UsePhilipsFloatNotDisplayScaling"
    ),
    "private details that no step of an analysis asks for": (
        "BaseResolution CoilCombinationMethod CoilString ConsistencyInfo MatrixCoilMode "
        "DerivedVendorReportedEchoSpacing ImageOrientationText ImageTypeText "
        "InternalPulseSequenceName NumberOfArms NumberOfExcitations NumberOfPointsPerArm "
        "PhaseEncodingPolarityGE PhaseResolution PrescanReuseString PulseSequenceDetails "
        "PulseSequenceType ReceiveCoilActiveElements RefLinesPE ShimSetting TablePosition "
        "TriggerDelayTime TxRefAmp WaterFatShift"
    ),
    "from private protocols, which state them in ways of their own": (
        "PartialFourier ReceiveCoilName SequenceName ProtocolName EchoNumber MTState SpoilingState "
        "ParallelReductionFactorOutOfPlane"
    ),
}

#: Keys whose text is the file's own here, and dcm2niix's reading of it there.
_OF_THE_FILE = ("Manufacturer", "ImageType", "ConversionSoftware", "ConversionSoftwareVersion")

#: Where a case differs by intent.
_EXCEPTIONS = {
    ("ge_b0map_direct_hz", "EffectiveEchoSpacing"): "no echo-planar scan reads lines in a train",
    ("ge_b0map_direct_hz", "TotalReadoutTime"): "no echo-planar scan reads lines in a train",
    ("deid_method_codes", "AcquisitionTime"): "of the first of all files; six are in the set",
    ("siemens_mosaic_vb12", "AcquisitionTime"): "rounded to six digits there",
    ("signed_12bit", "AcquisitionTime"): "rounded to six digits there",
    ("signed_12bit", "ParallelReductionFactorInPlane"): "1, in the protocol alone",
    ("ge_dwi_oblique_bvecs", "AcquisitionTime"): "00:16:0.000000 is no time",
}


@gate(
    "IMG-G35",
    phase=2,
    discharges=["IMG-R036"],
    title="The sidecar's timing and phase encoding are what the files state, or left out and said",
)
def sidecar_timing(check: Check) -> None:
    _slice_times(check)
    _repetition(check)
    _signs(check)
    _readout(check)
    _enhanced_alike(check)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R036.scans"])
    if scans is not None:
        _references(check, scans)
        _converter(check, scans)
        _renamed_alike(check, scans)
        _volumes.cache_clear()


def _slice_times(check: Check) -> None:
    """Each scan of the phantom knows when its slices were acquired."""
    for name, scan in SCANS.items():
        if scan.code is not None:
            with check.notices(scan.code, f"{name}: {scan.says}"):
                volume = read_timed(name)
        else:
            volume = read_timed(name)
        said = [d.code for d in volume.notices if d.code in ("IMG-1709", "IMG-1710", "IMG-1711")]
        check.equal(f"{name}: what is said of its times", said, [scan.code] if scan.code else [])
        written = sidecar(volume).get("SliceTiming")
        if scan.slice_times_s is None or written is None:
            check.equal(f"{name}: slice times", written, scan.slice_times_s)
            continue
        check.close(
            f"{name}: slice times",
            measured=written,
            required=scan.slice_times_s,
            atol=1e-6,
            unit="s",
        )
    pairs = sidecar(read_timed("siemens-two-clocks"))
    check.equal("slices excited at once", pairs.get("MultibandAccelerationFactor"), 2)
    start = sidecar(read_timed("siemens-midnight-undated"))["AcquisitionTime"]
    check.equal("the scan begins with its earliest slice", start, "23:59:57.800000")


def _clocked(steps_s: tuple[float, ...], **values: Any) -> Volume:
    """Volumes that begin at `steps_s` after noon, told apart by their clock."""
    slices = Phantom(shape=(4, 4, 2), volumes=len(steps_s)).slices()
    for index, ds in enumerate(slices):
        ds.AcquisitionTime = f"1200{steps_s[index // 2]:09.6f}"
        del ds.TemporalPositionIdentifier
        for keyword, value in values.items():
            setattr(ds, keyword, value)
    return read_datasets(slices)


def _repetition(check: Check) -> None:
    """BIDS allows RepetitionTime or VolumeTiming, never both."""
    even = sidecar(_clocked((1.0, 3.005, 5.0)))
    check.equal("volumes as RepetitionTime says", even.get("RepetitionTime"), 2)
    check.true("no VolumeTiming beside it", "VolumeTiming" not in even)
    with check.notices("IMG-1712", "a volume is missing"):
        gap = sidecar(_clocked((1.0, 3.0, 7.0)))
    check.equal("VolumeTiming of the gap", gap.get("VolumeTiming"), [0, 2, 6])
    check.true("no RepetitionTime beside it", "RepetitionTime" not in gap)
    check.equal("the header's value", gap.get("RepetitionTimeExcitation"), 2)
    plain = Phantom(shape=(4, 4, 2)).slices()
    for ds in plain:
        ds.Manufacturer = "GE MEDICAL SYSTEMS"
        ds.private_block(0x0043, "GEMS_PARM_01", create=True).add_new(0x7C, "FL", 0.5)
    delayed = sidecar(read_datasets(plain))
    check.equal("GE's delay after each volume counts", delayed.get("RepetitionTime"), 2.5)


# -- phase encoding ------------------------------------------------------------------------------


def _with_csa(ds: Dataset, positive: bool) -> None:
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x10, "OB", csa2({"PhaseEncodingDirectionPositive": [f"{int(positive)}"]}))


def _with_xa(ds: Dataset, positive: bool) -> None:
    block = ds.private_block(0x0021, "SIEMENS MR SDI 02", create=True)
    block.add_new(0x1C, "IS", f"{int(positive)}")


def _with_order(ds: Dataset, positive: bool) -> None:
    ds.RectilinearPhaseEncodeReordering = "REVERSE_LINEAR" if positive else "LINEAR"


def _with_united(ds: Dataset, positive: bool) -> None:
    block = ds.private_block(0x0065, "Image Private Header", create=True)
    block.add_new(0x58, "IS", f"{int(not positive)}")


def _with_nothing(ds: Dataset, positive: bool) -> None:
    """Philips and Canon do not state a sign."""


_SIGNS: dict[str, tuple[str, Callable[[Dataset, bool], None]]] = {
    "Siemens CSA": ("SIEMENS", _with_csa),
    "Siemens XA": ("Siemens Healthineers", _with_xa),
    "GE": ("GE MEDICAL SYSTEMS", _with_order),
    "United Imaging": ("UIH", _with_united),
}


def _encoded(maker: str, put: Callable[[Dataset, bool], None], axis: str, positive: bool) -> Volume:
    slices = Phantom(shape=(6, 4, 3), orientation=(0.6, 0.8, 0, 0, 0, -1)).slices()
    for ds in slices:
        ds.Manufacturer, ds.InPlanePhaseEncodingDirection = maker, axis
        ds.ScanningSequence = "EP"
        put(ds, positive)
    return read_datasets(slices)


def _signs(check: Check) -> None:
    """Read through the affine as written, the sign gives the direction of the DICOM image."""
    for name, (maker, put) in _SIGNS.items():
        for axis in ("ROW", "COL"):
            for positive in (True, False):
                volume = _encoded(maker, put, axis, positive)
                cosines = np.asarray(volume.header.ImageOrientationPatient, float)
                along = (cosines[:3] if axis == "ROW" else cosines[3:]) * (1 if positive else -1)
                written = sidecar(volume).get("PhaseEncodingDirection", "?")
                column = affine_ras_mm(volume)[:3, "ij".find(written[0])]
                column = column * (-1 if written.endswith("-") else 1)
                check.close(
                    f"{name}, {axis}, {'+' if positive else '-'}: direction in the patient",
                    measured=column / np.linalg.norm(column),
                    required=LPS_TO_RAS[:3, :3] @ along,
                    atol=1e-6,
                )
    with check.notices("IMG-1713", "an echo-planar scan whose sign no element states"):
        body = sidecar(_encoded("Philips", _with_nothing, "COL", True))
    check.equal("its axis", body.get("PhaseEncodingAxis"), "j")
    check.true("no direction", "PhaseEncodingDirection" not in body)
    volume = _encoded("SIEMENS", _with_csa, "COL", True)
    volume.header.MRAcquisitionType = "3D"
    body = sidecar(volume)
    check.true(
        "nothing of a 3D scan", not {"PhaseEncodingDirection", "PhaseEncodingAxis"} & {*body}
    )


def _readout(check: Check) -> None:
    """Worked by hand from the two formulas, for an image of 4 lines of which GE acquired 3."""
    siemens = _encoded("SIEMENS", _with_csa, "COL", True)
    block = siemens.header.private_block(0x0019, "SIEMENS MR HEADER", create=True)
    block.add_new(0x28, "FD", 25.0)
    body = sidecar(siemens)
    seconds = [body.get("EffectiveEchoSpacing", 0.0), body.get("TotalReadoutTime", 0.0)]
    check.close("Siemens", measured=seconds, required=[0.01, 0.03], atol=1e-12, unit="s")
    for factor, options, read in ((1.0, "EPI_GEMS", 8), (2.0, "EPI_GEMS", 4), (1.5, "PFF", 8)):
        ge = _encoded("GE MEDICAL SYSTEMS", _with_order, "COL", True)
        ge.header.AcquisitionMatrix = [8, 0, 0, 8]
        ge.header.ScanOptions = options
        block = ge.header.private_block(0x0043, "GEMS_PARM_01", create=True)
        block.add_new(0x2C, "SS", 500)
        block.add_new(0x83, "DS", [f"{1 / factor:.6f}", "1"])
        body = sidecar(ge)
        required = (read - 1) * 500e-6
        total = body.get("TotalReadoutTime", 0.0)
        name = f"GE, accelerated {factor} times, {options}"
        check.close(name, measured=total, required=required, atol=1e-12, unit="s")
        check.close(
            f"{name}: spacing of the lines of the image",
            measured=body.get("EffectiveEchoSpacing", 0.0),
            required=required / 3,
            atol=1e-12,
            unit="s",
        )


def _enhanced_alike(check: Check) -> None:
    """An enhanced object and its single-frame twin describe one acquisition."""
    slices = Phantom(shape=(4, 4, 3), volumes=2).slices()
    for ds in slices:
        ds.InPlanePhaseEncodingDirection = "COL"
    classic = sidecar(read_datasets(slices))
    whole = enhanced_object(slices)
    enhanced = sidecar(read_datasets([whole]))
    for key in ("RepetitionTime", "EchoTime", "FlipAngle", "ReconMatrixPE", "AcquisitionTime"):
        if key in classic:
            check.equal(f"enhanced and single-frame: {key}", enhanced.get(key), classic[key])


# -- real scans ----------------------------------------------------------------------------------


def _references(check: Check, scans: Path) -> None:
    """Every key that the suites' own sidecars and ours both have is the same."""
    unwritten = {key for keys in _NOT_WRITTEN.values() for key in keys.split()}
    for folder in sorted(path.parent for path in scans.glob("*/ref")):
        texts = sorted((folder / "ref").glob("*.json"))
        volumes = _volumes(folder)
        check.equal(f"{folder.name}: sidecars", len(volumes), len(texts))
        for text, volume in zip(texts, volumes, strict=False):
            reference = json.loads(check.data(text).read_text())
            body = sidecar(volume)
            wrong, missing = [], []
            for key, value in reference.items():
                if key in _OF_THE_FILE or (folder.name, key) in _EXCEPTIONS:
                    continue
                if key not in body:
                    missing += [key] if key not in unwritten else []
                elif not _same(value, body[key]):
                    wrong.append(f"{key}: {value} there, {body[key]} here")
            check.equal(f"{folder.name}/{text.name}: keys that differ", wrong, [])
            check.equal(f"{folder.name}/{text.name}: keys that are missing", missing, [])


#: Suites whose files are each a scan of their own: one image in nine encodings, and in three.
_ONE_FILE_EACH = ("transfer_syntax_9way", "signed_12bit")
_SIGNED = ("12bitUnsigned.dcm", "12bitUnsigned_0x0F0F.dcm", "12bitSigned_0x0F0F.dcm")


@cache
def _volumes(folder: Path) -> list[Volume]:
    """The volumes of a suite, in the order of its sidecars; read once for all comparisons."""
    if folder.name not in _ONE_FILE_EACH:
        return read_volumes(folder / "dicom")
    names: tuple[str, ...] = _SIGNED
    if folder.name == "transfer_syntax_9way":
        names = tuple(f"{path.stem}.dcm" for path in sorted((folder / "ref").glob("*.json")))
    return [read_volumes(folder / "dicom" / name)[0] for name in names]


def _same(there: Any, here: Any) -> bool:
    if isinstance(there, list) and isinstance(here, list):
        return len(there) == len(here) and all(map(_same, there, here))
    if isinstance(there, dict) and isinstance(here, dict):
        return there == here
    if isinstance(there, bool) or isinstance(here, bool):
        return there is here
    if isinstance(there, int | float) and isinstance(here, int | float):
        return math.isclose(there, here, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(there == here)


_TIMES = (
    "RepetitionTime",
    "EchoTime",
    "SliceTiming",
    "PhaseEncodingDirection",
    "EffectiveEchoSpacing",
    "TotalReadoutTime",
    "ReconMatrixPE",
    "MultibandAccelerationFactor",
)

#: Where today's dcm2niix says more, or other, than the files.
_CONVERTER = {
    "ge_b0map_direct_hz": ("EffectiveEchoSpacing", "TotalReadoutTime"),
    # It counts lines that interpolation added as if they had been read, and guesses an order.
    "ge_dwi_oblique_bvecs": ("EffectiveEchoSpacing", "TotalReadoutTime", "SliceTiming"),
}


def _converter(check: Check, scans: Path) -> None:
    """Timing as dcm2niix writes it today, also for suites without a sidecar of their own."""
    for text in sorted(scans.glob("*/truth_dcm2niix.json")):
        name = text.parent.name
        if name in _ONE_FILE_EACH:
            continue
        outputs = json.loads(check.data(text).read_text())["outputs"]
        volumes = _volumes(text.parent)
        wrong = []
        for (_, output), volume in zip(sorted(outputs.items()), volumes, strict=False):
            body = sidecar(volume)
            for key in _TIMES:
                there = output.get("bids", {}).get(key)
                if there is None or key in _CONVERTER.get(name, ()):
                    continue
                if key == "SliceTiming" and _runs_backward(volume, output["affine"]):
                    there = there[::-1]
                if not _same(there, body.get(key)):
                    wrong.append(f"{key}: {there} there, {body.get(key)} here")
        check.equal(f"{name}: timing that differs from dcm2niix's", wrong, [])


def _runs_backward(volume: Volume, affine: list[list[float]]) -> bool:
    """Whether dcm2niix stored the slices the other way round."""
    theirs = [row[2] for row in affine[:3]]
    return float(np.dot(theirs, affine_ras_mm(volume)[:3, 2])) < 0


def _renamed_alike(check: Check, scans: Path) -> None:
    """Agfa moved private blocks to other numbers; the sidecar is that of the plain twin."""
    bodies = []
    for name in ("agfa_plain_twin", "agfa_private_tag_renaming"):
        body = sidecar(_volumes(check.data(scans / name))[0])
        body.pop("numbat")
        bodies.append(body)
    check.equal("keys of the twins that differ", _differing(*bodies), [])
    codes = sidecar(_volumes(scans / "deid_method_codes")[0])
    reference = next((scans / "deid_method_codes" / "ref").glob("*.json"))
    check.equal(
        "codes of de-identification",
        codes.get("DeidentificationMethodCodeSequence"),
        json.loads(reference.read_text())["DeidentificationMethodCodeSequence"],
    )


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
