"""Real files of every form, plane by plane: content and place as the file itself has them."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_gates import Check, gate
from numbat_imaging.intake.files import FileRef
from numbat_imaging.phantoms import slice_affine_lps_mm
from numbat_imaging.volume import SourceSlice, Volume, read_volumes
from numbat_registries import Refusal

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"

#: Files in pydicom's wheel that are one volume each.
_ALONE = ("CT_small.dcm", "MR_small.dcm", "rtdose.dcm")

#: Sets of the corpus and the fewest volumes that their files must give.
_SETS = {
    "dcm2niix_qa": 36,
    "dicom2nifti_cases": 7,
    "dcmqi_cases": 3,
    "highdicom_files": 1,
    "rt_objects": 1,
    "encapsulation": 10,
}


@gate(
    "IMG-G34",
    phase=2,
    discharges=["IMG-R034"],
    title="Each plane of every real file lies where the file says",
)
def real_forms(check: Check) -> None:
    for name in _ALONE:
        _hold(check, name, _read([check.data(_BUNDLED / name)]))
    for name, fewest in _SETS.items():
        folder = check.corpus(f"imaging/{name}", clauses=["IMG-R034.scans"])
        if folder is None:
            continue
        volumes = [volume for group in _groups(folder) for volume in _read(group)]
        check.at_least(f"volumes of {name}", len(volumes), fewest)
        _hold(check, name, volumes)


def _groups(folder: Path) -> Iterator[list[Path]]:
    """The files of each folder together; one by one where together they are refused."""
    for place in sorted({path.parent for path in folder.rglob("*") if path.is_file()}):
        files = sorted(path for path in place.iterdir() if path.is_file())
        try:
            read_volumes(files)
        except Refusal:
            yield from ([file] for file in files)
        else:
            yield files


def _read(files: list[Path]) -> list[Volume]:
    try:
        return read_volumes(files)
    except Refusal:
        return []


def _hold(check: Check, name: str, volumes: list[Volume]) -> None:
    found = [_off(volume, source) for volume in volumes for source in volume.sources]
    known = [one for one in found if one is not None]
    check.at_least(f"{name}: planes compared", len(known), 1)
    check.at_most(f"{name}: displacement", max((mm for mm, _ in known), default=0.0), 0.05, "mm")
    check.equal(f"{name}: planes with other values", sum(not same for _, same in known), 0)


def _off(volume: Volume, source: SourceSlice) -> tuple[float, bool] | None:
    """How far a plane lies from where its file puts it, and whether its stored values are equal."""
    described = _described(source.ref, source.frame)
    if described is None or volume.scale.applied:
        return None
    ds, plane = described
    size_i, size_j = volume.voxels.shape[:2]
    corners = np.array([[i, j, 0, 1] for i in (0, size_i - 1) for j in (0, size_j - 1)], float)
    truth = (slice_affine_lps_mm(ds) @ corners.T)[:3]
    placed = (volume.affine_lps_mm @ (corners + np.array([0, 0, source.k, 0])).T)[:3]
    off_mm = float(np.linalg.norm(truth - placed, axis=0).max())
    where = (slice(None), slice(None), source.k)
    mine = volume.voxels[(*where, source.t) if volume.voxels.ndim == 4 else where].T
    if mine.dtype.fields is not None:
        mine = np.stack([mine[channel] for channel in "RGB"], axis=-1)
    return off_mm, bool(np.array_equal(mine, plane))


def _described(ref: FileRef, frame: int) -> tuple[Dataset, NDArray[Any]] | None:
    """One frame as pydicom reads it, with its geometry at the top level; None for tiled forms."""
    ds, pixels = _file(ref)
    if "MOSAIC" in ds.get("ImageType", []) and "PerFrameFunctionalGroupsSequence" not in ds:
        return None
    frames = int(ds.get("NumberOfFrames") or 1)
    plane = pixels[frame] if frames > 1 else pixels
    one = Dataset()
    if "PerFrameFunctionalGroupsSequence" in ds:
        own = ds.PerFrameFunctionalGroupsSequence[frame]
        shared = ds.SharedFunctionalGroupsSequence[0]
        one.ImagePositionPatient = _of(own, shared, "PlanePosition").ImagePositionPatient
        one.ImageOrientationPatient = _of(own, shared, "PlaneOrientation").ImageOrientationPatient
        one.PixelSpacing = _of(own, shared, "PixelMeasures").PixelSpacing
        return one, plane
    one.ImageOrientationPatient, one.PixelSpacing = ds.ImageOrientationPatient, ds.PixelSpacing
    position = np.array([float(x) for x in ds.ImagePositionPatient])
    if frames > 1:
        cosines = [float(x) for x in ds.ImageOrientationPatient]
        offsets = [float(x) for x in ds.GridFrameOffsetVector]
        position += (offsets[frame] - offsets[0]) * np.cross(cosines[:3], cosines[3:])
    one.ImagePositionPatient = position.tolist()
    return one, plane


def _of(own: Dataset, shared: Dataset, macro: str) -> Dataset:
    held = own if f"{macro}Sequence" in own else shared
    item: Dataset = held[f"{macro}Sequence"].value[0]
    return item


@lru_cache(maxsize=2)
def _file(ref: FileRef) -> tuple[Dataset, NDArray[Any]]:
    with ref.open() as stream:
        ds = pydicom.dcmread(stream, force=True)
    pixels = ds.pixel_array
    unused = ds.BitsAllocated - ds.BitsStored
    if unused:
        pixels = (pixels << (ds.BitsAllocated - 1 - ds.HighBit)) >> unused
    return ds, pixels
