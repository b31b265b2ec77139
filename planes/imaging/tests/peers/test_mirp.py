"""MIRP, as a peer for SUV, on the same phantoms.

It reads vendors' private elements in the first block alone.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numbat_imaging import read_series, suv
from numbat_imaging.phantoms import write_datasets
from numbat_imaging.phantoms.pet import PROCESSED, PetScan

mirp = pytest.importorskip("mirp", reason="mirp is not installed")

FRAMES = replace(
    PetScan(),
    frame_s=180.0,
    frame_reference_s=(89.858, 89.858, 269.858),
    acquired_at=PetScan().acquired_at,
)

SCANS = {
    "START": FRAMES,
    "ADMIN": PetScan(decay_correction="ADMIN"),
    "Ga-68": replace(
        FRAMES,
        nuclide="35337001",
        half_life_s=4062.6,
        frame_s=None,
        frame_reference_s=(),
        acquired_at=("20200102101000",),
    ),
    "over midnight": PetScan(
        injected_at=None,
        injected_clock="233000",
        series_at="20200102002000",
        acquired_at=("20200102002000",),
    ),
    "processed": replace(PROCESSED, frame_s=180.0, frame_reference_s=(289.858, 289.858, 469.858)),
    "GE": replace(
        PROCESSED,
        manufacturer="GE MEDICAL SYSTEMS",
        private=((0x0009, "GEMS_PETD_01", 0x0D, "DT", "20200102100800.00"),),
        first_block=True,
    ),
    "Philips activity": PetScan(
        units="CNTS",
        manufacturer="Philips",
        decay_correction="ADMIN",
        private=((0x7053, "Philips PET Private Group", 0x09, "DS", "2.0"),),
        first_block=True,
    ),
    "GML": PetScan(units="GML", slopes=(0.001,)),
}

KINDS = {
    "bw": "body_weight",
    "lbm-janma": "lean_body_mass_bmi",
    "lbm-james128": "lean_body_mass",
    "ibw": "ideal_body_weight",
    "bsa": "body_surface_area",
}


def written(scan: PetScan, folder: Path) -> Path:
    for path in write_datasets(scan.slices(), folder):
        path.rename(path.with_suffix(".dcm"))
    return folder


def theirs(folder: Path, kind: str) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = mirp.extract_images(
            image=str(folder),
            image_export_format="numpy",
            pet_suv_conversion=KINDS[kind],
            write_images=False,
        )
    return np.asarray(images[0][0][0])


@pytest.mark.parametrize("name", SCANS)
def test_suv_by_body_weight(name: str, tmp_path: Path) -> None:
    written(SCANS[name], tmp_path)
    ours = suv(read_series(tmp_path)).values()
    np.testing.assert_allclose(ours.max(), theirs(tmp_path, "bw").max(), rtol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sex", ["M", "F"])
def test_kinds(kind: str, sex: str, tmp_path: Path) -> None:
    written(PetScan(decay_correction="ADMIN", sex=sex), tmp_path)
    ours = suv(read_series(tmp_path), kind).values()
    np.testing.assert_allclose(ours.max(), theirs(tmp_path, kind).max(), rtol=1e-6)
