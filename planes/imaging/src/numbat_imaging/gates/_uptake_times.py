"""When PET was injected, and to which moment its images are corrected; part of IMG-G28."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from numbat_gates import Check
from numbat_imaging.gates._uptake import DOSE_BQ, HALF_LIFE_S, check_uptake, expected
from numbat_imaging.phantoms.pet import PROCESSED, PetScan, suv_of


def times(check: Check) -> None:
    """Every statement of a time, alone and against the others."""
    _reference(check)
    _injection(check)
    _zones(check)
    _dynamic(check)


def _reference(check: Check) -> None:
    """Two beds, at 10:10 and 10:13; images of both are corrected to 10:10."""
    with check.notices("IMG-1549", "a series time after the acquisition is that of processing"):
        volume = suv_of(PROCESSED)
    check_uptake(check, "then the first acquisition is the start", volume, expected(3600))
    ge = ((0x0009, "GEMS_PETD_01", 0x0D, "DT", "20200102100800.00"),)
    check_uptake(
        check, "GE's scan time goes before", suv_of(replace(PROCESSED, private=ge)), expected(3480)
    )
    siemens = ((0x0071, "SIEMENS MED PT", 0x22, "DT", "20200102100800.00"),)
    scan = replace(PROCESSED, private=siemens)
    check_uptake(check, "so does Siemens' decay correction time", suv_of(scan), expected(3480))
    # Frames of 180 s have their average rate 0.142 s before their middle: 89.858 s after the start.
    by_frame = replace(PROCESSED, frame_s=180.0, frame_reference_s=(289.858, 289.858, 469.858))
    volume = suv_of(by_frame)
    check_uptake(check, "frame times lead back to the start, 200 s before", volume, expected(3400))
    counted = replace(
        by_frame, manufacturer="GE MEDICAL SYSTEMS", frame_reference_s=(200, 200, 380)
    )
    check_uptake(check, "GE counts to the start of a frame", suv_of(counted), expected(3400))
    unlike = replace(by_frame, frame_reference_s=(289.7, 289.7, 289.7))
    check_uptake(
        check,
        "frame times that contradict each other are no evidence",
        suv_of(unlike),
        expected(3600),
    )
    middles = replace(PetScan(), frame_s=180.0, frame_reference_s=(0, 0, 180.0))
    check_uptake(
        check,
        "frame times from the start of a frame agree as well",
        suv_of(middles),
        expected(3600),
    )
    later_beds = replace(by_frame, series_at="20200102100640")
    check_uptake(
        check, "beds without the first: series and frames agree", suv_of(later_beds), expected(3400)
    )
    undated = PetScan(acquired_at=())
    check_uptake(check, "a series time alone is taken", suv_of(undated), expected(3600))
    check_uptake(
        check,
        "an acquisition time alone is taken",
        suv_of(PetScan(series_at=None)),
        expected(3600),
    )
    check_uptake(
        check,
        "half a minute between series and acquisition is nothing",
        suv_of(PetScan(series_at="20200102100930")),
        expected(3570),
    )
    with check.refuses("IMG-1544", "a series an hour before its first image"):
        suv_of(PetScan(series_at="20200102091500"))
    with check.refuses("IMG-1544", "a minute is more than half a per cent"):
        suv_of(PetScan(series_at="20200102100900"))
    with check.refuses("IMG-1544", "a vendor's time a day before"):
        suv_of(PetScan(private=((0x0009, "GEMS_PETD_01", 0x0D, "DT", "20200101101000"),)))
    with check.refuses("IMG-1544", "a vendor's time after the first image"):
        suv_of(PetScan(private=((0x0009, "GEMS_PETD_01", 0x0D, "DT", "20200102101300"),)))
    with check.refuses("IMG-1544", "frame times that lead elsewhere"):
        suv_of(replace(by_frame, series_at="20200102101000"))
    with check.refuses("IMG-1543", "no time at all"):
        suv_of(PetScan(series_at=None, acquired_at=()))
    with check.refuses("IMG-1012", "a time without minutes"):
        suv_of(PetScan(series_at="2020010210"))


def _injection(check: Check) -> None:
    clock = PetScan(injected_at=None, injected_clock="091000")
    check_uptake(check, "a clock time is of the scan's day", suv_of(clock), expected(3600))
    both = PetScan(injected_clock="091000.00")
    check_uptake(check, "date and time, and the same clock time", suv_of(both), expected(3600))
    started = datetime(2020, 3, 1, 0, 20)
    night = PetScan(
        injected_at="20200229233000",
        series_at=f"{started:%Y%m%d%H%M%S}",
        acquired_at=(f"{started:%Y%m%d%H%M%S}",),
    )
    seconds = (started - datetime(2020, 2, 29, 23, 30)).total_seconds()
    check.equal("seconds over midnight of a leap day", seconds, 3000.0)
    check_uptake(check, "over midnight, with dates", suv_of(night), expected(seconds))
    undated = replace(night, injected_at=None, injected_clock="233000")
    with check.notices("IMG-1548", "over midnight without a date, said"):
        volume = suv_of(undated)
    check_uptake(check, "over midnight without a date", volume, expected(seconds))
    for name, scan in (
        ("injected after the scan", PetScan(injected_at="20200102101500")),
        ("injected after the scan, no date", PetScan(injected_at=None, injected_clock="120000")),
        ("a day too early", PetScan(injected_at="20200101091000")),
        ("a year too early", PetScan(injected_at="20190102091000")),
        ("five half-lives and a minute", PetScan(injected_at="20200102010009")),
    ):
        with check.refuses("IMG-1541", name):
            suv_of(scan)
    check_uptake(
        check,
        "five half-lives are the limit",
        suv_of(PetScan(injected_at="20200102010109")),
        expected(32931.0),
    )
    with check.refuses("IMG-1539", "no time of injection"):
        suv_of(PetScan(injected_at=None))
    with check.refuses("IMG-1540", "two times of injection an hour apart"):
        suv_of(PetScan(injected_clock="081000"))
    check_uptake(
        check,
        "two times of injection either side of midnight",
        suv_of(replace(night, injected_at="20200229235950", injected_clock="000010")),
        expected(1210.0),
    )
    with check.refuses("IMG-1542", "Cu-64 without a date: today or yesterday"):
        suv_of(replace(clock, nuclide="3932008", half_life_s=45721.0))
    with check.refuses("IMG-1546", "two radiopharmaceuticals"):
        suv_of(PetScan(items=2))
    with check.refuses("IMG-1539", "no radiopharmaceutical"):
        suv_of(PetScan(items=0), dose_bq=DOSE_BQ, half_life_s=HALF_LIFE_S)


def _zones(check: Check) -> None:
    """10:10 at +0200 is 08:10 UTC."""
    seconds = (
        datetime(2020, 1, 2, 10, 10, tzinfo=timezone(timedelta(hours=2)))
        - datetime(2020, 1, 2, 7, 25, tzinfo=UTC)
    ).total_seconds()
    check.equal("seconds between the zones", seconds, 2700.0)
    zoned = PetScan(zone="+0200", injected_at="20200102072500+0000")
    check_uptake(
        check, "an injection in UTC, a scan two hours east", suv_of(zoned), expected(2700.0)
    )
    west = PetScan(zone="-0330", injected_at="20200102123500.5+0000")
    check_uptake(check, "a scan west of it, and half a second", suv_of(west), expected(3899.5))
    check_uptake(check, "local times in one zone", suv_of(PetScan(zone="+0200")), expected(3600.0))
    clock = PetScan(zone="+0200", injected_at="20200102072500+0000", injected_clock="092500")
    check_uptake(
        check, "the local clock time of an injection in UTC", suv_of(clock), expected(2700.0)
    )
    with check.refuses("IMG-1540", "a clock time in another zone than its date and time"):
        suv_of(replace(clock, injected_clock="072500"))
    given = datetime(2020, 1, 2, 7, 25, tzinfo=UTC)
    check_uptake(check, "given in UTC", suv_of(zoned, injected_at=given), expected(2700.0))
    local = datetime(2020, 1, 2, 9, 25)
    check_uptake(check, "given as local time", suv_of(zoned, injected_at=local), expected(2700.0))
    for at in (datetime(2020, 1, 2, 10, 0), datetime(2020, 1, 2, 8, 0, tzinfo=UTC)):
        corrected = suv_of(zoned, corrected_to=at)
        check_uptake(check, f"corrected to {at}, as given", corrected, expected(2100.0))
    with check.refuses("IMG-1545", "a zone on one side alone"):
        suv_of(PetScan(injected_at="20200102091000+0000"))
    with check.refuses("IMG-1545", "given with a zone, files without"):
        suv_of(PetScan(), injected_at=given)
    with check.refuses("IMG-1012", "a zone that is none"):
        suv_of(PetScan(zone="MEZ"))


def _dynamic(check: Check) -> None:
    """Three volumes, one start: a frame's own time is in its decay correction already."""
    scan = PetScan(volumes=3, frame_s=300.0, acquired_at=("20200102101000",))
    volume = suv_of(scan)
    check.equal("volumes", volume.voxels.shape, (4, 3, 3, 3))
    check_uptake(check, "one reference for all frames of a dynamic scan", volume, expected(3600.0))
    during = replace(scan, injected_at="20200102101030")
    check_uptake(check, "an injection while the scan runs", suv_of(during), expected(-30.0))
    clock = replace(during, injected_at=None, injected_clock="101030")
    check_uptake(check, "the same without a date", suv_of(clock), expected(-30.0))
    with check.refuses("IMG-1541", "a second late, for a scan whose frames have no times"):
        suv_of(replace(scan, acquired_at=(), injected_at="20200102101001"))
    with check.refuses("IMG-1541", "an injection after the last frame began"):
        suv_of(replace(scan, injected_at="20200102102001"))
