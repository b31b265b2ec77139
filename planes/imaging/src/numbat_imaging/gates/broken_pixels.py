"""Pixel data that contradict their header or are damaged: the right values, or a refusal."""

import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom import Dataset

from numbat_gates import Check, gate
from numbat_imaging.gates._coded_frames import coded_frames
from numbat_imaging.gates._known_pixels import evidence, outcome
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import Phantom, encapsulation, pixel_catalogue, write_datasets
from numbat_imaging.phantoms.reading import folder_of_fault, instance_of_fault, read_fault
from numbat_imaging.series.instance import pixel_format
from numbat_imaging.values.pixels import check_present, plane_bytes, read_into, read_pixels

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
_FRAMES = pixel_catalogue.FRAMES
_DELIMITER = b"\xfe\xff\xdd\xe0\0\0\0\0"
#: Nothing larger is allocated for a file that is refused.
_BOUND_BYTES = 8 << 20

Array = NDArray[Any]
Change = Callable[[Dataset], None]


@gate(
    "IMG-G30",
    phase=2,
    discharges=["IMG-R030"],
    title="Broken pixel data give the right values or a refusal",
)
def broken_pixels(check: Check) -> None:
    _lengths(check)
    _frame_counts(check)
    _other_descriptions(check)
    _fragments(check)
    coded_frames(check)
    _streams(check)
    _damaged_streams(check)
    _bombs(check)
    _public_files(check)


def _native(planes: Array, change: Change) -> Dataset:
    """A file of several uncompressed frames."""
    ds = Phantom(shape=(planes.shape[2], planes.shape[1], 1)).slices()[0]
    ds.NumberOfFrames, ds.PixelData = len(planes), planes.tobytes()
    change(ds)
    return ds


def _file_of(ds: Dataset, folder: str) -> Path:
    return write_datasets([ds], folder)[0]


def _planes(frames: int, rows: int = 5, columns: int = 7, dtype: str = "<u2") -> Array:
    return np.arange(frames * rows * columns).reshape(frames, rows, columns).astype(dtype)


def _lengths(check: Check) -> None:
    """Every number of bytes but the one that is meant, and the padding to an even one."""
    for dtype, frames in (("<u2", 3), ("u1", 1), ("u1", 3)):
        planes = _planes(frames, dtype=dtype)
        whole = planes.nbytes
        for length in (
            0,
            2,
            whole // 2,
            whole - 2,
            whole - 1,
            whole,
            whole + 1,
            whole + 2,
            2 * whole,
        ):

            def change(ds: Dataset, length: int = length, planes: Array = planes) -> None:
                ds.BitsAllocated = ds.BitsStored = planes.itemsize * 8
                ds.HighBit = ds.BitsStored - 1
                ds.PixelData = (planes.tobytes() * 2)[:length]
                ds["PixelData"].VR = "OB"

            name = f"{length} bytes for {whole} ({frames} frames)"
            with TemporaryDirectory() as folder:
                path = _file_of(_native(planes, change), folder)
                # An odd length is padded in the file.
                if whole <= length + length % 2 <= whole + whole % 2:
                    check.equal(name, read_pixels(path), planes if frames > 1 else planes[0])
                    continue
                with check.refuses("IMG-1403", name):
                    read_pixels(path)
    path = folder_of_fault("clean") / "IM0001"
    with TemporaryDirectory() as folder:
        cut = Path(folder) / "cut"
        cut.write_bytes(path.read_bytes()[:-100])
        with check.refuses("IMG-1403", "a file that ends inside its pixels") as caught:
            read_pixels(cut)
        check.equal("bytes that are there", evidence(caught).get("found_bytes"), 2048 - 100)


