"""A volume one can trust: voxels, affine, value scale, and where each slice came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.geometry.grid import Grid, compare_with_tags, fit_grid, single_slice_grid
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_imaging.intake.account import scan
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.series.forms.siemens_mosaic import Direction
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.series.gradient import Gradient
from numbat_imaging.series.grouping import (
    PreparedStack,
    group_series,
    prepare_stack,
    stacks_of,
)
from numbat_imaging.series.instance import Instance, described_slice, instances_from_header
from numbat_imaging.series.slice_timing import UNTIMED, Timing, stack_timing
from numbat_imaging.series.splitting import Stack
from numbat_imaging.values.padding import PaddingWatch, Range, padded
from numbat_imaging.values.pixels import (
    check_format,
    check_present,
    plane_bytes,
    read_planes,
    stack_dtype,
)
from numbat_imaging.values.rescale import StackScale, ValueScale, refuse_undefined, stack_scale
from numbat_imaging.values.scales import DEFAULT
from numbat_registries import Diagnostic, notice, refuse

#: Codes of objects that are no image, or that describe one: listed, and nothing is wrong.
SET_ASIDE = frozenset({"IMG-1016", "IMG-1605"})

_PLAIN = ValueScale(1.0, 0.0, None, "a mask")

#: No volume larger than this is allocated unless the caller raises the limit.
MAX_VOLUME_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class SourceSlice:
    """Which object filled which slice."""

    ref: FileRef
    sop_instance_uid: str
    k: int
    t: int
    frame: int = 0


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What names a volume: its series, and how it differs from its siblings in that series."""

    series_instance_uid: str
    series_number: int | None
    description: str
    modality: str
    differs_by: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Volume:
    """Voxels on a regular grid in patient space, with everything that vouches for them.

    `voxels`: (i, j, k) or (i, j, k, t), i along a row, j down the columns, k upwards along the
    slice normal; stored values unless `scale.applied`; a view of a C-contiguous (t, k, j, i) block.
    `affine_lps_mm`: (4, 4), voxel index (i, j, k, 1) of a voxel centre to DICOM patient LPS mm.
    `header`: what describes the first slice, without pixels (of an enhanced object, its frame).
    `aside`: files of the stack that are twins of a slice. `padding`: lowest and highest stored
    value that mark padding, where all slices name the same; `padded`: the mask, where the voxels
    alone do not tell. `axes`: code of the axes that the volume was turned to, whose voxels are
    written in their order; None for files as other converters write them, rows flipped. `as_read`:
    of a volume that was turned or resampled, the grid of its `sources` and the residuals of their
    positions; None while `grid` is that grid. `timing`: when its slices were acquired.
    """

    voxels: NDArray[Any]
    affine_lps_mm: NDArray[np.float64]
    fourth_axis: FourthAxis | None
    scale: ValueScale
    grid: Grid
    diffusion: tuple[Gradient, ...] | None
    header: Dataset
    sources: tuple[SourceSlice, ...]
    aside: tuple[tuple[FileRef, Diagnostic], ...]
    notices: tuple[Diagnostic, ...]
    key: SeriesKey
    padding: Range | None = None
    padded: NDArray[np.bool_] | None = None
    axes: str | None = None
    as_read: Grid | None = None
    timing: Timing = UNTIMED

    def values(self) -> NDArray[np.float64]:
        """The voxels on their value scale, (i, j, k[, t]) float64, in `scale.unit`.

        Colours get a last axis of three: red, green, blue. Padding has the value that its stored
        value gives, which means nothing: `padding_mask` says where.
        """
        if self.voxels.dtype.fields is not None:
            channels = [np.asarray(self.voxels[name], np.float64) for name in "RGB"]
            return np.stack(channels, axis=-1)
        return np.asarray(self.voxels, np.float64) * self.scale.slope + self.scale.intercept

    def padding_mask(self) -> NDArray[np.bool_] | None:
        """Where voxels are padding, (i, j, k[, t]); None where the files name no padding.

        As numpy has it: `np.ma.masked_array(volume.values(), volume.padding_mask())`.
        """
        if self.padded is not None or self.padding is None:
            return self.padded
        return padded(self.voxels, self.padding)

    def at_lps_mm(self, index: Sequence[float]) -> NDArray[np.float64]:
        """Where the centre of voxel (i, j, k) lies, LPS mm."""
        point: NDArray[np.float64] = self.affine_lps_mm @ np.array([*index[:3], 1.0])
        return point[:3]


