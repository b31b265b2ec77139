"""The diffusion weighting of one image, from public and private elements to patient space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.forms.siemens_csa import image_entry
from numbat_imaging.series.phase_encoding import in_plane_axis
from numbat_registries import refuse

Array = NDArray[np.float64]

#: A vector shorter than this states no direction (scanners write 0\\0\\0 where there is none).
_NO_DIRECTION = 0.03
#: A GE vector shorter than this is meant: its length scales the gradient amplitude.
_SCALED = 0.97


@dataclass(frozen=True, slots=True)
class Gradient:
    """The diffusion weighting of one image.

    `direction_lps`: unit vector in DICOM patient LPS; None for b = 0 and for images that have no
    single direction (isotropic, trace).
    """

    b_value_s_mm2: float
    direction_lps: tuple[float, float, float] | None = None


def gradient_from_dataset(ds: Dataset) -> Gradient | None:
    """The gradient of one single-frame MR image; None when the header tells no b-value.

    The standard elements come first (PS3.3 C.8.13.5.9), then what Siemens, Philips and GE keep in
    private elements, found by their creator; United Imaging's private ones come before all, since
    its standard ones leave out the rotation of the image. A direction counts whatever the length of
    its vector.

    Raises IMG-1012 for elements that cannot be read, IMG-1707 for a GE vector without the phase
    encoding direction that its frame hangs on.
    """
    if elements.text(ds, "Modality") != "MR":
        return None
    united = _from_united(ds)
    if united is not None:
        return united
    private = _from_siemens(ds) or _from_philips(ds) or _from_ge(ds)
    b_value = elements.decimal(ds, "DiffusionBValue")
    if b_value is None:
        return private
    stated = _unit(elements.decimals(ds, "DiffusionGradientOrientation", count=3))
    if b_value == 0 or elements.text(ds, "DiffusionDirectionality") in ("NONE", "ISOTROPIC"):
        return Gradient(b_value)
    if stated is None and private is not None:
        # GE states the b-value in public and the direction in private, which may scale it.
        return private if private.direction_lps is not None else Gradient(b_value)
    return Gradient(b_value, stated)


def _unit(vector: Sequence[float] | None) -> tuple[float, float, float] | None:
    if vector is None or len(vector) != 3:
        return None
    length = math.hypot(*vector)
    if length < _NO_DIRECTION:
        return None
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def _numbers(value: Any) -> tuple[float, ...]:
    """A private value as numbers: some writers store text where others store binary numbers."""
    parts = value if isinstance(value, tuple) else (value,)
    try:
        numbers = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()


def _from_siemens(ds: Dataset) -> Gradient | None:
    """(0019,xx0C) and (0019,xx0E) of SIEMENS MR HEADER, or the CSA header: patient LPS."""
    creator = "SIEMENS MR HEADER"
    b_value = _numbers(elements.private(ds, 0x0019, creator, 0x0C, vr="IS"))
    direction = _numbers(elements.private(ds, 0x0019, creator, 0x0E, vr="FD"))
    if not b_value:
        # Releases before VB13 have no such block, and de-identification may take it away.
        b_value = _numbers(image_entry(ds, "B_value"))
        direction = _numbers(image_entry(ds, "DiffusionGradientDirection"))
    if len(b_value) != 1:
        return None
    return Gradient(b_value[0], _unit(direction) if b_value[0] > 0 else None)


def _from_philips(ds: Dataset) -> Gradient | None:
    """(2001,xx03), and (2005,xxB0-B2) along right-left, anterior-posterior, feet-head: LPS."""
    b_value = _numbers(elements.private(ds, 0x2001, "Philips Imaging DD 001", 0x03, vr="FL"))
    if len(b_value) != 1:
        return None
    parts = [
        _numbers(elements.private(ds, 0x2005, "Philips MR Imaging DD 001", offset, vr="FL"))
        for offset in (0xB0, 0xB1, 0xB2)
    ]
    direction = [part[0] for part in parts if len(part) == 1]
    return Gradient(b_value[0], _unit(direction) if b_value[0] > 0 else None)


def _from_united(ds: Dataset) -> Gradient | None:
    """(0065,xx09) and (0065,xx37) of Image Private Header: along rows, columns and their normal.

    Source: dcm2niix issues 836 and 993; dcm_qa_uih.
    """
    creator = "Image Private Header"
    b_value = _numbers(elements.private(ds, 0x0065, creator, 0x09, vr="FD"))
    vector = _unit(_numbers(elements.private(ds, 0x0065, creator, 0x37, vr="FD")))
    if len(b_value) != 1:
        return None
    if vector is None:
        return Gradient(b_value[0])
    cosines = elements.decimals(ds, "ImageOrientationPatient", count=6)
    if cosines is None:
        raise refuse("IMG-1707", element="ImageOrientationPatient")
    row, column = np.asarray(cosines[:3]), np.asarray(cosines[3:])
    axes = np.column_stack([row, column, np.cross(row, column)])
    return Gradient(b_value[0], _unit(tuple(axes @ vector)))


def _from_ge(ds: Dataset) -> Gradient | None:
    """(0043,xx39) of GEMS_PARM_01 and (0019,xxBB-BD) of GEMS_ACQU_01: frequency, phase, slice."""
    b_values = _numbers(elements.private(ds, 0x0043, "GEMS_PARM_01", 0x39, vr="IS"))
    if not b_values:
        return None
    # Some releases add 10^9 to mark the value.
    b_value = b_values[0] % 100_000
    parts = [
        _numbers(elements.private(ds, 0x0019, "GEMS_ACQU_01", offset, vr="DS"))
        for offset in (0xBB, 0xBC, 0xBD)
    ]
    vector = [part[0] for part in parts if len(part) == 1]
    # In other pulse sequences the three elements are user values that mean something else.
    if b_value <= 0 or _unit(vector) is None:
        return Gradient(b_value)
    length = math.hypot(*vector)
    if length < _SCALED:
        # Shells are played as one nominal b-value and shorter vectors; b grows with the square.
        b_value *= length * length
    return Gradient(b_value, _unit(tuple(ge_frame(ds) @ vector)))


def ge_frame(ds: Dataset) -> Array:
    """(3, 3), GE's frequency, phase and slice axes as columns, unit vectors in patient LPS.

    The slice axis points to the patient's right, front or head, the phase axis against the image's
    row or column direction, and the three are right-handed. That one rule gives the published
    signs for all six combinations of plane and phase encoding, and the reference table of an
    oblique axial scan.

    Raises IMG-1707 without InPlanePhaseEncodingDirection or ImageOrientationPatient.
    """
    encoding = in_plane_axis(ds)
    cosines = elements.decimals(ds, "ImageOrientationPatient", count=6)
    if encoding is None or cosines is None:
        missing = "ImageOrientationPatient" if cosines is None else "InPlanePhaseEncodingDirection"
        raise refuse("IMG-1707", element=missing)
    row, column = np.asarray(cosines[:3]), np.asarray(cosines[3:])
    normal = np.cross(row, column)
    toward_ras = normal * (-1.0, -1.0, 1.0)
    largest = int(np.argmax(np.abs(toward_ras)))
    along = normal if toward_ras[largest] > 0 else -normal
    phase = -(row if encoding == "ROW" else column)
    return np.column_stack([np.cross(phase, along), phase, along])
