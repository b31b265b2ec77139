"""Faults by name, with what a right reader makes of them; here those of place and orientation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal

from pydicom import Dataset

from numbat_imaging.phantoms import geometry_faults as geometry
from numbat_imaging.phantoms import pixel_faults as pixels
from numbat_imaging.phantoms.geometry_faults import Transform
from numbat_imaging.phantoms.phantom import Phantom, write_datasets

#: ("volume", largest displacement in mm), ("refused", the code, or None where any typed refusal is
#: right), ("split", number of volumes), ("aside", the code): no image, and nothing is wrong.
Expected = (
    tuple[Literal["volume"], float]
    | tuple[Literal["refused"], str | None]
    | tuple[Literal["split"], int]
    | tuple[Literal["aside"], str | None]
)

#: Positions in DICOM are decimal text; what it rounds away lies well below this.
EXACT_MM = 0.001
#: The named limit on slice positions (geometry.tolerances).
LIMIT_MM = 0.05


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a scan can be, by name.

    `build` gives its datasets anew at each call; `expected` is what a right reader does with them;
    `says` is one line for a report. `holds` gives what the files hold as one dataset a slice, where
    a file holds several.
    """

    name: str
    build: Callable[[], list[Dataset]]
    expected: Expected
    says: str
    holds: Callable[[], list[Dataset]] | None = None

    def slices(self) -> list[Dataset]:
        """One dataset for each slice, with its place, its scale and its pixels."""
        return (self.holds or self.build)()

    def write(self, directory: str | PathLike[str]) -> list[Path]:
        """The datasets as files."""
        return write_datasets(self.build(), directory)


CLEAN = Phantom()
LONG = Phantom(shape=(16, 12, 100))
#: A tilt turns the image but the table still moves along the patient.
TILTED = replace(
    LONG, modality="CT", step_lps_mm=(0.0, 0.0, 2.0), dtype="int16", slope=1.0, intercept=-1024.0
)
PET = Phantom(modality="PT", unit="BQML")
SMALL_STEP = Phantom(spacing_mm=(0.5, 0.5, 0.1))
TWO_TIMES = Phantom(volumes=2)


def refused(code: str) -> Expected:
    """A right reader refuses with this code."""
    return ("refused", code)


def _turned(a_deg: float, b_deg: float) -> tuple[float, ...]:
    a, b = math.radians(a_deg), math.radians(b_deg)
    row = (math.cos(a), math.sin(a), 0.0)
    column = (-math.sin(a) * math.cos(b), math.cos(a) * math.cos(b), math.sin(b))
    return (*row, *column)


def made_fault(
    name: str, says: str, expected: Expected, phantom: Phantom, *transforms: Transform
) -> Fault:
    """A fault that transforms the slices of a phantom, in order."""

    def build() -> list[Dataset]:
        slices = phantom.slices()
        for transform in transforms:
            slices = transform(slices)
        return slices

    return Fault(name, build, expected, says)


def _sound() -> list[Fault]:
    down = replace(CLEAN, step_lps_mm=(0.0, 0.0, -2.0))
    anisotropic = replace(CLEAN, shape=(24, 32, 10), spacing_mm=(0.7, 1.3, 3.1))
    oblique = replace(anisotropic, orientation=_turned(23.0, -37.0))
    exact: Expected = ("volume", EXACT_MM)
    thirds = replace(CLEAN, spacing_mm=(1 / 3, 1 / 3, 0.3))
    return [
        made_fault("clean", "ten even slices", exact, CLEAN),
        made_fault("descending", "positions run against the normal", exact, down),
        made_fault("anisotropic", "three different spacings, not square", exact, anisotropic),
        made_fault("oblique", "turned about two axes", exact, oblique),
        made_fault(
            "sagittal",
            "normal along the patient's x",
            exact,
            replace(CLEAN, orientation=(0.0, 1.0, 0.0, 0.0, 0.0, -1.0)),
        ),
        made_fault("float-steps", "spacings with no finite decimal", exact, thirds),
        made_fault(
            "ds-jitter",
            "positions rounded at 0.0001 mm",
            ("volume", 0.001),
            CLEAN,
            geometry.jittered_text(1e-4),
        ),
        made_fault(
            "instance-numbers-shuffled",
            "numbers in no order of place",
            exact,
            CLEAN,
            geometry.shuffled_numbers,
        ),
        made_fault("single-slice", "one slice", exact, replace(CLEAN, shape=(32, 32, 1))),
        made_fault("two-slices", "two slices", exact, replace(CLEAN, shape=(32, 32, 2))),
        made_fault(
            "every-second-slice",
            "decimated evenly: still a grid",
            exact,
            CLEAN,
            geometry.every_second,
        ),
        made_fault(
            "last-two-missing",
            "nothing in the files says so",
            exact,
            CLEAN,
            geometry.without(-1, -2),
        ),
        made_fault(
            "first-two-missing",
            "only InstanceNumber hints at it",
            exact,
            CLEAN,
            geometry.without(0, 1),
        ),
        made_fault(
            "jitter-0.03",
            "0.03 mm up and down in turn",
            ("volume", LIMIT_MM),
            LONG,
            geometry.spread_along_normal(lambda k: 0.03 * (-1) ** k),
        ),
    ]


