"""When each slice of a volume was acquired, as far as the files agree about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.fourth_axis import clock_s
from numbat_imaging.series.instance import Instance
from numbat_imaging.series.slice_order import slice_order
from numbat_registries import Diagnostic, Refusal, notice

Array = NDArray[np.float64]

#: Scanners round to 2.5 ms: two times, and the earliest of their volume, may each be rounded.
SAME_MS = 6.0
_DAY_MS = 86_400_000.0
_TILED = ("Siemens mosaic", "UIH grid")


@dataclass(frozen=True, slots=True)
class Timing:
    """The moments of one stack.

    `slice_times_s`: of every slice in the order of k, in s from the earliest; None where nothing
    states them or what does is ambiguous. `source` says which elements they come from. `began`:
    the earliest acquisition of the first volume, as DICOM TM or DT.
    """

    slice_times_s: tuple[float, ...] | None = None
    source: str = ""
    began: str | None = None


UNTIMED = Timing()


@dataclass(frozen=True, slots=True)
class _Witness:
    """What one kind of element says: (volumes, slices) in ms, NaN where it says nothing."""

    source: str
    times_ms: Array


@dataclass(frozen=True, slots=True)
class _Verdict:
    source: str
    times_ms: Array | None = None
    apart: tuple[int, ...] = ()
    complaint: str = ""


def stack_timing(
    volumes: Sequence[Sequence[Instance]], header: Dataset, *, axis: str | None
) -> tuple[Timing, tuple[Diagnostic, ...]]:
    """The moments of a stack of 2D slices, and what has to be said about them.

    `volumes`: slices in the order of k; `header` describes one of them; `axis` is the name of the
    fourth axis. Times that volumes state differently are those of the majority (IMG-1709); without
    a majority, longer than RepetitionTime, or contradicted by another element they are left out
    (IMG-1710). Where only a protocol states the order, the times follow from it and RepetitionTime
    (IMG-1711).
    """
    began = _began(volumes[0])
    if not _is_2d(header) or len(volumes[0]) < 2 or axis == "cardiac-phase":
        return Timing(began=began), ()
    limit_ms = _decimal(header, "RepetitionTime") or np.inf
    verdicts = [_judged(witness, limit_ms) for witness in _witnesses(volumes, limit_ms)]
    sound = [verdict for verdict in verdicts if verdict.times_ms is not None]
    complaints = [f"{v.source}: {v.complaint}" for v in verdicts if v.complaint]
    for other in sound[1:]:
        if _contradict(sound[0], other):
            complaints.append(f"{sound[0].source} and {other.source} name different orders")
            return Timing(began=began), (_left_out(complaints, volumes),)
    if sound:
        chosen = min(sound, key=lambda verdict: len(verdict.apart))
        said = [_apart(chosen, volumes)] if chosen.apart else []
        return Timing(_seconds(chosen.times_ms), chosen.source, began), tuple(said)
    if complaints and (len(volumes) > 1 or volumes[0][0].form in _TILED):
        return Timing(began=began), (_left_out(complaints, volumes),)
    return _from_protocol(volumes, header, limit_ms, began)


# -- witnesses -----------------------------------------------------------------------------------


def _witnesses(volumes: Sequence[Sequence[Instance]], limit_ms: float) -> list[_Witness]:
    first = volumes[0][0]
    maker = first.manufacturer.upper()
    clock = _table([[i.slice_time_ms for i in volume] for volume in volumes])
    if first.form in _TILED:
        return [_Witness(f"the times of the tiles of a {first.form}", clock)]
    if maker.startswith("GE"):
        if len(volumes) < 2:
            # The timer runs on from the preparation; one volume cannot show it.
            return []
        trigger = _table([[i.trigger_time_ms for i in volume] for volume in volumes])
        return [
            _Witness("GE's RTIA timer", _in_ms(clock, limit_ms)),
            _Witness("TriggerTime", trigger),
        ]
    if maker.startswith("PHILIPS"):
        # Its acquisition times are those of the reconstruction, or of the whole series.
        return []
    moments = _table([[_clock_ms(i.acquisition_time) for i in v] for v in volumes])
    stated = _Witness("the acquisition time of every slice", _over_midnight(moments))
    # De-identification spares the private clock, and the first volume of some releases has that
    # of another scan.
    own = [_Witness("Siemens' TimeAfterStart", clock)] if maker.startswith("SIEMENS") else []
    return [*own, stated]


def _table(rows: Sequence[Sequence[float | None]]) -> Array:
    return np.array([[np.nan if value is None else value for value in row] for row in rows])


def _clock_ms(text: str | None) -> float | None:
    seconds = clock_s(text)
    return None if seconds is None else seconds * 1000.0


def _over_midnight(moments: Array) -> Array:
    late = moments.max(axis=1, keepdims=True)
    return np.where(late - moments > _DAY_MS / 2, moments + _DAY_MS, moments)


def _in_ms(timer: Array, limit_ms: float) -> Array:
    """GE's timer in ms: in the larger of its two units that fits RepetitionTime."""
    spread = np.nanmedian(np.ptp(timer, axis=1)) if not np.isnan(timer).any() else np.nan
    return timer * 1e-4 if spread >= limit_ms and spread * 1e-4 < limit_ms else timer


