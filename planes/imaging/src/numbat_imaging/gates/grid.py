"""The fitted grid against arithmetic: exact stacks, planted residuals, limits met to the digit."""

import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.geometry.grid import (
    Grid,
    compare_with_tags,
    fit_grid,
    single_slice_grid,
    slice_order,
)
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances

Array = NDArray[np.float64]

#: A turned frame in exact thirds, right-handed: unit directions of i, j and the normal as columns.
_TURNED = np.array([[2.0, -1.0, 2.0], [2.0, 2.0, -1.0], [-1.0, 2.0, 2.0]]) / 3.0
_SQUARE = np.eye(3)
_ORIGIN = np.array([10.0, -20.0, 30.0])
_IN_PLANE = (0.7, 1.1)
#: Sums to nothing, and leans to no side: residuals of this shape leave the fit as it is.
_PATTERN = np.array([1.0, -2.0, 0.0, 2.0, -1.0])
#: Limits that are exact in binary, so that a residual can lie on one.
_EXACT = Tolerances(position_mm=0.25, position_fraction=1.0, tag_mm=0.5)


@gate(
    "IMG-G17",
    phase=1,
    discharges=["IMG-R006", "IMG-R007", "IMG-R008", "IMG-R009"],
    title="Grid, residuals and limits are those of arithmetic",
)
def grid(check: Check) -> None:
    _table_of_tolerances(check)
    _perfect(check)
    _residuals(check)
    _slides(check)
    _gaps(check)
    _single(check)
    _spacing_tag(check)
    _tilt_tag(check)


def _fit(positions: Array, axes: Array, tolerances: Tolerances = DEFAULT_TOLERANCES) -> Grid:
    return fit_grid(positions, axes, _IN_PLANE, tolerances=tolerances)


def _stack(axes: Array, step: Array, count: int = 5) -> Array:
    places: Array = _ORIGIN + np.arange(count)[:, None] * step
    return places


def _table_of_tolerances(check: Check) -> None:
    table = DEFAULT_TOLERANCES
    check.equal(
        "the table",
        table.to_dict(),
        {
            "position_mm": 0.05,
            "position_fraction": 0.1,
            "orientation_mm": 0.05,
            "duplicate_mm": 0.01,
            "tag_mm": 0.05,
        },
    )
    for distance_mm, limit_mm in ((5.0, 0.05), (0.5, 0.05), (0.3, 0.03)):
        measured = table.position_limit_mm(distance_mm)
        check.close(
            f"limit {distance_mm} mm apart", measured=measured, required=limit_mm, atol=1e-12
        )
    for extent_mm, count, limit_mm in (
        (100.0, 11, 0.01),
        (0.5, 11, 0.005),
        (0.5, 10, 0.5 / 90),
        (0.0, 5, 0.01),
        (0.05, 1, 0.005),
        (0.05, 2, 0.005),
    ):
        measured = table.duplicate_limit_mm(extent_mm, count)
        name = f"one position, {count} slices over {extent_mm} mm"
        check.close(name, measured=measured, required=limit_mm, atol=1e-12, unit="mm")


def _is(
    check: Check, name: str, found: Grid, *, step: Array, residuals: Array, sheared: bool
) -> None:
    """Everything that a grid says, against what it was built from."""
    normal = found.axes[:, 2]
    affine = np.eye(4)
    affine[:3] = np.column_stack(
        [found.axes[:, 0] * _IN_PLANE[0], found.axes[:, 1] * _IN_PLANE[1], step, _ORIGIN]
    )
    sizes = np.linalg.norm(residuals, axis=1)
    along, across = step @ normal, np.linalg.norm(np.cross(step, normal))
    required = {
        "affine": affine,
        "step": step,
        "spacing": np.array([*_IN_PLANE, along]),
        "residuals": residuals,
        "largest residual": float(sizes.max()),
        "mean square residual": float(np.sqrt((sizes**2).mean())),
        "normal": normal,
        "shear in degrees": float(np.degrees(np.arctan2(across, along))),
    }
    measured = {
        "affine": found.affine_lps_mm,
        "step": found.step_mm,
        "spacing": found.spacing_mm,
        "residuals": found.residuals_mm,
        "largest residual": found.max_residual_mm,
        "mean square residual": found.rms_residual_mm,
        "normal": found.normal,
        "shear in degrees": found.shear_deg,
    }
    for what, value in required.items():
        check.close(f"{name}: {what}", measured=measured[what], required=value, atol=1e-9)
    check.equal(f"{name}: sheared", found.is_sheared, sheared)
    check.equal(f"{name}: slices", found.slices, len(residuals))


