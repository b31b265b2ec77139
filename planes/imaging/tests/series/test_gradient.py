"""Gradients from each vendor's elements to patient space, and from there to FSL's tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pydicom import Dataset, dcmread

from numbat_imaging import read_series
from numbat_imaging.output.diffusion import fsl_tables, fsl_vectors
from numbat_imaging.output.nifti import affine_ras_mm
from numbat_imaging.series.gradient import Gradient, gradient_from_dataset
from numbat_registries import Refusal

AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
CORONAL = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0)
SAGITTAL = (0.0, 1.0, 0.0, 0.0, 0.0, -1.0)


def _mr() -> Dataset:
    ds = Dataset()
    ds.Modality = "MR"
    return ds


def _ge(
    vector: Sequence[float],
    *,
    b_value: int = 1000,
    encoding: str | None = "COL",
    orientation: Sequence[float] = AXIAL,
    block: int = 0x10,
) -> Dataset:
    ds = _mr()
    ds.Manufacturer = "GE MEDICAL SYSTEMS"
    ds.ImageOrientationPatient = list(orientation)
    if encoding is not None:
        ds.InPlanePhaseEncodingDirection = encoding
    if block != 0x10:
        # Somebody else's block comes first, so that the element numbers move.
        ds.add_new((0x0043, 0x0010), "LO", "SOMEBODY ELSE")
        ds.add_new((0x0019, 0x0010), "LO", "SOMEBODY ELSE")
        ds.add_new((0x0019, 0x10BB), "DS", "9")
        ds.add_new((0x0043, 0x1039), "IS", "9")
    ds.add_new((0x0043, block), "LO", "GEMS_PARM_01")
    ds.add_new((0x0043, block << 8 | 0x39), "IS", [b_value, 8, 0, 0])
    ds.add_new((0x0019, block), "LO", "GEMS_ACQU_01")
    for offset, part in zip((0xBB, 0xBC, 0xBD), vector, strict=True):
        ds.add_new((0x0019, block << 8 | offset), "DS", str(part))
    return ds


def _direction(ds: Dataset) -> np.ndarray:
    gradient = gradient_from_dataset(ds)
    assert gradient is not None
    assert gradient.direction_lps is not None
    return np.array(gradient.direction_lps)


def test_standard_elements() -> None:
    ds = _mr()
    assert gradient_from_dataset(ds) is None
    ds.DiffusionBValue = 800.0
    assert gradient_from_dataset(ds) == Gradient(800.0)
    ds.DiffusionGradientOrientation = [0.0, 0.6, -0.8]
    assert gradient_from_dataset(ds) == Gradient(800.0, (0.0, 0.6, -0.8))
    ds.DiffusionDirectionality = "ISOTROPIC"
    assert gradient_from_dataset(ds) == Gradient(800.0)
    ds.DiffusionDirectionality = "DIRECTIONAL"
    ds.DiffusionBValue = 0.0
    assert gradient_from_dataset(ds) == Gradient(0.0)
    ds.Modality = "CT"
    assert gradient_from_dataset(ds) is None


@pytest.mark.parametrize("block", [0x10, 0x11, 0xA0])
def test_siemens_elements_are_found_by_their_creator(block: int) -> None:
    ds = _mr()
    if block != 0x10:
        ds.add_new((0x0019, 0x0010), "LO", "SOMEBODY ELSE")
        ds.add_new((0x0019, 0x100C), "IS", "5")
    ds.add_new((0x0019, block), "LO", "SIEMENS MR HEADER")
    ds.add_new((0x0019, block << 8 | 0x0C), "IS", "700")
    ds.add_new((0x0019, block << 8 | 0x0E), "FD", [0.6, 0.0, 0.8])
    assert gradient_from_dataset(ds) == Gradient(700.0, (0.6, 0.0, 0.8))
    del ds[0x0019, block]
    assert gradient_from_dataset(ds) is None


def test_philips_elements_are_found_by_their_creator() -> None:
    ds = _mr()
    ds.add_new((0x2001, 0x0012), "LO", "Philips Imaging DD 001")
    ds.add_new((0x2001, 0x1203), "FL", 1000.0)
    ds.add_new((0x2005, 0x0015), "LO", "Philips MR Imaging DD 001")
    for offset, part in zip((0xB0, 0xB1, 0xB2), (0.0, -0.8, 0.6), strict=True):
        ds.add_new((0x2005, 0x1500 | offset), "FL", part)
    assert _direction(ds) == pytest.approx([0.0, -0.8, 0.6], abs=1e-6)
    for offset in (0xB0, 0xB1, 0xB2):
        ds[0x2005, 0x1500 | offset].value = 0.0
    assert gradient_from_dataset(ds) == Gradient(1000.0)


# Frequency, phase and slice axes in patient LPS, as the maker's engineer published the signs for
# FSL's tables (an overall sign of a gradient means nothing).
GE_AXES = {
    ("axial", "COL"): ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ("axial", "ROW"): ((0, 1, 0), (-1, 0, 0), (0, 0, 1)),
    ("coronal", "COL"): ((1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ("coronal", "ROW"): ((0, 0, 1), (-1, 0, 0), (0, -1, 0)),
    ("sagittal", "COL"): ((0, -1, 0), (0, 0, 1), (-1, 0, 0)),
    ("sagittal", "ROW"): ((0, 0, -1), (0, -1, 0), (-1, 0, 0)),
}


@pytest.mark.parametrize("block", [0x10, 0x1A])
@pytest.mark.parametrize(("plane", "encoding"), GE_AXES)
def test_ge_axes_in_each_plane_and_phase_encoding(plane: str, encoding: str, block: int) -> None:
    orientation = {"axial": AXIAL, "coronal": CORONAL, "sagittal": SAGITTAL}[plane]
    for unit, axis in zip(np.eye(3), GE_AXES[plane, encoding], strict=True):
        ds = _ge(unit.tolist(), encoding=encoding, orientation=orientation, block=block)
        assert _direction(ds) == pytest.approx(axis)


def test_ge_axial_row_as_measured_by_a_tensor_fit() -> None:
    # A published scan with frequency along A/P: tensor file (0.643, 0.766, 0) came out, checked by
    # the fitted fibres, as (-0.7564, 0.6354, 0.1561) in RAS.
    i_ras = np.array([0.9985, -0.003466, -0.05456])
    j_ras = np.array([0.01313, 0.984, 0.1778])
    flip = np.array([-1.0, -1.0, 1.0])
    orientation = [*(i_ras * flip), *(-j_ras * flip)]
    ds = _ge([0.643, 0.766, 0.0], encoding="ROW", orientation=orientation)
    found = _direction(ds) * flip
    truth = np.array([-0.75640979, 0.63535067, 0.15613703])
    assert abs(found @ truth) == pytest.approx(np.linalg.norm(truth), abs=1e-3)


def test_ge_shells_and_marks() -> None:
    half = gradient_from_dataset(_ge([0.5, 0.0, 0.0], b_value=2000))
    assert half is not None
    assert half.b_value_s_mm2 == pytest.approx(500.0)
    assert np.linalg.norm(half.direction_lps or ()) == pytest.approx(1.0)
    marked = gradient_from_dataset(_ge([1.0, 0.0, 0.0], b_value=1_000_000_800))
    assert marked is not None
    assert marked.b_value_s_mm2 == 800.0
    # User values of other sequences are no direction.
    assert gradient_from_dataset(_ge([3.0, 1.0, 2.0], b_value=0)) == Gradient(0.0)


def test_ge_without_a_phase_encoding_direction_is_not_guessed() -> None:
    with pytest.raises(Refusal) as caught:
        gradient_from_dataset(_ge([1.0, 0.0, 0.0], encoding=None))
    assert caught.value.code == "IMG-1707"
    assert gradient_from_dataset(_ge([0.0, 0.0, 0.0], encoding=None)) == Gradient(1000.0)


def _corpus(name: str) -> Path:
    root = os.environ.get("NUMBAT_CORPUS")
    path = Path(root or "/nowhere") / "imaging" / name
    if not path.is_dir():
        pytest.skip(f"the corpus {name} is not here (NUMBAT_CORPUS)")
    return path


def test_ge_oblique_scan_gives_the_reference_tables() -> None:
    case = _corpus("dcm2niix_qa/ge_dwi_oblique_bvecs")
    volume = read_series(case / "dicom")
    assert volume.diffusion is not None
    values, vectors = fsl_tables(volume.diffusion, affine_ras_mm(volume))
    reference = case / "ref" / "Ax_DWI_TENSOR_R3_2"
    assert np.loadtxt([values]) == pytest.approx(np.loadtxt(reference.with_suffix(".bval")))
    found = np.loadtxt(vectors.splitlines())
    # The reference keeps the lengths of the header's vectors, within 0.05 % of 1.
    expected = np.loadtxt(reference.with_suffix(".bvec"))
    expected[:, 1:] /= np.linalg.norm(expected[:, 1:], axis=0)
    assert found == pytest.approx(expected, abs=2e-6)


def test_a_scan_without_gradient_elements_has_no_table() -> None:
    # The header of this series has been emptied of private elements; its reference table, which
    # another tool had from the original, cannot be had from these files.
    case = _corpus("dicom2nifti_cases/ge_dti_001")
    found = [gradient_from_dataset(dcmread(path)) for path in sorted(case.glob("*.dcm"))]
    assert found == [None] * 8


def test_fsl_vectors_do_not_depend_on_how_the_image_lies_in_memory() -> None:
    direction = np.array([0.48, -0.6, 0.64])
    gradient = Gradient(1000.0, tuple(direction.tolist()))
    base = np.diag([-1.0, -1.0, 1.0, 1.0])
    for flips in np.ndindex(2, 2, 2):
        affine = base @ np.diag([*np.where(flips, -1.0, 1.0), 1.0])
        vector = fsl_vectors([gradient], affine)[:, 0]
        # FSL's own reading: image axes, x reversed where the affine's determinant is positive.
        axes = affine[:3, :3].copy()
        if np.linalg.det(axes) > 0:
            axes[:, 0] *= -1
        assert axes @ vector == pytest.approx(direction * [-1, -1, 1])
