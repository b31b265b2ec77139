"""What the code stream of a compressed frame says about itself, read before anything is decoded.

A decoder allocates what its stream asks for, and may make up what a cut stream lacks. Size, depth
and completeness are therefore taken from the markers of the stream and compared with the header.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import error as StructError
from struct import unpack_from
from typing import Literal

_SOI, _SOS, _EOI = 0xD8, 0xDA, 0xD9
_APP0, _APP14 = 0xE0, 0xEE
_JPEG_LS_FRAME = 0xF7
#: Frame markers by kind of coding (ISO/IEC 10918-1 B.1.1.3, ISO/IEC 14495-1 C.1).
_FRAMES = {
    "JPEG": frozenset({0xC0, 0xC1, 0xC2}),
    "lossless JPEG": frozenset({0xC3}),
    "JPEG-LS": frozenset({_JPEG_LS_FRAME}),
}
_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0), _JPEG_LS_FRAME}) - {0xC4, 0xC8, 0xCC}
_RGB_IDS = (b"RGB", b"rgb")

_SOC, _SIZ, _COD, _SOT, _EOC = 0xFF4F, 0xFF51, 0xFF52, 0xFF90, 0xFFD9
_JP2_SIGNATURE = b"\0\0\0\x0cjP  "

#: How the streams of a kind begin; with it, frames in several fragments are told apart.
STARTS = {
    "JPEG": (b"\xff\xd8\xff",),
    "lossless JPEG": (b"\xff\xd8\xff",),
    "JPEG-LS": (b"\xff\xd8\xff",),
    "JPEG 2000": (b"\xff\x4f\xff\x51", _JP2_SIGNATURE),
}


class Damaged(Exception):
    """A stream is cut off or contradicts itself; the text names no content."""


@dataclass(frozen=True, slots=True)
class Codestream:
    """The size and depth that a stream states.

    `colour` is what it says its components are, None where it says nothing; `libjpeg_rgb` is
    whether libjpeg takes them for RGB by itself; `decorrelated` whether JPEG 2000's component
    transform, which decoders undo, was used.
    """

    rows: int
    columns: int
    components: int
    precision: int
    signed: bool = False
    colour: Literal["RGB", "YBR_FULL"] | None = None
    libjpeg_rgb: bool = False
    decorrelated: bool = False


def read_codestream(data: bytes, coding: str) -> Codestream:
    """The stream of one frame, of a kind of `syntaxes.CODINGS`.

    Raises Damaged for a stream that is cut off, broken, or of another kind.
    """
    try:
        if coding == "JPEG 2000":
            return _jpeg_2000(data)
        return _jpeg(data, coding)
    except (StructError, IndexError):
        raise Damaged("the stream ends inside its header") from None


def without_wrapper(data: bytes) -> bytes:
    """A JPEG 2000 code stream without the JP2 file boxes that some writers leave around it."""
    if not data.startswith(_JP2_SIGNATURE):
        return data
    position = 0
    while position + 8 <= len(data):
        length, kind = unpack_from(">I4s", data, position)
        head = 8
        if length == 1:
            (length,), head = unpack_from(">Q", data, position + 8), 16
        if kind == b"jp2c":
            return data[position + head : position + length if length else len(data)]
        if length < head:
            break
        position += length
    raise Damaged("the JP2 file holds no code stream")


# -- JPEG and JPEG-LS --------------------------------------------------------------------------


def _jpeg(data: bytes, coding: str) -> Codestream:
    if data[:2] != b"\xff\xd8":
        raise Damaged("the stream has no start of image")
    # Padding to an even length follows, by zeros or by the fill byte of markers.
    if not data.rstrip(b"\0\xff").endswith(b"\xff\xd9"):
        raise Damaged("the stream has no end of image: it is cut off")
    found: tuple[int, int] | None = None
    jfif, adobe = False, None
    position = 2
    while True:
        marker, position = _next_marker(data, position)
        (length,) = unpack_from(">H", data, position)
        body = data[position + 2 : position + length]
        if length < 2 or len(body) < length - 2:
            raise Damaged("a marker segment is cut off")
        if marker == _SOS:
            break
        if marker == _APP0 and body.startswith(b"JFIF"):
            jfif = True
        elif marker == _APP14 and body.startswith(b"Adobe") and len(body) >= 12:
            adobe = body[11]
        elif marker in _FRAME_MARKERS:
            if found is not None:
                raise Damaged("the stream has two frames")
            found = (marker, position + 2)
        position += length
    if found is None:
        raise Damaged("no frame header comes before the scan")
    if found[0] not in _FRAMES[coding]:
        raise Damaged(f"the stream is not {coding}")
    return _jpeg_frame(data, found[1], jfif=jfif, adobe=adobe)


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    if data[position] != 0xFF:
        raise Damaged("a marker is missing where one belongs")
    while data[position] == 0xFF:
        position += 1
    marker = data[position]
    if marker in (0, _SOI, _EOI):
        raise Damaged("the stream ends before its scan")
    return marker, position + 1


def _jpeg_frame(data: bytes, at: int, *, jfif: bool, adobe: int | None) -> Codestream:
    precision, rows, columns, components = unpack_from(">BHHB", data, at)
    ids = bytes(data[at + 6 + 3 * n] for n in range(components))
    if rows == 0:
        raise Damaged("the stream does not state its number of lines in its header")
    colour: Literal["RGB", "YBR_FULL"] | None = None
    if components == 3:
        if ids in _RGB_IDS or (adobe == 0 and not jfif):
            colour = "RGB"
        elif jfif or adobe == 1:
            colour = "YBR_FULL"
    # What libjpeg does with three components (its default_decompress_parms).
    libjpeg_rgb = (
        components == 3 and not jfif and (adobe == 0 if adobe is not None else ids == b"RGB")
    )
    return Codestream(rows, columns, components, precision, colour=colour, libjpeg_rgb=libjpeg_rgb)


# -- JPEG 2000 ---------------------------------------------------------------------------------


def _jpeg_2000(data: bytes) -> Codestream:
    data = without_wrapper(data)
    soc, siz = unpack_from(">HH", data)
    if (soc, siz) != (_SOC, _SIZ):
        raise Damaged("the stream has no image size at its start")
    decorrelated = False
    position = 2
    while True:
        marker, length = unpack_from(">HH", data, position)
        if marker == _SOT:
            break
        if marker < 0xFF00 or length < 2 or position + 2 + length > len(data):
            raise Damaged("a marker segment is cut off")
        if marker == _COD:
            decorrelated = data[position + 8] == 1
        position += 2 + length
    _check_tile_parts(data, position)
    return _jpeg_2000_size(data, decorrelated=decorrelated)


def _check_tile_parts(data: bytes, position: int) -> None:
    """Every tile part states its length; all of them together lead to the end mark."""
    end = len(data.rstrip(b"\0\xff"))
    if data[end - 2 : end] != b"\xff\xd9":
        raise Damaged("the stream has no end of code stream: it is cut off")
    while True:
        (marker,) = unpack_from(">H", data, position)
        if marker == _EOC:
            return
        if marker != _SOT:
            raise Damaged("the tile parts do not follow each other")
        _, _, length = unpack_from(">HHI", data, position + 2)
        if length == 0:
            # The last tile part may leave its length open (ISO/IEC 15444-1 A.4.2).
            return
        if length < 14 or position + length + 2 > end:
            raise Damaged("a tile part is cut off")
        position += length


def _jpeg_2000_size(data: bytes, *, decorrelated: bool) -> Codestream:
    # Lsiz Rsiz Xsiz Ysiz XOsiz YOsiz XTsiz YTsiz XTOsiz YTOsiz Csiz (ISO/IEC 15444-1 A.5.1).
    _, _, right, bottom, left, top, *_, components = unpack_from(">HHIIIIIIIIH", data, 4)
    kinds = {data[42 + 3 * n : 45 + 3 * n] for n in range(components)}
    if len(kinds) != 1:
        raise Damaged("the components differ in depth or sampling")
    depth, across, down = kinds.pop()
    if (across, down) != (1, 1):
        raise Damaged("the components are sampled sparsely")
    return Codestream(
        rows=bottom - top,
        columns=right - left,
        components=components,
        precision=(depth & 0x7F) + 1,
        signed=bool(depth & 0x80),
        decorrelated=decorrelated,
    )
