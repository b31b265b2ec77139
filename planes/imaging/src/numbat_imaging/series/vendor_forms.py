"""Forms that hide several images in one file."""

from __future__ import annotations

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_registries import refuse

#: Masks that describe another image.
_SEGMENTATIONS = frozenset({"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"})


def refuse_unread_forms(ds: Dataset, *, sop_class: str) -> None:
    """Refuse what would be stacked wrongly if it were read as one plain slice.

    Raises IMG-1605 for segmentations.
    """
    if sop_class in _SEGMENTATIONS:
        raise refuse("IMG-1605")


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
