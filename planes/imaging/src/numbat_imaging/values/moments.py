"""Dates and clock times of DICOM as moments, in the time zone that the file states."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone

from pydicom import Dataset
from pydicom.datadict import keyword_for_tag, tag_for_keyword
from pydicom.tag import BaseTag

from numbat_imaging.intake import elements
from numbat_registries import refuse

#: Hours and minutes are asked for: an hour's doubt is half a half-life of F-18.
_DATE_TIME = re.compile(r"(\d{8})(\d{4})(?:(\d\d)(\.\d{1,6})?)?([+-]\d{4})?")
_CLOCK = re.compile(r"(\d{4})(?:(\d\d)(\.\d{1,6})?)?")


def zone_of(ds: Dataset) -> timezone | None:
    """The zone of every date and time without an own one; None where the file states none.

    Source: PS3.3 C.12.1.1.8.
    """
    stated = elements.text(ds, "TimezoneOffsetFromUTC")
    if stated is None:
        return None
    zone = _offset(stated)
    if zone is None:
        raise _unreadable("TimezoneOffsetFromUTC", "SH")
    return zone


def date_time(ds: Dataset, keyword: elements.Key, zone: timezone | None) -> datetime | None:
    """A DT; without an offset of its own in `zone`.

    Raises IMG-1012 for what is no date with hours and minutes. Source: PS3.5 §6.2.
    """
    stated = elements.text(ds, keyword, vr="DT")
    return None if stated is None else parsed_date_time(stated, keyword, zone)


def parsed_date_time(stated: str, keyword: elements.Key, zone: timezone | None) -> datetime:
    """The text of a DT as a moment; see `date_time`."""
    found = _DATE_TIME.fullmatch(stated)
    moment = None if found is None else _moment(found[1], found[2], found[3], found[4])
    own = None if found is None or found[5] is None else _offset(found[5])
    if moment is None or (found is not None and found[5] is not None and own is None):
        raise _unreadable(keyword, "DT")
    return moment.replace(tzinfo=own or zone)


def dated_time(ds: Dataset, event: str, zone: timezone | None) -> datetime | None:
    """The date and time of an event, such as "Series"; None unless both are there.

    Raises IMG-1012 for what is no date, or no time with hours and minutes.
    """
    day, clock = elements.text(ds, f"{event}Date"), clock_time(ds, f"{event}Time")
    if day is None or clock is None:
        return None
    moment = _moment(day, "0000", None, None)
    if moment is None:
        raise _unreadable(f"{event}Date", "DA")
    return datetime.combine(moment.date(), clock, zone)


def clock_time(ds: Dataset, keyword: str) -> time | None:
    """A TM with hours and minutes. Raises IMG-1012 for anything else."""
    stated = elements.text(ds, keyword)
    if stated is None:
        return None
    found = _CLOCK.fullmatch(stated)
    moment = None if found is None else _moment("20000101", found[1], found[2], found[3])
    if moment is None:
        raise _unreadable(keyword, "TM")
    return moment.time()


def seconds_between(earlier: datetime, later: datetime) -> float:
    """Seconds from one moment to another, negative when `later` comes first.

    Raises IMG-1545 when only one of them has a time zone.
    """
    if (earlier.tzinfo is None) != (later.tzinfo is None):
        raise refuse("IMG-1545", zoned="the first" if earlier.tzinfo else "the second")
    return (later - earlier).total_seconds()


def _moment(day: str, clock: str, seconds: str | None, fraction: str | None) -> datetime | None:
    try:
        whole = datetime.strptime(f"{day}{clock}{seconds or '00'}", "%Y%m%d%H%M%S")
    except ValueError:
        return None
    return whole + timedelta(seconds=float(f"0{fraction}") if fraction else 0.0)


def _offset(stated: str) -> timezone | None:
    found = re.fullmatch(r"([+-])(\d\d)([0-5]\d)", stated)
    if found is None or int(found[2]) > 14:
        return None
    shift = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-shift if found[1] == "-" else shift)


def _unreadable(keyword: elements.Key, vr: str) -> Exception:
    tag = BaseTag((tag_for_keyword(keyword) or 0) if isinstance(keyword, str) else keyword)
    return refuse(
        "IMG-1012",
        tag=f"({tag >> 16:04X},{tag & 0xFFFF:04X})",
        keyword=keyword_for_tag(tag) or "private",
        vr=vr,
        reason="text that is no date or time with hours and minutes",
    )
