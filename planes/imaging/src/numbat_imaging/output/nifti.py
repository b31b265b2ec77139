"""NIfTI-1 and NIfTI-2: the door where LPS becomes RAS."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import nibabel
import numpy as np
from isal import igzip, isal_zlib
from nibabel.spatialimages import HeaderDataError
from nibabel.wrapstruct import WrapStructError
from numpy.typing import NDArray

from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.geometry.reorientation import turn_since_read
from numbat_imaging.intake import elements
from numbat_imaging.output.publishing import brought_to_disk, publish
from numbat_imaging.series.phase_encoding import in_plane_axis
from numbat_registries import refuse

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from numbat_imaging.volume import Volume

Array = NDArray[np.float64]

# nibabel's and isal's functions carry no types; they are named here and nowhere else.
_HEADER_1: Any = nibabel.Nifti1Header
_HEADER_2: Any = nibabel.Nifti2Header
_GZIP_OPEN: Any = igzip.open
_ISAL_ERROR: Any = isal_zlib.IsalError

_READ_FAULTS = (OSError, EOFError, ValueError, HeaderDataError, WrapStructError, _ISAL_ERROR)

#: How far a voxel centre may move by what the file format rounds.
AFFINE_LIMIT_MM = 1e-3
#: How much of a value the file format may round away.
SCALE_LIMIT = 1e-6

_SCANNER = 1  # NIFTI_XFORM_SCANNER_ANAT
_NIFTI_1_LIMIT = 32767  # dim is int16
_LEVEL = 1
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """Published files by name, and the SHA-256 of each; iterating gives the names."""

    directory: Path
    digests: dict[str, str]

    def __iter__(self) -> Iterator[str]:
        return iter(self.digests)

    def __len__(self) -> int:
        return len(self.digests)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(self.directory / name for name in self.digests)


def affine_ras_mm(volume: Volume) -> Array:
    """(4, 4), index of a voxel as written (rows flipped) to NIfTI RAS mm.

    The flip of j makes the first row the lowest one, as other converters write it; a volume that
    was turned to axes of the caller's choice is written in their order.
    """
    flip = np.eye(4)
    if volume.axes is None:
        flip[1, 1], flip[1, 3] = -1.0, volume.voxels.shape[1] - 1.0
    affine: Array = LPS_TO_RAS @ volume.affine_lps_mm @ flip
    return affine


def write_nifti(
    volume: Volume,
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
    nifti_version: int | None = None,
    compress: bool | None = None,
) -> Written:
    """Write one volume as a single NIfTI file, checked before it gets its name.

    Voxels keep their stored type and values; the value scale goes into scl_slope and scl_inter.
    `nifti_version`: 1 or 2; None for 1 where it holds the volume, and 2 otherwise. `compress`: None
    to go by the name (".nii.gz").

    Raises IMG-1701 when the file exists, IMG-1702 when it cannot be written, IMG-1703 for a bad
    name, IMG-1704 when what was written does not read back as it should, IMG-1705 when NIfTI-1 was
    asked for and cannot hold the volume.
    """
    target = Path(path)
    packed = target.name.endswith(".gz") if compress is None else compress
    with publish(target.parent, overwrite=overwrite) as publication:
        prepared = publication.path(target.name)
        digest = write_file(volume, prepared, nifti_version=nifti_version, compress=packed)
    return Written(target.parent, {target.name: digest})


def write_file(volume: Volume, path: Path, *, nifti_version: int | None, compress: bool) -> str:
    """Write and check one NIfTI file at `path`, without publishing it; gives its `file_digest`.

    Raises IMG-1704 and IMG-1705 as `write_nifti` does.
    """
    affine = affine_ras_mm(volume)
    header = nifti_header(volume, affine, nifti_version=nifti_version)
    crc, size = 0, 0
    with _opened(path, compress) as stream:
        for data in _blocks(volume, header):
            stream.write(data)
            crc, size = isal_zlib.crc32(data, crc), size + data.nbytes
    # The disk works while the file is read back.
    with brought_to_disk(path):
        return check_file(path, affine=affine, shape=volume.voxels.shape, crc=crc, size=size)


def nifti_header(volume: Volume, affine: Array, *, nifti_version: int | None) -> Any:
    """The nibabel header of a volume whose voxels are written with `affine` (RAS mm).

    Raises IMG-1705 when NIfTI-1 is asked for and cannot hold it.
    """
    reasons = _beyond_nifti_1(volume, affine)
    if reasons and nifti_version == 1:
        raise refuse("IMG-1705", reasons=reasons)
    wide = nifti_version == 2 or bool(reasons)
    header: Any = _HEADER_2() if wide else _HEADER_1()
    header.set_data_dtype(volume.voxels.dtype)
    header.set_data_shape(volume.voxels.shape)
    header.set_sform(affine, code=_SCANNER)
    header.set_zooms(_zooms(volume, affine))
    header.set_xyzt_units("mm", "sec" if _is_time(volume) else None)
    header.set_qform(affine, code=_SCANNER, strip_shears=True)
    if corner_distance_mm(header.get_qform(), affine, volume.voxels.shape) > AFFINE_LIMIT_MM:
        # A quaternion cannot hold a shear; without the qform no reader takes the stack for square.
        header.set_qform(None, code=0)
    header.set_slope_inter(volume.scale.slope, volume.scale.intercept)
    header["descrip"] = f"numbat {distribution_version('numbat-imaging')}".encode()
    _set_encoding_axes(header, volume)
    header["magic"] = header.single_magic
    header["vox_offset"] = header.single_vox_offset
    return header


def _beyond_nifti_1(volume: Volume, affine: Array) -> list[str]:
    reasons = []
    if max(volume.voxels.shape) > _NIFTI_1_LIMIT:
        reasons.append(f"a dimension is larger than {_NIFTI_1_LIMIT}")
    narrow = affine.astype(np.float32).astype(np.float64)
    if corner_distance_mm(narrow, affine, volume.voxels.shape) > AFFINE_LIMIT_MM:
        reasons.append("the coordinates need more digits than single precision has")
    scale = np.array([volume.scale.slope, volume.scale.intercept])
    with np.errstate(over="ignore", under="ignore"):
        rounded = scale.astype(np.float32).astype(np.float64)
    if np.any(np.abs(rounded - scale) > SCALE_LIMIT * np.abs(scale)):
        reasons.append("the value scale needs more digits than single precision has")
    return reasons


def corner_distance_mm(first: Array, second: Array, shape: tuple[int, ...]) -> float:
    """Largest distance between where two affines put a corner voxel of an image."""
    ends = [(0.0, size - 1.0) for size in shape[:3]]
    corners = np.array([(i, j, k, 1.0) for i in ends[0] for j in ends[1] for k in ends[2]])
    return float(np.max(np.linalg.norm(((first - second) @ corners.T)[:3], axis=0)))


def _is_time(volume: Volume) -> bool:
    return volume.fourth_axis is not None and volume.fourth_axis.name == "time"


def _zooms(volume: Volume, affine: Array) -> list[float]:
    zooms = [float(np.linalg.norm(affine[:3, axis])) for axis in range(3)]
    if volume.voxels.ndim == 4:
        zooms.append(volume_interval_s(volume) or 0.0)
    return zooms


def volume_interval_s(volume: Volume) -> float | None:
    """Time from one volume to the next in seconds; None where the axis is not time or unknown."""
    axis = volume.fourth_axis
    if axis is None or axis.name != "time":
        return None
    if axis.unit in ("s", "ms"):
        steps = np.diff(np.asarray(axis.values)) * (1e-3 if axis.unit == "ms" else 1.0)
        return float(np.median(steps))
    repetition_ms = elements.decimal(volume.header, "RepetitionTime")
    return None if repetition_ms is None else repetition_ms / 1000


def _set_encoding_axes(header: Any, volume: Volume) -> None:
    """Frequency, phase and slice axis, where the axes of the slices as read are still axes."""
    axes = [None if to is None else to[0] for to in turn_since_read(volume)]
    in_plane = {"ROW": (axes[1], axes[0]), "COL": (axes[0], axes[1])}
    freq, phase = in_plane.get(in_plane_axis(volume.header) or "", (None, None))
    header.set_dim_info(freq=freq, phase=phase, slice=axes[2])


def _blocks(volume: Volume, header: Any) -> Iterator[memoryview]:
    """The bytes of a file: header, and planes with i fastest and rows flipped, some at a time."""
    yield memoryview(header.binaryblock.ljust(int(header["vox_offset"]), b"\0"))
    voxels = volume.voxels if volume.voxels.ndim == 4 else volume.voxels[..., None]
    dtype, rows = voxels.dtype.newbyteorder(header.endianness), -1 if volume.axes is None else 1
    step = max(1, _CHUNK_BYTES // (voxels[:, :, 0, 0].size * dtype.itemsize))
    for t in range(voxels.shape[3]):
        for k in range(0, voxels.shape[2], step):
            stored = np.ascontiguousarray(voxels[:, ::rows, k : k + step, t].T, dtype)
            yield stored.reshape(-1).view(np.uint8).data


class _Gzip:
    """A gzip stream with no name and no time in its header: the same voxels give the same bytes."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._packer = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, 31)

    def write(self, data: memoryview) -> None:
        self._raw.write(self._packer.compress(data))

    def __enter__(self) -> _Gzip:
        return self

    def __exit__(self, *problem: object) -> None:
        if problem[0] is None:
            self._raw.write(self._packer.flush())
        self._raw.close()


