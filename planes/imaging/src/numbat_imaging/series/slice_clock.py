"""The private clocks of scanners, which run for each slice of an MR scan."""

from __future__ import annotations

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_registries import Refusal


def slice_clock_ms(ds: Dataset) -> float | None:
    """What a vendor's private clock says about one slice, in ms from some start; None without one.

    Siemens XA: TimeAfterStart, s, (0021,xx04) of SIEMENS MR SDI 02. GE: RTIA timer, (0021,xx5E) of
    GEMS_RELA_01, here as if it were in s; releases before DV24 count in 0.1 ms.
    """
    if elements.text(ds, "Modality") != "MR":
        return None
    maker = (elements.text(ds, "Manufacturer") or "").upper()
    if maker.startswith("GE"):
        creator, element = "GEMS_RELA_01", 0x5E
    elif maker.startswith("SIEMENS"):
        creator, element = "SIEMENS MR SDI 02", 0x04
    else:
        return None
    try:
        value = elements.private(ds, 0x0021, creator, element, vr="DS")
    except Refusal:
        return None
    return value * 1000.0 if isinstance(value, int | float) else None
