"""Stacks by header values alone: what splits a series, and what a stack needs for its grid."""

from dataclasses import replace
from typing import Any

import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.gates._images import image, names
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_imaging.series.grouping import prepare_stack
from numbat_imaging.series.instance import Instance, PixelFormat
from numbat_imaging.series.splitting import Stack, split_stacks
from numbat_imaging.volume import grid_of

_CORONAL = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0)


@gate(
    "IMG-G20",
    phase=1,
    discharges=["IMG-R003", "IMG-R006", "IMG-R009"],
    title="A series is split by its header values, and a stack's grid takes each from its place",
)
def stack_keys(check: Check) -> None:
    _each_key(check)
    _order(check)
    _orientations(check)
    _many(check)
    _pixel_spacings(check)
    _grids(check)
    _single_slices(check)
    _several_volumes(check)


def _split(images: list[Instance], tolerances: Tolerances = DEFAULT_TOLERANCES) -> list[Stack]:
    return split_stacks(images, tolerances)


def _pixels(**values: Any) -> PixelFormat:
    return replace(image("a").pixels, **values)


#: What differs → the first's values, the second's, and how the two are told apart.
_DIFFERENCES: tuple[tuple[str, dict[str, Any], dict[str, Any], tuple[str, str]], ...] = (
    (
        "frame of reference",
        {"frame_of_reference_uid": "1.2"},
        {"frame_of_reference_uid": None},
        ("1.2", ""),
    ),
    (
        "image type",
        {"image_type": ("ORIGINAL", "A")},
        {"image_type": ("ORIGINAL",)},
        ("ORIGINAL\\A", "ORIGINAL"),
    ),
    (
        "echo",
        {"echo_number": 1, "echo_time_ms": 2.5},
        {"echo_number": None, "echo_time_ms": 5.0},
        ("1 2.5 ms", "5 ms"),
    ),
    (
        "echo",
        {"echo_number": 1, "echo_time_ms": None},
        {"echo_number": 2, "echo_time_ms": None},
        ("1", "2"),
    ),
    ("vendor image kind", {"vendor_split": "M"}, {"vendor_split": "P"}, ("M", "P")),
    (
        "reconstruction kernel",
        {"convolution_kernel": "B30"},
        {"convolution_kernel": "B60"},
        ("B30", "B60"),
    ),
    (
        "complex component",
        {"complex_component": "PHASE"},
        {"complex_component": ""},
        ("PHASE", ""),
    ),
    ("stack", {"stack_id": "1"}, {"stack_id": "2"}, ("1", "2")),
    ("object class", {"sop_class_uid": "1.1"}, {"sop_class_uid": "1.3"}, ("1.1", "1.3")),
)
#: The same of how pixels are laid out.
_PIXELS: tuple[tuple[str, dict[str, Any], dict[str, Any], tuple[str, str]], ...] = (
    ("matrix", {"rows": 8, "columns": 6}, {"rows": 6, "columns": 8}, ("6x8", "8x6")),
    (
        "colour",
        {"photometric": "RGB", "samples": 3},
        {"photometric": "MONOCHROME2", "samples": 1},
        ("RGB 3", "MONOCHROME2 1"),
    ),
)


def _each_key(check: Check) -> None:
    of_pixels = [
        (name, {"pixels": _pixels(**first)}, {"pixels": _pixels(**second)}, values)
        for name, first, second, values in _PIXELS
    ]
    for name, first, second, values in (*_DIFFERENCES, *of_pixels):
        images = [image("a", 0.0, instance_number=1, **first)]
        images += [image("b", 0.0, instance_number=2, **second)]
        images += [image("c", 2.0, instance_number=3, **first)]
        found = _split(images)
        check.equal(f"{name}: stacks", names(s.instances for s in found), ["ac", "b"])
        differs = [stack.differs_by for stack in found]
        due = [((name, values[0]),), ((name, values[1]),)]
        check.equal(f"{name} {values}: what differs", differs, due)
        check.equal(f"{name}: images of the series", [s.series_images for s in found], [3, 3])
    alike = _split([image("a"), image("b", 2.0)])
    check.equal("alike: one stack", names(stack.instances for stack in alike), ["ab"])
    check.equal("alike: nothing differs", alike[0].differs_by, ())
    check.equal("a stack of no series", Stack((image("a"),)).series_images, 0)


