"""Slices that a vendor lays out as tiles of one stored frame."""

from __future__ import annotations

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
    within its volume, where the header says so.
    """

    window: Window
    position_lps_mm: tuple[float, float, float] | None
    time_ms: float | None = None
