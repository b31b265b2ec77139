"""Pixel padding: stored values that stand for no pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    indexed = elements.text(ds, "PhotometricInterpretation") == "PALETTE COLOR"
    if indexed or (elements.integer(ds, "SamplesPerPixel") or 1) > 1:
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

    `shared`: the range that all slices name. `mask`: (slices, rows, columns), kept when `keep`, or
    when the slices do not share one range; where it is None, the stored voxels tell it later on.
    """

    def __init__(
        self, ranges: Sequence[Range | None], size: tuple[int, int], *, keep: bool
    ) -> None:
        self._ranges = tuple(ranges)
        distinct = set(ranges)
        self.shared = self._ranges[0] if len(distinct) == 1 else None
        needed = keep or len(distinct) > 1
        self.mask: NDArray[np.bool_] | None = None
        if needed and distinct != {None}:
            self.mask = np.zeros((len(ranges), *size), np.bool_)
        self._seen: dict[int, _Seen] = {}

    def look(self, index: int, stored: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Note the padding of one slice; gives its mask, None for a slice without padding."""
        limits = self._ranges[index]
        if limits is None:
            return None
        found = padded(stored, limits)
        if self.mask is not None:
            self.mask[index] = found
        lowest, highest = float(stored.min()), float(stored.max())
        self._seen[index] = _Seen(limits, lowest, highest, int(np.count_nonzero(found)))
        return found

    def notices(self) -> list[Diagnostic]:
        """IMG-1512 when padding lies among the values, where nothing can tell the two apart."""
        seen = list(self._seen.values())
        lowest = min((slice_.lowest for slice_ in seen), default=0.0)
        highest = max((slice_.highest for slice_ in seen), default=0.0)
        among = [s for s in seen if s.masked and lowest < s.limits[0] and s.limits[1] < highest]
        if not among:
            return []
        return [
            notice(
                "IMG-1512",
                low=min(slice_.limits[0] for slice_ in among),
                high=max(slice_.limits[1] for slice_ in among),
                lowest=lowest,
                highest=highest,
                count=sum(slice_.masked for slice_ in among),
            )
        ]


class _Seen(NamedTuple):
    limits: Range
    lowest: float
    highest: float
    masked: int
