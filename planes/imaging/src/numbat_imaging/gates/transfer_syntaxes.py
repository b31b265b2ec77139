"""Every transfer syntax gives the same pixels, or says what is missing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pydicom
from pydicom._uid_dict import UID_dictionary
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import UID, AllTransferSyntaxes

from numbat_gates import Check, gate
from numbat_imaging.gates._known_pixels import evidence, known_digests
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import PixelLocation, read_header
from numbat_imaging.phantoms import FAULTS, Phantom, encapsulation, pixel_catalogue, write_datasets
from numbat_imaging.phantoms.reading import folder_of_fault, instance_of_fault, read_fault
from numbat_imaging.series.instance import PixelFormat, pixel_format
from numbat_imaging.values.encapsulated import EncapsulatedFrames
from numbat_imaging.values.pixels import plane_digests, read_pixels
from numbat_imaging.values.syntaxes import (
    CODINGS,
    DEFLATED_FRAMES,
    GE_BIG_ENDIAN_PIXELS,
    NATIVE,
    RLE,
    UNCOMPRESSED_FRAMES,
    check_syntax,
)
from numbat_registries import Refusal

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"

#: One image in several transfer syntaxes, without loss: (truth, twins), all in pydicom's wheel.
_TWINS = (
    (
        "MR_small.dcm",
        (
            "MR_small_RLE.dcm",
            "MR_small_implicit.dcm",
            "MR_small_bigendian.dcm",
            "MR_small_expb.dcm",
            "MR_small_jp2klossless.dcm",
            "MR_small_jpeg_ls_lossless.dcm",
        ),
    ),
    ("rtdose.dcm", ("rtdose_rle.dcm", "rtdose_expb.dcm")),
    ("liver_1frame.dcm", ("liver_expb_1frame.dcm",)),
    ("SC_rgb_small_odd.dcm", ("SC_rgb_small_odd_big_endian.dcm",)),
)

#: What pip installs, for a syntax without a decoder.
_PACKAGES = {"pylibjpeg", "pylibjpeg-libjpeg", "pylibjpeg-openjpeg", "pyjpegls", "python-gdcm"}
_CORPUS = (
    "imaging/pydicom_data",
    "imaging/encapsulation",
    "imaging/highdicom_files",
    "imaging/dcmqi_cases",
    "imaging/misc_dicom",
    "imaging/rt_objects",
)


@gate(
    "IMG-G29",
    phase=2,
    discharges=["IMG-R029"],
    title="Every transfer syntax gives the same pixels, or names the package that it needs",
)
def transfer_syntaxes(check: Check) -> None:
    _all_known(check)
    _without_decoders(check)
    _phantoms(check)
    _bundled(check)
    _big_endian_words_of_ge(check)
    _linear(check)
    _side_by_side(check)
    _corpus(check)


def _described_by(syntax: str, *, fragments: bool) -> PixelFormat:
    pixels = instance_of_fault("clean").pixels
    location = PixelLocation(
        offset=0, length=None if fragments else 2048, vr="OW", keyword="PixelData"
    )
    return replace(pixels, transfer_syntax_uid=syntax, location=location)


def _verdict(syntax: str, *, fragments: bool) -> str:
    try:
        check_syntax(_described_by(syntax, fragments=fragments), file="a file")
    except Refusal as refusal:
        return refusal.code
    return "read"


def _all_known(check: Check) -> None:
    """pydicom's own list, and every retired or private one that its dictionary has."""
    ours = {RLE, DEFLATED_FRAMES, UNCOMPRESSED_FRAMES, GE_BIG_ENDIAN_PIXELS}
    known = {str(uid) for uid in AllTransferSyntaxes} | ours
    known |= {uid for uid, entry in UID_dictionary.items() if entry[1] == "Transfer Syntax"}
    check.at_least("transfer syntaxes looked at", len(known), 55)
    for syntax in sorted(known):
        required = "read" if syntax in NATIVE or syntax in ours or _decodes(syntax) else "IMG-1409"
        fragments = syntax not in NATIVE
        name = f"{UID(syntax).name} ({syntax})"
        check.equal(name, _verdict(syntax, fragments=fragments), required)
        if required == "read":
            other = _verdict(syntax, fragments=not fragments)
            check.equal(f"{name}, and the element says otherwise", other, "IMG-1410")
    for name in ("video", "pixels-on-a-server", "unknown-transfer-syntax"):
        with check.refuses("IMG-1409", name) as caught:
            read_fault(name)
        check.true(f"{name} has a reason", bool(evidence(caught).get("reason")))
    for name in ("fragments-in-a-plain-syntax", "plain-pixels-in-a-compressed-syntax"):
        with check.refuses("IMG-1410", name):
            read_fault(name)


def _decodes(syntax: str) -> bool:
    try:
        return bool(get_decoder(syntax).is_available)
    except NotImplementedError:
        return False


def _without_decoders(check: Check) -> None:
    for syntax in CODINGS:
        location = _described_by(syntax, fragments=True)
        name = f"{UID(syntax).name} without a decoder"
        with encapsulation.without_decoders(syntax), check.refuses("IMG-1404", name) as caught:
            check_syntax(location, file="a file")
        packages = set(evidence(caught).get("packages", ()))
        check.true(
            f"{name}: packages by the names that pip knows",
            bool(packages) and packages <= _PACKAGES,
            measured=sorted(packages),
        )
    with encapsulation.without_decoders(encapsulation.JPEG_2000):
        with check.refuses("IMG-1404", "a series without a decoder"):
            read_fault("frames-jpeg-2000")
        check.equal("eight-bit JPEG needs no package", read_fault("colours-jpeg").grid.slices, 3)


