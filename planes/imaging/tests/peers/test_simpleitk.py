"""SimpleITK as a live peer: the same value at the same place, inside, at the edges and outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numbat_imaging import TargetGrid, Volume, reorient, resample, resample_to
from numbat_imaging.gates._volumes import GRIDS, affine_of, turn_about, volume_on
from numbat_imaging.geometry.resampling import frame_of
from numbat_imaging.values.rescale import ValueScale

sitk = pytest.importorskip("SimpleITK", reason="SimpleITK is not installed")

#: No voxel has it, and the scale has a stored value for it.
FILL = -4007.0
SCALE = ValueScale(2.0, -7.0, "HU", "a test")
SQUARE = ("axial", "sagittal", "tipped", "oblique")
INTERPOLATORS = {
    "nearest": sitk.sitkNearestNeighbor,
    "linear": sitk.sitkLinear,
    "cubic": sitk.sitkBSpline,
}


def _image(values: np.ndarray, affine: np.ndarray) -> Any:
    """An image of ITK, whose physical space is LPS too."""
    image = sitk.GetImageFromArray(np.ascontiguousarray(values.T))
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    image.SetOrigin(affine[:3, 3].tolist())
    image.SetSpacing(spacing.tolist())
    image.SetDirection((affine[:3, :3] / spacing).ravel().tolist())
    return image


def _peer(
    values: np.ndarray, affine: np.ndarray, target: np.ndarray, shape: Any, interpolator: int
) -> np.ndarray:
    """ITK's answer; the source lies in its own indices, so that a shear is no hindrance."""
    inverse = np.linalg.inv(affine)
    to_index = sitk.AffineTransform(3)
    to_index.SetMatrix(inverse[:3, :3].ravel().tolist())
    to_index.SetTranslation(inverse[:3, 3].tolist())
    source = _image(values, np.eye(4))
    grid = _image(np.zeros(shape), target)
    found = sitk.Resample(source, grid, to_index, interpolator, FILL, sitk.sitkFloat64)
    return np.asarray(sitk.GetArrayFromImage(found)).T


def _volume(name: str, seed: int = 11) -> Volume:
    voxels = np.random.default_rng(seed).integers(-1000, 2000, (13, 11, 9)).astype(np.int16)
    return volume_on(voxels, GRIDS[name], scale=SCALE)


def _onto(volume: Volume, target: np.ndarray, shape: tuple[int, int, int], kind: Any) -> Volume:
    grid = TargetGrid(target, shape, frame_of(volume))
    return resample_to(volume, grid, interpolation=kind, fill=FILL, antialias=False)


@pytest.mark.parametrize("kind", INTERPOLATORS)
@pytest.mark.parametrize("onto", SQUARE)
@pytest.mark.parametrize("name", GRIDS)
def test_another_grid(name: str, onto: str, kind: str) -> None:
    volume = _volume(name)
    middle = volume.at_lps_mm((6, 5, 4))
    target = GRIDS[onto].copy()
    target[:3, :3] = target[:3, :3] @ np.diag([0.71, 0.83, 0.9])
    target[:3, 3] = middle - target[:3, :3] @ [6.2, 5.1, 4.3]
    shape = (14, 12, 10)
    found = _onto(volume, target, shape, kind)
    peer = _peer(volume.values(), volume.affine_lps_mm, target, shape, INTERPOLATORS[kind])
    np.testing.assert_allclose(found.values(), peer, atol=5e-3)
    outside = found.padding_mask()
    assert np.array_equal(np.zeros(shape, bool) if outside is None else outside, peer == FILL)


@pytest.mark.parametrize("kind", INTERPOLATORS)
@pytest.mark.parametrize("name", SQUARE)
# No centre lies halfway between two voxels, where the nearest one is a matter of taste.
@pytest.mark.parametrize("spacing_mm", [0.83, (0.63, 2.2, 3.3)])
def test_a_spacing(name: str, spacing_mm: Any, kind: Any) -> None:
    volume = _volume(name)
    found = resample(volume, spacing_mm=spacing_mm, interpolation=kind, antialias=False)
    peer = _peer(
        volume.values(),
        volume.affine_lps_mm,
        found.affine_lps_mm,
        found.voxels.shape,
        INTERPOLATORS[kind],
    )
    assert FILL not in peer
    np.testing.assert_allclose(found.values(), peer, atol=5e-3)


@pytest.mark.parametrize("name", SQUARE)
def test_the_image_of_a_target_volume(name: str) -> None:
    """Affines of both libraries name the same places, without a transform in between."""
    volume, other = _volume(name), _volume("tipped", seed=12)
    moved = resample_to(volume, other, fill=FILL, antialias=False)
    source = _image(volume.values(), volume.affine_lps_mm)
    grid = _image(other.values(), other.affine_lps_mm)
    peer = sitk.Resample(source, grid, sitk.Transform(), sitk.sitkLinear, FILL, sitk.sitkFloat64)
    np.testing.assert_allclose(moved.values(), sitk.GetArrayFromImage(peer).T, atol=5e-3)
    assert np.array_equal(moved.affine_lps_mm, other.affine_lps_mm)


@pytest.mark.parametrize("code", ["RAS", "LPS", "SPR", "AIL"])
@pytest.mark.parametrize("name", SQUARE)
def test_canonical_axes(name: str, code: str) -> None:
    volume = _volume(name)
    found = reorient(volume, code)
    # ITK 5.4 as SimpleITK has it names axes by where they run to, as here.
    peer = sitk.DICOMOrient(_image(volume.voxels, volume.affine_lps_mm), code)
    assert np.array_equal(found.voxels, sitk.GetArrayFromImage(peer).T)
    np.testing.assert_allclose(found.affine_lps_mm[:3, 3], peer.GetOrigin(), atol=1e-9)
    linear = np.reshape(peer.GetDirection(), (3, 3)) * peer.GetSpacing()
    np.testing.assert_allclose(found.affine_lps_mm[:3, :3], linear, atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_the_low_pass_is_a_gaussian(kind: Any) -> None:
    """ITK's discrete Gaussian is another one for small widths: they agree for wide ones."""
    smooth = np.random.default_rng(4).normal(size=(40, 36, 32))
    affine = affine_of(turn_about(1, 25.0), np.ones(3))
    volume = volume_on(smooth, affine, scale=ValueScale(1.0, 0.0, None, "a test"))
    found = resample(volume, spacing_mm=8.0, interpolation=kind)
    sigma = np.sqrt((8.0**2 - 1) / (8 * np.log(2)))
    low = sitk.SmoothingRecursiveGaussian(_image(smooth, affine), sigma)
    peer = _peer(
        sitk.GetArrayFromImage(low).T,
        affine,
        found.affine_lps_mm,
        found.voxels.shape,
        INTERPOLATORS[kind],
    )
    inner = (slice(2, -2), slice(2, -2), slice(1, -1))
    assert np.abs(found.values()[inner] - peer[inner]).max() < 0.05 * peer.std()
