"""United Imaging's grids by their elements: layouts, times and refusals; part of IMG-G25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.series.forms.tiles import Window
from numbat_imaging.series.forms.uih_grid import uih_tiles

_DATE = "20200102"


def united_grids(check: Check) -> None:
    """What the phantoms do not say: every number of tiles, every way to state a moment."""
    _layouts(check)
    _what_is_none(check)
    _moments(check)
    _refused(check)


def _grid(frames: Sequence[Mapping[str, Any]] | None, stated: str | None) -> Dataset:
    """A data set with the private elements of a grid; `frames`: what the items say."""
    ds = Dataset()
    block = ds.private_block(0x0065, "Image Private Header", create=True)
    if stated is not None:
        block.add_new(0x50, "DS", stated)
    if frames is not None:
        items = []
        for elements in frames:
            item = Dataset()
            for keyword, value in elements.items():
                setattr(item, keyword, value)
            items.append(item)
        block.add_new(0x51, "SQ", items)
    return ds


def _placed(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"ImagePositionPatient": [1.0, -2.0, 3.0 * k], **more} for k in range(count)]


def _layouts(check: Check) -> None:
    # Tiles: down and across. As many across as the root rounded up, as many down as they need.
    sizes = {1: (1, 1), 2: (1, 2), 3: (2, 2), 4: (2, 2), 5: (2, 3), 6: (2, 3), 7: (3, 3)}
    sizes |= {9: (3, 3), 10: (3, 4), 12: (3, 4), 13: (4, 4), 17: (4, 5), 21: (5, 5)}
    for count, (down, across) in sizes.items():
        ds = _grid(_placed(count), str(count))
        tiles = uih_tiles(ds, rows=6 * down, columns=8 * across) or ()
        windows = [Window(k // across * 6, k % across * 8, 6, 8) for k in range(count)]
        check.equal(f"windows of {count} tiles", [tile.window for tile in tiles], windows)
        places = [(1.0, -2.0, 3.0 * k) for k in range(count)]
        check.equal(f"places of {count} tiles", [tile.position_lps_mm for tile in tiles], places)
    unstated = uih_tiles(_grid(_placed(5), None), rows=12, columns=24) or ()
    check.equal("a number that is not stated beside the places", len(unstated), 5)


def _what_is_none(check: Check) -> None:
    check.equal("an image without the elements", uih_tiles(Dataset(), rows=12, columns=24), None)
    enhanced = _grid(_placed(5), "5")
    enhanced.PerFrameFunctionalGroupsSequence = [Dataset()]
    check.equal("an enhanced object", uih_tiles(enhanced, rows=12, columns=24), None)


def _moments(check: Check) -> None:
    clocks = ("101112.5", "101112", "101113.25")
    late = (500.0, 0.0, 1250.0)
    began = f"{_DATE}101112.000000"
    untold = (None, None, None)
    apart = [{"AcquisitionDate": _DATE, "AcquisitionTime": clock} for clock in clocks]
    cases: tuple[tuple[str, list[dict[str, Any]], tuple[Any, ...], str | None], ...] = (
        ("one element", [{"AcquisitionDateTime": _DATE + clock} for clock in clocks], late, began),
        ("date and time", apart, late, began),
        ("a zone", [{"AcquisitionDateTime": f"{_DATE}{c}+0800"} for c in clocks], late, began),
        ("a zone west", [{"AcquisitionDateTime": f"{_DATE}{c}-0300"} for c in clocks], late, began),
        (
            "both, of which one element counts",
            [
                {**one, "AcquisitionTime": "235959", "AcquisitionDateTime": _DATE + clock}
                for one, clock in zip(apart, clocks, strict=True)
            ],
            late,
            began,
        ),
        ("times alone", [{"AcquisitionTime": clock} for clock in clocks], untold, None),
        ("dates alone", [{"AcquisitionDate": _DATE} for _ in clocks], untold, None),
        ("one frame without", [*apart[:2], {}], untold, None),
        ("no moment", [{}, {}, {}], untold, None),
        ("a year alone", [*apart[:2], {"AcquisitionDateTime": "2020"}], untold, None),
    )
    for says, elements, times, start in cases:
        frames = [one | two for one, two in zip(_placed(3), elements, strict=True)]
        tiles = uih_tiles(_grid(frames, "3"), rows=12, columns=16) or ()
        check.equal(f"moments by {says}", tuple(tile.time_ms for tile in tiles), times)
        check.equal(f"start by {says}", {tile.volume_time for tile in tiles}, {start})


def _refused(check: Check) -> None:
    word = Dataset()
    word.ImageType = ["ORIGINAL", "PRIMARY", "M", "VFRAME"]
    unplaced = _placed(3)
    unplaced[1] = {}
    undescribed: tuple[tuple[str, Dataset, tuple[str, int, int]], ...] = (
        ("the word alone", word, ("none", 0, 0)),
        ("a number alone", _grid(None, "3"), ("3.0", 0, 0)),
        ("no item", _grid([], "0"), ("0.0", 0, 0)),
        ("an item too few", _grid(_placed(2), "3"), ("3.0", 2, 0)),
        ("an item too many", _grid(_placed(4), "3"), ("3.0", 4, 0)),
        ("an item without a place", _grid(unplaced, "3"), ("3.0", 3, 1)),
        ("items without places", _grid([{}, {}], None), ("none", 2, 2)),
    )
    for says, ds, required in undescribed:
        with check.refuses("IMG-1613", f"a grid with {says}") as caught:
            uih_tiles(ds, rows=12, columns=24)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            measured = (fields["stated"], fields["described"], fields["without_position"])
            check.equal(f"a grid with {says}: counts", measured, required)
    for rows, columns in ((13, 24), (12, 25), (0, 24), (12, 0)):
        with check.refuses("IMG-1614", f"five tiles in {rows} × {columns}") as caught:
            uih_tiles(_grid(_placed(5), "5"), rows=rows, columns=columns)
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            names = ("slices", "rows", "columns", "down", "across")
            measured_sizes = tuple(fields[name] for name in names)
            check.equal(
                f"five tiles in {rows} × {columns}: sizes",
                measured_sizes,
                (5, rows, columns, 2, 3),
            )
