"""Every fault by name, with what a right reader makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal

from pydicom import Dataset

from numbat_imaging.phantoms import geometry_faults as geometry
from numbat_imaging.phantoms import identity_faults as identity
from numbat_imaging.phantoms import other_objects as objects
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
    `says` is one line for a report.
    """

    name: str
    build: Callable[[], list[Dataset]]
    expected: Expected
    says: str

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


def _turned(a_deg: float, b_deg: float) -> tuple[float, ...]:
    a, b = math.radians(a_deg), math.radians(b_deg)
    row = (math.cos(a), math.sin(a), 0.0)
    column = (-math.sin(a) * math.cos(b), math.cos(a) * math.cos(b), math.sin(b))
    return (*row, *column)


def _fault(
    name: str, says: str, expected: Expected, phantom: Phantom, *transforms: Transform
) -> Fault:
    def build() -> list[Dataset]:
        slices = phantom.slices()
        for transform in transforms:
            slices = transform(slices)
        return slices

    return Fault(name, build, expected, says)


def _object(name: str, says: str, expected: Expected, build: Callable[[], list[Dataset]]) -> Fault:
    return Fault(name, build, expected, says)


def _sound() -> list[Fault]:
    down = replace(CLEAN, step_lps_mm=(0.0, 0.0, -2.0))
    anisotropic = replace(CLEAN, shape=(24, 32, 10), spacing_mm=(0.7, 1.3, 3.1))
    oblique = replace(anisotropic, orientation=_turned(23.0, -37.0))
    exact: Expected = ("volume", EXACT_MM)
    thirds = replace(CLEAN, spacing_mm=(1 / 3, 1 / 3, 0.3))
    return [
        _fault("clean", "ten even slices", exact, CLEAN),
        _fault("descending", "positions run against the normal", exact, down),
        _fault("anisotropic", "three different spacings, not square", exact, anisotropic),
        _fault("oblique", "turned about two axes", exact, oblique),
        _fault(
            "sagittal",
            "normal along the patient's x",
            exact,
            replace(CLEAN, orientation=(0.0, 1.0, 0.0, 0.0, 0.0, -1.0)),
        ),
        _fault("float-steps", "spacings with no finite decimal", exact, thirds),
        _fault(
            "ds-jitter",
            "positions rounded at 0.0001 mm",
            ("volume", 0.001),
            CLEAN,
            geometry.jittered_text(1e-4),
        ),
        _fault(
            "instance-numbers-shuffled",
            "numbers in no order of place",
            exact,
            CLEAN,
            geometry.shuffled_numbers,
        ),
        _fault("single-slice", "one slice", exact, replace(CLEAN, shape=(32, 32, 1))),
        _fault("two-slices", "two slices", exact, replace(CLEAN, shape=(32, 32, 2))),
        _fault(
            "every-second-slice",
            "decimated evenly: still a grid",
            exact,
            CLEAN,
            geometry.every_second,
        ),
        _fault(
            "last-two-missing",
            "nothing in the files says so",
            exact,
            CLEAN,
            geometry.without(-1, -2),
        ),
        _fault(
            "first-two-missing",
            "only InstanceNumber hints at it",
            exact,
            CLEAN,
            geometry.without(0, 1),
        ),
        _fault(
            "jitter-0.03",
            "0.03 mm up and down in turn",
            ("volume", LIMIT_MM),
            LONG,
            geometry.spread_along_normal(lambda k: 0.03 * (-1) ** k),
        ),
    ]


