"""Image orientation against arithmetic: cosines checked, shared out, compared and named."""

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.geometry.orientation import (
    LPS_TO_RAS,
    axis_letters,
    corner_displacement_mm,
    orthonormal_axes,
    plane_name,
)
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances

_AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@gate(
    "IMG-G18",
    phase=1,
    discharges=["IMG-R006"],
    title="Cosines become axes as arithmetic says, or are refused by what they displace",
)
def orientation(check: Check) -> None:
    _axes(check)
    _lengths(check)
    _angles(check)
    _limits(check)
    _displacement(check)
    _names(check)


def _of(cosines: object, corner_mm: tuple[float, float], limit_mm: float = 0.05) -> object:
    return orthonormal_axes(
        np.asarray(cosines, float).tolist(),
        corner_mm=corner_mm,
        tolerances=Tolerances(orientation_mm=limit_mm),
    )


def _axes(check: Check) -> None:
    frame = np.array([[2.0, -1.0, 2.0], [2.0, 2.0, -1.0], [-1.0, 2.0, 2.0]]) / 3.0
    cosines = [*frame[:, 0], *frame[:, 1]]
    measured = orthonormal_axes(cosines, corner_mm=(400.0, 300.0), tolerances=DEFAULT_TOLERANCES)
    check.close("exact cosines are the axes", measured=measured, required=frame, atol=1e-12)
    # 0.0001 rad off square, and both lengths off by less than the corner can show.
    off = 1e-4
    column = np.cos(off) * frame[:, 1] + np.sin(off) * frame[:, 0]
    rough = [*(1.00005 * frame[:, 0]), *(0.99995 * column)]
    half = off / 2
    required = np.column_stack(
        [
            np.cos(half) * frame[:, 0] - np.sin(half) * frame[:, 1],
            np.sin(half) * frame[:, 0] + np.cos(half) * frame[:, 1],
            frame[:, 2],
        ]
    )
    measured = orthonormal_axes(rough, corner_mm=(400.0, 300.0), tolerances=DEFAULT_TOLERANCES)
    name = "what is left of a departure is shared between the axes"
    check.close(name, measured=measured, required=required, atol=1e-12)
    check.equal("LPS to RAS", LPS_TO_RAS.tolist(), np.diag([-1.0, -1.0, 1.0, 1.0]).tolist())


def _lengths(check: Check) -> None:
    long_row = (1.001, 0.0, 0.0, 0.0, 1.0, 0.0)
    short_column = (1.0, 0.0, 0.0, 0.0, 0.999, 0.0)
    for name, cosines, corner_mm, lengths in (
        ("a long row direction", long_row, (100.0, 10.0), [1.001, 1.0]),
        ("a short column direction", short_column, (10.0, 100.0), [1.0, 0.999]),
    ):
        with check.refuses("IMG-1202", name) as caught:
            _of(cosines, corner_mm)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            check.close(f"{name}: lengths", measured=fields["lengths"], required=lengths, atol=1e-9)
            shown = [fields["displacement_mm"], fields["limit_mm"]]
            check.close(f"{name}: evidence", measured=shown, required=[0.1, 0.05], atol=1e-9)
        # The same departure of the short side moves its corner by less than the limit.
        turned = _of(cosines, corner_mm[::-1])
        check.close(f"{name}: of the short side", measured=turned, required=np.eye(3), atol=1e-9)
    for name, cosines in (
        ("a row direction of no length, of an image of no size", (0, 0, 0, 0, 1, 0)),
        ("a column direction of no length, of an image of no size", (1, 0, 0, 0, 0, 0)),
    ):
        with check.refuses("IMG-1202", name):
            _of(cosines, (0.01, 0.01))


def _angles(check: Check) -> None:
    for corner_mm in ((100.0, 10.0), (10.0, 100.0)):
        name = f"0.001 off square, corner at {corner_mm} mm"
        cosines = (1.0, 0.0, 0.0, 0.001, np.sqrt(1.0 - 1e-6), 0.0)
        with check.refuses("IMG-1203", name) as caught:
            _of(cosines, corner_mm)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            shown = [fields["cosine"], fields["displacement_mm"], fields["limit_mm"]]
            check.close(f"{name}: evidence", measured=shown, required=[1e-3, 0.1, 0.05], atol=1e-9)
    with check.refuses("IMG-1203", "off square the other way"):
        _of((1.0, 0.0, 0.0, -0.001, np.sqrt(1.0 - 1e-6), 0.0), (100.0, 100.0))


def _limits(check: Check) -> None:
    """Departures on the limit, in numbers that are exact."""
    on_length = _of((1.5, 0.0, 0.0, 0.0, 1.0, 0.0), (1.0, 1.0), limit_mm=0.5)
    check.close("a length on the limit", measured=on_length, required=np.eye(3), atol=1e-12)
    # A column direction that leans 36.87 degrees to the row: half of it goes to each axis.
    half = np.arcsin(0.6) / 2
    required = np.array(
        [[np.cos(half), np.sin(half), 0.0], [-np.sin(half), np.cos(half), 0.0], [0.0, 0.0, 1.0]]
    )
    on_angle = _of((1.0, 0.0, 0.0, 0.6, 0.8, 0.0), (1.0, 1.0), limit_mm=0.6)
    check.close("an angle on the limit", measured=on_angle, required=required, atol=1e-12)


def _displacement(check: Check) -> None:
    first = (2.0, 3.0, 4.0, 5.0, 7.0, 9.0)
    second = (1.0, 1.0, 2.0, 3.0, 4.0, 3.0)
    measured = corner_displacement_mm(first, second, corner_mm=(10.0, 100.0))
    check.close("apart by (1, 2, 2) and (2, 3, 6)", measured=measured, required=730.0, atol=1e-9)
    same = corner_displacement_mm(_AXIAL, _AXIAL, corner_mm=(10.0, 100.0))
    check.equal("the same orientation", same, 0.0)


def _names(check: Check) -> None:
    for direction, letters in (
        ((1.0, 0.0, 0.0), "L"),
        ((-1.0, 0.0, 0.0), "R"),
        ((0.0, 1.0, 0.0), "P"),
        ((0.0, -1.0, 0.0), "A"),
        ((0.0, 0.0, 1.0), "S"),
        ((0.0, 0.0, -1.0), "I"),
        ((0.6, -0.7, 0.3), "ALS"),
        ((-0.3, 0.5, -0.8), "IPR"),
        ((0.15, 0.9, 0.2), "P"),
        ((0.21, 0.9, 0.19), "PL"),
    ):
        check.equal(f"letters of {direction}", axis_letters(np.array(direction)), letters)
    for degrees, name in ((0.0, "axial"), (0.9, "axial"), (1.1, "oblique axial")):
        turn = np.radians(degrees)
        normal = np.array([0.0, np.sin(turn), np.cos(turn)])
        check.equal(f"axial, turned by {degrees} degrees", plane_name(normal), name)
        check.equal(f"from below, {degrees} degrees", plane_name(-normal), name)
    check.equal("coronal", plane_name(np.array([0.0, -1.0, 0.0])), "coronal")
    check.equal("sagittal", plane_name(np.array([1.0, 0.0, 0.0])), "sagittal")
    at_limit = np.array([0.0, 0.0, np.cos(np.radians(1.0))])
    check.equal("turned by exactly one degree", plane_name(at_limit), "axial")
