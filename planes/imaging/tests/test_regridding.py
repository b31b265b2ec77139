"""What `convert` does with axes, spacing and the grid of a file, as other readers see it."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from click.testing import CliRunner

from numbat_imaging import Options, convert, read_series, reorient, write_nifti
from numbat_imaging.cli import cli
from numbat_imaging.geometry.placement import TargetGrid
from numbat_imaging.geometry.regridding import Regridding
from numbat_imaging.output.nifti_grid import grid_of_nifti
from numbat_imaging.phantoms import Phantom
from numbat_registries import Refusal

PHANTOM = Phantom(shape=(12, 10, 6), modality="CT", dtype="int16", slope=1.0, intercept=-1024.0)


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scan")
    PHANTOM.write(folder)
    return folder


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["convert", *map(str, arguments)])
    return result.exit_code, result.output


def only(folder: Path) -> nibabel.Nifti1Image:
    (path,) = folder.glob("*.nii.gz")
    return nibabel.load(path)


def test_axes_are_those_of_the_file(scan: Path, tmp_path: Path) -> None:
    assert run(scan, tmp_path, "--axes", "RAS")[0] == 0
    image = only(tmp_path)
    assert nibabel.aff2axcodes(image.affine) == ("R", "A", "S")
    plain = convert(scan, tmp_path / "plain")
    there = nibabel.as_closest_canonical(
        nibabel.load(tmp_path / "plain" / plain.outcomes[0].written[-1])
    )
    assert np.array_equal(np.asanyarray(image.dataobj), np.asanyarray(there.dataobj))
    np.testing.assert_allclose(image.affine, there.affine, atol=1e-4)


def test_a_spacing_counts_along_the_axes_asked_for(scan: Path, tmp_path: Path) -> None:
    code, _ = run(
        scan, tmp_path, "--axes", "SRA", "--spacing-mm", "4,1,2", "--interpolation", "cubic"
    )
    assert code == 0
    image = only(tmp_path)
    assert image.shape == (3, 12, 5)
    assert image.header.get_zooms() == pytest.approx((4.0, 1.0, 2.0))
    (told,) = tmp_path.glob("*.json")
    body = json.loads(told.read_text())["numbat"]
    assert [n["code"] for n in body["notices"]][-2:] == ["IMG-1218", "IMG-1217"]
    assert body["value_scale"]["applied"] is True
    geometry = body["geometry"]
    assert geometry["voxel_order"] == "i, j, k towards SRA; the file keeps this order"
    np.testing.assert_allclose(
        geometry["as_read"]["affine_lps_mm"], PHANTOM.truth_affine_lps_mm(), atol=1e-9
    )
    assert len(geometry["residuals_lps_mm"]) == geometry["as_read"]["slices"] == 6


def test_the_grid_of_a_file(scan: Path, tmp_path: Path) -> None:
    volume = reorient(read_series(scan), "PIR")
    write_nifti(volume, tmp_path / "like.nii")
    like = ["--like", tmp_path / "like.nii"]
    code, _ = run(scan, tmp_path / "a", *like, "--interpolation", "nearest")
    assert code == 4  # NIfTI names no frame of reference
    code, _ = run(scan, tmp_path / "b", *like, "--registered", "--interpolation", "nearest")
    assert code == 0
    image, target = only(tmp_path / "b"), nibabel.load(tmp_path / "like.nii")
    np.testing.assert_allclose(image.affine, target.affine, atol=1e-6)
    assert np.array_equal(np.asanyarray(image.dataobj), np.asanyarray(target.dataobj))
    assert not list((tmp_path / "a").glob("*.nii*"))


def test_a_grid_beyond_the_image_needs_a_fill(scan: Path, tmp_path: Path) -> None:
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    affine[:3, 3] = [2.0, 10.0, 30.0]
    nibabel.save(nibabel.Nifti1Image(np.zeros((9, 9, 9), np.uint8), affine), tmp_path / "like.nii")
    like = ["--like", tmp_path / "like.nii", "--registered"]
    assert run(scan, tmp_path / "a", *like)[0] == 4
    assert run(scan, tmp_path / "b", *like, "--fill", "-1024")[0] == 0
    assert float(only(tmp_path / "b").get_fdata()[-1, -1, -1]) == -1024.0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--spacing-mm", "wide"], 2),
        (["--spacing-mm", "1,2"], 4),
        (["--spacing-mm", "0"], 4),
        (["--axes", "RAX"], 4),
        (["--interpolation", "sinc"], 2),
    ],
)
def test_requests_that_cannot_be_met(
    scan: Path, tmp_path: Path, arguments: list[str], code: int
) -> None:
    assert run(scan, tmp_path / "out", *arguments)[0] == code
    assert not list(tmp_path.rglob("*.nii*"))


def test_a_grid_leaves_no_room_for_a_spacing(scan: Path, tmp_path: Path) -> None:
    nibabel.save(
        nibabel.Nifti1Image(np.zeros((3, 3, 3), np.uint8), np.eye(4)), tmp_path / "like.nii"
    )
    code, said = run(scan, tmp_path / "out", "--like", tmp_path / "like.nii", "--spacing-mm", "1")
    assert code == 2
    assert "its own axes" in said
    with pytest.raises(TypeError):
        Regridding(axes="RAS", like=TargetGrid(np.eye(4), (1, 1, 1)))
    with pytest.raises(Refusal) as caught:
        Options(regridding=Regridding(spacing_mm=(-1.0,)))
    assert caught.value.code == "IMG-1224"


def test_files_that_name_no_grid(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(np.zeros((3, 3, 3), np.uint8), np.eye(4))
    nowhere = nibabel.Nifti1Image(np.zeros((3, 3, 3), np.uint8), None)
    image.header.set_xyzt_units("meter")
    (tmp_path / "text.nii").write_text("no image")
    nibabel.save(image, tmp_path / "metres.nii")
    nibabel.save(nowhere, tmp_path / "nowhere.nii")
    nibabel.save(nibabel.MGHImage(np.zeros((3, 3, 3), np.uint8), np.eye(4)), tmp_path / "other.mgz")
    for name in ("text.nii", "metres.nii", "nowhere.nii", "other.mgz", "absent.nii"):
        with pytest.raises(Refusal) as caught:
            grid_of_nifti(tmp_path / name)
        assert caught.value.code == "IMG-1224", name


def test_a_slice_or_a_plane_is_a_grid_too(tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 4), np.uint8), np.eye(4)), tmp_path / "flat.nii")
    assert grid_of_nifti(tmp_path / "flat.nii").shape == (3, 4, 1)
    nibabel.save(
        nibabel.Nifti1Image(np.zeros((3, 4, 5, 6), np.uint8), np.eye(4)), tmp_path / "4d.nii"
    )
    assert grid_of_nifti(tmp_path / "4d.nii").shape == (3, 4, 5)
