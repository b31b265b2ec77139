"""Half-lives of the radionuclides of PET, by the codes that files give for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydicom import Dataset

from numbat_imaging.intake import elements


@dataclass(frozen=True, slots=True)
class Radionuclide:
    """A nuclide and its half-life in s."""

    name: str
    half_life_s: float


_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0

#: SNOMED CT code, SNOMED RT code of older files, nuclide and half-life. Codes: PS3.16 CID 4020.
#: Half-lives: Decay Data Evaluation Project (Table of Radionuclides, LNHB) where it has the
#: nuclide, else Evaluated Nuclear Structure Data File (NNDC).
_TABLE = (
    ("40565003", "C-105A1", "C-11", 20.361 * _MINUTE),
    ("21576001", "C-107A1", "N-13", 9.967 * _MINUTE),
    ("129504001", "C-B1038", "O-15", 2.041 * _MINUTE),
    ("77004003", "C-111A1", "F-18", 1.8289 * _HOUR),
    ("423764008", "C-135A4", "K-38", 7.636 * _MINUTE),
    ("75696008", "C-166A2", "Ti-45", 184.8 * _MINUTE),
    ("37225000", "C-149A1", "Mn-52", 5.591 * _DAY),
    ("69089000", "C-130A1", "Fe-52", 8.275 * _HOUR),
    ("425364008", "C-127A4", "Cu-60", 23.7 * _MINUTE),
    ("71425003", "C-127A1", "Cu-61", 3.336 * _HOUR),
    ("422934004", "C-127A5", "Cu-62", 9.67 * _MINUTE),
    ("3932008", "C-127A2", "Cu-64", 12.7004 * _HOUR),
    ("65054007", "C-141A1", "Zn-62", 9.193 * _HOUR),
    ("79477007", "C-131A1", "Ga-66", 9.49 * _HOUR),
    ("35337001", "C-131A3", "Ga-68", 67.83 * _MINUTE),
    ("53315004", "C-128A2", "Ge-68", 270.95 * _DAY),
    ("2705002", "C-115A2", "As-72", 26.0 * _HOUR),
    ("17910003", "C-113A1", "Br-75", 96.7 * _MINUTE),
    ("79523006", "C-113A2", "Br-76", 16.2 * _HOUR),
    ("79197006", "C-159A2", "Rb-82", 1.2652 * _MINUTE),
    ("10738001", "C-162A3", "Y-86", 14.74 * _HOUR),
    ("14691008", "C-162A7", "Y-90", 2.6684 * _DAY),
    ("63360001", "C-168A4", "Zr-89", 78.42 * _HOUR),
    ("424079002", "C-163AA", "Tc-94m", 52.0 * _MINUTE),
    ("40937006", "C-114A5", "I-124", 4.176 * _DAY),
)

_BY_CODE: Mapping[str, Radionuclide] = {
    code: Radionuclide(name, half_life_s)
    for newer, older, name, half_life_s in _TABLE
    for code in (newer, older)
}

#: Files give F-18 as 6582 to 6588 s and Rb-82 as 75 to 76.4 s; minutes for seconds, or another
#: nuclide's half-life, lie far beyond.
HALF_LIFE_TOLERANCE = 0.02


def radionuclide_of(item: Dataset) -> Radionuclide | None:
    """The nuclide that an item of RadiopharmaceuticalInformationSequence codes.

    None without a code, and for a code that the table lacks.
    """
    for code in elements.sequence(item, "RadionuclideCodeSequence")[:1]:
        return _BY_CODE.get(elements.text(code, "CodeValue") or "")
    return None
