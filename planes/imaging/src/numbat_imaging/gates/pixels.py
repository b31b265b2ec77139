"""Voxels are the stored values exactly, and their scale travels with them."""

import csv
import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import FAULTS, Phantom
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.series.instance import Instance, instances_from_header
from numbat_imaging.values.pixels import read_into, stored_dtype
from numbat_imaging.volume import Volume, read_series
from numbat_registries import Refusal

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"

#: One image in several encodings, all in pydicom's wheel: (truth, twins that must equal it).
_TWINS = (
    (
        "MR_small.dcm",
        (
            "MR_small_RLE.dcm",
            "MR_small_implicit.dcm",
            "MR_small_bigendian.dcm",
            "MR_small_expb.dcm",
        ),
    ),
    ("SC_rgb_small_odd.dcm", ("SC_rgb_small_odd_big_endian.dcm",)),
)


@gate(
    "IMG-G07",
    phase=1,
    discharges=["IMG-R011", "IMG-R012"],
    title="Voxels are the stored values, and their scale is known",
)
def pixels(check: Check) -> None:
    _encodings(check)
    _bits(check)
    _scales(check)
    _refusals(check)
    _other_makers_encodings(check)


def decode(path: Path) -> NDArray[Any]:
    """The stored pixels of one file, (rows, columns)."""
    header = read_header(FileRef(str(path)))
    if header is None:
        raise AssertionError(f"{path.name} was not taken for DICOM")
    instance: Instance = instances_from_header(header)[0]
    plane = np.empty((instance.pixels.rows, instance.pixels.columns), stored_dtype(instance.pixels))
    read_into(instance, plane)
    return plane


def _encodings(check: Check) -> None:
    for truth_name, twins in _TWINS:
        truth = decode(check.data(_BUNDLED / truth_name))
        for twin in twins:
            check.equal(f"{twin} equals {truth_name}", decode(check.data(_BUNDLED / twin)), truth)
    for dtype, syntax in (
        ("int16", "1.2.840.10008.1.2"),
        ("uint16", "1.2.840.10008.1.2.2"),
        ("uint8", "1.2.840.10008.1.2.1"),
        ("int16", "1.2.840.10008.1.2.5"),
    ):
        phantom = Phantom(shape=(7, 5, 3), dtype=dtype, transfer_syntax_uid=syntax)
        check.equal(f"{dtype} in {syntax}", _read(phantom).voxels, phantom.truth_voxels())


def _read(phantom: Phantom) -> Volume:
    with TemporaryDirectory() as folder:
        phantom.write(folder)
        return read_series(folder)


def _bits(check: Check) -> None:
    volume = read_fault("overlay-in-high-bits")
    truth = np.stack([Phantom(bits_stored=12).plane(k) for k in range(10)])
    check.equal(
        "an overlay above HighBit is not in the values", volume.voxels, truth.transpose(2, 1, 0)
    )
    signed = Phantom(shape=(9, 8, 3), dtype="int16", bits_stored=12)
    check.equal(
        "12-bit signed values carry their sign", _read(signed).voxels, signed.truth_voxels()
    )
    volume = read_fault("mixed-pixel-representation")
    check.equal(
        "a negative value among unsigned slices",
        int(volume.voxels.min()),
        _lowest("mixed-pixel-representation"),
    )


def _lowest(name: str) -> int:
    return min(int(ds.pixel_array.min()) for ds in FAULTS[name].build())


def _scales(check: Check) -> None:
    with check.notices("IMG-1503", "a scale for each slice is applied and said"):
        volume = read_fault("pet-slope-per-slice")
    slices = {ds.SOPInstanceUID: ds for ds in FAULTS["pet-slope-per-slice"].build()}
    truth = np.stack([_rescaled(slices[s.sop_instance_uid]) for s in volume.sources])
    check.close(
        "values slice by slice",
        measured=volume.values(),
        required=truth.transpose(2, 1, 0),
        atol=0.01,
        unit="BQML",
    )
    check.equal("unit of a PET volume", volume.scale.unit, "BQML")
    check.equal("unit of stored MR values is undefined", read_fault("clean").scale.unit, None)
    check.equal("unit of a CT volume", read_fault("tilt-20-tag-right").scale.unit, "HU")
    with check.notices("IMG-1406", "loss is said"):
        read_fault("lossy")
    with check.notices("IMG-1407", "inverted grey is said and not undone"):
        inverted = read_fault("monochrome1")
    check.equal("stored values of MONOCHROME1", inverted.voxels, Phantom().truth_voxels())
    _on_a_scale(check, inverted)


