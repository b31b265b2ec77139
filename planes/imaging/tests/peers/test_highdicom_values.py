"""highdicom and pydicom as peers for value scales: equal stored values become equal values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom import Dataset
from pydicom.pixels import apply_modality_lut, apply_rescale

from numbat_imaging import Volume, read_series
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.value_faults import (
    real_world_item,
    with_modality_lut,
    with_real_world,
    with_values,
)

highdicom = pytest.importorskip("highdicom", reason="highdicom is not installed")

SMALL = Phantom(shape=(8, 6, 4))
SIGNED = replace(SMALL, dtype="int16", bits_stored=8)
RAMP = [5 * code + 11 for code in range(192)]


def scan(folder: Path, slices: list[Dataset], **options: Any) -> tuple[Volume, list[Path]]:
    """The volume of these slices, and their files in upward order."""
    paths = write_datasets(slices, folder)
    return read_series(folder, **options), paths


def of_highdicom(paths: list[Path], **options: Any) -> Any:
    """Frame 1 of each file by highdicom, (i, j, k)."""
    frames = [highdicom.imread(path).get_frame(1, dtype=np.float64, **options) for path in paths]
    return np.stack([frame.T for frame in frames], axis=-1)


@pytest.mark.parametrize(
    ("phantom", "first", "entries"),
    [
        (SMALL, 0, RAMP),
        (SMALL, 40, RAMP[:100]),
        (SIGNED, -128, RAMP),
        (SIGNED, -100, RAMP[:50]),
    ],
)
def test_a_modality_lut_gives_the_peers_values(
    phantom: Phantom, first: int, entries: list[int], tmp_path: Path
) -> None:
    slices = with_modality_lut(first, entries)(phantom.slices())
    if first < 0:
        # pydicom goes by the VR alone.
        for ds in slices:
            item = ds.ModalityLUTSequence[0]
            item.add_new("LUTDescriptor", "SS", [len(entries), first, 16])
    volume, paths = scan(tmp_path, slices)
    for k, path in enumerate(paths):
        ds = pydicom.dcmread(path)
        truth = apply_modality_lut(ds.pixel_array, ds)
        np.testing.assert_array_equal(volume.values()[:, :, k].T, truth)


def test_highdicom_looks_a_modality_lut_up_alike(tmp_path: Path) -> None:
    slices = with_modality_lut(0, RAMP)(SMALL.slices())
    volume, paths = scan(tmp_path, slices)
    peer = of_highdicom(paths, apply_modality_transform=True, apply_real_world_transform=False)
    np.testing.assert_array_equal(volume.values(), peer)


def test_a_rescale_gives_the_peers_values(tmp_path: Path) -> None:
    slices = with_values(RescaleSlope="0.37", RescaleIntercept="-12.5")(SMALL.slices())
    slices[2].RescaleSlope = "1.9"
    volume, paths = scan(tmp_path, slices)
    for k, path in enumerate(paths):
        ds = pydicom.dcmread(path)
        truth = apply_rescale(ds.pixel_array, ds).astype(np.float32)
        np.testing.assert_array_equal(volume.values()[:, :, k].T, truth)


@pytest.mark.parametrize(("phantom", "low"), [(SMALL, 0), (SIGNED, -128)])
@pytest.mark.parametrize("label", ["line", "table"])
def test_a_real_world_map_gives_highdicoms_values(
    phantom: Phantom, low: int, label: str, tmp_path: Path
) -> None:
    ends = (low, low + 191)
    squares = [0.1 * code**2 for code in range(192)]
    vr = "SS" if low else "US"
    line = real_world_item("line", "ms", ends, line=(0.25, -3.0), vr=vr)
    table = real_world_item("table", "s", ends, table=squares, vr=vr)
    slices = with_real_world(line, table)(phantom.slices())
    volume, paths = scan(tmp_path, slices, value_scale=f"real-world:{label}")
    peer = of_highdicom(paths, apply_real_world_transform=True, real_world_value_map_selector=label)
    np.testing.assert_allclose(volume.values(), peer, rtol=1e-12)
    assert volume.scale.unit == {"line": "ms", "table": "s"}[label]
