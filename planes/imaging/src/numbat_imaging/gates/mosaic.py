"""Siemens mosaics: every tile at its place and time, and every doubt refused."""

import random
import struct
from pathlib import Path

import numpy as np
import pydicom

from numbat_gates import Check, gate
from numbat_imaging.gates._csa_headers import csa_headers
from numbat_imaging.gates._mosaic_limits import mosaic_limits
from numbat_imaging.gates.real_scans import compare_with_dcm2niix
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import FAULTS, agreement, vendor_forms
from numbat_imaging.phantoms.reading import (
    folder_of_fault,
    instance_of_fault,
    read_all_of_fault,
    read_fault,
)
from numbat_imaging.series.forms.siemens_csa import read_csa, series_header, slice_centres
from numbat_imaging.series.forms.siemens_mosaic import mosaic_tiles
from numbat_imaging.series.instance import instances_from_header
from numbat_registries import Refusal

_MOSAICS = [name for name in vendor_forms.FAULTS if name.startswith("mosaic-")]

#: Suites of the dcm2niix corpus that Siemens scanners wrote: mosaics, and XA objects.
_SUITES = (
    "decubitus_HFDL",
    "decubitus_HFP",
    "decubitus_HFS",
    "sagittal_mosaic_AP",
    "siemens_epi_AP",
    "siemens_mosaic_vb12",
    "siemens_mosaic_vd13_FH",
    "signed_12bit",
    "transfer_syntax_9way",
)
_XA = ("siemens_xa10_enhanced_as_slices", "siemens_xa30_gre_fieldmap")

#: The protocol writes ten digits.
_AGREES_MM = 1e-4


@gate(
    "IMG-G24",
    phase=2,
    discharges=["IMG-R023", "IMG-R025"],
    title="Every tile of a Siemens mosaic lies where its slice was acquired",
)
def mosaic(check: Check) -> None:
    by_coordinates(check, _MOSAICS)
    refused(check, _MOSAICS)
    with check.refuses("IMG-1607", "a mosaic without private elements, as single files have it"):
        read_fault("mosaic-without-csa")
    _form_and_times(check)
    _given_by_the_caller(check)
    _damaged_headers(check)
    csa_headers(check)
    mosaic_limits(check)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R023.scans"])
    if scans is not None:
        for name in (*_SUITES, *_XA):
            compare_with_dcm2niix(check, scans / name)
        for name in _SUITES:
            _by_protocol(check, scans / name)


def by_coordinates(check: Check, names: list[str]) -> None:
    """Each slice of the phantom is recognised by its content and must lie where it was cut from."""
    for name in names:
        fault = FAULTS[name]
        if fault.expected[0] != "volume":
            continue
        volumes = read_all_of_fault(name)
        check.equal(f"{name}: volumes", len(volumes), 1)
        seen = agreement(fault.slices(), volumes[0].values(), volumes[0].affine_lps_mm)
        check.at_most(f"{name}: displacement", seen.max_displacement_mm, 0.001, "mm")
        check.equal(f"{name}: planes that no slice has", seen.strangers, 0)
        check.equal(f"{name}: slices that no plane has", seen.lost, 0)


def refused(check: Check, names: list[str]) -> None:
    """Each fault of these names that a right reader refuses is refused with its code."""
    for name in names:
        kind, code = FAULTS[name].expected
        if kind == "refused":
            with check.refuses(str(code), f"{name}: {FAULTS[name].says}"):
                read_fault(name)


def _form_and_times(check: Check) -> None:
    for name, form in (
        ("mosaic-clean", "Siemens mosaic"),
        ("mosaic-word-alone", "single-frame"),
    ):
        check.equal(f"form of {name}", instance_of_fault(name).form, form)
    wanted = vendor_forms.acquisition_times_ms(vendor_forms.AXIAL.shape[2])
    for name in ("mosaic-clean", "mosaic-late-times"):
        header = read_header(FileRef(str(next(folder_of_fault(name).iterdir()))))
        assert header is not None
        slices = instances_from_header(header)
        check.close(
            f"{name}: times of the slices",
            measured=[instance.slice_time_ms for instance in slices],
            required=wanted,
            atol=1e-6,
            unit="ms",
        )


