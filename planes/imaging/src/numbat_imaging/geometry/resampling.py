"""A volume on another grid: at a spacing, or where another volume has its voxels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.geometry.interpolation import (
    ORDERS,
    IndexMap,
    smoothed,
    spline_coefficients,
)
from numbat_imaging.geometry.placement import (
    TargetGrid,
    axis_code,
    grid_of_affine,
    spaced,
    voxel_size,
)
from numbat_imaging.intake import elements
from numbat_registries import notice, refuse

if TYPE_CHECKING:
    from numbat_imaging.values.rescale import ValueScale
    from numbat_imaging.volume import Volume

Interpolation = Literal["linear", "cubic", "nearest"]

#: No result larger than this is allocated unless the caller raises the limit.
MAX_RESULT_BYTES = 16 << 30
#: A voxel that takes more than a thousandth of its value from padding is padding.
_SOUND = 0.999
#: Neighbouring numbers of single precision differ by this part of their size.
_SINGLE_STEP = 2.0**-23
_COUNTABLE = 2.0**62
#: A voxel smaller than this part of the old one is beyond any limit on size.
_TINY = 1e-18


def resample(
    volume: Volume,
    *,
    spacing_mm: float | Sequence[float],
    interpolation: Interpolation = "linear",
    antialias: bool = True,
    max_volume_bytes: int = MAX_RESULT_BYTES,
) -> Volume:
    """The volume with voxels of another size, on the axes that it has.

    `spacing_mm`: one number, or three: along i, along j, and between the planes of k. The middle of
    the field of view stays where it is, and the field grows by less than a voxel where the size is
    no whole multiple; every new centre lies in an old voxel, so that no value is made up. A sheared
    volume stays sheared. The rest is as in `resample_to`.

    Raises IMG-1223 when the result is larger than `max_volume_bytes`, IMG-1224 for a spacing that
    is none, IMG-1226, IMG-1228 and IMG-1229 as `resample_to` does; tells IMG-1217.
    """
    now_mm = volume.grid.spacing_mm.tolist()
    factors = [new / old for new, old in zip(voxel_size(spacing_mm), now_mm, strict=True)]
    sizes = [
        max(size / max(factor, _TINY), 1.0)
        for size, factor in zip(volume.voxels.shape[:3], factors, strict=True)
    ]
    _refuse_too_large(volume, sizes, interpolation, max_volume_bytes)
    target = spaced(volume.affine_lps_mm, volume.voxels.shape, factors)
    work = _Work(volume, target, interpolation, antialias, None, max_volume_bytes)
    grid = grid_of_affine(target.affine_lps_mm, target.shape, source="resampled")
    grid = replace(grid, is_sheared=volume.grid.is_sheared)
    return _resampled(work, grid, volume.axes)


def resample_to(
    volume: Volume,
    like: Volume | TargetGrid,
    *,
    interpolation: Interpolation = "linear",
    fill: float | None = None,
    registered: bool = False,
    antialias: bool = True,
    max_volume_bytes: int = MAX_RESULT_BYTES,
) -> Volume:
    """The volume with its voxels where `like` has its own; the affine is that of `like`.

    "linear" is trilinear; "cubic" is the B-spline of order 3, which may overshoot; both work on
    values, and give float32 (float64 where that would merge two stored values) with the scale
    applied. "nearest" takes stored voxels as they are and keeps type and scale: for labels. Colours
    are linear in each channel and rounded. With `antialias`, linear and cubic are preceded by a
    Gaussian along each axis that the new voxels are wider in (`IndexMap.sigma_voxels`).

    A centre in a voxel of the volume, up to its outer edge, has a value; beyond, it has `fill`, in
    the unit of the values (of colours, the level of each channel), and `padding_mask()` says where.
    Without `fill` such a grid is refused. What takes part of its value from padding is padding.

    Raises IMG-1220 when `fill` is needed, IMG-1221 when volume and grid share no voxel, IMG-1222
    when their frames of reference are not known to be one and `registered` does not say so,
    IMG-1223 when the result is larger than `max_volume_bytes`, IMG-1224 for a grid that is none,
    IMG-1225 when the voxels cannot hold `fill`, IMG-1226 for an interpolation that is none,
    IMG-1228 for cubic colours, IMG-1229 for values that are not finite; tells IMG-1217 and
    IMG-1219.
    """
    target, grid, axes = _target(like)
    _refuse_other_frame(volume, target, registered)
    work = _Work(volume, target, interpolation, antialias, fill, max_volume_bytes)
    return _resampled(work, grid, axes)


def _target(like: Volume | TargetGrid) -> tuple[TargetGrid, Grid, str | None]:
    """Grid and frame of `like`, and the axes that a file keeps."""
    if isinstance(like, TargetGrid):
        like.check()
        grid = grid_of_affine(like.affine_lps_mm, like.shape, source="resampled")
        return like, grid, axis_code(like.affine_lps_mm)
    size_i, size_j, size_k = like.voxels.shape[:3]
    target = TargetGrid(like.affine_lps_mm, (size_i, size_j, size_k), frame_of(like))
    exact = np.zeros_like(like.grid.residuals_mm)
    grid = replace(like.grid, residuals_mm=exact, thickness_source="resampled")
    return target, grid, like.axes


def frame_of(volume: Volume) -> str | None:
    """FrameOfReferenceUID of a volume; None where its header has none."""
    return elements.text(volume.header, "FrameOfReferenceUID")


def _refuse_other_frame(volume: Volume, target: TargetGrid, registered: bool) -> None:
    own, other = frame_of(volume), target.frame_of_reference_uid
    if registered or (own is not None and own == other):
        return
    missing = [name for name, uid in (("the volume", own), ("the grid", other)) if uid is None]
    raise refuse("IMG-1222", unknown=missing)


@dataclass(frozen=True, slots=True)
class _Work:
    """One request."""

    volume: Volume
    target: TargetGrid
    interpolation: str
    antialias: bool
    fill: float | None
    limit_bytes: int

    @property
    def map(self) -> IndexMap:
        """Where the new voxels lie among the old ones."""
        volume, target = self.volume, self.target
        return IndexMap.between(
            volume.affine_lps_mm, volume.voxels.shape, target.affine_lps_mm, target.shape
        )

    @property
    def sigma_voxels(self) -> NDArray[np.float64]:
        """The low-pass that this request takes, (3,) in old voxels."""
        if self.interpolation == "nearest" or not self.antialias:
            return np.zeros(3)
        return self.map.sigma_voxels()


def _resampled(work: _Work, grid: Grid, axes: str | None) -> Volume:
    volume, target = work.volume, work.target
    _refuse_too_large(volume, target.shape, work.interpolation, work.limit_bytes)
    if volume.voxels.dtype.fields is not None and work.interpolation == "cubic":
        raise refuse("IMG-1228", interpolation=work.interpolation)
    index_map = work.map
    outside = index_map.outside_count()
    fill = _checked_fill(work, outside)
    mask = volume.padding_mask()
    if work.interpolation == "nearest":
        voxels, scale = _nearest(volume.voxels, index_map), volume.scale
        padded = None if volume.padded is None else _nearest(volume.padded, index_map)
    else:
        voxels, scale = _interpolated(work, index_map, mask)
        padded = None if mask is None else _coverage(work, index_map, mask) < _SOUND
    if outside:
        if padded is None:
            known = mask if work.interpolation == "nearest" else None
            padded = _nearest(known, index_map) if known is not None else _none(voxels)
        _fill_outside(index_map, voxels, fill)
        _fill_outside(index_map, padded, True)
    return replace(
        volume,
        voxels=voxels,
        affine_lps_mm=np.array(target.affine_lps_mm, float),
        scale=scale,
        grid=grid,
        notices=(*volume.notices, *_told(work, grid, outside)),
        padding=volume.padding if work.interpolation == "nearest" else None,
        padded=padded,
        axes=axes,
        as_read=volume.as_read or volume.grid,
        timing=replace(volume.timing, slice_times_s=None),
    )


def _told(work: _Work, grid: Grid, outside: int) -> list[Any]:
    step_mm = np.linalg.norm(work.volume.affine_lps_mm[:3, :3], axis=0)
    found = [
        notice(
            "IMG-1217",
            interpolation=work.interpolation,
            from_shape=list(work.volume.voxels.shape[:3]),
            from_spacing_mm=_rounded(work.volume.grid.spacing_mm),
            shape=list(work.target.shape),
            spacing_mm=_rounded(grid.spacing_mm),
            sigma_mm=_rounded(work.sigma_voxels * step_mm),
        )
    ]
    if outside:
        voxels = prod(work.target.shape)
        found.append(notice("IMG-1219", count=outside, voxels=voxels, fill=work.fill))
    return found


def _rounded(lengths_mm: NDArray[np.float64]) -> list[float]:
    return [round(float(length), 6) for length in lengths_mm]


def _refuse_too_large(
    volume: Volume, shape: Sequence[float], interpolation: str, limit_bytes: int
) -> None:
    """Raises IMG-1226 for an unknown interpolation, IMG-1223 for a result beyond the limit."""
    if interpolation not in ORDERS:
        raise refuse("IMG-1226", interpolation=interpolation, known=sorted(ORDERS))
    cell = _result_dtype(volume.voxels.dtype, volume.scale, interpolation).itemsize
    volumes = volume.voxels.shape[3] if volume.voxels.ndim == 4 else 1
    # Sizes as they are asked for may be beyond any integer.
    size_bytes = prod(float(size) for size in shape) * cell * volumes
    if not size_bytes <= limit_bytes:
        raise refuse(
            "IMG-1223", size_bytes=int(min(size_bytes, _COUNTABLE)), limit_bytes=limit_bytes
        )


def _result_dtype(dtype: np.dtype[Any], scale: ValueScale, interpolation: str) -> np.dtype[Any]:
    if interpolation == "nearest" or dtype.fields is not None:
        return dtype
    if dtype.kind == "f":
        return np.dtype(np.float64 if dtype.itemsize > 4 else np.float32)
    ends = np.iinfo(dtype)
    largest = max(abs(scale.slope * end + scale.intercept) for end in (ends.min, ends.max))
    single = largest < float(np.finfo(np.float32).max) and largest * _SINGLE_STEP <= abs(
        scale.slope
    )
    return np.dtype(np.float32 if single else np.float64)


def _checked_fill(work: _Work, outside: int) -> Any:
    """The voxel that stands for `fill`; None where none is needed.

    Raises IMG-1220, IMG-1221 and IMG-1225.
    """
    voxels = prod(work.target.shape)
    if outside == voxels:
        raise refuse("IMG-1221", voxels=voxels)
    if not outside:
        return None
    if work.fill is None:
        raise refuse("IMG-1220", count=outside, voxels=voxels)
    volume = work.volume
    dtype = _result_dtype(volume.voxels.dtype, volume.scale, work.interpolation)
    held = float(work.fill)
    if work.interpolation == "nearest":
        held = (held - volume.scale.intercept) / volume.scale.slope
    channel = np.dtype(dtype[0]) if dtype.fields is not None else dtype
    if not isfinite(held) or not _holds(channel, held):
        raise refuse("IMG-1225", fill=str(work.fill), dtype=str(channel))
    value = channel.type(round(held) if channel.kind in "iu" else held)
    return value if dtype.fields is None else np.array((value,) * 3, dtype)


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    if dtype.kind == "f":
        return abs(value) <= float(np.finfo(dtype).max)
    ends = np.iinfo(dtype)
    return abs(value - round(value)) < 1e-6 and ends.min <= round(value) <= ends.max


def _block(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty (i, j, k[, t]) array that is a view of a C-contiguous (t, k, j, i) block."""
    return np.empty(shape[::-1], dtype).T


