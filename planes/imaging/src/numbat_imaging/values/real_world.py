"""Real-world value maps: stored values to quantities with a coded unit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.scales import REAL_WORLD, Scale, Table, Unreadable
from numbat_registries import Refusal, refuse


def real_world_scales(ds: Dataset, *, file: str) -> tuple[Scale | Unreadable, ...]:
    """The maps of RealWorldValueMappingSequence in order, named by their labels.

    A map that cannot be read is among them as such: it stands in nobody's way until it is asked
    for. Source: PS3.3 C.7.6.16.2.11.
    """
    return tuple(_maps(ds, file=file))


def _maps(ds: Dataset, *, file: str) -> Iterator[Scale | Unreadable]:
    try:
        items = elements.sequence(ds, "RealWorldValueMappingSequence")
    except Refusal as refusal:
        yield Unreadable(REAL_WORLD, refusal.diagnostic)
        return
    for item in items:
        name = REAL_WORLD
        try:
            label = elements.text(item, "LUTLabel")
            name = f"{REAL_WORLD}:{label}" if label else REAL_WORLD
            signed = elements.integer(ds, "PixelRepresentation")
            yield _map(
                item, name, label or "", signed=None if signed is None else signed == 1, file=file
            )
        except Refusal as refusal:
            yield Unreadable(name, refusal.diagnostic)


def _map(item: Dataset, name: str, label: str, *, signed: bool | None, file: str) -> Scale:
    first, last = _mapped(item, label, signed=signed, file=file)
    unit = _unit(item, label, file=file)
    slope = elements.decimal(item, "RealWorldValueSlope")
    intercept = elements.decimal(item, "RealWorldValueIntercept")
    entries = elements.decimals(item, "RealWorldValueLUTData")
    source = f"RealWorldValueMappingSequence, {label or 'no label'}"
    if entries is not None:
        count = last - first + 1
        if len(entries) != count or first != int(first):
            reason = f"{len(entries)} entries for {count:g} stored values"
            raise refuse("IMG-1509", label=label, file=file, reason=reason)
        table = _table(int(first), entries)
        return Scale(name, unit=unit, source=source, table=table, mapped=(first, last))
    if not slope or intercept is None:
        reason = "neither a slope and an intercept nor a table"
        raise refuse("IMG-1509", label=label, file=file, reason=reason)
    return Scale(name, slope, intercept, unit, source, mapped=(first, last))


@lru_cache(maxsize=64)
def _table(first: int, entries: tuple[float, ...]) -> Table:
    return Table(first, "<f8", np.asarray(entries, "<f8").tobytes())


def _mapped(item: Dataset, label: str, *, signed: bool | None, file: str) -> tuple[float, float]:
    """First and last stored value of the map.

    Written as US or SS they have the sign of the pixels; writers disagree about the VR, so that the
    16 bits count and not the VR, unless only the VR gives a range.
    """
    ends = [
        elements.decimal(item, f"DoubleFloatRealWorldValue{end}ValueMapped")
        for end in ("First", "Last")
    ]
    if ends[0] is None or ends[1] is None:
        words = [
            elements.integer(item, f"RealWorldValue{end}ValueMapped") for end in ("First", "Last")
        ]
        low, high = (_with_sign(word, signed=signed) for word in words)
        if low is not None and high is not None and low <= high:
            return (low, high)
        ends = [None if word is None else float(word) for word in words]
    if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
        reason = "no range of stored values"
        raise refuse("IMG-1509", label=label, file=file, reason=reason)
    return (ends[0], ends[1])


def _with_sign(word: int | None, *, signed: bool | None) -> float | None:
    if word is None or signed is None or not -0x8000 <= word <= 0xFFFF:
        return word
    bits = word & 0xFFFF
    return float(bits - 0x10000 if signed and bits > 0x7FFF else bits)


def _unit(item: Dataset, label: str, *, file: str) -> str | None:
    """The code of the unit, UCUM by the standard; None for "1" and "no units"."""
    codes = elements.sequence(item, "MeasurementUnitsCodeSequence")
    code = elements.text(codes[0], "CodeValue") if codes else None
    if code is None:
        raise refuse("IMG-1509", label=label, file=file, reason="no unit")
    return None if code in ("1", "{no units}") else code
