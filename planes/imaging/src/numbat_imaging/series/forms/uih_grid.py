"""United Imaging's GRID: a whole volume as tiles of one image, each with a place of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.forms.tiles import Tile, tile_windows
from numbat_registries import refuse

_CREATOR = "Image Private Header"
_COUNT, _FRAMES = 0x50, 0x51


def uih_tiles(ds: Dataset, *, rows: int, columns: int) -> tuple[Tile, ...] | None:
    """The slices of a GRID image of `rows` × `columns` pixels; None for an image that is none.

    There are as many tiles across as the root of their number, rounded up, and as many rows of
    tiles as these need (Siemens always has a square). Each item of the private sequence of frames
    gives the place of one tile.

    Raises IMG-1613 when the sequence does not describe every tile, IMG-1614 when tiles do not fit
    the image. Source: dcm2niix issue 225, where United Imaging describes the form.
    """
    if elements.has(ds, "PerFrameFunctionalGroupsSequence"):
        return None
    stated = elements.private(ds, 0x0065, _CREATOR, _COUNT, vr="DS")
    items = elements.private(ds, 0x0065, _CREATOR, _FRAMES, vr="SQ")
    if stated is None and items is None and "VFRAME" not in elements.texts(ds, "ImageType"):
        return None
    frames: Sequence[Dataset] = items if isinstance(items, list) else ()
    places = [elements.decimals(frame, "ImagePositionPatient", count=3) for frame in frames]
    count = len(places)
    lacking = sum(place is None for place in places)
    if stated not in (None, count) or lacking or not places:
        raise refuse(
            "IMG-1613",
            stated=str("none" if stated is None else stated),
            described=len(places),
            without_position=lacking,
        )
    across = math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    if rows % down or columns % across or not rows or not columns:
        raise refuse("IMG-1614", slices=count, rows=rows, columns=columns, down=down, across=across)
    windows = tile_windows(count, rows=rows, columns=columns, down=down, across=across)
    times, began = _times(frames)
    return tuple(
        Tile(window, (place[0], place[1], place[2]), time, began)
        for window, place, time in zip(windows, places, times, strict=True)
        if place is not None
    )


def _times(frames: Sequence[Dataset]) -> tuple[Sequence[float | None], str | None]:
    """When each slice was acquired, in ms from the earliest, and the moment of the earliest.

    None for all unless all tell it.
    """
    moments = [_moment(frame) for frame in frames]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(moments):
        return [None] * len(moments), None
    first = min(known)
    times = [(moment - first).total_seconds() * 1000.0 for moment in known]
    return times, f"{first:%Y%m%d%H%M%S.%f}"


def _moment(frame: Dataset) -> datetime | None:
    date, time = elements.text(frame, "AcquisitionDate"), elements.text(frame, "AcquisitionTime")
    stated = elements.text(frame, "AcquisitionDateTime")
    text = stated or (f"{date}{time}" if date and time else "")
    # A zone says nothing here: all slices of a volume are taken in one.
    text = text.split("+")[0].split("-")[0]
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S.%f" if "." in text else "%Y%m%d%H%M%S")
    except ValueError:
        return None
