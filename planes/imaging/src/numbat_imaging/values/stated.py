"""Which value scales one slice states, and which of them it is read on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.dose import dose_scale
from numbat_imaging.values.modality_lut import displayed_scale, stated_units
from numbat_imaging.values.philips import precise_scale, private_displayed_scale
from numbat_imaging.values.real_world import real_world_scales
from numbat_imaging.values.scales import (
    DISPLAYED,
    DOSE,
    PRECISE,
    STORED,
    Scale,
    Scales,
    Unreadable,
)
from numbat_registries import Refusal

_PARAMETRIC_MAP = "1.2.840.10008.5.1.4.1.1.30"

Found = Scale | Unreadable | None


def scales_of(ds: Dataset, *, file: str) -> Scales:
    """Every value scale of one slice, from its flat data set; the default comes first.

    The default is the dose of a dose grid; Philips' precise scale, since values of two scans
    compare only on it, unless the displayed one is in a unit; the map of a parametric map, whose
    stored values mean nothing else; the displayed scale; or the stored values, where no other scale
    is stated. A scale that cannot
    be read is in the list as such: reading on another one instead is for the caller to say.
    """
    displayed = _held(DISPLAYED, lambda: displayed_scale(ds, file=file))
    if displayed is None:
        displayed = _held(DISPLAYED, lambda: private_displayed_scale(ds))
    rescale = displayed if isinstance(displayed, Scale) else None
    precise: Found = None
    if not isinstance(displayed, Unreadable):
        precise = _held(PRECISE, lambda: precise_scale(ds, rescale))
    maps = real_world_scales(ds, file=file)
    stored = _stored(ds, displayed)
    in_unit = rescale is not None and rescale.unit is not None
    shown = stored if displayed is None else displayed
    found = [
        _held(DOSE, lambda: dose_scale(ds, file=file)),
        *(maps if _is_parametric_map(ds, displayed) and len(maps) == 1 else ()),
        *((shown, precise) if in_unit else (precise, shown)),
        *maps,
        stored,
    ]
    return Scales(tuple(dict.fromkeys(scale for scale in found if scale is not None)))


def _held(name: str, read: Callable[[], Scale | None]) -> Found:
    try:
        return read()
    except Refusal as refusal:
        return Unreadable(name, refusal.diagnostic)


def _is_parametric_map(ds: Dataset, displayed: Found) -> bool:
    plain = displayed is None or (isinstance(displayed, Scale) and displayed.is_identity)
    return plain and elements.uid(ds, "SOPClassUID") == _PARAMETRIC_MAP


def _stored(ds: Dataset, displayed: Found) -> Scale:
    stored = Scale(STORED, source="stored values")
    if displayed is not None:
        return stored
    return replace(stored, unit=stated_units(ds), source="stored values (no rescale in the file)")