def _positions() -> list[Fault]:
    gap: Expected = ("refused", None)
    uneven: Expected = ("refused", None)
    along = geometry.spread_along_normal
    return [
        _fault("middle-slice-missing", "slice 5 of 10 missing", gap, CLEAN, geometry.without(5)),
        _fault("two-gaps", "slices 3 and 7 of 10 missing", gap, CLEAN, geometry.without(3, 7)),
        _fault(
            "one-of-three-missing",
            "slices 0, 2 and 3 of 4",
            gap,
            replace(CLEAN, shape=(32, 32, 4)),
            geometry.without(1),
        ),
        _fault(
            "thin-slice-missing",
            "one of ten at 0.1 mm missing",
            gap,
            SMALL_STEP,
            geometry.without(5),
        ),
        _fault(
            "last-two-missing-announced",
            "NumberOfSlices says ten",
            gap,
            PET,
            geometry.without(-1, -2),
            pixels.announced_images(10),
        ),
        _fault("two-slabs", "2 mm apart, then 5 mm", uneven, CLEAN, geometry.two_slabs(5.0, 2.0)),
        _fault(
            "jitter-0.05",
            "0.05 mm up and down in turn",
            uneven,
            LONG,
            along(lambda k: 0.05 * (-1) ** k),
        ),
        _fault(
            "first-gap-0.09",
            "the first gap 0.09 mm wider",
            uneven,
            LONG,
            along(lambda k: 0.09 * (k > 0)),
        ),
        _fault(
            "drift-0.09",
            "0.09 mm a gap from slice 51",
            uneven,
            LONG,
            along(lambda k: 0.09 * max(0, k - 50)),
        ),
    ]