def _order(check: Check) -> None:
    kinds = (("a", 7, "M"), ("b", 3, "P"), ("c", None, "M"), ("d", 5, "M"), ("e", 9, "P"))
    images = [
        image(name, 2.0 * place, instance_number=number, vendor_split=kind)
        for place, (name, number, kind) in enumerate(kinds)
    ]
    found = names(stack.instances for stack in _split(images))
    check.equal("by the least number of a stack", found, ["be", "acd"])
    bare = [image("b", vendor_split="P"), image("a", vendor_split="M")]
    found = names(stack.instances for stack in _split(bare))
    check.equal("without numbers: by identifier", found, ["a", "b"])
    half = [image("b", vendor_split="P"), image("a", vendor_split="M", instance_number=1)]
    found = names(stack.instances for stack in _split(half))
    check.equal("without a number: before the first", found, ["b", "a"])


def _orientations(check: Check) -> None:
    axial = image("a").orientation
    images = [
        image("a", 0.0, instance_number=1),
        image("b", 2.0, instance_number=2, orientation=_CORONAL),
        image("c", 4.0, instance_number=3),
        image("d", 6.0, instance_number=4, orientation=None),
        image("e", 8.0, instance_number=5, orientation=_CORONAL),
    ]
    found = _split(images)
    check.equal("orientations: stacks", names(s.instances for s in found), ["ac", "be", "d"])
    said = [dict(stack.differs_by)["orientation"] for stack in found]
    check.equal("orientations: what differs", said, ["1", "2", "none"])
    # Turned by what moves the far corner by just less, and just more, than twice the limit.
    pixels = _pixels(rows=100, columns=40)
    for spacing, extent_i, extent_j in (((0.5, 2.0), 80.0, 50.0), (None, 40.0, 100.0)):
        for factor, stacks in ((0.98, ["ab"]), (1.02, ["a", "b"])):
            turn = factor * 2 * 0.05 / (extent_i + extent_j)
            turned = (np.cos(turn), np.sin(turn), 0.0, -np.sin(turn), np.cos(turn), 0.0)
            common = {"pixels": pixels, "pixel_spacing_mm": spacing}
            pair = [
                image("a", 0.0, instance_number=1, orientation=axial, **common),
                image("b", 2.0, instance_number=2, orientation=turned, **common),
            ]
            found_names = names(stack.instances for stack in _split(pair))
            name = f"corner moved by {factor} of the limit, pixels of {spacing}"
            check.equal(name, found_names, stacks)
    halves = (1.0, 0.0, 0.0, 0.0, 1.0, 0.5)
    pair = [image("a", 0.0), image("b", 2.0, orientation=halves)]
    rows = image("a").pixels.rows
    on_limit = Tolerances(orientation_mm=rows / 4)
    found_names = names(stack.instances for stack in _split(pair, on_limit))
    check.equal("corner moved by the limit", found_names, ["ab"])


def _many(check: Check) -> None:
    """More orientations than are kept at first, and more stacks than are believed."""
    angles = np.radians(np.arange(130) * 2.5)
    turned = [(np.cos(a), np.sin(a), 0.0, -np.sin(a), np.cos(a), 0.0) for a in angles]
    images = [
        image(f"{turn}", 0.0, instance_number=number, orientation=turned[turn])
        for number, turn in enumerate([*range(130), 0, 63, 64, 65, 129])
    ]
    found = _split(images)
    check.equal("130 orientations: stacks", len(found), 130)
    twice = [s.instances[0].sop_instance_uid for s in found if len(s.instances) == 2]
    check.equal("130 orientations: those met again", twice, ["0", "63", "64", "65", "129"])
    numbers = [dict(stack.differs_by)["orientation"] for stack in found]
    check.equal("130 orientations: numbers", numbers, [f"{k + 1}" for k in range(130)])
    kinds = [image(f"{k:04}", 0.0, vendor_split=f"{k}") for k in range(1025)]
    check.equal("1024 stacks", len(_split(kinds[:1024])), 1024)
    with check.refuses("IMG-1013", "1025 stacks") as caught:
        _split(kinds)
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        shown = (fields["what"], fields["measured"], fields["limit"])
        check.equal("1025 stacks: evidence", shown, ("stacks in one series", 1025, 1024))


