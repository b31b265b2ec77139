"""Siemens mosaics by their elements: numbers, directions, spacings, times; part of IMG-G24."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.phantoms.vendor_forms import csa2, protocol
from numbat_imaging.series.forms.siemens_mosaic import mosaic_tiles
from numbat_imaging.series.forms.tiles import Tile, Window

#: Four tiles of 12 × 16 pixels of 2 × 3 mm, 4 mm apart along z.
_ROWS, _COLUMNS = 24, 32
_UP = ["0", "0", "1"]
#: The corner of the first tile, half a tile from that of the mosaic, and the centre of the tile.
_FIRST, _CENTRE = (24.0, 12.0, 0.0), (48.0, 24.0, 0.0)


def mosaic_limits(check: Check) -> None:
    """What decides number, direction and times of tiles, up to the last digit that counts."""
    _numbers(check)
    _undeclared(check)
    _fits(check)
    _normals(check)
    _protocols(check)
    _spacings(check)
    _times(check)


def _mosaic(
    entries: dict[str, Sequence[str]] | None = None,
    centres: Any = None,
    *,
    word: bool = True,
    series: bytes | None = None,
    **elements: Any,
) -> Dataset:
    """`entries` of the image header, slice `centres` of the protocol, and public `elements`."""
    ds = Dataset()
    ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND", *(["MOSAIC"] if word else [])]
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [0, 0, 0], [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing, ds.SpacingBetweenSlices = [2, 3], 4
    if centres is not None:
        series = csa2({"MrPhoenixProtocol": [protocol(np.asarray(centres, float))]})
    contents = ((0x10, None if entries is None else csa2(entries)), (0x20, series))
    for element, content in contents:
        if content is not None:
            block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
            block.add_new(element, "OB", content)
    for keyword, value in elements.items():
        if value is None:
            delattr(ds, keyword)
        else:
            setattr(ds, keyword, value)
    return ds


def _with_private(ds: Dataset, element: int, vr: str, value: Any) -> Dataset:
    ds.private_block(0x0019, "SIEMENS MR HEADER", create=True).add_new(element, vr, value)
    return ds


def _four(**more: Sequence[str]) -> dict[str, Sequence[str]]:
    return {"NumberOfImagesInMosaic": ["4"], "SliceNormalVector": _UP, **more}


def _tiles(ds: Dataset, rows: int = _ROWS, **options: Any) -> tuple[Tile, ...] | None:
    return mosaic_tiles(ds, rows=rows, columns=_COLUMNS, **options)


def _heights(ds: Dataset, **options: Any) -> list[float]:
    places = [tile.position_lps_mm for tile in _tiles(ds, **options) or ()]
    return [np.inf if place is None else place[2] for place in places]


def _numbers(check: Check) -> None:
    """Which images are mosaics, and of how many tiles."""

    def stated(text: str, **more: Any) -> Dataset:
        return _mosaic(_four(NumberOfImagesInMosaic=[text]), **more)

    bare = _mosaic(word=False)
    frames = [Dataset()]
    cases: tuple[tuple[str, Dataset, dict[str, Any], int | None], ...] = (
        ("a number in the header", stated("4"), {}, 4),
        ("a number with zeros before it", stated("0003"), {}, 3),
        ("a number without the word", stated("4", word=False), {}, 4),
        ("two without the word", stated("2", word=False), {}, 2),
        ("one without the word", stated("1", word=False), {}, None),
        ("one without the word, and the caller's", stated("1", word=False), {"slices": 4}, None),
        ("one without the word, and damage behind", _damaged_behind_one(), {}, None),
        ("one, and the word", stated("1"), {}, None),
        ("one frame", stated("4", NumberOfFrames=1), {}, 4),
        ("several frames", stated("4", NumberOfFrames=2), {}, None),
        ("groups of frames", stated("4", PerFrameFunctionalGroupsSequence=frames), {}, None),
        ("nothing", bare, {}, None),
        ("nothing but the caller's word", bare, {"slices": 4}, None),
        ("frames, and the caller's word", stated("4", NumberOfFrames=2), {"slices": 4}, None),
        ("a private number", _with_private(_mosaic(word=False), 0x0A, "US", 3), {}, 3),
        ("a private one", _with_private(_mosaic(word=False), 0x0A, "US", 1), {}, None),
        ("a private zero", _with_private(_mosaic(word=False), 0x0A, "US", 0), {}, None),
        ("the word and the caller's", _mosaic(), {"slices": 4}, 4),
        ("the caller's the same", stated("4"), {"slices": 4}, 4),
    )
    for says, ds, options, required in cases:
        found = _tiles(ds, direction="along-normal", **options)
        check.equal(f"tiles by {says}", None if found is None else len(found), required)
    windows = [tile.window for tile in _tiles(stated("3")) or ()]
    required_windows = [Window(0, 0, 12, 16), Window(0, 16, 12, 16), Window(12, 0, 12, 16)]
    check.equal("windows of three tiles", windows, required_windows)
    other = _with_private(stated("4"), 0x0A, "US", 3)
    with check.refuses("IMG-1609", "three numbers of tiles") as caught:
        _tiles(other, slices=2)
    _told(
        check,
        "three numbers of tiles",
        caught,
        counts=[4, 3, 2],
        sources=[
            "NumberOfImagesInMosaic of the CSA header",
            "NumberOfImagesInMosaic (0019,xx0A)",
            "the caller",
        ],
    )


def _damaged_behind_one() -> Dataset:
    """A plain image whose header, which nobody needs, ends early."""
    ds = _mosaic(word=False)
    content = csa2({"NumberOfImagesInMosaic": ["1"], "Other": ["2"]})[:-20]
    ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True).add_new(0x10, "OB", content)
    return ds


def _undeclared(check: Check) -> None:
    """The word alone: a slice as large as its acquisition, or a mosaic that nothing describes."""
    for matrix in ([24, 0, 0, 16], [0, 16, 24, 0], [32, 0, 0, 32]):
        found = _tiles(_mosaic(AcquisitionMatrix=matrix))
        check.equal(f"the word on a slice of a matrix {matrix}", found, None)
    several = _mosaic(NumberOfFrames=2)
    check.equal("the word on several frames", _tiles(several), None)
    cases: tuple[tuple[str, Dataset, list[int], bool], ...] = (
        ("no matrix", _mosaic(), [], False),
        ("a smaller matrix", _mosaic(AcquisitionMatrix=[23, 0, 0, 16]), [23, 16], False),
        ("a header without a number", _mosaic({"First": ["1"]}), [], True),
        ("seven digits", _mosaic(_four(NumberOfImagesInMosaic=["1000000"])), [], True),
        ("a fraction", _mosaic(_four(NumberOfImagesInMosaic=["4.0"])), [], True),
        ("a number below zero", _mosaic(_four(NumberOfImagesInMosaic=["-4"])), [], True),
        ("a zero", _mosaic(_four(NumberOfImagesInMosaic=["0"])), [], True),
        ("a figure of no number", _mosaic(_four(NumberOfImagesInMosaic=["\xb2"])), [], True),
    )
    for says, ds, acquired, has_csa in cases:
        with check.refuses("IMG-1607", f"the word and {says}") as caught:
            _tiles(ds)
        _told(
            check,
            f"the word and {says}",
            caught,
            rows=24,
            columns=32,
            acquired=acquired,
            has_csa=has_csa,
        )


def _fits(check: Check) -> None:
    for matrix in ([16, 0, 0, 16], [0, 12, 17, 0], [8, 0, 0, 64]):
        found = _tiles(_mosaic(_four(), AcquisitionMatrix=matrix))
        check.equal(f"tiles that hold a matrix {matrix}", len(found or ()), 4)
    small = "a tile is smaller than the acquired matrix"
    cases: tuple[tuple[int, str, dict[str, Any], str], ...] = (
        (24, "4", {"AcquisitionMatrix": [17, 0, 0, 18]}, small),
        (25, "4", {}, "25 rows and 32 columns are no multiples of 2"),
        (24, "9", {}, "24 rows and 32 columns are no multiples of 3"),
        (24, "4097", {}, "no mosaic has 4097 tiles"),
        (24, "999999", {}, "no mosaic has 999999 tiles"),
    )
    for rows, number, elements, reason in cases:
        ds = _mosaic(_four(NumberOfImagesInMosaic=[number]), **elements)
        with check.refuses("IMG-1608", reason) as caught:
            _tiles(ds, rows)
        _told(
            check,
            reason,
            caught,
            slices=int(number),
            rows=rows,
            columns=32,
            reasons=[reason],
        )
    for slices in (0, -1):
        with check.refuses("IMG-1608", f"{slices} tiles by the caller") as caught:
            _tiles(_mosaic(), slices=slices)
        _told(check, f"{slices} tiles", caught, reasons=[f"no mosaic has {slices} tiles"])
    most = _mosaic(_four(NumberOfImagesInMosaic=["4096"]))
    found = mosaic_tiles(most, rows=64, columns=64)
    check.equal("the largest number of tiles", len(found or ()), 4096)


def _normals(check: Check) -> None:
    up, down = [0.0, 4.0, 8.0, 12.0], [0.0, -4.0, -8.0, -12.0]
    cases: tuple[tuple[list[str], list[float]], ...] = (
        (_UP, up),
        (["0", "0", "-1"], down),
        (["0", "0", "2.5"], up),
        (["0", "0", "0.6"], up),
        (["0.01", "0", "1"], up),
        (["0", "-0.01", "-1"], down),
    )
    for vector, required in cases:
        found = _heights(_mosaic(_four(SliceNormalVector=vector)))
        check.close(
            f"tiles along {vector}", measured=found, required=required, atol=1e-9, unit="mm"
        )
    along = [tile.position_lps_mm for tile in _tiles(_mosaic(_four())) or ()]
    places = [(*_FIRST[:2], z) for z in up]
    check.close("corners of the tiles", measured=along, required=places, atol=1e-9, unit="mm")
    both = _heights(_mosaic(_four()), direction="against-normal")
    check.equal("the header wins over the caller", both, up)
    for vector in (["0.02", "0", "1"], ["0", "0.02", "-1"], ["1", "0", "0"]):
        with check.refuses("IMG-1611", f"a normal along {vector}") as caught:
            _tiles(_mosaic(_four(SliceNormalVector=vector)))
        _told(
            check,
            f"a normal along {vector}",
            caught,
            source="SliceNormalVector",
            stated=[float(part) for part in vector],
            measured=[0.0, 0.0, 1.0],
        )
    for vector in (["0", "1"], ["0", "0", "x"], ["0", "0", "nan"], ["0", "0", "-0.4"], []):
        ds = _mosaic(_four(SliceNormalVector=vector))
        for direction, required in (("along-normal", up), ("against-normal", down)):
            found = _heights(ds, direction=direction)
            check.equal(f"{direction} by the caller, beside {vector}", found, required)
        with check.refuses("IMG-1610", f"no direction in {vector}") as caught:
            _tiles(ds)
        _told(check, f"no direction in {vector}", caught, normal=[0.0, 0.0, 1.0])
    for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"):
        absent: dict[str, Any] = {keyword: None}
        tiles = _tiles(_mosaic(_four(), **absent)) or ()
        check.equal(f"places without {keyword}", [t.position_lps_mm for t in tiles], [None] * 4)


def _run(first_mm: float, step_mm: float, count: int = 4) -> list[tuple[float, float, float]]:
    return [(*_CENTRE[:2], first_mm + k * step_mm) for k in range(count)]


def _protocols(check: Check) -> None:
    """The protocol as the only witness, and as the second."""
    up, down = [0.0, 4.0, 8.0, 12.0], [0.0, -4.0, -8.0, -12.0]
    alone = _four(SliceNormalVector=[])
    cases: tuple[tuple[str, list[tuple[float, float, float]], list[float]], ...] = (
        ("upwards", _run(0, 4), up),
        ("upwards, listed from its end", _run(12, -4), up),
        ("downwards", _run(0, -4), down),
        ("downwards, listed from its end", _run(-12, 4), down),
        ("around the first tile, as it is listed", _run(-6, 4), up),
        ("around the first tile, listed downwards", _run(6, -4), down),
        ("upwards by its ends", [*_run(0, -1, 2), *_run(8, 4, 2)], up),
    )
    for says, centres, required in cases:
        check.equal(f"a protocol {says}", _heights(_mosaic(alone, centres)), required)
    agreeing: tuple[tuple[str, list[tuple[float, float, float]]], ...] = (
        ("the same", _run(0, 4)),
        ("longer by 0.09 mm", _run(0, 4.03)),
        ("shorter by 0.09 mm", _run(0, 3.97)),
        ("moved as a whole", _run(1.5, 4)),
        ("of three slices", _run(0, -4, 3)),
        ("of five slices", _run(0, -4, 5)),
    )
    for says, centres in agreeing:
        check.equal(f"tiles beside a protocol {says}", _heights(_mosaic(_four(), centres)), up)
    for says, centres, run_mm in (
        ("longer by 0.12 mm", _run(0, 4.04), 12.12),
        ("shorter by 0.12 mm", _run(0, 3.96), 11.88),
        ("the other way", _run(0, -4), -12.0),
    ):
        with check.refuses("IMG-1611", f"a protocol {says}") as caught:
            _tiles(_mosaic(_four(), centres))
        _told(
            check,
            f"a protocol {says}",
            caught,
            source="the protocol",
            stated=[0.0, 0.0, run_mm],
            measured=[0.0, 0.0, 12.0],
        )
    slanted = [(48.0, 24.0, 0.0), (42.0, 24.0, 4.0), (36.0, 24.0, 8.0), (30.0, 24.0, 12.0)]
    with check.refuses("IMG-1611", "a protocol along no normal") as caught:
        _tiles(_mosaic(alone, slanted))
    run = {"stated": [-18.0, 0.0, 12.0], "measured": [0.0, 0.0, 12.0]}
    _told(check, "a protocol along no normal", caught, **run)
    level = [(48.0, 24.0, 0.0), (48.0, 19.0, 3.0), (48.0, 13.0, 7.0), (48.0, 8.0, 10.0)]
    with check.refuses("IMG-1611", "a protocol along another normal") as caught:
        _tiles(_mosaic(alone, level))
    _told(check, "a protocol along another normal", caught, stated=[0.0, -16.0, 10.0])
    across = [(48.0, 24.0 + 4.0 * k, 0.0) for k in range(4)]
    with check.refuses("IMG-1611", "a protocol across the normal, of the same length"):
        _tiles(_mosaic(_four(), across))
    with check.refuses("IMG-1611", "tiles downwards, a protocol upwards") as caught:
        _tiles(_mosaic(_four(SliceNormalVector=["0", "0", "-1"]), _run(0, 4)))
    if caught.diagnostic is not None:
        signs = np.signbit(caught.diagnostic.fields["measured"]).tolist()
        check.equal("zeros are told without a sign", signs, [False, False, True])
    damaged = _mosaic(_four(), series=b"SV10 and no more")
    check.equal("a damaged protocol is no witness", _heights(damaged), up)
    with check.refuses("IMG-1610", "a damaged protocol and no normal"):
        _tiles(_mosaic(alone, series=b"SV10 and no more"))


def _spacings(check: Check) -> None:
    for spacing, told in ((None, 0.0), (0, 0.0), (-4, -4.0)):
        with check.refuses("IMG-1612", f"SpacingBetweenSlices {spacing}") as caught:
            _tiles(_mosaic(_four(), SpacingBetweenSlices=spacing))
        _told(check, f"SpacingBetweenSlices {spacing}", caught, spacing_mm=told)
    wide = _heights(_mosaic(_four(), SpacingBetweenSlices=0.5))
    check.equal("half a millimetre apart", wide, [0.0, 0.5, 1.0, 1.5])


def _times(check: Check) -> None:
    def found(ds: Dataset) -> list[float | None]:
        return [tile.time_ms for tile in _tiles(ds) or ()]

    none = [None] * 4
    for says, texts, required in (
        ("from the earliest", ["60.5", "0.5", "30.5", "90.5"], [60.0, 0.0, 30.0, 90.0]),
        ("below zero", ["-10", "10", "-30", "0"], [20.0, 40.0, 0.0, 30.0]),
        ("one too few", ["0", "1", "2"], none),
        ("one too many", ["0", "1", "2", "3", "4"], none),
        ("no number", ["0", "1", "two", "3"], none),
        ("no time", ["0", "1", "nan", "3"], none),
        ("absent", [], none),
    ):
        check.equal(f"times: {says}", found(_mosaic(_four(MosaicRefAcqTimes=texts))), required)
    private = [5.0, 7.0, 6.0, 8.0]
    beside = _with_private(_mosaic(_four(MosaicRefAcqTimes=[])), 0x29, "FD", private)
    check.equal("times of the private element", found(beside), [0.0, 2.0, 1.0, 3.0])
    both = _mosaic(_four(MosaicRefAcqTimes=["3", "2", "1", "0"]))
    check.equal(
        "the header's times win",
        found(_with_private(both, 0x29, "FD", private)),
        [3.0, 2.0, 1.0, 0.0],
    )


def _told(check: Check, name: str, caught: Any, **required: Any) -> None:
    if caught.diagnostic is None:
        return
    fields = {key: caught.diagnostic.fields[key] for key in required}
    same = all(_is_same(fields[key], value) for key, value in required.items())
    check.true(f"{name}: told", same, measured=fields, required=required)


def _is_same(measured: Any, required: Any) -> bool:
    numbers = isinstance(required, list) and required and isinstance(required[0], float)
    if numbers:
        return bool(np.allclose(measured, required, rtol=0, atol=1e-6))
    return bool(measured == required)
