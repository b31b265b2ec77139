"""A synthetic single-frame scan whose voxel values encode their own index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset, dcmwrite
from pydicom.dataset import FileMetaDataset
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian, RLELossless
from pydicom.valuerep import format_number_as_ds

from numbat_imaging.phantoms.modalities import (
    FOURTH_AXES,
    SOP_CLASSES,
    describe_modality,
    describe_volume,
)

Array = NDArray[np.float64]
Modality = Literal["CT", "MR", "PT", "SC"]

#: Step of the voxel code from slice to slice when the code has to wrap: odd, so that slices differ.
_SLICE_STEP = 4099


def derived_uid(*parts: object) -> str:
    """A UID of the 2.25 root that depends on `parts` alone."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return f"2.25.{int.from_bytes(digest[:15], 'big')}"


def decimal_text(value: float) -> str:
    """A number as DICOM DS text: at most 16 characters, as many digits as fit."""
    return format_number_as_ds(float(value))


@dataclass(frozen=True)
class Phantom:
    """A scan with known coordinates.

    `shape`: (columns, rows, slices), the sizes along i, j, k. `spacing_mm`: along i, j and between
    slices. `orientation`: six cosines, row direction then column direction, LPS. `origin_lps_mm`:
    centre of voxel (0, 0, 0). `step_lps_mm`: from slice to slice; None for spacing × normal.
    `volumes`: size of the fourth axis, which `fourth_axis` names (a key of
    `modalities.FOURTH_AXES`). `dtype`: type of the stored pixels, of which `bits_stored` bits are
    used. `slope` and `intercept`: rescale, or None for a file without. `samples`: 3 for RGB.

    A voxel (i, j, k, t) stores i + columns × (j + rows × (k + slices × t)), which is unique while
    it fits the stored bits, and wraps otherwise. The same phantom always gives the same bytes.
    """

    shape: tuple[int, int, int] = (32, 32, 10)
    spacing_mm: tuple[float, float, float] = (1.0, 1.0, 2.0)
    orientation: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    origin_lps_mm: tuple[float, float, float] = (-15.5, -20.25, 30.125)
    step_lps_mm: tuple[float, float, float] | None = None
    volumes: int = 1
    fourth_axis: str = "TemporalPositionIdentifier"
    modality: Modality = "MR"
    manufacturer: str = "NUMBAT"
    dtype: str = "uint16"
    bits_stored: int | None = None
    samples: int = 1
    slope: float | None = None
    intercept: float | None = None
    unit: str | None = None
    transfer_syntax_uid: str = ExplicitVRLittleEndian
    patient_id: str = "PHANTOM-1"
    patient_name: str = "Phantom^One"
    study: str = "study 1"
    series: str = "series 1"
    series_number: int = 5
    series_description: str = "phantom"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.fourth_axis not in FOURTH_AXES:
            raise KeyError(f"{self.fourth_axis} is not one of {sorted(FOURTH_AXES)}")

    @property
    def normal(self) -> Array:
        """Unit slice normal, row direction × column direction, LPS."""
        cosines = np.asarray(self.orientation, float)
        normal = np.cross(cosines[:3], cosines[3:])
        return np.asarray(normal / np.linalg.norm(normal))

    @property
    def step_mm(self) -> Array:
        """From one slice to the next, LPS mm."""
        if self.step_lps_mm is not None:
            return np.asarray(self.step_lps_mm, float)
        return self.spacing_mm[2] * self.normal

    @property
    def bits(self) -> int:
        """Bits used by a stored pixel."""
        return self.bits_stored or np.dtype(self.dtype).itemsize * 8

    def truth_affine_lps_mm(self) -> Array:
        """(4, 4), voxel index (i, j, k, 1) of a voxel centre to LPS mm, k in the order of the step.

        A step against the slice normal stays against it: a reader that orders slices along the
        normal returns them reversed (see `ascending`).
        """
        cosines = np.asarray(self.orientation, float)
        affine = np.eye(4)
        affine[:3, 0] = cosines[:3] * self.spacing_mm[0]
        affine[:3, 1] = cosines[3:] * self.spacing_mm[1]
        affine[:3, 2] = self.step_mm
        affine[:3, 3] = self.origin_lps_mm
        return affine

    def ascending(self) -> tuple[NDArray[Any], Array]:
        """(`truth_voxels`, `truth_affine_lps_mm`) with slices in upward order along the normal."""
        voxels, affine = self.truth_voxels(), self.truth_affine_lps_mm()
        if float(self.step_mm @ self.normal) < 0:
            affine[:3, 3] += (self.shape[2] - 1) * affine[:3, 2]
            affine[:3, 2] *= -1.0
            voxels = voxels[:, :, ::-1]
        return voxels, affine

    def truth_voxels(self) -> NDArray[Any]:
        """The stored voxels, (i, j, k) or (i, j, k, t); RGB as bytes on a last axis of length 3."""
        planes = [[self.plane(k, t) for k in range(self.shape[2])] for t in range(self.volumes)]
        block = np.array(planes)
        voxels = np.moveaxis(block, (3, 2, 1, 0), (0, 1, 2, 3))
        return voxels if self.volumes > 1 else voxels[:, :, :, 0]

    def plane(self, k: int, t: int = 0) -> NDArray[Any]:
        """The stored pixels of one slice, (rows, columns) or (rows, columns, 3)."""
        columns, rows, slices = self.shape
        within = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
        stack = k + slices * t
        limit = 1 << (self.bits * (3 if self.samples == 3 else 1))
        fits = rows * columns * slices * self.volumes <= limit
        code = within + stack * (rows * columns if fits else rows * columns + _SLICE_STEP)
        code %= limit
        if self.samples == 3:
            channels = [(code >> shift) & 255 for shift in (0, 8, 16)]
            return np.stack(channels, axis=-1).astype(np.uint8)
        if np.dtype(self.dtype).kind == "i":
            code = code - (limit >> 1)
        return code.astype(self.dtype)

    def uid(self, *parts: object) -> str:
        """A UID that depends on the seed and `parts`."""
        return derived_uid("numbat phantom", self.seed, *parts)

    def slices(self) -> list[Dataset]:
        """One dataset for each slice, volume after volume, with `file_meta` set."""
        return [ds for t in range(self.volumes) for ds in self.volume_slices(t)]

    def volume_slices(self, t: int) -> list[Dataset]:
        """The datasets of one volume."""
        return [self._slice(k, t) for k in range(self.shape[2])]

    def write(self, directory: str | PathLike[str]) -> list[Path]:
        """Write `slices()` as files; see `write_datasets`."""
        return write_datasets(self.slices(), directory)

    def _slice(self, k: int, t: int) -> Dataset:
        number = 1 + k + t * self.shape[2]
        ds = self._common(number)
        position = np.asarray(self.origin_lps_mm) + k * self.step_mm
        ds.ImagePositionPatient = [decimal_text(x) for x in position]
        ds.ImageOrientationPatient = [decimal_text(x) for x in self.orientation]
        ds.PixelSpacing = [decimal_text(self.spacing_mm[1]), decimal_text(self.spacing_mm[0])]
        ds.SliceThickness = decimal_text(self.spacing_mm[2])
        ds.SliceLocation = decimal_text(float(position @ self.normal))
        describe_modality(ds, self.modality)
        if self.volumes > 1:
            describe_volume(ds, self.fourth_axis, t=t, k=k, volumes=self.volumes)
        if self.slope is not None:
            ds.RescaleSlope = decimal_text(self.slope)
            ds.RescaleIntercept = decimal_text(self.intercept or 0.0)
        if self.unit is not None:
            ds.Units = self.unit
        self._pixels(ds, k, t)
        return ds

    def _common(self, number: int) -> Dataset:
        ds = Dataset()
        ds.SpecificCharacterSet = "ISO_IR 100"
        ds.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL" if self.modality == "CT" else "M"]
        ds.SOPClassUID = SOP_CLASSES[self.modality]
        ds.SOPInstanceUID = self.uid(self.series, number)
        ds.StudyDate = ds.SeriesDate = ds.AcquisitionDate = ds.ContentDate = "20200102"
        ds.StudyTime = ds.SeriesTime = ds.AcquisitionTime = ds.ContentTime = "101112"
        ds.AccessionNumber = ""
        ds.Modality = "OT" if self.modality == "SC" else self.modality
        ds.Manufacturer = self.manufacturer
        ds.ManufacturerModelName = "phantom"
        ds.SeriesDescription = self.series_description
        ds.PatientName, ds.PatientID = self.patient_name, self.patient_id
        ds.PatientBirthDate, ds.PatientSex = "19700101", "O"
        ds.PatientPosition = "HFS"
        ds.StudyInstanceUID = self.uid(self.study)
        ds.SeriesInstanceUID = self.uid(self.study, self.series)
        ds.FrameOfReferenceUID = self.uid(self.study, "frame of reference")
        ds.StudyID, ds.SeriesNumber, ds.InstanceNumber = "1", self.series_number, number
        ds.AcquisitionNumber = 1
        ds.file_meta = FileMetaDataset()
        ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
        ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
        ds.file_meta.TransferSyntaxUID = UID(self.transfer_syntax_uid)
        return ds

    def _pixels(self, ds: Dataset, k: int, t: int) -> None:
        plane = self.plane(k, t)
        ds.Rows, ds.Columns = plane.shape[:2]
        ds.SamplesPerPixel = self.samples
        ds.PhotometricInterpretation = "RGB" if self.samples == 3 else "MONOCHROME2"
        if self.samples == 3:
            ds.PlanarConfiguration = 0
        ds.BitsAllocated = plane.dtype.itemsize * 8
        ds.BitsStored, ds.HighBit = self.bits, self.bits - 1
        ds.PixelRepresentation = int(plane.dtype.kind == "i")
        set_pixels(ds, plane)


