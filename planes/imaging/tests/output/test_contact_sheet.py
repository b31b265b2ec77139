"""The contact sheet: true proportions, each slice at its place, and nobody's name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pydicom import Dataset

from numbat_imaging.output import contact_sheet as sheets
from numbat_imaging.output.contact_sheet import contact_sheet
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.values.pixels import RGB
from numbat_imaging.volume import Volume

MakeVolume = Callable[..., Volume]


def _tiles(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> tuple[list[sheets.Tile], str]:
    seen: list[tuple[list[sheets.Tile], str]] = []
    drawn = sheets._drawn

    def spy(rows: list[list[sheets.Tile]], title: str) -> object:
        seen.append(([tile for row in rows for tile in row], title))
        return drawn(rows, title)

    monkeypatch.setattr(sheets, "_drawn", spy)
    image = contact_sheet(volume)
    assert image.width > 100
    return seen[0]


def test_slices_have_true_proportions(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = make_volume(np.zeros((20, 10, 3), np.int16), spacing_mm=(1.0, 4.0, 2.0))
    tiles, _ = _tiles(volume, monkeypatch)
    assert tiles[0].pixels.shape == (180, 90)
    assert [tile.caption for tile in tiles[:3]] == ["k 0", "k 1", "k 2"]
    side = tiles[3]
    assert side.pixels.shape[1] / side.pixels.shape[0] == pytest.approx(20 / 6, rel=0.02)


def test_edges_name_the_patient_direction(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles, title = _tiles(make_volume(), monkeypatch)
    first, side_i, side_j = tiles[0], tiles[-2], tiles[-1]
    assert (first.left, first.right, first.top, first.bottom) == ("R", "L", "A", "P")
    assert (side_i.left, side_i.right, side_i.top, side_i.bottom) == ("R", "L", "S", "I")
    assert (side_j.left, side_j.right, side_j.top, side_j.bottom) == ("A", "P", "S", "I")
    assert "axial" in title
    sagittal = np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    tiles, title = _tiles(make_volume(axes=sagittal), monkeypatch)
    assert (tiles[0].left, tiles[0].right) == ("A", "P")
    assert (tiles[0].top, tiles[0].bottom) == ("S", "I")
    assert "sagittal" in title


def test_pixels_are_where_the_image_has_them(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    voxels = np.zeros((40, 40, 2), np.int16)
    voxels[:20, 20:, 1] = 100  # left half, lower half, upper slice
    tiles, _ = _tiles(make_volume(voxels), monkeypatch)
    low, high = tiles[0].pixels, tiles[1].pixels
    assert low.max() == 0
    assert (high[150, 30], high[30, 30], high[150, 150]) == (255, 0, 0)
    from_the_side = tiles[2].pixels  # row 20, seen from the back: upper slice on top
    assert from_the_side[0, 20] == 255
    assert from_the_side[-1, 20] == 0


def test_a_sheared_stack_looks_sheared(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    voxels = np.full((10, 20, 30), 100, np.int16)
    voxels[0] = 0
    square, _ = _tiles(make_volume(voxels), monkeypatch)
    tiles, title = _tiles(make_volume(voxels, slide_mm=(0.0, 1.0)), monkeypatch)
    assert "sheared 26.6°" in title
    side = tiles[-1].pixels
    paper = sheets._PAPER[0]
    assert side.shape[1] / side.shape[0] == pytest.approx(49 / 60, rel=0.02)
    # The last slice, on top, has slid furthest along j.
    assert side[0, 0] == paper
    assert side[-1, 0] != paper
    assert side[0, -1] != paper
    assert square[-1].pixels.shape[1] / square[-1].pixels.shape[0] == pytest.approx(
        20 / 60, rel=0.02
    )


def test_the_window_is_the_headers_where_it_meets_the_data(make_volume: MakeVolume) -> None:
    voxels = np.arange(1000, dtype=np.int16).reshape(10, 10, 10)
    header = Dataset()
    header.WindowCenter, header.WindowWidth = ["40", "400"], ["80", "2000"]
    volume = make_volume(voxels, header=header)
    assert sheets.grey_window(volume) == (0.0, 80.0)
    header.WindowCenter = "-5000"
    low, high = sheets.grey_window(volume)
    assert 0 <= low < 60
    assert 900 < high <= 999
    assert sheets.grey_window(make_volume(np.full((4, 4, 4), 7, np.int16))) == (7.0, 8.0)
    assert sheets.grey_window(make_volume(voxels, slope=2.0, intercept=-1000.0))[0] < -900


def test_monochrome1_is_shown_dark_for_high(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    voxels = np.zeros((8, 8, 1), np.int16)
    voxels[:4] = 100
    header = Dataset()
    header.PhotometricInterpretation = "MONOCHROME1"
    tiles, _ = _tiles(make_volume(voxels, header=header), monkeypatch)
    assert (tiles[0].pixels[90, 10], tiles[0].pixels[90, 170]) == (0, 255)


def test_colour_and_many_volumes(make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch) -> None:
    voxels = np.zeros((8, 8, 2), RGB)
    voxels["R"] = 200
    tiles, title = _tiles(make_volume(voxels), monkeypatch)
    assert tiles[0].pixels[50, 50].tolist() == [200, 0, 0]
    assert "window" not in title
    series = np.zeros((4, 4, 3, 40), np.int16)
    axis = FourthAxis("time", tuple(map(float, range(40))), "s")
    tiles, _ = _tiles(make_volume(series, fourth_axis=axis), monkeypatch)
    captions = [tile.caption for tile in tiles]
    assert captions.count("k 1") == 1
    assert captions[-1] == "k 1, volume 39"


def test_no_more_slices_than_asked_and_first_and_last_among_them(
    make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles, _ = _tiles(make_volume(np.zeros((4, 4, 300), np.uint8)), monkeypatch)
    slices = [tile.caption for tile in tiles if tile.caption.startswith("k ")]
    assert len(slices) == 20
    assert (slices[0], slices[-1]) == ("k 0", "k 299")


def test_the_title_names_nobody(make_volume: MakeVolume, monkeypatch: pytest.MonkeyPatch) -> None:
    header = Dataset()
    header.PatientName, header.PatientID = "Planted^Name", "PLANTED"
    header.SeriesDescription = "planted text"
    _, title = _tiles(make_volume(header=header), monkeypatch)
    assert "lanted" not in title
    assert "a test" not in title
