"""Forms that hide several images or another value scale in one file."""

from __future__ import annotations

import math

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_registries import refuse

#: Masks that describe another image.
_SEGMENTATIONS = frozenset({"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"})


def refuse_unread_forms(ds: Dataset, *, sop_class: str) -> None:
    """Refuse what would be stacked wrongly if it were read as one plain slice.

    Raises IMG-1602 for Siemens mosaics, IMG-1603 for UIH grids,
    IMG-1604 for Philips private value scales, IMG-1605 for segmentations.
    """
    if sop_class in _SEGMENTATIONS:
        raise refuse("IMG-1605")
    image_type = elements.texts(ds, "ImageType")
    maker = (elements.text(ds, "Manufacturer") or "").upper()
    if "MOSAIC" in image_type:
        raise refuse(
            "IMG-1602",
            rows=elements.integer(ds, "Rows") or 0,
            columns=elements.integer(ds, "Columns") or 0,
            has_csa=elements.private(ds, 0x0029, "SIEMENS CSA HEADER", 0x10) is not None,
        )
    if elements.private(ds, 0x0065, "Image Private Header", 0x51) is not None:
        raise refuse("IMG-1603")
    if maker.startswith("PHILIPS") and elements.text(ds, "Modality") == "MR":
        _refuse_philips_scale(ds)


def _refuse_philips_scale(ds: Dataset) -> None:
    scale = elements.private(ds, 0x2005, "Philips MR Imaging DD 001", 0x0E, vr="FL")
    if scale is None:
        return
    if not isinstance(scale, int | float) or not math.isfinite(scale):
        raise refuse("IMG-1504", form="a Philips scale slope that is no number")
    slope = elements.decimal(ds, "RescaleSlope") or 1.0
    # 1 / scale slope is the factor to floating point values: when it equals RescaleSlope the two
    # scales are one and nothing is ambiguous.
    precise = 1.0 / scale if scale else 0.0
    if abs(precise - slope) > 1e-6 * abs(slope):
        raise refuse("IMG-1604", displayed_slope=slope, precise_slope=precise)


#: GE's Vas Collapse Flag (0043,1030) on the directions and the b = 0 image of one diffusion scan,
#: which b-value and direction tell apart; trace and ADC images have other numbers and are of
#: another kind.
_GE_DIFFUSION_FLAGS = frozenset({"3", "4", "5", "14", "16"})


def vendor_split_value(ds: Dataset) -> str:
    """What a vendor's private elements add to tell images of one series apart, as text.

    GE marks real, imaginary, phase and magnitude images, and field maps, only in private group
    0043 (Image Type and Vas Collapse Flag); the public header of both kinds is the same.
    """
    if not (elements.text(ds, "Manufacturer") or "").upper().startswith("GE"):
        return ""
    component, flag = (
        elements.private(ds, 0x0043, "GEMS_PARM_01", at, vr="SS") for at in (0x2F, 0x30)
    )
    shown = "diffusion" if str(flag) in _GE_DIFFUSION_FLAGS else "" if flag is None else str(flag)
    return "\\".join(("" if component is None else str(component), shown))
