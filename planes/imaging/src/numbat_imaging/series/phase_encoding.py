"""Phase encoding: along which image axis, in which direction, and how fast, from MR headers."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Literal

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.forms.siemens_csa import image_entry

InPlane = Literal["ROW", "COL"]

_XA_FRAME = "SIEMENS MR SDI 02"
_GE = "GEMS_PARM_01"
_TOP_DOWN, _BOTTOM_UP = 0, 2


def in_plane_axis(ds: Dataset) -> InPlane | None:
    """Whether phase is encoded along rows or down columns.

    Enhanced objects write COLUMN where single-frame ones write COL (PS3.3 C.8.13.5.3, C.8.3.1).
    """
    stated = elements.text(ds, "InPlanePhaseEncodingDirection")
    if stated == "ROW":
        return "ROW"
    return "COL" if stated in ("COL", "COLUMN") else None


def is_positive(ds: Dataset) -> bool | None:
    """Whether phase is encoded along growing row or column index; None where nothing states it.

    Siemens states it in CSA and, XA, in (0021,xx1C) of SIEMENS MR SDI 02; GE by the order of the
    lines in k-space, since RX27 in (0018,9034), before that in its user data; United Imaging in
    (0065,xx58) of Image Private Header. Philips and Canon do not say.
    Source: dcm2niix issues 163, 410, 674, checked against scans with known polarity.
    """
    maker = (elements.text(ds, "Manufacturer") or "").upper()
    if maker.startswith("SIEMENS"):
        return _siemens_sign(ds)
    if maker.startswith("GE"):
        return _ge_sign(ds)
    if maker.startswith("UIH"):
        stated = elements.private(ds, 0x0065, "Image Private Header", 0x58, vr="IS")
        return {0: True, 1: False}.get(_whole(stated))
    return None


def _siemens_sign(ds: Dataset) -> bool | None:
    stated = elements.private(ds, 0x0021, _XA_FRAME, 0x1C, vr="IS")
    if stated is None:
        stated = next(iter(image_entry(ds, "PhaseEncodingDirectionPositive")), None)
    return {0: False, 1: True}.get(_whole(stated))


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return -1


def _ge_sign(ds: Dataset) -> bool | None:
    # Only echo-planar readouts have a direction in which lines follow each other.
    if not is_echo_planar(ds):
        return None
    order = elements.text(ds, "RectilinearPhaseEncodeReordering")
    if order in ("LINEAR", "REVERSE_LINEAR"):
        return order == "REVERSE_LINEAR"
    content = elements.private(ds, 0x0043, _GE, 0x2A, vr="OB")
    return _ge_user_data(content) if isinstance(content, bytes) else None


def _ge_user_data(content: bytes) -> bool | None:
    """The polarity in GE's user data (0043,xx2A), which holds the head of its raw data files.

    Source: dcm2niix issue 163; the layout changed with revision 25.002.
    """
    try:
        (start,) = struct.unpack_from("<H", content, 24)
        (revision,) = struct.unpack_from("<f", content, start)
        if not 5.0 <= revision <= 40.0:
            return None
        is_late = revision >= 25.002
        base = start + (0x4C if is_late else 0)
        (flags,) = struct.unpack_from("<H", content, base + 0x3A)
        (polarity,) = struct.unpack_from("<H", content, base + 0x30)
        order: int
        (order,) = struct.unpack_from("<H", content, base + 0x394 - (0x8C if is_late else 0))
    except struct.error:
        return None
    # The bit marks echo-planar scans; orders other than top-down and bottom-up have no direction.
    if not flags & 0x800 or order not in (_TOP_DOWN, _BOTTOM_UP):
        return None
    is_flipped = bool(polarity & 0x4)
    return is_flipped is (order == _BOTTOM_UP)


def is_echo_planar(ds: Dataset) -> bool:
    """Whether one excitation reads several lines, as an echo-planar sequence does."""
    return (
        elements.text(ds, "EchoPlanarPulseSequence") == "YES"
        or "EP" in elements.texts(ds, "ScanningSequence")
        or "EPI_GEMS" in elements.texts(ds, "ScanOptions")
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """Lines along phase encoding: `acquired`, None where no element tells, and in the image."""

    acquired: int | None
    reconstructed: int


def acquired_lines(ds: Dataset) -> int | None:
    """Lines acquired along phase encoding, from the acquisition matrix or the steps in plane."""
    matrix = elements.integers(ds, "AcquisitionMatrix") or ()
    lines = [count for count in matrix[2:4] if count > 0] if len(matrix) == 4 else []
    steps = elements.integer(ds, "MRAcquisitionPhaseEncodingStepsInPlane")
    return lines[0] if lines else steps or None


def bandwidth_per_pixel_hz(ds: Dataset) -> float | None:
    """Siemens' bandwidth per pixel along phase encoding, in Hz; None without it.

    (0019,xx28) of SIEMENS MR HEADER, (0021,xx53) of SIEMENS MR SDI 02, or the CSA header. It has
    parallel imaging and interpolation in it.
    """
    stated = elements.private(ds, 0x0019, "SIEMENS MR HEADER", 0x28, vr="FD")
    if stated is None:
        stated = elements.private(ds, 0x0021, _XA_FRAME, 0x53, vr="FD")
    if stated is None:
        stated = next(iter(image_entry(ds, "BandwidthPerPixelPhaseEncode")), None)
    return _positive(stated)


def acceleration(ds: Dataset) -> float | None:
    """By how much parallel imaging shortens phase encoding in plane; None where nothing states it.

    ParallelReductionFactorInPlane, else GE's ASSET factor (0043,xx83), a fraction, or Siemens'
    PAT mode (0051,xx11), such as "p2s3".
    """
    stated = _positive(elements.decimal(ds, "ParallelReductionFactorInPlane"))
    if stated is not None:
        return stated
    fractions = elements.private(ds, 0x0043, _GE, 0x83, vr="DS")
    fraction = _positive(fractions[0] if isinstance(fractions, tuple) else fractions)
    if fraction is not None:
        return 1.0 / fraction
    mode = elements.private(ds, 0x0051, "SIEMENS MR HEADER", 0x11, vr="LO")
    digits = mode[1:].split("s")[0] if isinstance(mode, str) and mode.startswith("p") else ""
    return float(digits) if digits.isdigit() and int(digits) else None


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def total_readout_time_s(ds: Dataset, matrix: Matrix) -> float | None:
    """From the middle of the first echo to that of the last, in s, had all lines been acquired.

    What partial Fourier leaves out counts, what parallel imaging leaves out does not. None where no
    element states the spacing of echoes. Divided by (lines of the image - 1) it is the effective
    echo spacing.
    Source: BIDS, TotalReadoutTime; for GE, its (0043,xx2C) in microseconds and the rounding of
    lines as dcm2niix's notes on GE have them.
    """
    lines = matrix.reconstructed
    bandwidth = bandwidth_per_pixel_hz(ds)
    if bandwidth is not None:
        return (lines - 1) / (bandwidth * lines)
    if not (elements.text(ds, "Manufacturer") or "").upper().startswith("GE"):
        return None
    spacing_us = _positive(elements.private(ds, 0x0043, _GE, 0x2C, vr="SS"))
    if spacing_us is None or matrix.acquired is None or not is_echo_planar(ds):
        return None
    together = 4 if "PFF" in elements.texts(ds, "ScanOptions") else 2
    read = math.ceil(matrix.acquired / (acceleration(ds) or 1.0) / together - 1e-4) * together
    return (read - 1) * spacing_us * 1e-6