def _none(voxels: NDArray[Any]) -> NDArray[np.bool_]:
    found = _block(voxels.shape, np.bool_)
    found[...] = False
    return found


def _each_volume(
    source: NDArray[Any], result: NDArray[Any], work: Callable[[NDArray[Any], NDArray[Any]], None]
) -> None:
    """Call `work` with each volume (i, j, k) of the source and the one to be filled."""
    if source.ndim == 3:
        work(source, result)
        return
    for t in range(source.shape[3]):
        work(source[..., t], result[..., t])


def _nearest(voxels: NDArray[Any], index_map: IndexMap) -> NDArray[Any]:
    result = _block((*index_map.result, *voxels.shape[3:]), voxels.dtype)

    def one(source: NDArray[Any], found: NDArray[Any]) -> None:
        for slab in index_map.slabs():
            found[:, :, slab] = index_map.nearest(source, slab)

    _each_volume(voxels, result, one)
    return result


def _interpolated(
    work: _Work, index_map: IndexMap, mask: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], ValueScale]:
    """Linear or cubic values of all volumes, and the scale they are on.

    Raises IMG-1229.
    """
    volume, scale = work.volume, work.volume.scale
    dtype = _result_dtype(volume.voxels.dtype, scale, work.interpolation)
    result = _block((*index_map.result, *volume.voxels.shape[3:]), dtype)
    source = _without_padding(volume.voxels, mask)
    _refuse_not_finite(source, work.interpolation)
    if dtype.fields is not None:
        for name in dtype.fields:
            _spline(work, index_map, source[name], result[name], np.rint)
        return result, scale
    slope, intercept = scale.slope, scale.intercept
    _spline(work, index_map, source, result, lambda stored: stored * slope + intercept)
    moved = replace(
        scale, slope=1.0, intercept=0.0, applied=True, source=f"{scale.source}; resampled"
    )
    return result, moved


