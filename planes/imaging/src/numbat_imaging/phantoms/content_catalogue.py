"""More faults by name: identity, the fourth axis, pixels, and objects of other kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset

from numbat_imaging.phantoms import geometry_faults as geometry
from numbat_imaging.phantoms import identity_faults as identity
from numbat_imaging.phantoms import other_objects as objects
from numbat_imaging.phantoms import pixel_faults as pixels
from numbat_imaging.phantoms.catalogue import (
    CLEAN,
    EXACT_MM,
    PET,
    TWO_TIMES,
    Expected,
    Fault,
    made_fault,
    refused,
)


def _object(name: str, says: str, expected: Expected, build: Callable[[], list[Dataset]]) -> Fault:
    return Fault(name, build, expected, says)


def _identities() -> list[Fault]:
    exact: Expected = ("volume", EXACT_MM)
    return [
        made_fault(
            "duplicate-same-pixels",
            "slice 4 twice, two UIDs",
            exact,
            CLEAN,
            identity.duplicate_position(4, same_pixels=True),
        ),
        made_fault(
            "duplicate-other-pixels",
            "two images at one place",
            refused("IMG-1301"),
            CLEAN,
            identity.duplicate_position(4, same_pixels=False),
        ),
        made_fault(
            "same-uid-other-pixels",
            "one SOPInstanceUID, two contents",
            refused("IMG-1103"),
            CLEAN,
            identity.same_uid_other_pixels(4),
        ),
        made_fault(
            "byte-identical-copy", "one file twice", exact, CLEAN, identity.byte_identical_copy(4)
        ),
        made_fault(
            "frame-of-reference-halves",
            "two frames of reference, five slices each",
            ("split", 2),
            CLEAN,
            identity.other_frame_of_reference(range(5, 10)),
        ),
        made_fault(
            "frame-of-reference-one",
            "slice 4 in another frame of reference",
            refused("IMG-1206"),
            CLEAN,
            identity.other_frame_of_reference([4]),
        ),
        made_fault(
            "two-patients",
            "two patients under one series UID",
            refused("IMG-1101"),
            CLEAN,
            identity.two_patients,
        ),
        made_fault(
            "two-studies",
            "two studies under one series UID",
            refused("IMG-1102"),
            CLEAN,
            identity.two_studies,
        ),
    ]


def _volumes() -> list[Fault]:
    exact: Expected = ("volume", EXACT_MM)
    by = [
        made_fault(
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
            ("InstanceNumber", refused("IMG-1302")),
        )
    ]
    return [
        made_fault("two-time-points", "two time points", exact, TWO_TIMES),
        made_fault(
            "two-time-points-one-missing",
            "one image of 20 missing",
            refused("IMG-1303"),
            TWO_TIMES,
            geometry.without(14),
        ),
        *by,
    ]


def _pixels() -> list[Fault]:
    exact: Expected = ("volume", EXACT_MM)
    twelve = replace(CLEAN, bits_stored=12)
    return [
        made_fault(
            "mixed-pixel-representation",
            "one signed slice among unsigned",
            exact,
            CLEAN,
            pixels.mixed_representation(4),
        ),
        made_fault(
            "truncated-pixels",
            "one slice cut short",
            refused("IMG-1403"),
            CLEAN,
            pixels.truncated_pixels(4),
        ),
        made_fault(
            "pet-slope-per-slice",
            "RescaleSlope differs by slice",
            exact,
            PET,
            pixels.slope_per_slice,
        ),
        made_fault(
            "overlay-in-high-bits",
            "an overlay above HighBit",
            exact,
            twelve,
            pixels.overlay_in_high_bits,
        ),
        made_fault(
            "palette-colour",
            "pixels are indices into a palette of nothing but black",
            refused("IMG-1418"),
            CLEAN,
            pixels.colour_map_of_palette,
        ),
        made_fault(
            "mosaic-without-csa",
            "a mosaic that does not say its tiles",
            refused("IMG-1607"),
            CLEAN,
            pixels.undeclared_mosaic,
        ),
    ]


def _objects() -> list[Fault]:
    aside: Expected = ("aside", None)
    return [
        _object(
            "cine",
            "frames of a secondary capture, which tell no place",
            refused("IMG-1601"),
            lambda: objects.cine(CLEAN),
        ),
        _object(
            "dose-offsets-unanchored",
            "frame offsets that begin with neither 0 nor the object's own coordinate",
            refused("IMG-1313"),
            lambda: objects.dose(CLEAN, [5.0 + 2 * k for k in range(CLEAN.shape[2])]),
        ),
        _object(
            "dose-offsets-short",
            "a frame offset is missing",
            refused("IMG-1314"),
            lambda: objects.dose(CLEAN, [2.0 * k for k in range(CLEAN.shape[2] - 1)]),
        ),
        _object(
            "segmentation", "a segmentation object", aside, lambda: objects.segmentation(CLEAN)
        ),
        _object("report", "a structured report", aside, lambda: objects.report(CLEAN)),
    ]


#: The part of the matrix that lies in identities, fourth axes, pixels and object classes.
FAULTS: dict[str, Fault] = {
    fault.name: fault for family in (_identities, _volumes, _pixels, _objects) for fault in family()
}
