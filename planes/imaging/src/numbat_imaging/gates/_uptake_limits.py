"""The edges of what SUV takes for plausible, and the table of nuclides; part of IMG-G28."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import permutations

from pydicom import DataElement, Dataset
from pydicom.config import IGNORE
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code

from numbat_gates import Check
from numbat_imaging.phantoms.pet import PetScan, suv_of
from numbat_imaging.values.body import NORMALISATIONS
from numbat_imaging.values.moments import clock_time, date_time, dated_time, zone_of
from numbat_imaging.values.pet_series import Injection, PetFrame, PetSeries, pet_series
from numbat_imaging.values.radionuclides import radionuclide_of
from numbat_imaging.values.suv_inputs import (
    SuvGiven,
    SuvInput,
    body_inputs,
    dose_input,
    half_life_input,
)
from numbat_imaging.values.uptake_time import (
    Reference,
    average_rate_s,
    earliest,
    elapsed_since_injection,
    same_time_s,
    start_reference,
)

#: Half-lives in s, worked out by hand from minutes, hours and days.
_HALF_LIVES_S = {
    "C-11": 1221.66,
    "N-13": 598.02,
    "O-15": 122.46,
    "F-18": 6584.04,
    "K-38": 458.16,
    "Ti-45": 11088.0,
    "Mn-52": 483062.4,
    "Fe-52": 29790.0,
    "Cu-60": 1422.0,
    "Cu-61": 12009.6,
    "Cu-62": 580.2,
    "Cu-64": 45721.44,
    "Zn-62": 33094.8,
    "Ga-66": 34164.0,
    "Ga-68": 4069.8,
    "Ge-68": 23410080.0,
    "As-72": 93600.0,
    "Br-75": 5802.0,
    "Br-76": 58320.0,
    "Rb-82": 75.912,
    "Y-86": 53064.0,
    "Y-90": 230549.76,
    "Zr-89": 282312.0,
    "Tc-94m": 3120.0,
    "I-124": 360806.4,
}

_ELEMENTS = {
    "C": "Carbon",
    "N": "Nitrogen",
    "O": "Oxygen",
    "F": "Fluorine",
    "K": "Potassium",
    "Ti": "Titanium",
    "Mn": "Manganese",
    "Fe": "Iron",
    "Cu": "Copper",
    "Zn": "Zinc",
    "Ga": "Gallium",
    "Ge": "Germanium",
    "As": "Arsenic",
    "Br": "Bromine",
    "Rb": "Rubidium",
    "Y": "Yttrium",
    "Zr": "Zirconium",
    "Tc": "Technetium",
    "I": "Iodine",
}

_STARTED = datetime(2020, 1, 2, 10, 10)
_OXYGEN_S, _FLUORINE_S = 122.46, 6586.2
_NOTHING = SuvGiven()


def limits(check: Check) -> None:
    """What lies on a limit, and what lies just beyond."""
    _table(check)
    _same_time(check)
    _frames(check)
    _intervals(check)
    _measures(check)
    _moments(check)
    _private_element(check)


def _series(**values: object) -> PetSeries:
    found, _ = pet_series(iter(PetScan().slices()[:1]))
    return replace(found, **values)  # type: ignore[arg-type]


def _table(check: Check) -> None:
    """Codes as pydicom's copy of CID 4020 has them, new and old."""
    for name, half_life_s in _HALF_LIVES_S.items():
        element, mass = name.split("-")
        code = getattr(codes.SCT, f"_{mass}{_ELEMENTS[element]}")
        # A code of SNOMED RT equals the newer one that it was mapped to.
        for value in (code.value, *_older(code)):
            found = radionuclide_of(_coded(value))
            measured = None if found is None else (found.name, round(found.half_life_s, 6))
            check.equal(f"{name}, code {value}", measured, (name, half_life_s))
    check.equal("a code that is none", radionuclide_of(_coded("1")), None)
    check.equal("no code", radionuclide_of(Dataset()), None)


def _older(code: Code) -> tuple[str, ...]:
    from pydicom.sr._snomed_dict import mapping

    return tuple(older for older, newer in mapping["SRT"].items() if newer == code.value)


def _coded(value: str) -> Dataset:
    item, code = Dataset(), Dataset()
    code.CodeValue = value
    item.RadionuclideCodeSequence = [code]
    return item


