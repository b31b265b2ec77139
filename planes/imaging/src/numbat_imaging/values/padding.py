"""Pixel padding: stored values that stand for no pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_registries import Diagnostic, notice

#: Lowest and highest stored value that stand for padding.
Range = tuple[float, float]


def padding_of(ds: Dataset) -> Range | None:
    """The stored values that mark padding, by PixelPaddingValue and PixelPaddingRangeLimit.

    Whole numbers have the sign of the pixels, whatever VR they were written with; floating point
    pixels have elements of their own. None without padding, and for colours. Raises IMG-1012 for
    what is no number. Source: PS3.3 C.7.5.1.1.2, C.7.6.24, C.7.6.25.
    """
    if (elements.integer(ds, "SamplesPerPixel") or 1) > 1:
        return None
    value = elements.integer(ds, "PixelPaddingValue")
    if value is None:
        return _float_padding(ds)
    limit = elements.integer(ds, "PixelPaddingRangeLimit")
    signed = elements.integer(ds, "PixelRepresentation") == 1
    ends = [_with_sign(end, signed=signed) for end in (value, value if limit is None else limit)]
    return (min(ends), max(ends))


def _float_padding(ds: Dataset) -> Range | None:
    for kind in ("Float", "DoubleFloat"):
        value = elements.decimal(ds, f"{kind}PixelPaddingValue")
        if value is not None:
            limit = elements.decimal(ds, f"{kind}PixelPaddingRangeLimit")
            ends = (value, value if limit is None else limit)
            return (min(ends), max(ends))
    return None


def _with_sign(value: int, *, signed: bool) -> int:
    word = value & 0xFFFF
    return word - 0x10000 if signed and word > 0x7FFF else word


def padded(stored: NDArray[Any], limits: Range) -> NDArray[np.bool_]:
    """Which stored values are padding."""
    low, high = limits
    if low == high:
        return np.asarray(stored == low)
    return np.asarray((stored >= low) & (stored <= high))


class PaddingWatch:
    """What is learnt about padding while the slices of a stack are read.

    `mask`: (slices, rows, columns), kept when `keep`, or when the slices do not share one range;
    where it is None, it can be told from the stored voxels later on.
    """

    def __init__(
        self, ranges: Sequence[Range | None], size: tuple[int, int], *, keep: bool
    ) -> None:
        self._ranges = list(ranges)
        stated = {limits for limits in ranges if limits is not None}
        self.shared = stated.pop() if len(set(ranges)) == 1 and stated else None
        needed = bool(stated) if self.shared is None else keep
        self.mask: NDArray[np.bool_] | None = None
        if needed:
            self.mask = np.zeros((len(ranges), *size), np.bool_)
        self._seen = np.zeros((len(ranges), 3), np.float64)

    def look(self, index: int, stored: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Note the padding of one slice; gives its mask, None for a slice without padding."""
        limits = self._ranges[index]
        if limits is None:
            return None
        found = padded(stored, limits)
        if self.mask is not None:
            self.mask[index] = found
        self._seen[index] = (stored.min(), stored.max(), np.count_nonzero(found))
        return found

    def notices(self) -> list[Diagnostic]:
        """IMG-1512 when padding lies among the values, where nothing can tell the two apart."""
        watched = [limits is not None for limits in self._ranges]
        if not any(watched):
            return []
        lowest, highest = self._seen[watched, 0].min(), self._seen[watched, 1].max()
        among = [
            (limits, int(seen[2]))
            for limits, seen in zip(self._ranges, self._seen, strict=True)
            if limits is not None and seen[2] and lowest < limits[0] and limits[1] < highest
        ]
        if not among:
            return []
        return [
            notice(
                "IMG-1512",
                low=min(limits[0] for limits, _ in among),
                high=max(limits[1] for limits, _ in among),
                lowest=float(lowest),
                highest=float(highest),
                count=sum(count for _, count in among),
            )
        ]
