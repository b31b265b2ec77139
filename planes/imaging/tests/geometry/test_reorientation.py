"""Turns of axes: there and back is the same volume, and places are kept."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging import reorient
from numbat_imaging.gates._volumes import CODES, GRIDS, numbered, places, volume_on
from numbat_imaging.geometry.placement import axis_code
from numbat_imaging.geometry.reorientation import inverse, turn_since_read, turned
from numbat_imaging.output.contact_sheet import contact_sheet
from numbat_registries import Refusal

RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
codes = st.sampled_from(CODES)
names = st.sampled_from(sorted(GRIDS))
shapes = st.tuples(*[st.integers(1, 5)] * 3)


@settings(max_examples=80, deadline=None)
@given(names, shapes, codes, codes)
def test_there_and_back_is_the_same(
    name: str, shape: tuple[int, int, int], first: str, second: str
) -> None:
    volume = volume_on(numbered(shape), GRIDS[name])
    found = reorient(reorient(reorient(volume, first), second), axis_code(GRIDS[name]))
    assert np.array_equal(found.voxels, volume.voxels)
    np.testing.assert_allclose(found.affine_lps_mm, volume.affine_lps_mm, atol=1e-9)
    np.testing.assert_allclose(found.grid.residuals_mm, volume.grid.residuals_mm, atol=0)
    assert found.grid.is_sheared == volume.grid.is_sheared
    assert found.grid.shear_deg == pytest.approx(volume.grid.shear_deg, abs=1e-6)


@settings(max_examples=80, deadline=None)
@given(names, shapes, codes)
def test_every_voxel_keeps_its_place(name: str, shape: tuple[int, int, int], code: str) -> None:
    volume = volume_on(numbered(shape), GRIDS[name])
    found = reorient(volume, code)
    where = dict(
        zip(
            found.voxels.ravel().tolist(),
            places(found.affine_lps_mm, found.voxels.shape).reshape(-1, 3),
            strict=True,
        )
    )
    for value, place in zip(
        volume.voxels.ravel().tolist(), places(GRIDS[name], shape).reshape(-1, 3), strict=True
    ):
        np.testing.assert_allclose(where[value], place, atol=1e-9)
    assert axis_code(found.affine_lps_mm) == code
    assert "".join(nibabel.aff2axcodes(RAS @ found.affine_lps_mm)) == code


@given(codes)
def test_a_turn_and_its_inverse(code: str) -> None:
    volume = volume_on(numbered((2, 3, 4)), GRIDS["axial"])
    since = turn_since_read(reorient(volume, code))
    assert None not in since
    # `turn_since_read` goes by the old axes, `turned` by the new ones.
    back = tuple(step for step in since if step is not None)
    assert np.array_equal(turned(reorient(volume, code), back).voxels, volume.voxels)
    assert np.array_equal(turned(volume, inverse(back)).voxels, reorient(volume, code).voxels)


def test_a_sheared_volume_is_pictured_by_its_rectangles() -> None:
    volume = volume_on(numbered((9, 8, 7)), GRIDS["sheared"])
    swapped = reorient(volume, axis_code(GRIDS["sheared"])[::-1])
    assert swapped.voxels.shape == (7, 8, 9)
    before, after = (np.asarray(contact_sheet(shown, tile_px=120)) for shown in (volume, swapped))
    below_title = slice(26, None)
    width = min(before.shape[1], after.shape[1])
    assert np.array_equal(before[below_title, :width], after[below_title, :width])


@pytest.mark.parametrize("axes", ["", "RA", "LPSL", "RLS", "ras", "RAX"])
def test_codes_that_are_none(axes: str) -> None:
    volume = volume_on(numbered((2, 3, 4)), GRIDS["axial"])
    with pytest.raises(Refusal) as caught:
        reorient(volume, axes)
    assert caught.value.code == "IMG-1227"