def _frame_counts(check: Check) -> None:
    """NumberOfFrames that is absent, zero or wrong (pydicom issues 1666 and 1844)."""
    planes = _planes(4)
    for said, required in ((None, 4), (0, 4), (1, 4), (3, 4), (5, 4), (4000, 4)):

        def change(ds: Dataset, said: int | None = said) -> None:
            ds.NumberOfFrames = said

        name = f"NumberOfFrames {said} for {required} frames"
        with TemporaryDirectory() as folder, check.refuses("IMG-1403", name) as caught:
            read_pixels(_file_of(_native(planes, change), folder))
        fields = evidence(caught)
        check.equal(f"{name}: said", fields.get("frames"), said or 1)
        check.equal(f"{name}: there", fields.get("frames_found"), required)
    for said in (None, 0, 1):

        def change_one(ds: Dataset, said: int | None = said) -> None:
            ds.NumberOfFrames = said

        with TemporaryDirectory() as folder:
            path = _file_of(_native(planes[:1], change_one), folder)
            check.equal(f"NumberOfFrames {said} for one frame", read_pixels(path), planes[0])
    with TemporaryDirectory() as folder:
        ds = _native(planes, lambda ds: setattr(ds, "NumberOfFrames", -4))
        with check.refuses("IMG-1401", "NumberOfFrames below zero"):
            read_pixels(_file_of(ds, folder))
    for name, found in (
        ("frames-one-fewer", 7),
        ("frames-one-more", 9),
        ("frames-blank-for-one", 7),
    ):
        with check.refuses("IMG-1411", name) as caught:
            read_fault(name)
        check.equal(f"{name}: frames there", evidence(caught).get("frames_found"), found)
    _encoded_frame_counts(check)


def _encoded_frame_counts(check: Check) -> None:
    """Streams that begin in fragments tell how many frames there are."""
    planes = _planes(4, 36, 40)
    for syntax in (encapsulation.RLE, encapsulation.JPEG_LS, encapsulation.JPEG_2000):
        streams = [encapsulation.stream_of(plane, syntax) for plane in planes]
        for said in (None, 2, 3, 5):
            with TemporaryDirectory() as folder:
                ds = _native(planes, lambda ds: None)
                ds.NumberOfFrames = said
                encapsulation.set_streams(ds, streams, syntax, cut=2)
                name = f"{said} frames said, four streams of {syntax} in eight fragments"
                with check.refuses("IMG-1411", name) as caught:
                    read_pixels(_file_of(ds, folder))
                check.equal(f"{name}: there", evidence(caught).get("frames_found"), 4)


def _other_descriptions(check: Check) -> None:
    """Rows, columns or width of pixels that do not go with the data."""
    planes = _planes(2)
    for name, keyword, value in (
        ("a row more", "Rows", 6),
        ("a row fewer", "Rows", 4),
        ("a column more", "Columns", 8),
        ("half the bits", "BitsAllocated", 8),
        ("twice the bits", "BitsAllocated", 32),
        ("three samples", "SamplesPerPixel", 3),
    ):

        def change(ds: Dataset, keyword: str = keyword, value: int = value) -> None:
            setattr(ds, keyword, value)
            if keyword == "BitsAllocated":
                ds.BitsStored, ds.HighBit = value, value - 1
            if keyword == "SamplesPerPixel":
                ds.PhotometricInterpretation, ds.PlanarConfiguration = "RGB", 0

        with TemporaryDirectory() as folder, check.refuses("IMG-1403", name):
            read_pixels(_file_of(_native(planes, change), folder))
    for name in ("pixels-as-unknown-vr", "pixels-as-bytes"):
        check.equal(name, read_fault(name).voxels, Phantom().truth_voxels())
    for name in ("pixels-too-long", "truncated-pixels", "one-bit"):
        with check.refuses("IMG-1403", name):
            read_fault(name)


