"""Philips MR: displayed values by RescaleSlope, and precise ones that compare between scans.

With stored value SV, rescale slope RS and intercept RI, and scale slope SS: displayed values are
SV × RS + RI, precise ones (SV × RS + RI) / (RS × SS).

Source: Chenevert et al., Errors in quantitative image analysis due to platform-dependent image
scaling, Translational Oncology 7 (2014) 65-71.
"""

from __future__ import annotations

import math

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.values.scales import DISPLAYED, PRECISE, Scale
from numbat_registries import refuse

_SCALE_SLOPE = (0x2005, "Philips MR Imaging DD 001", 0x0E)
_PRIVATE_RESCALE = "Philips MR Imaging DD 005"

#: A single precision scale slope is right to about 1e-7.
_SAME = 1e-6


def private_displayed_scale(ds: Dataset) -> Scale | None:
    """The displayed scale from Philips' private rescale, for files without the standard's."""
    slope, intercept = (
        elements.private(ds, 0x2005, _PRIVATE_RESCALE, at, vr="DS") for at in (0x0A, 0x09)
    )
    if not isinstance(slope, int | float) or not slope:
        return None
    offset = float(intercept) if isinstance(intercept, int | float) else 0.0
    return Scale(DISPLAYED, float(slope), offset, None, "Philips private rescale (2005,xx0A, xx09)")


def precise_scale(ds: Dataset, displayed: Scale | None) -> Scale | None:
    """The scale to precise values; None for a file without Philips' scale slope.

    Without its private creator the scale slope is not known to be one, and there is no such scale.

    Raises IMG-1504 for a scale slope that is no number or zero.
    """
    found = elements.private(ds, *_SCALE_SLOPE, vr="FL")
    if found is None:
        return None
    if not isinstance(found, int | float) or not math.isfinite(found) or found == 0:
        raise refuse("IMG-1504", form="a Philips scale slope that is no number or zero")
    rescale = displayed or Scale(DISPLAYED)
    if rescale.table is not None:
        return None
    # Where both scales are one, the decimal text has more digits than the single precision number.
    same = abs(rescale.slope * found - 1.0) < _SAME
    return Scale(
        PRECISE,
        slope=rescale.slope if same else 1.0 / found,
        intercept=rescale.intercept if same else rescale.intercept / (rescale.slope * found),
        unit=None,
        source="Philips scale slope (2005,xx0E) with RescaleSlope and RescaleIntercept",
    )
