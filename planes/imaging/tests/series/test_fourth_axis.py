"""The fourth axis: only what the files state, in the order that they state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset

from numbat_imaging import Volume, read_series
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.modalities import gradient_direction
from numbat_imaging.series.fourth_axis import clock_s
from numbat_registries import Refusal

FOUR = Phantom(shape=(6, 5, 4), volumes=4)
UNNAMED = replace(FOUR, fourth_axis="InstanceNumber")


def read(slices: list[Dataset], folder: Path, fourth_axis: str | None = None) -> Volume:
    write_datasets(slices, folder)
    return read_series(folder, fourth_axis=fourth_axis)


def refused(slices: list[Dataset], folder: Path, fourth_axis: str | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(slices, folder, fourth_axis)
    return caught.value


@pytest.mark.parametrize(
    ("element", "name", "unit", "values"),
    [
        ("TemporalPositionIdentifier", "time", "", (1, 2, 3, 4)),
        ("AcquisitionNumber", "acquisition", "", (1, 2, 3, 4)),
        ("TriggerTime", "cardiac-phase", "ms", (0, 40, 80, 120)),
        ("AcquisitionTime", "time", "s", (0, 2, 4, 6)),
    ],
)
def test_each_key_names_the_axis(
    element: str, name: str, unit: str, values: tuple[float, ...], tmp_path: Path
) -> None:
    phantom = replace(FOUR, fourth_axis=element)
    volume = read(phantom.slices()[::-1], tmp_path)
    assert volume.fourth_axis is not None
    assert (volume.fourth_axis.name, volume.fourth_axis.unit) == (name, unit)
    assert volume.fourth_axis.values == values
    np.testing.assert_array_equal(volume.voxels, phantom.truth_voxels())


def diffusion(repeats: bool) -> list[Dataset]:
    slices = UNNAMED.slices()
    for index, ds in enumerate(slices):
        t = index // 4
        weighted = t in (1, 3) if repeats else t > 0
        ds.DiffusionBValue = 1000.0 if weighted else 0.0
        ds.DiffusionDirectionality = "DIRECTIONAL" if weighted else "NONE"
        if weighted:
            ds.DiffusionGradientOrientation = list(gradient_direction(t))
    return slices


def test_diffusion_keeps_its_order_of_acquisition(tmp_path: Path) -> None:
    volume = read(diffusion(repeats=False), tmp_path)
    assert volume.fourth_axis is not None
    assert volume.fourth_axis.values == (0, 1000, 1000, 1000)
    assert volume.diffusion is not None
    for t in (1, 2, 3):
        np.testing.assert_allclose(volume.diffusion[t].direction_lps, gradient_direction(t))
    np.testing.assert_array_equal(volume.voxels, UNNAMED.truth_voxels())


@pytest.mark.parametrize("asked", [None, "diffusion"])
def test_repeated_b0_volumes_need_a_second_key(asked: str | None, tmp_path: Path) -> None:
    slices = diffusion(repeats=True)
    assert refused(slices, tmp_path / "a", asked).code in ("IMG-1302", "IMG-1304")
    for index, ds in enumerate(slices):
        # Cycles within the stack, as scanners number them; no key alone names the volumes.
        ds.AcquisitionNumber = index // 4 // 2 + 1
    volume = read(slices, tmp_path / "b", asked)
    assert volume.fourth_axis is not None
    assert volume.fourth_axis.name == "diffusion"
    assert volume.fourth_axis.values == (0, 1000, 0, 1000)
    np.testing.assert_array_equal(volume.voxels, UNNAMED.truth_voxels())


def test_time_positions_that_restart_name_nothing(tmp_path: Path) -> None:
    slices = FOUR.slices()
    for index, ds in enumerate(slices):
        t = index // 4
        ds.TemporalPositionIdentifier, ds.AcquisitionNumber = t % 2 + 1, t // 2 + 1
        ds.NumberOfTemporalPositions = 2
    caught = refused(slices, tmp_path)
    assert caught.code == "IMG-1315"
    assert caught.diagnostic.fields["sizes"] == [2, 2]


@pytest.mark.parametrize("value", ["time", "b-value", "direction"])
def test_a_volume_of_two_states_is_refused(value: str, tmp_path: Path) -> None:
    slices = replace(FOUR, volumes=1).slices()
    for index, ds in enumerate(slices):
        if value == "time":
            ds.TemporalPositionIdentifier = index % 2 + 1
        else:
            ds.DiffusionBValue = 1000.0 * (index % 2 if value == "b-value" else 1)
            ds.DiffusionDirectionality = "DIRECTIONAL"
            ds.DiffusionGradientOrientation = [1.0, 0, 0] if index % 2 else [0, 1.0, 0]
    caught = refused(slices, tmp_path)
    assert caught.code == "IMG-1307"
    assert caught.diagnostic.fields["images_of_each"] == [2, 2]


def test_slices_of_two_weightings_in_one_acquisition_are_refused(tmp_path: Path) -> None:
    """AcquisitionNumber alone would name the axis; the gradient of the first slice would lie."""
    slices = replace(FOUR, fourth_axis="AcquisitionNumber").slices()
    for index, ds in enumerate(slices):
        ds.DiffusionBValue = 500.0 * (index % 2)
        ds.DiffusionDirectionality = "ISOTROPIC"
    assert refused(slices, tmp_path).code == "IMG-1307"


def test_a_scan_over_midnight_stays_in_order(tmp_path: Path) -> None:
    slices = replace(FOUR, fourth_axis="AcquisitionTime").slices()
    clocks = [
        ("20200102", "235958"),
        ("20200102", "235959.5"),
        ("20200103", "000001"),
        ("20200103", "000002.5"),
    ]
    for index, ds in enumerate(slices):
        ds.AcquisitionDate, ds.AcquisitionTime = clocks[index // 4]
    volume = read(slices, tmp_path)
    assert volume.fourth_axis is not None
    assert volume.fourth_axis.values == (0.0, 1.5, 3.0, 4.5)
    np.testing.assert_array_equal(volume.voxels, FOUR.truth_voxels())


@pytest.mark.parametrize("layout", ["volume by volume", "position by position"])
def test_instance_numbers_are_believed_only_when_asked(layout: str, tmp_path: Path) -> None:
    slices = UNNAMED.slices()
    if layout == "position by position":
        for index, ds in enumerate(slices):
            t, k = divmod(index, 4)
            ds.InstanceNumber = 1 + k * 4 + t
    first = refused(slices, tmp_path / "a")
    assert first.code == "IMG-1302"
    assert first.diagnostic.fields["instance_numbers_cycle"] is True
    volume = read(slices, tmp_path / "b", "instance-order")
    assert volume.fourth_axis is not None
    assert volume.fourth_axis.name == "instance-order"
    assert "IMG-1305" in [diagnostic.code for diagnostic in volume.notices]
    np.testing.assert_array_equal(volume.voxels, UNNAMED.truth_voxels())


def test_instance_numbers_in_no_cycle_are_no_evidence(tmp_path: Path) -> None:
    slices = UNNAMED.slices()
    slices[1].InstanceNumber, slices[6].InstanceNumber = 7, 2
    assert refused(slices, tmp_path, "instance-order").code == "IMG-1302"


def test_ragged_volumes_are_refused(tmp_path: Path) -> None:
    caught = refused(FOUR.slices()[:-1], tmp_path)
    assert caught.code == "IMG-1303"
    assert caught.diagnostic.fields["missing_images"] == 1


def test_an_axis_that_the_files_lack_is_refused(tmp_path: Path) -> None:
    assert refused(FOUR.slices(), tmp_path, "cardiac-phase").code == "IMG-1304"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("101112.25", 36672.25),
        ("1011", 36660.0),
        ("10", 36000.0),
        ("20000101000001", 1.0),
        ("20000102000001.5+0100", 86401.5),
        ("20001301000001", None),
        ("ten", None),
        ("", None),
        (None, None),
    ],
)
def test_clock_values(text: str | None, seconds: float | None) -> None:
    assert clock_s(text) == seconds
