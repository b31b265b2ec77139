"""What became of one file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numbat_imaging.intake.files import FileRef
from numbat_registries import Diagnostic, Refusal


class Disposition(StrEnum):
    """The four things that can become of a file.

    USED: its header went on to the series. SET_ASIDE: understood, and not needed. REFUSED: it is
    or may be DICOM and cannot be used. NOT_DICOM: it is something else.
    """

    USED = "used"
    SET_ASIDE = "set-aside"
    REFUSED = "refused"
    NOT_DICOM = "not-dicom"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file and its disposition; `diagnostic` is the reason of all but USED and NOT_DICOM.

    `notices` are what was remarked on a file that went on; `sha256` of its bytes when asked for.
    """

    ref: FileRef
    disposition: Disposition
    diagnostic: Diagnostic | None = None
    notices: tuple[Diagnostic, ...] = ()
    sha256: str | None = None

    @property
    def code(self) -> str | None:
        """The diagnostic code of the disposition."""
        return None if self.diagnostic is None else self.diagnostic.code

    @property
    def detail(self) -> str:
        """The diagnostic in words, without what may identify a patient."""
        return "" if self.diagnostic is None else self.diagnostic.message

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON data, the file by its label."""
        body: dict[str, Any] = {"file": self.ref.label, "disposition": str(self.disposition)}
        if self.diagnostic is not None:
            body |= {"code": self.diagnostic.code, "detail": self.diagnostic.message}
        if self.notices:
            body["notices"] = [{"code": n.code, "detail": n.message} for n in self.notices]
        if self.sha256 is not None:
            body["sha256"] = f"sha256:{self.sha256}"
        return body


def refused(ref: FileRef, refusal: Refusal, *, sha256: str | None = None) -> FileRecord:
    """The record of a file that a refusal stopped."""
    return FileRecord(ref, Disposition.REFUSED, refusal.diagnostic, sha256=sha256)


def set_aside(ref: FileRef, reason: Diagnostic, *, sha256: str | None = None) -> FileRecord:
    """The record of a file that is understood and not needed."""
    return FileRecord(ref, Disposition.SET_ASIDE, reason, sha256=sha256)