def _same_time(check: Check) -> None:
    check.close(
        "half a per cent of uptake, in s of F-18",
        measured=same_time_s(_FLUORINE_S),
        required=47.39,
        atol=0.01,
        unit="s",
    )
    check.equal("a second at least", same_time_s(_OXYGEN_S), 1.0)
    series = _series(series_at=_STARTED - timedelta(seconds=1))
    frames = [PetFrame(_STARTED, None, None)]
    found, notices = start_reference(series, frames, half_life_s=_OXYGEN_S)
    check.equal("a second before is the series' own", found.at, series.series_at)
    check.equal("and nothing has to be said", notices, ())
    with check.refuses("IMG-1544", "two seconds of O-15 are more than half a per cent"):
        earlier = replace(series, series_at=_STARTED - timedelta(seconds=2))
        start_reference(earlier, frames, half_life_s=_OXYGEN_S)
    late = _series(series_at=_STARTED + timedelta(seconds=1))
    found, notices = start_reference(late, [PetFrame(_STARTED, None, None)], half_life_s=1e4)
    check.equal(
        "a series a second late is not of processing", (found.at, notices), (late.series_at, ())
    )
    with check.notices("IMG-1549", "a series two seconds late is"):
        later = replace(late, series_at=_STARTED + timedelta(seconds=2))
        found, _ = start_reference(later, [PetFrame(_STARTED, None, None)], half_life_s=1e4)
    check.equal("then the acquisition counts", found.at, _STARTED)
    injection = Injection(started_at=_STARTED, start_clock=datetime(2020, 1, 2, 10, 10, 1).time())
    series = _series(injection=injection)
    elapsed = _elapsed(series, 60.0, half_life_s=_OXYGEN_S)
    check.equal("two times of injection a second apart are one", elapsed, 60.0)


def _frames(check: Check) -> None:
    times = [_STARTED + timedelta(seconds=s) for s in (0, 60, 120)]
    for order in permutations(times):
        check.equal(
            f"the earliest of {[t.minute for t in order]}",
            earliest([PetFrame(t, None, None) for t in order]),
            _STARTED,
        )
    check.equal(
        "one image without a time",
        earliest([PetFrame(None, None, None), PetFrame(_STARTED, 0.0, 1.0)]),
        None,
    )
    check.equal("no image", earliest([]), None)
    # A frame of a half-life: its average rate is 1 / (2 ln 2) of the first, after 0.471234 of it.
    check.close(
        "when the rate is its average",
        measured=average_rate_s(6000.0, 6000.0),
        required=0.4712336 * 6000.0,
        atol=1e-2,
        unit="s",
    )
    series = _series(series_at=None, manufacturer="GE MEDICAL SYSTEMS")
    frames = [PetFrame(_STARTED, 600.0, 60.0), PetFrame(_STARTED, 610.0, 60.0)]
    found, _ = start_reference(series, frames, half_life_s=_FLUORINE_S)
    check.equal(
        "frame times ten seconds apart: the first", found.at, _STARTED - timedelta(seconds=600)
    )
    alone, _ = start_reference(series, frames[:1], half_life_s=_FLUORINE_S)
    check.equal("one image alone", alone.at, found.at)
    for name, frame in (
        ("no duration", PetFrame(_STARTED, 600.0, None)),
        ("a duration of 0", PetFrame(_STARTED, 600.0, 0.0)),
        ("no frame time", PetFrame(_STARTED, None, 60.0)),
        ("frame times of 0", PetFrame(_STARTED, 0.0, 60.0)),
    ):
        found, _ = start_reference(series, [frame, frame], half_life_s=_FLUORINE_S)
        check.equal(
            f"{name}: the acquisition", found, Reference(_STARTED, "the first AcquisitionTime")
        )
    # Ten minutes before by either way of counting, and half a frame besides.
    both = replace(series, series_at=_STARTED - timedelta(seconds=600), manufacturer="NUMBAT")
    long = [PetFrame(_STARTED, 600.0, 600.0)]
    found, _ = start_reference(both, long, half_life_s=_FLUORINE_S)
    check.equal(
        "either way of counting bears the series out", found.source, "SeriesDate and SeriesTime"
    )
    with check.refuses("IMG-1544", "half a frame in the other direction"):
        start_reference(
            replace(both, series_at=_STARTED - timedelta(seconds=900)),
            long,
            half_life_s=_FLUORINE_S,
        )