def _fragments(check: Check) -> None:
    for name in pixel_catalogue.FAULTS:
        if name.startswith(("frames-table", "frames-with-blanks")):
            check.equal(name, read_fault(name).voxels, _FRAMES.truth_voxels())
    with check.refuses("IMG-1412", "frames in pieces that nothing tells apart"):
        read_fault("frames-deflated-in-pieces")
    with check.refuses("IMG-1413", "a fragment longer than the file"):
        read_fault("frames-fragment-cut")
    content = min(folder_of_fault("enhanced-rle").iterdir()).read_bytes()
    assert content.endswith(_DELIMITER)
    whole = content[: -len(_DELIMITER)]
    truth = read_pixels(min(folder_of_fault("enhanced-rle").iterdir()))
    last = whole.rindex(b"\xfe\xff\x00\xe0")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for name, data in (
            ("no delimiter at the end", whole),
            ("half a delimiter at the end", whole + _DELIMITER[:5]),
            ("bytes after the delimiter", content + bytes(64)),
        ):
            path.write_bytes(data)
            required: Array | str = "IMG-1413" if name.startswith("half") else truth
            check.equal(name, outcome(path), required)
        for name, data in (
            ("the last fragment cut", whole[:-6]),
            ("an item without its length", whole[: last + 4]),
            ("something that is no item", whole[:last] + b"\x10\x00\x10\x00" + whole[last + 4 :]),
            ("an item of undefined length", whole[: last + 4] + pack("<I", 0xFFFFFFFF)),
        ):
            path.write_bytes(data)
            with check.refuses("IMG-1413", name):
                read_pixels(path)


def _streams(check: Check) -> None:
    for code, name in (
        ("IMG-1405", "jpeg-tables-broken"),
        ("IMG-1414", "frames-of-another-size"),
        ("IMG-1414", "frames-of-another-size-jpeg-ls"),
        ("IMG-1415", "frames-of-another-kind"),
        ("IMG-1415", "frames-stream-cut"),
        ("IMG-1415", "frames-stream-cut-jpeg-ls"),
        ("IMG-1415", "frames-stream-cut-rle"),
        ("IMG-1415", "frames-stream-cut-deflated"),
        ("IMG-1415", "compressed-pixels-damaged"),
    ):
        with check.refuses(code, name):
            read_fault(name)
    # What comes before a cut stream is whole, and can be read by itself.
    cut = replace(instance_of_fault("frames-stream-cut"), frame=1)
    plane = np.empty((cut.rows, cut.columns), "u2")
    read_into(cut, plane)
    check.equal("a frame beside one whose stream is cut", plane, _FRAMES.plane(1))


