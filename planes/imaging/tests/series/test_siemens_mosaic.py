"""Tiles of a Siemens mosaic: how many, where, when; and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging.phantoms import FAULTS, Phantom
from numbat_imaging.phantoms.vendor_forms import (
    AXIAL,
    SAGITTAL,
    acquisition_times_ms,
    mosaics,
)
from numbat_imaging.series.forms.siemens_mosaic import mosaic_tiles
from numbat_imaging.series.forms.tiles import Tile, Window
from numbat_registries import Refusal


def _tiles(ds: Dataset, **options: object) -> tuple[Tile, ...] | None:
    return mosaic_tiles(ds, rows=int(ds.Rows), columns=int(ds.Columns), **options)  # type: ignore[arg-type]


def _positions(tiles: tuple[Tile, ...] | None) -> np.ndarray:
    return np.array([tile.position_lps_mm for tile in tiles or ()])


def _code(ds: Dataset, **options: object) -> str:
    with pytest.raises(Refusal) as caught:
        _tiles(ds, **options)
    return caught.value.code


@st.composite
def phantoms(draw: st.DrawFn) -> Phantom:
    """Any plane, size, spacing and direction of the slices."""
    turn, tilt = draw(st.floats(0, 6.28)), draw(st.floats(-1.5, 1.5))
    row = np.array([np.cos(turn), np.sin(turn), 0.0])
    column = np.array([-np.sin(turn) * np.cos(tilt), np.cos(turn) * np.cos(tilt), np.sin(tilt)])
    step_mm = draw(st.floats(0.5, 12.0)) * draw(st.sampled_from([-1.0, 1.0]))
    rows, columns = draw(st.integers(2, 9)), draw(st.integers(2, 9))
    return replace(
        AXIAL,
        shape=(columns, rows, draw(st.integers(2, 20))),
        spacing_mm=(draw(st.floats(0.3, 4.0)), draw(st.floats(0.3, 4.0)), abs(step_mm)),
        orientation=(*row, *column),
        step_lps_mm=tuple(step_mm * np.cross(row, column)),
    )


@settings(max_examples=40, deadline=None)
@given(phantoms())
def test_every_tile_lies_where_its_slice_does(phantom: Phantom) -> None:
    tiles = _tiles(mosaics(phantom)[0])
    wanted = [[float(x) for x in ds.ImagePositionPatient] for ds in phantom.slices()]
    assert np.allclose(_positions(tiles), wanted, atol=1e-5)


def test_tiles_run_row_after_row_through_a_square() -> None:
    tiles = _tiles(mosaics(AXIAL)[0]) or ()
    assert [tile.window for tile in tiles][3:6] == [
        Window(0, 48, 12, 16),
        Window(12, 0, 12, 16),
        Window(12, 16, 12, 16),
    ]
    assert len(tiles) == 10


def test_times_count_from_the_earliest_slice() -> None:
    wanted = acquisition_times_ms(10)
    for start in (0.0, -1207.5, 63962500.0):
        ds = mosaics(
            AXIAL,
            entries=lambda image, _, start=start: image.update(
                MosaicRefAcqTimes=[str(start + t) for t in wanted]
            ),
        )[0]
        assert [tile.time_ms for tile in _tiles(ds) or ()] == pytest.approx(wanted)


@pytest.mark.parametrize("times", [["0", "1"], ["soon"] * 10, ["nan"] * 10, []])
def test_times_that_are_no_times_of_the_slices_are_left_out(times: list[str]) -> None:
    ds = mosaics(AXIAL, entries=lambda image, _: image.update(MosaicRefAcqTimes=times))[0]
    assert {tile.time_ms for tile in _tiles(ds) or ()} == {None}


def test_without_geometry_no_tile_has_a_place() -> None:
    for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"):
        ds = mosaics(AXIAL)[0]
        delattr(ds, keyword)
        assert {tile.position_lps_mm for tile in _tiles(ds) or ()} == {None}


def test_reversed_image_numbers_need_the_normal_and_the_protocol_in_agreement() -> None:
    """With ucImageNumb set, the mosaic begins at the last slice of the protocol."""
    down = replace(AXIAL, step_lps_mm=(0.0, 0.0, -2.0))
    up = replace(AXIAL, origin_lps_mm=tuple(np.array(AXIAL.origin_lps_mm) - (0.0, 0.0, 18.0)))
    other = mosaics(up)[0]
    ds = mosaics(down)[0]
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER")
    block[0x20].value = other.private_block(0x0029, "SIEMENS CSA HEADER")[0x20].value
    wanted = [[float(x) for x in one.ImagePositionPatient] for one in down.slices()]
    assert np.allclose(_positions(_tiles(ds)), wanted)


def test_a_volume_that_motion_correction_moved_keeps_its_own_place() -> None:
    ds = mosaics(SAGITTAL)[0]
    before = _positions(_tiles(ds))
    ds.ImagePositionPatient = [float(x) + 1.5 for x in ds.ImagePositionPatient]
    assert np.allclose(_positions(_tiles(ds)), before + 1.5)


def test_a_stack_of_another_length_than_the_protocol_is_refused() -> None:
    ds = mosaics(AXIAL)[0]
    ds.SpacingBetweenSlices = "2.1"
    assert _code(ds) == "IMG-1611"
    ds.SpacingBetweenSlices = "2.01"
    assert _tiles(ds) is not None


def test_a_damaged_protocol_is_one_witness_less() -> None:
    ds = mosaics(AXIAL)[0]
    element = ds.private_block(0x0029, "SIEMENS CSA HEADER")[0x20]
    element.value = element.value[:200]
    assert np.allclose(_positions(_tiles(ds))[0], AXIAL.origin_lps_mm)
    del ds.private_block(0x0029, "SIEMENS CSA HEADER")[0x20]
    assert _tiles(ds) is not None


@pytest.mark.parametrize("image_type", [["ORIGINAL", "PRIMARY", "M"], ["DERIVED", "SECONDARY"]])
def test_a_mosaic_is_one_whatever_it_is_called(image_type: list[str]) -> None:
    ds = mosaics(AXIAL)[0]
    ds.ImageType = image_type
    assert len(_tiles(ds) or ()) == 10


def test_a_plain_slice_needs_no_header_that_is_whole() -> None:
    ds = AXIAL.slices()[0]
    assert _tiles(ds) is None
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    block.add_new(0x10, "OB", b"SV10 is all that is left")
    assert _tiles(ds) is None
    ds.ImageType = ["ORIGINAL", "PRIMARY", "MOSAIC"]
    assert _code(ds) == "IMG-1606"


def test_the_word_alone_is_believed_only_where_tiles_have_room() -> None:
    ds = AXIAL.slices()[0]
    ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "MOSAIC"]
    assert _code(ds) == "IMG-1607"
    ds.AcquisitionMatrix = [0, 16, 12, 0]
    assert _tiles(ds) is None
    ds.AcquisitionMatrix = [0, 4, 4, 0]
    assert _code(ds) == "IMG-1607"
    ds.NumberOfFrames = 12
    assert _tiles(ds) is None


def test_an_enhanced_object_is_no_mosaic_whatever_it_says() -> None:
    ds = mosaics(AXIAL)[0]
    ds.PerFrameFunctionalGroupsSequence = [Dataset()]
    assert _tiles(ds) is None
    assert _tiles(ds, slices=10) is None


def test_one_image_in_a_mosaic_is_a_plain_slice() -> None:
    ds = mosaics(AXIAL, entries=lambda i, _: i.update(NumberOfImagesInMosaic=["1"]))[0]
    assert _tiles(ds) is None


@pytest.mark.parametrize("slices", [-1, 5000, 10**9])
def test_a_number_of_slices_that_no_mosaic_has_is_refused(slices: int) -> None:
    ds = FAULTS["mosaic-undeclared"].build()[0]
    assert _code(ds, slices=slices, direction="along-normal") == "IMG-1608"


@pytest.mark.parametrize("normal", [["0", "0", "0"], ["a", "b", "c"], ["nan", "0", "1"], ["1"]])
def test_a_normal_that_is_no_vector_leaves_the_protocol_to_tell(normal: list[str]) -> None:
    ds = mosaics(SAGITTAL, entries=lambda i, _: i.update(SliceNormalVector=normal))[0]
    wanted = [[float(x) for x in one.ImagePositionPatient] for one in SAGITTAL.slices()]
    assert np.allclose(_positions(_tiles(ds)), wanted)
