"""The sidecar: BIDS names and units, evidence, and no patient unless asked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydicom import Dataset

from numbat_imaging import read_series
from numbat_imaging.output.numbers import plain
from numbat_imaging.output.sidecar import IDENTIFYING, sidecar
from numbat_imaging.phantoms import FAULTS, Phantom, write_datasets
from numbat_imaging.phantoms.geometry_faults import with_text
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.volume import Volume

MakeVolume = Callable[..., Volume]
PLANTED = {
    "PatientName": "Planted^Name",
    "PatientID": "PLANTED-ID",
    "PatientBirthDate": "19131107",
    "PatientSex": "O",
    "PatientAge": "099Y",
    "PatientWeight": "71.375",
    "PatientSize": "1.8125",
    "AccessionNumber": "PLANTED-ACC",
    "StudyID": "PLANTED-STUDY",
    "StudyDescription": "planted study text",
    "ImageComments": "planted comment",
    "InstitutionName": "Planted Hospital",
    "InstitutionAddress": "Planted Street",
    "StationName": "PLANTEDSTN",
    "DeviceSerialNumber": "PLANTED-SERIAL",
    "OperatorsName": "Planted^Operator",
    "ReferringPhysicianName": "Planted^Referrer",
    "AcquisitionDate": "19131108",
    "AcquisitionDateTime": "19131108101112",
    "OtherPatientIDs": "PLANTED-OTHER",
    "EthnicGroup": "PLANTEDGROUP",
    "PatientComments": "planted patient comment",
}


def _volume(phantom: Phantom, folder: Path, **values: object) -> Volume:
    slices = phantom.slices()
    for ds in slices:
        for keyword, value in values.items():
            setattr(ds, keyword, value)
    write_datasets(slices, folder)
    return read_series(folder)


def test_mr_names_and_units(tmp_path: Path) -> None:
    volume = _volume(
        Phantom(shape=(4, 4, 2)),
        tmp_path,
        InversionTime="450",
        EchoTime="2.46",
        PixelBandwidth="390",
        SpacingBetweenSlices="2",
        SoftwareVersions=["syngo", "MR E11"],
        InPlanePhaseEncodingDirection="ROW",
    )
    body = sidecar(volume)
    expected = {
        "Modality": "MR",
        "Manufacturer": "NUMBAT",
        "ManufacturersModelName": "phantom",
        "MagneticFieldStrength": 3,
        "EchoTime": 0.00246,
        "RepetitionTime": 2,
        "InversionTime": 0.45,
        "FlipAngle": 77,
        "PixelBandwidth": 390,
        "ImageType": ["ORIGINAL", "PRIMARY", "M"],
        "SeriesNumber": 5,
        "SeriesDescription": "phantom",
        "ProtocolName": "phantom protocol",
        "PatientPosition": "HFS",
        "SliceThickness": 2,
        "SpacingBetweenSlices": 2,
        "ImageOrientationPatientDICOM": [1, 0, 0, 0, 1, 0],
        "InPlanePhaseEncodingDirectionDICOM": "ROW",
        "AcquisitionTime": "10:11:12.000000",
        "SoftwareVersions": "syngo\\MR E11",
        "ConversionSoftware": "numbat",
    }
    assert {name: body.get(name) for name in expected} == expected
    assert body["numbat"]["series_instance_uid"] == volume.key.series_instance_uid


def test_ct_and_pet_names_and_units(tmp_path: Path) -> None:
    ct = Phantom(shape=(4, 4, 2), modality="CT", slope=1.0, intercept=-1024.0)
    body = sidecar(_volume(ct, tmp_path / "ct"))
    assert (body["KVP"], body["XRayTubeCurrent"], body["ExposureTime"]) == (120, 200, 0.5)
    assert body["ConvolutionKernel"] == "H30s"
    assert "EchoTime" not in body
    assert body["numbat"]["value_scale"]["intercept"] == -1024.0
    assert body["numbat"]["value_scale"]["unit"] == "HU"

    body = sidecar(_volume(Phantom(shape=(4, 4, 2), modality="PT"), tmp_path / "pt"))
    expected = {
        "Units": "BQML",
        "DecayCorrection": "START",
        "CorrectedImage": ["DECY", "ATTN"],
        "FrameDuration": 120,
        "Radiopharmaceutical": "Fluorodeoxyglucose",
        "RadiopharmaceuticalStartTime": "09:15:00.000000",
        "RadionuclideTotalDose": 370000000,
        "RadionuclideHalfLife": 6586.2,
    }
    assert {name: body.get(name) for name in expected} == expected


def test_no_patient_device_or_place_unless_asked(tmp_path: Path) -> None:
    volume = _volume(Phantom(shape=(4, 4, 2)), tmp_path, **PLANTED)
    quiet = json.dumps(sidecar(volume))
    told = sidecar(volume, identifying=True)
    for keyword, value in PLANTED.items():
        if keyword != "PatientSex":
            assert value not in quiet
        if keyword in IDENTIFYING:
            assert str(told[keyword]) == value
    assert not set(IDENTIFYING) & set(json.loads(quiet))


def test_deidentification_is_told(tmp_path: Path) -> None:
    code = Dataset()
    code.CodeValue, code.CodingSchemeDesignator = "113100", "DCM"
    code.CodeMeaning = "Basic Application Confidentiality Profile"
    volume = _volume(
        Phantom(shape=(4, 4, 2)),
        tmp_path,
        DeidentificationMethod=["first tool", "second tool"],
        DeidentificationMethodCodeSequence=[code],
    )
    body = sidecar(volume)
    assert body["DeidentificationMethod"] == ["first tool", "second tool"]
    assert body["DeidentificationMethodCodeSequence"] == [
        {
            "CodeValue": "113100",
            "CodingSchemeDesignator": "DCM",
            "CodeMeaning": "Basic Application Confidentiality Profile",
        }
    ]


@pytest.mark.parametrize(
    ("keyword", "text"), [("FlipAngle", "steep"), ("RepetitionTime", "NaN"), ("SAR", "0,1")]
)
def test_an_unreadable_description_is_left_out_and_told(
    tmp_path: Path, keyword: str, text: str
) -> None:
    slices = Phantom(shape=(4, 4, 3)).slices()
    for ds in slices:
        ds.SAR = "0.1"
    write_datasets(with_text(keyword, text)(slices), tmp_path)
    body = sidecar(read_series(tmp_path))
    assert keyword not in body
    (problem,) = body["numbat"]["notices"]
    assert problem["code"] == "IMG-1708"
    assert problem["fields"]["name"] == keyword


def test_geometry_is_told_slice_by_slice(tmp_path: Path) -> None:
    FAULTS["jitter-0.03"].write(tmp_path)
    volume = read_series(tmp_path)
    geometry = sidecar(volume)["numbat"]["geometry"]
    residuals = geometry["residuals_lps_mm"]
    assert len(residuals) == 100
    assert abs(residuals[0][2]) == pytest.approx(0.03, abs=0.002)
    assert geometry["max_residual_mm"] == pytest.approx(0.03, abs=0.002)
    assert geometry["affine_lps_mm"] == volume.affine_lps_mm.tolist()


def test_times_of_volumes(make_volume: MakeVolume) -> None:
    import numpy as np

    voxels = np.zeros((2, 2, 2, 3), np.int16)
    axis = FourthAxis("time", (36672.5, 36675.0, 36678.0), "s")
    mr, pet = Dataset(), Dataset()
    mr.Modality, pet.Modality = "MR", "PT"
    body = sidecar(make_volume(voxels, fourth_axis=axis, header=mr))
    assert body["VolumeTiming"] == [0, 2.5, 5.5]
    assert body["numbat"]["fourth_axis"]["values"] == [36672.5, 36675.0, 36678.0]
    body = sidecar(make_volume(voxels, fourth_axis=axis, header=pet))
    assert body["FrameTimesStart"] == [0, 2.5, 5.5]
    assert "VolumeTiming" not in body


@pytest.mark.parametrize(
    ("value", "written"), [(2.46e-3, 0.00246), (30 * 1e-3, 0.03), (3.0, 3), (1 / 3, 0.333333333333)]
)
def test_numbers_without_the_noise_of_units(value: float, written: float) -> None:
    assert plain(value) == written
    assert type(plain(value)) is type(written)


def _reference(name: str) -> tuple[Path, dict[str, Any]]:
    root = os.environ.get("NUMBAT_CORPUS")
    case = Path(root or "/nowhere") / "imaging" / "dcm2niix_qa" / name
    if not case.is_dir():
        pytest.skip(f"the corpus case {name} is not here (NUMBAT_CORPUS)")
    (path,) = (case / "ref").glob("*.json")
    return case / "dicom", json.loads(path.read_text())


#: Names of the reference that its converter writes in its own way, or takes from private elements.
OWN_WAY = {
    "Manufacturer",
    "ConversionSoftware",
    "ConversionSoftwareVersion",
    "ProcedureStepDescription",
    "SpacingBetweenSlices",
}


@pytest.mark.parametrize("name", ["deid_method_codes", "ge_dwi_oblique_bvecs", "ge_rtia_timer"])
def test_values_agree_with_a_reference_converter(name: str) -> None:
    folder, reference = _reference(name)
    body = sidecar(read_series(folder), identifying=True)
    shared = [key for key in body if key in reference and key not in OWN_WAY]
    assert len(shared) >= 20
    for key in shared:
        ours, theirs = body[key], reference[key]
        if isinstance(ours, int | float):
            assert ours == pytest.approx(theirs, rel=1e-5), key
        elif key == "ImageOrientationPatientDICOM":
            assert ours == pytest.approx(theirs, abs=1e-5)
        elif key == "AcquisitionTime":
            assert ours.split(":")[:2] == theirs.split(":")[:2]
        elif key == "ImageType":
            # The converter adds words of its own.
            assert theirs[: len(ours)] == ours
        else:
            assert ours == theirs, key
