"""Volumes on other grids: affine fields are kept, labels are kept, nothing is made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging import TargetGrid, Volume, reorient, resample, resample_to
from numbat_imaging.gates._volumes import ORIGIN, numbered, places, turn_about, volume_on
from numbat_imaging.geometry.interpolation import IndexMap
from numbat_imaging.geometry.resampling import frame_of
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.values.rescale import ValueScale
from numbat_registries import Refusal

PLAIN = ValueScale(1.0, 0.0, None, "a test", applied=True)
GRADIENT = np.array([3.0, -2.0, 5.0])

angles = st.tuples(*[st.floats(-180.0, 180.0)] * 3)
lengths = st.tuples(*[st.floats(0.4, 4.0)] * 3)
slides = st.one_of(st.just((0.0, 0.0)), st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)))


def placed(
    turned_deg: tuple[float, float, float],
    spacing_mm: tuple[float, float, float],
    slide_mm: tuple[float, float] = (0.0, 0.0),
) -> np.ndarray:
    axes = np.linalg.multi_dot([turn_about(axis, turned_deg[axis]) for axis in range(3)])
    affine = np.eye(4)
    affine[:3, :3] = axes * np.asarray(spacing_mm)
    affine[:3, 2] += axes[:, :2] @ slide_mm
    affine[:3, 3] = ORIGIN
    return affine


def onto(volume: Volume, affine: np.ndarray, shape: tuple[int, int, int], **options: Any) -> Volume:
    return resample_to(volume, TargetGrid(affine, shape, frame_of(volume)), **options)


@settings(max_examples=40, deadline=None)
@given(angles, lengths, slides, angles, slides, st.sampled_from(["linear", "cubic"]))
def test_a_field_that_grows_evenly_is_found_on_every_grid(
    turned: tuple[float, float, float],
    spacing: tuple[float, float, float],
    slide: tuple[float, float],
    other: tuple[float, float, float],
    other_slide: tuple[float, float],
    kind: Any,
) -> None:
    source, shape = placed(turned, spacing, slide), (31, 30, 29)
    volume = volume_on(places(source, shape) @ GRADIENT, source, scale=PLAIN)
    target = placed(other, (0.9 * min(spacing),) * 3, other_slide)
    target[:3, :3] *= 0.5
    target[:3, 3] = volume.at_lps_mm((15, 14.5, 14)) - target[:3, :3] @ [1.0, 1.0, 1.0]
    found = onto(volume, target, (3, 3, 3), interpolation=kind)
    np.testing.assert_allclose(found.voxels, places(target, (3, 3, 3)) @ GRADIENT, atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(angles, lengths, slides, angles, lengths, st.integers(0, 9))
def test_nearest_has_the_label_of_the_voxel_that_holds_the_centre(
    turned: tuple[float, float, float],
    spacing: tuple[float, float, float],
    slide: tuple[float, float],
    other: tuple[float, float, float],
    other_spacing: tuple[float, float, float],
    seed: int,
) -> None:
    source, target = placed(turned, spacing, slide), placed(other, other_spacing)
    labels = np.random.default_rng(seed).integers(1, 5, (6, 5, 4)).astype(np.uint8)
    volume = volume_on(labels, source)
    found = onto(volume, target, (4, 5, 6), interpolation="nearest", fill=0.0)
    at = (places(target, (4, 5, 6)) - source[:3, 3]) @ np.linalg.inv(source[:3, :3]).T
    edge = np.abs(at - np.floor(at) - 0.5).min(axis=-1) < 1e-4
    inside = np.all((at > -0.5) & (at < np.array(labels.shape) - 0.5), axis=-1)
    index = np.clip(np.rint(at).astype(int), 0, np.array(labels.shape) - 1)
    truth = np.where(inside, labels[tuple(np.moveaxis(index, -1, 0))], 0)
    assert found.voxels.dtype == np.uint8
    assert np.array_equal(found.voxels[~edge], truth[~edge])
    mask = found.padding_mask()
    assert np.array_equal((np.zeros_like(inside) if mask is None else mask)[~edge], ~inside[~edge])


@settings(max_examples=60, deadline=None)
@given(angles, lengths, slides, lengths, st.tuples(*[st.integers(1, 9)] * 3))
def test_a_spacing_keeps_the_middle_and_loses_nothing(
    turned: tuple[float, float, float],
    spacing: tuple[float, float, float],
    slide: tuple[float, float],
    asked: tuple[float, float, float],
    shape: tuple[int, int, int],
) -> None:
    volume = volume_on(numbered(shape), placed(turned, spacing, slide))
    found = resample(volume, spacing_mm=asked, interpolation="nearest")
    np.testing.assert_allclose(found.grid.spacing_mm, asked, rtol=1e-9)
    np.testing.assert_allclose(found.grid.affine_lps_mm, found.affine_lps_mm, atol=1e-9)
    middle = volume.at_lps_mm([(n - 1) / 2 for n in shape])
    new_middle = found.at_lps_mm([(n - 1) / 2 for n in found.voxels.shape])
    np.testing.assert_allclose(new_middle, middle, atol=1e-9)
    grown = np.array(found.voxels.shape) - volume.grid.spacing_mm * shape / asked
    assert np.all(grown > -1e-5)
    assert np.all(grown < 1.0)
    assert found.padding_mask() is None
    assert set(np.unique(found.voxels)) <= set(np.unique(volume.voxels))


@settings(max_examples=30, deadline=None)
@given(angles, st.sampled_from(["RAS", "SPL", "AIR"]), lengths)
def test_turning_and_resampling_may_change_places(
    turned: tuple[float, float, float], code: str, asked: tuple[float, float, float]
) -> None:
    volume = volume_on(
        numbered((5, 6, 7), np.float64), placed(turned, (1.0, 1.5, 2.5)), scale=PLAIN
    )
    first = resample(reorient(volume, code), spacing_mm=asked)
    order = [
        int(np.argmax(np.abs(np.linalg.inv(first.affine_lps_mm[:3, :3]) @ c)))
        for c in volume.affine_lps_mm[:3, :3].T
    ]
    second = reorient(resample(volume, spacing_mm=[asked[axis] for axis in order]), code)
    np.testing.assert_allclose(first.affine_lps_mm, second.affine_lps_mm, atol=1e-9)
    np.testing.assert_allclose(first.voxels, second.voxels, atol=1e-9)
    assert first.axes == second.axes == code


def test_volumes_are_worked_on_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of the runs in which slices are worked on changes no value."""
    voxels = np.random.default_rng(0).normal(size=(9, 8, 7, 2))
    volume = volume_on(voxels, placed((10.0, 20.0, 30.0), (1.0, 1.5, 2.5)), scale=PLAIN)
    target = placed((0.0, 5.0, 40.0), (1.7, 1.1, 1.3))
    for kind in ("linear", "cubic", "nearest"):
        whole = onto(volume, target, (8, 9, 10), interpolation=kind, fill=7.0)
        with monkeypatch.context() as patch:
            patch.setattr("numbat_imaging.geometry.interpolation._SLAB_VOXELS", 150)
            parts = onto(volume, target, (8, 9, 10), interpolation=kind, fill=7.0)
        np.testing.assert_allclose(whole.voxels, parts.voxels, atol=1e-12)
        assert np.array_equal(whole.padding_mask(), parts.padding_mask())
        assert parts.notices[-1].fields["count"] == whole.notices[-1].fields["count"] > 0


