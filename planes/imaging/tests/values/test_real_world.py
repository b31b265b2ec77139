"""Real-world maps, from the data set alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging.phantoms.value_faults import real_world_item
from numbat_imaging.values.real_world import real_world_scales
from numbat_imaging.values.scales import Scale, Unreadable


def the_map(item: Dataset, *, signed: bool | None = False) -> Scale | Unreadable:
    ds = Dataset()
    if signed is not None:
        ds.PixelRepresentation = int(signed)
    ds.RealWorldValueMappingSequence = [item]
    (found,) = real_world_scales(ds, file="a")
    return found


@given(first=st.integers(-0x8000, 0x7FFF), length=st.integers(0, 300), signed=st.booleans())
def test_the_range_has_the_sign_of_the_pixels(first: int, length: int, signed: bool) -> None:
    low = first if signed else first + 0x8000
    last = min(low + length, 0x7FFF if signed else 0xFFFF)
    found = the_map(real_world_item("M", "s", (low, last), line=(2.0, 1.0)), signed=signed)
    assert isinstance(found, Scale)
    assert found.mapped == (low, last)


def test_first_and_last_may_be_written_with_different_vrs() -> None:
    """dcmqi writes First as SS and Last as US."""
    item = real_world_item("M", "s", (0, 40000), line=(2.0, 1.0))
    item.add_new("RealWorldValueFirstValueMapped", "SS", 0)
    found = the_map(item)
    assert isinstance(found, Scale)
    assert found.mapped == (0, 40000)


def test_floating_point_pixels_have_ranges_without_a_sign() -> None:
    found = the_map(real_world_item("M", "1", (-0.5, 1.5), line=(1.0, 0.0), vr="FD"), signed=None)
    assert isinstance(found, Scale)
    assert found.mapped == (-0.5, 1.5)
    assert found.unit is None


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_slope_that_is_no_number_is_unreadable(value: str) -> None:
    item = real_world_item("M", "s", (0, 9), line=(float(value), 0.0))
    found = the_map(item)
    assert isinstance(found, Unreadable)
    assert found.why.code == "IMG-1012"


def test_a_sequence_that_is_none_is_unreadable() -> None:
    ds = Dataset()
    ds.add_new(0x00409096, "LO", "no sequence")
    (found,) = real_world_scales(ds, file="a")
    assert isinstance(found, Unreadable)


def test_a_table_is_looked_up_from_its_first_value() -> None:
    found = the_map(real_world_item("M", "s", (5, 7), table=[0.5, 1.5, 2.5]))
    assert isinstance(found, Scale)
    np.testing.assert_array_equal(found.apply(np.array([7, 5], "u2")), [2.5, 0.5])
