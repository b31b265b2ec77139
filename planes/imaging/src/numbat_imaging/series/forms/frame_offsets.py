"""Multi-frame objects whose frames lie at stated offsets along the slice normal (RT dose)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydicom import Dataset
from pydicom.datadict import tag_for_keyword
from pydicom.dataelem import DataElement
from pydicom.tag import BaseTag

from numbat_imaging.intake import elements
from numbat_imaging.series.forms.functional_groups import flat_dataset
from numbat_registries import refuse

_POSITION = BaseTag(tag_for_keyword("ImagePositionPatient") or 0)


def offset_datasets(ds: Dataset, *, frames: int, sop_class: str) -> Iterator[Dataset]:
    """For each frame, a data set with the frame's own ImagePositionPatient.

    GridFrameOffsetVector gives millimetres along the normal from ImagePositionPatient when it
    begins with 0, and coordinates along the normal when it begins with the coordinate of
    ImagePositionPatient itself.

    Raises IMG-1601 for multi-frame objects that tell no place of their frames, IMG-1314 when the
    vector is not as long as the frames are many, IMG-1313 when it begins with neither.
    Source: PS3.3 C.8.8.3.2.
    """
    offsets = elements.decimals(ds, "GridFrameOffsetVector")
    position = elements.decimals(ds, "ImagePositionPatient", count=3)
    cosines = elements.decimals(ds, "ImageOrientationPatient", count=6)
    if offsets is None or position is None or cosines is None:
        raise refuse("IMG-1601", kind=_kind(sop_class), frames=frames)
    if len(offsets) != frames:
        raise refuse("IMG-1314", offsets=len(offsets), frames=frames)
    normal = np.cross(cosines[:3], cosines[3:])
    start = float(np.dot(position, normal))
    if offsets[0] == 0:
        along = np.array(offsets)
    elif abs(offsets[0] - start) <= 0.01:
        along = np.array(offsets) - start
    else:
        raise refuse("IMG-1313", first_offset_mm=offsets[0], position_along_normal_mm=start)
    places = np.asarray(position) + along[:, None] * normal
    return (_moved(ds, place.tolist()) for place in places)


def _kind(sop_class: str) -> str:
    from pydicom.uid import UID

    name = UID(sop_class).name if sop_class else ""
    return name.removesuffix(" Storage") if name and name != sop_class else "multi-frame image"


def _moved(ds: Dataset, position_lps_mm: list[float]) -> Dataset:
    found = {tag: ds.get_item(tag, keep_deferred=True) for tag in ds.keys()}  # noqa: SIM118
    found[_POSITION] = DataElement(_POSITION, "FD", position_lps_mm)
    return flat_dataset(found, like=ds)
