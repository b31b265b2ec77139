"""What BIDS asks of MR timing and phase encoding, in the axes of the image as it is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.output.nifti import volume_interval_s
from numbat_imaging.output.numbers import plain
from numbat_imaging.series.phase_encoding import (
    InPlane,
    Matrix,
    acceleration,
    acquired_lines,
    bandwidth_per_pixel_hz,
    in_plane_axis,
    is_echo_planar,
    is_positive,
    total_readout_time_s,
)
from numbat_imaging.series.slice_order import pause_ms
from numbat_registries import Diagnostic, notice

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

Part = Callable[["Volume", list[Diagnostic]], dict[str, Any]]

#: How far the clock of volumes may run from a stated RepetitionTime: rounding, and a share of it.
_CLOCK_S, _SHARE = 0.011, 0.005


def clock_text(stated: str | None) -> str | None:
    """The clock of a DICOM TM or DT as hh:mm:ss.ffffff, without its date; None for neither."""
    found = re.fullmatch(
        r"(?:\d{8})?(\d\d)(\d\d)(\d\d)(?:\.(\d{1,6}))?(?:[+-]\d{4})?", stated or ""
    )
    if found is None:
        return None
    hours, minutes, seconds, fraction = found.groups()
    return f"{hours}:{minutes}:{seconds}.{(fraction or '0'):0<6}"


def _began(volume: Volume, _: list[Diagnostic]) -> dict[str, Any]:
    began = clock_text(volume.timing.began)
    return {} if began is None else {"AcquisitionTime": began}


def _volume_times(volume: Volume, found: list[Diagnostic]) -> dict[str, Any]:
    modality, starts = elements.text(volume.header, "Modality"), _starts_s(volume)
    if modality == "MR":
        return _repetition(volume.header, starts, found)
    if starts is None:
        return {}
    return {"FrameTimesStart" if modality == "PT" else "VolumeTiming": starts}


def _is_as_acquired(volume: Volume) -> bool:
    """Whether the axes of the volume are those of the images that its header describes.

    A volume that was turned or resampled since has other rows, columns and slices.
    """
    if volume.axes is not None or volume.as_read is not None:
        return False
    cosines = elements.decimals(volume.header, "ImageOrientationPatient", count=6)
    spacing = elements.decimals(volume.header, "PixelSpacing", count=2)
    if cosines is None or spacing is None:
        return False
    stated = np.column_stack(
        [np.multiply(cosines[:3], spacing[1]), np.multiply(cosines[3:], spacing[0])]
    )
    found = volume.affine_lps_mm[:3, :2]
    upward = float(np.cross(cosines[:3], cosines[3:]) @ volume.affine_lps_mm[:3, 2]) > 0
    return upward and bool(np.allclose(found, stated, rtol=0, atol=1e-3 * max(spacing)))


def _starts_s(volume: Volume) -> list[float | int] | None:
    axis, interval_s = volume.fourth_axis, volume_interval_s(volume)
    if axis is None or interval_s is None or axis.unit not in ("s", "ms"):
        return None
    scale = 1e-3 if axis.unit == "ms" else 1.0
    return [plain((value - axis.values[0]) * scale) for value in axis.values]


def _repetition(
    header: Dataset, starts: list[float | int] | None, found: list[Diagnostic]
) -> dict[str, Any]:
    stated_ms = elements.decimal(header, "RepetitionTime")
    if stated_ms is None:
        return {} if starts is None else {"VolumeTiming": starts}
    repetition_s = (stated_ms + _group_delay_ms(header)) / 1000
    if starts is None or _keeps(starts, repetition_s):
        pause = pause_ms(header)
        body = {"RepetitionTime": plain(repetition_s)}
        return body if pause is None else {**body, "DelayTime": plain(pause / 1000)}
    interval_s = float(np.median(np.diff(starts)))
    found.append(notice("IMG-1712", repetition_s=plain(repetition_s), interval_s=plain(interval_s)))
    return {"VolumeTiming": starts, "RepetitionTimeExcitation": plain(repetition_s)}


def _group_delay_ms(header: Dataset) -> float:
    """GE's delay after each volume of an fMRI scan, which its RepetitionTime leaves out."""
    delay_s = elements.private(header, 0x0043, "GEMS_PARM_01", 0x7C, vr="FL")
    return delay_s * 1000.0 if isinstance(delay_s, int | float) and delay_s > 0 else 0.0


def _keeps(starts: list[float | int], repetition_s: float) -> bool:
    """Whether volumes that began at `starts` follow each other at this interval."""
    # Some scanners write whole seconds.
    rounded = 1.0 if all(float(start).is_integer() for start in starts) else _CLOCK_S
    return all(
        abs(start - t * repetition_s) <= rounded + _SHARE * t * repetition_s
        for t, start in enumerate(starts)
    )