def _opened(path: Path, compress: bool) -> Any:
    raw = path.open("xb")
    return _Gzip(raw) if compress else raw


def check_file(path: Path, *, affine: Array, shape: tuple[int, ...], crc: int, size: int) -> str:
    """Read a written file back and compare it with what was meant; gives its `file_digest`.

    `crc`, `size`: CRC-32 and length of the whole uncompressed file. The affine is the one that a
    reader (nibabel) derives.

    Raises IMG-1704 with what differs.
    """
    found_crc, found_size = 0, 0
    try:
        with _Digested(path) as raw, _content(raw) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                found_crc, found_size = isal_zlib.crc32(chunk, found_crc), found_size + len(chunk)
        header = _read_header(path)
    except _READ_FAULTS as error:
        raise refuse("IMG-1704", differs=["readable"], fault=type(error).__name__) from error
    found = header.get_best_affine()
    same = {
        "bytes": (found_crc, found_size) == (crc, size),
        "shape": tuple(header.get_data_shape()) == tuple(shape),
        "affine": corner_distance_mm(found, affine, shape) <= AFFINE_LIMIT_MM,
        "qform": int(header["qform_code"]) == 0
        or corner_distance_mm(header.get_qform(), affine, shape) <= AFFINE_LIMIT_MM,
    }
    differs = [name for name, right in same.items() if not right]
    if differs:
        raise refuse("IMG-1704", differs=differs, fault="not as written")
    return raw.digest


class _Digested(io.FileIO):
    """A file that is read once from start to end, and the SHA-256 of what was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._sha256 = hashlib.sha256()

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = super().readinto(buffer)
        self._sha256.update(memoryview(buffer).cast("B")[:count])
        return count

    @property
    def digest(self) -> str:
        """As `file_digest` gives it."""
        return f"sha256:{self._sha256.hexdigest()}"


def _content(raw: io.FileIO) -> Any:
    start = os.pread(raw.fileno(), 2, 0)
    whole = io.BufferedReader(raw, _CHUNK_BYTES)
    return _GZIP_OPEN(whole, "rb") if start == b"\x1f\x8b" else whole


def _read_header(path: Path) -> Any:
    with path.open("rb", buffering=0) as raw, _content(raw) as stream:
        start = stream.read(4)
        stream.seek(0)
        wide = start in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c")
        return (_HEADER_2 if wide else _HEADER_1).from_fileobj(stream)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, as "sha256:" and hexadecimal digits."""
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
