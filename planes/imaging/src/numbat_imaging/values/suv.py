"""Standardised uptake values of PET: from stated inputs alone, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.series.forms.functional_groups import frame_datasets, has_functional_groups
from numbat_imaging.values.body import ALIASES, KINDS, NORMALISATIONS, Body, Normalisation
from numbat_imaging.values.moments import seconds_between
from numbat_imaging.values.pet_series import PetFrame, PetSeries, pet_series
from numbat_imaging.values.rescale import Alternative, ValueScale
from numbat_imaging.values.suv_inputs import (
    SuvGiven,
    SuvInput,
    SuvInputs,
    body_inputs,
    dose_input,
    half_life_input,
)
from numbat_imaging.values.uptake_time import Reference, elapsed_since_injection, start_reference
from numbat_registries import Diagnostic, refuse

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

#: Bq/ml in one of the unit; the words of Units (PS3.3 C.8.9.1) and codes of UCUM.
_CONCENTRATIONS = {"BQML": 1.0, "Bq/ml": 1.0, "Bq/mL": 1.0, "kBq/ml": 1e3, "kBq/mL": 1e3}

#: SUVType by the kind of SUV; BW where GML stands alone. LBM alone does not say by which formula.
_SUV_TYPES = {
    "BW": "bw",
    "LBMJANMA": "lbm-janma",
    "LBMJAMES128": "lbm-james128",
    "IBW": "ibw",
    "BSA": "bsa",
}
_KIND_BY_UNIT = {found.unit: found.kind for found in NORMALISATIONS.values()}
#: Codes of the same units before they were turned round.
_KIND_BY_UNIT |= {
    "{" + unit.rstrip("}").split("{")[1] + "}" + unit.split("{")[0]: kind
    for unit, kind in _KIND_BY_UNIT.items()
}


@dataclass(frozen=True, slots=True)
class SuvScale(ValueScale):
    """A value scale that ends in SUV, and every input of it.

    `source` says the same in words. SUV = slope × voxel + intercept.
    """

    suv: SuvInputs | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data, the inputs included."""
        return {
            **ValueScale.to_dict(self),
            "suv": None if self.suv is None else self.suv.to_dict(),
        }


def suv(
    volume: Volume,
    kind: str = "bw",
    *,
    weight_kg: float | None = None,
    size_m: float | None = None,
    sex: str | None = None,
    dose_bq: float | None = None,
    half_life_s: float | None = None,
    injected_at: datetime | None = None,
    corrected_to: datetime | None = None,
    decay_correction: str | None = None,
) -> Volume:
    """A PET volume on a scale of standardised uptake values.

    `kind`: "bw" (body weight, g/ml), "lbm-janma" or "lbm-james128" (lean body mass, g/ml; "lbm" is
    the former), "ibw" (ideal weight, g/ml), "bsa" (body surface, cm2/ml). What is given in place of
    the files is taken at its word, and said so in `scale.suv`. Stored voxels stay; those to which a
    scale was applied are multiplied. The source files are read again: all of them must state the
    same. The dose is not corrected for what stayed in the syringe.

    Raises IMG-1530 for what is no PET, IMG-1531 for values that no SUV comes from, IMG-1532 without
    attenuation or decay correction, IMG-1533 for a decay correction to no known moment, IMG-1534 to
    IMG-1547 for inputs that are absent, implausible or contradictory, IMG-1813 for an unknown kind,
    IMG-1814 for what is given. Source: PS3.3 C.8.9 and C.8.22; QIBA FDG-PET/CT profile 1.13,
    appendix G.
    """
    given = SuvGiven(
        weight_kg=weight_kg,
        size_m=size_m,
        sex=sex,
        dose_bq=dose_bq,
        half_life_s=half_life_s,
        injected_at=injected_at,
        corrected_to=corrected_to,
        decay_correction=decay_correction,
    )
    given.check()
    name = ALIASES.get(kind, kind)
    if name not in NORMALISATIONS:
        raise refuse("IMG-1813", kind=kind, choices=list(KINDS))
    if volume.key.modality != "PT":
        raise refuse("IMG-1530", modality=volume.key.modality)
    series, frames = pet_series(_datasets(volume))
    inputs, found = _inputs(volume, series, frames, given, NORMALISATIONS[name])
    return _on_scale(volume, inputs, NORMALISATIONS[name], found)