def _perfect(check: Check) -> None:
    for name, axes in (("square", _SQUARE), ("turned", _TURNED)):
        check.close(
            f"{name}: a right-handed frame",
            measured=np.cross(axes[:, 0], axes[:, 1]),
            required=axes[:, 2],
            atol=1e-12,
        )
        step = 2.5 * axes[:, 2]
        positions = _stack(axes, step)
        nothing = np.zeros((5, 3))
        _is(check, name, _fit(positions, axes), step=step, residuals=nothing, sheared=False)
        order = slice_order(positions[[3, 0, 4, 2, 1]], axes[:, 2])
        check.equal(f"{name}: slices in order", order.tolist(), [1, 4, 3, 0, 2])


def _residuals(check: Check) -> None:
    step = 2.5 * _TURNED[:, 2]
    for name, direction in (("along i", 0), ("along j", 1), ("along the normal", 2)):
        planted = 0.02 * _PATTERN[:, None] * _TURNED[:, direction]
        found = _fit(_stack(_TURNED, step) + planted, _TURNED)
        _is(check, f"jitter {name}", found, step=step, residuals=planted, sheared=False)
        with check.refuses("IMG-1207", f"too much jitter {name}") as caught:
            _fit(_stack(_TURNED, step) + 1.5 * planted, _TURNED)
        if caught.diagnostic is None:
            continue
        moved = 0.09 if direction == 2 else 0.0
        _evidence(
            check,
            f"too much jitter {name}",
            caught.diagnostic.fields,
            {
                "slice_index": 1,
                "residual_mm": 0.06,
                "limit_mm": 0.05,
                "spacing_mm": 2.5,
                "smallest_step_mm": 2.5 - moved,
                "largest_step_mm": 2.5 + moved * 2 / 3,
                "slices_beyond_limit": 2,
            },
        )
    on_limit = 0.125 * _PATTERN[:, None] * _SQUARE[:, 0]
    flat = np.arange(5)[:, None] * np.array([0.0, 0.0, 2.0])
    found = _fit(flat + on_limit, _SQUARE, _EXACT)
    check.equal("a residual on the limit is within it", found.max_residual_mm, 0.25)
    with check.refuses("IMG-1207", "residuals beyond a limit that others lie on") as caught:
        half = Tolerances(position_mm=0.125, position_fraction=1.0)
        _fit(flat + on_limit, _SQUARE, half)
    if caught.diagnostic is not None:
        beyond = caught.diagnostic.fields["slices_beyond_limit"]
        check.equal("residuals on the limit are not beyond it", beyond, 2)


def _evidence(check: Check, name: str, found: object, required: dict[str, float]) -> None:
    assert isinstance(found, dict)
    for field, value in required.items():
        check.close(f"{name}: {field}", measured=found[field], required=value, atol=1e-9)