def _elapsed(
    series: PetSeries,
    after_s: float,
    *,
    half_life_s: float = _FLUORINE_S,
    given: datetime | None = None,
    running_s: float = 0.0,
) -> float:
    reference = Reference(_STARTED + timedelta(seconds=after_s), "")
    return elapsed_since_injection(
        series, reference, given=given, half_life_s=half_life_s, running_s=running_s
    ).seconds


def _intervals(check: Check) -> None:
    dated = _series(injection=Injection(started_at=_STARTED))
    clock = _series(injection=Injection(start_clock=_STARTED.time()))
    for name, series, given in (
        ("dated", dated, None),
        ("by the clock", clock, None),
        ("given", clock, _STARTED),
    ):
        for seconds in (0.0, 5.0 * 2000.0):
            check.equal(
                f"{name}: {seconds} s",
                _elapsed(series, seconds, half_life_s=2000.0, given=given),
                seconds,
            )
        for seconds in (-1.0, 5.0 * 2000.0 + 1.0):
            with check.refuses("IMG-1541", f"{name}: {seconds} s"):
                _elapsed(series, seconds, half_life_s=2000.0, given=given)
        running = _elapsed(series, -30.0, given=given, running_s=30.0)
        check.equal(f"{name}: during a scan that runs", running, -30.0)
        with check.refuses("IMG-1541", f"{name}: after a scan that ran"):
            _elapsed(series, -30.0, given=given, running_s=29.0)
    # Five half-lives of 4.8 hours are a day: below it one date fits, from it on two may.
    check.equal(
        "a half-life that leaves one date", _elapsed(clock, 60.0, half_life_s=17280.0), 60.0
    )
    with check.refuses("IMG-1542", "a half-life that leaves two"):
        _elapsed(clock, 60.0, half_life_s=17292.0)
    with check.refuses("IMG-1541", "no day fits") as caught:
        _elapsed(clock, -60.0)
    diagnostic = caught.diagnostic
    told = None if diagnostic is None else diagnostic.fields["elapsed_s"]
    check.equal("the intervals of today and of yesterday", told, [-60.0, 86340.0])
    # 23:30 in UTC is half past one of the next day in the files' zone.
    east = timezone(timedelta(hours=2))
    local = _series(zone=east, injection=Injection(start_clock=datetime(2020, 1, 3, 1).time()))
    night = Reference(datetime(2020, 1, 2, 23, 30, tzinfo=UTC), "")
    found = elapsed_since_injection(local, night, given=None, half_life_s=_FLUORINE_S)
    check.equal("the day is that of the files' zone", (found.seconds, found.notices), (1800.0, ()))
    late = _series(injection=Injection(start_clock=datetime(2020, 1, 1, 23, 59).time()))
    around = Reference(datetime(2020, 1, 2, 0, 1), "")
    with check.notices("IMG-1548", "a day before"):
        found = elapsed_since_injection(late, around, given=None, half_life_s=_FLUORINE_S)
    check.equal("two minutes over midnight", found.seconds, 120.0)
    check.true("the source says so", found.source.endswith("1 day before"), measured=found.source)
    after = _series(injection=Injection(start_clock=datetime(2020, 1, 2, 0, 1).time()))
    before = Reference(datetime(2020, 1, 1, 23, 59), "")
    found = elapsed_since_injection(
        after, before, given=None, half_life_s=_FLUORINE_S, running_s=300.0
    )
    check.equal("injected after midnight into a scan from before", found.seconds, -120.0)