def _damaged_streams(check: Check) -> None:
    """Bytes lost from or added to a stream: no decoder's invention comes back as values."""
    smooth = np.add.outer(np.arange(64), 2 * np.arange(64)).astype("<u2")
    noise = np.random.default_rng(30).integers(0, 4096, (64, 64)).astype("<u2")
    for syntax, plane in (
        (encapsulation.RLE, smooth),
        (encapsulation.DEFLATED, noise),
        (encapsulation.JPEG_LS, noise),
        (encapsulation.JPEG_2000, noise),
        (encapsulation.UNCOMPRESSED, smooth),
    ):
        stream = encapsulation.stream_of(plane, syntax)
        stream = stream.rstrip(b"\0") if syntax != encapsulation.UNCOMPRESSED else stream
        chance = random.Random(f"numbat {syntax}")
        wrong = 0
        for number in range(24):
            at = chance.randrange(len(stream) // 8, len(stream) - 60)
            # Even numbers: the padding of an odd stream can stand in for one lost byte of RLE.
            count = chance.randrange(2, 50, 2)
            lost = stream[:at] + stream[at + count :]
            gained = stream[:at] + chance.randbytes(count) + stream[at:]
            wrong += _is_wrong(plane, lost if number % 2 else gained, syntax)
        check.equal(
            f"streams of {syntax} with bytes lost or gained that give wrong values", wrong, 0
        )


def _is_wrong(plane: Array, stream: bytes, syntax: str) -> bool:
    ds = Phantom(shape=(64, 64, 1)).slices()[0]
    encapsulation.set_streams(ds, [stream], syntax)
    with TemporaryDirectory() as folder:
        found = outcome(_file_of(ds, folder))
    return not isinstance(found, str) and not np.array_equal(found, plane)


def _bombs(check: Check) -> None:
    """A header or a stream that asks for far more than it brings is refused unallocated."""
    with check.refuses("IMG-1419", "a hundred bytes for 128 MiB"):
        read_fault("frames-expanding")
    with check.refuses("IMG-1419", "told before anything is allocated"):
        check_present([instance_of_fault("frames-expanding")])
    huge = {"Rows": 30000, "Columns": 30000}
    for name, code, change in (
        ("frames-expanding", "IMG-1419", encapsulation.of_a_huge_image),
        ("a native header of 1.8 GB", "IMG-1403", _with(**huge)),
        ("a native header of 16 GiB", "IMG-1408", _with(NumberOfFrames=5000, **huge)),
        ("a plane of 8 GiB", "IMG-1401", _with(Rows=65535, Columns=65535)),
        ("JPEG 2000 for 1.8 GB", "IMG-1419", _claiming(encapsulation.JPEG_2000)),
        ("JPEG-LS for 1.8 GB", "IMG-1419", _claiming(encapsulation.JPEG_LS)),
        ("RLE for 1.8 GB", "IMG-1419", _claiming(encapsulation.RLE)),
        ("deflate for 1.8 GB", "IMG-1419", _claiming(encapsulation.DEFLATED)),
        ("RLE that unpacks to more than the frame", "IMG-1415", _with_stream(_packed_zeros())),
        (
            "deflate that inflates to more than the frame",
            "IMG-1415",
            _with_stream(_deflated_zeros(), encapsulation.DEFLATED),
        ),
        ("a stream larger than its header", "IMG-1414", _larger_stream),
    ):
        ds = Phantom(shape=(64, 64, 1)).slices()[0]
        change(ds)
        with TemporaryDirectory() as folder:
            path = _file_of(ds, folder)
            tracemalloc.start()
            with check.refuses(code, name):
                read_pixels(path)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        check.at_most(f"{name}: memory", peak, _BOUND_BYTES, "bytes")


def _with(**elements: int) -> Change:
    def change(ds: Dataset) -> None:
        for keyword, value in elements.items():
            setattr(ds, keyword, value)

    return change


def _claiming(syntax: str) -> Change:
    """A small stream under a huge header."""

    def change(ds: Dataset) -> None:
        encapsulation.encoded(syntax)(ds)
        ds.Rows = ds.Columns = 30000

    return change


def _with_stream(stream: bytes, syntax: str = encapsulation.RLE) -> Change:
    return lambda ds: encapsulation.set_streams(ds, [stream], syntax)


def _packed_zeros() -> bytes:
    """Two segments of 64 MB of zeros each, in a megabyte."""
    segment = b"\x81\x01" * (1 << 19)
    return pack("<16I", 2, 64, 64 + len(segment), *[0] * 13) + segment + segment


def _deflated_zeros() -> bytes:
    return encapsulation.stream_of(np.zeros((4096, 4096), "<u2"), encapsulation.DEFLATED)


def _larger_stream(ds: Dataset) -> None:
    stream = encapsulation.stream_of(np.zeros((2048, 2048), "<u2"), encapsulation.JPEG_LS)
    encapsulation.set_streams(ds, [stream], encapsulation.JPEG_LS)


def _public_files(check: Check) -> None:
    """Broken files that others have collected; those of pydicom are in its wheel."""
    for name, code in (
        ("MR_truncated.dcm", "IMG-1403"),
        ("MR_small_padded.dcm", "IMG-1403"),
        ("badVR.dcm", "IMG-1012"),
        ("JPEG2000-embedded-sequence-delimiter.dcm", "IMG-1414"),
    ):
        with check.refuses(code, name):
            read_pixels(check.data(_BUNDLED / name))
    folder = check.corpus("imaging/fuzz_malformed", clauses=["IMG-R030.files"])
    if folder is None:
        return
    for path in sorted(folder.rglob("*.dcm")):
        found = outcome(check.data(path))
        if isinstance(found, str):
            check.true(
                f"{path.name} is refused by a code", found.startswith("IMG-"), measured=found
            )
            continue
        header = read_header(FileRef(str(path)))
        assert header is not None
        pixels = pixel_format(header, "")
        described = pixels.frames * plane_bytes(pixels)
        check.equal(f"{path.name}: bytes of the array", found.nbytes, described)