Progress = Callable[[int], None]


def read_series(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    fourth_axis: str | None = None,
    slice_thickness_mm: float | None = None,
    value_scale: str = DEFAULT,
    mosaic_slices: int | None = None,
    mosaic_direction: Direction | None = None,
    max_volume_bytes: int = MAX_VOLUME_BYTES,
) -> Volume:
    """The one volume that `paths` (folder, zip, DICOMDIR, files) hold.

    Raises IMG-1801 when they hold no image, IMG-1802 when they hold several volumes, whether or not
    each of these can be read, and every refusal that stands between the files and a volume.
    """
    stacks = _stacks(paths, tolerances, mosaic_slices, mosaic_direction)
    if len(stacks) > 1:
        raise refuse(
            "IMG-1802",
            volumes=len(stacks),
            series=len({s.instances[0].series_instance_uid for s in stacks}),
            differing=sorted({name for stack in stacks for name, _ in stack.differs_by}),
        )
    return volume_from_stack(
        stacks[0],
        tolerances=tolerances,
        fourth_axis=fourth_axis,
        slice_thickness_mm=slice_thickness_mm,
        value_scale=value_scale,
        max_volume_bytes=max_volume_bytes,
    )


def read_volumes(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    fourth_axis: str | None = None,
    slice_thickness_mm: float | None = None,
    value_scale: str = DEFAULT,
    mosaic_slices: int | None = None,
    mosaic_direction: Direction | None = None,
    max_volume_bytes: int = MAX_VOLUME_BYTES,
) -> list[Volume]:
    """Every volume that `paths` hold, in order of series number.

    Raises IMG-1801 when they hold no image, and every refusal that stands between the files and
    any of the volumes; use `convert` or `inspect` to go on past refused series.
    """
    return [
        volume_from_stack(
            stack,
            tolerances=tolerances,
            fourth_axis=fourth_axis,
            slice_thickness_mm=slice_thickness_mm,
            value_scale=value_scale,
            max_volume_bytes=max_volume_bytes,
        )
        for stack in _stacks(paths, tolerances, mosaic_slices, mosaic_direction)
    ]


def _stacks(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    tolerances: Tolerances,
    mosaic_slices: int | None,
    mosaic_direction: Direction | None,
) -> list[Stack]:
    read = partial(
        instances_from_header, mosaic_slices=mosaic_slices, mosaic_direction=mosaic_direction
    )
    found, account = scan(paths, convert=read, aside=SET_ASIDE)
    instances = [instance for slices in found for instance in slices]
    first_refusal = account.first_refusal()
    if first_refusal is not None:
        raise first_refusal
    stacks = [
        stack for series in group_series(instances) for stack in stacks_of(series, tolerances)[0]
    ]
    if not stacks:
        raise refuse("IMG-1801", files=len(account.records))
    return stacks


def volume_from_stack(
    stack: Stack,
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    fourth_axis: str | None = None,
    slice_thickness_mm: float | None = None,
    value_scale: str = DEFAULT,
    max_volume_bytes: int = MAX_VOLUME_BYTES,
    notices: Iterable[Diagnostic] = (),
    progress: Progress | None = None,
) -> Volume:
    """Geometry, values and voxels of one stack.

    Raises IMG-12xx for geometry, IMG-13xx for the fourth axis, IMG-14xx for pixels, IMG-15xx for
    the value scale. `progress` is told the number of slices read so far.
    """
    prepared = prepare_stack(stack, tolerances=tolerances, fourth_axis=fourth_axis)
    grid = grid_of(prepared, tolerances=tolerances, slice_thickness_mm=slice_thickness_mm)
    members = [instance for volume in prepared.arrangement.volumes for instance in volume]
    # The slices of one file share its description.
    for instance in {id(i.pixels): i for i in members}.values():
        check_format(instance.pixels, file=instance.ref.label)
    _refuse_too_large(members, max_volume_bytes)
    _refuse_absent(members)
    scale = stack_scale(members, value_scale)
    found = [*scale.notices, *stack_notices(prepared, grid, members, tolerances)]
    watch = PaddingWatch(
        [instance.padding for instance in members],
        (members[0].rows, members[0].columns),
        keep=scale.travels.applied,
    )
    block = _read_block(members, scale, watch, progress)
    found += watch.notices()
    described = described_slice(members[0])
    axis = prepared.arrangement.axis
    timing, about_timing = stack_timing(
        prepared.arrangement.volumes, described, axis=None if axis is None else axis.name
    )
    return Volume(
        voxels=_as_voxels(block, prepared),
        affine_lps_mm=grid.affine_lps_mm,
        fourth_axis=axis,
        scale=scale.travels,
        grid=grid,
        diffusion=_diffusion(prepared),
        header=described,
        sources=_sources(prepared),
        aside=tuple((aside.instance.ref, aside.why) for aside in prepared.aside),
        notices=(*notices, *prepared.arrangement.notices, *found, *about_timing),
        key=_series_key(stack),
        padding=watch.shared,
        padded=None if watch.mask is None else _as_voxels(watch.mask, prepared),
        timing=timing,
    )


