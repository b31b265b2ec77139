"""The order of the slices of a 2D scan, as the protocol of the scanner asks for it."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Literal

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.forms import siemens_csa
from numbat_registries import Refusal

Order = Literal["ascending", "descending", "odd first", "even first"]

#: Real protocols have some thousand characters.
_MOST_BYTES = 1 << 20

_GE_LINE = re.compile(r'^(\w+) "(.*)"$', re.MULTILINE)
_SIEMENS_LINE = re.compile(
    r"^(sSliceArray\.ucMode|sSliceArray\.ucImageNumb\w*|lDelayTimeInTR"
    r"|sSliceAcceleration\.lMultiBandFactor|sSliceArray\.lSize)\s*=\s*(\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class SliceOrder:
    """Which slice a protocol acquires when: `order` counts slices as the scanner numbers them.

    `pause_ms`: the part of RepetitionTime in which no slice is acquired. `source` names the
    element.
    """

    order: Order
    pause_ms: float
    source: str

    def times_ms(self, slices: int, repetition_ms: float) -> tuple[float, ...]:
        """When each slice is acquired, in the scanner's numbering, if they are spread evenly."""
        numbers = range(slices)
        sequence = {
            "ascending": [*numbers],
            "descending": [*reversed(numbers)],
            "odd first": [*numbers[0::2], *numbers[1::2]],
            "even first": [*numbers[1::2], *numbers[0::2]],
        }[self.order]
        step_ms = (repetition_ms - self.pause_ms) / slices
        times = [0.0] * slices
        for place, number in enumerate(sequence):
            times[number] = place * step_ms
        return tuple(times)


def slice_order(ds: Dataset, *, slices: int) -> SliceOrder | None:
    """The order that the protocol of Siemens or GE states for a volume of `slices` slices.

    None where there is no such protocol, where it acquires several slices at once, numbers them
    another way than the images, or asks for another number of them.
    Source: Siemens, sSliceArray.ucMode of MrProtocol; GE, (0025,xx1B) of GEMS_SERS_01, both as
    dcm2niix's notes have them, checked against the reference sidecars of its validation sets.
    """
    try:
        return _siemens(ds, slices) or _ge(ds, slices)
    except Refusal:
        # A damaged protocol says nothing; the image stands on other elements.
        return None


def pause_ms(ds: Dataset) -> float | None:
    """The part of RepetitionTime in which Siemens' protocol acquires nothing; None without one."""
    try:
        pause_us = _siemens_protocol(ds).get("lDelayTimeInTR")
    except Refusal:
        return None
    return pause_us / 1000 if pause_us else None


def _siemens_protocol(ds: Dataset) -> dict[str, int | None]:
    header = siemens_csa.series_header(ds) or {}
    texts = header.get("MrPhoenixProtocol") or header.get("MrProtocol") or ()
    return {name: _whole(text) for name, text in _SIEMENS_LINE.findall(texts[0] if texts else "")}


def _siemens(ds: Dataset, slices: int) -> SliceOrder | None:
    stated = _siemens_protocol(ds)
    reversed_numbers = any(name.startswith("sSliceArray.ucImageNumb") for name in stated)
    several = (stated.get("sSliceAcceleration.lMultiBandFactor") or 1) > 1
    if reversed_numbers or several or stated.get("sSliceArray.lSize") != slices:
        return None
    # Interleaved: the last slice is never the neighbour in time of the last but one.
    interleaved: Order = "odd first" if slices % 2 else "even first"
    orders: dict[int | None, Order] = {1: "ascending", 2: "descending", 4: interleaved}
    order = orders.get(stated.get("sSliceArray.ucMode"))
    if order is None:
        return None
    pause_us = stated.get("lDelayTimeInTR") or 0
    return SliceOrder(order, pause_us / 1000, "sSliceArray.ucMode of the Siemens protocol")


def _whole(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _ge(ds: Dataset, slices: int) -> SliceOrder | None:
    protocol = ge_protocol(ds)
    # Only the fMRI option writes the order that it uses.
    if "FMRI" not in protocol.get("IOPT", "") or protocol.get("NOSLC") != str(slices):
        return None
    if (_whole(protocol.get("MBACCEL", "1")) or 1) > 1:
        return None
    orders: dict[str | None, Order] = {"0": "ascending", "1": "odd first"}
    order = orders.get(protocol.get("SLICEORDER"))
    # RepetitionTime leaves out GE's delay after each group of slices.
    return None if order is None else SliceOrder(order, 0.0, "SLICEORDER of the GE protocol")


def ge_protocol(ds: Dataset) -> dict[str, str]:
    """The named values of GE's compressed protocol block, (0025,xx1B) of GEMS_SERS_01.

    Empty where there is none, or it is damaged, or would grow beyond a MiB.
    """
    block = elements.private(ds, 0x0025, "GEMS_SERS_01", 0x1B, vr="OB")
    if not isinstance(block, bytes):
        return {}
    start = block.find(b"\x1f\x8b")
    unpacker = zlib.decompressobj(31)
    try:
        content = unpacker.decompress(block[max(start, 0) :], _MOST_BYTES)
    except zlib.error:
        return {}
    if not unpacker.eof:
        return {}
    return dict(_GE_LINE.findall(content.decode("latin-1")))
