"""Values are on the scale that is named: tables, maps, doses, Philips, padding, provenance."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pydicom
from pydicom import Dataset

from numbat_gates import Check, gate
from numbat_imaging.gates._padding import padding
from numbat_imaging.gates._scale_arithmetic import scale_arithmetic
from numbat_imaging.gates._small_phantoms import SIGNED, SMALL, made, read, stored
from numbat_imaging.gates._value_tables import real_world_maps, tables
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import FAULTS, Phantom
from numbat_imaging.phantoms.reading import convert_fault, inspect_fault, read_fault
from numbat_imaging.phantoms.value_faults import (
    as_dose,
    raised,
    real_world_item,
    with_philips_scale,
    with_values,
    with_values_in,
)
from numbat_imaging.series.instance import instances_from_header
from numbat_imaging.values.philips import precise_scale
from numbat_imaging.values.real_world import real_world_scales
from numbat_imaging.values.scales import Scale
from numbat_imaging.values.stated import scales_of
from numbat_imaging.volume import read_volumes


@gate(
    "IMG-G26",
    phase=2,
    discharges=["IMG-R026"],
    title="Values are on the scale that is named, and the volume says which it is",
)
def value_scales(check: Check) -> None:
    tables(check)
    real_world_maps(check)
    padding(check)
    scale_arithmetic(check)
    _philips(check)
    _units(check)
    _defaults(check)
    _doses(check)
    _precision(check)
    _mixtures(check)
    _provenance(check)
    _scans(check)


# -- Philips --------------------------------------------------------------------------------------


def _philips(check: Check) -> None:
    scale_slope, slope, intercept = float(np.float32(1.6765)), 0.596581, 0.0
    voxels = Phantom().truth_voxels().astype(float)
    precise = (voxels * slope + intercept) / (slope * scale_slope)
    for name in ("philips-two-scales", "philips-with-real-world"):
        volume = read_fault(name)
        check.close(f"{name}: precise", measured=volume.values(), required=precise, atol=1e-9)
        check.equal(f"{name}: name", volume.scale.name, "precise")
    displayed = read_fault("philips-two-scales", value_scale="displayed")
    check.equal("displayed values", displayed.values(), voxels * slope)
    rescale = ("3.5", "-20")
    slices = made(SMALL, with_philips_scale(0.0625, rescale=rescale))
    precise = (SMALL.truth_voxels() * 3.5 - 20.0) / (3.5 * 0.0625)
    check.close("an intercept", measured=read(slices).values(), required=precise, atol=1e-9)
    # Each dynamic has its own display; the precise scale is one for all.
    slices[2].RescaleSlope = "7"
    slices[2].RescaleIntercept = slices[0].RescaleIntercept = slices[1].RescaleIntercept = "0"
    slices[3].RescaleIntercept = "0"
    check.equal("one precise scale over many displays", read(slices).scale.slope, 16.0)
    with check.notices("IMG-1503", "a display for each slice"):
        read(slices, value_scale="displayed")
    same = read(made(SMALL, with_philips_scale(1 / 0.3, rescale=("0.3", "7"))))
    check.equal("both scales are one", (same.scale.slope, same.scale.intercept), (0.3, 7.0))
    for says, scale in (("a millionth more", 1 + 2e-6), ("a millionth less", 1 - 2e-6)):
        other = precise_scale(_private(1.0 / scale), Scale("displayed", 1.0, 0.0))
        found = None if other is None else round(other.slope, 6)
        check.equal(f"{says} is another scale", found, round(scale, 6))
    _philips_without(check)
    _philips_unsaid(check)


def _philips_unsaid(check: Check) -> None:
    """Where nothing is to be said about displayed values."""
    plain = with_philips_scale(None, rescale=("2", "0"))
    cases: tuple[tuple[str, list[Dataset], str], ...] = (
        ("asked for", made(SMALL, plain), "displayed"),
        ("in a unit", made(SMALL, plain, with_values(RescaleType="Hz")), "default"),
        ("as stored", made(SMALL, with_philips_scale(None, rescale=("1", "0"))), "default"),
        ("of a CT", made(SMALL, plain, with_values(Modality="CT", ImageType="DERIVED")), "default"),
        ("of another maker", made(SMALL, plain, with_values(Manufacturer="GE")), "default"),
    )
    for says, slices, wanted in cases:
        codes = [found.code for found in read(slices, value_scale=wanted).notices]
        check.equal(f"displayed values {says} need no word", codes, [])
    lower = made(SMALL, plain, with_values(Manufacturer="Philips"))
    check.equal("a maker in any case", [n.code for n in read(lower).notices], ["IMG-1513"])


def _private(scale_slope: float) -> Dataset:
    ds = Dataset()
    block = ds.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
    block.add_new(0x0E, "FD", scale_slope)
    return ds


def _philips_without(check: Check) -> None:
    voxels = Phantom().truth_voxels().astype(float)
    for name in ("philips-displayed-only", "philips-creator-absent"):
        with check.notices("IMG-1513", f"{name}: said"):
            volume = read_fault(name)
        check.equal(f"{name}: displayed", volume.values(), voxels * 0.596581)
        (told,) = [found for found in volume.notices if found.code == "IMG-1513"]
        check.equal(f"{name}: slope told", told.fields["slope"], 0.596581)
        with check.refuses("IMG-1505", f"{name}: no precise values"):
            read_fault(name, value_scale="precise")
    with check.refuses("IMG-1504", "a scale slope of 0"):
        read_fault("philips-scale-damaged")
    kept = read_fault("philips-scale-damaged", value_scale="displayed")
    check.equal("displayed values when asked for", kept.values(), voxels * 0.596581)
    with check.refuses("IMG-1507", "a scale slope in half of the slices"):
        read_fault("philips-scale-in-some-slices")
    unit = made(SMALL, with_philips_scale(), with_values(RescaleType="milliradials"))
    volume = read(unit)
    shown = (volume.scale.name, volume.scale.unit)
    check.equal("displayed values in a unit stay in it", shown, ("displayed", "milliradials"))
    check.equal(
        "and precise ones are offered", read(unit, value_scale="precise").scale.name, "precise"
    )
    plain = made(SMALL, with_philips_scale(), with_values(RescaleType="normalized"))
    check.equal("normalized is no unit", read(plain).scale.name, "precise")
    private = made(SMALL, with_philips_scale(0.5))
    for ds in private:
        del ds.RescaleSlope, ds.RescaleIntercept
        block = ds.private_block(0x2005, "Philips MR Imaging DD 005", create=True)
        block.add_new(0x09, "DS", "-4")
        block.add_new(0x0A, "DS", "2.5")
    check.equal(
        "a rescale in private elements",
        read(private, value_scale="displayed").values(),
        SMALL.truth_voxels() * 2.5 - 4.0,
    )
    check.close(
        "precise values by private elements alone",
        measured=read(private).values(),
        required=(SMALL.truth_voxels() * 2.5 - 4.0) / (2.5 * 0.5),
        atol=1e-9,
    )


# -- units, doses, precision, mixtures ------------------------------------------------------------


def _units(check: Check) -> None:
    ct = replace(SIGNED, modality="CT", slope=1.0, intercept=-1024.0)
    cases: tuple[tuple[str, dict[str, Any], str | None], ...] = (
        ("an original CT", {"RescaleType": None}, "HU"),
        (
            "a localizer",
            {"RescaleType": None, "ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]},
            None,
        ),
        ("a derived CT", {"RescaleType": None, "ImageType": ["DERIVED", "PRIMARY", "AXIAL"]}, None),
        ("several energies", {"RescaleType": None, "MultienergyCTAcquisition": "YES"}, None),
        ("one energy", {"RescaleType": None, "MultienergyCTAcquisition": "NO"}, "HU"),
        ("a stated type", {"RescaleType": "Z_EFF"}, "Z_EFF"),
        ("an unspecified type", {"RescaleType": "US"}, None),
        ("optical density", {"RescaleType": "OD"}, "10^-3 OD"),
        ("a derived CT that states HU", {"RescaleType": "HU", "ImageType": ["DERIVED"]}, "HU"),
        ("an MR", {"RescaleType": None, "Modality": "MR"}, None),
    )
    for says, elements, unit in cases:
        slices = made(ct, with_values(**elements))
        check.equal(f"unit of {says}", read(slices).scale.unit, unit)
        check.equal(f"{says}, stored", read(slices, value_scale="stored").scale.unit, None)
    pet = Phantom(shape=(8, 6, 4), modality="PT", unit="CNTS")
    check.equal("unit of a PET without rescale", read(made(pet)).scale.unit, "CNTS")
    check.equal(
        "stored values of a PET with one",
        read(made(replace(pet, slope=2.0)), value_scale="stored").scale.unit,
        None,
    )


def _defaults(check: Check) -> None:
    """Which scale comes first, by the data set of one slice."""
    line = real_world_item("M", "s", (0, 9), line=(2.0, 0.0))
    other = real_world_item("N", "s", (0, 9), line=(3.0, 0.0))
    parametric, mr = "1.2.840.10008.5.1.4.1.1.30", "1.2.840.10008.5.1.4.1.1.4"
    plain, twice = {"RescaleSlope": "1", "RescaleIntercept": "0"}, {"RescaleSlope": "2"}
    cases: tuple[tuple[str, str, dict[str, str], list[Dataset], list[str]], ...] = (
        ("a parametric map", parametric, {}, [line], ["real-world:M", "stored"]),
        ("with a rescale", parametric, plain, [line], ["real-world:M", "displayed", "stored"]),
        ("that does something", parametric, twice, [line], ["displayed", "real-world:M", "stored"]),
        ("two maps", parametric, {}, [line, other], ["stored", "real-world:M", "real-world:N"]),
        ("no map", parametric, {}, [], ["stored"]),
        ("an MR with a map", mr, {}, [line], ["stored", "real-world:M"]),
        ("a slope alone", mr, twice, [], ["displayed", "stored"]),
    )
    for says, sop_class, elements, items, required in cases:
        ds = Dataset()
        ds.SOPClassUID = sop_class
        for keyword, value in elements.items():
            setattr(ds, keyword, value)
        ds.RealWorldValueMappingSequence = items
        check.equal(f"scales of {says}", scales_of(ds, file="a phantom").names, required)
    alone = read(made(SMALL, with_values(RescaleSlope="2")))
    check.equal("a slope alone", alone.values(), SMALL.truth_voxels() * 2.0)
    with check.refuses("IMG-1502", "an intercept alone"):
        read(made(SMALL, with_values(RescaleIntercept="2")))


def _doses(check: Check) -> None:
    volume = read_fault("dose")
    check.equal("a dose", volume.values(), Phantom().truth_voxels() * 0.0025)
    check.equal("unit of a dose", (volume.scale.name, volume.scale.unit), ("dose", "GY"))
    for scaling in ("0", "-1"):
        with check.refuses("IMG-1511", f"DoseGridScaling {scaling}"):
            read(made(SMALL, as_dose(scaling)))
    absent = made(SMALL, as_dose("1"))
    for ds in absent:
        del ds.DoseGridScaling
    with check.refuses("IMG-1511", "DoseGridScaling absent"):
        read(absent)
    with check.refuses("IMG-1505", "a dose of an MR"):
        read_fault("clean", value_scale="dose")


def _precision(check: Check) -> None:
    name = "full-32-bit-rescaled-per-slice"
    with check.notices("IMG-1503", "a scale for each slice of 32 bits"):
        volume = read_fault(name)
    slices = FAULTS[name].build()
    intercepts = np.array([float(ds.RescaleIntercept) for ds in slices])
    check.equal("32 bits stay apart", volume.values(), stored(slices) + intercepts)
    check.equal("type of values of 32 bits", volume.voxels.dtype.name, "float64")
    cases: tuple[tuple[str, str, int, str, str, str], ...] = (
        # 2**-23 × the largest value against the slope.
        ("16 bits", "uint16", 16, "1", "-1024", "float32"),
        ("23 bits", "uint32", 23, "1", "0", "float32"),
        ("24 bits", "uint32", 24, "1", "0", "float64"),
        ("a small slope on a large intercept", "uint16", 16, "0.0001", "1e5", "float64"),
        ("a small slope", "uint16", 16, "0.0001", "0", "float32"),
        ("a large intercept upwards", "uint16", 16, "1", "8360000", "float64"),
        ("a large intercept downwards", "uint16", 16, "1", "-8360000", "float32"),
        ("both ends count", "int16", 16, "1", "-8360000", "float64"),
        ("whatever their sign", "int16", 16, "-1", "8360000", "float64"),
        ("a signed range in between", "int16", 16, "1", "8355000", "float32"),
        ("its upper end, just", "int16", 16, "1", "8355841", "float32"),
        ("its upper end", "int16", 16, "1", "8355842", "float64"),
        ("a slope beyond single precision", "uint16", 16, "1e36", "0", "float64"),
    )
    for says, width, bits, slope, intercept, dtype in cases:
        slices = made(
            replace(SMALL, dtype=width, bits_stored=bits),
            with_values(RescaleSlope=slope, RescaleIntercept=intercept),
            with_values_in(1, RescaleSlope=f"{float(slope) * 2:g}"),
        )
        found = read(slices)
        slopes = np.array([float(ds.RescaleSlope) for ds in slices])
        truth = stored(slices) * slopes + float(intercept)
        check.equal(f"{says}: type", found.voxels.dtype.name, dtype)
        check.equal(f"{says}: values", found.voxels, truth.astype(dtype))
    (told,) = [found for found in volume.notices if found.code == "IMG-1503"]
    evidence = [
        told.fields[name] for name in ("smallest_slope", "largest_slope", "slices", "dtype")
    ]
    check.equal("evidence of a scale for each slice", evidence, [1.0, 1.0, 10, "float64"])
    pet = read_fault("pet-slope-per-slice")
    (told,) = [found for found in pet.notices if found.code == "IMG-1503"]
    stated = [float(ds.RescaleSlope) for ds in FAULTS["pet-slope-per-slice"].build()]
    evidence = [told.fields[name] for name in ("smallest_slope", "largest_slope")]
    check.equal("slopes told", evidence, [min(stated), max(stated)])
    with check.refuses("IMG-1502", "values beyond double precision") as caught:
        read(made(SMALL, with_values(RescaleSlope="1e307", RescaleIntercept="0")))
    if caught.diagnostic is not None:
        shown = caught.diagnostic.fields["slope"]
        check.equal("a slope beyond double precision", shown, "1e+307, beyond double precision")


def _mixtures(check: Check) -> None:
    some = made(SMALL, with_values_in(1, RescaleSlope="2", RescaleIntercept="0"))
    with check.refuses("IMG-1507", "a rescale in one slice only") as caught:
        read(some)
    if caught.diagnostic is not None:
        scales = caught.diagnostic.fields["scales"]
        check.equal("scales that are mixed", scales, ["displayed", "stored"])
    one = read(made(replace(SMALL, shape=(8, 6, 1), slope=0.5, intercept=3.0)))
    check.equal("a single slice", (one.scale.slope, one.scale.intercept), (0.5, 3.0))
    kinds = made(replace(SMALL, slope=1.0), with_values_in(1, RescaleType="HU"))
    with check.refuses("IMG-1501", "two units") as caught:
        read(kinds)
    if caught.diagnostic is not None:
        check.equal("units that are mixed", caught.diagnostic.fields["units"], ["HU", "None"])
    some = made(SMALL, with_values_in(1, RescaleSlope="1", RescaleIntercept="0"))
    check.equal("one that does nothing", read(some).voxels, SMALL.truth_voxels())
    shifted = read(made(SMALL, raised(0, intercepts=(0, 5))))
    check.equal("alternating intercepts", shifted.values()[0, 0], [0.0, 53.0, 96.0, 149.0])
    with check.refuses("IMG-1505", "a scale of no known name") as caught:
        read_fault("philips-with-real-world", value_scale="hounsfield")
    if caught.diagnostic is not None:
        offered = caught.diagnostic.fields["offered"]
        names = ["precise", "displayed", "real-world:ADC", "stored"]
        check.equal("what is offered instead", offered, names)
    check.equal(
        "displayed is stored where no scale is stated",
        read_fault("clean", value_scale="displayed").scale.name,
        "stored",
    )


# -- provenance -----------------------------------------------------------------------------------


def _provenance(check: Check) -> None:
    name = "philips-with-real-world"
    volume = read_fault(name)
    offered = [
        (other.name, other.slope, other.intercept, other.unit, other.form)
        for other in volume.scale.alternatives
    ]
    required = [
        ("displayed", 0.596581, 0.0, None, "linear"),
        ("real-world:ADC", 0.25, 10.0, "um2/s", "linear"),
        ("stored", 1.0, 0.0, None, "linear"),
    ]
    check.equal("what else was possible", offered, required)
    check.true(
        "which elements gave the scale",
        "(2005,xx0E)" in volume.scale.source,
        measured=volume.scale.source,
    )
    shown = volume.scale.to_dict()
    report = inspect_fault(name)
    check.equal("inspect tells the same", report.stacks[0].to_dict()["value_scale"], shown)
    asked = inspect_fault(name, value_scale="displayed").stacks[0].scale
    check.equal("inspect on another scale", None if asked is None else asked.name, "displayed")
    with TemporaryDirectory() as folder:
        done = convert_fault(name, Path(folder))
        check.equal("convert tells the same", done.outcomes[0].summary["value_scale"], shown)
        sidecar = next(Path(folder).glob("*.json"))
        told = json.loads(sidecar.read_text())["numbat"]["value_scale"]
        check.equal("the sidecar tells the same", told, shown)
    varies = read_fault("pet-slope-per-slice", value_scale="stored").scale.alternatives
    forms = [(other.name, other.slope, other.unit, other.form) for other in varies]
    check.equal("a scale that varies", forms, [("displayed", None, "BQML", "varies")])
    table = read_fault("modality-lut", value_scale="stored").scale.alternatives
    forms = [(other.name, other.slope, other.unit, other.form) for other in table]
    check.equal("a table", forms, [("displayed", None, "10^-3 OD", "table")])


# -- real files -----------------------------------------------------------------------------------


def _scans(check: Check) -> None:
    clauses = ["IMG-R026.scans"]
    scans = check.corpus("imaging/dcm2niix_qa", clauses=clauses)
    maps = check.corpus("imaging/dcmqi_cases", clauses=clauses)
    frames = check.corpus("imaging/encapsulation", clauses=clauses)
    if scans is None or maps is None or frames is None:
        return
    case = scans / "philips_fmri_phantom"
    truth = json.loads((case / "truth_dcm2niix.json").read_text())["outputs"]
    (expected,) = truth.values()
    (volume,) = read_volumes(check.data(case / "dicom"))
    slope = float(np.float32(volume.scale.slope))
    check.equal("philips_fmri_phantom: slope of dcm2niix", slope, expected["slope"])
    check.equal("philips_fmri_phantom: highest", float(volume.voxels.max()), expected["max"])
    path = check.data(maps / "sr-example" / "rwvm.dcm")
    item = pydicom.dcmread(path).ReferencedImageRealWorldValueMappingSequence[0]
    (suv,) = real_world_scales(item, file="rwvm.dcm")
    check.equal(
        "the SUV map of dcmqi",
        (
            suv.name,
            *((suv.slope, suv.intercept, suv.unit, suv.mapped) if isinstance(suv, Scale) else ()),
        ),
        ("real-world:{SUVbw}g/ml", 0.000375125, 0.0, "{SUVbw}g/ml", (0.0, 32761.0)),
    )
    header = read_header(
        FileRef(str(check.data(frames / "multi" / "CT0012.explicit_little_endian.dcm")))
    )
    if header is None:
        raise AssertionError("CT0012 was not taken for DICOM")
    flow = instances_from_header(header)[0].scales.chosen("real-world:RCBF", file="CT0012")
    check.equal(
        "a perfusion map", (flow.slope, flow.intercept, flow.unit), (1.0, -1024.0, "ml/100ml/s")
    )