def _pixel_spacings(check: Check) -> None:
    pixels = _pixels(rows=10, columns=40)
    for name, spacing, off_mm in (
        ("between rows", (1.02, 1.0), 0.2),
        ("between columns", (1.0, 0.98), 0.8),
        ("between both", (1.05, 0.99), 0.5),
        ("by little", (1.007, 1.0), 0.07),
    ):
        pair = [image("a", 0.0, pixels=pixels)]
        pair += [image("b", 2.0, pixels=pixels, pixel_spacing_mm=spacing)]
        with check.refuses("IMG-1204", f"another spacing {name}") as caught:
            _split(pair)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            shown = [*fields["first_mm"], *fields["other_mm"], fields["displacement_mm"]]
            required = [1.0, 1.0, *spacing, off_mm]
            check.close(
                f"another spacing {name}: evidence", measured=shown, required=required, atol=1e-9
            )
    unlike: tuple[tuple[str, tuple[float, float] | None], ...] = (
        ("that displaces nothing", (1.004, 1.001)),
        ("that is not stated", None),
    )
    for name, other in unlike:
        pair = [image("a", 0.0, pixels=pixels)]
        pair += [image("b", 2.0, pixels=pixels, pixel_spacing_mm=other)]
        found = names(stack.instances for stack in _split(pair))
        check.equal(f"another spacing {name}", found, ["ab"])
    spacings: tuple[tuple[float, float] | None, ...] = ((1.0, 1.0), None, (2.0, 1.0))
    three = [image("abc"[k], 2.0 * k, pixel_spacing_mm=spacings[k]) for k in range(3)]
    with check.refuses("IMG-1204", "another spacing behind one that is not stated"):
        _split(three)
    narrow = _pixels(rows=1, columns=1)
    on_limit = [image("ab"[k], k, pixels=narrow, pixel_spacing_mm=(0.05 + 0.05 * k, 1.0))
                for k in range(2)]  # fmt: skip
    found = names(stack.instances for stack in _split(on_limit))
    check.equal("another spacing on the limit", found, ["ab"])


def _grids(check: Check) -> None:
    images = [image("abc"[k], 2.0 * k, pixel_spacing_mm=(0.5, 0.75)) for k in range(3)]
    found = grid_of(prepare_stack(Stack(tuple(images)), tolerances=DEFAULT_TOLERANCES))
    required = np.diag([0.75, 0.5, 2.0, 1.0])
    name = "columns lie apart along i, rows along j"
    check.close(name, measured=found.affine_lps_mm, required=required, atol=1e-12, unit="mm")
    for declared, found_slices in ((3, 3), (2, 3), (None, 3)):
        stack = Stack(tuple(image("abc"[k], 2.0 * k, slices_declared=declared) for k in range(3)))
        grid = grid_of(prepare_stack(stack, tolerances=DEFAULT_TOLERANCES))
        check.equal(f"{declared} slices declared", grid.slices, found_slices)
    stack = Stack(tuple(image("abc"[k], 2.0 * k, slices_declared=4) for k in range(3)))
    prepared = prepare_stack(stack, tolerances=DEFAULT_TOLERANCES)
    with check.refuses("IMG-1216", "one slice fewer than declared") as caught:
        grid_of(prepared)
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        shown = (fields["declared"], fields["found"])
        check.equal("one slice fewer than declared: evidence", shown, (4, 3))


