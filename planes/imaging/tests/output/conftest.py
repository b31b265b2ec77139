"""Volumes made by hand, whose geometry is known without reading any file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.geometry.grid import Grid
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.series.gradient import Gradient
from numbat_imaging.values.rescale import ValueScale
from numbat_imaging.volume import SeriesKey, Volume

MakeVolume = Callable[..., Volume]


def build_volume(
    voxels: NDArray[Any] | None = None,
    *,
    axes: NDArray[np.float64] | None = None,
    spacing_mm: Sequence[float] = (1.0, 1.0, 2.0),
    origin_mm: Sequence[float] = (0.0, 0.0, 0.0),
    slide_mm: Sequence[float] = (0.0, 0.0),
    fourth_axis: FourthAxis | None = None,
    diffusion: tuple[Gradient, ...] | None = None,
    slope: float = 1.0,
    intercept: float = 0.0,
    header: Dataset | None = None,
) -> Volume:
    """A volume on a grid with the given axes; `slide_mm` is the shear from slice to slice."""
    data = np.arange(60, dtype=np.int16).reshape(3, 4, 5).T if voxels is None else voxels
    frame = np.eye(3) if axes is None else axes
    step = spacing_mm[2] * frame[:, 2] + frame[:, :2] @ np.asarray(slide_mm)
    grid = Grid(
        axes=frame,
        origin_mm=np.asarray(origin_mm, float),
        step_mm=step,
        spacing_mm=np.asarray(spacing_mm, float),
        residuals_mm=np.zeros((data.shape[2], 3)),
        is_sheared=any(slide_mm),
    )
    return Volume(
        voxels=data,
        affine_lps_mm=grid.affine_lps_mm,
        fourth_axis=fourth_axis,
        scale=ValueScale(slope, intercept, None, "a test"),
        grid=grid,
        diffusion=diffusion,
        header=Dataset() if header is None else header,
        sources=(),
        aside=(),
        notices=(),
        key=SeriesKey("2.25.1", 7, "a test", "MR"),
    )


@pytest.fixture(scope="session")
def make_volume() -> MakeVolume:
    """`build_volume`, for tests of any shape and geometry."""
    return build_volume