def set_pixels(ds: Dataset, plane: NDArray[Any]) -> None:
    """Put a plane into PixelData in the byte order or encoding of the transfer syntax."""
    syntax = ds.file_meta.TransferSyntaxUID
    data = plane.astype(plane.dtype.newbyteorder(_order(ds))).tobytes()
    ds.PixelData = data + b"\0" * (len(data) % 2)
    ds["PixelData"].VR = "OB" if plane.dtype.itemsize == 1 else "OW"
    if syntax.is_encapsulated:
        ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        ds.compress(syntax, generate_instance_uid=False)


def get_pixels(ds: Dataset) -> NDArray[Any]:
    """The stored pixels of an uncompressed dataset, (rows, columns[, samples])."""
    order = _order(ds)
    kind = "i" if ds.PixelRepresentation else "u"
    dtype = np.dtype(f"{order}{kind}{ds.BitsAllocated // 8}")
    shape = (ds.Rows, ds.Columns) + ((3,) if ds.SamplesPerPixel == 3 else ())
    count = int(np.prod(shape))
    data = ds.PixelData
    if ds.BitsAllocated == 8 and order == ">" and ds["PixelData"].VR == "OW":
        data = np.frombuffer(data, "u2").byteswap().tobytes()
    return np.frombuffer(data, dtype, count=count).reshape(shape).astype(dtype.newbyteorder("="))


