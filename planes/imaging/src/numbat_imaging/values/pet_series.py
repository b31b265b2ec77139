"""What the images of a PET series state that bears on uptake, and that all state the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, time, timezone

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.moments import (
    clock_time,
    date_time,
    dated_time,
    parsed_date_time,
    zone_of,
)
from numbat_imaging.values.radionuclides import Radionuclide, radionuclide_of
from numbat_registries import refuse

_PHILIPS = (0x7053, "Philips PET Private Group")


@dataclass(frozen=True, slots=True)
class Injection:
    """The one item of RadiopharmaceuticalInformationSequence; None for what it does not state."""

    dose_bq: float | None = None
    half_life_s: float | None = None
    nuclide: Radionuclide | None = None
    started_at: datetime | None = None
    start_clock: time | None = None


@dataclass(frozen=True, slots=True)
class VendorReference:
    """The moment that images were corrected to, as a vendor's private element states it."""

    element: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PetSeries:
    """What holds for every image of a series; None for what the files do not state.

    `corrections`: the terms of CorrectedImage that were applied. `decay_correction`: START, ADMIN,
    NONE or what else is written; DATETIME where `corrected_to` is stated. `radiopharmaceuticals`:
    how many items there are; `injection` is that of the only one.
    """

    modality: str
    manufacturer: str
    suv_type: str | None
    corrections: frozenset[str]
    decay_correction: str | None
    corrected_to: datetime | None
    vendor: VendorReference | None
    series_at: datetime | None
    zone: timezone | None
    radiopharmaceuticals: int
    injection: Injection = field(repr=False)
    weight_kg: float | None = field(repr=False)
    size_m: float | None = field(repr=False)
    sex: str | None = field(repr=False)
    activity_factor: float | None
    suv_factor: float | None


@dataclass(frozen=True, slots=True)
class PetFrame:
    """When one image was acquired, and at what offset its values hold, s."""

    acquired_at: datetime | None
    reference_s: float | None
    duration_s: float | None


def pet_series(datasets: Iterator[Dataset]) -> tuple[PetSeries, tuple[PetFrame, ...]]:
    """What flat data sets of one series state, one for each slice.

    Raises IMG-1547 when they contradict each other, IMG-1012 for values that cannot be read.
    Source: PS3.3 C.8.9 and C.8.22.
    """
    found: list[PetSeries] = []
    frames = []
    for ds in datasets:
        zone = zone_of(ds)
        series = _series(ds, zone)
        if not found or series != found[-1]:
            found.append(series)
        frames.append(_frame(ds, zone))
    _refuse_different(found)
    return found[0], tuple(frames)


def _refuse_different(found: Sequence[PetSeries]) -> None:
    if len(found) < 2:
        return
    differing = [
        part.name
        for part in fields(PetSeries)
        if len({getattr(series, part.name) for series in found}) > 1
    ]
    raise refuse("IMG-1547", differing=differing)


def _series(ds: Dataset, zone: timezone | None) -> PetSeries:
    items = elements.sequence(ds, "RadiopharmaceuticalInformationSequence")
    corrected_to = None
    if elements.text(ds, "DecayCorrected") == "YES":
        corrected_to = date_time(ds, "DecayCorrectionDateTime", zone)
    decay_correction = elements.text(ds, "DecayCorrection")
    return PetSeries(
        modality=elements.text(ds, "Modality") or "",
        manufacturer=elements.text(ds, "Manufacturer") or "",
        suv_type=elements.text(ds, "SUVType"),
        corrections=_corrections(ds),
        decay_correction="DATETIME" if corrected_to is not None else decay_correction,
        corrected_to=corrected_to,
        vendor=_vendor_reference(ds, zone),
        series_at=dated_time(ds, "Series", zone),
        zone=zone,
        radiopharmaceuticals=len(items),
        injection=_injection(items[0], zone) if len(items) == 1 else Injection(),
        weight_kg=elements.decimal(ds, "PatientWeight"),
        size_m=elements.decimal(ds, "PatientSize"),
        sex=elements.text(ds, "PatientSex"),
        activity_factor=_philips_factor(ds, 0x09),
        suv_factor=_philips_factor(ds, 0x00),
    )


def _corrections(ds: Dataset) -> frozenset[str]:
    """CorrectedImage, and what an enhanced object says in words of its own."""
    enhanced = {"AttenuationCorrected": "ATTN", "DecayCorrected": "DECY"}
    stated = {term for keyword, term in enhanced.items() if elements.text(ds, keyword) == "YES"}
    return frozenset(stated.union(elements.texts(ds, "CorrectedImage")))


def _vendor_reference(ds: Dataset, zone: timezone | None) -> VendorReference | None:
    for group, creator, element in (
        (0x0071, "SIEMENS MED PT", 0x22),
        (0x0009, "GEMS_PETD_01", 0x0D),
    ):
        stated = elements.private(ds, group, creator, element, vr="DT")
        if isinstance(stated, str):
            tag = elements.private_tag(ds, group, creator, element)
            assert tag is not None
            name = f"({group:04X},xx{element:02X}) of {creator}"
            return VendorReference(name, parsed_date_time(stated, tag, zone))
    return None


def _philips_factor(ds: Dataset, element: int) -> float | None:
    found = elements.private(ds, *_PHILIPS, element, vr="DS")
    # An export writes 0 where the scanner had no factor.
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _injection(item: Dataset, zone: timezone | None) -> Injection:
    return Injection(
        dose_bq=elements.decimal(item, "RadionuclideTotalDose"),
        half_life_s=elements.decimal(item, "RadionuclideHalfLife"),
        nuclide=radionuclide_of(item),
        started_at=date_time(item, "RadiopharmaceuticalStartDateTime", zone),
        start_clock=clock_time(item, "RadiopharmaceuticalStartTime"),
    )


def _frame(ds: Dataset, zone: timezone | None) -> PetFrame:
    reference_ms = elements.decimal(ds, "FrameReferenceTime")
    duration_ms = elements.decimal(ds, "ActualFrameDuration")
    acquired_at = dated_time(ds, "Acquisition", zone)
    return PetFrame(
        acquired_at or date_time(ds, "AcquisitionDateTime", zone),
        None if reference_ms is None else reference_ms / 1000.0,
        None if duration_ms is None else duration_ms / 1000.0,
    )


def administered(series: PetSeries) -> Injection:
    """The only injection of a series.

    Raises IMG-1546 when there are several: which of them the image shows is not in the files.
    """
    if series.radiopharmaceuticals > 1:
        raise refuse("IMG-1546", items=series.radiopharmaceuticals)
    return series.injection