def _slices(volume: Volume, _: list[Diagnostic]) -> dict[str, Any]:
    times = volume.timing.slice_times_s
    if times is not None and not (_is_as_acquired(volume) and len(times) == volume.voxels.shape[2]):
        times = None
    factor = _multiband(volume.header, times)
    body: dict[str, Any] = {} if factor is None else {"MultibandAccelerationFactor": factor}
    return body if times is None else {**body, "SliceTiming": [plain(t) for t in times]}


def _multiband(header: Dataset, times: tuple[float, ...] | None) -> int | None:
    """How many slices are excited at once: as GE states it, or as the slice times show it."""
    stated = elements.private(header, 0x0043, "GEMS_PARM_01", 0xB6, vr="LO")
    first = stated[0] if isinstance(stated, tuple) else stated
    if isinstance(first, str) and first.isdigit() and int(first) > 1:
        return int(first)
    counts = set(Counter(times or ()).values())
    together = counts.pop() if len(counts) == 1 else 1
    return together if 1 < together < len(times or ()) else None


def _lines(volume: Volume, _: list[Diagnostic]) -> dict[str, Any]:
    axis = _encoded_axis(volume)
    if axis is None:
        return {}
    matrix = _matrix(volume, axis)
    body = {"InPlanePhaseEncodingDirectionDICOM": axis, "ReconMatrixPE": matrix.reconstructed}
    return body if matrix.acquired is None else {**body, "AcquisitionMatrixPE": matrix.acquired}


def _encoded_axis(volume: Volume) -> InPlane | None:
    axis = in_plane_axis(volume.header) if _is_mr(volume) else None
    return axis if axis is None or _is_as_acquired(volume) else None


def _is_mr(volume: Volume) -> bool:
    return elements.text(volume.header, "Modality") == "MR"


def _matrix(volume: Volume, axis: InPlane) -> Matrix:
    lines = volume.voxels.shape[0 if axis == "ROW" else 1]
    return Matrix(acquired_lines(volume.header), lines)


def _acceleration(volume: Volume, _: list[Diagnostic]) -> dict[str, Any]:
    factor = acceleration(volume.header) if _is_mr(volume) else None
    return {} if factor is None else {"ParallelReductionFactorInPlane": plain(factor)}


def _direction(volume: Volume, found: list[Diagnostic]) -> dict[str, Any]:
    header, axis = volume.header, _encoded_axis(volume)
    if axis is None or _is_3d(header):
        # Headers describe one of the two directions of a 3D scan; nothing is said of either.
        return {}
    letter, positive = "i" if axis == "ROW" else "j", is_positive(header)
    if positive is not None:
        # The file flips j: what runs down the columns runs against it.
        is_along = positive == (axis == "ROW")
        return {"PhaseEncodingDirection": letter if is_along else f"{letter}-"}
    if is_echo_planar(header):
        maker = elements.text(header, "Manufacturer") or ""
        found.append(notice("IMG-1713", axis=letter, manufacturer=maker))
    return {"PhaseEncodingAxis": letter}


def _is_3d(header: Dataset) -> bool:
    return elements.text(header, "MRAcquisitionType") == "3D"


def _readout(volume: Volume, _: list[Diagnostic]) -> dict[str, Any]:
    header, axis = volume.header, _encoded_axis(volume)
    if axis is None or _is_3d(header):
        return {}
    matrix, bandwidth = _matrix(volume, axis), bandwidth_per_pixel_hz(header)
    body = {} if bandwidth is None else {"BandwidthPerPixelPhaseEncode": plain(bandwidth)}
    total_s = total_readout_time_s(header, matrix)
    if total_s is None or matrix.reconstructed < 2:
        return body
    return {
        **body,
        "EffectiveEchoSpacing": plain(total_s / (matrix.reconstructed - 1)),
        "TotalReadoutTime": plain(total_s),
    }


#: Parts of a sidecar by the name that is told when one cannot be read. Times in s. BIDS means by
#: RepetitionTime the time from volume to volume: where their clock contradicts the header's,
#: VolumeTiming holds the clock, RepetitionTimeExcitation the header's value, and IMG-1712 says so.
#: SliceTiming is in the order of the third axis. PhaseEncodingDirection is "i" or "j", with "-"
#: where phase is encoded against that axis of the written image; without a stated sign it is
#: PhaseEncodingAxis, and IMG-1713 says so for echo-planar scans, which hang on it.
PARTS: Mapping[str, Part] = {
    "AcquisitionTime": _began,
    "RepetitionTime": _volume_times,
    "SliceTiming": _slices,
    "AcquisitionMatrixPE": _lines,
    "ParallelReductionFactorInPlane": _acceleration,
    "PhaseEncodingDirection": _direction,
    "TotalReadoutTime": _readout,
}
