"""Whether a volume puts each slice where its file said: geometry as the judge, not a converter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.phantoms.phantom import get_pixels

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a volume compares with the slices that it was made from.

    `max_displacement_mm`: largest distance, over the four corners of all recognised slices, between
    where the file says a pixel lies and where the volume puts it. `strangers`: planes of the volume
    whose content is in no file. `lost`: files whose content is in no plane.
    """

    max_displacement_mm: float
    strangers: int
    lost: int


def slice_affine_lps_mm(ds: Dataset) -> Array:
    """(4, 4), pixel index (i, j, 0, 1) of one slice to LPS mm (PS3.3 C.7.6.2.1.1)."""
    cosines = np.array([float(x) for x in ds.ImageOrientationPatient])
    rows_mm, columns_mm = (float(x) for x in ds.PixelSpacing)
    affine = np.eye(4)
    affine[:3, 0] = cosines[:3] * columns_mm
    affine[:3, 1] = cosines[3:] * rows_mm
    affine[:3, 2] = np.cross(cosines[:3], cosines[3:])
    affine[:3, 3] = [float(x) for x in ds.ImagePositionPatient]
    return affine


def slice_values(ds: Dataset) -> NDArray[Any]:
    """Values of one uncompressed slice, (rows, columns[, 3]), on the scale that is its default."""
    stored = get_pixels(ds)
    unused = ds.BitsAllocated - ds.BitsStored
    if unused:
        stored = (stored << (ds.BitsAllocated - 1 - ds.HighBit)) >> unused
    if "ModalityLUTSequence" in ds:
        item = ds.ModalityLUTSequence[0]
        entries = np.frombuffer(item.LUTData, "<u2").astype(np.float64)
        place = np.clip(stored - int(item.LUTDescriptor[1]), 0, len(entries) - 1)
        return np.asarray(entries[place])
    if "DoseGridScaling" in ds:
        return stored * float(ds.DoseGridScaling)
    if "RescaleSlope" not in ds:
        return stored.astype(np.float64)
    slope, intercept = float(ds.RescaleSlope), float(ds.RescaleIntercept)
    displayed = stored * slope + intercept
    if (0x2005, 0x0010) in ds and (0x2005, 0x100E) in ds:
        return displayed / (slope * float(np.float32(ds[0x2005, 0x100E].value)))
    return displayed


def agreement(datasets: Sequence[Dataset], values: NDArray[Any], affine_lps_mm: Array) -> Agreement:
    """Compare a volume with its sources, recognising each plane by its content.

    `values`: (i, j, k[, t]) on the value scale (RGB with a last axis of 3 is not for here).
    `affine_lps_mm`: (4, 4), voxel index to LPS mm.
    """
    known: dict[bytes, list[Dataset]] = {}
    for ds in datasets:
        known.setdefault(_fingerprint(slice_values(ds)), []).append(ds)
    worst, strangers, seen = 0.0, 0, set()
    planes = values[..., None] if values.ndim == 3 else values
    for k in range(planes.shape[2]):
        for t in range(planes.shape[3]):
            key = _fingerprint(planes[:, :, k, t].T)
            seen.add(key)
            candidates = known.get(key)
            if candidates is None:
                strangers += 1
                continue
            worst = max(worst, min(_displacement(ds, k, affine_lps_mm) for ds in candidates))
    if strangers:
        worst = math.inf
    return Agreement(worst, strangers, sum(key not in seen for key in known))


def _fingerprint(plane: NDArray[Any]) -> bytes:
    # float32 is what a scale that varies from slice to slice is kept in.
    return bytes(np.ascontiguousarray(plane, dtype=np.float32).tobytes())


def _displacement(ds: Dataset, k: int, affine_lps_mm: Array) -> float:
    columns, rows = int(ds.Columns), int(ds.Rows)
    corners = np.array([(i, j) for i in (0, columns - 1) for j in (0, rows - 1)], float)
    ones = np.ones(4)
    truth = slice_affine_lps_mm(ds) @ np.column_stack([corners, 0 * ones, ones]).T
    placed = affine_lps_mm @ np.column_stack([corners, k * ones, ones]).T
    return float(np.max(np.linalg.norm((truth - placed)[:3], axis=0)))
