"""A picture of a volume for a first look: slices, side views, orientation letters, true lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from numbat_imaging.geometry.orientation import axis_letters, plane_name
from numbat_imaging.geometry.reorientation import UNTURNED, turned, upright_turn
from numbat_imaging.intake import elements

if TYPE_CHECKING:
    from numbat_imaging.volume import Volume

Array = NDArray[np.float64]
Grey = NDArray[np.uint8]

_PAPER, _FRAME, _INK, _MARK = (16, 16, 18), (58, 58, 62), (225, 225, 225), (255, 196, 64)
_GAP, _CAPTION, _TITLE = 6, 16, 26
_SAMPLES = 200_000
#: Below this height in pixels the letters at top and bottom would meet; the caption tells them.
_ROOM_FOR_MARKS = 40


@dataclass(frozen=True, slots=True)
class Tile:
    """One picture of the sheet: pixels (rows, columns[, 3]), edge letters, and a caption."""

    pixels: NDArray[np.uint8]
    left: str
    right: str
    top: str
    bottom: str
    caption: str


def contact_sheet(volume: Volume, *, slices: int = 20, tile_px: int = 180) -> Image.Image:
    """Up to `slices` slices of the first volume, two side views, and the middle slice of others.

    Every picture has the volume's true proportions in mm; in the side views each slice lies where
    the affine puts it, so that a sheared stack looks sheared. Letters name the patient direction of
    each edge. The title names no patient and no description. Of a sheared volume that was turned so
    that its slices are no rectangles, two axes are swapped back, and the title says which.
    """
    title = _title(volume, grey_window(volume))
    turn = upright_turn(volume.grid) if volume.grid.is_sheared else UNTURNED
    if turn != UNTURNED:
        volume, title = turned(volume, turn), f"{title} · {'ijk'[turn[2][0]]} and k swapped"
    window = grey_window(volume)
    rows = _chunks(_slice_tiles(volume, window, slices, tile_px), 5)
    rows.append(_side_tiles(volume, window, tile_px))
    if volume.voxels.ndim == 4:
        rows += _chunks(_volume_tiles(volume, window, tile_px), 5)
    return _drawn(rows, title)


def _title(volume: Volume, window: tuple[float, float]) -> str:
    grid, shape = volume.grid, volume.voxels.shape
    parts = [
        f"{volume.key.modality} series {volume.key.series_number}".replace(" series None", ""),
        plane_name(grid.normal),
        " x ".join(map(str, shape)),
        " x ".join(f"{value:.3g}" for value in grid.spacing_mm) + " mm",
    ]
    if grid.is_sheared:
        parts.append(f"sheared {grid.shear_deg:.1f}°")
    if volume.voxels.dtype.fields is None:
        unit = f" {volume.scale.unit}" if volume.scale.unit else ""
        parts.append(f"window {window[0]:.4g} to {window[1]:.4g}{unit}")
    return " · ".join(parts)


def grey_window(volume: Volume) -> tuple[float, float]:
    """Lowest and highest value shown: the header's window where it meets the data, else 1–99 %.

    Padding is no value and does not count.
    """
    if volume.voxels.dtype.fields is not None:
        return (0.0, 255.0)
    # A regular sample is enough for percentiles and touches little memory.
    stride = max(1, round((volume.voxels.size / _SAMPLES) ** (1 / 3)))
    sampled = (slice(None, None, stride),) * 3
    sample = _values(volume, volume.voxels[sampled])
    padding = volume.padding_mask()
    if padding is not None and not padding[sampled].all():
        sample = sample[~padding[sampled]]
    low, high = (float(x) for x in np.percentile(sample, [1, 99]))
    centre = elements.decimals(volume.header, "WindowCenter")
    width = elements.decimals(volume.header, "WindowWidth")
    if centre and width and width[0] >= 1:
        first, last = centre[0] - width[0] / 2, centre[0] + width[0] / 2
        if first < high and last > low:
            return (first, last)
    return (low, high) if high > low else (low, low + 1.0)


def _values(volume: Volume, voxels: NDArray[Any]) -> Array:
    scale = volume.scale
    return np.asarray(voxels, np.float64) * scale.slope + scale.intercept


def _shown(volume: Volume, plane: NDArray[Any], window: tuple[float, float]) -> NDArray[np.uint8]:
    """A plane (rows, columns) as bytes, (rows, columns) grey or (rows, columns, 3) colour."""
    if plane.dtype.fields is not None:
        return np.stack([plane[name] for name in ("R", "G", "B")], axis=-1)
    low, high = window
    part = np.clip((_values(volume, plane) - low) / (high - low), 0.0, 1.0)
    if elements.text(volume.header, "PhotometricInterpretation") == "MONOCHROME1":
        part = 1.0 - part
    return np.asarray(np.rint(part * 255), np.uint8)


def _sized(pixels: NDArray[np.uint8], size_mm: tuple[float, float], tile_px: int) -> Grey:
    """The picture with true proportions: `size_mm` across and down, the longer one `tile_px`."""
    scale = tile_px / max(size_mm)
    size = (max(1, round(size_mm[0] * scale)), max(1, round(size_mm[1] * scale)))
    image = Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)
    return np.asarray(image)


def _spread(count: int, wanted: int) -> list[int]:
    picked = np.unique(np.rint(np.linspace(0, count - 1, min(count, wanted))).astype(int))
    return [int(index) for index in picked]


def _in_plane_mm(volume: Volume) -> tuple[float, float]:
    columns, rows = volume.voxels.shape[:2]
    return (columns * float(volume.grid.spacing_mm[0]), rows * float(volume.grid.spacing_mm[1]))


def _slice_tile(
    volume: Volume, window: tuple[float, float], k: int, t: int, tile_px: int, caption: str
) -> Tile:
    voxels = volume.voxels if volume.voxels.ndim == 4 else volume.voxels[..., None]
    pixels = _sized(_shown(volume, voxels[:, :, k, t].T, window), _in_plane_mm(volume), tile_px)
    row, column = volume.grid.axes[:, 0], volume.grid.axes[:, 1]
    left, right, top, bottom = map(axis_letters, (-row, row, -column, column))
    return Tile(pixels, left, right, top, bottom, caption)


def _slice_tiles(
    volume: Volume, window: tuple[float, float], count: int, tile_px: int
) -> list[Tile]:
    picked = _spread(volume.voxels.shape[2], count)
    return [_slice_tile(volume, window, k, 0, tile_px, f"k {k}") for k in picked]


def _volume_tiles(volume: Volume, window: tuple[float, float], tile_px: int) -> list[Tile]:
    k = volume.voxels.shape[2] // 2
    picked = _spread(volume.voxels.shape[3], 10)
    return [_slice_tile(volume, window, k, t, tile_px, f"k {k}, volume {t}") for t in picked]


def _side_tiles(volume: Volume, window: tuple[float, float], tile_px: int) -> list[Tile]:
    tiles = []
    for across in (0, 1):
        pixels, size_mm = _side_view(volume, window, across)
        direction, normal = volume.grid.axes[:, across], volume.grid.normal
        ends = map(axis_letters, (-direction, direction, normal, -normal))
        left, right, top, bottom = ends
        middle = volume.voxels.shape[1 - across] // 2
        shown = _sized(pixels, size_mm, 2 * tile_px)
        caption = f"side, {'ji'[across]} {middle}, {top} up"
        tiles.append(Tile(shown, left, right, top, bottom, caption))
    return tiles


def _side_view(
    volume: Volume, window: tuple[float, float], across: int
) -> tuple[NDArray[np.uint8], tuple[float, float]]:
    """Slices seen edge-on along in-plane axis `across`, the last one on top, each at its place."""
    voxels = volume.voxels if volume.voxels.ndim == 3 else volume.voxels[..., 0]
    middle = voxels.shape[1 - across] // 2
    plane = voxels[:, middle, :] if across == 0 else voxels[middle, :, :]
    grid = volume.grid
    pixel_mm, slice_mm = float(grid.spacing_mm[across]), float(grid.spacing_mm[2])
    slide_mm = float(grid.step_mm @ grid.axes[:, across])
    shift = np.arange(plane.shape[1]) * slide_mm / pixel_mm
    shift -= shift.min()
    width = plane.shape[0] + int(np.rint(shift.max()))
    column = np.arange(width)[None, :] - np.rint(shift)[::-1, None].astype(int)
    inside = (column >= 0) & (column < plane.shape[0])
    slices = np.arange(plane.shape[1])[::-1, None]
    picked = plane[np.clip(column, 0, plane.shape[0] - 1), slices]
    pixels = _shown(volume, picked, window)
    pixels[~inside] = _PAPER[0]
    return pixels, (width * pixel_mm, plane.shape[1] * slice_mm)


def _chunks(tiles: Sequence[Tile], size: int) -> list[list[Tile]]:
    return [list(tiles[start : start + size]) for start in range(0, len(tiles), size)]


def _drawn(rows: Sequence[Sequence[Tile]], title: str) -> Image.Image:
    font, small = ImageFont.load_default(14), ImageFont.load_default(11)
    heights = [max(tile.pixels.shape[0] for tile in row) + _CAPTION + _GAP for row in rows]
    cells = [[_cell_px(tile, small) for tile in row] for row in rows]
    width = max(map(sum, cells)) + _GAP
    width = max(width, int(font.getlength(title)) + 2 * _GAP)
    sheet = Image.new("RGB", (width, _TITLE + sum(heights) + _GAP), _PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((_GAP, 5), title, fill=_INK, font=font)
    y = _TITLE
    for row, height, widths in zip(rows, heights, cells, strict=True):
        x = _GAP
        for tile, cell in zip(row, widths, strict=True):
            _draw_tile(sheet, pen, tile, (x, y), small)
            x += cell
        y += height
    return sheet


def _cell_px(tile: Tile, font: Any) -> int:
    return max(int(tile.pixels.shape[1]), int(font.getlength(tile.caption)) + _GAP) + _GAP


def _draw_tile(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    tile: Tile,
    corner: tuple[int, int],
    font: Any,
) -> None:
    x, y = corner
    height, width = tile.pixels.shape[:2]
    sheet.paste(Image.fromarray(tile.pixels).convert("RGB"), corner)
    pen.rectangle((x - 1, y - 1, x + width, y + height), outline=_FRAME)
    marks = [
        (tile.left, (x + 3, y + height / 2), "lm"),
        (tile.right, (x + width - 3, y + height / 2), "rm"),
    ]
    if height >= _ROOM_FOR_MARKS:
        marks.append((tile.top, (x + width / 2, y + 2), "ma"))
        marks.append((tile.bottom, (x + width / 2, y + height - 3), "md"))
    for text, place, anchor in marks:
        pen.text(
            place, text, fill=_MARK, font=font, anchor=anchor, stroke_width=1, stroke_fill=_PAPER
        )
    pen.text((x, y + height + 2), tile.caption, fill=_INK, font=font)