def grid_of(
    prepared: PreparedStack,
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    slice_thickness_mm: float | None = None,
) -> Grid:
    """The grid of a prepared stack, the same for all its volumes.

    Raises IMG-1206 and IMG-1207 for gaps and uneven slices, IMG-1208 when the volumes of a 4D
    stack lie at different places, IMG-1210 when a single slice states no thickness, IMG-1216 when a
    PET series declares more slices.
    """
    volumes = prepared.arrangement.volumes
    first = volumes[0][0]
    spacing = first.pixel_spacing_mm
    assert spacing is not None
    in_plane = (spacing[1], spacing[0])
    positions = np.array([[i.position_lps_mm for i in volume] for volume in volumes], float)
    mean = positions.mean(axis=0)
    _refuse_fewer_than_declared(first, len(volumes[0]))
    if len(volumes[0]) == 1:
        thickness, source = _thickness(first, slice_thickness_mm)
        grid = single_slice_grid(
            mean[0], prepared.axes, in_plane, thickness_mm=thickness, thickness_source=source
        )
        _refuse_moved(positions, mean, tolerances.position_limit_mm(thickness))
        return grid
    grid = fit_grid(mean, prepared.axes, in_plane, tolerances=tolerances)
    _refuse_moved(positions, mean, tolerances.position_limit_mm(float(grid.spacing_mm[2])))
    return grid


def _refuse_fewer_than_declared(instance: Instance, found: int) -> None:
    declared = instance.slices_declared
    if declared is not None and found < declared:
        raise refuse("IMG-1216", declared=declared, found=found)


def _refuse_moved(
    positions: NDArray[np.float64], mean: NDArray[np.float64], limit_mm: float
) -> None:
    moved_mm = float(np.max(np.linalg.norm(positions - mean, axis=2)))
    if moved_mm > limit_mm:
        raise refuse(
            "IMG-1208", volumes=len(positions), displacement_mm=moved_mm, limit_mm=limit_mm
        )


def _thickness(instance: Instance, given_mm: float | None) -> tuple[float, str]:
    candidates = (
        (given_mm, "the caller"),
        (instance.spacing_between_slices_mm, "SpacingBetweenSlices"),
        (instance.slice_thickness_mm, "SliceThickness"),
    )
    for value, source in candidates:
        if value is not None and value > 0:
            return value, source
    raise refuse("IMG-1210", file=instance.ref.label)


def stack_notices(
    prepared: PreparedStack, grid: Grid, members: Sequence[Instance], tolerances: Tolerances
) -> list[Diagnostic]:
    """What travels with a volume: tags that disagree, images set aside, loss, inverted grey."""
    first = members[0]
    found = compare_with_tags(
        grid,
        spacing_between_slices_mm=first.spacing_between_slices_mm,
        gantry_tilt_deg=first.gantry_tilt_deg,
        tolerances=tolerances,
    )
    found += [aside.why for aside in prepared.aside]
    if grid.is_sheared:
        found.append(notice("IMG-1211", shear_deg=grid.shear_deg, slices=grid.slices))
    if grid.slices == 2:
        found.append(notice("IMG-1214", spacing_mm=float(grid.spacing_mm[2])))
    lossy = sum(instance.pixels.lossy for instance in members)
    if lossy:
        found.append(notice("IMG-1406", images=lossy, of=len(members)))
    if first.pixels.photometric == "MONOCHROME1":
        found.append(notice("IMG-1407", images=len(members)))
    announced = first.images_announced
    present = prepared.stack.series_images
    if announced is not None and announced > present:
        found.append(notice("IMG-1209", announced=announced, found=present))
    return found


def _refuse_too_large(members: Sequence[Instance], limit_bytes: int) -> None:
    first = members[0]
    cell_bytes = plane_bytes(first.pixels) // (first.pixels.rows * first.pixels.columns)
    size_bytes = first.rows * first.columns * cell_bytes * len(members)
    if size_bytes > limit_bytes:
        raise refuse("IMG-1408", size_bytes=size_bytes, limit_bytes=limit_bytes)


