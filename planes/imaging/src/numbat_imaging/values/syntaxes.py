"""Transfer syntaxes: which are read, by what kind of coding, and which packages decode them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import UID

from numbat_imaging.series.instance import PixelFormat
from numbat_registries import refuse

#: GE's private syntax: implicit VR little endian, with the words of the pixels in big endian.
GE_BIG_ENDIAN_PIXELS = "1.2.840.113619.5.2"
RLE = "1.2.840.10008.1.2.5"
#: Each frame is a raw deflate stream of its uncompressed bytes (PS3.5 Annex A).
DEFLATED_FRAMES = "1.2.840.10008.1.2.8.1"
#: Frames uncompressed, each in fragments (PS3.5 Annex A).
UNCOMPRESSED_FRAMES = "1.2.840.10008.1.2.1.98"

NATIVE = frozenset(
    {
        "1.2.840.10008.1.2",
        "1.2.840.10008.1.2.1",
        "1.2.840.10008.1.2.1.99",
        "1.2.840.10008.1.2.2",
        GE_BIG_ENDIAN_PIXELS,
    }
)

#: Kind of coding by transfer syntax; each kind has its own code stream.
CODINGS = {
    "1.2.840.10008.1.2.4.50": "JPEG",
    "1.2.840.10008.1.2.4.51": "JPEG",
    "1.2.840.10008.1.2.4.57": "lossless JPEG",
    "1.2.840.10008.1.2.4.70": "lossless JPEG",
    "1.2.840.10008.1.2.4.80": "JPEG-LS",
    "1.2.840.10008.1.2.4.81": "JPEG-LS",
    "1.2.840.10008.1.2.4.90": "JPEG 2000",
    "1.2.840.10008.1.2.4.91": "JPEG 2000",
    "1.2.840.10008.1.2.4.201": "JPEG 2000",
    "1.2.840.10008.1.2.4.202": "JPEG 2000",
    "1.2.840.10008.1.2.4.203": "JPEG 2000",
}
_FRAMED = frozenset({RLE, DEFLATED_FRAMES, UNCOMPRESSED_FRAMES})

#: Names that pydicom 3.0 does not know.
_NEW_NAMES = {
    DEFLATED_FRAMES: "Deflated Image Frame Compression",
    UNCOMPRESSED_FRAMES: "Encapsulated Uncompressed Explicit VR Little Endian",
    GE_BIG_ENDIAN_PIXELS: "GE Private Implicit VR Big Endian",
    "1.2.840.10008.1.2.4.110": "JPEG XL Lossless",
    "1.2.840.10008.1.2.4.111": "JPEG XL JPEG Recompression",
    "1.2.840.10008.1.2.4.112": "JPEG XL",
}

_PLUGIN_MODULES = ("pylibjpeg", "pyjpegls", "pillow", "gdcm")
#: What pip calls the package whose module is named so.
_DISTRIBUTIONS = {"gdcm": "python-gdcm"}


def check_syntax(pixels: PixelFormat, *, file: str) -> None:
    """Refuse a transfer syntax whose pixels are not read here, before anything is decoded.

    Raises IMG-1404 when a decoder package is missing, IMG-1409 for a syntax that no decoder is
    known for, IMG-1410 when the pixels are encapsulated and the syntax says that they are not, or
    the other way round. Source: PS3.5 Annex A.
    """
    uid = pixels.transfer_syntax_uid
    if uid not in NATIVE and uid not in _FRAMED and uid not in CODINGS:
        raise refuse("IMG-1409", file=file, transfer_syntax=syntax_name(uid), reason=_why(uid))
    encapsulated = pixels.location.length is None
    if encapsulated == (uid in NATIVE):
        found = "fragments" if encapsulated else "one piece"
        raise refuse("IMG-1410", file=file, transfer_syntax=syntax_name(uid), found=found)
    # Eight-bit JPEG is decoded by Pillow, which numbat-imaging always has.
    eight_bits = CODINGS.get(uid) == "JPEG" and pixels.bits_stored <= 8
    if uid in CODINGS and not eight_bits and not get_decoder(uid).is_available:
        raise refuse(
            "IMG-1404", file=file, transfer_syntax=syntax_name(uid), packages=packages_for(uid)
        )


def syntax_name(uid: str) -> str:
    """The name of a transfer syntax, or the UID itself where it has none."""
    return _NEW_NAMES.get(uid) or UID(uid).name


def packages_for(uid: str) -> list[str]:
    """The packages of which pydicom's decoders for a transfer syntax are made, preferred first."""
    found: dict[str, None] = {}
    for name in _PLUGIN_MODULES:
        plugin: Any = import_module(f"pydicom.pixels.decoders.{name}")
        for requirement in plugin.DECODER_DEPENDENCIES.get(UID(uid), ()):
            module = requirement.partition(">")[0].strip()
            if module not in ("numpy", "pillow"):
                found[_DISTRIBUTIONS.get(module, module)] = None
    return list(found)


def _why(uid: str) -> str:
    name = syntax_name(uid)
    reasons = (
        (("MPEG", "HEVC", "SMPTE"), "video, of which frames are no independent images"),
        (("JPIP",), "the pixels lie on a server and not in the file"),
        (("Multi-component", "JPEG XL"), "no decoder of pydicom's knows it"),
        (
            ("Retired", "Progressive", "Hierarchical"),
            "retired, and no decoder of pydicom's knows it",
        ),
    )
    for marks, reason in reasons:
        if any(mark in name for mark in marks):
            return reason
    return "it is not in the standard" if UID(uid).is_private or name == uid else "not known here"
