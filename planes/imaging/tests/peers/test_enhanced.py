"""Enhanced objects in other readers: equal where they are right, and by how much where not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
import pytest

from numbat_imaging import read_series
from numbat_imaging.phantoms import FAULTS, Phantom, agreement
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms.reading import folder_of_fault, read_fault

#: NIfTI-1 keeps the affine in single precision.
SAME_PLACE_MM = 1e-3

#: Layouts that dcm2niix reads as one volume, each plane where its frame says.
RIGHT = (
    "clean",
    "ct",
    "pet",
    "rle",
    "oblique",
    "descending",
    "shuffled",
    "all-per-frame",
    "without-dimensions",
    "by-position",
    "timed-frames",
    "implicit",
    "undefined-lengths",
    "pet-shuffled",
    "says-mosaic",
    "philips-frames",
    "slope-per-frame",
    "legacy-ct",
    "legacy-mr",
    "legacy-pet",
    "time-first",
    "time-between",
    "time-last",
    "time-shuffled",
    "time-by-index",
    "diffusion",
    "cardiac",
    "b0-repeated-by-time",
)
#: Volumes that dcm2niix writes and exits with 0, and how far their planes lie from where the frames
#: say, mm (measured with 1.0.20260724): lost moments, spacing by tag, order by in-stack number.
PEER_MISSES_MM = {
    "frame-missing": 1.0,
    "doubled": 12.0,
    "two-stacks": 118.0,
    "uneven": 0.129,
    "without-position": 40.7,
    "spacing-tag": 7.0,
    "in-stack-contradicts": 9.14,
    "diffusion-undimensioned": 12.0,
    "b0-repeated-by-acquisition": 8.0,
    "legacy-time": 10.0,
    "ragged": 9.54,
    "short-index": 6.0,
    "fewer-groups": 2.0,
    "fewer-frames": 2.0,
}


def written_by_dcm2niix(source: Path, out: Path) -> tuple[int, list[Any]]:
    """Exit status and images of dcm2niix for a folder."""
    dcm2niix = pytest.importorskip("dcm2niix", reason="dcm2niix is not installed")
    out.mkdir()
    command = [dcm2niix.bin, "-z", "n", "-b", "n", "-m", "n", "-f", "%s_%u", "-o", str(out)]
    done = subprocess.run([*command, str(source)], capture_output=True, timeout=120, check=False)
    return done.returncode, [nibabel.load(path) for path in sorted(out.glob("*.nii"))]


def displacement_mm(name: str, image: Any) -> float:
    """How far a NIfTI image puts the planes of its frames from where these say."""
    flip = np.eye(4)
    flip[1, 1], flip[1, 3] = -1.0, image.shape[1] - 1.0
    affine_lps = np.diag([-1.0, -1.0, 1.0, 1.0]) @ image.affine @ flip
    voxels = image.get_fdata()[:, ::-1]
    return agreement(FAULTS[name].slices(), voxels, affine_lps).max_displacement_mm


@pytest.mark.parametrize("layout", RIGHT)
def test_a_layout_is_the_same_volume_in_dcm2niix(layout: str, tmp_path: Path) -> None:
    name = f"enhanced-{layout}"
    status, (image,) = written_by_dcm2niix(folder_of_fault(name), tmp_path / "peer")
    assert status == 0
    assert displacement_mm(name, image) <= SAME_PLACE_MM
    ours = read_fault(name)
    turned = image.get_fdata()[:, ::-1]
    # The peer may stack frames from the top; each volume holds the same planes.
    rising = (image.affine[:3, 2] * [-1, -1, 1]) @ ours.grid.normal > 0
    np.testing.assert_allclose(ours.values(), turned if rising else turned[:, :, ::-1], rtol=1e-6)


@pytest.mark.parametrize("layout", PEER_MISSES_MM)
def test_where_dcm2niix_is_silently_wrong_the_frames_win(
    layout: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    name = f"enhanced-{layout}"
    _, images = written_by_dcm2niix(folder_of_fault(name), tmp_path / "peer")
    misses_mm = max(displacement_mm(name, image) for image in images)
    record_property("dcm2niix_displacement_mm", misses_mm)
    assert misses_mm > 0.05
    if FAULTS[name].expected[0] == "volume":
        volume = read_fault(name)
        found = agreement(FAULTS[name].slices(), volume.values(), volume.affine_lps_mm)
        assert found.max_displacement_mm <= SAME_PLACE_MM


@pytest.mark.parametrize(
    "layout", ["clean", "ct", "pet", "rle", "oblique", "shuffled", "in-stack-contradicts"]
)
def test_a_layout_is_the_same_volume_in_highdicom(layout: str) -> None:
    highdicom = pytest.importorskip("highdicom", reason="highdicom is not installed")
    name = f"enhanced-{layout}"
    (path,) = folder_of_fault(name).iterdir()
    image = highdicom.Image.from_dataset(pydicom.dcmread(path))
    theirs = image.get_volume()
    # Its axes are slices, rows, columns.
    values, affine = theirs.array.transpose(2, 1, 0), theirs.affine[:, [2, 1, 0, 3]]
    found = agreement(FAULTS[name].slices(), values, affine)
    assert (found.strangers, found.lost) == (0, 0)
    assert found.max_displacement_mm <= 1e-6
    ours = read_fault(name)
    np.testing.assert_allclose(ours.values()[:, :, ::-1], values)


@pytest.mark.parametrize("layout", ["clean", "oblique", "time-last", "cardiac"])
def test_a_layout_is_the_same_volume_in_nibabel(layout: str) -> None:
    name = f"enhanced-{layout}"
    affine, values = _in_nibabel(name)
    found = agreement(FAULTS[name].slices(), values, affine)
    assert (found.strangers, found.lost) == (0, 0)
    assert found.max_displacement_mm <= 1e-6


def test_nibabel_puts_shuffled_frames_elsewhere() -> None:
    affine, values = _in_nibabel("enhanced-shuffled")
    slices = FAULTS["enhanced-shuffled"].slices()
    assert agreement(slices, values, affine).max_displacement_mm > 1.0
    ours = read_fault("enhanced-shuffled")
    found = agreement(slices, ours.values(), ours.affine_lps_mm)
    assert found.max_displacement_mm <= 1e-6


def _in_nibabel(name: str) -> tuple[Any, Any]:
    from nibabel.nicom.dicomwrappers import wrapper_from_data

    (path,) = folder_of_fault(name).iterdir()
    wrapper = wrapper_from_data(pydicom.dcmread(path))
    # Its axes are rows, columns, slices.
    return wrapper.affine[:, [1, 0, 2, 3]], np.swapaxes(wrapper.get_data(), 0, 1)


@pytest.mark.parametrize("phantom", [catalogue.CT, catalogue.MR, catalogue.OBLIQUE])
def test_what_highdicom_converts_reads_as_the_slices_did(phantom: Phantom, tmp_path: Path) -> None:
    highdicom = pytest.importorskip("highdicom", reason="highdicom is not installed")
    kinds = {
        "CT": highdicom.legacy.LegacyConvertedEnhancedCTImage,
        "MR": highdicom.legacy.LegacyConvertedEnhancedMRImage,
    }
    slices = phantom.slices()
    for ds in slices:
        # Required by the converter.
        ds.ReferringPhysicianName, ds.Laterality = "", ""
    converted = kinds[phantom.modality](
        slices,
        series_instance_uid=slices[0].SeriesInstanceUID,
        series_number=1,
        sop_instance_uid=phantom.uid("converted"),
        instance_number=1,
    )
    converted.save_as(tmp_path / "converted.dcm")
    volume = read_series(tmp_path)
    voxels, affine = phantom.ascending()
    np.testing.assert_array_equal(volume.voxels, voxels)
    np.testing.assert_allclose(volume.affine_lps_mm, affine, atol=1e-6)


@pytest.mark.parametrize(
    "layout",
    [
        "clean",
        "ct",
        "pet",
        "oblique",
        "shuffled",
        "time-first",
        "time-last",
        "diffusion",
        "cardiac",
        "two-stacks",
        "slope-per-frame",
        "legacy-ct",
        "legacy-mr",
    ],
)
def test_sound_layouts_are_legal_objects(layout: str) -> None:
    dciodvfy = shutil.which("dciodvfy")
    if dciodvfy is None:
        pytest.skip("dciodvfy is not installed")
    (path,) = folder_of_fault(f"enhanced-{layout}").iterdir()
    done = subprocess.run(
        [dciodvfy, "-new", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("Error")] == []