# -- judgement -----------------------------------------------------------------------------------


def _judged(witness: _Witness, limit_ms: float) -> _Verdict:
    """What a witness says of one volume, if most volumes where it says anything agree on it."""
    known = np.logical_not(np.isnan(witness.times_ms).any(axis=1))
    times = witness.times_ms - witness.times_ms.min(axis=1, keepdims=True)
    spread = np.where(known, times.max(axis=1), 0.0)
    telling = spread > 0
    if not telling.any():
        return _Verdict(witness.source)
    fitting = np.logical_and(telling, spread < limit_ms)
    if not fitting.any():
        longest = float(spread.max())
        return _Verdict(
            witness.source,
            complaint=f"a volume takes {longest:.6g} ms, RepetitionTime is {limit_ms:.6g} ms",
        )
    usual = np.median(times[fitting], axis=0)
    from_usual = np.abs(np.nan_to_num(times) - usual).max(axis=1)
    same = np.logical_and(fitting, from_usual <= SAME_MS)
    if same.sum() * 2 <= fitting.sum():
        return _Verdict(witness.source, complaint="most volumes have times of their own")
    apart = tuple(int(t) for t in np.flatnonzero(~same))
    return _Verdict(witness.source, times[np.flatnonzero(same)[0]], apart)


def _contradict(one: _Verdict, other: _Verdict) -> bool:
    assert one.times_ms is not None
    assert other.times_ms is not None
    first, second = (v[:, None] - v[None, :] for v in (one.times_ms, other.times_ms))
    return bool(np.any((first < -SAME_MS) & (second > SAME_MS)))


def _from_protocol(
    volumes: Sequence[Sequence[Instance]], header: Dataset, repetition_ms: float, began: str | None
) -> tuple[Timing, tuple[Diagnostic, ...]]:
    slices = len(volumes[0])
    is_run = len(volumes) > 1 or volumes[0][0].form in _TILED
    order = slice_order(header, slices=slices) if is_run else None
    numbers = [_number(instance) for instance in volumes[0]]
    if order is None or not np.isfinite(repetition_ms) or len(set(numbers)) < slices:
        return Timing(began=began), ()
    if numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        return Timing(began=began), ()
    times_ms = order.times_ms(slices, repetition_ms)
    ranked = [times_ms[sorted(numbers).index(number)] for number in numbers]
    said = notice("IMG-1711", source=order.source, order=order.order, repetition_ms=repetition_ms)
    return Timing(_seconds(np.array(ranked)), order.source, began), (said,)


def _number(instance: Instance) -> tuple[int, int, int, int]:
    """The place of a slice in the order in which the scanner numbers them."""
    window = instance.window
    place = (window.row, window.column) if window is not None else (0, 0)
    return (instance.instance_number or 0, instance.frame, *place)


# -- small things --------------------------------------------------------------------------------


def _seconds(times_ms: Array | None) -> tuple[float, ...] | None:
    return None if times_ms is None else tuple(round(float(t) / 1000.0, 7) for t in times_ms)


def _apart(chosen: _Verdict, volumes: Sequence[Sequence[Instance]]) -> Diagnostic:
    return notice("IMG-1709", source=chosen.source, volumes=list(chosen.apart), of=len(volumes))


def _left_out(complaints: list[str], volumes: Sequence[Sequence[Instance]]) -> Diagnostic:
    return notice("IMG-1710", reasons=complaints, of=len(volumes))


def _is_2d(header: Dataset) -> bool:
    try:
        is_mr = elements.text(header, "Modality") == "MR"
        return is_mr and elements.text(header, "MRAcquisitionType") != "3D"
    except Refusal:
        return False


def _decimal(header: Dataset, keyword: str) -> float | None:
    try:
        return elements.decimal(header, keyword)
    except Refusal:
        return None


def _began(slices: Sequence[Instance]) -> str | None:
    moments = [(clock_s(i.acquisition_time), i.acquisition_time) for i in slices]
    known = [(seconds, text) for seconds, text in moments if seconds is not None]
    return min(known)[1] if known else None
