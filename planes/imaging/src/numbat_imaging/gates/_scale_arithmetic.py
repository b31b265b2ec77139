"""Scales as data: what they do to stored values, and which one a name means; part of IMG-G26."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.gates._images import image
from numbat_imaging.series.instance import Instance
from numbat_imaging.values.dose import dose_scale
from numbat_imaging.values.philips import precise_scale, private_displayed_scale
from numbat_imaging.values.rescale import Alternative, refuse_undefined, stack_scale
from numbat_imaging.values.scales import Scale, Scales, Table, Unreadable
from numbat_registries import Diagnostic, Refusal, refuse

_LINE = Scale("displayed", 2.0, -1.0, "HU", "a source")
_STORED = Scale("stored", source="stored values")


def scale_arithmetic(check: Check) -> None:
    """Scales of one slice and of a stack, without a file."""
    _applied(check)
    _named(check)
    _mapped(check)
    _stacks(check)
    _alternatives(check)
    _types(check)
    _doses(check)
    _philips(check)


def _table(first: int, *entries: float, dtype: str = "<u2") -> Table:
    return Table(first, dtype, np.array(entries, dtype).tobytes())


def _applied(check: Check) -> None:
    stored = np.array([[-3, -2, -1], [0, 1, 200]], "i2")
    found = Scale("displayed", table=_table(-2, 10, 20, 30)).apply(stored)
    check.equal("entries of a table", found.tolist(), [[10, 10, 20], [30, 30, 30]])
    check.equal("type of entries", found.dtype.name, "uint16")
    largest = np.array([0, 65535], "u2")
    found = Scale("displayed", table=_table(65534, 1, 2)).apply(largest)
    check.equal("entries at the end of 16 bits", found.tolist(), [1, 2])
    found = _LINE.apply(stored)
    check.equal("a line", found.tolist(), [[-7.0, -5.0, -3.0], [-1.0, 1.0, 399.0]])
    check.equal("type of a line", found.dtype.name, "float64")
    for says, scale, required in (
        ("nothing", Scale("stored"), True),
        ("a unit alone", Scale("displayed", 1.0, 0.0, "HU"), True),
        ("a slope", Scale("displayed", 2.0, 0.0), False),
        ("an intercept", Scale("displayed", 1.0, 1.0), False),
        ("a table", Scale("displayed", table=_table(0, 0, 1)), False),
    ):
        check.equal(f"{says} changes no value", scale.is_identity, required)


def _unreadable(name: str) -> Unreadable:
    return Unreadable(name, _damage().diagnostic)


def _damage() -> Refusal:
    return refuse("IMG-1511", scaling="absent", file="a file")


def _diagnosed(diagnostic: Diagnostic | None) -> dict[str, Any]:
    return {} if diagnostic is None else dict(diagnostic.fields)


def _named(check: Check) -> None:
    """Which of the offered scales a name means."""
    one, two = Scale("real-world:A", 3.0), Scale("real-world:B", 4.0)
    bare = Scale("real-world", 5.0)
    cases: tuple[tuple[str, tuple[Scale | Unreadable, ...], str, Scale], ...] = (
        ("the first", (_LINE, _STORED), "default", _LINE),
        ("the first, whatever it is", (_STORED,), "default", _STORED),
        ("its name", (_LINE, _STORED), "stored", _STORED),
        ("displayed values", (_LINE, _STORED), "displayed", _LINE),
        ("displayed values that are stored", (one, _STORED), "displayed", _STORED),
        ("the only map", (_LINE, one, _STORED), "real-world", one),
        ("a map by its label", (one, two, _STORED), "real-world:B", two),
        ("a map without a label", (bare, one, _STORED), "real-world", bare),
        ("one beside a damaged one", (_LINE, _unreadable("precise")), "displayed", _LINE),
    )
    for says, offered, wanted, required in cases:
        found = Scales(offered).chosen(wanted, file="a file")
        check.equal(f"{wanted} is {says}", found, required)
    for says, offered, wanted, code in (
        ("no such scale", (_LINE, _STORED), "precise", "IMG-1505"),
        ("no such map", (_LINE, _STORED), "real-world", "IMG-1505"),
        ("a label of no map", (one, _STORED), "real-world:C", "IMG-1505"),
        ("two maps", (one, two, _STORED), "real-world", "IMG-1506"),
        ("two of one label", (one, one, _STORED), "real-world:A", "IMG-1506"),
    ):
        with check.refuses(code, f"{wanted}: {says}") as caught:
            Scales(offered).chosen(wanted, file="a file")
        asked = _diagnosed(caught.diagnostic).get("asked")
        check.equal(f"{wanted}: {says}, asked", asked, wanted)
    damaged = Scales((_unreadable("dose"), _STORED))
    for wanted in ("dose", "default"):
        with check.refuses("IMG-1511", f"{wanted}: one that cannot be read"):
            damaged.chosen(wanted, file="a file")
    check.equal("names of all", damaged.names, ["dose", "stored"])


def _mapped(check: Check) -> None:
    """Stored values for which a map has no value, padding aside."""
    stored = np.array([[2, 3, 9], [10, 5, 4]], "u2")
    one = image("a")
    for says, scale in (
        ("to the ends", Scale("m", mapped=(2.0, 10.0))),
        ("of all", Scale("m")),
    ):
        refuse_undefined(one, scale, stored, None)
        check.true(f"a map {says}", True)
    for says, mapped, padding, told in (
        ("one below", (3.0, 10.0), None, (1, 2.0, 2.0)),
        ("one above", (2.0, 9.0), None, (1, 10.0, 10.0)),
        ("both", (3.0, 9.0), None, (2, 2.0, 10.0)),
        ("one below that is no padding", (3.0, 9.0), stored == 10, (1, 2.0, 2.0)),
        ("several", (5.0, 5.0), stored > 9, (4, 2.0, 9.0)),
    ):
        with check.refuses("IMG-1510", f"outside a map: {says}") as caught:
            refuse_undefined(one, Scale("m", mapped=mapped), stored, padding)
        fields = _diagnosed(caught.diagnostic)
        shown = tuple(fields.get(key) for key in ("count", "lowest", "highest"))
        check.equal(f"outside a map: {says}, told", shown, told)
    refuse_undefined(one, Scale("m", mapped=(3.0, 9.0)), stored, (stored == 2) | (stored == 10))
    check.true("padding outside a map", True)


def _with(*scales: tuple[Scale | Unreadable, ...], **pixels: Any) -> list[Instance]:
    format_ = replace(image("a").pixels, **pixels)
    return [
        image(f"{k}", 2.0 * k, scales=Scales(offered), pixels=format_)
        for k, offered in enumerate(scales)
    ]


def _stacks(check: Check) -> None:
    same = stack_scale(_with((_LINE, _STORED), (_LINE, _STORED)))
    scale = same.travels
    shown = (scale.slope, scale.intercept, scale.unit, scale.source, scale.applied, scale.name)
    check.equal("one line for all", shown, (2.0, -1.0, "HU", "a source", False, "displayed"))
    other = replace(_LINE, slope=3.0)
    with check.notices("IMG-1503", "a line for each"):
        each = stack_scale(_with((_LINE, _STORED), (other, _STORED)))
    scale = each.travels
    shown = (scale.slope, scale.intercept, scale.unit, scale.source, scale.applied, scale.name)
    required = (1.0, 0.0, "HU", "a source of each slice, applied", True, "displayed")
    check.equal("a line for each: what travels", shown, required)
    stored = np.array([[1, 2]], "u2")
    found = [each.values(k, stored).tolist() for k in (0, 1)]
    check.equal("a line for each: values", found, [[[1.0, 3.0]], [[2.0, 5.0]]])
    table = Scale("displayed", source="a table", table=_table(0, 5, 6, 7))
    tabled = stack_scale(_with((table, _STORED), (table, _STORED)))
    told = (tabled.travels.applied, tabled.travels.source, tabled.dtype.name, tabled.notices)
    check.equal("a table for all", told, (True, "a table, applied", "uint16", ()))
    colours = {"samples": 3, "photometric": "RGB", "bits_allocated": 8, "bits_stored": 8}
    plain = stack_scale(_with((_STORED,), **colours)).travels.slope
    check.equal("colours as they are stored", plain, 1.0)
    with check.refuses("IMG-1504", "a line of colours"):
        stack_scale(_with((_LINE,), **colours))


def _alternatives(check: Check) -> None:
    """What every slice states besides, in the order of the first slice."""

    def told(*scales: tuple[Scale | Unreadable, ...], wanted: str = "stored") -> list[Alternative]:
        return list(stack_scale(_with(*scales), wanted).travels.alternatives)

    dose, precise = Scale("dose", 0.5, 0.0, "GY"), Scale("precise", 4.0, 2.0)
    check.equal(
        "in the order of the first slice",
        [a.name for a in told((dose, _LINE, precise, _STORED), (_LINE, precise, dose, _STORED))],
        ["dose", "displayed", "precise"],
    )
    check.equal(
        "what one slice lacks is none",
        [a.name for a in told((dose, _LINE, _STORED), (dose, _STORED))],
        ["dose"],
    )
    line = Alternative("displayed", 2.0, -1.0, "HU")
    check.equal("a line", told((_LINE, _STORED), (_LINE, _STORED)), [line])
    table = replace(_LINE, table=_table(0, 1, 2))
    check.equal(
        "a table", told((table, _STORED)), [Alternative("displayed", None, None, "HU", "table")]
    )
    steeper, unnamed = replace(_LINE, slope=3.0), replace(_LINE, unit="mGy")
    varies = Alternative("displayed", None, None, "HU", "varies")
    check.equal("one that varies", told((_LINE, _STORED), (steeper, _STORED)), [varies])
    of_units = told((_LINE, _STORED), (unnamed, _STORED))
    check.equal("one of two units", of_units, [replace(line, unit=None)])
    broken = told((_LINE, _STORED), (_unreadable("displayed"), _STORED))
    check.equal("one that is damaged in a slice", [a.form for a in broken], ["unreadable"])
    check.equal(
        "the chosen one is none", told((_LINE, _STORED), wanted="displayed")[0].name, "stored"
    )
    dictionary = {
        "name": "displayed",
        "form": "linear",
        "slope": 2.0,
        "intercept": -1.0,
        "unit": "HU",
    }
    check.equal("as data", line.to_dict(), dictionary)


def _types(check: Check) -> None:
    """The smallest type that keeps values apart."""
    steeper = replace(_LINE, slope=4.0)
    pair = ((_LINE,), (steeper,))
    for keyword, bits, required in (
        ("FloatPixelData", 32, "float32"),
        ("DoubleFloatPixelData", 64, "float64"),
    ):
        location = replace(image("a").pixels.location, keyword=keyword)
        images = _with(*pair, location=location, bits_allocated=bits, bits_stored=0)
        check.equal(f"values of {keyword}", stack_scale(images).dtype.name, required)
    cases: tuple[tuple[str, Table, str], ...] = (
        ("whole numbers", _table(0, 1, 2), "uint16"),
        ("halves", _table(0, 0.5, 1.5, dtype="<f8"), "float32"),
        ("tenths", _table(0, 0.5, 0.1, dtype="<f8"), "float64"),
    )
    for says, table, required in cases:
        images = _with((replace(_LINE, table=table),))
        check.equal(f"values of a table of {says}", stack_scale(images).dtype.name, required)
    mixed = _with((replace(_LINE, table=_table(0, 1, 2)),), (_LINE,))
    check.equal("a table and a line", stack_scale(mixed).dtype.name, "float32")


def _doses(check: Check) -> None:
    ds = Dataset()
    ds.SOPClassUID, ds.DoseGridScaling = "1.2.840.10008.5.1.4.1.1.481.2", "1e-9"
    found = dose_scale(ds, file="a file")
    required = Scale("dose", 1e-9, 0.0, None, "DoseGridScaling")
    check.equal("a dose that states no unit", found, required)
    ds.DoseUnits = "RELATIVE"
    check.equal(
        "a relative dose", dose_scale(ds, file="a file"), replace(required, unit="RELATIVE")
    )
    for scaling, shown in ((None, "absent"), ("0", "0"), ("-0.25", "-0.25")):
        ds.DoseGridScaling = scaling
        with check.refuses("IMG-1511", f"a dose scaled by {scaling}") as caught:
            dose_scale(ds, file="a file")
        check.equal(f"scaled by {scaling}: told", _diagnosed(caught.diagnostic)["scaling"], shown)
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    check.equal("what is no dose", dose_scale(ds, file="a file"), None)


def _private(block: str, **values: tuple[str, Any]) -> Dataset:
    ds = Dataset()
    private = ds.private_block(0x2005, block, create=True)
    for element, (vr, value) in values.items():
        private.add_new(int(element[1:], 16), vr, value)
    return ds


def _philips(check: Check) -> None:
    five, one = "Philips MR Imaging DD 005", "Philips MR Imaging DD 001"
    cases: tuple[tuple[str, Dataset, tuple[float, float] | None], ...] = (
        ("both", _private(five, x0A=("DS", "2.5"), x09=("DS", "-4")), (2.5, -4.0)),
        ("a slope alone", _private(five, x0A=("DS", "2.5")), (2.5, 0.0)),
        ("an intercept alone", _private(five, x09=("DS", "-4")), None),
        ("a slope of 0", _private(five, x0A=("DS", "0"), x09=("DS", "-4")), None),
        ("two slopes", _private(five, x0A=("DS", ["1", "2"])), None),
        ("two intercepts", _private(five, x0A=("DS", "2"), x09=("DS", ["1", "2"])), (2.0, 0.0)),
        ("another owner's", _private(one, x0A=("DS", "2.5")), None),
    )
    for says, ds, required in cases:
        scale = private_displayed_scale(ds)
        found = None if scale is None else (scale.slope, scale.intercept)
        check.equal(f"Philips' private rescale, {says}", found, required)
    table = replace(_LINE, table=_table(0, 1, 2))
    slope = _private(one, x0E=("FD", -0.25))
    for says, displayed, precise in (
        ("no displayed scale", None, (-4.0, 0.0)),
        ("a displayed one", _LINE, (-4.0, 2.0)),
        ("a table", table, None),
    ):
        scale = precise_scale(slope, displayed)
        found = None if scale is None else (scale.slope, scale.intercept)
        check.equal(f"precise values beside {says}", found, precise)
    check.equal("no scale slope", precise_scale(Dataset(), _LINE), None)
    for says, vr, value, code in (
        ("0", "FD", 0.0, "IMG-1504"),
        ("no number", "FD", float("nan"), "IMG-1012"),
        ("beyond numbers", "FD", float("inf"), "IMG-1012"),
        ("two numbers", "FD", [1.0, 2.0], "IMG-1504"),
        ("a text", "LO", "one", "IMG-1504"),
    ):
        with check.refuses(code, f"a scale slope that is {says}"):
            precise_scale(_private(one, x0E=(vr, value)), _LINE)