def _datasets(volume: Volume) -> Iterator[Dataset]:
    """The flat data set of each slice, from the files."""
    wanted: dict[FileRef, set[int]] = {}
    for source in volume.sources:
        wanted.setdefault(source.ref, set()).add(source.frame)
    for ref, frames in wanted.items():
        header = read_header(ref)
        assert header is not None
        ds = header.dataset
        if not has_functional_groups(ds):
            yield ds
            continue
        count = elements.integer(ds, "NumberOfFrames") or 1
        for frame, (flat, _) in enumerate(frame_datasets(ds, frames=count, file=ref.label)):
            if frame in frames:
                yield flat


def _inputs(
    volume: Volume,
    series: PetSeries,
    frames: Sequence[PetFrame],
    given: SuvGiven,
    wanted: Normalisation,
) -> tuple[SuvInputs, tuple[Diagnostic, ...]]:
    unit = volume.scale.unit
    missing = sorted({"ATTN", "DECY"} - series.corrections)
    if missing:
        raise refuse("IMG-1532", missing=missing, stated=sorted(series.corrections))
    if unit is not None and unit in _CONCENTRATIONS:
        return _from_activity(volume, series, frames, given, wanted, _CONCENTRATIONS[unit], [])
    if unit in ("CNTS", "{counts}"):
        return _from_counts(volume, series, frames, given, wanted)
    source = _kind_of(unit, series.suv_type)
    return _renormalised(series, given, source, wanted, unit or "", 1.0, []), ()


def _kind_of(unit: str | None, suv_type: str | None) -> Normalisation:
    """The kind of SUV that values already are."""
    kind = _KIND_BY_UNIT.get(unit or "")
    if unit == "GML":
        kind = _SUV_TYPES.get(suv_type or "BW")
    elif unit == "CM2ML":
        kind = _SUV_TYPES.get(suv_type or "BSA")
    if kind is None or (unit in ("GML", "CM2ML") and (unit == "CM2ML") != (kind == "bsa")):
        raise refuse(
            "IMG-1531", unit=unit or "no unit", suv_type=suv_type or "absent", reason="no known SUV"
        )
    return NORMALISATIONS[kind]


def _from_counts(
    volume: Volume,
    series: PetSeries,
    frames: Sequence[PetFrame],
    given: SuvGiven,
    wanted: Normalisation,
) -> tuple[SuvInputs, tuple[Diagnostic, ...]]:
    """Philips' counts, by the private factors that turn them into Bq/ml or into SUV.

    The factor to Bq/ml goes first: the other has the console's weight and dose in it.
    """
    if series.activity_factor is not None:
        factor = SuvInput(
            "activity per count",
            series.activity_factor,
            "Bq/ml",
            "(7053,xx09) of Philips PET Private Group",
        )
        per_count = series.activity_factor
        return _from_activity(volume, series, frames, given, wanted, per_count, [factor])
    if series.suv_factor is None or series.suv_type not in (None, "BW"):
        raise refuse(
            "IMG-1531",
            unit="CNTS",
            suv_type=series.suv_type or "absent",
            reason="no factor of Philips PET Private Group leads from counts to activity",
        )
    factor = SuvInput(
        "SUV per count", series.suv_factor, "g/ml", "(7053,xx00) of Philips PET Private Group"
    )
    source = NORMALISATIONS["bw"]
    return _renormalised(series, given, source, wanted, "CNTS", series.suv_factor, [factor]), ()


def _renormalised(
    series: PetSeries,
    given: SuvGiven,
    source: Normalisation,
    wanted: Normalisation,
    unit: str,
    factor: float,
    used: list[SuvInput],
) -> SuvInputs:
    """SUV of one kind as SUV of another: by the ratio of what they normalise by."""
    if source.kind != wanted.kind:
        both = replace(wanted, needs=tuple(dict.fromkeys((*source.needs, *wanted.needs))))
        body, measures = body_inputs(series, given, both)
        factor *= _amount(wanted, body) / _amount(source, body)
        used = [*used, *measures]
    return SuvInputs(wanted.kind, wanted.formula, unit, factor, tuple(used))


