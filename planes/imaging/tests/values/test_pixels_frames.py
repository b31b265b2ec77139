"""Slices of one file: frames, windows, colours and digests through the public door."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numbat_imaging.phantoms import Phantom, encapsulation, pixel_catalogue, write_datasets
from numbat_imaging.phantoms.reading import folder_of_fault, instance_of_fault, read_fault
from numbat_imaging.series.forms.tiles import Window
from numbat_imaging.values.pixels import (
    check_present,
    plane_digests,
    read_pixels,
    read_planes,
    stored_dtype,
)
from numbat_registries import Refusal

FRAMES = pixel_catalogue.FRAMES


@pytest.mark.parametrize("name", ["enhanced-clean", "enhanced-rle", "frames-jpeg-2000"])
def test_planes_come_in_any_order_and_by_window(name: str) -> None:
    first = instance_of_fault(name)
    truth = read_pixels(min(folder_of_fault(name).iterdir()))
    window = Window(row=2, column=3, rows=4, columns=5)
    slices = [
        replace(first, frame=5),
        replace(first, frame=0, window=window),
        replace(first, frame=5, window=replace(window, row=0)),
        replace(first, frame=2),
    ]
    planes = [np.empty((s.rows, s.columns), stored_dtype(s.pixels)) for s in slices]
    read_planes(slices, planes)
    np.testing.assert_array_equal(planes[0], truth[5])
    np.testing.assert_array_equal(planes[1], truth[0, 2:6, 3:8])
    np.testing.assert_array_equal(planes[2], truth[5, 0:4, 3:8])
    np.testing.assert_array_equal(planes[3], truth[2])
    wide = np.empty((first.rows, first.columns), np.float64)
    read_planes([replace(first, frame=3)], [wide])
    np.testing.assert_array_equal(wide, truth[3])


def test_no_slices_of_no_file_are_no_work() -> None:
    read_planes([], [])
    check_present([])
    assert plane_digests([]) == []


def test_digests_tell_slices_apart_and_copies_together() -> None:
    first = instance_of_fault("frames-jpeg-ls")
    digests = plane_digests([replace(first, frame=k) for k in (3, 0, 3)])
    assert digests[0] == digests[2] != digests[1]
    plain = instance_of_fault("frames-uncompressed")
    assert plane_digests([replace(plain, frame=3)]) == digests[:1]


def test_stored_frames_and_their_limit() -> None:
    path = min(folder_of_fault("frames-deflated").iterdir())
    truth = np.moveaxis(FRAMES.truth_voxels(), (0, 1, 2), (2, 1, 0))
    np.testing.assert_array_equal(read_pixels(path), truth)
    with pytest.raises(Refusal) as caught:
        read_pixels(path, max_bytes=1000)
    assert caught.value.code == "IMG-1408"


def test_what_has_no_colours_is_not_shown_in_colour() -> None:
    with pytest.raises(Refusal) as caught:
        read_pixels(min(folder_of_fault("clean").iterdir()), rgb=True)
    assert caught.value.code == "IMG-1402"


def test_what_is_no_dicom_has_no_pixels(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no image")
    with pytest.raises(Refusal) as caught:
        read_pixels(path)
    assert caught.value.code == "IMG-1801"


def test_presence_is_told_without_decoding(tmp_path: Path) -> None:
    check_present([instance_of_fault("frames-jpeg-2000")])
    check_present([instance_of_fault("clean")])
    for name, code in (("frames-expanding", "IMG-1419"), ("frames-of-another-size", "IMG-1414")):
        with pytest.raises(Refusal) as caught:
            check_present([instance_of_fault(name)])
        assert caught.value.code == code
    instance = instance_of_fault("clean")
    cut = tmp_path / "cut"
    cut.write_bytes(Path(instance.ref.path).read_bytes()[:-10])
    with pytest.raises(Refusal) as caught:
        # As if it had been cut before its header was read.
        check_present([replace(instance, ref=replace(instance.ref, path=str(cut), seen=None))])
    assert caught.value.code == "IMG-1403"


def test_a_file_of_odd_frames_in_big_endian_words(tmp_path: Path) -> None:
    """Words pair the last pixel of one frame with the first of the next (PS3.5 A.3)."""
    truth = np.arange(3 * 15, dtype="u1").reshape(3, 3, 5)
    ds = Phantom(
        shape=(5, 3, 1), dtype="uint8", transfer_syntax_uid="1.2.840.10008.1.2.2"
    ).slices()[0]
    data = np.frombuffer(truth.tobytes() + b"\0", "u2").byteswap().tobytes()
    ds.NumberOfFrames, ds.PixelData = 3, data
    ds["PixelData"].VR = "OW"
    np.testing.assert_array_equal(read_pixels(write_datasets([ds], tmp_path)[0]), truth)


def test_volumes_of_colours_are_those_of_their_frames() -> None:
    voxels = read_fault("colours-jpeg").voxels
    shown = np.stack([voxels[name] for name in "RGB"], axis=-1)
    path = min(folder_of_fault("colours-jpeg").iterdir())
    np.testing.assert_array_equal(shown[:, :, 0].transpose(1, 0, 2), read_pixels(path, rgb=True))


def test_decoders_come_back_after_a_test_without_them() -> None:
    with encapsulation.without_decoders(encapsulation.JPEG_LS), pytest.raises(Refusal) as caught:
        read_fault("frames-jpeg-ls")
    assert caught.value.code == "IMG-1404"
    assert read_fault("frames-jpeg-ls").voxels.shape == FRAMES.shape
