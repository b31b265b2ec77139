"""Volumes that vendors lay out as tiles of one image, with known coordinates, and their faults."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_imaging.phantoms.catalogue import EXACT_MM, Expected, Fault, refused
from numbat_imaging.phantoms.modalities import gradient_direction
from numbat_imaging.phantoms.phantom import Phantom, decimal_text, get_pixels, set_pixels

Change = Callable[[Dataset], None]
Entries = Mapping[str, Sequence[str]]
#: Changes the entries of the image header and of the series header before they are written.
Rewrite = Callable[[dict[str, Sequence[str]], dict[str, Sequence[str]]], None]

_CSA_VR = {
    "AcquisitionMatrixText": b"SH",
    "SliceNormalVector": b"FD",
    "MosaicRefAcqTimes": b"FD",
    "MrPhoenixProtocol": b"UN",
}

# -- CSA headers ---------------------------------------------------------------------------------


def csa2(entries: Entries) -> bytes:
    """A CSA2 header ("SV10") with these entries, laid out as scanners write it."""
    return b"SV10\x04\x03\x02\x01" + _body(entries, surplus=None)


def csa1(entries: Entries) -> bytes:
    """A CSA1 header, whose items add the number of items of the first entry to their lengths."""
    first = next(iter(entries.values()))
    return _body(entries, surplus=_items(first))


def _items(values: Sequence[str]) -> int:
    # Scanners leave room for six values wherever there is one.
    return max(6, len(values)) if values else 0


def _body(entries: Entries, *, surplus: int | None) -> bytes:
    parts = [struct.pack("<II", len(entries), 77)]
    for name, values in entries.items():
        vr = _CSA_VR.get(name, b"IS")
        count = _items(values)
        parts.append(struct.pack("<64si4siii", name.encode(), len(values), vr, 0, count, 77))
        for index in range(count):
            value = values[index].encode("latin-1") + b"\0" if index < len(values) else b""
            length = len(value) + (surplus or 0)
            parts.append(struct.pack("<4i", length, length if surplus is None else 0, 77, length))
            parts.append(value + b"\0" * (-len(value) % 4))
    return b"".join(parts)


def protocol(centres_lps_mm: NDArray[Any]) -> str:
    """The part of a protocol that asks for slices with these centres; zeros are not written."""
    lines = ["### ASCCONV BEGIN ###", f"sSliceArray.lSize\t = \t{len(centres_lps_mm)}"]
    for index, centre in enumerate(centres_lps_mm):
        lines.append(f"sSliceArray.asSlice[{index}].dThickness\t = \t3.0")
        lines += [
            f"sSliceArray.asSlice[{index}].sPosition.d{axis}\t = \t{value:.10g}"
            for axis, value in zip(("Sag", "Cor", "Tra"), centre, strict=True)
            if value
        ]
    return "\n".join([*lines, "### ASCCONV END ###", ""])


# -- Siemens mosaics -----------------------------------------------------------------------------


def mosaics(
    phantom: Phantom,
    *,
    entries: Rewrite | None = None,
    write: Callable[[Entries], bytes] = csa2,
    after: Change | None = None,
) -> list[Dataset]:
    """One mosaic for each volume of a phantom whose step runs along its normal or against it.

    `entries` changes what the CSA headers say, `write` is how they say it, and `after` changes the
    finished data sets.
    """
    return [_changed(_mosaic(phantom, t, entries, write), after) for t in range(phantom.volumes)]


def _changed(ds: Dataset, after: Change | None) -> Dataset:
    if after is not None:
        after(ds)
    return ds


def acquisition_times_ms(slices: int) -> list[float]:
    """When each slice of a volume is acquired: every second slice first, 60 ms apart."""
    order = [*range(0, slices, 2), *range(1, slices, 2)]
    return [60.0 * order.index(k) for k in range(slices)]


def _mosaic(
    phantom: Phantom, t: int, entries: Rewrite | None, write: Callable[[Entries], bytes]
) -> Dataset:
    columns, rows, slices = phantom.shape
    side = math.ceil(math.sqrt(slices))
    ds = _whole(phantom, t, down=side, across=side)
    cosines = np.asarray(phantom.orientation)
    along, down = cosines[:3] * phantom.spacing_mm[0], cosines[3:] * phantom.spacing_mm[1]
    origin = np.asarray(phantom.origin_lps_mm)
    corner = origin - (along * columns + down * rows) * ((side - 1) / 2)
    ds.ImagePositionPatient = [decimal_text(x) for x in corner]
    ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]
    ds.Manufacturer = "SIEMENS"
    ds.SpacingBetweenSlices = decimal_text(float(np.linalg.norm(phantom.step_mm)))
    ds.AcquisitionMatrix = [rows, 0, 0, columns]
    middle = origin + along * (columns / 2) + down * (rows / 2)
    image, series = _entries(middle + np.arange(slices)[:, None] * phantom.step_mm)
    image["AcquisitionMatrixText"] = [f"{rows}*{columns}"]
    if entries is not None:
        entries(image, series)
    _put_csa(ds, image=write(image), series=write(series))
    return ds


def _entries(
    centres: NDArray[Any],
) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    """What the two headers of a scanner say about slices with these centres."""
    run = centres[-1] - centres[0]
    image: dict[str, Sequence[str]] = {
        "EchoLinePosition": ["32"],
        "NumberOfImagesInMosaic": [str(len(centres))],
        "SliceNormalVector": [f"{part:.8f}" for part in run / np.linalg.norm(run)],
        "MosaicRefAcqTimes": [f"{time:.8f}" for time in acquisition_times_ms(len(centres))],
        "ImageComments": [],
    }
    return image, {"UsedPatientWeight": ["70"], "MrPhoenixProtocol": [protocol(centres)]}


def _put_csa(ds: Dataset, *, image: bytes, series: bytes) -> None:
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    for element, content in ((0x10, image), (0x20, series)):
        block.add_new(element, "OB", content + b"\0" * (len(content) % 2))


def _whole(phantom: Phantom, t: int, *, down: int, across: int) -> Dataset:
    """The first slice of a volume with all its slices as tiles of one image."""
    columns, rows, _ = phantom.shape
    volume = phantom.volume_slices(t)
    ds = deepcopy(volume[0])
    plane = np.zeros((rows * down, columns * across), get_pixels(ds).dtype)
    for k, piece in enumerate(volume):
        row, column = k // across * rows, k % across * columns
        plane[row : row + rows, column : column + columns] = get_pixels(piece)
    ds.Rows, ds.Columns = plane.shape
    set_pixels(ds, plane)
    ds.InstanceNumber = t + 1
    del ds.SliceLocation
    return ds


# -- United Imaging grids ------------------------------------------------------------------------


def grids(phantom: Phantom, *, after: Change | None = None) -> list[Dataset]:
    """One GRID image for each volume of a phantom."""
    return [_changed(_grid(phantom, t), after) for t in range(phantom.volumes)]


def _grid(phantom: Phantom, t: int) -> Dataset:
    slices = phantom.shape[2]
    across = math.ceil(math.sqrt(slices))
    ds = _whole(phantom, t, down=math.ceil(slices / across), across=across)
    ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "VFRAME"]
    ds.Manufacturer = "UIH"
    frames = []
    for k, time in enumerate(acquisition_times_ms(slices)):
        position = np.asarray(phantom.origin_lps_mm) + k * phantom.step_mm
        frame = Dataset()
        frame.AcquisitionDateTime = f"202001021011{12 + time / 1000:09.6f}"
        frame.ImagePositionPatient = [decimal_text(x) for x in position]
        frames.append(frame)
    block = ds.private_block(0x0065, "Image Private Header", create=True)
    block.add_new(0x50, "DS", str(slices))
    block.add_new(0x51, "SQ", frames)
    return ds


# -- faults --------------------------------------------------------------------------------------

AXIAL = Phantom(shape=(16, 12, 10))
OBLIQUE = replace(AXIAL, orientation=(0.6, 0.8, 0.0, -0.48, 0.36, 0.8), spacing_mm=(0.7, 1.3, 3.1))
#: Siemens numbers sagittal slices from right to left: against row direction × column direction.
SAGITTAL = replace(AXIAL, orientation=(0.0, 1.0, 0.0, 0.0, 0.0, -1.0), step_lps_mm=(2.0, 0.0, 0.0))

_EXACT: Expected = ("volume", EXACT_MM)


def _says(**entries: Sequence[str]) -> Rewrite:
    return lambda image, series: image.update(entries)


def _without(*names: str) -> Rewrite:
    def rewrite(image: dict[str, Sequence[str]], series: dict[str, Sequence[str]]) -> None:
        for name in names:
            image.pop(name, None)
            series.pop(name, None)

    return rewrite


def _csa_content(change: Callable[[bytes], bytes]) -> Change:
    def after(ds: Dataset) -> None:
        element = ds.private_block(0x0029, "SIEMENS CSA HEADER")[0x10]
        element.value = change(element.value)

    return after


def without_private(ds: Dataset) -> None:
    """What a de-identification leaves that removes private elements."""
    ds.remove_private_tags()
    del ds.AcquisitionMatrix


def count_in_public_block(ds: Dataset) -> None:
    """The number of tiles and their times in the MR header block, and no CSA header at all."""
    ds.remove_private_tags()
    block = ds.private_block(0x0019, "SIEMENS MR HEADER", create=True)
    block.add_new(0x0A, "US", AXIAL.shape[2])
    block.add_new(0x29, "FD", acquisition_times_ms(AXIAL.shape[2]))


def _other_count(ds: Dataset) -> None:
    ds.private_block(0x0019, "SIEMENS MR HEADER", create=True).add_new(0x0A, "US", 9)


def _one_column_less(ds: Dataset) -> None:
    plane = get_pixels(ds)[:, :-1].copy()
    ds.Columns -= 1
    set_pixels(ds, plane)


def _word_on_one_slice(ds: Dataset) -> None:
    """The word MOSAIC on a plain slice, as some XA30 exports have it (dcm2niix 553)."""
    ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]
    ds.Manufacturer = "SIEMENS"
    ds.AcquisitionMatrix = [ds.Rows, 0, 0, ds.Columns]


def _mosaic_fault(name: str, says: str, expected: Expected, phantom: Phantom, **how: Any) -> Fault:
    return Fault(f"mosaic-{name}", lambda: mosaics(phantom, **how), expected, says, phantom.slices)


def _grid_fault(name: str, says: str, expected: Expected, phantom: Phantom, **how: Any) -> Fault:
    return Fault(f"uih-{name}", lambda: grids(phantom, **how), expected, says, phantom.slices)


#: A turn of the image within its plane, which United Imaging's standard elements leave out.
TURNED = replace(AXIAL, orientation=(0.8, 0.6, 0.0, -0.6, 0.8, 0.0), volumes=4)


def united_gradients(phantom: Phantom) -> list[tuple[float, NDArray[Any]]]:
    """The b-value of each volume, and the unit vector along rows, columns and their normal."""
    return [
        (1.25 if t == 0 else 930.0, np.array(gradient_direction(t))) for t in range(phantom.volumes)
    ]


def diffusion_grids(phantom: Phantom) -> list[Dataset]:
    """Grids of a diffusion scan: the private direction is right, and the standard one is not."""
    scans = grids(phantom)
    for ds, (b_value, direction) in zip(scans, united_gradients(phantom), strict=True):
        weighted = b_value > 100
        block = ds.private_block(0x0065, "Image Private Header")
        block.add_new(0x09, "FD", b_value)
        block.add_new(0x37, "FD", direction.tolist() if weighted else [0.0, 0.0, 0.0])
        # Of a scan of 200 volumes it says 200.
        ds.NumberOfSlices = 200
        ds.DiffusionBValue = 1000.0 if weighted else 0.0
        ds.DiffusionDirectionality = "DIRECTIONAL" if weighted else "NONE"
        if weighted:
            ds.DiffusionGradientOrientation = direction.tolist()
    return scans


def _labelled_slices() -> list[Dataset]:
    return [_changed(ds, _word_on_one_slice) for ds in AXIAL.slices()]


def _sound_mosaics() -> list[Fault]:
    down = replace(AXIAL, step_lps_mm=(0.0, 0.0, -2.0))
    turned = replace(OBLIQUE, step_lps_mm=tuple(-OBLIQUE.step_mm))
    bare = _without("MrPhoenixProtocol")
    far = _says(MosaicRefAcqTimes=[f"{63962.5 + t}" for t in acquisition_times_ms(10)])
    return [
        _mosaic_fault("clean", "ten tiles, axial", _EXACT, AXIAL),
        _mosaic_fault("descending", "tiles from head to foot", _EXACT, down),
        _mosaic_fault("sagittal", "tiles against the normal", _EXACT, SAGITTAL),
        _mosaic_fault("oblique", "turned about two axes", _EXACT, OBLIQUE),
        _mosaic_fault("oblique-reversed", "turned, against the normal", _EXACT, turned),
        _mosaic_fault("full", "nine tiles, none blank", _EXACT, replace(AXIAL, shape=(16, 12, 9))),
        _mosaic_fault("volumes", "a run of three volumes", _EXACT, replace(AXIAL, volumes=3)),
        _mosaic_fault("csa1", "the older form of the header", _EXACT, OBLIQUE, write=csa1),
        _mosaic_fault("bare", "no protocol", _EXACT, SAGITTAL, entries=bare),
        _mosaic_fault(
            "by-protocol",
            "the protocol alone tells the direction",
            _EXACT,
            SAGITTAL,
            entries=_without("SliceNormalVector"),
        ),
        _mosaic_fault("late-times", "times of the whole run", _EXACT, AXIAL, entries=far),
        Fault("mosaic-word-alone", _labelled_slices, _EXACT, "plain slices that say MOSAIC"),
    ]


def _broken_mosaics() -> list[Fault]:
    tilted = _says(SliceNormalVector=["0.0", "0.5", "0.8660254"])
    against = _says(SliceNormalVector=["0.0", "0.0", "-1.0"])
    cut = _csa_content(lambda content: content[:300])
    absurd = _csa_content(lambda c: c[:8] + struct.pack("<I", 0x7FFFFFFF) + c[12:])
    return [
        _mosaic_fault(
            "undeclared",
            "no private element is left",
            refused("IMG-1607"),
            AXIAL,
            after=without_private,
        ),
        _mosaic_fault(
            "undirected",
            "a number of tiles and no direction",
            refused("IMG-1610"),
            AXIAL,
            after=count_in_public_block,
        ),
        _mosaic_fault("cut", "a header that ends early", refused("IMG-1606"), AXIAL, after=cut),
        _mosaic_fault("absurd", "absurd counts", refused("IMG-1606"), AXIAL, after=absurd),
        _mosaic_fault(
            "too-many",
            "more tiles than the image has room for",
            refused("IMG-1608"),
            AXIAL,
            entries=_says(NumberOfImagesInMosaic=["60"]),
        ),
        _mosaic_fault(
            "uneven",
            "a size that no tiling fits",
            refused("IMG-1608"),
            AXIAL,
            after=_one_column_less,
        ),
        _mosaic_fault(
            "two-counts", "two numbers of tiles", refused("IMG-1609"), AXIAL, after=_other_count
        ),
        _mosaic_fault(
            "tilted-normal", "a normal that is none", refused("IMG-1611"), AXIAL, entries=tilted
        ),
        _mosaic_fault(
            "mirrored",
            "the protocol runs the other way",
            refused("IMG-1611"),
            AXIAL,
            entries=against,
        ),
        _mosaic_fault(
            "without-spacing",
            "no spacing of the slices",
            refused("IMG-1612"),
            AXIAL,
            after=lambda ds: ds.__delattr__("SpacingBetweenSlices"),
        ),
    ]


def _uih() -> list[Fault]:
    def short(ds: Dataset) -> None:
        ds.private_block(0x0065, "Image Private Header")[0x51].value.pop()

    def unplaced(ds: Dataset) -> None:
        del ds.private_block(0x0065, "Image Private Header")[0x51].value[3].ImagePositionPatient

    twelve = replace(OBLIQUE, shape=(16, 12, 12))
    return [
        _grid_fault("clean", "ten tiles, 4 across and 3 down", _EXACT, AXIAL),
        _grid_fault("oblique", "twelve tiles, turned", _EXACT, twelve),
        _grid_fault("descending", "tiles against the normal", _EXACT, SAGITTAL),
        _grid_fault("volumes", "three volumes", _EXACT, replace(AXIAL, volumes=3)),
        Fault(
            "uih-diffusion",
            lambda: diffusion_grids(TURNED),
            _EXACT,
            "a diffusion scan, turned within its plane",
            TURNED.slices,
        ),
        _grid_fault(
            "undeclared",
            "no private element is left",
            refused("IMG-1613"),
            AXIAL,
            after=Dataset.remove_private_tags,
        ),
        _grid_fault("short", "a tile is not described", refused("IMG-1613"), AXIAL, after=short),
        _grid_fault("unplaced", "a tile has no place", refused("IMG-1613"), AXIAL, after=unplaced),
        _grid_fault(
            "uneven",
            "a size that no tiling fits",
            refused("IMG-1614"),
            AXIAL,
            after=_one_column_less,
        ),
    ]


#: Tiled images, sound and broken.
FAULTS: dict[str, Fault] = {
    fault.name: fault for family in (_sound_mosaics, _broken_mosaics, _uih) for fault in family()
}
