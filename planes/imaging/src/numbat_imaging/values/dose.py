"""The scale of a radiotherapy dose grid."""

from __future__ import annotations

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.scales import DOSE, Scale
from numbat_registries import refuse

_RT_DOSE = "1.2.840.10008.5.1.4.1.1.481.2"


def dose_scale(ds: Dataset, *, file: str) -> Scale | None:
    """Stored value × DoseGridScaling in DoseUnits; None for what is no dose grid.

    The unit is as written: "GY", or "RELATIVE" for a dose relative to what the file leaves open.

    Raises IMG-1511 when the scaling is absent or not positive. Source: PS3.3 C.8.8.3.
    """
    if elements.uid(ds, "SOPClassUID") != _RT_DOSE:
        return None
    scaling = elements.decimal(ds, "DoseGridScaling")
    if scaling is None or scaling <= 0:
        shown = "absent" if scaling is None else f"{scaling:g}"
        raise refuse("IMG-1511", scaling=shown, file=file)
    return Scale(DOSE, scaling, 0.0, elements.text(ds, "DoseUnits"), "DoseGridScaling")
