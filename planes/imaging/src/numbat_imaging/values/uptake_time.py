"""How long after the injection the moment lies that a PET image is decay corrected to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from numbat_imaging.values.moments import seconds_between
from numbat_imaging.values.pet_series import Injection, PetFrame, PetSeries, administered
from numbat_registries import Diagnostic, notice, refuse

#: Two times are one when the uptake that they give differs by less than this part.
SAME_UPTAKE = 0.005
#: Clock times are written in whole seconds.
CLOCK_STEP_S = 1.0
#: After five half-lives 3 % of the dose is left: no scanner counts that, and a date is wrong.
MOST_HALF_LIVES = 5.0

_DAY_S = 86400.0

_SERIES = "SeriesDate and SeriesTime"
_FRAMES = "AcquisitionTime less FrameReferenceTime"
_FIRST = "the first AcquisitionTime"


@dataclass(frozen=True, slots=True)
class Reference:
    """The moment that images were decay corrected to, and what states it."""

    at: datetime
    source: str


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Seconds from injection to the reference; negative when a dynamic scan was running before."""

    seconds: float
    source: str
    notices: tuple[Diagnostic, ...] = ()


def same_time_s(half_life_s: float) -> float:
    """The largest difference in s that leaves uptake the same (SAME_UPTAKE)."""
    return max(CLOCK_STEP_S, half_life_s * math.log2(1.0 + SAME_UPTAKE))


def average_rate_s(duration_s: float, half_life_s: float) -> float:
    """When in a frame the count rate of a decaying source is its average, s after the start.

    Source: PS3.3 C.8.9.4.1.5.
    """
    decay = math.log(2.0) * duration_s / half_life_s
    return math.log(decay / -math.expm1(-decay)) * half_life_s / math.log(2.0)


def earliest(frames: Sequence[PetFrame]) -> datetime | None:
    """When the first of the images was acquired; None when one of them does not say."""
    times = [frame.acquired_at for frame in frames if frame.acquired_at is not None]
    if not times or len(times) < len(frames):
        return None
    first = times[0]
    for other in times[1:]:
        if seconds_between(other, first) > 0:
            first = other
    return first


def start_reference(
    series: PetSeries, frames: Sequence[PetFrame], *, half_life_s: float
) -> tuple[Reference, tuple[Diagnostic, ...]]:
    """The start that all images of a series were corrected to (DecayCorrection START).

    In this order: what the vendor states; series date and time where no image was acquired before;
    the acquisition times less the frame reference times; the first acquisition time. What else is
    stated must agree with it.

    Raises IMG-1543 when nothing states it, IMG-1544 when statements disagree. Source: PS3.3
    C.8.9.1.1.5 and C.8.9.4.1.5; QIBA FDG-PET/CT profile 1.13, appendix G.
    """
    first = earliest(frames)
    limit_s = same_time_s(half_life_s)
    series_late = False
    found = []
    if series.vendor is not None:
        found.append(Reference(series.vendor.at, series.vendor.element))
    if series.series_at is not None:
        late_s = 0.0 if first is None else seconds_between(first, series.series_at)
        series_late = late_s > CLOCK_STEP_S
        if not series_late:
            found.append(Reference(series.series_at, _SERIES))
    computed = _from_frames(series, frames, half_life_s=half_life_s)
    if computed is not None:
        found.append(computed)
    slack_s = _slack_s(frames, half_life_s)
    if first is not None:
        _refuse_later_than(first, found, limit_s, slack_s)
        if not found or found[-1].source == _SERIES:
            found.append(Reference(first, _FIRST))
    if not found:
        raise refuse("IMG-1543")
    _refuse_disagreement(found, limit_s, slack_s)
    chosen = found[0]
    if series_late and series.vendor is None:
        return chosen, (notice("IMG-1549", reference=chosen.source),)
    return chosen, ()


def _from_frames(
    series: PetSeries, frames: Sequence[PetFrame], *, half_life_s: float
) -> Reference | None:
    """Acquisition time less frame reference time, where all images give the same moment.

    The frame reference time is that of the average count rate; General Electric writes the start
    of the frame.
    """
    starts = []
    is_ge = series.manufacturer.upper().startswith("GE")
    for frame in frames:
        if frame.acquired_at is None or frame.reference_s is None or not frame.duration_s:
            return None
        within_s = 0.0 if is_ge else average_rate_s(frame.duration_s, half_life_s)
        starts.append(frame.acquired_at + timedelta(seconds=within_s - frame.reference_s))
    if not any(frame.reference_s for frame in frames):
        return None
    limit_s = same_time_s(half_life_s)
    if any(abs(seconds_between(starts[0], other)) > limit_s for other in starts):
        return None
    return Reference(starts[0], _FRAMES)


def _slack_s(frames: Sequence[PetFrame], half_life_s: float) -> float:
    """By how much a reference time differs that counts from the start of the frame."""
    durations = [frame.duration_s for frame in frames if frame.duration_s]
    return average_rate_s(max(durations), half_life_s) if durations else 0.0


