"""The library's face: read_series, Volume, square."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset

from numbat_imaging import Volume, read_series, read_volumes, square
from numbat_imaging.phantoms import Phantom, slice_affine_lps_mm, write_datasets
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.phantoms.value_faults import with_values
from numbat_registries import Refusal

OBLIQUE = Phantom(
    shape=(9, 7, 5),
    spacing_mm=(0.7, 1.3, 3.1),
    orientation=(0.8, 0.6, 0.0, -0.48, 0.64, 0.6),
)


def read(slices: list[Dataset], folder: Path) -> Volume:
    write_datasets(slices, folder)
    return read_series(folder)


@pytest.mark.parametrize("direction", [1, -1])
def test_every_voxel_lies_where_its_file_says(direction: int, tmp_path: Path) -> None:
    step = tuple((direction * 3.1 * OBLIQUE.normal).tolist())
    phantom = replace(OBLIQUE, step_lps_mm=step)
    slices = phantom.slices()
    volume = read(slices[::-1], tmp_path)
    voxels, affine = phantom.ascending()
    np.testing.assert_array_equal(volume.voxels, voxels)
    np.testing.assert_allclose(volume.affine_lps_mm, affine, atol=1e-6)
    by_uid = {ds.SOPInstanceUID: ds for ds in slices}
    for source in volume.sources:
        truth = slice_affine_lps_mm(by_uid[source.sop_instance_uid])
        for i, j in ((0, 0), (8, 0), (0, 6), (8, 6)):
            there = (truth @ [i, j, 0, 1])[:3]
            np.testing.assert_allclose(volume.at_lps_mm((i, j, source.k)), there, atol=1e-6)


@pytest.mark.parametrize("along", ["i", "j", "both"])
def test_a_tilt_in_any_direction_is_a_shear(along: str, tmp_path: Path) -> None:
    slide = math.tan(math.radians(15.0)) * 2.0
    step = (slide * (along != "j"), slide * (along != "i"), 2.0)
    volume = read(Phantom(shape=(9, 7, 8), step_lps_mm=step).slices(), tmp_path)
    assert volume.grid.is_sheared
    np.testing.assert_allclose(volume.affine_lps_mm[:3, 2], step, atol=1e-9)
    flat = square(volume)
    assert not flat.grid.is_sheared
    np.testing.assert_allclose(flat.affine_lps_mm[:3, 2], [0, 0, 2.0], atol=1e-9)
    assert square(flat) is flat


def test_rows_and_columns_of_unequal_spacing_are_not_exchanged(tmp_path: Path) -> None:
    phantom = Phantom(shape=(9, 7, 5), spacing_mm=(0.5, 2.0, 3.0))
    volume = read(phantom.slices(), tmp_path)
    assert volume.voxels.shape == (9, 7, 5)
    np.testing.assert_allclose(
        volume.at_lps_mm((1, 0, 0)) - volume.at_lps_mm((0, 0, 0)), [0.5, 0, 0]
    )
    np.testing.assert_allclose(
        volume.at_lps_mm((0, 1, 0)) - volume.at_lps_mm((0, 0, 0)), [0, 2.0, 0]
    )


def test_two_evenly_interleaved_acquisitions_are_one_stack(tmp_path: Path) -> None:
    """Odd slices first, then even ones: one volume, whose order is that of the coordinates."""
    slices = OBLIQUE.slices()
    for k, ds in enumerate(slices):
        ds.AcquisitionNumber, ds.InstanceNumber = 1 + k % 2, 1 + k // 2 + 3 * (k % 2)
    np.testing.assert_array_equal(read(slices, tmp_path).voxels, OBLIQUE.truth_voxels())


def test_two_stacks_at_uneven_offset_are_refused(tmp_path: Path) -> None:
    """0, 2, 4 … and 0.8, 2.8, 4.8 …: one series, two acquisitions, no grid."""
    slices = Phantom(shape=(9, 7, 10), spacing_mm=(1.0, 1.0, 2.0)).slices()
    origin = float(slices[0].ImagePositionPatient[2])
    for k, ds in enumerate(slices):
        z = origin + 2.0 * (k // 2) + 0.8 * (k % 2)
        ds.ImagePositionPatient = [*ds.ImagePositionPatient[:2], f"{z:.3f}"]
    write_datasets(slices, tmp_path)
    with pytest.raises(Refusal) as caught:
        read_series(tmp_path)
    assert caught.value.code == "IMG-1207"


def test_a_doubled_echo_makes_no_volume_of_two(tmp_path: Path) -> None:
    slices = replace(OBLIQUE, volumes=2, fourth_axis="EchoTime").slices()
    write_datasets(slices, tmp_path)
    assert [v.key.differs_by[0][0] for v in read_volumes(tmp_path)] == ["echo", "echo"]
    for ds in slices:
        ds.EchoTime, ds.EchoNumbers = "5", 1
    write_datasets(slices, tmp_path)
    with pytest.raises(Refusal) as caught:
        read_series(tmp_path)
    assert caught.value.code == "IMG-1302"


def test_one_pet_slice_of_many_is_refused(tmp_path: Path) -> None:
    phantom = Phantom(shape=(9, 7, 1), modality="PT")
    write_datasets(with_values(NumberOfSlices=40)(phantom.slices()), tmp_path)
    with pytest.raises(Refusal) as caught:
        read_series(tmp_path)
    assert caught.value.code == "IMG-1216"


def test_a_single_slice_says_where_its_thickness_comes_from(tmp_path: Path) -> None:
    slices = Phantom(shape=(9, 7, 1)).slices()
    del slices[0].SliceThickness
    write_datasets(slices, tmp_path)
    volume = read_series(tmp_path, slice_thickness_mm=4.0)
    assert volume.grid.thickness_source == "the caller"
    assert volume.grid.spacing_mm[2] == 4.0


def test_values_of_colours_have_three_channels(tmp_path: Path) -> None:
    phantom = Phantom(shape=(9, 7, 5), dtype="uint8", samples=3, modality="SC")
    volume = read(phantom.slices(), tmp_path)
    np.testing.assert_array_equal(volume.values(), phantom.truth_voxels())


def test_a_volume_is_a_view_of_a_c_contiguous_block() -> None:
    assert read_fault("clean").voxels.T.flags.c_contiguous
    assert read_fault("two-time-points").voxels.T.flags.c_contiguous


def test_the_header_holds_no_pixels() -> None:
    assert "PixelData" not in read_fault("clean").header
