"""Timing and phase encoding in the sidecar, in the axes of the written file."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from pydicom import Dataset

from numbat_imaging.output.sidecar import sidecar
from numbat_imaging.output.timing import clock_text
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms.timing import read_datasets
from numbat_imaging.series.phase_encoding import (
    Matrix,
    acceleration,
    acquired_lines,
    in_plane_axis,
    is_positive,
    total_readout_time_s,
)
from numbat_imaging.volume import Volume


def _volume(**values: Any) -> Volume:
    slices = Phantom(shape=(6, 4, 2)).slices()
    for ds in slices:
        for keyword, value in values.items():
            setattr(ds, keyword, value)
    return read_datasets(slices)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("101112", "10:11:12.000000"),
        ("101112.5", "10:11:12.500000"),
        ("20200102101112.25", "10:11:12.250000"),
        ("20200102101112.25+0100", "10:11:12.250000"),
        ("1011", None),
        ("noon", None),
        (None, None),
    ],
)
def test_clocks(stated: str | None, expected: str | None) -> None:
    assert clock_text(stated) == expected


@pytest.mark.parametrize(
    ("stated", "axis"), [("ROW", "ROW"), ("COL", "COL"), ("COLUMN", "COL"), ("OTHER", None)]
)
def test_the_axis_by_either_name(stated: str, axis: str | None) -> None:
    ds = Dataset()
    ds.InPlanePhaseEncodingDirection = stated
    assert in_plane_axis(ds) == axis
    assert in_plane_axis(Dataset()) is None


def test_lines_of_the_image_along_phase_encoding() -> None:
    along = sidecar(_volume(InPlanePhaseEncodingDirection="ROW", AcquisitionMatrix=[0, 5, 3, 0]))
    assert (along["ReconMatrixPE"], along["AcquisitionMatrixPE"]) == (6, 3)
    assert along["PhaseEncodingAxis"] == "i"
    down = sidecar(_volume(InPlanePhaseEncodingDirection="COLUMN"))
    assert down["ReconMatrixPE"] == 4
    assert down["InPlanePhaseEncodingDirectionDICOM"] == "COL"
    assert "AcquisitionMatrixPE" not in down


def test_no_phase_is_encoded_outside_of_mr() -> None:
    slices = Phantom(shape=(6, 4, 2), modality="CT").slices()
    for ds in slices:
        ds.InPlanePhaseEncodingDirection = "ROW"
    body = sidecar(read_datasets(slices))
    assert not {"PhaseEncodingAxis", "ReconMatrixPE", "RepetitionTime"} & {*body}


def test_a_turned_volume_has_other_rows() -> None:
    from dataclasses import replace

    volume = _volume(InPlanePhaseEncodingDirection="ROW")
    body = sidecar(replace(volume, axes="LPS"))
    assert not {"PhaseEncodingAxis", "ReconMatrixPE"} & {*body}


def _ge(content: bytes) -> Dataset:
    ds = Dataset()
    ds.Manufacturer, ds.ScanningSequence = "GE MEDICAL SYSTEMS", ["EP", "GR"]
    ds.private_block(0x0043, "GEMS_PARM_01", create=True).add_new(0x2A, "OB", content)
    return ds


def _user_data(revision: float, *, polarity: int, order: int, epi: int = 0x800) -> bytes:
    late = revision >= 25.002
    base = 0x40 + (0x4C if late else 0)
    data = bytearray(2048)
    struct.pack_into("<H", data, 24, 0x40)
    struct.pack_into("<f", data, 0x40, revision)
    struct.pack_into("<H", data, base + 0x30, polarity)
    struct.pack_into("<H", data, base + 0x3A, epi)
    struct.pack_into("<H", data, base + 0x394 - (0x8C if late else 0), order)
    return bytes(data)


@pytest.mark.parametrize("revision", [14.0, 27.0])
@pytest.mark.parametrize(
    ("polarity", "order", "positive"),
    [(0, 0, True), (4, 0, False), (0, 2, False), (4, 2, True), (0, 3, None)],
)
def test_polarity_in_ge_user_data(
    revision: float, polarity: int, order: int, positive: bool | None
) -> None:
    ds = _ge(_user_data(revision, polarity=polarity, order=order))
    assert is_positive(ds) is positive


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 10,
        b"\0" * 2048,
        _user_data(27.0, polarity=0, order=0)[:600],
        _user_data(27.0, polarity=0, order=0, epi=0),
        b"\xff" * 64,
    ],
)
def test_user_data_that_say_nothing(content: bytes) -> None:
    assert is_positive(_ge(content)) is None


def test_the_public_order_wins_over_user_data() -> None:
    ds = _ge(_user_data(27.0, polarity=0, order=0))
    ds.RectilinearPhaseEncodeReordering = "LINEAR"
    assert is_positive(ds) is False


def test_acceleration() -> None:
    ds = Dataset()
    assert acceleration(ds) is None
    ds.private_block(0x0051, "SIEMENS MR HEADER", create=True).add_new(0x11, "LO", "p3s2")
    assert acceleration(ds) == 3.0
    ds.private_block(0x0043, "GEMS_PARM_01", create=True).add_new(0x83, "DS", ["0.5", "1"])
    assert acceleration(ds) == 2.0
    ds.ParallelReductionFactorInPlane = 1.5
    assert acceleration(ds) == 1.5


def test_the_steps_of_an_enhanced_object_are_its_lines() -> None:
    ds = Dataset()
    ds.MRAcquisitionPhaseEncodingStepsInPlane = 48
    assert acquired_lines(ds) == 48
    assert acquired_lines(Dataset()) is None


def test_no_readout_time_without_a_spacing() -> None:
    assert total_readout_time_s(Dataset(), Matrix(64, 64)) is None


def test_a_part_that_cannot_be_read_is_named() -> None:
    volume = _volume(InPlanePhaseEncodingDirection="ROW")
    volume.header.ParallelReductionFactorInPlane = float("nan")
    problems = sidecar(volume)["numbat"]["notices"]
    unread = [p["fields"]["name"] for p in problems if p["code"] == "IMG-1708"]
    assert unread == ["ParallelReductionFactorInPlane"]