def _on_a_scale(check: Check, volume: Volume) -> None:
    scale = replace(volume.scale, slope=0.5, intercept=-1000.0)
    required = volume.voxels.astype(float) * 0.5 - 1000.0
    measured = replace(volume, scale=scale).values()
    check.close("values on their scale", measured=measured, required=required, atol=1e-9)
    coloured = read_fault("tilted-colour")
    channels = [coloured.voxels[name].astype(float) for name in "RGB"]
    measured = coloured.values()
    check.equal("values of colours: shape", measured.shape, (*coloured.voxels.shape, 3))
    for place, name in enumerate("RGB"):
        check.equal(f"values of colours: {name}", measured[..., place], channels[place])


def _rescaled(ds: pydicom.Dataset) -> NDArray[Any]:
    return ds.pixel_array * float(ds.RescaleSlope) + float(ds.RescaleIntercept)


def _refusals(check: Check) -> None:
    for code, name in (
        ("IMG-1401", "bits-stored-over-allocated"),
        ("IMG-1401", "high-bit-too-low"),
        ("IMG-1418", "palette-colour"),
        ("IMG-1403", "truncated-pixels"),
        ("IMG-1403", "pixels-too-long"),
        ("IMG-1409", "unknown-transfer-syntax"),
        ("IMG-1415", "compressed-pixels-damaged"),
        ("IMG-1501", "mixed-units"),
        ("IMG-1502", "rescale-slope-zero"),
        ("IMG-1502", "rescale-slope-absent"),
    ):
        with check.refuses(code, name):
            read_fault(name)
    with check.refuses("IMG-1408", "a volume beyond the limit"):
        read_fault("clean", max_volume_bytes=1000)


def _other_makers_encodings(check: Check) -> None:
    clauses = ["IMG-R011.encapsulation"]
    folder = check.corpus("imaging/encapsulation", clauses=clauses)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=clauses)
    files = check.corpus("imaging/pydicom_data", clauses=clauses)
    if folder is None or scans is None or files is None:
        return
    single = folder / "single"
    truth = decode(check.data(single / "CT1_UNC.explicit_little_endian.dcm"))
    for twin in sorted(single.glob("CT1_UNC.fragmented*")):
        check.equal(f"{twin.name} equals its uncompressed twin", decode(check.data(twin)), truth)
    check.equal(
        "divest lossless twin", decode(folder / "divest/01jl.dcm"), decode(folder / "divest/01.dcm")
    )
    for encoding in ("j2k", "jpegll"):
        for path in sorted((scans / f"fragmented_frames_{encoding}" / "dicom").iterdir()):
            check.equal(
                f"{encoding} {path.name} equals pydicom's frame",
                decode(path),
                pydicom.dcmread(path).pixel_array,
            )
    _known_digests(check, files)


def _known_digests(check: Check, files: Path) -> None:
    """Decoded arrays have the digests of an independent decoding, or are refused."""
    with (files / "PIXELS.tsv").open() as stream:
        rows = list(
            csv.DictReader((line for line in stream if not line.startswith("#")), delimiter="\t")
        )
    for row in rows:
        path = files / row["file"]
        if (
            not path.is_file()
            or row["sha256"].startswith("ERR")
            or (row["shape"].split("x")[-1] != "3" and row["shape"].count("x") != 1)
        ):
            continue
        try:
            plane = decode(path)
        except Refusal as refusal:
            check.true(
                f"{row['file']} is decoded or refused by a code",
                refusal.code.startswith("IMG-"),
                measured=refusal.code,
            )
            continue
        if plane.dtype.fields is not None:
            continue
        digest = hashlib.sha256(np.ascontiguousarray(plane).tobytes()).hexdigest()
        check.equal(f"{row['file']} decodes to the known array", digest, row["sha256"])
