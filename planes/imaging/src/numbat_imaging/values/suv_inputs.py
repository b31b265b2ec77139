"""Every number that a standardised uptake value hangs on, its unit, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from numbat_imaging.values.body import Body, Normalisation, Sex
from numbat_imaging.values.pet_series import PetSeries, administered
from numbat_imaging.values.radionuclides import HALF_LIFE_TOLERANCE
from numbat_registries import refuse

#: Beyond these a file's value has another unit, or stands for "unknown". Animals are lighter: what
#: the caller gives is taken.
WEIGHT_KG = (0.5, 400.0)
SIZE_M = (0.3, 2.5)
#: 0.1 MBq is what MBq and mCi written as Bq lie far below; no tracer is given in tens of GBq.
DOSE_BQ = (1e5, 2e10)

CALLER = "the caller"


@dataclass(frozen=True, slots=True)
class SuvGiven:
    """What the caller states in place of the files; None to take what the files state.

    `injected_at` and `corrected_to` without a time zone are in that of the files. `corrected_to`:
    the moment that the images were decay corrected to. `decay_correction`: START or ADMIN.
    """

    weight_kg: float | None = None
    size_m: float | None = None
    sex: str | None = None
    dose_bq: float | None = None
    half_life_s: float | None = None
    injected_at: datetime | None = None
    corrected_to: datetime | None = None
    decay_correction: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is given."""
        return any(getattr(self, part.name) is not None for part in fields(self))

    def to_dict(self) -> dict[str, Any]:
        """As keyword arguments of `suv`."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def check(self) -> None:
        """Raises IMG-1814 for what no file could state either."""
        for name in ("weight_kg", "size_m", "dose_bq", "half_life_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise refuse("IMG-1814", argument=name, reason="no positive number")
        for name, choices in (("sex", ("M", "F")), ("decay_correction", ("START", "ADMIN"))):
            if getattr(self, name) not in (None, *choices):
                raise refuse("IMG-1814", argument=name, reason=f"none of {', '.join(choices)}")


@dataclass(frozen=True, slots=True)
class SuvInput:
    """One number (or word), its unit, and the element that stated it, or "the caller"."""

    name: str
    value: float | str
    unit: str
    source: str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:.10g}"
        return f"{self.name} {value}{' ' + self.unit if self.unit else ''} ({self.source})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class SuvInputs:
    """How values became uptake values: SUV = `factor` × value in `from_unit`.

    `kind`: bw, lbm-janma, lbm-james128, ibw or bsa; `formula` says by what it normalises.
    """

    kind: str
    formula: str
    from_unit: str
    factor: float
    inputs: tuple[SuvInput, ...] = ()

    def value(self, name: str) -> float | str | None:
        """The value of the input that is called so; None when it was not needed."""
        return next((found.value for found in self.inputs if found.name == name), None)

    def __str__(self) -> str:
        used = "; ".join(str(found) for found in self.inputs)
        how = f"SUV by {self.formula}: {self.from_unit} × {self.factor:.10g}"
        return f"{how} from {used}" if used else how

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data; it holds no date, and weight and size as inputs alone."""
        return {
            "kind": self.kind,
            "formula": self.formula,
            "from_unit": self.from_unit,
            "factor": self.factor,
            "inputs": [found.to_dict() for found in self.inputs],
        }


def body_inputs(
    series: PetSeries, given: SuvGiven, wanted: Normalisation
) -> tuple[Body, list[SuvInput]]:
    """The measures that a normalisation needs.

    Raises IMG-1534, IMG-1535 and IMG-1536 for weight, size and sex that are absent or implausible.
    """
    weight, size, sex = None, None, None
    if "weight_kg" in wanted.needs:
        weight = _weight(series, given)
    if "size_m" in wanted.needs:
        size = _size(series, given)
    if "sex" in wanted.needs:
        sex = _sex(series, given)
    body = Body(
        weight_kg=None if weight is None else cast(float, weight.value),
        size_m=None if size is None else cast(float, size.value),
        sex=None if sex is None else cast(Sex, sex.value),
    )
    return body, [found for found in (weight, size, sex) if found is not None]


def _weight(series: PetSeries, given: SuvGiven) -> SuvInput:
    if given.weight_kg is not None:
        return SuvInput("weight", given.weight_kg, "kg", CALLER)
    stated = series.weight_kg
    if stated is None or not WEIGHT_KG[0] <= stated <= WEIGHT_KG[1]:
        raise refuse("IMG-1534", reason=_fault(stated, *WEIGHT_KG, "kg"))
    return SuvInput("weight", stated, "kg", "PatientWeight")


def _size(series: PetSeries, given: SuvGiven) -> SuvInput:
    if given.size_m is not None:
        return SuvInput("size", given.size_m, "m", CALLER)
    stated = series.size_m
    if stated is None or not SIZE_M[0] <= stated <= SIZE_M[1]:
        raise refuse("IMG-1535", reason=_fault(stated, *SIZE_M, "m"))
    return SuvInput("size", stated, "m", "PatientSize")


def _sex(series: PetSeries, given: SuvGiven) -> SuvInput:
    if given.sex is not None:
        return SuvInput("sex", given.sex, "", CALLER)
    if series.sex not in ("M", "F"):
        raise refuse("IMG-1536", reason="absent" if series.sex is None else "neither M nor F")
    return SuvInput("sex", series.sex, "", "PatientSex")


def _fault(stated: float | None, low: float, high: float, unit: str) -> str:
    """What is wrong, without the value: it is the patient's."""
    if stated is None:
        return "absent"
    side = f"below {low:g}" if stated < low else f"above {high:g}"
    return f"{side} {unit}"


def dose_input(series: PetSeries, given: SuvGiven) -> SuvInput:
    """The injected activity in Bq; what stayed in the syringe is not in the files.

    Raises IMG-1537 when it is absent or in another unit, IMG-1546 when there are several.
    """
    if given.dose_bq is not None:
        return SuvInput("dose", given.dose_bq, "Bq", CALLER)
    stated = administered(series).dose_bq
    if stated is None or not DOSE_BQ[0] <= stated <= DOSE_BQ[1]:
        raise refuse("IMG-1537", reason=_fault(stated, *DOSE_BQ, "Bq"))
    return SuvInput("dose", stated, "Bq", "RadionuclideTotalDose")


def half_life_input(series: PetSeries, given: SuvGiven) -> SuvInput:
    """The half-life in s: the file's, or that of the coded nuclide where the file gives none.

    Raises IMG-1538 when there is neither, or when they contradict each other, IMG-1546 when there
    are several injections.
    """
    if given.half_life_s is not None:
        return SuvInput("half-life", given.half_life_s, "s", CALLER)
    injection = administered(series)
    stated, nuclide = injection.half_life_s, injection.nuclide
    if stated is None and nuclide is not None:
        source = f"known half-life of {nuclide.name}, from RadionuclideCodeSequence"
        return SuvInput("half-life", nuclide.half_life_s, "s", source)
    if stated is None:
        raise refuse("IMG-1538", stated_s="absent", nuclide="no known nuclide", known_s="unknown")
    if stated <= 0 or (
        nuclide is not None and abs(stated / nuclide.half_life_s - 1.0) > HALF_LIFE_TOLERANCE
    ):
        raise refuse(
            "IMG-1538",
            stated_s=f"{stated:g} s",
            nuclide="no known nuclide" if nuclide is None else nuclide.name,
            known_s="unknown" if nuclide is None else f"{nuclide.half_life_s:g} s",
        )
    return SuvInput("half-life", stated, "s", "RadionuclideHalfLife")