def _refuse_absent(members: Sequence[Instance]) -> None:
    """Before much is allocated for them: are the pixels there?"""
    first = members[0]
    if first.rows * first.columns * len(members) * 8 <= DEFAULT_LIMITS.unproven_bytes:
        return
    for indices in _by_file(members).values():
        check_present([members[index] for index in indices])


def _by_file(members: Sequence[Instance]) -> dict[FileRef, list[int]]:
    files: dict[FileRef, list[int]] = {}
    for index, instance in enumerate(members):
        files.setdefault(instance.ref, []).append(index)
    return files


def _read_block(
    members: Sequence[Instance],
    scale: StackScale,
    watch: PaddingWatch,
    progress: Progress | None,
) -> NDArray[Any]:
    """The slices one after the other, (slices, rows, columns)."""
    rows, columns = members[0].rows, members[0].columns
    applied = scale.travels.applied
    stored = stack_dtype([instance.pixels for instance in members])
    block = np.empty((len(members), rows, columns), scale.dtype if applied else stored)
    files = _by_file(members)

    def fill(indices: list[int]) -> int:
        slices = [members[index] for index in indices]
        planes = [block[index] for index in indices]
        if applied:
            held = np.empty((len(indices), rows, columns), stack_dtype([slices[0].pixels]))
            planes = list(held)
        read_planes(slices, planes)
        for index, plane in zip(indices, planes, strict=True):
            padding = watch.look(index, plane)
            refuse_undefined(members[index], scale.of_slices[index], plane, padding)
            if applied:
                block[index] = scale.values(index, plane)
        return len(indices)

    # Decoders and file reads release the interpreter; two threads hide the wait for the disk.
    done = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        # One file needs no second thread.
        run = pool.map if len(files) > 1 else map
        for count in run(fill, files.values()):
            done += count
            if progress is not None:
                progress(done)
    return block


def _as_voxels(block: NDArray[Any], prepared: PreparedStack) -> NDArray[Any]:
    """A block (slices, rows, columns) as (i, j, k) or (i, j, k, t)."""
    if prepared.arrangement.axis is None:
        return block.transpose(2, 1, 0)
    volumes = len(prepared.arrangement.volumes)
    return block.reshape(volumes, -1, *block.shape[1:]).transpose(3, 2, 1, 0)


def _diffusion(prepared: PreparedStack) -> tuple[Gradient, ...] | None:
    gradients = [volume[0].gradient for volume in prepared.arrangement.volumes]
    if any(gradient is None for gradient in gradients):
        return None
    known = [gradient for gradient in gradients if gradient is not None]
    return tuple(known) if any(g.b_value_s_mm2 > 0 for g in known) else None


def _sources(prepared: PreparedStack) -> tuple[SourceSlice, ...]:
    return tuple(
        SourceSlice(instance.ref, instance.sop_instance_uid, k, t, instance.frame)
        for t, volume in enumerate(prepared.arrangement.volumes)
        for k, instance in enumerate(volume)
    )


def _series_key(stack: Stack) -> SeriesKey:
    first = stack.instances[0]
    return SeriesKey(
        series_instance_uid=first.series_instance_uid,
        series_number=first.series_number,
        description=first.series_description,
        modality=first.modality,
        differs_by=stack.differs_by,
    )


def square(volume: Volume) -> Volume:
    """A sheared volume resampled onto a square grid (`geometry.shear`); a square one as it is."""
    from numbat_imaging.geometry.reorientation import UNTURNED, inverse, turned, upright_turn
    from numbat_imaging.geometry.shear import square_stack

    if not volume.grid.is_sheared:
        return volume
    turn = upright_turn(volume.grid)
    if turn != UNTURNED:
        return turned(square(turned(volume, turn)), inverse(turn))
    voxels, grid, scale = square_stack(volume.voxels, volume.grid, volume.scale)
    padded, mask = None, volume.padding_mask()
    if mask is not None:
        # A voxel that takes any part of its value from padding, or from beyond the image, is none.
        whole, _, _ = square_stack((~mask).astype(np.float32), volume.grid, _PLAIN)
        padded = whole < 1.0
    return replace(
        volume,
        voxels=voxels,
        grid=grid,
        affine_lps_mm=grid.affine_lps_mm,
        scale=scale,
        padding=None,
        padded=padded,
    )
