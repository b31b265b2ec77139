"""The header of one DICOM file: everything before the pixel data, and where these begin."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import BinaryIO, Literal, NoReturn

from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.tag import BaseTag

from numbat_imaging.intake import elements
from numbat_imaging.intake.charsets import encodings_of
from numbat_imaging.intake.content import Form, identify, syntax_of
from numbat_imaging.intake.files import FileRef, check_believed
from numbat_imaging.intake.limits import DEFAULT_LIMITS, Limits
from numbat_imaging.intake.structure import (
    EXPLICIT_BE,
    EXPLICIT_LE,
    IMPLICIT_LE,
    PIXEL_TAGS,
    Broken,
    Exceeded,
    PixelStart,
    Short,
    Syntax,
    Walk,
    is_written_vr,
)
from numbat_registries import Diagnostic, notice, refuse

_FIRST_BYTES = 16 << 10
_GROWTH = 4
_CHUNK = 1 << 20

_TRANSFER_SYNTAX = BaseTag(0x00020010)
_CHARACTER_SET = BaseTag(0x00080005)

_SYNTAXES = {
    "1.2.840.10008.1.2": IMPLICIT_LE,
    "1.2.840.10008.1.2.2": EXPLICIT_BE,
    # GE's private syntax: implicit VR with pixel data in big endian.
    "1.2.840.113619.5.2": IMPLICIT_LE,
}
_DEFLATED = frozenset(
    {"1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.4.95", "1.2.840.10008.1.2.4.205"}
)
_NAMES = {
    IMPLICIT_LE: "1.2.840.10008.1.2",
    EXPLICIT_LE: "1.2.840.10008.1.2.1",
    EXPLICIT_BE: "1.2.840.10008.1.2.2",
}
MEDIA_DIRECTORY = "1.2.840.10008.1.3.10"


@dataclass(frozen=True, slots=True)
class PixelLocation:
    """Where the value of the top-level pixel element lies in the stream that `FileRef.open` gives.

    `length` in bytes, None when undefined (encapsulated); `keyword` is PixelData, FloatPixelData or
    DoubleFloatPixelData.
    """

    offset: int
    length: int | None
    vr: str
    keyword: str


@dataclass(frozen=True, slots=True)
class Header:
    """The data set of one file without its pixel data.

    `ref` opens the stream that `pixel` points into (a deflated data set is inflated by it).
    `file_size_bytes` is None where only reading to the end would tell (gzip and deflate).
    """

    ref: FileRef
    dataset: Dataset
    transfer_syntax_uid: str
    pixel: PixelLocation | None
    file_size_bytes: int | None
    little_endian: bool
    implicit: bool
    notices: tuple[Diagnostic, ...] = field(default=())

    @property
    def is_media_directory(self) -> bool:
        """Whether this is a DICOMDIR (PS3.3 F, Basic Directory IOD), whatever its name."""
        return elements.text(self.dataset.file_meta, "MediaStorageSOPClassUID") == MEDIA_DIRECTORY


def read_header(ref: FileRef, *, limits: Limits = DEFAULT_LIMITS) -> Header | None:
    """The header of a file, or None when it is not DICOM.

    Raises IMG-1002 to IMG-1007 when the file cannot be read, IMG-1010 when its structure is broken,
    IMG-1011 when it ends inside the header, IMG-1013 when it asks for more than `limits`, IMG-1015
    for a transfer syntax that is no UID, IMG-1020 for a broken or truncated compressed stream,
    IMG-1024 for a file that changed since it was first read.
    Source: PS3.10 §7, PS3.5 §7 and Annex A.
    """
    reader = _Reader(ref.stored.as_seen(), limits)
    try:
        return reader.read()
    finally:
        reader.stream.close()


class _Reader:
    """One pass over one stream, in a window that grows only with bytes that are really there."""

    def __init__(self, ref: FileRef, limits: Limits) -> None:
        self.ref, self.limits = ref, limits
        self.stream: BinaryIO
        self.stream, self.size = ref.open_sized()
        self.window = b""
        self.complete = False
        self.notices: list[Diagnostic] = []

    def read(self) -> Header | None:
        self._extend(_FIRST_BYTES)
        form = identify(self.window, complete=self.complete)
        if form is None:
            return None
        if form.fault is not None:
            self._broken(Broken(form.fault, offset=form.data))
        meta, start = self._meta(form)
        declared = self._declared_syntax(meta)
        if declared in _DEFLATED and form.syntax is None:
            self._inflate(start)
            start = 0
        syntax = form.syntax or self._syntax(declared, start)
        walk = self._walk(syntax, start)
        if declared is None:
            declared = self._inferred(syntax, declared="")
        return self._header(meta, walk, declared)

    # -- the window ------------------------------------------------------------------------------

    def _extend(self, need: int) -> None:
        goal = min(need, self.size) if self.size is not None else need
        parts = [self.window]
        held = len(self.window)
        while held < goal:
            part = self.stream.read(min(goal - held, _CHUNK))
            if not part:
                break
            parts.append(part)
            held += len(part)
        self.window = parts[1] if len(parts) == 2 and not parts[0] else b"".join(parts)
        self.complete = held < goal or held == self.size

    def _run(self, walk: Walk) -> None:
        while True:
            try:
                walk.run(self.window, complete=self.complete)
                return
            except Short as short:
                self._grow(short, walk)
            except Broken as broken:
                self._broken(broken)
            except Exceeded as beyond:
                self._exceeded(beyond.what, beyond.measured, beyond.limit)

    def _grow(self, short: Short, walk: Walk) -> None:
        if self.complete or (self.size is not None and short.need > self.size):
            self._truncated(short, walk)
        if short.need > self.limits.header_bytes:
            self._exceeded("header bytes", short.need, self.limits.header_bytes)
        before = len(self.window)
        self._extend(max(short.need, min(before * _GROWTH, self.limits.header_bytes)))
        if len(self.window) == before:
            self._truncated(short, walk)

    # -- parts of a file -------------------------------------------------------------------------

    def _meta(self, form: Form) -> tuple[dict[BaseTag, object], int]:
        if form.meta is None:
            return {}, form.data
        written = is_written_vr(self.window[form.meta + 4 : form.meta + 6])
        syntax = EXPLICIT_LE if written or len(self.window) < form.meta + 8 else IMPLICIT_LE
        walk = Walk(syntax, self.limits, position=form.meta, group=2)
        if len(self.window) <= form.meta:
            self._truncated(Short(form.meta + 8), walk)
        self._run(walk)
        if not walk.found:
            self._broken(Broken("no file meta information follows the DICM mark", offset=form.meta))
        return dict(walk.found), walk.position

    def _declared_syntax(self, meta: dict[BaseTag, object]) -> str | None:
        raw = meta.get(_TRANSFER_SYNTAX)
        value = getattr(raw, "value", None)
        if not value:
            return None
        text = value.rstrip(b"\0 ")
        if not text:
            return None
        if len(text) > 64 or text.translate(None, b"0123456789.") or not text[:1].isdigit():
            raise refuse("IMG-1015", file=self.ref.label, length=len(text))
        return str(text, "ascii")

    def _inflate(self, start: int) -> None:
        self.stream.close()
        self.ref = replace(self.ref, inflate_from=start)
        self.stream, self.size = self.ref.open_sized()
        self.window, self.complete = b"", False
        self._extend(_FIRST_BYTES)

    def _syntax(self, declared: str | None, start: int) -> Syntax:
        if not self.complete and len(self.window) < start + 8:
            self._extend(start + _FIRST_BYTES)
        stated = None if declared is None else _SYNTAXES.get(declared, EXPLICIT_LE)
        if stated is not None and self._fits(stated, start):
            return stated
        fitting = syntax_of(self.window, start, complete=self.complete)
        if fitting is None:
            if stated is not None:
                return stated
            self._broken(Broken("no transfer syntax is given and none fits the data", offset=start))
        if declared is not None and fitting != stated:
            self._inferred(fitting, declared=declared)
        return fitting

    def _fits(self, syntax: Syntax, start: int) -> bool:
        # The first element tells: a group that is small in the stated byte order, and a VR where
        # one belongs.
        first = self.window[start : start + 6]
        if len(first) < 6:
            return True
        group = int.from_bytes(first[:2], "little" if syntax.little_endian else "big")
        return is_written_vr(first[4:6]) != syntax.implicit and group < 0x0100

    def _inferred(self, syntax: Syntax, *, declared: str) -> str:
        name = _NAMES[syntax]
        self.notices.append(
            notice("IMG-1014", file=self.ref.label, declared=declared or "none", inferred=name)
        )
        return name

    def _walk(self, syntax: Syntax, start: int) -> Walk:
        walk = Walk(syntax, self.limits, position=start)
        self._run(walk)
        return walk

    # -- the result ------------------------------------------------------------------------------

    def _header(self, meta: dict[BaseTag, object], walk: Walk, declared: str) -> Header:
        implicit, little = walk.syntax
        dataset = Dataset(walk.found)  # type: ignore[arg-type]
        file_meta = FileMetaDataset(meta)  # type: ignore[arg-type]
        file_meta.set_original_encoding(False, True, ["iso8859"])
        dataset.file_meta = file_meta
        raw = walk.found.get(_CHARACTER_SET)
        encodings, unknown = encodings_of(raw.value if raw is not None else None)
        if unknown:
            self.notices.append(notice("IMG-1019", file=self.ref.label, terms=len(unknown)))
        dataset.set_original_encoding(implicit, little, list(encodings))
        location = None
        if walk.pixel is not None:
            location = self._location(walk.pixel, walk.syntax)
        return Header(
            ref=self.ref,
            dataset=dataset,
            transfer_syntax_uid=declared,
            pixel=location,
            file_size_bytes=self.size,
            little_endian=little,
            implicit=implicit,
            notices=tuple(self.notices),
        )

    def _location(self, pixel: PixelStart, syntax: Syntax) -> PixelLocation:
        keyword = PIXEL_TAGS[pixel.tag]
        if self.size is None:
            check_believed(self.stream, pixel.offset + (pixel.length or 0))
        if pixel.length is not None and self.size is not None:
            present = self.size - pixel.offset
            if present < pixel.length:
                self.notices.append(
                    notice(
                        "IMG-1021",
                        file=self.ref.label,
                        keyword=keyword,
                        declared_bytes=pixel.length,
                        present_bytes=present,
                    )
                )
            elif present > pixel.length:
                self._check_after(pixel, syntax, keyword, present - pixel.length)
        return PixelLocation(pixel.offset, pixel.length, pixel.vr, keyword)

    def _check_after(self, pixel: PixelStart, syntax: Syntax, keyword: str, trailing: int) -> None:
        # What may follow pixel data by the standard is trailing padding and digital signatures; a
        # second pixel element is two images for one description.
        end = pixel.offset + (pixel.length or 0)
        if end + 4 <= len(self.window):
            start = self.window[end : end + 4]
        else:
            self.stream.seek(end)
            start = self.stream.read(4)
        order: Literal["little", "big"] = "little" if syntax.little_endian else "big"
        group, element = int.from_bytes(start[:2], order), int.from_bytes(start[2:], order)
        if group << 16 | element in PIXEL_TAGS:
            self._broken(Broken("pixel data appear twice", offset=end, tag=pixel.tag))
        if len(start) < 4 or group < 0x7FE0 or group == 0xFFFE:
            self.notices.append(
                notice("IMG-1022", file=self.ref.label, keyword=keyword, trailing_bytes=trailing)
            )

    # -- refusals --------------------------------------------------------------------------------

    def _truncated(self, short: Short, walk: Walk) -> NoReturn:
        tag = None if short.tag is None else _tag_name(short.tag)
        size = len(self.window) if self.size is None else self.size
        raise refuse(
            "IMG-1011",
            file=self.ref.label,
            present_bytes=size,
            needed_bytes=short.need,
            tag=tag,
            elements=len(walk.found),
        )

    def _broken(self, broken: Broken) -> NoReturn:
        raise refuse(
            "IMG-1010",
            file=self.ref.label,
            offset=broken.offset,
            reason=broken.reason,
            tag=None if broken.tag is None else _tag_name(broken.tag),
        )

    def _exceeded(self, what: str, measured: int, limit: int) -> NoReturn:
        raise refuse("IMG-1013", file=self.ref.label, what=what, measured=measured, limit=limit)


def _tag_name(tag: int) -> str:
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X})"