def _slides(check: Check) -> None:
    """Slices that slide over each other: sheared from where the ends leave the limit."""
    along = 2.5 * _TURNED[:, 2]
    toward = 0.6 * _TURNED[:, 0] - 0.8 * _TURNED[:, 1]
    number = np.arange(5.0)[:, None] - 2.0
    for slide_mm, sheared in ((0.3, True), (0.0155, True), (0.0115, False)):
        across = slide_mm * toward
        positions = _stack(_TURNED, along + across)
        found = _fit(positions, _TURNED)
        name = f"sliding by {slide_mm} mm a slice"
        if sheared:
            step, left = along + across, np.zeros((5, 3))
            _is(check, name, found, step=step, residuals=left, sheared=True)
        else:
            check.true(f"{name}: not sheared", not found.is_sheared)
            check.close(f"{name}: step", measured=found.step_mm, required=along, atol=1e-9)
            left = number * across
            check.close(f"{name}: left", measured=found.residuals_mm, required=left, atol=1e-9)
            origin = _ORIGIN + 2 * across
            check.close(f"{name}: origin", measured=found.origin_mm, required=origin, atol=1e-9)
    flat = np.arange(5)[:, None] * np.array([0.125, 0.0, 2.0])
    on_limit = Tolerances(position_mm=0.5, position_fraction=1.0)
    check.true("ends on the limit: square", not _fit(flat, _SQUARE, on_limit).is_sheared)
    # Within the limit as a slide, and within it as jitter; together they are not.
    across = 0.012 * _TURNED[:, 0]
    planted = 0.022 * _PATTERN[:, None] * _TURNED[:, 0]
    found = _fit(_stack(_TURNED, along + across) + planted, _TURNED)
    name = "a slide that jitter carries over the limit"
    _is(check, name, found, step=along + across, residuals=planted, sheared=True)


def _gaps(check: Check) -> None:
    usual = 2.0 * _TURNED[:, 2]
    start = float(_ORIGIN @ _TURNED[:, 2])

    def at(*multiples: float) -> Array:
        places: Array = _ORIGIN + np.array(multiples)[:, None] * usual
        return places

    with check.refuses("IMG-1206", "two gaps, of one and of two slices") as caught:
        _fit(at(0, 1, 2, 4, 5, 6, 9, 10), _TURNED)
    if caught.diagnostic is not None:
        required = {"after_slice": 2, "gap_mm": 4.0, "spacing_mm": 2.0, "missing_slices": 3}
        required |= {"gaps": 2, "at_mm": start + 4.0}
        _evidence(check, "two gaps", caught.diagnostic.fields, required)
    for name, code, places in (
        ("one of four slices missing, three left", "IMG-1206", (0, 1, 3)),
        ("the first of two steps is the wide one", "IMG-1206", (0, 2, 3)),
        ("a gap that is nearly whole", "IMG-1206", (0, 1, 2, 4.15, 5.15)),
        ("a gap that is no whole number of slices", "IMG-1207", (0, 1, 2, 4.25, 5.25)),
        ("a wide step of half a slice more", "IMG-1207", (0, 1, 2, 3.5, 4.5)),
        ("one step that is no multiple, beside a gap", "IMG-1207", (0, 1, 2, 4, 5.3, 6.3)),
    ):
        with check.refuses(code, name):
            _fit(at(*places), _TURNED)
    eighth = Tolerances(position_fraction=0.125)
    flat = np.array([0.0, 2.0, 4.0, 8.5, 10.5])[:, None] * _SQUARE[:, 2]
    with check.refuses("IMG-1206", "a gap that is whole to the last digit of its limit"):
        _fit(flat, _SQUARE, eighth)
    loose = Tolerances(position_fraction=0.25)
    flat = np.array([0.0, 2.0, 4.0, 7.0, 9.0])[:, None] * _SQUARE[:, 2]
    with check.refuses("IMG-1207", "half a slice more is no gap, however loose the limits"):
        _fit(flat, _SQUARE, loose)


def _single(check: Check) -> None:
    found = single_slice_grid(
        _ORIGIN, _TURNED, _IN_PLANE, thickness_mm=4.0, thickness_source="SliceThickness"
    )
    step = 4.0 * _TURNED[:, 2]
    _is(check, "one slice", found, step=step, residuals=np.zeros((1, 3)), sheared=False)
    check.equal("one slice: what gave its thickness", found.thickness_source, "SliceThickness")
    check.equal(
        "several slices: what gave their distance",
        _fit(_stack(_TURNED, step), _TURNED).thickness_source,
        "positions",
    )


