"""What uptake is normalised by: body weight, lean body mass, ideal weight, body surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Sex = Literal["M", "F"]


@dataclass(frozen=True, slots=True)
class Body:
    """A patient's measures; None for what a normalisation did not need."""

    weight_kg: float | None = None
    size_m: float | None = None
    sex: Sex | None = None


@dataclass(frozen=True, slots=True)
class Normalisation:
    """One kind of SUV.

    `needs`: names of the measures of `Body`. `amount`: of a body with these measures, g (cm2 for
    the body surface). `unit` is the code of PS3.16 CID 85.
    """

    kind: str
    unit: str
    formula: str
    needs: tuple[str, ...]
    amount: Callable[[Body], float]


def _weight_g(body: Body) -> float:
    assert body.weight_kg is not None
    return 1000.0 * body.weight_kg


def _all(body: Body) -> tuple[float, float, bool]:
    assert body.weight_kg is not None
    assert body.size_m is not None
    return body.weight_kg, body.size_m, body.sex == "M"


def _janmahasatian_g(body: Body) -> float:
    weight_kg, size_m, male = _all(body)
    bmi = weight_kg / size_m**2
    per_bmi = 6680.0 + 216.0 * bmi if male else 8780.0 + 244.0 * bmi
    return 1000.0 * 9270.0 * weight_kg / per_bmi


def _james_g(body: Body) -> float:
    weight_kg, size_m, male = _all(body)
    ratio = (weight_kg / (100.0 * size_m)) ** 2
    lean_kg = 1.10 * weight_kg - 128.0 * ratio if male else 1.07 * weight_kg - 148.0 * ratio
    return 1000.0 * lean_kg


def _ideal_g(body: Body) -> float:
    assert body.size_m is not None
    above_cm = 100.0 * body.size_m - 152.0
    return 1000.0 * (48.0 + 1.06 * above_cm if body.sex == "M" else 45.5 + 0.91 * above_cm)


def _du_bois_cm2(body: Body) -> float:
    weight_kg, size_m, _ = _all(body)
    return float(1e4 * 0.007184 * weight_kg**0.425 * (100.0 * size_m) ** 0.725)


_MEASURES = ("weight_kg", "size_m", "sex")

#: By kind. Sources: Janmahasatian et al., Clin Pharmacokinet 44 (2005) 1051; James, Research on
#: Obesity, HMSO 1976 (128 for men, as DICOM names it); Sugawara et al., Radiology 213 (1999) 521;
#: Du Bois, Arch Intern Med 17 (1916) 863.
NORMALISATIONS: Mapping[str, Normalisation] = {
    found.kind: found
    for found in (
        Normalisation("bw", "g/ml{SUVbw}", "body weight", ("weight_kg",), _weight_g),
        Normalisation(
            "lbm-janma",
            "g/ml{SUVlbm(Janma)}",
            "lean body mass, Janmahasatian 2005",
            _MEASURES,
            _janmahasatian_g,
        ),
        Normalisation(
            "lbm-james128",
            "g/ml{SUVlbm(James128)}",
            "lean body mass, James 1976",
            _MEASURES,
            _james_g,
        ),
        Normalisation(
            "ibw", "g/ml{SUVibw}", "ideal body weight, Sugawara 1999", ("size_m", "sex"), _ideal_g
        ),
        Normalisation(
            "bsa",
            "cm2/ml{SUVbsa}",
            "body surface, Du Bois 1916",
            ("weight_kg", "size_m"),
            _du_bois_cm2,
        ),
    )
}

#: Other names of a kind.
ALIASES: Mapping[str, str] = {"lbm": "lbm-janma"}

#: What a caller may ask for.
KINDS = (*NORMALISATIONS, *ALIASES)
