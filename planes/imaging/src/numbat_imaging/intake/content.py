"""Is it DICOM? Decided by what a file holds, never by what it is called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from struct import unpack_from

from pydicom.datadict import dictionary_has_tag

from numbat_imaging.intake.archives import ZIP_MAGIC
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.intake.structure import (
    EXPLICIT_BE,
    EXPLICIT_LE,
    IMPLICIT_LE,
    Broken,
    Exceeded,
    Short,
    Syntax,
    Walk,
    is_written_vr,
)

_PRINTABLE = re.compile(rb"[\t\n\r\x20-\x7e]*")
_UID = re.compile(rb"[0-9]+(\.[0-9]+)+[\0 ]*")

#: SOPClassUID, StudyInstanceUID, SeriesInstanceUID: what only a DICOM data set has.
_IDENTIFIERS = (0x00080016, 0x0020000D, 0x0020000E)
_ROWS = 0x00280010

#: SOP class or transfer syntax elements with a standard UID: DICOM whose beginning is damaged.
#: Near the start only, so that a container of DICOM files (tar, mail) is not taken for one.
_SIGNS = re.compile(
    rb"(?:\x08\x00\x16\x00|\x00\x08\x00\x16|\x02\x00[\x02\x10]\x00)(?:UI..|....)1\.2\.840\.10008\.",
    re.DOTALL,
)
_SIGNS_WITHIN = 512


@dataclass(frozen=True, slots=True)
class Form:
    """Where a file's DICOM begins: at the file meta information, or at a bare data set.

    `meta` is the offset of group 0002, None without one; `data` that of a bare data set, whose
    encoding is then `syntax`. `fault` says why a file is DICOM and unreadable from the start.
    """

    meta: int | None
    data: int = 0
    syntax: Syntax | None = None
    fault: str | None = None


def identify(start: bytes, *, complete: bool) -> Form | None:
    """The DICOM form of a file whose first bytes are `start`, or None when it is not DICOM.

    `complete` says that the file has no more. A file with the DICM mark is DICOM however damaged
    the rest is, unless all of it is text that happens to have these letters at offset 128. A file
    without file meta information must show a run of plausible elements in ascending order with
    an identifier or Rows among them.

    Source: PS3.10 §7.1, PS3.5 §7.1.
    """
    if start[128:132] == b"DICM" and _is_meta(start, 132):
        return Form(meta=132)
    if start[:4] == b"DICM" and _is_meta(start, 4):
        return Form(meta=4)
    if _is_meta(start, 0):
        return Form(meta=0)
    bare = _bare(start, 0, complete=complete)
    if bare is not None:
        return bare
    return _marked(start, complete=complete)


def _marked(start: bytes, *, complete: bool) -> Form | None:
    """A DICM mark without file meta information behind it, or at the wrong place: broken DICOM."""
    if start[128:132] == b"DICM":
        bare = _bare(start, 132, complete=complete)
        if bare is not None:
            return bare
        text = _PRINTABLE.fullmatch(start) is not None and len(start) > 132
        return None if text else Form(meta=None, fault="nothing readable follows the DICM mark")
    sign = _SIGNS.search(start, 0, _SIGNS_WITHIN)
    if sign is None or start[:4] in ZIP_MAGIC:
        return None
    fault = f"an element of DICOM lies at byte {sign.start()}, and none at the beginning"
    return Form(meta=None, data=sign.start(), fault=fault)


def _is_meta(start: bytes, offset: int) -> bool:
    if len(start) < offset + 8 or start[offset : offset + 2] != b"\x02\x00":
        return False
    element, length = unpack_from("<HxxH", start, offset + 2)
    code = start[offset + 4 : offset + 6]
    if is_written_vr(code):
        is_length = code == b"UL" and length == 4
        return bool(element <= 0x0102 and (element != 0 or is_length))
    # Group 0002 in implicit VR is against the standard and was written all the same.
    (long_length,) = unpack_from("<I", start, offset + 4)
    return bool(element <= 0x0102 and 0 < long_length <= 64)


def _bare(start: bytes, offset: int, *, complete: bool) -> Form | None:
    for syntax in (EXPLICIT_LE, IMPLICIT_LE, EXPLICIT_BE):
        if _is_data_set(start, offset, syntax, complete=complete):
            return Form(meta=None, data=offset, syntax=syntax)
    return None


def syntax_of(start: bytes, offset: int, *, complete: bool) -> Syntax | None:
    """The encoding of the data set at `offset`, from its elements alone; None when none fits.

    For a file whose transfer syntax is missing or contradicts its first element.
    """
    fitting = [
        syntax
        for syntax in (EXPLICIT_LE, IMPLICIT_LE, EXPLICIT_BE)
        if _plausible_elements(start, offset, syntax, complete=complete) > 0
    ]
    return fitting[0] if len(fitting) == 1 else None


def _is_data_set(start: bytes, offset: int, syntax: Syntax, *, complete: bool) -> bool:
    order = "<" if syntax.little_endian else ">"
    if len(start) < offset + 8 or unpack_from(f"{order}H", start, offset)[0] not in (0, 2, 4, 8):
        return False
    return _plausible_elements(start, offset, syntax, complete=complete, identified=True) >= 2


def _plausible_elements(
    start: bytes, offset: int, syntax: Syntax, *, complete: bool, identified: bool = False
) -> int:
    """How many elements in a row are in order and known; 0 when one is not.

    A run may end for want of bytes, or at a later fault once it is `identified`.
    """
    walk = Walk(syntax, DEFAULT_LIMITS, position=offset)
    broken = False
    try:
        walk.run(start, complete=complete)
    except (Short, Exceeded):
        pass
    except Broken:
        broken = True
    previous, known, proof = -1, 0, False
    for tag, raw in walk.found.items():
        if tag <= previous or raw.is_implicit_VR != syntax.implicit:
            broken = True
            break
        if not tag.is_private and not dictionary_has_tag(tag) and tag & 0xFFFF != 0:
            broken = True
        previous = tag
        known += 1
        proof = proof or _proves(tag, raw.value or b"")
    if identified:
        return known if proof else 0
    return 0 if broken and not proof else known + (walk.pixel is not None)


def _proves(tag: int, value: bytes) -> bool:
    if tag in _IDENTIFIERS:
        return len(value) <= 66 and _UID.fullmatch(value) is not None
    return tag == _ROWS and len(value) == 2 and value != b"\0\0"
