"""Numbers as a sidecar writes them."""

from __future__ import annotations


def plain(value: float) -> float | int:
    """A number without the noise of a change of unit, and without ".0"."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