def _refuse_later_than(
    first: datetime, found: Sequence[Reference], limit_s: float, slack_s: float
) -> None:
    """No image is acquired before the start that all are corrected to."""
    for reference in found:
        late_s = seconds_between(first, reference.at)
        if late_s > limit_s and not _counts_from_start(reference, late_s, limit_s, slack_s):
            _refuse_references([Reference(first, _FIRST), reference])


def _refuse_disagreement(found: Sequence[Reference], limit_s: float, slack_s: float) -> None:
    for other in found[1:]:
        apart_s = seconds_between(found[0].at, other.at)
        if abs(apart_s) > limit_s and not _counts_from_start(other, apart_s, limit_s, slack_s):
            _refuse_references(found)


def _counts_from_start(
    reference: Reference, apart_s: float, limit_s: float, slack_s: float
) -> bool:
    return reference.source == _FRAMES and abs(apart_s - slack_s) <= limit_s


def _refuse_references(found: Sequence[Reference]) -> None:
    raise refuse(
        "IMG-1544",
        sources=[reference.source for reference in found],
        apart_s=[seconds_between(found[0].at, reference.at) for reference in found],
    )


def elapsed_since_injection(
    series: PetSeries,
    reference: Reference,
    *,
    given: datetime | None,
    half_life_s: float,
    running_s: float = 0.0,
) -> Elapsed:
    """Seconds from injection to `reference`.

    `given`: the caller's time of injection. `running_s`: for how long after the reference a dynamic
    scan still began frames; its injection may fall into that time.

    Raises IMG-1539 without a time of injection, IMG-1540 when two contradict each other, IMG-1541
    when the interval is negative or longer than MOST_HALF_LIVES, IMG-1542 when the date is open and
    several fit, IMG-1545 when only one time has a zone, IMG-1546 when there are several injections.
    """
    most_s, zone = MOST_HALF_LIVES * half_life_s, series.zone
    if given is not None:
        if given.tzinfo is None:
            given = given.replace(tzinfo=zone)
        seconds = seconds_between(given, reference.at)
        _refuse_implausible([seconds], -running_s, most_s, half_life_s)
        return Elapsed(seconds, f"the caller's injected_at to {reference.source}")
    injection = administered(series)
    if injection.started_at is not None:
        _refuse_other_clock(injection, zone, same_time_s(half_life_s))
        seconds = seconds_between(injection.started_at, reference.at)
        _refuse_implausible([seconds], -running_s, most_s, half_life_s)
        return Elapsed(seconds, f"RadiopharmaceuticalStartDateTime to {reference.source}")
    if injection.start_clock is None:
        raise refuse("IMG-1539")
    return _on_the_fitting_day(injection, reference, zone, -running_s, most_s, half_life_s)


def _on_the_fitting_day(
    injection: Injection,
    reference: Reference,
    zone: timezone | None,
    least_s: float,
    most_s: float,
    half_life_s: float,
) -> Elapsed:
    """The file gives a clock time alone: the one day on which it can have been."""
    assert injection.start_clock is not None
    day = reference.at.date() if zone is None else reference.at.astimezone(zone).date()
    same_day_s = seconds_between(datetime.combine(day, injection.start_clock, zone), reference.at)
    # A day later is open to a scan that was running over midnight alone.
    days = range(-1, int(most_s // _DAY_S) + 2)
    by_day = {day: same_day_s + day * _DAY_S for day in days}
    fitting = {day: s for day, s in by_day.items() if least_s <= s <= most_s}
    if len(fitting) > 1:
        raise refuse("IMG-1542", candidates_s=list(fitting.values()), half_life_s=half_life_s)
    if not fitting:
        _refuse_implausible([by_day[0], by_day[1]], least_s, most_s, half_life_s)
    ((before, seconds),) = fitting.items()
    source = f"RadiopharmaceuticalStartTime to {reference.source}"
    if before == 0:
        return Elapsed(seconds, source)
    found = notice("IMG-1548", elapsed_s=seconds, days_before=before)
    return Elapsed(seconds, f"{source}, {before} day before", (found,))


def _refuse_implausible(
    candidates_s: Sequence[float], least_s: float, most_s: float, half_life_s: float
) -> None:
    if any(least_s <= seconds <= most_s for seconds in candidates_s):
        return
    raise refuse("IMG-1541", elapsed_s=list(candidates_s), most_s=most_s, half_life_s=half_life_s)


def _refuse_other_clock(injection: Injection, zone: timezone | None, limit_s: float) -> None:
    """Refuse a start time that is another than the clock time of the start date and time."""
    started, clock = injection.started_at, injection.start_clock
    if started is None or clock is None:
        return
    local = started if zone is None else started.astimezone(zone)
    twin = datetime.combine(local.date(), clock, local.tzinfo)
    apart_s = (twin - local).total_seconds()
    around_s = (apart_s + _DAY_S / 2) % _DAY_S - _DAY_S / 2
    if abs(around_s) > limit_s:
        raise refuse("IMG-1540", apart_s=around_s)