def _given_by_the_caller(check: Check) -> None:
    """What the file does not say, a caller may; what it says, a caller cannot change."""
    bare = FAULTS["mosaic-undeclared"].build()[0]
    rows, columns = int(bare.Rows), int(bare.Columns)
    tiles = mosaic_tiles(bare, rows=rows, columns=columns, slices=10, direction="along-normal")
    expected = [list(map(float, ds.ImagePositionPatient)) for ds in vendor_forms.AXIAL.slices()]
    check.close(
        "number and direction from the caller",
        measured=[tile.position_lps_mm for tile in tiles or ()],
        required=expected,
        atol=1e-6,
        unit="mm",
    )
    backward = mosaic_tiles(bare, rows=rows, columns=columns, slices=10, direction="against-normal")
    first = np.array(expected[0])
    check.close(
        "against the normal",
        measured=(backward or ())[9].position_lps_mm,
        required=first - 9 * vendor_forms.AXIAL.step_mm,
        atol=1e-6,
        unit="mm",
    )
    with check.refuses("IMG-1610", "a number alone from the caller"):
        mosaic_tiles(bare, rows=rows, columns=columns, slices=10)
    volume = read_fault("mosaic-undeclared", mosaic_slices=10, mosaic_direction="along-normal")
    seen = agreement(FAULTS["mosaic-undeclared"].slices(), volume.values(), volume.affine_lps_mm)
    check.at_most("a mosaic by the caller's word", seen.max_displacement_mm, 0.001, "mm")
    check.equal("planes of it that no slice has", seen.strangers, 0)
    whole = FAULTS["mosaic-clean"].build()[0]
    with check.refuses("IMG-1609", "another number from the caller than in the file"):
        mosaic_tiles(whole, rows=rows, columns=columns, slices=9)


def _damaged_headers(check: Check) -> None:
    """A header cut at any byte, or with any number in it changed, is read or refused by a code."""
    entries = {"First": ["1"], "NumberOfImagesInMosaic": ["10"], "Times": ["0.5", "1.5"]}
    for write in (vendor_forms.csa2, vendor_forms.csa1):
        content = write(entries)
        check.equal(
            f"{write.__name__}: entries",
            read_csa(content),
            {name: tuple(values) for name, values in entries.items()},
        )
        outcomes = [_outcome(content[:end]) for end in range(len(content))]
        check.equal(f"{write.__name__}: cut short", set(outcomes), {"IMG-1606"})
        rng = random.Random(24)
        changed = set()
        for at in range(0, len(content) - 4, 4):
            value = rng.choice((-1, 0, 0x7FFFFFFF, -0x80000000, 5000, 1 << 20))
            changed.add(_outcome(content[:at] + struct.pack("<i", value) + content[at + 4 :]))
        check.equal(f"{write.__name__}: numbers changed", changed, {"IMG-1606", "read"})


def _outcome(content: bytes) -> str:
    try:
        read_csa(content)
    except Refusal as refusal:
        return refusal.code
    return "read"


def _by_protocol(check: Check, suite: Path) -> None:
    """The centre of every tile is the centre of the slice that the protocol asks for."""
    for path in sorted((suite / "dicom").iterdir()):
        ds = pydicom.dcmread(path, stop_before_pixels=True)
        tiles = mosaic_tiles(ds, rows=int(ds.Rows), columns=int(ds.Columns)) or ()
        cosines = np.array([float(part) for part in ds.ImageOrientationPatient])
        down_mm, along_mm = (float(part) for part in ds.PixelSpacing)
        half = [
            cosines[:3] * along_mm * tile.window.columns / 2
            + cosines[3:] * down_mm * tile.window.rows / 2
            for tile in tiles
        ]
        check.close(
            f"{suite.name} {path.name[:24]}: centres of the tiles",
            measured=np.array([tile.position_lps_mm for tile in tiles]) + half,
            required=slice_centres(series_header(ds) or {}),
            atol=_AGREES_MM,
            unit="mm",
        )
