"""Pixel padding: masked, never taken for a value; part of IMG-G26."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.gates._small_phantoms import SIGNED, SMALL, made, read, stored
from numbat_imaging.output.contact_sheet import grey_window
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.phantoms.value_faults import (
    raised,
    with_modality_lut,
    with_values,
    with_values_in,
)
from numbat_imaging.values.padding import padding_of
from numbat_imaging.volume import square


def padding(check: Check) -> None:
    """Which voxels are padding, whatever scale they are on."""
    _stated(check)
    _masks(check)
    _applied(check)
    _among_values(check)
    _summaries(check)


def _stated(check: Check) -> None:
    cases: tuple[tuple[str, dict[str, Any], tuple[float, float] | None], ...] = (
        ("none", {}, None),
        ("a value", {"PixelPaddingValue": 7}, (7, 7)),
        ("the sign of the pixels", {"PixelPaddingValue": 63536}, (63536, 63536)),
        (
            "signed, written unsigned",
            {"PixelPaddingValue": 63536, "sign": 1},
            (-2000, -2000),
        ),
        (
            "signed, a positive value",
            {"PixelPaddingValue": 32767, "sign": 1},
            (32767, 32767),
        ),
        ("signed, the lowest value", {"PixelPaddingValue": 32768, "sign": 1}, (-32768,) * 2),
        ("a range", {"PixelPaddingValue": 7, "PixelPaddingRangeLimit": 12}, (7, 12)),
        ("a range downwards", {"PixelPaddingValue": 12, "PixelPaddingRangeLimit": 7}, (7, 12)),
        ("a limit alone", {"PixelPaddingRangeLimit": 7}, None),
        ("colours", {"PixelPaddingValue": 7, "SamplesPerPixel": 3}, None),
        ("grey", {"PixelPaddingValue": 7, "SamplesPerPixel": 1}, (7, 7)),
        ("floats", {"FloatPixelPaddingValue": -1.5}, (-1.5, -1.5)),
        (
            "doubles",
            {"DoubleFloatPixelPaddingValue": 2.5, "DoubleFloatPixelPaddingRangeLimit": -2.5},
            (-2.5, 2.5),
        ),
    )
    for says, elements, required in cases:
        ds = Dataset()
        ds.PixelRepresentation = elements.get("sign", 0)
        for keyword, value in elements.items():
            if keyword != "sign":
                ds.add_new(keyword, "US" if isinstance(value, int) else "FD", value)
        check.equal(f"padding: {says}", padding_of(ds), required)


def _masks(check: Check) -> None:
    volume = read_fault("padding-below-values")
    check.equal("stored range of padding", volume.padding, (-32768, -32760))
    check.equal("mask of a range", volume.padding_mask(), volume.voxels <= -32760)
    check.equal("nothing masked without padding", read_fault("clean").padding_mask(), None)
    one = read(made(SMALL, with_values(PixelPaddingValue=50)))
    check.equal("mask of a value", one.padding_mask(), SMALL.truth_voxels() == 50)
    check.equal("padding keeps its voxels", one.voxels, SMALL.truth_voxels())
    differs = read_fault("padding-differs")
    truth = np.zeros(differs.voxels.shape, bool)
    truth[..., 0] = Phantom().truth_voxels()[..., 0] == 0
    truth[..., 4] = Phantom().truth_voxels()[..., 4] == 4100
    check.equal("each slice has its own padding", differs.padding_mask(), truth)
    check.equal("no one range for all", differs.padding, None)
    some = made(SMALL, with_values(PixelPaddingValue=50))
    del some[1].PixelPaddingValue
    nothing = np.zeros(SMALL.shape, bool)
    check.equal("padding that one slice lacks", read(some).padding_mask(), nothing)
    times = replace(SMALL, volumes=2)
    slices = made(times, with_values(PixelPaddingValue=50))
    slices[0].PixelPaddingValue = 7
    truth = times.truth_voxels() == 50
    truth[..., 0, 0] = times.truth_voxels()[..., 0, 0] == 7
    check.equal("padding of two volumes", read(slices).padding_mask(), truth)


def _applied(check: Check) -> None:
    slices = made(SMALL, raised(0, intercepts=(0, 10)), with_values(PixelPaddingValue=50))
    volume = read(slices)
    check.equal("mask beside applied values", volume.padding_mask(), stored(slices) == 50)
    bare = read(made(SMALL, raised(0, intercepts=(0, 10))))
    check.equal("no mask of applied values without padding", bare.padding_mask(), None)
    shared = read(made(SMALL, with_values(PixelPaddingValue=50)))
    check.equal("one range for all needs no mask of its own", shared.padded, None)
    table = made(SMALL, with_modality_lut(0, [9] * 192), with_values(PixelPaddingValue=50))
    check.equal("mask beside a table", read(table).padding_mask(), stored(table) == 50)
    tilted = made(
        replace(SIGNED, step_lps_mm=(0.0, 0.5, 2.0)), with_values(PixelPaddingValue=-32763)
    )
    moved = square(read(tilted))
    whole = moved.padding_mask()
    if whole is None:
        raise AssertionError("the padding of a tilted stack is lost")
    # Voxel (5, 0, 0) is padding; half a row down in slice 1 another one would be.
    check.equal("padding stays where its slice does not slide", bool(whole[5, 0, 0]), True)
    check.equal(
        "its neighbours are values", whole[[4, 6, 5], [0, 0, 1], [0, 0, 0]].tolist(), [False] * 3
    )
    check.equal("what no slice reaches is masked", bool(whole[0, 0, 3]), True)
    check.equal("no stored range is left", moved.padding, None)


def _among_values(check: Check) -> None:
    with check.notices("IMG-1512", "padding among values"):
        volume = read_fault("padding-among-values")
    (told,) = [found for found in volume.notices if found.code == "IMG-1512"]
    evidence = [told.fields[name] for name in ("low", "high", "lowest", "highest", "count")]
    check.equal("evidence of padding among values", evidence, [100, 100, 0, 10239, 1])
    two = made(
        SMALL,
        with_values_in(0, PixelPaddingValue=10, PixelPaddingRangeLimit=12),
        with_values_in(2, PixelPaddingValue=100, PixelPaddingRangeLimit=104),
    )
    (told,) = [found for found in read(two).notices if found.code == "IMG-1512"]
    evidence = [told.fields[name] for name in ("low", "high", "lowest", "highest", "count")]
    # Slices 0 and 2 store 0 to 47 and 96 to 143.
    check.equal("evidence of two ranges of padding", evidence, [10, 104, 0, 143, 8])
    cases = (
        ("below all values", 0, 0, False),
        ("above all values", 191, 191, False),
        ("above the lowest", 1, 1, True),
        ("below the highest", 190, 190, True),
        ("from the lowest on", 0, 20, False),
        ("to the highest", 180, 191, False),
        ("beyond them", 500, 600, False),
    )
    for says, low, high, said in cases:
        elements = {"PixelPaddingValue": low, "PixelPaddingRangeLimit": high}
        found = read(made(SMALL, with_values(**elements)))
        codes = [diagnostic.code for diagnostic in found.notices]
        check.equal(f"padding {says}", "IMG-1512" in codes, said)


def _summaries(check: Check) -> None:
    most = made(SMALL, with_values(PixelPaddingValue=0, PixelPaddingRangeLimit=150))
    low, high = grey_window(read(most))
    check.at_least("padding does not darken a contact sheet", low, 151.0)
    check.at_most("nor brighten it", high, 191.0)
    empty = made(SMALL, with_values(PixelPaddingValue=0, PixelPaddingRangeLimit=191))
    low, high = grey_window(read(empty))
    check.true("a sheet of padding alone has a window", low < high, measured=[low, high])
