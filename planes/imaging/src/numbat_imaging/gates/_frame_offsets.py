"""Frames at stated offsets along the normal, as dose grids have them; part of IMG-G22."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset

from numbat_gates import Check
from numbat_imaging.intake import elements
from numbat_imaging.series.forms.frame_offsets import offset_datasets

_DOSE = "1.2.840.10008.5.1.4.1.1.481.2"

#: Rows run along x and columns along −z, so that frames follow each other along y.
_TURNED = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0)
_NEEDED = ("GridFrameOffsetVector", "ImagePositionPatient", "ImageOrientationPatient")


def frame_offsets(check: Check) -> None:
    """Offsets from the first frame, and coordinates along the normal: two ways to say one thing."""
    _places(check)
    _left_alone(check)
    _refused(check)


def _grid(offsets: Sequence[float], y_mm: float) -> Dataset:
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.set_original_encoding(False, True, "iso8859")
    ds.GridFrameOffsetVector = list(offsets)
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [-10.0, y_mm, 30.0], list(_TURNED)
    ds.DoseUnits, ds.Rows = "GY", 7
    return ds


def _read(ds: Dataset, frames: int, sop_class: str = _DOSE) -> list[Dataset]:
    return list(offset_datasets(ds, frames=frames, sop_class=sop_class))


def _places(check: Check) -> None:
    cases: tuple[tuple[str, tuple[float, ...], float, tuple[float, ...]], ...] = (
        ("offsets from the first frame", (0.0, 2.5, 7.0), 20.0, (20.0, 22.5, 27.0)),
        ("coordinates along the normal", (20.0, 22.5, 27.0), 20.0, (20.0, 22.5, 27.0)),
        ("coordinates below zero", (-20.0, -18.0, -14.0), -20.0, (-20.0, -18.0, -14.0)),
        ("offsets against the normal", (0.0, -2.5, -7.0), 20.0, (20.0, 17.5, 13.0)),
        ("coordinates against the normal", (20.0, 17.5, 13.0), 20.0, (20.0, 17.5, 13.0)),
        ("frames in no order", (0.0, 7.0, 2.5), 20.0, (20.0, 27.0, 22.5)),
        ("both ways at once", (0.0, 2.5, 7.0), 0.0, (0.0, 2.5, 7.0)),
        ("a hundredth of a millimetre", (0.01, 3.0), 0.0, (0.01, 3.0)),
        ("a hundredth downwards", (-0.01, 3.0), 0.0, (-0.01, 3.0)),
        ("one frame", (0.0,), 20.0, (20.0,)),
    )
    for says, offsets, y_mm, required in cases:
        found = _read(_grid(offsets, y_mm), len(offsets))
        check.close(
            f"{says}: places of the frames",
            measured=[elements.decimals(ds, "ImagePositionPatient", count=3) for ds in found],
            required=[(-10.0, y, 30.0) for y in required],
            atol=1e-9,
            unit="mm",
        )
    oblique = _grid((0.0, 5.0), 20.0)
    oblique.ImageOrientationPatient = [0.6, 0.0, 0.8, 0.0, 1.0, 0.0]
    second = elements.decimals(_read(oblique, 2)[1], "ImagePositionPatient", count=3)
    # (0.6, 0, 0.8) × (0, 1, 0) = (−0.8, 0, 0.6)
    check.close(
        "five millimetres along an oblique normal",
        measured=second,
        required=(-14.0, 20.0, 33.0),
        atol=1e-9,
        unit="mm",
    )


def _left_alone(check: Check) -> None:
    ds = _grid((0.0, 2.5), 20.0)
    found = _read(ds, 2)
    others = [(elements.text(one, "DoseUnits"), elements.integer(one, "Rows")) for one in found]
    check.equal("what all frames share", others, [("GY", 7)] * 2)
    turns = [elements.decimals(one, "ImageOrientationPatient", count=6) for one in found]
    check.equal("the orientation of all frames", turns, [_TURNED] * 2)
    own = elements.decimals(ds, "ImagePositionPatient", count=3)
    check.equal("the object itself stays", own, (-10.0, 20.0, 30.0))


def _refused(check: Check) -> None:
    kinds = ((_DOSE, "RT Dose"), ("", "multi-frame image"), ("1.2.3.4", "multi-frame image"))
    for keyword in _NEEDED:
        ds = _grid((0.0, 2.5), 20.0)
        delattr(ds, keyword)
        for sop_class, kind in kinds:
            with check.refuses("IMG-1601", f"no {keyword}, class {sop_class!r}") as caught:
                _read(ds, 2, sop_class)
            _told(check, f"no {keyword}, class {sop_class!r}", caught, kind=kind, frames=2)
    for frames in (1, 3):
        with check.refuses("IMG-1314", f"two offsets for {frames} frames") as caught:
            _read(_grid((0.0, 2.5), 20.0), frames)
        _told(check, f"two offsets for {frames} frames", caught, offsets=2, frames=frames)
    for first in (0.0101, -0.0101, 12.0):
        with check.refuses("IMG-1313", f"a first offset of {first} mm") as caught:
            _read(_grid((first, 30.0), 0.0), 2)
        _told(
            check,
            f"a first offset of {first} mm",
            caught,
            first_offset_mm=first,
            position_along_normal_mm=0.0,
        )
    with check.refuses("IMG-1313", "a coordinate of another place") as caught:
        _read(_grid((-20.0, -17.5), 20.0), 2)
    _told(check, "a coordinate of another place", caught, position_along_normal_mm=20.0)


def _told(check: Check, name: str, caught: Any, **required: Any) -> None:
    if caught.diagnostic is not None:
        measured = {key: caught.diagnostic.fields[key] for key in required}
        same = all(np.array_equal(measured[key], value) for key, value in required.items())
        check.true(f"{name}: told", same, measured=measured, required=required)
