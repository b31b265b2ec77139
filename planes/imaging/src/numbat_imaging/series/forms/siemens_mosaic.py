"""Siemens mosaics: a whole volume as tiles of one image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.series.forms import siemens_csa
from numbat_imaging.series.forms.tiles import Tile, from_earliest, tile_windows
from numbat_registries import Refusal, refuse

Array = NDArray[np.float64]

#: Which way the tiles run: as row direction × column direction, or against it.
Direction = Literal["along-normal", "against-normal"]

_CREATOR = "SIEMENS MR HEADER"
_COUNT, _TIMES = 0x0A, 0x29
_ENTRY = "NumberOfImagesInMosaic"

#: No scanner lays out more tiles than this.
_MOST_TILES = 4096

#: How far SliceNormalVector, which has eight digits, may turn from the normal of the image.
_PARALLEL = 0.9999

#: How far the protocol and the header may differ in the length of the whole stack.
_SAME_LENGTH_MM = 0.1


class _Count(NamedTuple):
    source: str
    value: int


def mosaic_tiles(
    ds: Dataset,
    *,
    rows: int,
    columns: int,
    slices: int | None = None,
    direction: Direction | None = None,
) -> tuple[Tile, ...] | None:
    """The slices of a mosaic of `rows` × `columns` pixels; None for an image that is none.

    ImagePositionPatient of a mosaic is the corner that the whole mosaic would have as one large
    image around its first slice. Every next tile lies SpacingBetweenSlices further along the
    slice normal, in the direction of SliceNormalVector of the CSA header; the centres of the
    slices in the protocol of the CSA header, where it has them, must say the same.
    `slices` and `direction` say what the file does not. Positions are None for an image without
    position, orientation or pixel spacing.

    Raises IMG-1606 for a damaged CSA header, IMG-1607 when nothing tells the number of slices,
    IMG-1608 when tiles do not fit the image, IMG-1609 when numbers of slices differ, IMG-1610 when
    nothing tells the direction, IMG-1611 when directions contradict each other, IMG-1612 without
    a spacing of the slices.
    Source: nibabel, "Siemens mosaic format"; checked against the protocol of eight scans.
    """
    csa = _csa(ds)
    counts = _counts(ds, csa)
    if slices is not None and (counts or _says_mosaic(ds)) and not _is_one_picture(ds):
        counts.append(_Count("the caller", slices))
    if not counts:
        _refuse_undeclared(ds, rows=rows, columns=columns)
        return None
    count = _agreed(counts)
    if count == 1:
        return None
    side = math.ceil(math.sqrt(max(count, 0)))
    _check_fit(ds, rows=rows, columns=columns, side=side, count=count)
    windows = tile_windows(count, rows=rows, columns=columns, down=side, across=side)
    high, wide = windows[0].rows, windows[0].columns
    places = _places(
        ds,
        csa,
        count=count,
        margin=(columns - wide, rows - high),
        tile=(wide, high),
        direction=direction,
    )
    times = _times(ds, csa, count)
    return tuple(
        Tile(window, None if places is None else places[k], None if times is None else times[k])
        for k, window in enumerate(windows)
    )


# -- how many ------------------------------------------------------------------------------------


def _says_mosaic(ds: Dataset) -> bool:
    return "MOSAIC" in elements.texts(ds, "ImageType")


def _is_one_picture(ds: Dataset) -> bool:
    """Whether a file has slices of its own, whatever it calls itself (XA30 does so)."""
    return (elements.integer(ds, "NumberOfFrames") or 1) > 1 or elements.has(
        ds, "PerFrameFunctionalGroupsSequence"
    )


def _csa(ds: Dataset) -> siemens_csa.Header:
    if _is_one_picture(ds):
        return {}
    if not _says_mosaic(ds) and not _is_several(siemens_csa.image_entry(ds, _ENTRY)):
        return {}
    return siemens_csa.image_header(ds) or {}


def _is_several(entry: Sequence[str]) -> bool:
    return bool(entry) and _whole(entry[0]) > 1


def _counts(ds: Dataset, csa: siemens_csa.Header) -> list[_Count]:
    """Every number of slices that the file states."""
    if _is_one_picture(ds):
        return []
    found: list[_Count] = []
    stated = csa.get(_ENTRY, ())
    if stated and (number := _whole(stated[0])) > 0:
        found.append(_Count("NumberOfImagesInMosaic of the CSA header", number))
    private = elements.private(ds, 0x0019, _CREATOR, _COUNT, vr="US")
    if isinstance(private, int) and private > 0:
        found.append(_Count("NumberOfImagesInMosaic (0019,xx0A)", private))
    return found


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def _refuse_undeclared(ds: Dataset, *, rows: int, columns: int) -> None:
    if not _says_mosaic(ds) or _is_one_picture(ds):
        return
    acquired = _acquired(ds)
    if acquired and min(rows, columns) <= max(acquired):
        # The word alone, on an image as large as its acquisition: one slice.
        return
    raise refuse(
        "IMG-1607",
        rows=rows,
        columns=columns,
        acquired=list(acquired),
        has_csa=siemens_csa.image_header(ds) is not None,
    )


def _acquired(ds: Dataset) -> tuple[int, ...]:
    """The sizes of the acquired matrix, without the zeros that mark the other direction."""
    return tuple(n for n in elements.integers(ds, "AcquisitionMatrix") or () if n > 0)


def _agreed(counts: Sequence[_Count]) -> int:
    if len({count.value for count in counts}) > 1:
        raise refuse(
            "IMG-1609",
            sources=[count.source for count in counts],
            counts=[count.value for count in counts],
        )
    return counts[0].value


def _check_fit(ds: Dataset, *, rows: int, columns: int, side: int, count: int) -> None:
    reasons = []
    if not 0 < count <= _MOST_TILES:
        reasons.append(f"no mosaic has {count} tiles")
    elif rows % side or columns % side:
        reasons.append(f"{rows} rows and {columns} columns are no multiples of {side}")
    else:
        acquired = _acquired(ds)
        if acquired and max(rows, columns) // side < min(acquired):
            reasons.append("a tile is smaller than the acquired matrix")
    if reasons:
        raise refuse("IMG-1608", slices=count, rows=rows, columns=columns, reasons=reasons)


# -- where ---------------------------------------------------------------------------------------


def _places(
    ds: Dataset,
    csa: siemens_csa.Header,
    *,
    count: int,
    margin: tuple[int, int],
    tile: tuple[int, int],
    direction: Direction | None,
) -> list[tuple[float, float, float]] | None:
    """The centre of the first pixel of every tile; `margin` and `tile`: columns, rows."""
    corner = elements.decimals(ds, "ImagePositionPatient", count=3)
    cosines = elements.decimals(ds, "ImageOrientationPatient", count=6)
    spacing = elements.decimals(ds, "PixelSpacing", count=2)
    if corner is None or cosines is None or spacing is None:
        return None
    along = np.asarray(cosines[:3]) * spacing[1]
    down = np.asarray(cosines[3:]) * spacing[0]
    first = np.asarray(corner) + along * (margin[0] / 2) + down * (margin[1] / 2)
    # Siemens means by the centre the corner between pixels, for tiles of even size.
    middle = first + along * (tile[0] / 2) + down * (tile[1] / 2)
    normal = np.cross(cosines[:3], cosines[3:])
    centres = _protocol(ds, count)
    sign = _direction(csa, normal, middle, centres, direction)
    step = sign * normal * _spacing(ds)
    _check_protocol(middle, step, centres)
    return [(float(x), float(y), float(z)) for x, y, z in first + np.arange(count)[:, None] * step]


def _protocol(ds: Dataset, count: int) -> Array | None:
    """The centres of the slices in the protocol, in the order of the tiles; None without them.

    A protocol that asks for another number of slices (a slab, several groups) says nothing here.
    """
    try:
        header = siemens_csa.series_header(ds)
    except Refusal:
        # The protocol is a second witness; the mosaic stands on the image header.
        return None
    centres = siemens_csa.slice_centres(header) if header else ()
    return np.array(centres) if len(centres) == count else None


def _in_order(centres: Array, middle: Array) -> Array:
    """The centres from the one where the mosaic begins: image numbers may run backward."""
    gaps = np.linalg.norm(centres[[0, -1]] - middle, axis=1)
    return centres if gaps[0] <= gaps[1] else centres[::-1]


def _direction(
    csa: siemens_csa.Header,
    normal: Array,
    middle: Array,
    centres: Array | None,
    given: Direction | None,
) -> float:
    """+1 when the tiles run along row direction × column direction, -1 against it."""
    stated = _vector(csa.get("SliceNormalVector", ()))
    if stated is not None:
        cosine = float(stated @ normal) / float(np.linalg.norm(stated))
        if abs(cosine) < _PARALLEL:
            raise refuse("IMG-1611", stated=stated, measured=normal, source="SliceNormalVector")
        return math.copysign(1.0, cosine)
    if centres is not None:
        ordered = _in_order(centres, middle)
        return math.copysign(1.0, float((ordered[-1] - ordered[0]) @ normal))
    if given is None:
        raise refuse("IMG-1610", normal=normal)
    return 1.0 if given == "along-normal" else -1.0


def _vector(texts: Sequence[str]) -> Array | None:
    if len(texts) != 3:
        return None
    try:
        vector = np.array([float(text) for text in texts])
    except ValueError:
        return None
    return vector if np.all(np.isfinite(vector)) and np.linalg.norm(vector) > 0.5 else None


def _spacing(ds: Dataset) -> float:
    spacing = elements.decimal(ds, "SpacingBetweenSlices")
    if spacing is None or spacing <= 0:
        raise refuse("IMG-1612", spacing_mm=spacing or 0.0)
    return spacing


def _check_protocol(middle: Array, step: Array, centres: Array | None) -> None:
    """Refuse tiles that run another way, or another length, than the slices of the protocol.

    Only the run from end to end is compared: prospective motion correction moves a volume as a
    whole away from its protocol.
    """
    if centres is None:
        return
    ordered = _in_order(centres, middle)
    asked = ordered[-1] - ordered[0]
    found = (len(centres) - 1) * step
    length = float(np.linalg.norm(asked))
    if abs(length - float(np.linalg.norm(found))) > _SAME_LENGTH_MM or asked @ found <= 0:
        raise refuse("IMG-1611", stated=asked + 0.0, measured=found + 0.0, source="the protocol")


# -- when ----------------------------------------------------------------------------------------


def _times(ds: Dataset, csa: siemens_csa.Header, count: int) -> tuple[float, ...] | None:
    """When each slice was acquired, in ms from the earliest; None where the header tells none.

    The first volume of some multiband releases has the times of another scan; that is for a reader
    of all volumes to see.
    """
    texts = csa.get("MosaicRefAcqTimes", ())
    private = elements.private(ds, 0x0019, _CREATOR, _TIMES, vr="FD") if not texts else None
    try:
        times = [float(text) for text in texts] or list(private or ())
    except (TypeError, ValueError):
        return None
    if len(times) != count or not np.all(np.isfinite(times)):
        return None
    return from_earliest(times)
