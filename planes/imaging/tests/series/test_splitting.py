"""What one series UID hides, key by key; whose images they are; what is doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset

from numbat_imaging import inspect, read_series, read_volumes
from numbat_imaging.phantoms import Phantom, derived_uid, write_datasets
from numbat_imaging.phantoms.phantom import get_pixels, set_pixels
from numbat_registries import Refusal

SMALL = Phantom(shape=(8, 6, 6))
TWO = replace(SMALL, volumes=2, fourth_axis="InstanceNumber")
Change = Callable[[Dataset], None]


def other_kernel(ds: Dataset) -> None:
    ds.ConvolutionKernel = "B60f"


def other_echo_number(ds: Dataset) -> None:
    ds.EchoNumbers = 2


def other_echo_time(ds: Dataset) -> None:
    ds.EchoTime = "4.92"


def other_image_type(ds: Dataset) -> None:
    ds.ImageType = ["ORIGINAL", "PRIMARY", "P"]


def other_frame_of_reference(ds: Dataset) -> None:
    ds.FrameOfReferenceUID = derived_uid("another place")


def other_matrix(ds: Dataset) -> None:
    plane = get_pixels(ds)[:5]
    ds.Rows = 5
    set_pixels(ds, plane)


def other_orientation(ds: Dataset) -> None:
    ds.ImageOrientationPatient = ["0.8", "0.6", "0", "-0.6", "0.8", "0"]


def inverted(ds: Dataset) -> None:
    ds.PhotometricInterpretation = "MONOCHROME1"


def ge_phase(ds: Dataset) -> None:
    ds.private_block(0x0043, "GEMS_PARM_01", create=True).add_new(0x2F, "SS", 1)


KEYS: tuple[tuple[str, Change], ...] = (
    ("reconstruction kernel", other_kernel),
    ("echo", other_echo_number),
    ("echo", other_echo_time),
    ("image type", other_image_type),
    ("frame of reference", other_frame_of_reference),
    ("matrix", other_matrix),
    ("orientation", other_orientation),
    ("colour", inverted),
    ("vendor image kind", ge_phase),
)


@pytest.mark.parametrize(("key", "change"), KEYS, ids=[change.__name__ for _, change in KEYS])
def test_each_key_alone_tells_two_stacks_apart(key: str, change: Change, tmp_path: Path) -> None:
    slices = TWO.slices()
    for ds in slices:
        ds.Manufacturer = "GE MEDICAL SYSTEMS"
    for ds in slices[6:]:
        change(ds)
    write_datasets(slices, tmp_path)
    volumes = read_volumes(tmp_path)
    assert [v.grid.slices for v in volumes] == [6, 6]
    assert {name for v in volumes for name, _ in v.key.differs_by} == {key}
    truth = {ds.SOPInstanceUID: get_pixels(ds) for ds in slices}
    for volume in volumes:
        for source in volume.sources:
            plane = volume.voxels[:, :, source.k].T
            np.testing.assert_array_equal(plane, truth[source.sop_instance_uid])


def test_the_order_of_files_changes_nothing(tmp_path: Path) -> None:
    slices = TWO.slices()
    for ds in slices[6:]:
        other_echo_time(ds)
    write_datasets(slices, tmp_path / "a")
    random.Random(3).shuffle(slices)
    write_datasets(slices, tmp_path / "b")
    for one, other in zip(read_volumes(tmp_path / "a"), read_volumes(tmp_path / "b"), strict=True):
        np.testing.assert_array_equal(one.voxels, other.voxels)
        np.testing.assert_array_equal(one.affine_lps_mm, other.affine_lps_mm)
        assert one.key == other.key


def test_one_place_in_two_frames_of_reference_is_two_volumes(tmp_path: Path) -> None:
    slices = [*SMALL.slices(), *replace(SMALL, series="series 2").slices()]
    for ds in slices[6:]:
        ds.SeriesInstanceUID = slices[0].SeriesInstanceUID
        other_frame_of_reference(ds)
    write_datasets(slices, tmp_path)
    assert len(read_volumes(tmp_path)) == 2


def refused(slices: list[Dataset], folder: Path) -> str:
    write_datasets(slices, folder)
    with pytest.raises(Refusal) as caught:
        read_series(folder)
    return caught.value.code


@pytest.mark.parametrize("element", ["PatientID", "PatientName", "PatientBirthDate"])
def test_any_difference_between_patients_is_refused(element: str, tmp_path: Path) -> None:
    slices = SMALL.slices()
    setattr(slices[3], element, "19991231" if element == "PatientBirthDate" else "Other")
    assert refused(slices, tmp_path) == "IMG-1101"


def test_one_spelling_of_a_name_is_one_patient(tmp_path: Path) -> None:
    slices = SMALL.slices()
    slices[3].PatientName = "PHANTOM^ONE "
    write_datasets(slices, tmp_path)
    assert read_series(tmp_path).grid.slices == 6


def duplicate(slices: list[Dataset], index: int) -> Dataset:
    extra = Phantom(shape=(8, 6, 6)).slices()[index]
    extra.SOPInstanceUID = derived_uid("twin", index)
    extra.file_meta.MediaStorageSOPInstanceUID = extra.SOPInstanceUID
    return extra


def test_a_twin_is_set_aside_and_named(tmp_path: Path) -> None:
    slices = SMALL.slices()
    write_datasets([*slices, duplicate(slices, 2)], tmp_path)
    volume = read_series(tmp_path)
    assert volume.grid.slices == 6
    assert [why.code for _, why in volume.aside] == ["IMG-1105"]


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: setattr(ds, "TemporalPositionIdentifier", 2),
        lambda ds: setattr(ds, "ImagePositionPatient", ["1", "2", "34.125"]),
        lambda ds: setattr(ds, "TriggerTime", "400"),
    ],
    ids=["another time", "another place in the plane", "another trigger"],
)
def test_equal_pixels_alone_make_no_twin(change: Change, tmp_path: Path) -> None:
    """Two blank images of two moments are two images: dropping one would hide the second."""
    slices = SMALL.slices()
    extra = duplicate(slices, 2)
    change(extra)
    assert refused([*slices, extra], tmp_path) == "IMG-1301"


def test_a_localizer_is_a_stack_of_its_own(tmp_path: Path) -> None:
    slices = SMALL.slices()
    for index, cosines in enumerate(([1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, -1], [1, 0, 0, 0, 0, -1])):
        slices[index].ImageOrientationPatient = cosines
    write_datasets(slices[:3], tmp_path)
    found = inspect(tmp_path)
    assert sorted(stack.images for stack in found.stacks) == [1, 1, 1]
    assert len({stack.name for stack in found.stacks}) == 3
