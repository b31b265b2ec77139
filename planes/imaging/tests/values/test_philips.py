"""Philips' scales, against the formulas of Chenevert et al. 2014."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset

from numbat_imaging.values.stated import scales_of

DD_001 = "Philips MR Imaging DD 001"


def header(scale_slope: float, slope: float, intercept: float) -> Dataset:
    ds = Dataset()
    ds.RescaleSlope, ds.RescaleIntercept = f"{slope:.8g}", f"{intercept:.8g}"
    ds.private_block(0x2005, DD_001, create=True).add_new(0x0E, "FL", scale_slope)
    return ds


@given(
    scale_slope=st.floats(2.0**-13, 2.0**13, width=32),
    slope=st.floats(1e-3, 1e3),
    intercept=st.floats(-1e4, 1e4),
    stored=st.integers(0, 4095),
)
def test_precise_values_are_those_of_the_formula(
    scale_slope: float, slope: float, intercept: float, stored: int
) -> None:
    ds = header(scale_slope, slope, intercept)
    rs, ri = float(ds.RescaleSlope), float(ds.RescaleIntercept)
    found = scales_of(ds, file="a").chosen("precise", file="a")
    truth = (stored * rs + ri) / (rs * scale_slope)
    # Where both scales are one the decimal text is taken for the single precision number.
    np.testing.assert_allclose(
        found.apply(np.array([stored])), truth, rtol=2e-6, atol=2e-6 * abs(ri / (rs * scale_slope))
    )


def test_the_default_is_precise_whoever_is_said_to_have_made_the_scanner() -> None:
    """The private creator tells, also when the manufacturer was taken out."""
    assert scales_of(header(0.5, 3.0, 0.0), file="a").names == ["precise", "displayed", "stored"]


@pytest.mark.parametrize("creator", ["Philips MR Imaging DD 002", "SIEMENS"])
def test_another_creators_element_is_no_scale_slope(creator: str) -> None:
    ds = Dataset()
    ds.private_block(0x2005, creator, create=True).add_new(0x0E, "FL", 0.5)
    assert scales_of(ds, file="a").names == ["stored"]


def test_a_scale_slope_without_any_rescale_is_a_scale() -> None:
    ds = Dataset()
    ds.private_block(0x2005, DD_001, create=True).add_new(0x0E, "FL", 0.25)
    found = scales_of(ds, file="a").chosen("default", file="a")
    assert (found.name, found.slope, found.intercept) == ("precise", 4.0, 0.0)
