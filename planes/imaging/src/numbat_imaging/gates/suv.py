"""Standardised uptake values: arithmetic on dose, weight and time, and every input that is none."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nibabel
import numpy as np

from numbat_gates import Check, gate
from numbat_imaging.gates._uptake import BQ_ML, DOSE_BQ, check_uptake, expected
from numbat_imaging.gates._uptake_limits import limits
from numbat_imaging.gates._uptake_times import times
from numbat_imaging.phantoms import write_datasets
from numbat_imaging.phantoms.pet import PetScan, convert_pet, suv_of
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.values.suv import suv
from numbat_imaging.values.suv_inputs import SuvGiven
from numbat_imaging.volume import Volume, read_series

#: SUV of the phantom 3600 s after the injection: 1.0 × 2^(3600/6586.2).
_AFTER_AN_HOUR = 1.4606367462

_INJECTED = datetime(2020, 1, 2, 9, 10)
_STARTED = datetime(2020, 1, 2, 10, 10)


@gate(
    "IMG-G28",
    phase=2,
    discharges=["IMG-R028"],
    title="Uptake follows from stated inputs, and no input is made up",
)
def uptake(check: Check) -> None:
    _decay(check)
    times(check)
    limits(check)
    _kinds(check)
    _units(check)
    _slopes(check)
    _enhanced(check)
    _nuclides(check)
    _bounds(check)
    _given(check)
    _refusals(check)
    _files(check)


def _decay(check: Check) -> None:
    check.close(
        "the figure of this gate agrees with the formula",
        measured=expected(3600.0),
        required=_AFTER_AN_HOUR,
        atol=1e-9,
        unit="g/ml",
    )
    volume = suv_of(PetScan())
    check_uptake(
        check, "START: the dose decays for the hour before the scan", volume, _AFTER_AN_HOUR
    )
    check.equal("stored voxels stay", volume.voxels, np.full((4, 3, 3), 5000, "u2"))
    check.equal("unit", volume.scale.unit, "g/ml{SUVbw}")
    admin = PetScan(decay_correction="ADMIN")
    check_uptake(check, "ADMIN: no decay, a phantom of 1 is 1", suv_of(admin), 1.0)
    # horosproject/horos issue 653: 2.096 for a phantom of 1, after 7030 s of decay too much.
    late = replace(admin, injected_at=f"{_STARTED - timedelta(seconds=7030):%Y%m%d%H%M%S}")
    check_uptake(check, "ADMIN after 7030 s is 1, not 2.096", suv_of(late), 1.0)
    decayed = suv_of(replace(late, decay_correction="START"))
    check.close(
        "START after 7030 s is the 2.096 that ADMIN must not be",
        measured=float(decayed.values().max()),
        required=2.096,
        atol=5e-4,
        unit="g/ml",
    )
    untimed = replace(admin, injected_at=None, half_life_s=None, nuclide=None, acquired_at=())
    check_uptake(check, "ADMIN needs neither times nor a half-life", suv_of(untimed), 1.0)
    with check.refuses("IMG-1533", "decay correction NONE"):
        suv_of(PetScan(decay_correction="NONE"))
    with check.refuses("IMG-1533", "decay correction absent"):
        suv_of(PetScan(decay_correction=None))


def _kinds(check: Check) -> None:
    """70 kg and 1.75 m: BMI 22.857, by hand."""
    scan = PetScan(decay_correction="ADMIN")
    woman = replace(scan, sex="F")
    for name, case, kind, unit, amount_kg in (
        ("lean, Janmahasatian, man", scan, "lbm", "g/ml{SUVlbm(Janma)}", 55.8561),
        ("lean, Janmahasatian, woman", woman, "lbm-janma", "g/ml{SUVlbm(Janma)}", 45.1959),
        ("lean, James, man", scan, "lbm-james128", "g/ml{SUVlbm(James128)}", 56.52),
        ("lean, James, woman", woman, "lbm-james128", "g/ml{SUVlbm(James128)}", 51.22),
        ("ideal, man", scan, "ibw", "g/ml{SUVibw}", 72.38),
        ("ideal, woman", woman, "ibw", "g/ml{SUVibw}", 66.43),
        ("body surface", scan, "bsa", "cm2/ml{SUVbsa}", 18.481),
    ):
        volume = suv_of(case, kind)
        check.close(
            name,
            measured=float(volume.values().max()),
            required=amount_kg / 70.0,
            atol=1e-4,
            unit=unit,
        )
        check.equal(f"{name}: unit", volume.scale.unit, unit)
    with check.refuses("IMG-1813", "a kind that is none"):
        suv_of(scan, "lean")
    with check.refuses("IMG-1535", "lean mass without a size"):
        suv_of(replace(scan, size_m=None), "lbm")
    with check.refuses("IMG-1535", "size in cm"):
        suv_of(replace(scan, size_m=175.0), "bsa")
    with check.refuses("IMG-1536", "lean mass of neither sex"):
        suv_of(replace(scan, sex="O"), "lbm")
    with check.refuses("IMG-1535", "a lean mass below nothing"):
        suv_of(replace(woman, size_m=1.0, weight_kg=110.0), "lbm-james128")
    check_uptake(
        check,
        "by weight, size and sex are not asked for",
        suv_of(replace(scan, size_m=None, sex=None)),
        1.0,
    )


def _spellings(check: Check, volume: Volume) -> None:
    """Every unit that is read, whoever spells it."""

    def named(unit: str, kind: str = "bw") -> Volume:
        return suv(replace(volume, scale=replace(volume.scale, unit=unit)), kind)

    for unit, factor in (
        ("BQML", 1.0),
        ("Bq/ml", 1.0),
        ("Bq/mL", 1.0),
        ("kBq/ml", 1e3),
        ("kBq/mL", 1e3),
    ):
        required = expected(3600.0, bq_ml=factor * BQ_ML)
        check_uptake(check, f"values in {unit}", named(unit), required)
    for unit, kind in (
        ("g/ml{SUVbw}", "bw"),
        ("{SUVbw}g/ml", "bw"),
        ("cm2/ml{SUVbsa}", "bsa"),
        ("{SUVbsa}cm2/ml", "bsa"),
        ("{SUVlbm(Janma)}g/ml", "lbm"),
    ):
        check_uptake(check, f"values in {unit} stay", named(unit, kind), BQ_ML)
    for unit in ("{counts}", "MBq/ml", "g/ml", "g/ml{SUVlbm}"):
        with check.refuses("IMG-1531", f"values in {unit}"):
            named(unit)


def _units(check: Check) -> None:
    check_uptake(
        check,
        "GML is SUVbw",
        suv_of(PetScan(units="GML", slopes=(0.001,), decay_correction=None)),
        5.0,
    )
    bare = PetScan(units="GML", slopes=(0.001,), weight_kg=None, dose_bq=None, injected_at=None)
    check_uptake(check, "GML needs no dose, weight or time", suv_of(bare), 5.0)
    lean = PetScan(units="GML", suv_type="LBMJANMA", slopes=(0.001,))
    check_uptake(check, "SUVlbm of the file stays", suv_of(lean, "lbm"), 5.0)
    volume = suv_of(lean, "bw")
    check.close(
        "SUVlbm of the file as SUVbw",
        measured=float(volume.values().max()),
        required=5.0 * 70.0 / 55.8561,
        atol=1e-3,
        unit="g/ml",
    )
    surface = PetScan(units="CM2ML", slopes=(0.001,))
    check.close(
        "SUVbsa of the file as SUVbw",
        measured=float(suv_of(surface).values().max()),
        required=5.0 * 70.0 / 18.481,
        atol=1e-3,
        unit="g/ml",
    )
    with TemporaryDirectory() as folder:
        write_datasets(PetScan().slices(), folder)
        twice = suv(suv(read_series(folder), "lbm"))
        _spellings(check, read_series(folder))
    check_uptake(check, "SUVbw of SUVlbm is SUVbw", twice, expected(3600.0))
    check.equal("its unit", twice.scale.unit, "g/ml{SUVbw}")
    for name, scan in (
        ("SUVType LBM names no formula", replace(lean, suv_type="LBM")),
        ("GML by body surface", replace(lean, suv_type="BSA")),
        ("CM2ML by body weight", replace(surface, suv_type="BW")),
        ("counts per second", PetScan(units="CPS")),
        ("no unit", PetScan(units=None)),
        ("counts without a factor", PetScan(units="CNTS")),
        ("counts with factors of 0", _philips(activity="0", suv_factor="0")),
    ):
        with check.refuses("IMG-1531", name):
            suv_of(scan)
    _philips_counts(check)


def _philips(*, activity: str | None, suv_factor: str | None) -> PetScan:
    creator = "Philips PET Private Group"
    factors = ((0x09, activity), (0x00, suv_factor))
    private = tuple((0x7053, creator, at, "DS", value) for at, value in factors if value)
    return PetScan(units="CNTS", slopes=(0.5,), private=private, manufacturer="Philips")


def _philips_counts(check: Check) -> None:
    """OHIF/Viewers issue 1418: counts × (7053,xx09) are Bq/ml, counts × (7053,xx00) SUVbw."""
    by_activity = suv_of(_philips(activity="2.0", suv_factor=None))
    check_uptake(
        check, "Philips counts by activity", by_activity, expected(3600.0, bq_ml=5000 * 0.5 * 2.0)
    )
    by_suv = _philips(activity=None, suv_factor="0.0004")
    check_uptake(check, "Philips counts by SUV", suv_of(by_suv), 5000 * 0.5 * 0.0004)
    bare = replace(by_suv, weight_kg=None, dose_bq=None, injected_at=None, decay_correction=None)
    check_uptake(check, "Philips counts by SUV need no dose", suv_of(bare), 1.0)
    both = _philips(activity="2.0", suv_factor="0.0009")
    check_uptake(check, "activity goes before the console's SUV", suv_of(both), expected(3600.0))
    zero = _philips(activity="0", suv_factor="0.0004")
    check_uptake(check, "an activity factor of 0 is none", suv_of(zero), 1.0)
    check.close(
        "the console's SUVbw by lean mass",
        measured=float(suv_of(by_suv, "lbm").values().max()),
        required=55.8561 / 70.0,
        atol=1e-4,
        unit="g/ml",
    )
    with check.refuses("IMG-1531", "the console's SUV of another kind"):
        suv_of(replace(by_suv, suv_type="LBMJANMA"))


def _slopes(check: Check) -> None:
    slopes = (1.0, 0.5, 2.0)
    volume = suv_of(PetScan(slopes=slopes))
    check.close(
        "a rescale for each slice",
        measured=volume.voxels[0, 0, :],
        required=expected(3600.0) * np.array(slopes),
        atol=1e-6,
        unit="g/ml",
    )
    check.equal("applied values stay single precision", str(volume.voxels.dtype), "float32")
    check.equal("they are values", volume.values(), volume.voxels.astype(float))


def _enhanced(check: Check) -> None:
    """An enhanced object names the moment itself."""
    options = {"value_scale": "real-world"}
    half_past = PetScan().enhanced(DecayCorrectionDateTime="20200102094000")
    volume = suv_of([half_past], **options)
    check_uptake(check, "DecayCorrectionDateTime decides", volume, expected(1800.0))
    at_injection = PetScan().enhanced(DecayCorrectionDateTime="20200102091000")
    check_uptake(check, "corrected to the injection", suv_of([at_injection], **options), 1.0)
    with check.refuses("IMG-1532", "enhanced, without attenuation correction"):
        suv_of([PetScan().enhanced(AttenuationCorrected="NO")], **options)
    with check.refuses("IMG-1532", "enhanced, without decay correction"):
        suv_of([PetScan().enhanced(DecayCorrected="NO")], **options)
    with check.refuses("IMG-1533", "enhanced, without the moment"):
        suv_of([PetScan().enhanced(DecayCorrectionDateTime=None)], **options)
    with check.refuses("IMG-1531", "enhanced, on a scale without a unit"):
        suv_of([PetScan().enhanced()])


def _nuclides(check: Check) -> None:
    gallium = PetScan(nuclide="35337001", half_life_s=4057.7)
    check_uptake(check, "Ga-68 of the file", suv_of(gallium), expected(3600.0, half_life_s=4057.7))
    coded = PetScan(half_life_s=None)
    check_uptake(
        check, "F-18 by its code alone", suv_of(coded), expected(3600.0, half_life_s=6584.04)
    )
    older = replace(coded, nuclide="C-131A3")
    check_uptake(
        check, "Ga-68 by its older code", suv_of(older), expected(3600.0, half_life_s=4069.8)
    )
    uncoded = PetScan(nuclide=None)
    check_uptake(check, "a half-life without a code", suv_of(uncoded), expected(3600.0))
    unknown = PetScan(nuclide="12345")
    check_uptake(check, "a code that is not known", suv_of(unknown), expected(3600.0))
    for name, scan in (
        ("F-18 with the half-life of Ga-68", PetScan(half_life_s=4069.8)),
        ("F-18 in minutes", PetScan(half_life_s=109.77)),
        ("F-18, 3 % off", PetScan(half_life_s=6782.0)),
        ("no half-life and no code", PetScan(half_life_s=None, nuclide=None)),
        ("a half-life of 0", PetScan(half_life_s=0.0, nuclide=None)),
    ):
        with check.refuses("IMG-1538", name):
            suv_of(scan)


def _bounds(check: Check) -> None:
    for code, name, scan in (
        ("IMG-1534", "no weight", PetScan(weight_kg=None)),
        ("IMG-1534", "weight 0", PetScan(weight_kg=0.0)),
        ("IMG-1534", "weight in g", PetScan(weight_kg=70000.0)),
        ("IMG-1537", "no dose", PetScan(dose_bq=None)),
        ("IMG-1537", "dose in MBq", PetScan(dose_bq=350.0)),
        ("IMG-1537", "dose 0", PetScan(dose_bq=0.0)),
        ("IMG-1537", "a dose of 350 GBq", PetScan(dose_bq=350e9)),
    ):
        with check.refuses(code, name):
            suv_of(scan)
    with check.refuses("IMG-1532", "no attenuation correction"):
        suv_of(PetScan(corrections=("DECY", "SCAT")))
    with check.refuses("IMG-1532", "no decay correction among the corrections"):
        suv_of(PetScan(corrections=("ATTN",)))
    with check.refuses("IMG-1532", "no corrections at all"):
        suv_of(PetScan(corrections=()))


def _given(check: Check) -> None:
    """What the caller states goes before the files, and the scale says who stated it."""
    nothing = PetScan(
        weight_kg=None, dose_bq=None, injected_at=None, half_life_s=None, decay_correction=None
    )
    given: dict[str, Any] = {
        "weight_kg": 35.0,
        "dose_bq": 175e6,
        "half_life_s": 7200.0,
        "injected_at": _INJECTED,
        "decay_correction": "START",
    }
    volume = suv_of(nothing, **given)
    required = BQ_ML * 35000.0 / (175e6 * 0.5**0.5)
    check_uptake(check, "all from the caller", volume, required)
    inputs = volume.scale.to_dict()["suv"]["inputs"]
    stated = {found["name"]: (found["value"], found["source"]) for found in inputs}
    check.equal("weight is the caller's", stated["weight"], (35.0, "the caller"))
    check.equal("dose is the caller's", stated["dose"], (175e6, "the caller"))
    check.equal(
        "time is the caller's",
        stated["time from injection"],
        (3600.0, "the caller's injected_at to SeriesDate and SeriesTime"),
    )
    files = suv_of(PetScan()).scale.to_dict()["suv"]
    check.equal(
        "inputs of the files, by name",
        {found["name"]: found["source"] for found in files["inputs"]},
        {
            "weight": "PatientWeight",
            "dose": "RadionuclideTotalDose",
            "decay correction": "DecayCorrection",
            "half-life": "RadionuclideHalfLife",
            "time from injection": "RadiopharmaceuticalStartDateTime to SeriesDate and SeriesTime",
        },
    )
    check.close(
        "factor from Bq/ml to SUV",
        measured=files["factor"],
        required=expected(3600.0) / BQ_ML,
        atol=1e-15,
        unit="ml/Bq × g/ml",
    )
    both = PetScan(items=2)
    full = suv_of(
        both, dose_bq=DOSE_BQ, corrected_to=_INJECTED, injected_at=_INJECTED, half_life_s=1.0
    )
    check_uptake(check, "two radiopharmaceuticals, all of them given", full, 1.0)
    half_past = datetime(2020, 1, 2, 9, 40)
    check_uptake(
        check,
        "corrected to what the caller says",
        suv_of(PetScan(), corrected_to=half_past),
        expected(1800.0),
    )
    lighter = suv_of(PetScan(decay_correction="ADMIN"), weight_kg=0.07)
    check_uptake(check, "a mouse, by the caller's word", lighter, 0.001)
    tall = suv_of(
        PetScan(decay_correction="ADMIN", size_m=None, sex=None),
        "lbm-james128",
        size_m=1.75,
        sex="F",
    )
    check.close(
        "size and sex by the caller's word",
        measured=float(tall.values().max()),
        required=51.22 / 70.0,
        atol=1e-4,
        unit="g/ml",
    )
    invalid: tuple[tuple[str, Any], ...] = (
        ("weight_kg", -1.0),
        ("size_m", 0.0),
        ("dose_bq", float("nan")),
        ("half_life_s", float("inf")),
        ("sex", "O"),
        ("decay_correction", "NONE"),
    )
    for argument, value in invalid:
        with check.refuses("IMG-1814", f"{argument} {value}"):
            suv_of(PetScan(), **{argument: value})


def _refusals(check: Check) -> None:
    with check.refuses("IMG-1530", "MR"):
        suv(read_fault("clean"))
    for name, keyword, value in (
        ("weight_kg", "PatientWeight", "71"),
        ("series_at", "SeriesTime", "101100"),
        ("decay_correction", "DecayCorrection", "ADMIN"),
    ):
        slices = PetScan().slices()
        setattr(slices[2], keyword, value)
        with check.refuses("IMG-1547", f"slices differ in {keyword}") as caught:
            suv_of(slices)
        differing = None if caught.diagnostic is None else caught.diagnostic.fields["differing"]
        check.equal(f"{keyword} is named", differing, [name])
    with check.refuses("IMG-1815", "one dose for two studies"):
        convert_pet([PetScan(), PetScan()], suv_given=SuvGiven(dose_bq=1e8))


def _files(check: Check) -> None:
    with TemporaryDirectory() as folder:
        out = Path(folder)
        done = convert_pet([PetScan()], out, identifying=False)
        check.true("a PET scan is converted", done.complete)
        image: Any = nibabel.load(next(out.glob("*.nii.gz")))
        check.close(
            "what another reader takes from the file",
            measured=float(np.asarray(image.dataobj).max()),
            required=_AFTER_AN_HOUR,
            atol=1e-5,
            unit="g/ml",
        )
        written = next(out.glob("*.json")).read_text()
        body = json.loads(written)
        check.equal("unit in the sidecar", body["Units"], "g/ml{SUVbw}")
        inputs = body["numbat"]["value_scale"]["suv"]["inputs"]
        check.equal(
            "inputs in the sidecar",
            [found["name"] for found in inputs],
            ["weight", "dose", "decay correction", "half-life", "time from injection"],
        )
        dated = [word for word in ("20200102", "2020-01-02", "Phantom^One") if word in written]
        check.equal("no date or name in the sidecar", dated, [])
    two = convert_pet([PetScan(), PetScan(dose_bq=None)])
    refused = [outcome.refusal.code for outcome in two.outcomes if outcome.refusal is not None]
    check.equal(
        "what has no dose is refused alone", (refused, len(two.outcomes)), (["IMG-1537"], 2)
    )
