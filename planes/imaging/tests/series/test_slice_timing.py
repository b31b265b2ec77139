"""When slices were acquired: majority, contradiction, units, and the order of a protocol."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging.phantoms.reading import instance_of_fault
from numbat_imaging.phantoms.timing import SCANS, read_timed
from numbat_imaging.series.instance import Instance
from numbat_imaging.series.slice_clock import slice_clock_ms
from numbat_imaging.series.slice_order import SliceOrder, ge_protocol, pause_ms, slice_order
from numbat_imaging.series.slice_timing import SAME_MS, stack_timing


def _header(**values: object) -> Dataset:
    ds = Dataset()
    ds.Modality, ds.MRAcquisitionType, ds.RepetitionTime = "MR", "2D", "2000"
    for keyword, value in values.items():
        setattr(ds, keyword, value)
    return ds


def _tiles(*volumes: list[float | None]) -> list[list[Instance]]:
    first = instance_of_fault("clean")
    return [
        [replace(first, form="Siemens mosaic", slice_time_ms=time) for time in times]
        for times in volumes
    ]


@pytest.mark.parametrize("name", SCANS)
def test_every_scan_of_the_phantom(name: str) -> None:
    scan = SCANS[name]
    volume = read_timed(name)
    times = volume.timing.slice_times_s
    if scan.slice_times_s is None:
        assert times is None
    else:
        assert times == pytest.approx(scan.slice_times_s, abs=1e-6)
    told = [d.code for d in volume.notices if d.code in ("IMG-1709", "IMG-1710", "IMG-1711")]
    assert told == ([scan.code] if scan.code else [])


def test_times_count_from_the_earliest() -> None:
    timing, said = stack_timing(_tiles([700.0, 500.0, 600.0]), _header(), axis=None)
    assert timing.slice_times_s == (0.2, 0.0, 0.1)
    assert timing.source == "the times of the tiles of a Siemens mosaic"
    assert said == ()


def test_the_volumes_that_differ_are_named() -> None:
    usual, other, silent = [0.0, 100.0, 50.0], [0.0, 50.0, 100.0], [0.0, None, 50.0]
    timing, said = stack_timing(_tiles(other, usual, usual, silent, usual), _header(), axis="time")
    assert timing.slice_times_s == (0.0, 0.1, 0.05)
    assert [d.code for d in said] == ["IMG-1709"]
    assert said[0].fields["volumes"] == [0, 3]
    assert said[0].fields["of"] == 5


def test_half_of_the_volumes_is_no_majority() -> None:
    one, other = [0.0, 100.0, 50.0], [0.0, 50.0, 100.0]
    timing, said = stack_timing(_tiles(one, one, other, other), _header(), axis="time")
    assert timing.slice_times_s is None
    assert [d.code for d in said] == ["IMG-1710"]
    assert "most volumes" in said[0].fields["reasons"][0]


def test_rounding_is_no_difference() -> None:
    near = [0.0, 100.0 + SAME_MS / 2, 50.0]
    timing, said = stack_timing(_tiles([0.0, 100.0, 50.0], near), _header(), axis="time")
    assert timing.slice_times_s == (0.0, 0.1, 0.05)
    assert said == ()


def test_a_volume_as_long_as_repetition_time_is_no_volume() -> None:
    timing, said = stack_timing(_tiles([0.0, 2000.0]), _header(), axis=None)
    assert timing.slice_times_s is None
    assert "2000 ms" in said[0].fields["reasons"][0]
    timing, said = stack_timing(_tiles([0.0, 1999.0]), _header(), axis=None)
    assert timing.slice_times_s == (0.0, 1.999)


@pytest.mark.parametrize(
    ("header", "axis"),
    [
        (_header(MRAcquisitionType="3D"), "time"),
        (_header(Modality="CT"), "time"),
        (_header(), "cardiac-phase"),
    ],
)
def test_where_slices_have_no_times(header: Dataset, axis: str) -> None:
    timing, said = stack_timing(_tiles([0.0, 100.0], [0.0, 100.0]), header, axis=axis)
    assert timing.slice_times_s is None
    assert said == ()


def test_times_that_are_all_the_same_say_nothing() -> None:
    timing, said = stack_timing(_tiles([5.0, 5.0], [5.0, 5.0]), _header(), axis="time")
    assert timing.slice_times_s is None
    assert said == ()


def test_an_unreadable_repetition_time_limits_nothing() -> None:
    timing, _ = stack_timing(_tiles([0.0, 9000.0]), _header(RepetitionTime="NaN"), axis=None)
    assert timing.slice_times_s == (0.0, 9.0)


@pytest.mark.parametrize(
    ("order", "slices", "expected"),
    [
        ("ascending", 4, (0, 450, 900, 1350)),
        ("descending", 4, (1350, 900, 450, 0)),
        ("odd first", 5, (0, 1080, 360, 1440, 720)),
        ("even first", 4, (900, 0, 1350, 450)),
    ],
)
def test_orders(order: str, slices: int, expected: tuple[float, ...]) -> None:
    found = SliceOrder(order, 200.0, "test").times_ms(slices, 2000.0)  # type: ignore[arg-type]
    assert found == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["ascending", "descending", "odd first", "even first"]), st.integers(1, 90))
def test_every_slice_has_a_moment_of_its_own(order: str, slices: int) -> None:
    times = SliceOrder(order, 0.0, "test").times_ms(slices, 1000.0)  # type: ignore[arg-type]
    assert sorted(times) == pytest.approx([1000.0 * n / slices for n in range(slices)])


def _ge(content: bytes) -> Dataset:
    ds = _header(Manufacturer="GE MEDICAL SYSTEMS")
    ds.private_block(0x0025, "GEMS_SERS_01", create=True).add_new(0x1B, "OB", content)
    return ds


def test_a_ge_protocol() -> None:
    ds = _ge(b"\x00\x01\x02\x03" + gzip.compress(b'IOPT "EPI, FMRI"\nNOSLC "3"\nSLICEORDER "0"\n'))
    assert ge_protocol(ds)["NOSLC"] == "3"
    order = slice_order(ds, slices=3)
    assert order is not None
    assert order.order == "ascending"
    assert slice_order(ds, slices=4) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"x" * 4000)[:-9], gzip.compress(b"\0" * (2 << 20))],
    ids=["empty", "not gzip", "cut short", "endless"],  # A packed content holds the time of day.
)
def test_a_damaged_or_endless_ge_protocol_says_nothing(content: bytes) -> None:
    assert ge_protocol(_ge(content)) == {}


def test_without_a_protocol_there_is_no_order() -> None:
    assert slice_order(_header(), slices=3) is None
    assert pause_ms(_header()) is None


def test_the_pause_of_a_siemens_protocol() -> None:
    from numbat_imaging.output.sidecar import sidecar

    body = sidecar(read_timed("mosaics"))
    assert (body["RepetitionTime"], body["DelayTime"]) == (2, 0.5)


def test_private_clocks() -> None:
    ge = _header(Manufacturer="GE MEDICAL SYSTEMS")
    ge.private_block(0x0021, "GEMS_RELA_01", create=True).add_new(0x5E, "DS", "1.25")
    assert slice_clock_ms(ge) == 1250.0
    siemens = _header(Manufacturer="Siemens Healthineers")
    siemens.private_block(0x0021, "SIEMENS MR SDI 02", create=True).add_new(0x04, "DS", "0.5")
    assert slice_clock_ms(siemens) == 500.0
    siemens.Manufacturer = "NUMBAT"
    assert slice_clock_ms(siemens) is None
    ge.Modality = "CT"
    assert slice_clock_ms(ge) is None
