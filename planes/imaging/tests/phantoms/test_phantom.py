"""A phantom says where each of its voxels lies, and says it the same way each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ImplicitVRLittleEndian,
    RLELossless,
)

from numbat_imaging.phantoms import FAULTS, Phantom, agreement, slice_affine_lps_mm
from numbat_imaging.phantoms.phantom import get_pixels

OBLIQUE = Phantom(
    shape=(7, 5, 4),
    spacing_mm=(0.7, 1.3, 3.1),
    orientation=(0.6, 0.8, 0.0, 0.0, 0.0, -1.0),
    volumes=2,
)


def test_every_voxel_names_its_own_index_and_its_place_is_in_the_header(tmp_path: Path) -> None:
    affine = OBLIQUE.truth_affine_lps_mm()
    truth = OBLIQUE.truth_voxels()
    assert len(np.unique(truth)) == truth.size
    for number, path in enumerate(OBLIQUE.write(tmp_path)):
        ds = dcmread(path)
        t, k = divmod(number, OBLIQUE.shape[2])
        stored = ds.pixel_array
        for row, column in ((0, 0), (4, 6), (2, 3)):
            i, j, kk, tt = np.argwhere(truth == stored[row, column])[0]
            assert (i, j, kk, tt) == (column, row, k, t)
            told = slice_affine_lps_mm(ds) @ [column, row, 0, 1]
            assert told == pytest.approx(affine @ [i, j, k, 1], abs=1e-6)


@pytest.mark.parametrize(
    "syntax",
    [
        ImplicitVRLittleEndian,
        ExplicitVRBigEndian,
        DeflatedExplicitVRLittleEndian,
        RLELossless,
    ],
)
@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint8"])
def test_pixels_survive_each_transfer_syntax(tmp_path: Path, syntax: str, dtype: str) -> None:
    phantom = Phantom(shape=(6, 5, 2), dtype=dtype, transfer_syntax_uid=syntax)
    paths = phantom.write(tmp_path)
    assert dcmread(paths[1]).file_meta.TransferSyntaxUID == syntax
    assert np.array_equal(dcmread(paths[1]).pixel_array, phantom.plane(1))


def test_colour_pixels(tmp_path: Path) -> None:
    phantom = Phantom(shape=(6, 5, 2), samples=3, dtype="uint8", modality="SC")
    paths = phantom.write(tmp_path)
    assert np.array_equal(dcmread(paths[1]).pixel_array, phantom.plane(1))


def test_a_code_that_wraps_still_tells_slices_apart() -> None:
    phantom = Phantom(shape=(512, 512, 3))
    planes = [phantom.plane(k) for k in range(3)]
    assert not np.array_equal(planes[0], planes[1])
    assert not np.array_equal(planes[1], planes[2])


def test_the_same_phantom_gives_the_same_bytes_and_another_seed_other_uids(tmp_path: Path) -> None:
    small = Phantom(shape=(4, 4, 2))
    first = [p.read_bytes() for p in small.write(tmp_path / "a")]
    again = [p.read_bytes() for p in small.write(tmp_path / "b")]
    other = replace(small, seed=1).slices()
    assert first == again
    assert other[0].SOPInstanceUID != small.slices()[0].SOPInstanceUID
    assert other[0].SeriesInstanceUID != small.slices()[0].SeriesInstanceUID


def test_ascending_truth_is_the_same_scan_in_the_other_order() -> None:
    down = Phantom(shape=(4, 3, 5), step_lps_mm=(0.0, 0.0, -2.0))
    voxels, affine = down.ascending()
    for index in ((0, 0, 0), (3, 2, 4), (1, 2, 3)):
        turned = (*index[:2], 4 - index[2])
        assert voxels[turned] == down.truth_voxels()[index]
        assert affine @ [*turned, 1] == pytest.approx(down.truth_affine_lps_mm() @ [*index, 1])
    assert affine[2, 2] > 0


def test_the_oracle_measures_displacement_and_knows_strangers() -> None:
    phantom = Phantom(shape=(6, 5, 4))
    slices = phantom.slices()
    voxels, affine = phantom.truth_voxels(), phantom.truth_affine_lps_mm()
    right = agreement(slices, voxels, affine)
    assert (right.strangers, right.lost) == (0, 0)
    assert right.max_displacement_mm < 1e-6
    wide = affine.copy()
    wide[2, 2] += 0.5
    assert agreement(slices, voxels, wide).max_displacement_mm == pytest.approx(1.5)
    unknown = agreement(slices[1:], voxels, affine)
    assert (unknown.strangers, unknown.max_displacement_mm) == (1, np.inf)
    assert agreement(slices, voxels[:, :, 1:], affine).lost == 1
    assert agreement(slices, voxels[::-1], affine).strangers == 4


def test_an_unknown_fourth_axis_is_told_at_once() -> None:
    with pytest.raises(KeyError, match="colour"):
        Phantom(volumes=2, fourth_axis="colour")


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_each_fault_can_be_written_and_read_by_its_header(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    datasets = fault.build()
    assert fault.name == name
    for path, ds in list(zip(fault.write(tmp_path), datasets, strict=True))[:12]:
        back = dcmread(path, stop_before_pixels=True)
        assert back.SOPInstanceUID == ds.SOPInstanceUID
        assert back.file_meta.MediaStorageSOPInstanceUID == ds.SOPInstanceUID


def test_faults_do_what_they_say() -> None:
    build = {name: fault.build() for name, fault in FAULTS.items() if not name.startswith("tilt")}
    clean = [ds.SOPInstanceUID for ds in build["clean"]]
    z = {
        n: [float(ds.ImagePositionPatient[2]) for ds in build[n]]
        for n in ("two-slabs", "drift-0.09")
    }
    assert np.diff(z["two-slabs"]).round(6).tolist() == [2.0] * 4 + [5.0] * 5
    assert np.diff(z["drift-0.09"]).round(6).tolist() == [2.0] * 50 + [2.09] * 49
    assert [ds.SOPInstanceUID for ds in build["middle-slice-missing"]] == clean[:5] + clean[6:]
    copies = build["byte-identical-copy"]
    assert copies[-1] == copies[4]
    other = build["same-uid-other-pixels"]
    assert other[-1].SOPInstanceUID == other[4].SOPInstanceUID
    assert not np.array_equal(get_pixels(other[-1]), get_pixels(other[4]))
    assert len({ds.PatientID for ds in build["two-patients"]}) == 2
    assert len({ds.SeriesInstanceUID for ds in build["two-patients"]}) == 1
    assert len(build["two-time-points-one-missing"]) == 19
    high = build["overlay-in-high-bits"][3]
    assert get_pixels(high).max() > 4095
    assert high.BitsStored == 12


@pytest.mark.parametrize("angle", [1.0, 2.0, 2.5, 5.0, 20.0])
def test_a_tilted_stack_slides_by_the_tangent_of_its_angle(angle: float) -> None:
    slices = FAULTS[f"tilt-{angle:g}-tag-absent"].build()
    affine = slice_affine_lps_mm(slices[0])
    step = slice_affine_lps_mm(slices[1])[:3, 3] - affine[:3, 3]
    normal = affine[:3, 2] / np.linalg.norm(affine[:3, 2])
    across = step - (step @ normal) * normal
    assert np.linalg.norm(across) / (step @ normal) == pytest.approx(np.tan(np.radians(angle)))
    assert "GantryDetectorTilt" not in slices[0]


def test_faulty_text_reaches_the_file_unchanged(tmp_path: Path) -> None:
    path = FAULTS["position-decimal-comma"].write(tmp_path)[4]
    assert b"-15,5\\-20,25\\38,125" in path.read_bytes()
    assert b"NaN" in FAULTS["position-nan"].write(tmp_path)[4].read_bytes()
