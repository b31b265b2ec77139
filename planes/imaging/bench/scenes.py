"""The scans that converters are timed on, written into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydicom import Dataset


@dataclass(frozen=True)
class Scene:
    """A scan of `volumes` × `slices` planes of `size` × `size` pixels of two bytes."""

    says: str
    size: int
    slices: int
    volumes: int
    write: Callable[[Scene, Path], None]

    @property
    def volume_mib(self) -> float:
        """Size of the voxels in MiB."""
        return self.volumes * self.slices * self.size**2 * 2 / (1 << 20)


def _ct(scene: Scene, folder: Path) -> None:
    """A noisy disc in air."""
    from numbat_imaging.phantoms import Phantom, write_datasets

    phantom = Phantom(
        shape=(scene.size, scene.size, scene.slices),
        spacing_mm=(0.7, 0.7, 1.0),
        modality="CT",
        dtype="int16",
        slope=1.0,
        intercept=-1024.0,
    )
    datasets = phantom.slices()
    _fill(datasets, scene.size)
    write_datasets(datasets, folder)


def _enhanced(scene: Scene, folder: Path) -> None:
    """A time series in one enhanced MR object."""
    from numbat_imaging.phantoms import write_datasets
    from numbat_imaging.phantoms.enhanced import Layout, enhanced_object

    slices = _series(scene).slices()
    _fill(slices, scene.size)
    dimensions = ("StackID", "InStackPositionNumber", "TemporalPositionIndex")
    layout = Layout(dimensions=dimensions, per_frame="all")
    write_datasets([enhanced_object(slices, layout)], folder)


def _mosaic(scene: Scene, folder: Path) -> None:
    """A time series, each volume in one Siemens mosaic."""
    from numbat_imaging.phantoms import write_datasets
    from numbat_imaging.phantoms.vendor_forms import mosaics

    datasets = mosaics(_series(scene))
    _fill(datasets, datasets[0].Rows)
    write_datasets(datasets, folder)


def _series(scene: Scene) -> Any:
    from numbat_imaging.phantoms import Phantom

    return Phantom(
        shape=(scene.size, scene.size, scene.slices),
        spacing_mm=(2.0, 2.0, 3.0),
        volumes=scene.volumes,
        fourth_axis="TemporalPositionIdentifier",
    )


def _fill(datasets: Sequence[Dataset], size: int) -> None:
    """Pixels that compress as scans do: a smooth object and noise."""
    import numpy as np

    from numbat_imaging.phantoms.phantom import get_pixels, set_pixels

    noise = np.random.default_rng(7)
    row, column = np.mgrid[:size, :size] - size / 2
    disc = np.hypot(row, column) < 0.43 * size
    for ds in datasets:
        plane = np.where(disc, noise.normal(1064, 20, disc.shape), noise.normal(10, 4, disc.shape))
        set_pixels(ds, plane.clip(0).astype(get_pixels(ds).dtype))


SCENES = {
    "ct": Scene("CT of single-frame images", 512, 300, 1, _ct),
    "enhanced": Scene(
        "MR time series in one enhanced object of 2,000 frames", 96, 40, 50, _enhanced
    ),
    "mosaic": Scene("MR time series of 200 Siemens mosaics", 64, 36, 200, _mosaic),
}