def _tilts() -> list[Fault]:
    kept: Expected = ("volume", LIMIT_MM)
    # The tag must not matter, so one long stack an angle is enough.
    short = replace(TILTED, shape=(16, 12, 20))
    return [
        _fault(
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
    refused: Expected = ("refused", None)
    return [
        _fault(
            "one-other-pixel-spacing",
            "slice 4 has 1.25 mm pixels",
            refused,
            CLEAN,
            geometry.other_spacing(4),
        ),
        _fault(
            "one-other-orientation",
            "slice 4 turned by 10°",
            refused,
            CLEAN,
            geometry.other_orientation(4),
        ),
        _fault(
            "localizer-inside",
            "a sagittal localizer in the series",
            ("split", 2),
            CLEAN,
            geometry.with_localizer,
        ),
        _fault(
            "cosines-not-unit",
            "cosines of length 0.9",
            refused,
            CLEAN,
            geometry.with_cosines((0.9, 0, 0, 0, 0.9, 0)),
        ),
        _fault(
            "cosines-not-orthogonal",
            "85° between rows and columns",
            refused,
            CLEAN,
            geometry.with_cosines(
                (1, 0, 0, math.sin(math.radians(5)), math.cos(math.radians(5)), 0)
            ),
        ),
        _fault(
            "cosines-zero",
            "all six cosines 0",
            refused,
            CLEAN,
            geometry.with_cosines((0, 0, 0, 0, 0, 0)),
        ),
        _fault(
            "pixel-spacing-zero",
            "PixelSpacing 0\\0",
            refused,
            CLEAN,
            geometry.with_text("PixelSpacing", "0\\0"),
        ),
        _fault(
            "pixel-spacing-one-value",
            "PixelSpacing 1",
            refused,
            CLEAN,
            geometry.with_text("PixelSpacing", "1"),
        ),
        _fault(
            "one-without-position",
            "slice 4 has no position",
            refused,
            CLEAN,
            geometry.without_element("ImagePositionPatient", index=4),
        ),
        _fault(
            "none-with-position",
            "no slice has a position",
            refused,
            CLEAN,
            geometry.without_element("ImagePositionPatient"),
        ),
        _fault(
            "none-with-orientation",
            "no slice has an orientation",
            refused,
            CLEAN,
            geometry.without_element("ImageOrientationPatient"),
        ),
        _fault(
            "position-nan",
            "NaN in a position",
            refused,
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15.5\\NaN\\38.125", index=4),
        ),
        _fault(
            "position-decimal-comma",
            "a decimal comma in a position",
            refused,
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15,5\\-20,25\\38,125", index=4),
        ),
        _fault(
            "position-two-values",
            "a position of two numbers",
            refused,
            CLEAN,
            geometry.with_text("ImagePositionPatient", "-15.5\\-20.25", index=4),
        ),
    ]


def _identities() -> list[Fault]:
    refused: Expected = ("refused", None)
    exact: Expected = ("volume", EXACT_MM)
    return [
        _fault(
            "duplicate-same-pixels",
            "slice 4 twice, two UIDs",
            exact,
            CLEAN,
            identity.duplicate_position(4, same_pixels=True),
        ),
        _fault(
            "duplicate-other-pixels",
            "two images at one place",
            refused,
            CLEAN,
            identity.duplicate_position(4, same_pixels=False),
        ),
        _fault(
            "same-uid-other-pixels",
            "one SOPInstanceUID, two contents",
            refused,
            CLEAN,
            identity.same_uid_other_pixels(4),
        ),
        _fault(
            "byte-identical-copy", "one file twice", exact, CLEAN, identity.byte_identical_copy(4)
        ),
        _fault(
            "frame-of-reference-halves",
            "two frames of reference, five slices each",
            ("split", 2),
            CLEAN,
            identity.other_frame_of_reference(range(5, 10)),
        ),
        _fault(
            "frame-of-reference-one",
            "slice 4 in another frame of reference",
            refused,
            CLEAN,
            identity.other_frame_of_reference([4]),
        ),
        _fault(
            "two-patients",
            "two patients under one series UID",
            refused,
            CLEAN,
            identity.two_patients,
        ),
        _fault(
            "two-studies", "two studies under one series UID", refused, CLEAN, identity.two_studies
        ),
    ]


def _volumes() -> list[Fault]:
    exact: Expected = ("volume", EXACT_MM)
    by = [
        _fault(
            f"two-volumes-by-{axis}",
            f"two volumes told apart by {axis}",
            expected,
            replace(TWO_TIMES, fourth_axis=axis),
        )
        for axis, expected in (
            ("DiffusionBValue", exact),
            ("AcquisitionNumber", exact),
            ("TriggerTime", exact),
            ("AcquisitionTime", exact),
            ("EchoTime", ("split", 2)),
            ("ImageType", ("split", 2)),
            ("InstanceNumber", ("refused", None)),
        )
    ]
    return [
        _fault("two-time-points", "two time points", exact, TWO_TIMES),
        _fault(
            "two-time-points-one-missing",
            "one image of 20 missing",
            ("refused", None),
            TWO_TIMES,
            geometry.without(14),
        ),
        *by,
    ]


def _pixels() -> list[Fault]:
    exact: Expected = ("volume", EXACT_MM)
    refused: Expected = ("refused", None)
    twelve = replace(CLEAN, bits_stored=12)
    return [
        _fault(
            "mixed-pixel-representation",
            "one signed slice among unsigned",
            exact,
            CLEAN,
            pixels.mixed_representation(4),
        ),
        _fault(
            "truncated-pixels", "one slice cut short", refused, CLEAN, pixels.truncated_pixels(4)
        ),
        _fault(
            "pet-slope-per-slice",
            "RescaleSlope differs by slice",
            exact,
            PET,
            pixels.slope_per_slice,
        ),
        _fault(
            "overlay-in-high-bits",
            "an overlay above HighBit",
            exact,
            twelve,
            pixels.overlay_in_high_bits,
        ),
        _fault(
            "palette-colour",
            "pixels are palette indices",
            refused,
            CLEAN,
            pixels.colour_map_of_palette,
        ),
        _fault(
            "mosaic-without-csa",
            "a mosaic that does not say its tiles",
            refused,
            CLEAN,
            pixels.undeclared_mosaic,
        ),
    ]


def _objects() -> list[Fault]:
    refused: Expected = ("refused", None)
    aside: Expected = ("aside", None)
    return [
        _object(
            "enhanced-mr", "enhanced MR, one file", refused, lambda: objects.enhanced(CLEAN, "MR")
        ),
        _object(
            "enhanced-ct",
            "enhanced CT, geometry in groups only",
            refused,
            lambda: objects.enhanced(CLEAN, "CT"),
        ),
        _object(
            "segmentation", "a segmentation object", aside, lambda: objects.segmentation(CLEAN)
        ),
        _object("report", "a structured report", aside, lambda: objects.report(CLEAN)),
    ]


#: The single-frame fault matrix, and objects that are no single-frame images.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for family in (
        _sound,
        _positions,
        _tilts,
        _orientations,
        _identities,
        _volumes,
        _pixels,
        _objects,
    )
    for fault in family()
}