def _spline(
    work: _Work,
    index_map: IndexMap,
    source: NDArray[Any],
    result: NDArray[Any],
    value: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> None:
    order, sigma = ORDERS[work.interpolation], work.sigma_voxels

    def one(voxels: NDArray[Any], found: NDArray[Any]) -> None:
        coefficients = spline_coefficients(smoothed(voxels, sigma), order)
        for slab in index_map.slabs():
            found[:, :, slab] = value(index_map.spline(coefficients, order, slab))

    _each_volume(source, result, one)


def _without_padding(voxels: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Voxels with the smallest sound one in place of padding.

    The number that marks padding may be anything, and must not ring into the image.
    """
    if mask is None or not mask.any() or mask.all():
        return voxels
    found = voxels.copy(order="K")
    found[mask] = voxels[~mask].min()
    return found


def _refuse_not_finite(voxels: NDArray[Any], interpolation: str) -> None:
    if voxels.dtype.kind != "f":
        return
    count = voxels.size - int(np.count_nonzero(np.isfinite(voxels)))
    if count:
        raise refuse("IMG-1229", count=count, interpolation=interpolation)


def _coverage(work: _Work, index_map: IndexMap, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Which part of its value each new voxel takes from sound voxels, 0 to 1."""
    result = _block((*index_map.result, *mask.shape[3:]), np.float32)
    order, sigma = ORDERS[work.interpolation], work.sigma_voxels

    def one(padding: NDArray[Any], found: NDArray[Any]) -> None:
        # As spline coefficients, so that the parts are never negative.
        sound = smoothed((~padding).astype(np.float32), sigma)
        for slab in index_map.slabs():
            found[:, :, slab] = index_map.spline(sound, order, slab)

    _each_volume(mask, result, one)
    return result


def _fill_outside(index_map: IndexMap, voxels: NDArray[Any], value: Any) -> None:
    for slab in index_map.slabs():
        part = voxels[:, :, slab]
        within = np.broadcast_to(index_map.inside(slab), part.shape[:3])
        part[~within] = value
