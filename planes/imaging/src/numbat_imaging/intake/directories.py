"""The records of a DICOMDIR and the files that they promise (PS3.3 Annex F, PS3.10 §8)."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.records import FileRecord, refused
from numbat_registries import Refusal, refuse


@dataclass(frozen=True, slots=True)
class DirectoryRecord:
    """One record that names a file: its path within the medium and what kind of record it is."""

    file: str
    record_type: str


def directory_records(ds: Dataset) -> tuple[DirectoryRecord, ...]:
    """Every record of a DICOMDIR that names a file, in the order of the file.

    Raises IMG-1012 when the records cannot be read.
    """
    named = []
    for item in elements.sequence(ds, "DirectoryRecordSequence"):
        parts = elements.texts(item, "ReferencedFileID")
        if parts:
            kind = elements.text(item, "DirectoryRecordType") or "unknown"
            named.append(DirectoryRecord("/".join(parts), kind))
    return tuple(named)


def missing_records(
    directory: FileRef, records: Collection[DirectoryRecord], present: Collection[str]
) -> Iterator[FileRecord]:
    """An account of each file that the directory lists and that is not there, each once.

    `present` holds `medium_name` of every file that was found.
    """
    told: set[str] = set()
    for record in records:
        ref = _listed(directory, record.file)
        name = medium_name(ref.label)
        if name in told:
            continue
        told.add(name)
        refusal = missing_file(
            directory.label, record.file, record_type=record.record_type, present=present
        )
        if refusal is not None:
            yield refused(ref, refusal)


def missing_file(
    directory: str, file: str, *, record_type: str, present: Collection[str]
) -> Refusal | None:
    """IMG-1008 when `file`, relative to the folder of `directory`, is not among `present`."""
    reason = "there is no such file"
    if ".." in file.split("/") or file.startswith("/") or "" in file.split("/"):
        reason = "its path leads out of the medium"
    elif medium_name(posixpath.join(posixpath.dirname(directory), file)) in present:
        return None
    return refuse(
        "IMG-1008", directory=directory, file=file, record_type=record_type, reason=reason
    )


def medium_name(label: str) -> str:
    """A name as media compare it: without case, and without the version and dot of ISO 9660."""
    return "/".join(
        part.partition(";")[0].rstrip(".") or part for part in label.casefold().split("/")
    )


def _listed(directory: FileRef, file: str) -> FileRef:
    if directory.member is None:
        path = os.path.join(os.path.dirname(directory.path), *file.split("/"))
        return replace(directory, path=path)
    member = posixpath.join(posixpath.dirname(directory.member), file)
    return replace(directory, member=member, at=())
