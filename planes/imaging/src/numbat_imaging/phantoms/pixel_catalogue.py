"""Faults of stored pixels by name: their encoding, their fragments, their colours, their depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset

from numbat_imaging.phantoms import encapsulation as coded
from numbat_imaging.phantoms import pixel_faults as pixels
from numbat_imaging.phantoms.catalogue import CLEAN, EXACT_MM, Expected, Fault, refused
from numbat_imaging.phantoms.encapsulation import Change
from numbat_imaging.phantoms.enhanced import enhanced_object
from numbat_imaging.phantoms.phantom import Phantom

# JPEG 2000 encoders want more than a few rows.
FRAMES = Phantom(shape=(40, 36, 8))
COLOUR = Phantom(shape=(40, 36, 3), modality="SC", dtype="uint8", samples=3)
BYTES = replace(CLEAN, shape=(16, 12, 4), dtype="uint8")
ONE_BIT = replace(CLEAN, shape=(13, 7, 5))

EXACT: Expected = ("volume", EXACT_MM)


def _framed(name: str, says: str, expected: Expected, change: Change) -> Fault:
    """A fault of one enhanced object of eight frames."""

    def build() -> list[Dataset]:
        ds = enhanced_object(FRAMES.slices())
        change(ds)
        return [ds]

    return Fault(name, build, expected, says, FRAMES.slices)


def _sliced(
    name: str,
    says: str,
    expected: Expected,
    phantom: Phantom,
    change: Change,
    *,
    holds: Change | None = None,
) -> Fault:
    """A fault of every slice of a series; `holds` gives its values in a form that is read back."""

    def made(change: Change) -> Callable[[], list[Dataset]]:
        def build() -> list[Dataset]:
            slices = phantom.slices()
            for ds in slices:
                change(ds)
            return slices

        return build

    return Fault(name, made(change), expected, says, None if holds is None else made(holds))


def _encodings() -> list[Fault]:
    rle, j2k, jls = coded.RLE, coded.JPEG_2000, coded.JPEG_LS
    return [
        _framed(name, says, EXACT, change)
        for name, says, change in (
            ("frames-jpeg-2000", "JPEG 2000", coded.encoded(j2k)),
            ("frames-jpeg-ls", "JPEG-LS", coded.encoded(jls)),
            ("frames-deflated", "each frame deflated", coded.encoded(coded.DEFLATED)),
            (
                "frames-deflated-in-pieces-with-table",
                "two fragments a frame, told by their offsets",
                coded.encoded(coded.DEFLATED, cut=2, table="right"),
            ),
            ("frames-uncompressed", "encapsulated, plain", coded.encoded(coded.UNCOMPRESSED)),
            ("frames-rle-in-pieces", "RLE, two fragments a frame", coded.encoded(rle, cut=2)),
            ("frames-jpeg-2000-in-pieces", "three a frame", coded.encoded(j2k, cut=3)),
            ("frames-jpeg-ls-in-pieces", "two a frame", coded.encoded(jls, cut=2, table="right")),
            ("frames-table-wrong", "offsets that hit no item", coded.encoded(rle, table="wrong")),
            (
                "frames-table-wrong-in-pieces",
                "two fragments a frame, and offsets that hit none",
                coded.encoded(j2k, cut=2, table="wrong"),
            ),
            ("frames-table-absent", "no table at all", coded.encoded(rle, table="absent")),
            ("frames-table-overruns", "extended table", coded.encoded(rle, table="extended")),
            ("frames-with-blanks", "empty fragments between", coded.encoded(j2k, blanks=True)),
        )
    ]


def _broken_frames() -> list[Fault]:
    rle, j2k, jls = coded.RLE, coded.JPEG_2000, coded.JPEG_LS
    return [
        _framed(name, says, refused(code), change)
        for name, code, says, change in (
            (
                "frames-one-fewer",
                "IMG-1411",
                "seven fragments for eight frames",
                coded.with_streams(rle, lambda streams: streams[:-1]),
            ),
            (
                "frames-one-more",
                "IMG-1411",
                "nine fragments for eight frames",
                coded.with_streams(rle, lambda streams: [*streams, streams[0]]),
            ),
            (
                "frames-blank-for-one",
                "IMG-1411",
                "a frame that is an empty fragment",
                coded.with_streams(j2k, lambda streams: [*streams[:-1], b""]),
            ),
            (
                "frames-deflated-in-pieces",
                "IMG-1412",
                "two fragments a frame, and nothing tells which",
                coded.encoded(coded.DEFLATED, cut=2),
            ),
            (
                "frames-fragment-cut",
                "IMG-1413",
                "a fragment longer than the file",
                coded.with_last_fragment_cut,
            ),
            (
                "frames-of-another-size",
                "IMG-1414",
                "streams that lack a row",
                coded.of_another_size(j2k),
            ),
            (
                "frames-of-another-size-jpeg-ls",
                "IMG-1414",
                "streams that lack a row",
                coded.of_another_size(jls),
            ),
            (
                "frames-stream-cut",
                "IMG-1415",
                "the third stream ends in its middle",
                coded.with_streams(j2k, pixels.with_one_cut(2)),
            ),
            (
                "frames-stream-cut-jpeg-ls",
                "IMG-1415",
                "the third stream ends in its middle",
                coded.with_streams(jls, pixels.with_one_cut(2)),
            ),
            (
                "frames-stream-cut-rle",
                "IMG-1415",
                "the third stream ends in its middle",
                coded.with_streams(rle, pixels.with_one_cut(2)),
            ),
            (
                "frames-stream-cut-deflated",
                "IMG-1415",
                "the third stream ends in its middle",
                coded.with_streams(coded.DEFLATED, pixels.with_one_cut(2)),
            ),
            (
                "frames-of-another-kind",
                "IMG-1415",
                "JPEG-LS streams in the syntax of JPEG 2000",
                pixels.renamed_syntax(coded.encoded(jls), j2k),
            ),
            (
                "frames-sign-ambiguous",
                "IMG-1416",
                "12 bits in the stream, 16 signed ones in the header",
                coded.of_doubtful_sign,
            ),
        )
    ]


def _syntaxes() -> list[Fault]:
    video, jpip = "1.2.840.10008.1.2.4.102", "1.2.840.10008.1.2.4.204"
    return [
        _sliced(name, says, refused(code), BYTES if code == "IMG-1405" else CLEAN, change)
        for name, code, says, change in (
            ("video", "IMG-1409", "MPEG-4", coded.of_a_syntax(video, fragments=True)),
            ("pixels-on-a-server", "IMG-1409", "JPIP", coded.of_a_syntax(jpip, fragments=False)),
            (
                "fragments-in-a-plain-syntax",
                "IMG-1410",
                "fragments, and an uncompressed syntax",
                coded.of_a_syntax("1.2.840.10008.1.2.1", fragments=True),
            ),
            (
                "plain-pixels-in-a-compressed-syntax",
                "IMG-1410",
                "no fragments, and a compressed syntax",
                coded.of_a_syntax(coded.JPEG_2000, fragments=False),
            ),
            (
                "jpeg-tables-broken",
                "IMG-1405",
                "sound markers around tables that are none",
                coded.with_broken_tables,
            ),
            (
                "frames-expanding",
                "IMG-1419",
                "a hundred bytes for 128 MiB",
                coded.of_a_huge_image,
            ),
        )
    ]


def _colours() -> list[Fault]:
    return [
        _sliced("colours-in-planes", "red, then green, then blue", EXACT, COLOUR, pixels.in_planes),
        _sliced("colours-jpeg", "YCbCr in JPEG", EXACT, COLOUR, coded.encoded(coded.JPEG_8)),
        _sliced("colours-halved", "YBR_FULL_422", EXACT, COLOUR, pixels.with_halved_chroma),
        _sliced("palette", "indices into a palette", EXACT, BYTES, pixels.with_palette(16)),
        _sliced("palette-8-bit", "entries of 8 bits", EXACT, BYTES, pixels.with_palette(8)),
        _sliced(
            "palette-segmented",
            "a palette in segments",
            EXACT,
            BYTES,
            pixels.with_segmented_palette,
        ),
        _sliced(
            "palette-cut",
            "a palette shorter than it says",
            refused("IMG-1418"),
            BYTES,
            pixels.with_palette(16, missing=10),
        ),
        _sliced(
            "palette-mislabelled",
            "entries of 16 bits that hold values of 8",
            refused("IMG-1418"),
            BYTES,
            pixels.with_palette(16, scale=1),
        ),
        _sliced(
            "colours-of-16-bits",
            "RGB of 16 bits",
            refused("IMG-1402"),
            COLOUR,
            pixels.in_16_bits,
        ),
        _sliced(
            "colours-transformed-twice",
            "JPEG 2000 that undoes a transform, and a header that asks for another",
            refused("IMG-1417"),
            COLOUR,
            coded.of_transformed_colours,
        ),
    ]


def _depths() -> list[Fault]:
    plain = pixels.unchanged
    return [
        _sliced(
            "pixels-of-one-bit",
            "one bit",
            EXACT,
            ONE_BIT,
            pixels.in_one_bit,
            holds=pixels.with_one_bit,
        ),
        _sliced(
            "pixels-of-64-bits", "64 bits", EXACT, CLEAN, pixels.in_words_of("u8"), holds=plain
        ),
        _sliced(
            "double-float-pixels",
            "DoubleFloatPixelData",
            EXACT,
            CLEAN,
            pixels.in_double_floats,
            holds=plain,
        ),
        _sliced(
            "pixels-as-unknown-vr",
            "PixelData with VR UN",
            EXACT,
            CLEAN,
            pixels.with_vr("UN"),
            holds=plain,
        ),
        _sliced(
            "pixels-as-bytes",
            "PixelData of 16 bits with VR OB",
            EXACT,
            CLEAN,
            pixels.with_vr("OB"),
            holds=plain,
        ),
        _sliced(
            "pixels-of-24-bits",
            "24 bits allocated",
            refused("IMG-1401"),
            CLEAN,
            pixels.with_bits(24),
        ),
    ]


#: Faults of stored pixels.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for family in (_encodings, _broken_frames, _syntaxes, _colours, _depths)
    for fault in family()
}