def _positions() -> list[Fault]:
    along = geometry.spread_along_normal
    return [
        made_fault(
            "middle-slice-missing",
            "slice 5 of 10 missing",
            refused("IMG-1206"),
            CLEAN,
            geometry.without(5),
        ),
        made_fault(
            "two-gaps",
            "slices 3 and 7 of 10 missing",
            refused("IMG-1206"),
            CLEAN,
            geometry.without(3, 7),
        ),
        made_fault(
            "one-of-three-missing",
            "slices 0, 2 and 3 of 4",
            refused("IMG-1206"),
            replace(CLEAN, shape=(32, 32, 4)),
            geometry.without(1),
        ),
        made_fault(
            "thin-slice-missing",
            "one of ten at 0.1 mm missing",
            refused("IMG-1206"),
            SMALL_STEP,
            geometry.without(5),
        ),
        made_fault(
            "last-two-missing-announced",
            "NumberOfSlices says ten",
            refused("IMG-1216"),
            PET,
            geometry.without(-1, -2),
            pixels.announced_images(10),
        ),
        made_fault(
            "two-slabs",
            "2 mm apart, then 5 mm",
            refused("IMG-1207"),
            CLEAN,
            geometry.two_slabs(5.0, 2.0),
        ),
        made_fault(
            "jitter-0.05",
            "0.05 mm up and down in turn",
            refused("IMG-1207"),
            LONG,
            along(lambda k: 0.05 * (-1) ** k),
        ),
        made_fault(
            "first-gap-0.09",
            "the first gap 0.09 mm wider",
            refused("IMG-1207"),
            LONG,
            along(lambda k: 0.09 * (k > 0)),
        ),
        made_fault(
            "drift-0.09",
            "0.09 mm a gap from slice 51",
            refused("IMG-1207"),
            LONG,
            along(lambda k: 0.09 * max(0, k - 50)),
        ),
    ]


def _tilts() -> list[Fault]:
    kept: Expected = ("volume", LIMIT_MM)
    # The tag must not matter, so one long stack an angle is enough.
    short = replace(TILTED, shape=(16, 12, 20))
    return [
        made_fault(
            f"tilt-{angle:g}-tag-{tag}",
            f"gantry tilt {angle:g}°, its tag {tag}",
            kept,
            TILTED if tag == "right" else short,
            geometry.tilted(angle, tag=tag),
        )
        for angle in (1.0, 2.0, 2.5, 5.0, 20.0)
        for tag in ("right", "absent", "opposite")
    ]


def _orientations() -> list[Fault]:
    return [
        made_fault(
            "one-other-pixel-spacing",
            "slice 4 has 1.25 mm pixels",
            refused("IMG-1204"),
            CLEAN,
            geometry.other_spacing(4),
        ),
        made_fault(
            "one-other-orientation",
            "slice 4 turned by 10°",
            refused("IMG-1206"),
            CLEAN,
            geometry.other_orientation(4),
        ),
        made_fault(
            "localizer-inside",
            "a sagittal localizer in the series",
            ("split", 2),
            CLEAN,
            geometry.with_localizer,
        ),
        made_fault(
            "cosines-not-unit",
            "cosines of length 0.9",
            refused("IMG-1202"),
            CLEAN,
            geometry.with_cosines((0.9, 0, 0, 0, 0.9, 0)),
        ),
        made_fault(
            "cosines-not-orthogonal",
            "85° between rows and columns",
            refused("IMG-1203"),
            CLEAN,
            geometry.with_cosines(
                (1, 0, 0, math.sin(math.radians(5)), math.cos(math.radians(5)), 0)
            ),
        ),
        made_fault(
            "cosines-zero",
            "all six cosines 0",
            refused("IMG-1202"),
            CLEAN,
            geometry.with_cosines((0, 0, 0, 0, 0, 0)),
        ),
        made_fault(
            "pixel-spacing-zero",
            "PixelSpacing 0\\0",
            refused("IMG-1205"),
            CLEAN,
            geometry.with_text("PixelSpacing", "0\\0"),
        ),
        made_fault(
            "pixel-spacing-one-value",
            "PixelSpacing 1",
            refused("IMG-1012"),
            CLEAN,
            geometry.with_text("PixelSpacing", "1"),
        ),
        made_fault(
            "one-without-position",
            "slice 4 has no position",
            refused("IMG-1201"),
            CLEAN,
            geometry.without_element("ImagePositionPatient", index=4),
        ),
        made_fault(
            "none-with-position",
            "no slice has a position",
            refused("IMG-1201"),
            CLEAN,
            geometry.without_element("ImagePositionPatient"),
        ),
        made_fault(
            "none-with-orientation",
            "no slice has an orientation",
            refused("IMG-1201"),
            CLEAN,
            geometry.without_element("ImageOrientationPatient"),
        ),
        made_fault(
            "position-nan",
            "NaN in a position",
            refused("IMG-1012"),
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15.5\\NaN\\38.125", index=4),
        ),
        made_fault(
            "position-decimal-comma",
            "a decimal comma in a position",
            refused("IMG-1012"),
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15,5\\-20,25\\38,125", index=4),
        ),
        made_fault(
            "position-two-values",
            "a position of two numbers",
            refused("IMG-1012"),
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15.5\\-20.25", index=4),
        ),
    ]


#: The part of the single-frame fault matrix that lies in positions and orientations.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for family in (_sound, _positions, _tilts, _orientations)
    for fault in family()
}
