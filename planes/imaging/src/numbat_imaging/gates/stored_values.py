"""Stored values are what the header means: sign, bits, colours, palettes, floating point."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nibabel as nib
import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset
from pydicom.pixels.processing import apply_color_lut

from numbat_gates import Check, gate
from numbat_imaging.gates._native_frames import native_frames
from numbat_imaging.gates._palettes import palettes
from numbat_imaging.phantoms import Phantom, encapsulation, pixel_catalogue, write_datasets
from numbat_imaging.phantoms.pixel_faults import (
    palette_values,
    with_palette,
    with_segmented_palette,
)
from numbat_imaging.phantoms.reading import folder_of_fault, read_fault
from numbat_imaging.values.colour import expanded
from numbat_imaging.values.pixels import read_pixels
from numbat_imaging.volume import read_series

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
_SYNTAXES = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")
_RNG = np.random.default_rng(27)

Array = NDArray[Any]


@gate(
    "IMG-G27",
    phase=2,
    discharges=["IMG-R027"],
    title="Stored values are decoded as the header means them",
)
def stored_values(check: Check) -> None:
    _depths(check)
    _one_bit(check)
    _floats(check)
    _compressed_depths(check)
    _colours(check)
    _jpeg_colours(check)
    _palettes(check)
    _refusals(check)
    native_frames(check)
    palettes(check)
    _twelve_bits(check)


def _pixels_of(ds: Dataset, **options: bool) -> Array:
    with TemporaryDirectory() as folder:
        return read_pixels(write_datasets([ds], folder)[0], **options)


def _blank(rows: int, columns: int, syntax: str = "1.2.840.10008.1.2.1") -> Dataset:
    return Phantom(shape=(columns, rows, 1), transfer_syntax_uid=syntax).slices()[0]


def _describe(ds: Dataset, *, allocated: int, stored: int, high: int, signed: bool) -> None:
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = allocated, stored, high
    ds.PixelRepresentation = int(signed)


def _depths(check: Check) -> None:
    """Every width and sign, used bits anywhere in the word, rubbish in the others."""
    shape = (3, 5, 7)
    for allocated, signed, syntax in itertools.product((8, 16, 32, 64), (False, True), _SYNTAXES):
        whole = (allocated, allocated - 1)
        for stored, high in {whole, (allocated - 3, allocated - 2), (1, 0), (5, 6)}:
            low = -(1 << (stored - 1)) if signed else 0
            truth = _RNG.integers(
                low, low + (1 << stored) - 1, shape, endpoint=True, dtype=_wide(signed)
            )
            used = ((1 << stored) - 1) << (high + 1 - stored)
            words = (truth.astype("u8") << np.uint64(high + 1 - stored)) & np.uint64(used)
            rubbish = _RNG.integers(0, 1 << 63, shape, dtype="u8") & ~np.uint64(used)
            ds = _blank(*shape[1:], syntax)
            _describe(ds, allocated=allocated, stored=stored, high=high, signed=signed)
            ds.NumberOfFrames = shape[0]
            order = ">" if syntax == _SYNTAXES[2] else "<"
            data = (words | rubbish).astype(f"{order}u{allocated // 8}").tobytes()
            ds.PixelData = data + b"\0" * (len(data) % 2)
            ds["PixelData"].VR = "OB" if allocated == 8 else "OW"
            sign = "signed" if signed else "unsigned"
            name = f"{stored} of {allocated} bits below bit {high + 1}, {sign}, in {syntax}"
            if allocated == 8 and syntax == _SYNTAXES[0]:
                ds["PixelData"].VR = "OW"
            check.equal(name, _pixels_of(ds), truth.astype(f"{'iu'[not signed]}{allocated // 8}"))


def _wide(signed: bool) -> str:
    return "i8" if signed else "u8"


def _one_bit(check: Check) -> None:
    """Frames of 35 bits follow each other bit by bit, also in the words of big endian."""
    truth = _RNG.integers(0, 2, (6, 5, 7), dtype="u1")
    packed = np.packbits(truth.ravel(), bitorder="little").tobytes()
    packed += b"\0" * (len(packed) % 2)
    swapped = np.frombuffer(packed, "u2").byteswap().tobytes()
    for syntax, vr, data in (
        (_SYNTAXES[1], "OB", packed),
        (_SYNTAXES[0], "OW", packed),
        (_SYNTAXES[2], "OB", packed),
        (_SYNTAXES[2], "OW", swapped),
    ):
        ds = _blank(5, 7, syntax)
        _describe(ds, allocated=1, stored=1, high=0, signed=False)
        ds.NumberOfFrames, ds.PixelData = 6, data
        ds["PixelData"].VR = vr
        check.equal(f"one bit as {vr} in {syntax}", _pixels_of(ds), truth)
    volume = read_fault("pixels-of-one-bit")
    check.equal("a one-bit volume holds", np.unique(volume.voxels), np.array([0, 1], "u1"))


def _floats(check: Check) -> None:
    for name, dtype in (("FloatPixelData", "f4"), ("DoubleFloatPixelData", "f8")):
        truth = _RNG.normal(size=(2, 5, 7)).astype(dtype)
        truth[0, 0, :3] = np.nan, np.inf, -0.0
        for syntax in _SYNTAXES:
            ds = _blank(5, 7, syntax)
            for keyword in ("PixelData", "BitsStored", "HighBit", "PixelRepresentation"):
                delattr(ds, keyword)
            ds.BitsAllocated, ds.NumberOfFrames = truth.itemsize * 8, 2
            order = ">" if syntax == _SYNTAXES[2] else "<"
            setattr(ds, name, truth.astype(f"{order}{dtype}").tobytes())
            found = _pixels_of(ds)
            bits = f"u{truth.itemsize}"
            check.equal(f"{name} in {syntax}, bit by bit", found.view(bits), truth.view(bits))
    for name in ("float-pixels", "double-float-pixels"):
        check.equal(f"{name}: values", read_fault(name).values(), Phantom().truth_voxels() * 1.0)


def _compressed_depths(check: Check) -> None:
    """Depth and sign of the stream against those of the header, where both agree on the values."""
    for syntax, name in (
        (encapsulation.JPEG_LS, "JPEG-LS"),
        (encapsulation.JPEG_2000, "JPEG 2000"),
    ):
        for stored, precision in ((12, 12), (12, 16), (7, 7), (16, 12), (10, 13)):
            truth = _RNG.integers(0, 1 << min(stored, precision), (36, 40)).astype("<u2")
            ds = _compressed(truth, syntax, bits=precision)
            _describe(ds, allocated=16, stored=stored, high=stored - 1, signed=False)
            label = f"{name} of {precision} bits for {stored} stored ones"
            check.equal(label, _pixels_of(ds), truth)
        truth = _RNG.integers(-2048, 2048, (36, 40)).astype("<i2")
        plain = (truth.astype("<u2")) & 0x0FFF
        ds = _compressed(plain, syntax, bits=12)
        _describe(ds, allocated=16, stored=12, high=11, signed=True)
        check.equal(f"{name}: negative numbers in an unsigned stream", _pixels_of(ds), truth)
    signed = _compressed(truth, encapsulation.JPEG_2000, bits=12)
    _describe(signed, allocated=16, stored=12, high=11, signed=True)
    check.equal("JPEG 2000 with a sign of its own", _pixels_of(signed), truth)
    for name in ("J2K_pixelrep_mismatch.dcm", "693_J2KI.dcm"):
        path = check.data(_BUNDLED / name)
        check.equal(name, read_pixels(path), pydicom.dcmread(path).pixel_array)


def _compressed(plane: Array, syntax: str, *, bits: int = 0) -> Dataset:
    ds = _blank(*plane.shape[:2])
    stream = encapsulation.stream_of(plane, syntax, bits=bits)
    encapsulation.set_streams(ds, [stream], syntax)
    return ds


def _colours(check: Check) -> None:
    truth = pixel_catalogue.COLOUR.truth_voxels()
    check.equal("planar and interleaved colours are one image", _shown("colours-in-planes"), truth)
    stored = _RNG.integers(0, 256, (36, 40, 3), dtype="u1")
    ds = pixel_catalogue.COLOUR.slices()[0]
    ds.PhotometricInterpretation, ds.PixelData = "YBR_FULL", stored.tobytes()
    check.equal("stored YCbCr stays as it is", _pixels_of(ds), stored)
    error = np.abs(_pixels_of(ds, rgb=True).astype(float) - _rgb_of(stored))
    check.at_most("YCbCr as RGB against the formula of the standard", float(error.max()), 1.0)
    halved = read_pixels(min(folder_of_fault("colours-halved").iterdir()))
    check.equal("halved chroma: pairs share it", halved[:, ::2, 1:], halved[:, 1::2, 1:])
    wide = read_pixels(min(folder_of_fault("colours-of-16-bits").iterdir()))
    check.equal("colours of 16 bits, as frames", wide, pixel_catalogue.COLOUR.plane(0).astype("u2"))
    grey = read_fault("monochrome1")
    check.equal("MONOCHROME1 is not inverted", grey.voxels, Phantom().truth_voxels())


def _shown(name: str) -> Array:
    voxels = read_fault(name).voxels
    return np.stack([voxels[colour] for colour in "RGB"], axis=-1)


def _rgb_of(ybr: Array) -> NDArray[np.float64]:
    """PS3.3 C.7.6.3.1.2, solved for red, green and blue, and cut to 8 bits."""
    forward = [[0.2990, 0.5870, 0.1140], [-0.1687, -0.3313, 0.5000], [0.5000, -0.4187, -0.0813]]
    shifted = ybr.astype(float) - np.array([0.0, 128.0, 128.0])
    back: NDArray[np.float64] = shifted @ np.linalg.inv(np.array(forward)).T
    return np.clip(back, 0.0, 255.0)


def _jpeg_colours(check: Check) -> None:
    """Streams say themselves whether they are YCbCr; headers are often wrong about it."""
    smooth = np.stack(np.broadcast_arrays(*np.mgrid[0:72:2, 40:200:4], 90), axis=-1).astype("u1")
    for header in ("RGB", "YBR_FULL", "YBR_FULL_422"):
        ds = pixel_catalogue.COLOUR.slices()[0]
        stream = encapsulation.stream_of(smooth, encapsulation.JPEG_8)
        encapsulation.set_streams(ds, [stream], encapsulation.JPEG_8)
        ds.PhotometricInterpretation = header
        error = np.abs(_pixels_of(ds, rgb=True).astype(int) - smooth)
        check.at_most(f"JPEG with a header of {header}", int(error.max()), 6)
    # Right inverse transforms may differ by one step; where luma and chroma both do, blue differs
    # by 1 + 1.772 of them (ITU-R BT.601), three after rounding.
    for name, room in (
        ("SC_jpeg_no_color_transform.dcm", 1),
        ("SC_jpeg_no_color_transform_2.dcm", 1),
        ("SC_rgb_dcmtk_+eb+cr.dcm", 1),
        ("SC_rgb_dcmtk_+eb+cy+s2.dcm", 3),
        ("SC_rgb_jpeg_gdcm.dcm", 0),
        ("GDCMJ2K_TextGBR.dcm", 0),
        ("examples_ybr_color.dcm", 3),
    ):
        path = check.data(_BUNDLED / name)
        truth = pydicom.dcmread(path).pixel_array
        shown = read_pixels(path, rgb=True)
        check.close(f"{name} as RGB", measured=shown, required=truth, atol=room)


def _palettes(check: Check) -> None:
    indices = pixel_catalogue.BYTES.truth_voxels()
    truth = palette_values()[indices]
    for name in ("palette", "palette-8-bit"):
        check.equal(f"{name}: colours", _shown(name), truth)
    path = min(folder_of_fault("palette").iterdir())
    check.equal("stored indices", read_pixels(path), pixel_catalogue.BYTES.plane(0))
    for name, change in (("plain", with_palette(16)), ("segmented", with_segmented_palette)):
        ds = pixel_catalogue.BYTES.slices()[0]
        change(ds)
        peer = apply_color_lut(ds.pixel_array, ds) // 257
        check.equal(f"a {name} palette as pydicom has it", _pixels_of(ds, rgb=True), peer)
    ds = pixel_catalogue.BYTES.slices()[0]
    with_palette(8)(ds)
    for colour in ("Red", "Green", "Blue"):
        setattr(ds, f"{colour}PaletteColorLookupTableDescriptor", [250, 3, 8])
        table = getattr(ds, f"{colour}PaletteColorLookupTableData")
        setattr(ds, f"{colour}PaletteColorLookupTableData", table[:250])
    nearest = palette_values()[np.clip(pixel_catalogue.BYTES.plane(0).astype(int) - 3, 0, 249)]
    check.equal("indices outside take the nearer end", _pixels_of(ds, rgb=True), nearest)
    _segments(check)
    path = check.data(_BUNDLED / "examples_palette.dcm")
    ds = pydicom.dcmread(path)
    peer = (apply_color_lut(ds.pixel_array, ds) >> 8).astype("u1")
    check.equal("a real palette", read_pixels(path, rgb=True), peer)


def _segments(check: Check) -> None:
    """Discrete, linear and indirect segments of 8 and 16 bits (PS3.3 C.7.9.2)."""
    plain = [0, 3, 10, 20, 30, 1, 4, 70]
    values = [10, 20, 30, 40, 50, 60, 70]
    copied = [*values, 10, 20, 30, 40, 50, 60, 70]
    for dtype, words, required in (
        ("u1", plain, values),
        ("u2", plain, values),
        ("u1", [*plain, 2, 2, 0, 0, 0, 0], copied),
        ("u2", [*plain, 2, 2, 0, 0], copied),
    ):
        found = expanded(np.array(words, dtype), len(required), file="a file")
        check.equal(f"{words} as {dtype}", found.tolist(), required)
    for name, words in (
        ("cut off", [0, 9, 1, 2]),
        ("too few", [0, 2, 1, 2]),
        ("past the table", [0, 8, *range(8)]),
        ("of no kind", [7, 2, 1, 2, 3]),
        ("linear from nothing", [1, 7, 70]),
        ("without end", [0, 1, 5, 2, 60, 6, 0, 2, 1, 0, 0]),
        ("empty", [0, 0, 0, 0, 0, 0]),
        ("pointing outside", [0, 1, 5, 2, 1, 500, 0]),
    ):
        with check.refuses("IMG-1418", f"segments {name}"):
            expanded(np.array(words, "u2"), 7, file="a file")


def _refusals(check: Check) -> None:
    for code, name in (
        ("IMG-1401", "pixels-of-24-bits"),
        ("IMG-1401", "sign-unstated"),
        ("IMG-1402", "colours-of-16-bits"),
        ("IMG-1416", "frames-sign-ambiguous"),
        ("IMG-1417", "colours-transformed-twice"),
        ("IMG-1418", "palette-cut"),
        ("IMG-1418", "palette-mislabelled"),
        ("IMG-1418", "palette-colour"),
    ):
        with check.refuses(code, name):
            read_fault(name)
    too_deep = _compressed(np.full((36, 40), 5000, "<u2"), encapsulation.JPEG_LS)
    _describe(too_deep, allocated=16, stored=12, high=11, signed=False)
    with check.refuses("IMG-1416", "values that need more bits than the header has"):
        _pixels_of(too_deep)
    negative = _compressed(np.full((36, 40), -5, "<i2"), encapsulation.JPEG_2000)
    with check.refuses("IMG-1416", "negative values in an unsigned image"):
        _pixels_of(negative)
    shifted = _compressed(np.full((36, 40), 5, "<u2"), encapsulation.JPEG_LS, bits=12)
    _describe(shifted, allocated=16, stored=12, high=15, signed=False)
    with check.refuses("IMG-1416", "a HighBit that the stream does not reach"):
        _pixels_of(shifted)
    untransformed = pixel_catalogue.COLOUR.slices()[0]
    encapsulation.encoded(encapsulation.JPEG_2000)(untransformed)
    check.equal(
        "JPEG 2000 without transform", _pixels_of(untransformed), pixel_catalogue.COLOUR.plane(0)
    )
    untransformed.PhotometricInterpretation = "YBR_RCT"
    with check.refuses("IMG-1417", "a transform that the stream did not use"):
        _pixels_of(untransformed)
    untransformed = pixel_catalogue.COLOUR.slices()[0]
    untransformed.PhotometricInterpretation = "YBR_ICT"
    with check.refuses("IMG-1417", "JPEG 2000's colours in no JPEG 2000"):
        _pixels_of(untransformed, rgb=True)


def _twelve_bits(check: Check) -> None:
    """0x0F0F in 12 bits is 3855 without a sign and -241 with one."""
    for signed, required in ((False, 3855), (True, -241)):
        ds = _blank(2, 2)
        _describe(ds, allocated=16, stored=12, high=11, signed=signed)
        ds.PixelData = np.array([0x0F0F, 0xFFFF, 0x7F0F, 0xAF0F], "<u2").tobytes()
        values = _pixels_of(ds)
        check.equal(f"0x0F0F and rubbish above, signed {signed}", int(values[0, 0]), required)
        check.equal(f"0xFFFF, signed {signed}", int(values[0, 1]), -1 if signed else 4095)
        same = (values == required).tolist()
        check.equal(
            f"rubbish changes nothing, signed {signed}", same, [[True, False], [True, True]]
        )
    scans = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R027.files"])
    if scans is None:
        return
    folder = scans / "signed_12bit"
    for path in sorted((folder / "dicom").iterdir()):
        ds = pydicom.dcmread(check.data(path))
        reference = folder / "ref" / f"{ds.SeriesNumber}.nii.gz"
        image: Any = nib.load(reference)
        # The converter's rows run upward; the values are the same.
        reference_values = np.sort(np.asarray(image.dataobj).ravel())
        found = np.sort(read_series(path, slice_thickness_mm=1.0).values().ravel())
        check.equal(
            f"{path.name}: the values of the reference", found, reference_values.astype(float)
        )