def _phantoms(check: Check) -> None:
    frames = pixel_catalogue.FRAMES
    for name, fault in pixel_catalogue.FAULTS.items():
        if name.startswith("frames-") and fault.expected[0] == "volume":
            check.equal(f"{name}: {fault.says}", read_fault(name).voxels, frames.truth_voxels())
    for dtype, syntax in (
        ("int16", "1.2.840.10008.1.2"),
        ("uint16", "1.2.840.10008.1.2.2"),
        ("uint16", "1.2.840.10008.1.2.1.99"),
        ("uint8", "1.2.840.10008.1.2.1"),
        ("int16", RLE),
        ("int16", encapsulation.JPEG_2000),
        ("uint16", encapsulation.JPEG_LS),
    ):
        phantom = Phantom(shape=(40, 36, 2), dtype=dtype, transfer_syntax_uid=syntax)
        with TemporaryDirectory() as folder:
            paths = phantom.write(folder)
            for k, path in enumerate(paths):
                check.equal(f"{dtype} in {UID(syntax).name}", read_pixels(path), phantom.plane(k))


def _bundled(check: Check) -> None:
    for truth_name, twins in _TWINS:
        truth = read_pixels(check.data(_BUNDLED / truth_name))
        for twin in twins:
            check.equal(
                f"{twin} equals {truth_name}", read_pixels(check.data(_BUNDLED / twin)), truth
            )
    deflated = check.data(_BUNDLED / "image_dfl.dcm")
    check.equal("a deflated data set", read_pixels(deflated), pydicom.dcmread(deflated).pixel_array)


def _big_endian_words_of_ge(check: Check) -> None:
    """Implicit VR little endian elements around big endian pixels."""
    phantom = Phantom(shape=(7, 5, 1), transfer_syntax_uid="1.2.840.10008.1.2")
    with TemporaryDirectory() as folder:
        ds = phantom.slices()[0]
        ds.PixelData = phantom.plane(0).astype(">u2").tobytes()
        path = write_datasets([ds], folder)[0]
        # Both UIDs take 18 bytes, the standard one with its padding.
        plain = path.read_bytes()
        path.write_bytes(plain.replace(b"1.2.840.10008.1.2\0", GE_BIG_ENDIAN_PIXELS.encode(), 1))
        check.equal("GE's private syntax", read_pixels(path), phantom.plane(0))


class _Counting(BytesIO):
    """A stream that counts what is read from it."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.read_bytes += len(data)
        return data


def _linear(check: Check) -> None:
    """Each of many frames costs its own bytes, not those of the file."""
    frames = replace(pixel_catalogue.FRAMES, shape=(16, 12, 400))
    ds = frames.slices()[0]
    planes = [frames.plane(k) for k in range(400)]
    streams = [encapsulation.stream_of(plane, RLE) for plane in planes]
    ds.NumberOfFrames = len(streams)
    encapsulation.set_streams(ds, streams, RLE, cut=2)
    with TemporaryDirectory() as folder:
        path = write_datasets([ds], folder)[0]
        header = read_header(FileRef(str(path)))
        assert header is not None
        stream = _Counting(path.read_bytes())
        source: Any = stream
        found = EncapsulatedFrames(source, pixel_format(header, ""), file="a file")
        decoded = np.stack([found.frame(k)[0] for k in range(400)])
        check.equal("400 frames of two fragments each", decoded, np.stack(planes))
        size = len(stream.getvalue())
        check.at_most("bytes read for a file's byte", stream.read_bytes / size, 1.5)


def _side_by_side(check: Check) -> None:
    names = [name for name in FAULTS if name.startswith("frames-jpeg")]
    paths = [min(folder_of_fault(name).iterdir()) for name in names] * 4
    with ThreadPoolExecutor(max_workers=8) as pool:
        together = list(pool.map(read_pixels, paths))
    truth = [read_pixels(path) for path in paths]
    same = all(np.array_equal(a, b) for a, b in zip(together, truth, strict=True))
    check.true("files decoded at once equal files decoded one by one", same)
    plain, coded = instance_of_fault("enhanced-clean"), instance_of_fault("enhanced-rle")
    check.equal(
        "a slice's digest is that of its pixels, whatever their encoding",
        plane_digests([plain]),
        plane_digests([coded]),
    )


def _corpus(check: Check) -> None:
    clauses = ["IMG-R029.files"]
    for name in _CORPUS:
        folder = check.corpus(name, clauses=clauses)
        if folder is not None:
            known_digests(check, folder)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=clauses)
    if scans is None:
        return
    twins = sorted((scans / "transfer_syntax_9way" / "dicom").iterdir())
    truth = read_pixels(check.data(twins[0]))
    for path in twins[1:]:
        check.equal(f"{path.name} equals {twins[0].name}", read_pixels(check.data(path)), truth)
    for encoding in ("j2k", "jpegll"):
        for path in sorted((scans / f"fragmented_frames_{encoding}" / "dicom").iterdir()):
            frame = pydicom.dcmread(path).pixel_array
            check.equal(f"{encoding} {path.name}", read_pixels(check.data(path)), frame)
