"""The displayed scale: RescaleSlope and RescaleIntercept, or the table of a Modality LUT."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.scales import DISPLAYED, Scale, Table
from numbat_registries import refuse

RESCALE = "RescaleSlope and RescaleIntercept (Modality LUT)"

#: Words for "no unit is stated"; "normalized" is what Philips writes.
_NO_UNIT = frozenset({"US", "UNSPECIFIED", "NONE", "NORMALIZED"})
#: OD counts thousandths of optical density (PS3.3 C.11.1.1.2).
_UNITS = {"OD": "10^-3 OD"}


def displayed_scale(ds: Dataset, *, file: str) -> Scale | None:
    """The scale of the Modality LUT module; None when the file states none.

    Raises IMG-1502 for a slope that is absent or zero, IMG-1508 for a damaged table.
    Source: PS3.3 C.11.1.
    """
    slope = elements.decimal(ds, "RescaleSlope")
    intercept = elements.decimal(ds, "RescaleIntercept")
    if elements.has(ds, "ModalityLUTSequence"):
        if (slope, intercept) not in ((None, None), (1.0, 0.0)):
            raise refuse("IMG-1508", file=file, reason="a rescale stands beside it")
        return _table_scale(ds, file=file)
    if slope is None and intercept is None:
        return None
    if not slope:
        raise refuse("IMG-1502", slope="absent" if slope is None else f"{slope:g}", file=file)
    unit = _unit(ds, elements.text(ds, "RescaleType"))
    return Scale(DISPLAYED, slope, intercept or 0.0, unit, RESCALE)


def stated_units(ds: Dataset) -> str | None:
    """The unit that a PET image states for its values."""
    return elements.text(ds, "Units")


def _unit(ds: Dataset, kind: str | None) -> str | None:
    # A unit is stated or it is undefined: Hounsfield is the standard's only default, for original
    # CT images that are no localizer and of one energy (PS3.3 C.8.2.1.1).
    units = stated_units(ds)
    if units:
        return units
    if kind:
        return None if kind.upper() in _NO_UNIT else _UNITS.get(kind, kind)
    if elements.text(ds, "Modality") != "CT":
        return None
    image_type = elements.texts(ds, "ImageType")
    original = image_type[:1] == ("ORIGINAL",) and image_type[2:3] != ("LOCALIZER",)
    several_energies = elements.text(ds, "MultienergyCTAcquisition") == "YES"
    return "HU" if original and not several_energies else None


def _table_scale(ds: Dataset, *, file: str) -> Scale:
    items = elements.sequence(ds, "ModalityLUTSequence")
    if len(items) != 1:
        raise refuse("IMG-1508", file=file, reason=f"{len(items)} items where 1 belongs")
    item = items[0]
    descriptor = elements.words(item, "LUTDescriptor")
    data = elements.words(item, "LUTData")
    if descriptor is None or len(descriptor) != 6 or data is None:
        raise refuse("IMG-1508", file=file, reason="LUTDescriptor or LUTData is absent")
    count, first, bits = (int(word) for word in np.frombuffer(descriptor, "<u2"))
    # The first stored value has the sign of the pixels, whatever VR it was written with.
    if first > 0x7FFF and elements.integer(ds, "PixelRepresentation") == 1:
        first -= 0x10000
    if not 8 <= bits <= 16:
        raise refuse("IMG-1508", file=file, reason=f"entries of {bits} bits")
    table = _table(first, count or 0x10000, bits, data)
    if table is None:
        reason = f"{len(data)} bytes for {count or 0x10000} entries of {bits} bits"
        raise refuse("IMG-1508", file=file, reason=reason)
    return Scale(
        DISPLAYED,
        unit=_unit(ds, elements.text(item, "ModalityLUTType") or "US"),
        source="ModalityLUTSequence",
        table=table,
    )


@lru_cache(maxsize=64)
def _table(first: int, count: int, bits: int, data: bytes) -> Table | None:
    """The table of a descriptor, shared by the slices that have the same one.

    Entries are unsigned. Those of 8 bits lie two to a word, or one to a word in files of writers
    that pad them; the length tells which (PS3.3 C.11.1.1.1).
    """
    if bits == 8 and len(data) == count + count % 2:
        return Table(first, "|u1", data[:count])
    if len(data) != 2 * count:
        return None
    entries = np.frombuffer(data, "<u2")
    if int(entries.max()) >> bits:
        return None
    return (
        Table(first, "|u1", entries.astype("u1").tobytes())
        if bits == 8
        else Table(first, "<u2", data)
    )
