"""Slices that a vendor lays out as tiles of one stored frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a stored frame: first row and column, and size, in pixels."""

    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Tile:
    """One slice of a tiled frame.

    `position_lps_mm`: centre of its first pixel, patient LPS. `time_ms`: when it was acquired
    within its volume, where the header says so; `volume_time`: when the volume began, as DICOM DT,
    where the vendor's own elements alone say it.
    """

    window: Window
    position_lps_mm: tuple[float, float, float] | None
    time_ms: float | None = None
    volume_time: str | None = None


def tile_windows(
    count: int, *, rows: int, columns: int, down: int, across: int
) -> tuple[Window, ...]:
    """The windows of `count` tiles of one size, row after row, in a frame of `rows` × `columns`.

    `down` and `across` count the tiles of a full frame; those beyond `count` are blank.
    """
    high, wide = rows // down, columns // across
    return tuple(
        Window(row=k // across * high, column=k % across * wide, rows=high, columns=wide)
        for k in range(count)
    )


def from_earliest(times_ms: Sequence[float]) -> tuple[float, ...]:
    """Times of the slices of one volume, counted from the earliest of them.

    Some scanners count from the start of the run or of the day, and some write negative times.
    """
    start = min(times_ms, default=0.0)
    return tuple(time - start for time in times_ms)