def test_no_low_pass_where_nothing_shrinks() -> None:
    turned = IndexMap.between(
        np.eye(4), (9, 9, 9), placed((12.0, 34.0, 56.0), (1.0, 1.0, 1.0)), (9, 9, 9)
    )
    assert np.array_equal(turned.sigma_voxels(), [0.0, 0.0, 0.0])
    finer = IndexMap.between(np.eye(4), (9, 9, 1), np.diag([0.5, 2.0, 3.0, 1.0]), (9, 9, 1))
    assert np.count_nonzero(finer.sigma_voxels()) == 1
    assert finer.sigma_voxels()[1] == pytest.approx(np.sqrt(3 / (8 * np.log(2))))


def test_a_result_is_a_view_of_a_block_with_i_fastest() -> None:
    volume = volume_on(numbered((5, 4, 3, 2)), placed((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    for kind in ("nearest", "linear"):
        assert resample(volume, spacing_mm=0.7, interpolation=kind).voxels.T.flags.c_contiguous


def test_one_slice_is_resampled_within_its_thickness() -> None:
    volume = volume_on(
        numbered((5, 4, 1), np.float32), placed((0.0, 0.0, 0.0), (1.0, 1.0, 6.0)), scale=PLAIN
    )
    for kind in ("linear", "cubic", "nearest"):
        found = resample(volume, spacing_mm=(1.0, 1.0, 2.0), interpolation=kind)
        assert found.voxels.shape == (5, 4, 3)
        for k in range(3):
            np.testing.assert_allclose(found.voxels[:, :, k], volume.voxels[:, :, 0], atol=1e-5)


def test_diffusion_directions_and_the_fourth_axis_stay() -> None:
    volume = read_fault("enhanced-diffusion")
    found = reorient(resample(volume, spacing_mm=3.0), "SRA")
    assert found.diffusion == volume.diffusion
    assert found.diffusion is not None
    assert found.fourth_axis == volume.fourth_axis
    assert found.voxels.shape[3] == volume.voxels.shape[3]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"spacing_mm": 0.0}, "IMG-1224"),
        ({"spacing_mm": 1e-9}, "IMG-1223"),
        ({"spacing_mm": 5e-324}, "IMG-1223"),
        ({"spacing_mm": 1.0, "interpolation": "sinc"}, "IMG-1226"),
    ],
)
def test_requests_that_are_refused(options: dict[str, Any], code: str) -> None:
    volume = volume_on(numbered((5, 4, 3)), placed((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    with pytest.raises(Refusal) as caught:
        resample(volume, **options)
    assert caught.value.code == code