def _order(ds: Dataset) -> Literal["<", ">"]:
    return ">" if ds.file_meta.TransferSyntaxUID == ExplicitVRBigEndian else "<"


def write_datasets(datasets: Sequence[Dataset], directory: str | PathLike[str]) -> list[Path]:
    """Write each dataset as a DICOM file "IM0001", "IM0002" … in the order given.

    The names carry no suffix, as on scanner media. The same datasets always give the same bytes.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    paths = list(_names(folder, len(datasets)))
    for path, ds in zip(paths, datasets, strict=True):
        _write(path, ds)
    return paths


def _write(path: Path, ds: Dataset) -> None:
    """Write one file, also in a syntax that pydicom does not know or that its pixels contradict."""
    syntax, stand_in = ds.file_meta.TransferSyntaxUID, _written_as(ds)
    if syntax == stand_in:
        dcmwrite(path, ds, enforce_file_format=True)
        return
    file = BytesIO()
    ds.file_meta.TransferSyntaxUID = stand_in
    dcmwrite(file, ds, enforce_file_format=True)
    ds.file_meta.TransferSyntaxUID = syntax
    path.write_bytes(_renamed(file.getvalue(), stand_in, syntax))


def _written_as(ds: Dataset) -> UID:
    """The transfer syntax that pydicom writes the elements of a dataset in."""
    syntax: UID = ds.file_meta.TransferSyntaxUID
    if "PixelData" not in ds:
        return syntax
    fragments = bytes(ds.PixelData[:4]) == b"\xfe\xff\x00\xe0"
    if syntax.is_transfer_syntax and not syntax.is_private:
        fitting = syntax.is_encapsulated == fragments or syntax.is_deflated
        if fitting:
            return syntax
    return RLELossless if fragments else ExplicitVRLittleEndian


def _renamed(file: bytes, old: str, new: str) -> bytes:
    """A file whose meta information names another transfer syntax."""

    def element(uid: str) -> bytes:
        value = uid.encode() + b"\0" * (len(uid) % 2)
        return b"\x02\x00\x10\x00UI" + len(value).to_bytes(2, "little") + value

    at, was, now = file.index(element(old)), element(old), element(new)
    length = int.from_bytes(file[140:144], "little") + len(now) - len(was)
    return file[:140] + length.to_bytes(4, "little") + file[144:at] + now + file[at + len(was) :]


def _names(folder: Path, count: int) -> Iterator[Path]:
    for index in range(count):
        yield folder / f"IM{index + 1:04d}"