def _measures(check: Check) -> None:
    weigh = NORMALISATIONS["bw"]
    measure = NORMALISATIONS["lbm-janma"]
    for weight_kg in (0.5, 400.0):
        body, _ = body_inputs(_series(weight_kg=weight_kg), _NOTHING, weigh)
        check.equal(f"{weight_kg} kg", body.weight_kg, weight_kg)
    for kg, reason in ((None, "absent"), (0.499, "below 0.5 kg"), (400.1, "above 400 kg")):
        with check.refuses("IMG-1534", f"{kg} kg") as caught:
            body_inputs(_series(weight_kg=kg), _NOTHING, weigh)
        check.equal(f"{kg} kg is {reason}", _reason(caught), reason)
    for size_m in (0.3, 2.5):
        body, _ = body_inputs(_series(size_m=size_m), _NOTHING, measure)
        check.equal(f"{size_m} m", body.size_m, size_m)
    for size, reason in ((None, "absent"), (0.29, "below 0.3 m"), (2.51, "above 2.5 m")):
        with check.refuses("IMG-1535", f"{size} m") as caught:
            body_inputs(_series(size_m=size), _NOTHING, measure)
        check.equal(f"{size} m is {reason}", _reason(caught), reason)
    for sex, reason in ((None, "absent"), ("O", "neither M nor F"), ("", "neither M nor F")):
        with check.refuses("IMG-1536", f"sex {sex}") as caught:
            body_inputs(_series(sex=sex), _NOTHING, measure)
        check.equal(f"sex {sex} is {reason}", _reason(caught), reason)
    for dose_bq in (1e5, 2e10):
        found = dose_input(_series(injection=Injection(dose_bq=dose_bq)), _NOTHING)
        check.equal(
            f"{dose_bq} Bq", found, SuvInput("dose", dose_bq, "Bq", "RadionuclideTotalDose")
        )
    for bq, reason in ((None, "absent"), (99999.0, "below 100000 Bq"), (2.1e10, "above 2e+10 Bq")):
        with check.refuses("IMG-1537", f"{bq} Bq") as caught:
            dose_input(_series(injection=Injection(dose_bq=bq)), _NOTHING)
        check.equal(f"{bq} Bq is {reason}", _reason(caught), reason)
    fluorine = radionuclide_of(_coded("77004003"))
    for factor in (0.981, 1.019):
        stated = Injection(half_life_s=6584.04 * factor, nuclide=fluorine)
        found = half_life_input(_series(injection=stated), _NOTHING)
        check.equal(f"{factor} of a half-life", found.value, 6584.04 * factor)
    for factor in (0.979, 1.021):
        stated = Injection(half_life_s=6584.04 * factor, nuclide=fluorine)
        with check.refuses("IMG-1538", f"{factor} of a half-life"):
            half_life_input(_series(injection=stated), _NOTHING)


def _reason(caught: object) -> object:
    diagnostic = getattr(caught, "diagnostic", None)
    return None if diagnostic is None else diagnostic.fields["reason"]


def _moments(check: Check) -> None:
    ds = Dataset()
    check.equal("no zone", zone_of(ds), None)
    for zone, hours in (("+1400", 14.0), ("-1200", -12.0), ("+0545", 5.75), ("-0330", -3.5)):
        ds.TimezoneOffsetFromUTC = zone
        found = zone_of(ds)
        check.equal(zone, None if found is None else found.utcoffset(None), timedelta(hours=hours))
    for zone in ("+1500", "0100", "+01:00", "+0160"):
        ds.TimezoneOffsetFromUTC = zone
        with check.refuses("IMG-1012", f"zone {zone}"):
            zone_of(ds)
    ds.SeriesDate, ds.SeriesTime = "20200102", "101000.25"
    required = _STARTED + timedelta(milliseconds=250)
    check.equal("date and time", dated_time(ds, "Series", None), required)
    ds.AcquisitionDate, ds.ContentTime = "20200102", "101000"
    check.equal("a date without a time", dated_time(ds, "Acquisition", None), None)
    check.equal("a time without a date", dated_time(ds, "Content", None), None)
    check.equal("no clock time", clock_time(ds, "AcquisitionTime"), None)
    ds.AcquisitionDateTime = "202001021010"
    check.equal("without seconds", date_time(ds, "AcquisitionDateTime", None), _STARTED)
    check.equal("neither", date_time(ds, "FrameReferenceDateTime", None), None)
    for keyword, text in (("StudyTime", "10"), ("StudyTime", "2510"), ("StudyDate", "20200230")):
        ds.StudyDate, ds.StudyTime = "20200102", "101000"
        vr = "DA" if keyword == "StudyDate" else "TM"
        ds[keyword] = DataElement(keyword, vr, text, validation_mode=IGNORE)
        with check.refuses("IMG-1012", f"{keyword} {text}") as caught:
            dated_time(ds, "Study", None)
        diagnostic = caught.diagnostic
        named = None if diagnostic is None else diagnostic.fields["keyword"]
        check.equal(f"{keyword} {text} is named", named, keyword)


def _private_element(check: Check) -> None:
    """The vendor's element is named where the reference comes from it."""
    scan = PetScan(private=((0x0071, "SIEMENS MED PT", 0x22, "DT", "20200102101000"),))
    inputs = suv_of(scan).scale.to_dict()["suv"]["inputs"]
    check.equal(
        "the reference names the vendor's element",
        inputs[-1]["source"],
        "RadiopharmaceuticalStartDateTime to (0071,xx22) of SIEMENS MED PT",
    )
