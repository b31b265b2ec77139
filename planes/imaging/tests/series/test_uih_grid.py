"""Tiles of a United Imaging grid: each at the place that its own item states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydicom import Dataset

from numbat_imaging.phantoms.vendor_forms import AXIAL, OBLIQUE, acquisition_times_ms, grids
from numbat_imaging.series.forms.tiles import Tile, Window
from numbat_imaging.series.forms.uih_grid import uih_tiles
from numbat_registries import Refusal


def _tiles(ds: Dataset) -> tuple[Tile, ...] | None:
    return uih_tiles(ds, rows=int(ds.Rows), columns=int(ds.Columns))


def _frames(ds: Dataset) -> list[Dataset]:
    return list(ds.private_block(0x0065, "Image Private Header")[0x51].value)


@pytest.mark.parametrize("slices", [1, 2, 5, 12, 16, 20])
def test_as_many_rows_of_tiles_as_they_need(slices: int) -> None:
    phantom = replace(OBLIQUE, shape=(6, 4, slices))
    tiles = _tiles(grids(phantom)[0]) or ()
    wanted = [[float(x) for x in ds.ImagePositionPatient] for ds in phantom.slices()]
    assert np.allclose([tile.position_lps_mm for tile in tiles], wanted)
    assert {(tile.window.rows, tile.window.columns) for tile in tiles} == {(4, 6)}


def test_ten_tiles_are_four_across_and_three_down() -> None:
    ds = grids(AXIAL)[0]
    assert (ds.Rows, ds.Columns) == (3 * 12, 4 * 16)
    assert (_tiles(ds) or ())[9].window == Window(24, 16, 12, 16)


def test_the_items_alone_may_tell_the_number() -> None:
    ds = grids(AXIAL)[0]
    del ds.private_block(0x0065, "Image Private Header")[0x50]
    assert len(_tiles(ds) or ()) == 10


def test_a_plain_slice_and_an_enhanced_object_are_no_grid() -> None:
    assert _tiles(AXIAL.slices()[0]) is None
    ds = grids(AXIAL)[0]
    ds.PerFrameFunctionalGroupsSequence = [Dataset()]
    assert _tiles(ds) is None


@pytest.mark.parametrize("count", ["0", "9", "10.5", "1e9"])
def test_a_number_that_the_items_do_not_have_is_refused(count: str) -> None:
    ds = grids(AXIAL)[0]
    ds.private_block(0x0065, "Image Private Header")[0x50].value = count
    with pytest.raises(Refusal) as caught:
        _tiles(ds)
    assert caught.value.code == "IMG-1613"


def test_times_run_over_midnight() -> None:
    ds = grids(AXIAL)[0]
    for frame, time_ms in zip(_frames(ds), acquisition_times_ms(10), strict=True):
        del frame.AcquisitionDateTime
        late = time_ms < 300
        frame.AcquisitionDate = "20200102" if late else "20200103"
        frame.AcquisitionTime = f"2359{59 + time_ms / 1000:09.6f}" if late else "000000.100000"
    tiles = _tiles(ds) or ()
    assert max(tile.time_ms or 0.0 for tile in tiles) == pytest.approx(1100.0)
    assert {tile.volume_time for tile in tiles} == {"20200102235959.000000"}


@pytest.mark.filterwarnings("ignore:Invalid value for VR DT")
@pytest.mark.parametrize("moment", [None, "", "soon", "2020", "20201399101112"])
def test_a_moment_that_is_none_leaves_all_times_out(moment: str | None) -> None:
    ds = grids(AXIAL)[0]
    _frames(ds)[4].AcquisitionDateTime = moment
    assert {(tile.time_ms, tile.volume_time) for tile in _tiles(ds) or ()} == {(None, None)}
