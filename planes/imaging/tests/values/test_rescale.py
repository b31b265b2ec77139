"""The value scale: stated, common or slice by slice, and never assumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset
from pydicom.uid import ImplicitVRLittleEndian

from numbat_imaging import Volume, read_series
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_registries import Refusal

CT = Phantom(shape=(8, 6, 4), modality="CT", dtype="int16", slope=0.5, intercept=-1024.0)


def read(slices: list[Dataset], folder: Path) -> Volume:
    write_datasets(slices, folder)
    return read_series(folder)


def refused(slices: list[Dataset], folder: Path) -> str:
    with pytest.raises(Refusal) as caught:
        read(slices, folder)
    return caught.value.code


def test_one_scale_travels_beside_the_stored_values(tmp_path: Path) -> None:
    volume = read(CT.slices(), tmp_path)
    assert (volume.scale.slope, volume.scale.intercept) == (0.5, -1024.0)
    assert (volume.scale.unit, volume.scale.applied) == ("HU", False)
    np.testing.assert_array_equal(volume.voxels, CT.truth_voxels())
    np.testing.assert_array_equal(volume.values(), CT.truth_voxels() * 0.5 - 1024.0)


def test_an_intercept_that_differs_is_applied_slice_by_slice(tmp_path: Path) -> None:
    slices = CT.slices()
    slices[2].RescaleIntercept = "-1000"
    volume = read(slices, tmp_path)
    truth = CT.truth_voxels() * 0.5 - 1024.0
    truth[:, :, 2] += 24.0
    assert volume.scale.applied
    np.testing.assert_array_equal(volume.values(), truth)


def test_a_slice_without_rescale_among_hounsfield_units_is_refused(tmp_path: Path) -> None:
    slices = CT.slices()
    del slices[1].RescaleSlope, slices[1].RescaleIntercept, slices[1].RescaleType
    assert refused(slices, tmp_path) == "IMG-1501"


def test_inverted_grey_keeps_its_values(tmp_path: Path) -> None:
    slices = CT.slices()
    for ds in slices:
        ds.PhotometricInterpretation = "MONOCHROME1"
    volume = read(slices, tmp_path)
    np.testing.assert_array_equal(volume.values(), CT.truth_voxels() * 0.5 - 1024.0)
    assert "IMG-1407" in [diagnostic.code for diagnostic in volume.notices]


def test_padding_stays_a_stored_value(tmp_path: Path) -> None:
    slices = CT.slices()
    for ds in slices:
        ds.PixelPaddingValue = -2000
    np.testing.assert_array_equal(read(slices, tmp_path).voxels, CT.truth_voxels())


def test_full_32_bit_values_are_exact(tmp_path: Path) -> None:
    slices = Phantom(shape=(8, 6, 3), dtype="uint32").slices()
    for ds in slices:
        plane = np.frombuffer(ds.PixelData, "<u4") + np.uint32(4_294_967_000)
        ds.PixelData = plane.tobytes()
    volume = read(slices, tmp_path)
    assert volume.voxels.dtype == np.uint32
    assert int(volume.voxels[0, 0, 0]) == 4_294_967_000


def test_a_rescale_of_colours_is_refused(tmp_path: Path) -> None:
    phantom = Phantom(shape=(8, 6, 3), dtype="uint8", samples=3, modality="SC")
    assert refused(replace(phantom, slope=2.0).slices(), tmp_path / "a") == "IMG-1504"
    volume = read(replace(phantom, slope=1.0).slices(), tmp_path / "b")
    np.testing.assert_array_equal(volume.values(), phantom.truth_voxels())


@pytest.mark.parametrize("syntax", [None, ImplicitVRLittleEndian])
def test_philips_scales_are_read_in_every_syntax(syntax: str | None, tmp_path: Path) -> None:
    """Implicit VR leaves a private number as bytes: it still is that number."""
    phantom = Phantom(shape=(8, 6, 3), manufacturer="Philips Medical Systems", slope=2.0)
    if syntax:
        phantom = replace(phantom, transfer_syntax_uid=syntax)
    for scale, precise in ((0.5, 2.0), (0.25, 4.0)):
        slices = phantom.slices()
        for ds in slices:
            block = ds.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
            block.add_new(0x0E, "FL", scale)
        folder = tmp_path / str(scale)
        volume = read(slices, folder)
        assert (volume.scale.name, volume.scale.slope) == ("precise", precise)
