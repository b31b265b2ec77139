"""Stored values: every depth, sign, byte order and colour, against pydicom's decoders."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydicom import Dataset, dcmread
from pydicom.filereader import read_file_meta_info
from pydicom.pixels import apply_color_lut, pixel_array
from pydicom.uid import (
    JPEG2000,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLSNearLossless,
)

from numbat_imaging import read_series
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.reading import inspect_fault, read_fault
from numbat_imaging.series.instance import instances_from_header
from numbat_imaging.values.pixels import check_format, read_into, read_pixels, stored_dtype
from numbat_registries import Refusal

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"

LOSSY = {JPEGBaseline8Bit, JPEGExtended12Bit, JPEGLSNearLossless, JPEG2000}


def decode(path: Path) -> NDArray[np.generic]:
    header = read_header(FileRef(str(path)))
    assert header is not None
    instance = instances_from_header(header)[0]
    check_format(instance.pixels, file=path.name)
    plane = np.empty((instance.pixels.rows, instance.pixels.columns), stored_dtype(instance.pixels))
    read_into(instance, plane)
    return plane


def shown_by_pydicom(path: Path) -> NDArray[np.generic]:
    """Every frame, colours and palettes as red, green and blue of 8 bits."""
    ds = dcmread(path, force=True)
    truth = pixel_array(ds)
    if ds.PhotometricInterpretation == "PALETTE COLOR":
        return (apply_color_lut(truth, ds) >> 8).astype(np.uint8)
    return truth


def rounding_of_decoders(path: Path) -> int:
    """How far two right decoders may lie apart, in stored steps.

    Inverse transforms of lossy JPEG may differ by one step; luma and chroma that differ by one make
    blue differ by 1 + 1.772 (ITU-R BT.601), so by three after rounding.
    """
    if read_file_meta_info(path).get("TransferSyntaxUID") not in LOSSY:
        return 0
    return 3 if "YBR" in dcmread(path).PhotometricInterpretation else 1


def test_pydicoms_files_decode_as_pydicom_decodes_them() -> None:
    compared, refused = [], {}
    for path in sorted(BUNDLED.glob("*.dcm")):
        try:
            shown = read_pixels(path)
            if (shown.shape[-1] == 3 and shown.itemsize == 1) or "palette" in path.name:
                shown = read_pixels(path, rgb=True)
        except Refusal as refusal:
            refused[path.name] = refusal.code
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            truth = shown_by_pydicom(path)
        bound = rounding_of_decoders(path)
        apart = np.abs(shown.astype(np.float64) - truth)
        assert apart.max() <= bound, path.name
        compared.append(path.name)
    assert len(compared) >= 57
    no_pixels = ("IMG-1010", "IMG-1011", "IMG-1016", "IMG-1801")
    assert {name: code for name, code in refused.items() if code not in no_pixels} == {
        # A scan header that no standard allows; pydicom's plugins refuse it as well.
        "JPEG-lossy.dcm": "IMG-1405",
        # A delimiter was written over the size of the image.
        "JPEG2000-embedded-sequence-delimiter.dcm": "IMG-1414",
        "MR_small_padded.dcm": "IMG-1403",
        "MR_truncated.dcm": "IMG-1403",
        "badVR.dcm": "IMG-1012",
    }


@given(
    allocated=st.sampled_from((8, 16, 32)),
    data=st.data(),
    signed=st.booleans(),
    syntax=st.sampled_from((ImplicitVRLittleEndian, ExplicitVRLittleEndian, ExplicitVRBigEndian)),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60, deadline=None)
def test_every_depth_high_bit_sign_and_byte_order(
    tmp_path_factory: pytest.TempPathFactory,
    allocated: int,
    data: st.DataObject,
    signed: bool,
    syntax: str,
    seed: int,
) -> None:
    stored = data.draw(st.integers(1, allocated))
    high = data.draw(st.integers(stored - 1, allocated - 1))
    rng = np.random.default_rng(seed)
    low = -(1 << (stored - 1)) if signed else 0
    truth = rng.integers(low, low + (1 << stored), size=(5, 7), dtype=np.int64)
    rubbish = rng.integers(0, 1 << allocated, size=truth.shape, dtype=np.int64)
    shift = high + 1 - stored
    used = ((1 << stored) - 1) << shift
    words = (rubbish & ~used) | ((truth << shift) & used)
    ds = Phantom(shape=(7, 5, 1), transfer_syntax_uid=syntax).slices()[0]
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = allocated, stored, high
    ds.PixelRepresentation = int(signed)
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    raw = words.astype(f"{order}u{allocated // 8}").tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    ds["PixelData"].VR = "OB" if allocated == 8 and syntax != ImplicitVRLittleEndian else "OW"
    folder = tmp_path_factory.mktemp("depth")
    plane = decode(write_datasets([ds], folder)[0])
    np.testing.assert_array_equal(plane, truth)


@pytest.mark.parametrize("columns", [7, 8])
def test_bytes_in_big_endian_words_are_in_their_order(columns: int, tmp_path: Path) -> None:
    phantom = Phantom(shape=(columns, 5, 1), dtype="uint8", transfer_syntax_uid=ExplicitVRBigEndian)
    ds = phantom.slices()[0]
    ds.PixelData = np.frombuffer(ds.PixelData, "u2").byteswap().tobytes()
    ds["PixelData"].VR = "OW"
    path = write_datasets([ds], tmp_path)[0]
    np.testing.assert_array_equal(decode(path), phantom.plane(0))
    np.testing.assert_array_equal(decode(path), pixel_array(dcmread(path)))


def colour(photometric: str, planar: int) -> Dataset:
    ds = Phantom(shape=(6, 4, 1), dtype="uint8", samples=3, modality="SC").slices()[0]
    plane = np.frombuffer(ds.PixelData, "u1").reshape(4, 6, 3)
    ds.PhotometricInterpretation, ds.PlanarConfiguration = photometric, planar
    ds.PixelData = (plane.transpose(2, 0, 1) if planar else plane).tobytes()
    return ds


@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("photometric", ["RGB", "YBR_FULL"])
def test_colours_equal_pydicoms(photometric: str, planar: int, tmp_path: Path) -> None:
    path = write_datasets([colour(photometric, planar)], tmp_path)[0]
    plane = decode(path)
    assert plane.dtype.names == ("R", "G", "B")
    np.testing.assert_array_equal(plane.view("u1").reshape(4, 6, 3), pixel_array(dcmread(path)))


def test_planar_and_interleaved_colours_are_one_image(tmp_path: Path) -> None:
    planes = [
        decode(write_datasets([colour("RGB", planar)], tmp_path / str(planar))[0])
        for planar in (0, 1)
    ]
    np.testing.assert_array_equal(*planes)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("pixels-of-24-bits", "IMG-1401"),
        ("sign-unstated", "IMG-1401"),
        ("bits-stored-over-allocated", "IMG-1401"),
        ("colours-of-16-bits", "IMG-1402"),
        ("video", "IMG-1409"),
        ("fragments-in-a-plain-syntax", "IMG-1410"),
    ],
)
def test_inspect_and_read_refuse_the_same_pixels(name: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_fault(name)
    assert caught.value.code == code
    found = inspect_fault(name)
    assert not found.complete
    told = [diagnostic.code for diagnostic in found.refusals]
    told += [r.diagnostic.code for r in found.account.having("refused") if r.diagnostic]
    assert set(told) == {code}


@pytest.mark.parametrize(("bits", "signed"), [(7, 0), (8, 1)])
def test_colours_of_odd_depth_or_sign_are_refused(bits: int, signed: int, tmp_path: Path) -> None:
    ds = colour("RGB", 0)
    ds.BitsStored, ds.HighBit, ds.PixelRepresentation = bits, bits - 1, signed
    write_datasets([ds], tmp_path)
    with pytest.raises(Refusal) as caught:
        read_series(tmp_path)
    assert caught.value.code == "IMG-1402"


def test_bits_stored_may_differ_within_a_stack(tmp_path: Path) -> None:
    phantom = Phantom(shape=(8, 6, 4), bits_stored=12)
    slices = phantom.slices()
    slices[2].BitsStored, slices[2].HighBit = 16, 15
    write_datasets(slices, tmp_path)
    np.testing.assert_array_equal(read_series(tmp_path).voxels, phantom.truth_voxels())