def _amount(wanted: Normalisation, body: Body) -> float:
    amount = wanted.amount(body)
    if amount <= 0:
        raise refuse("IMG-1535", reason=f"no positive {wanted.formula}")
    return amount


def _from_activity(
    volume: Volume,
    series: PetSeries,
    frames: Sequence[PetFrame],
    given: SuvGiven,
    wanted: Normalisation,
    bq_ml: float,
    used: list[SuvInput],
) -> tuple[SuvInputs, tuple[Diagnostic, ...]]:
    """SUV = Bq/ml × what it normalises by / dose at the moment that images are corrected to.

    `bq_ml`: activity concentration for a value of 1.
    """
    body, measures = body_inputs(series, given, wanted)
    dose = dose_input(series, given)
    left, timing, found = _decay(volume, series, frames, given)
    factor = bq_ml * _amount(wanted, body) / (cast(float, dose.value) * left)
    inputs = (*used, *measures, dose, *timing)
    unit = volume.scale.unit or ""
    return SuvInputs(wanted.kind, wanted.formula, unit, factor, inputs), found


def _decay(
    volume: Volume, series: PetSeries, frames: Sequence[PetFrame], given: SuvGiven
) -> tuple[float, list[SuvInput], tuple[Diagnostic, ...]]:
    """Which part of the dose is left at the moment that the images are corrected to."""
    caller = given.decay_correction is not None
    correction = given.decay_correction or series.decay_correction or "absent"
    stated = SuvInput(
        "decay correction", correction, "", "the caller" if caller else "DecayCorrection"
    )
    if correction == "ADMIN" and given.corrected_to is None:
        return 1.0, [stated], ()
    if correction not in ("START", "DATETIME") and given.corrected_to is None:
        raise refuse("IMG-1533", decay_correction=correction)
    half_life = half_life_input(series, given)
    half_life_s = cast(float, half_life.value)
    notices: tuple[Diagnostic, ...] = ()
    if given.corrected_to is not None:
        at = given.corrected_to
        at = at if at.tzinfo is not None else at.replace(tzinfo=series.zone)
        reference = Reference(at, "the caller's corrected_to")
    elif correction == "DATETIME":
        assert series.corrected_to is not None
        reference = Reference(series.corrected_to, "DecayCorrectionDateTime")
    else:
        reference, notices = start_reference(series, frames, half_life_s=half_life_s)
    elapsed = elapsed_since_injection(
        series,
        reference,
        given=given.injected_at,
        half_life_s=half_life_s,
        running_s=_running_s(volume, frames, reference),
    )
    uptake = SuvInput("time from injection", elapsed.seconds, "s", elapsed.source)
    left = 2.0 ** (-elapsed.seconds / half_life_s)
    return left, [stated, half_life, uptake], (*notices, *elapsed.notices)


def _running_s(volume: Volume, frames: Sequence[PetFrame], reference: Reference) -> float:
    """For how long after the reference a dynamic scan still began frames, s."""
    if volume.fourth_axis is None or volume.fourth_axis.name != "time":
        return 0.0
    times = [frame.acquired_at for frame in frames if frame.acquired_at is not None]
    return max((seconds_between(reference.at, at) for at in times), default=0.0)


def _on_scale(
    volume: Volume, inputs: SuvInputs, wanted: Normalisation, found: Sequence[Diagnostic]
) -> Volume:
    scale, voxels = volume.scale, volume.voxels
    slope, intercept = scale.slope * inputs.factor, scale.intercept * inputs.factor
    if scale.applied:
        dtype = np.result_type(voxels.dtype, np.float32)
        voxels = np.multiply(voxels, inputs.factor, dtype=np.float64).astype(dtype)
        slope, intercept = 1.0, 0.0
    before = Alternative(scale.name, scale.slope, scale.intercept, scale.unit)
    if scale.applied:
        before = Alternative(scale.name, None, None, scale.unit, "varies")
    on_suv = SuvScale(
        slope,
        intercept,
        wanted.unit,
        f"{inputs}; {scale.source}",
        applied=scale.applied,
        name=f"suv-{wanted.kind}",
        alternatives=(before, *scale.alternatives),
        suv=inputs,
    )
    return replace(volume, voxels=voxels, scale=on_suv, notices=(*volume.notices, *found))