def _codes(
    found: Grid,
    *,
    spacing_mm: float | None = None,
    tilt_deg: float | None = None,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
) -> list[str]:
    warnings = compare_with_tags(
        found,
        spacing_between_slices_mm=spacing_mm,
        gantry_tilt_deg=tilt_deg,
        tolerances=tolerances,
    )
    return [warning.code for warning in warnings]


def _spacing_tag(check: Check) -> None:
    step = 2.5 * _TURNED[:, 2]
    two, five = (_fit(_stack(_TURNED, step, count), _TURNED) for count in (2, 5))
    one = single_slice_grid(
        _ORIGIN, _TURNED, _IN_PLANE, thickness_mm=2.5, thickness_source="SliceThickness"
    )
    check.equal("one slice: tags are its only word", _codes(one, spacing_mm=5.0, tilt_deg=9.0), [])
    check.equal("no tag", _codes(five), [])
    for name, found in (("two slices", two), ("five slices", five)):
        check.equal(f"{name}: the tag agrees", _codes(found, spacing_mm=2.54), [])
        check.equal(f"{name}: a negative tag agrees", _codes(found, spacing_mm=-2.5), [])
        with check.notices("IMG-1213", f"{name}: the tag disagrees") as caught:
            _codes(found, spacing_mm=5.0)
        if caught.diagnostic is not None:
            required = {"spacing_mm": 2.5, "tag_mm": 5.0}
            _evidence(check, f"{name}: the tag disagrees", caught.diagnostic.fields, required)
        told = _codes(found, spacing_mm=5.0)
        check.equal(f"{name}: the warning is given back", told, ["IMG-1213"])
    flat = _fit(np.arange(5)[:, None] * np.array([0.0, 0.0, 2.5]), _SQUARE)
    check.equal("on the limit", _codes(flat, spacing_mm=3.0, tolerances=_EXACT), [])


def _tilt_tag(check: Check) -> None:
    step = 2.5 * _TURNED[:, 2] + 0.3 * _TURNED[:, 1]
    found = _fit(_stack(_TURNED, step), _TURNED)
    truth = float(np.degrees(np.arctan(0.3 / 2.5)))
    check.equal("tilt: the tag agrees", _codes(found, tilt_deg=truth), [])
    check.equal("tilt: a tag of the other sign agrees", _codes(found, tilt_deg=-truth), [])
    check.equal("tilt: no tag", _codes(found), [])
    # The end of the stack is 10 mm up: what the tag is off there decides.
    for off_mm, told in ((0.045, []), (0.06, ["IMG-1212"])):
        tag = float(np.degrees(np.arctan(0.3 / 2.5 + off_mm / 10.0)))
        check.equal(f"tilt: the tag is {off_mm} mm off", _codes(found, tilt_deg=tag), told)
    with check.notices("IMG-1212", "tilt: the tag says none") as caught:
        _codes(found, tilt_deg=0.0)
    if caught.diagnostic is not None:
        required = {"shear_deg": truth, "tag_deg": 0.0}
        _evidence(check, "tilt: the tag says none", caught.diagnostic.fields, required)
    flat = _fit(_stack(_TURNED, 2.5 * _TURNED[:, 2]), _TURNED)
    check.equal("no tilt: a tag that says none", _codes(flat, tilt_deg=0.0), [])
    check.equal("no tilt: a tag that says 9 degrees", _codes(flat, tilt_deg=9.0), ["IMG-1212"])
    square = _fit(np.arange(5)[:, None] * np.array([0.0, 0.0, 2.5]), _SQUARE)
    exact = Tolerances(tag_mm=0.0)
    check.equal("no tilt, and not allowed any", _codes(square, tilt_deg=0.0, tolerances=exact), [])
