"""Tables of a Modality LUT, from the data set alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging.values.modality_lut import displayed_scale
from numbat_registries import Refusal


def with_table(descriptor: list[int], data: bytes, *, signed: bool = False) -> Dataset:
    ds, item = Dataset(), Dataset()
    ds.PixelRepresentation = int(signed)
    item.add_new("LUTDescriptor", "US", descriptor)
    item.add_new("LUTData", "OW", data)
    item.ModalityLUTType = "HU"
    ds.ModalityLUTSequence = [item]
    return ds


@given(
    first=st.integers(-0x8000, 0x7FFF),
    entries=st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=40),
    stored=st.lists(st.integers(-0x8000, 0x7FFF), min_size=1, max_size=20),
)
def test_every_stored_value_finds_its_entry(
    first: int, entries: list[int], stored: list[int]
) -> None:
    data = np.array(entries, "<u2").tobytes()
    scale = displayed_scale(
        with_table([len(entries), first & 0xFFFF, 16], data, signed=True), file="a"
    )
    assert scale is not None
    assert scale.unit == "HU"
    truth = [entries[min(max(value - first, 0), len(entries) - 1)] for value in stored]
    np.testing.assert_array_equal(scale.apply(np.array(stored, "int16")), truth)


@given(
    count=st.integers(0, 33) | st.integers(0, 0xFFFF),
    bits=st.sampled_from([0, 7, 8, 9, 12, 16, 17]),
    data=st.binary(max_size=64),
)
def test_a_table_is_whole_or_refused(count: int, bits: int, data: bytes) -> None:
    if len(data) % 2:
        data = data[:-1]
    ds = with_table([count, 0, bits], data)
    whole = (count or 0x10000) * 2 == len(data) and 8 <= bits <= 16
    packed = bits == 8 and count > 0 and count + count % 2 == len(data)
    if not (packed or (whole and max(np.frombuffer(data, "<u2"), default=0) < 1 << bits)):
        with pytest.raises(Refusal) as caught:
            displayed_scale(ds, file="a")
        assert caught.value.code == "IMG-1508"
        return
    scale = displayed_scale(ds, file="a")
    assert scale is not None
    assert scale.table is not None
    assert len(scale.table.entries) == count


def test_tables_of_the_same_bytes_are_one_object() -> None:
    """A thousand slices hold their table once."""
    data = np.arange(256, dtype="<u2").tobytes()
    scales = [displayed_scale(with_table([256, 0, 16], data), file=name) for name in "ab"]
    assert scales[0] is not None
    assert scales[1] is not None
    assert scales[0].table is scales[1].table


@pytest.mark.parametrize("kind", ["US", "unspecified"])
def test_a_table_without_a_unit_has_none(kind: str) -> None:
    ds = with_table([2, 0, 16], bytes(4))
    ds.ModalityLUTSequence[0].ModalityLUTType = kind
    ds.Modality, ds.ImageType = "CT", ["ORIGINAL", "PRIMARY", "AXIAL"]
    scale = displayed_scale(ds, file="a")
    assert scale is not None
    assert scale.unit is None


def test_a_sequence_that_is_there_and_empty_states_nothing() -> None:
    ds = Dataset()
    ds.ModalityLUTSequence = []
    assert displayed_scale(ds, file="a") is None
