"""SUV: decay over the right interval, stated inputs, and a scale that keeps the stored voxels."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging import read_series, suv
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.pet import PetScan, suv_of
from numbat_imaging.values.body import NORMALISATIONS, Body
from numbat_imaging.values.moments import parsed_date_time, seconds_between
from numbat_imaging.values.pet_series import Injection, PetFrame, PetSeries
from numbat_imaging.values.uptake_time import (
    Reference,
    average_rate_s,
    elapsed_since_injection,
    start_reference,
)
from numbat_registries import Refusal

STARTED = datetime(2020, 1, 2, 10, 10)
F18_S = 6586.2

SERIES = PetSeries(
    modality="PT",
    manufacturer="NUMBAT",
    suv_type=None,
    corrections=frozenset({"ATTN", "DECY"}),
    decay_correction="START",
    corrected_to=None,
    vendor=None,
    series_at=STARTED,
    zone=None,
    radiopharmaceuticals=1,
    injection=Injection(started_at=STARTED - timedelta(hours=1)),
    weight_kg=70.0,
    size_m=1.75,
    sex="M",
    activity_factor=None,
    suv_factor=None,
)


def refused(scan: PetScan, kind: str = "bw", **inputs: Any) -> str:
    with pytest.raises(Refusal) as caught:
        suv_of(scan, kind, **inputs)
    return caught.value.code


@settings(deadline=None)
@given(
    start=st.datetimes(datetime(2001, 1, 1), datetime(2039, 1, 1)),
    elapsed_s=st.integers(0, 32000),
)
def test_a_clock_time_without_a_date_gives_the_interval_back(
    start: datetime, elapsed_s: int
) -> None:
    start = start.replace(microsecond=0)
    injected = start - timedelta(seconds=elapsed_s)
    series = replace(SERIES, injection=Injection(start_clock=injected.time()))
    found = elapsed_since_injection(series, Reference(start, ""), given=None, half_life_s=F18_S)
    assert found.seconds == elapsed_s
    assert [d.code for d in found.notices] == ["IMG-1548"] * (injected.date() != start.date())


@settings(deadline=None)
@given(
    beds=st.integers(1, 8),
    bed_s=st.integers(30, 600),
    wait_s=st.integers(0, 30),
    half_life_s=st.sampled_from([1221.7, 4069.8, F18_S, 282312.0]),
)
def test_frame_times_of_any_bed_lead_back_to_one_start(
    beds: int, bed_s: int, wait_s: int, half_life_s: float
) -> None:
    frames = []
    for bed in range(beds):
        offset_s = bed * (bed_s + wait_s)
        at = STARTED + timedelta(seconds=offset_s)
        middle_s = offset_s + average_rate_s(bed_s, half_life_s)
        frames.append(PetFrame(at, middle_s, float(bed_s)))
    processed = replace(SERIES, series_at=STARTED + timedelta(days=3))
    # Beds may be missing at the start: the others know when it was.
    found, notices = start_reference(processed, frames[-1:], half_life_s=half_life_s)
    assert abs((found.at - STARTED).total_seconds()) < 1e-3
    assert [d.code for d in notices] == ["IMG-1549"]


def test_the_average_rate_lies_before_the_middle_of_a_frame() -> None:
    # By series: T/2 - λT²/24 for a frame that is short against the half-life.
    decay_per_s = np.log(2.0) / F18_S
    assert average_rate_s(180.0, F18_S) == pytest.approx(
        90.0 - decay_per_s * 180.0**2 / 24, abs=1e-5
    )
    # A frame of one half-life: its average rate is 1/(2 ln 2) of the first.
    assert 2.0 ** -average_rate_s(1.0, 1.0) == pytest.approx(1 / (2 * np.log(2.0)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20200102101000", 0.0),
        ("202001021010", 0.0),
        ("20200102101000.25", 0.25),
        ("20200103001000", 50400.0),
        ("20200229101000", 58 * 86400.0),
    ],
)
def test_moments(text: str, seconds: float) -> None:
    moment = parsed_date_time(text, "AcquisitionDateTime", None)
    assert seconds_between(STARTED, moment) == seconds


@pytest.mark.parametrize(
    "text", ["2020010210", "20200102", "20201302101000", "20200102101060", "20200102101000+2500"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        parsed_date_time(text, "AcquisitionDateTime", None)
    assert caught.value.code == "IMG-1012"


def test_lean_mass_and_surface_by_hand() -> None:
    # Janmahasatian: BMI 24.691, 9270 × 80 / (6680 + 216 × 24.691) = 741600 / 12013.33.
    body = Body(weight_kg=80.0, size_m=1.80, sex="M")
    assert NORMALISATIONS["lbm-janma"].amount(body) == pytest.approx(61731.4, abs=0.1)
    # Du Bois: the man of 70 kg and 1.70 m has 1.81 m2.
    small = Body(weight_kg=70.0, size_m=1.70)
    assert NORMALISATIONS["bsa"].amount(small) == pytest.approx(18097.0, abs=10.0)


def test_stored_voxels_stay_and_files_are_read_again(tmp_path: Path) -> None:
    files = write_datasets(PetScan(stored=4000, slopes=(1.25,)).slices(), tmp_path)
    volume = read_series(tmp_path)
    uptake = suv(volume)
    assert uptake.voxels is volume.voxels
    assert uptake.scale.alternatives[0].unit == "BQML"
    np.testing.assert_allclose(uptake.values(), 2.0 ** (3600 / F18_S), rtol=1e-12)
    files[0].unlink()
    with pytest.raises(Refusal) as caught:
        suv(volume)
    assert caught.value.code == "IMG-1002"


def test_a_plan_names_the_argument_that_helps() -> None:
    with pytest.raises(Refusal) as caught:
        suv_of(PetScan(dose_bq=350.0))
    diagnostic = caught.value.diagnostic
    assert "dose_bq" in diagnostic.plans[0].asks
    assert refused(PetScan(weight_kg=None)) == "IMG-1534"
    assert suv_of(PetScan(dose_bq=350.0), dose_bq=350e6).scale.unit == "g/ml{SUVbw}"


def test_no_weight_stands_in_a_refusal() -> None:
    with pytest.raises(Refusal) as caught:
        suv_of(PetScan(weight_kg=71234.0))
    assert "71234" not in repr(caught.value.diagnostic)


def test_other_modalities_have_no_uptake(tmp_path: Path) -> None:
    write_datasets(Phantom(modality="CT").slices(), tmp_path)
    with pytest.raises(Refusal) as caught:
        suv(read_series(tmp_path))
    assert caught.value.code == "IMG-1530"
