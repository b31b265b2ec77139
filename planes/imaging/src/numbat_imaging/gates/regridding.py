"""Volumes turned to other axes and resampled to other grids, held to definitions voxel by voxel."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check, gate
from numbat_imaging.conversion import Options
from numbat_imaging.gates._regridding_refusals import refusals
from numbat_imaging.gates._splines import resampled
from numbat_imaging.gates._turning import PLAIN, RAS, RGB, code_of, turning
from numbat_imaging.gates._volumes import (
    GRIDS,
    SPACING,
    affine_of,
    numbered,
    places,
    turn_about,
    volume_on,
)
from numbat_imaging.geometry.placement import TargetGrid
from numbat_imaging.geometry.regridding import Regridding
from numbat_imaging.geometry.reorientation import reorient
from numbat_imaging.geometry.resampling import Interpolation, frame_of, resample, resample_to
from numbat_imaging.output.nifti import write_nifti
from numbat_imaging.output.nifti_grid import grid_of_nifti
from numbat_imaging.phantoms.reading import convert_fault
from numbat_imaging.values.rescale import ValueScale
from numbat_imaging.volume import Volume

Array = NDArray[np.float64]
_SPLINES: tuple[Interpolation, ...] = ("linear", "cubic")

_LOAD: Any = nibabel.load

_SCALE = ValueScale(slope=2.0, intercept=5.0, unit="HU", source="RescaleSlope")
_GRADIENT_MM = np.array([3.0, -2.0, 5.0])


@gate(
    "IMG-G32",
    phase=2,
    discharges=["IMG-R032"],
    title="Turned and resampled volumes hold each value where the affine says",
)
def regridding(check: Check) -> None:
    turning(check)
    _definitions(check)
    _fields(check)
    _field_of_view(check)
    _thin(check)
    _shear(check)
    _labels(check)
    _aliases(check)
    _waves(check)
    _colours(check)
    _padding(check)
    _files(check)
    refusals(check)


def _target(volume: Volume, affine: Array, shape: tuple[int, int, int]) -> TargetGrid:
    return TargetGrid(affine, shape, frame_of(volume))


def _definitions(check: Check) -> None:
    """Against the definition of each interpolation, edges and all, on grids of every kind."""
    voxels = np.random.default_rng(5).integers(-300, 900, (7, 6, 5, 2)).astype(np.int16)
    for name, source, target, shape in _pairs():
        volume = volume_on(voxels, source, scale=_SCALE)
        for kind in _SPLINES:
            for smooth in (True, False):
                found = resample_to(
                    volume,
                    _target(volume, target, shape),
                    interpolation=kind,
                    fill=-77.0,
                    antialias=smooth,
                )
                where = f"{name}, {kind}{', smoothed' if smooth else ''}"
                _defined(check, where, found, voxels, source, smooth=smooth, cubic=kind == "cubic")


def _pairs() -> list[tuple[str, Array, Array, tuple[int, int, int]]]:
    """Source, target, and its shape: by parts of a voxel, turned, wider, finer, beyond the edge."""
    moved = GRIDS["axial"].copy()
    moved[:3, 3] += (0.3, -0.9, 1.1)
    wide = affine_of(turn_about(0, 12.0), np.array([2.5, 1.2, 4.0]))
    turned = affine_of(np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]), np.array([1.2, 2.2, 1.7]))
    turned[:3, 3] += (0.0, 7.0, 9.0)
    sheared = GRIDS["sheared"].copy()
    sheared[:3, 3] += (-1.0, 0.5, -0.6)
    return [
        ("moved", GRIDS["axial"], moved, (8, 6, 5)),
        ("wider and tipped", GRIDS["axial"], wide, (4, 7, 4)),
        ("other axes", GRIDS["tipped"], turned, (6, 5, 5)),
        ("onto a sheared grid", GRIDS["oblique"], sheared, (9, 7, 5)),
        ("from a sheared grid", GRIDS["sheared oblique"], GRIDS["oblique"], (7, 6, 5)),
    ]


def _defined(
    check: Check,
    name: str,
    found: Volume,
    voxels: NDArray[Any],
    source: Array,
    *,
    smooth: bool,
    cubic: bool,
) -> None:
    values = np.asarray(voxels, float) * 2.0 + 5.0
    shape = found.voxels.shape[:3]
    required = np.empty(found.voxels.shape)
    for t in range(voxels.shape[3]):
        required[..., t], outside = resampled(
            values[..., t], source, found.affine_lps_mm, shape, cubic=cubic, smooth=smooth
        )
    required[outside] = -77.0
    check.close(f"{name}: values", measured=found.voxels, required=required, atol=2e-3, unit="HU")
    mask = np.broadcast_to(outside[..., None], found.voxels.shape)
    padded = found.padding_mask()
    told = np.zeros_like(mask) if padded is None else padded
    check.equal(f"{name}: what lies outside", told, mask)
    scale = found.scale
    check.equal(
        f"{name}: scale",
        (scale.slope, scale.intercept, scale.unit, scale.applied, scale.source),
        (1.0, 0.0, "HU", True, "RescaleSlope; resampled"),
    )
    check.equal(f"{name}: type", str(found.voxels.dtype), "float32")
    drift_mm = np.abs(found.grid.affine_lps_mm - found.affine_lps_mm).max()
    check.at_most(f"{name}: grid and affine agree", drift_mm, 1e-9, "mm")


def _fields(check: Check) -> None:
    """Values that grow evenly through space stay where they are, on whatever grid."""
    for name, source in GRIDS.items():
        shape = (34, 32, 30)
        volume = volume_on(places(source, shape) @ _GRADIENT_MM, source, scale=PLAIN)
        middle = (source @ np.array([16.5, 15.5, 14.5, 1.0]))[:3]
        for other, wide in (("oblique", 0.6), ("tipped", 1.1), ("sheared", 0.8)):
            target = GRIDS[other].copy()
            target[:3, :3] *= wide
            target[:3, 3] = middle - target[:3, :3] @ np.array([2.5, 2.0, 1.5])
            for kind in _SPLINES:
                found = resample_to(volume, _target(volume, target, (6, 5, 4)), interpolation=kind)
                check.close(
                    f"a field on {name}, {kind} to {other} × {wide}",
                    measured=found.voxels,
                    required=places(target, (6, 5, 4)) @ _GRADIENT_MM,
                    atol=1e-4,
                )


def _field_of_view(check: Check) -> None:
    """Its middle stays, it grows by less than a voxel, and no centre leaves it."""
    for name, source in GRIDS.items():
        voxels = numbered((9, 7, 6), np.int16)
        volume = volume_on(voxels, source, scale=_SCALE)
        for asked in (0.7, (2.0, 1.5, 5.0), (3.0, 1.1, 2.4), (40.0, 0.5, 2.5)):
            found = resample(volume, spacing_mm=asked)
            wanted = np.broadcast_to(asked, 3)
            where = f"{name} at {asked} mm"
            check.close(
                f"{where}: spacing",
                measured=found.grid.spacing_mm,
                required=wanted,
                atol=1e-9,
                unit="mm",
            )
            check.close(
                f"{where}: middle",
                measured=_middle(found),
                required=_middle(volume),
                atol=1e-9,
                unit="mm",
            )
            old_mm = volume.grid.spacing_mm * voxels.shape
            grown = (wanted * found.voxels.shape - old_mm) / wanted
            check.true(f"{where}: nothing is lost", bool(np.all((grown > -1e-5) & (grown < 1.0))))
            check.true(f"{where}: nothing is made up", found.padding_mask() is None)
            axes = found.affine_lps_mm[:3, :3] / np.linalg.norm(found.affine_lps_mm[:3, :3], axis=0)
            kept = source[:3, :3] / np.linalg.norm(source[:3, :3], axis=0)
            check.close(f"{where}: axes", measured=axes, required=kept, atol=1e-9)
            check.equal(f"{where}: sheared or not", found.grid.is_sheared, volume.grid.is_sheared)
        same = resample(volume, spacing_mm=volume.grid.spacing_mm.tolist())
        check.close(
            f"{name}: the spacing it has",
            measured=same.values(),
            required=volume.values(),
            atol=1e-3,
        )
        check.close(
            f"{name}: and the place", measured=same.affine_lps_mm, required=source, atol=1e-9
        )


def _thin(check: Check) -> None:
    """One slice has its value through its whole thickness; two slices are mirrored at each."""
    for slices in (1, 2):
        voxels = np.random.default_rng(slices).normal(size=(6, 5, slices))
        volume = volume_on(voxels, GRIDS["oblique"], scale=PLAIN)
        for kind in _SPLINES:
            found = resample(volume, spacing_mm=(1.0, 1.5, 0.9), interpolation=kind)
            required, _ = resampled(
                voxels,
                GRIDS["oblique"],
                found.affine_lps_mm,
                found.voxels.shape,
                cubic=kind == "cubic",
                smooth=True,
            )
            check.close(
                f"{slices} thick slices, {kind}",
                measured=found.voxels,
                required=required,
                atol=1e-9,
            )


def _shear(check: Check) -> None:
    """A grid counts as sheared where an edge slides by more than the tolerance along another."""
    volume = volume_on(numbered((6, 5, 4), np.float32), GRIDS["axial"], scale=PLAIN)
    edges_mm = SPACING * (5, 4, 3)
    for axis, along in ((2, 0), (2, 1), (1, 0), (0, 1), (0, 2), (1, 2)):
        for slide_mm, is_sheared in ((0.0, False), (0.045, False), (0.055, True), (0.2, True)):
            affine = GRIDS["axial"].copy()
            longest_mm = max(edges_mm[axis], edges_mm[along])
            affine[along, axis] += slide_mm / longest_mm * SPACING[axis]
            found = resample_to(volume, _target(volume, affine, (6, 5, 4)))
            where = f"{'ijk'[axis]} slides {slide_mm} mm along {'ijk'[along]}"
            check.equal(where, found.grid.is_sheared, is_sheared)


def _middle(volume: Volume) -> Array:
    half = (np.array(volume.voxels.shape[:3]) - 1) / 2
    return volume.at_lps_mm(half.tolist())


def _labels(check: Check) -> None:
    """Each new voxel has the label of the voxel that its centre lies in."""
    labels = np.array([0, 3, 7, 40000], np.uint16)
    voxels = labels[np.random.default_rng(3).integers(0, 4, (9, 8, 7))]
    for name, source, target, shape in _pairs():
        volume = volume_on(voxels, source, scale=_SCALE)
        fill = 2.0 * 7 + 5.0
        found = resample_to(
            volume, _target(volume, target, shape), interpolation="nearest", fill=fill
        )
        at = (places(target, shape) - source[:3, 3]) @ np.linalg.inv(source[:3, :3]).T
        inside = np.all((at >= -0.5) & (at <= np.array(voxels.shape) - 0.5), axis=-1)
        index = np.clip(np.floor(at + 0.5 + 1e-7).astype(int), 0, np.array(voxels.shape) - 1)
        required = np.where(inside, voxels[tuple(np.moveaxis(index, -1, 0))], 7)
        check.equal(f"labels {name}", found.voxels, required)
        check.equal(
            f"labels {name}: type and scale",
            (found.voxels.dtype, found.scale),
            (voxels.dtype, _SCALE),
        )
    both = np.stack([voxels, voxels[::-1]], axis=-1)
    moved = resample(volume_on(both, GRIDS["axial"]), spacing_mm=1.1, interpolation="nearest")
    for t in range(2):
        alone = volume_on(both[..., t], GRIDS["axial"])
        required = resample(alone, spacing_mm=1.1, interpolation="nearest").voxels
        check.equal(f"labels of volume {t}", moved.voxels[..., t], required)
    volume = volume_on(voxels, GRIDS["axial"])
    twice = resample(volume, spacing_mm=(2.0, 3.0, 5.0), interpolation="nearest")
    # Along j, centres lie on edges of old voxels: the upper one, all over.
    check.equal("labels halved", twice.voxels, voxels[::2, 1::2, ::2])
    check.true("no label is made up", set(np.unique(twice.voxels)) <= set(labels.tolist()))


def _aliases(check: Check) -> None:
    """A pattern that the new grid cannot show becomes its mean, not another pattern."""
    shape = (48, 48, 24)
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"))
    board = np.where(index.sum(axis=0) % 2 == 0, 100.0, -100.0)
    for name, affine in (("axial", np.eye(3)), ("turned", turn_about(2, 30.0))):
        volume = volume_on(board, affine_of(affine, np.ones(3)), scale=PLAIN)
        for kind in _SPLINES:
            with_it = resample(volume, spacing_mm=3.0, interpolation=kind)
            without = resample(volume, spacing_mm=3.0, interpolation=kind, antialias=False)
            check.at_least(f"without low-pass, {name}, {kind}", np.abs(without.voxels).min(), 99.0)
            check.at_most(f"with low-pass, {name}, {kind}", np.abs(with_it.voxels).max(), 1.0)
    even = volume_on(np.full(shape, 41.5), affine_of(np.eye(3), np.ones(3)), scale=PLAIN)
    check.close(
        "an even image stays so",
        measured=resample(even, spacing_mm=2.7).voxels,
        required=np.full((18, 18, 9), 41.5),
        atol=1e-4,
    )
    told = resample(volume_on(board, affine_of(np.eye(3)), scale=PLAIN), spacing_mm=(2.0, 1.5, 1.0))
    sigma = told.notices[-1].fields["sigma_mm"]
    check.close(
        "the low-pass is told",
        measured=sigma,
        required=[np.sqrt(3 / (8 * np.log(2))), 0.0, 0.0],
        atol=1e-6,
        unit="mm",
    )


def _waves(check: Check) -> None:
    """A wave of eight voxels is found again between them: by a cubic spline within a hundredth."""
    shape = (40, 36, 32)
    source = GRIDS["oblique"].copy()
    source[:3, :3] /= np.linalg.norm(source[:3, :3], axis=0)
    wave = np.array([0.3, -0.5, 0.5]) * 2 * np.pi / 8
    volume = volume_on(np.sin(places(source, shape) @ wave), source, scale=PLAIN)
    target = affine_of(turn_about(1, 31.0), np.array([0.7, 0.7, 0.7]))
    middle = (source @ np.array([19.5, 17.5, 15.5, 1.0]))[:3]
    target[:3, 3] = middle - target[:3, :3] @ np.array([5.5, 5.5, 5.5])
    required = np.sin(places(target, (12, 12, 12)) @ wave)
    for kind, limit in zip(_SPLINES, (0.1, 0.01), strict=True):
        found = resample_to(volume, _target(volume, target, (12, 12, 12)), interpolation=kind)
        worst = np.abs(found.voxels - required).max()
        check.at_most(f"a wave between voxels, {kind}", worst, limit)


def _colours(check: Check) -> None:
    colours = np.random.default_rng(2).integers(0, 256, (6, 5, 4, 3)).astype(np.uint8)
    source, target = GRIDS["tipped"], GRIDS["tipped"].copy()
    target[:3, 3] += (0.4, 0.7, -0.9)
    volume = volume_on(colours.view(RGB)[..., 0], source)
    found = resample_to(volume, _target(volume, target, (6, 5, 4)), fill=9)
    for channel, name in enumerate("RGB"):
        required, outside = resampled(
            colours[..., channel].astype(float), source, target, (6, 5, 4), cubic=False, smooth=True
        )
        required[outside] = 9
        check.close(
            f"channel {name}", measured=found.voxels[name], required=required, atol=0.5 + 1e-6
        )
    check.equal("colours stay colours", found.voxels.dtype, RGB)
    near = resample_to(volume, _target(volume, target, (6, 5, 4)), fill=9, interpolation="nearest")
    palette = {tuple(c) for c in colours.reshape(-1, 3).tolist()} | {(9, 9, 9)}
    check.true("nearest makes no colour", set(near.voxels.reshape(-1).tolist()) <= palette)


def _padding(check: Check) -> None:
    """Padding gives no value to its neighbours, and what hangs on it is padding."""
    voxels = np.full((12, 9, 8), 100, np.int16)
    voxels[6, 4, 3], voxels[1, 1, 1] = 130, 90
    voxels[9:] = -2000
    volume = volume_on(voxels, GRIDS["axial"], scale=_SCALE, padding=(-2000.0, -2000.0))
    target = GRIDS["axial"].copy()
    target[0, 3] += 0.5
    for kind in _SPLINES:
        found = resample_to(volume, _target(volume, target, (11, 9, 8)), interpolation=kind)
        mask = found.padding_mask()
        check.true(f"{kind}: there is a mask", mask is not None)
        if mask is None:
            continue
        first = 8 if kind == "linear" else 7
        expected = np.zeros((11, 9, 8), bool)
        expected[first:] = True
        check.equal(f"{kind}: what takes part of its value from padding", mask, expected)
        check.at_least(f"{kind}: no trace of -2000", found.voxels.min(), 180.0, "HU")
        check.true(f"{kind}: the range is gone", found.padding is None)
    near = resample_to(
        volume, _target(volume, target, (13, 9, 8)), interpolation="nearest", fill=205.0
    )
    mask = near.padding_mask()
    required = np.zeros((13, 9, 8), bool)
    required[8:] = True
    check.equal("nearest: padding stays, and beyond is marked", mask, required)
    check.equal("nearest: the stored fill", int(near.voxels[12, 0, 0]), 100)
    inside = resample_to(volume, _target(volume, target, (11, 9, 8)), interpolation="nearest")
    check.equal("nearest: the range stays", (inside.padding, inside.padded), (volume.padding, None))


def _files(check: Check) -> None:
    """What was asked for is what another reader finds in the file."""
    with TemporaryDirectory() as folder:
        out = Path(folder)
        volume = volume_on(numbered((6, 5, 4)), GRIDS["tipped"])
        for code in ("RAS", "LPS", "SPR"):
            turned = reorient(volume, code)
            write_nifti(turned, out / f"{code}.nii.gz")
            image = _LOAD(out / f"{code}.nii.gz")
            check.equal(f"file in {code}", code_of(image.affine), code)
            check.close(
                f"affine of the file in {code}",
                measured=image.affine,
                required=RAS @ turned.affine_lps_mm,
                atol=1e-4,
                unit="mm",
            )
            check.equal(
                f"voxels of the file in {code}", np.asanyarray(image.dataobj), turned.voxels
            )
        target = grid_of_nifti(out / "SPR.nii.gz", frame_of_reference_uid=frame_of(volume))
        again = resample_to(volume, target, interpolation="nearest")
        check.equal("the grid of a file, filled", again.voxels, reorient(volume, "SPR").voxels)
        check.equal("is written in its order", again.axes, "SPR")
        with check.refuses("IMG-1224", "no NIfTI file"):
            grid_of_nifti(__file__)
        options = Options(regridding=Regridding(axes="RAS", spacing_mm=(2.0, 2.0, 4.0)))
        done = convert_fault("clean", out / "converted", options=options)
        outcome = done.outcomes[0]
        image = _LOAD(out / "converted" / outcome.written[-1])
        check.equal("converted: size", image.shape, (16, 16, 5))
        check.equal("converted: axes", code_of(image.affine), "RAS")
        told = [problem["code"] for problem in outcome.summary["notices"]]
        check.equal("converted: told", told, ["IMG-1218", "IMG-1217"])
