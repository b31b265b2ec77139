"""Pixel padding: a mask beside the values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging import read_series
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.values.padding import PaddingWatch, padding_of

SMALL = Phantom(shape=(8, 6, 4))


@given(st.integers(-0x8000, 0x7FFF))
def test_either_vr_names_the_same_padding_of_signed_pixels(value: int) -> None:
    for vr, written in (("SS", value), ("US", value & 0xFFFF)):
        ds = Dataset()
        ds.PixelRepresentation = 1
        ds.add_new("PixelPaddingValue", vr, written)
        assert padding_of(ds) == (value, value)


def test_a_masked_array_leaves_padding_out(tmp_path: Path) -> None:
    slices = replace(SMALL, slope=2.0, intercept=1.0).slices()
    for ds in slices:
        ds.PixelPaddingValue, ds.PixelPaddingRangeLimit = 0, 47
    write_datasets(slices, tmp_path)
    volume = read_series(tmp_path)
    values = np.ma.masked_array(volume.values(), volume.padding_mask())
    assert values.min() == 48 * 2.0 + 1.0
    assert values[:, :, 0].count() == 0


def test_slices_that_share_their_padding_keep_no_mask() -> None:
    watch = PaddingWatch([(0, 0)] * 3, (2, 2), keep=False)
    assert watch.shared == (0, 0)
    assert watch.mask is None


def test_a_stack_without_padding_has_nothing_to_tell() -> None:
    watch = PaddingWatch([None, None], (2, 2), keep=True)
    assert watch.look(0, np.zeros((2, 2))) is None
    assert (watch.shared, watch.mask, watch.notices()) == (None, None, [])


def test_an_index_into_a_palette_is_no_padding() -> None:
    """A palette's volume holds colours, among which no stored value can be looked up."""
    ds = Dataset()
    ds.PixelPaddingValue = 3
    assert padding_of(ds) == (3, 3)
    ds.PhotometricInterpretation = "PALETTE COLOR"
    assert padding_of(ds) is None