def _single_slices(check: Check) -> None:
    both = {"spacing_between_slices_mm": 3.0, "slice_thickness_mm": 2.0}
    for name, tags, given_mm, thickness_mm, source in (
        ("the caller", both, 4.0, 4.0, "the caller"),
        ("one tag before the other", both, None, 3.0, "SpacingBetweenSlices"),
        ("a caller who says nothing of use", both, 0.0, 3.0, "SpacingBetweenSlices"),
        ("the only tag", {"slice_thickness_mm": 2.0}, None, 2.0, "SliceThickness"),
        (
            "a tag that is no distance",
            both | {"spacing_between_slices_mm": 0.0},
            None,
            2.0,
            "SliceThickness",
        ),
        ("a thin slice", {"slice_thickness_mm": 0.7}, None, 0.7, "SliceThickness"),
        (
            "a negative distance",
            both | {"spacing_between_slices_mm": -3.0},
            None,
            2.0,
            "SliceThickness",
        ),
    ):
        stack = Stack((image("a", 5.0, **tags),))
        prepared = prepare_stack(stack, tolerances=DEFAULT_TOLERANCES)
        grid = grid_of(prepared, slice_thickness_mm=given_mm)
        check.equal(f"one slice, {name}: source", grid.thickness_source, source)
        required = np.diag([1.0, 1.0, thickness_mm, 1.0])
        required[2, 3] = 5.0
        measured = grid.affine_lps_mm
        check.close(f"one slice, {name}: affine", measured=measured, required=required, atol=1e-12)
    with check.refuses("IMG-1210", "one slice, and nothing says how thick"):
        grid_of(prepare_stack(Stack((image("a"),)), tolerances=DEFAULT_TOLERANCES))


def _several_volumes(check: Check) -> None:
    """The volumes of a stack lie at one place, within the limit on positions."""
    for slices in (1, 3):
        for moved_mm, stays in ((0.04, True), (0.06, False)):
            # Both leave their mean by this much.
            images = [
                image(
                    f"{t}{k}",
                    position_lps_mm=(moved_mm * (2 * t - 1), 0.0, 2.0 * k),
                    temporal_position=t + 1,
                    slice_thickness_mm=2.0,
                )
                for t in range(2)
                for k in range(slices)
            ]
            prepared = prepare_stack(Stack(tuple(images)), tolerances=DEFAULT_TOLERANCES)
            name = f"two volumes of {slices}, each {moved_mm} mm from their mean"
            if stays:
                place = grid_of(prepared).origin_mm
                check.close(name, measured=place, required=np.zeros(3), atol=1e-12, unit="mm")
                continue
            with check.refuses("IMG-1208", name) as caught:
                grid_of(prepared)
            if caught.diagnostic is not None:
                fields = caught.diagnostic.fields
                shown = [fields[part] for part in ("volumes", "displacement_mm", "limit_mm")]
                check.close(
                    f"{name}: evidence", measured=shown, required=[2, 0.06, 0.05], atol=1e-9
                )
    _of_one_slice_alone(check)
    exact = Tolerances(position_mm=0.25, position_fraction=1.0)
    images = [
        image(f"{t}{k}", position_lps_mm=(0.5 * t, 0.0, 2.0 * k), temporal_position=t + 1)
        for t in range(2)
        for k in range(3)
    ]
    prepared = prepare_stack(Stack(tuple(images)), tolerances=exact)
    place = grid_of(prepared, tolerances=exact).origin_mm
    required = np.array([0.25, 0.0, 0.0])
    check.close("two volumes on the limit", measured=place, required=required, atol=1e-12)


def _of_one_slice_alone(check: Check) -> None:
    """One slice that leaves its place, and thin slices, whose limit is a part of their distance."""
    for name, distance_mm, moved_mm in (("one slice of five", 2.0, 0.06), ("thin", 0.3, 0.04)):
        images = [
            image(
                f"{t}{k}",
                position_lps_mm=(moved_mm * (2 * t - 1) * (k == 3), 0.0, distance_mm * k),
                temporal_position=t + 1,
            )
            for t in range(2)
            for k in range(5)
        ]
        prepared = prepare_stack(Stack(tuple(images)), tolerances=DEFAULT_TOLERANCES)
        with check.refuses("IMG-1208", f"two volumes that part in one place, {name}"):
            grid_of(prepared)
