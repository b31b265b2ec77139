"""Small phantoms with a value scale, and what a volume of them is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.geometry_faults import Transform
from numbat_imaging.phantoms.phantom import get_pixels
from numbat_imaging.volume import Volume, read_series

#: 8 × 6 × 4 voxels that store 0 to 191, or −32768 to −32577.
SMALL = Phantom(shape=(8, 6, 4))
SIGNED = replace(SMALL, dtype="int16")


def made(phantom: Phantom, *transforms: Transform) -> list[Dataset]:
    """The slices of a phantom after some transforms."""
    slices = phantom.slices()
    for transform in transforms:
        slices = transform(slices)
    return slices


def read(slices: Sequence[Dataset], **options: Any) -> Volume:
    """What `read_series` makes of these slices."""
    with TemporaryDirectory() as folder:
        write_datasets(slices, folder)
        return read_series(folder, **options)


def stored(slices: Iterable[Dataset]) -> NDArray[Any]:
    """The stored values of slices in upward order, (i, j, k)."""
    return np.stack([get_pixels(ds).T for ds in slices], axis=-1)
