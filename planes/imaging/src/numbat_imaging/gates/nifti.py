"""NIfTI files hold the same voxels at the same places, and appear whole or not at all."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nibabel
import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.output.diffusion import fsl_vectors
from numbat_imaging.output.nifti import affine_ras_mm, write_nifti
from numbat_imaging.phantoms.reading import convert_fault, read_fault
from numbat_imaging.volume import Volume


@gate(
    "IMG-G08",
    phase=1,
    discharges=["IMG-R013"],
    title="NIfTI files hold the same voxels at the same places, or are not there",
)
def nifti(check: Check) -> None:
    with TemporaryDirectory() as folder:
        for name in (
            "clean",
            "descending",
            "oblique",
            "sagittal",
            "two-time-points",
            "single-slice",
        ):
            _same(check, name, read_fault(name), Path(folder))
        _sheared(check, Path(folder))
        _versions(check, Path(folder))
        _publishing(check, Path(folder))
        _gradients(check)
        _sidecar(check, Path(folder))


def _same(check: Check, name: str, volume: Volume, folder: Path) -> None:
    """Every voxel is looked up by its place in space: the order of storage is free."""
    image: Any = nibabel.load(write_nifti(volume, folder / f"{name}.nii.gz").paths[0])
    stored = np.asanyarray(image.dataobj)
    index = np.linalg.inv(image.affine) @ LPS_TO_RAS @ volume.affine_lps_mm
    grid = np.stack(
        np.meshgrid(*(np.arange(n) for n in volume.voxels.shape[:3]), indexing="ij"), -1
    )
    there = grid @ index[:3, :3].T + index[:3, 3]
    whole = np.rint(there).astype(int)
    check.close(
        f"{name}: voxels lie on voxels", measured=there, required=whole, atol=1e-3, unit="voxel"
    )
    found = stored[whole[..., 0], whole[..., 1], whole[..., 2]]
    check.equal(f"{name}: every voxel at its place", found, volume.voxels)
    check.close(
        f"{name}: qform equals sform",
        measured=image.get_qform(),
        required=image.get_sform(),
        atol=1e-3,
        unit="mm",
    )
    codes = [int(image.header["qform_code"]), int(image.header["sform_code"])]
    check.equal(f"{name}: both are scanner coordinates", codes, [1, 1])
    check.at_most(
        f"{name}: stored as radiological", float(np.linalg.det(image.affine[:3, :3])), 0.0
    )


def _sheared(check: Check, folder: Path) -> None:
    volume = read_fault("tilt-20-tag-right")
    image: Any = nibabel.load(write_nifti(volume, folder / "tilt.nii").paths[0])
    check.equal("a sheared stack has no qform", int(image.header["qform_code"]), 0)
    check.close(
        "its sform is the affine",
        measured=image.get_sform(),
        required=affine_ras_mm(volume),
        atol=1e-3,
        unit="mm",
    )
    check.equal(
        "its value scale", [float(image.dataobj.slope), float(image.dataobj.inter)], [1.0, -1024.0]
    )


def _versions(check: Check, folder: Path) -> None:
    volume = read_fault("clean")
    for version, size in ((1, 348), (2, 540)):
        path = write_nifti(volume, folder / f"v{version}.nii", nifti_version=version).paths[0]
        image: Any = nibabel.load(path)
        check.equal(f"NIfTI-{version} header size", int(image.header["sizeof_hdr"]), size)
        check.equal(f"NIfTI-{version} voxels", np.asanyarray(image.dataobj), volume.voxels[:, ::-1])
    first = (folder / "v1.nii").read_bytes()
    again = write_nifti(volume, folder / "again.nii", nifti_version=1).paths[0].read_bytes()
    check.true("the same volume gives the same bytes", first == again)


def _publishing(check: Check, folder: Path) -> None:
    volume = read_fault("clean")
    out = folder / "published"
    out.mkdir()
    write_nifti(volume, out / "x.nii.gz")
    before = (out / "x.nii.gz").read_bytes()
    with check.refuses("IMG-1701", "an existing file is not overwritten"):
        write_nifti(read_fault("oblique"), out / "x.nii.gz")
    check.true("it is as it was", (out / "x.nii.gz").read_bytes() == before)
    check.equal("nothing else lies there", sorted(p.name for p in out.iterdir()), ["x.nii.gz"])
    write_nifti(read_fault("oblique"), out / "x.nii.gz", overwrite=True)
    check.true("it is replaced when asked", (out / "x.nii.gz").read_bytes() != before)
    refused = folder / "refused"
    convert_fault("middle-slice-missing", refused)
    check.equal("a refused stack leaves no file", sorted(p.name for p in refused.iterdir()), [])
    convert_fault("truncated-pixels", refused)
    check.equal(
        "nor does one refused while its pixels are read",
        sorted(p.name for p in refused.iterdir()),
        [],
    )


def _gradients(check: Check) -> None:
    """b-vectors, turned back through the written affine, are directions in the patient."""
    volume = read_fault("two-volumes-by-DiffusionBValue")
    gradients = volume.diffusion or ()
    check.at_least(
        "volumes with a gradient", sum(g.direction_lps is not None for g in gradients), 1
    )
    affine = affine_ras_mm(volume)
    vectors = fsl_vectors(gradients, affine)
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    sign = -1.0 if np.linalg.det(axes) > 0 else 1.0
    for t, gradient in enumerate(gradients):
        if gradient.direction_lps is None:
            check.equal(
                f"volume {t} without a direction has a zero vector", vectors[:, t], np.zeros(3)
            )
            continue
        patient = LPS_TO_RAS[:3, :3] @ gradient.direction_lps
        check.close(
            f"direction of volume {t}",
            measured=axes @ (vectors[:, t] * [sign, 1, 1]),
            required=patient,
            atol=1e-6,
        )
    folder = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R013.bvec"])
    if folder is not None:
        _reference_gradients(check, folder / "ge_dwi_oblique_bvecs")


def _reference_gradients(check: Check, case: Path) -> None:
    from numbat_imaging.conversion import convert

    with TemporaryDirectory() as out:
        done = convert(case / "dicom", out)
        written = {Path(name).suffix: Path(out) / name for name in done.outcomes[0].written}
        for suffix in (".bval", ".bvec"):
            reference = next((case / "ref").glob(f"*{suffix}"))
            atol = 0.5 if suffix == ".bval" else 2e-3
            check.close(
                f"{suffix} of an oblique GE scan",
                measured=np.loadtxt(written[suffix]),
                required=np.loadtxt(reference),
                atol=atol,
            )


def _sidecar(check: Check, folder: Path) -> None:
    out = folder / "sidecar"
    done = convert_fault("two-time-points", out)
    body = json.loads(next(out.glob("*.json")).read_text())
    volume = read_fault("two-time-points")
    told = body["numbat"]
    check.close(
        "the sidecar's affine",
        measured=told["geometry"]["affine_lps_mm"],
        required=volume.affine_lps_mm,
        atol=1e-9,
        unit="mm",
    )
    check.equal(
        "a residual for each slice", len(told["geometry"]["residuals_lps_mm"]), volume.grid.slices
    )
    check.equal("all sources are named", len(told["sources"]["slices"]), len(volume.sources))
    check.equal("modality", body["Modality"], "MR")
    check.equal("the account names the files", len(done.outcomes[0].written), 2)
