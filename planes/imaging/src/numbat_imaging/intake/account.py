"""An account of every file that was found, and the scan that draws it up."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from numbat_imaging.intake.directories import (
    DirectoryRecord,
    directory_records,
    medium_name,
    missing_records,
)
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import Header, read_header
from numbat_imaging.intake.limits import DEFAULT_LIMITS, Limits
from numbat_imaging.intake.records import Disposition, FileRecord, refused, set_aside
from numbat_imaging.intake.sources import Paths, find_files
from numbat_registries import Diagnostic, Refusal, notice, refuse

T = TypeVar("T")
Progress = Callable[[int, int], None]

_LARGEST_CHUNK = 64
_CHUNKS_A_WORKER = 4


@dataclass(frozen=True, slots=True)
class FileAccount:
    """What became of every file, in order of path; made by `account_of`, which checks it."""

    records: tuple[FileRecord, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many files have each disposition, all four always present."""
        counted = Counter(record.disposition for record in self.records)
        return {str(disposition): counted[disposition] for disposition in Disposition}

    def having(self, disposition: Disposition | str) -> tuple[FileRecord, ...]:
        """The records of one disposition."""
        return tuple(record for record in self.records if record.disposition == disposition)

    def first_refusal(self) -> Refusal | None:
        """The refusal of the first refused file, to be raised by who needs every file."""
        first = next(iter(self.having(Disposition.REFUSED)), None)
        return Refusal(first.diagnostic) if first and first.diagnostic else None

    def revised(self, reasons: Mapping[FileRef, Diagnostic | Refusal]) -> FileAccount:
        """The account after the series code set used files aside (notice) or refused them."""
        records = []
        for record in self.records:
            reason = reasons.get(record.ref)
            if isinstance(reason, Refusal):
                record = replace(
                    record, disposition=Disposition.REFUSED, diagnostic=reason.diagnostic
                )
            elif reason is not None:
                record = replace(record, disposition=Disposition.SET_ASIDE, diagnostic=reason)
            records.append(record)
        return FileAccount(tuple(records))

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON data; files by their labels, relative to the root."""
        return {
            "files": len(self.records),
            "counts": self.counts,
            "records": [record.to_dict() for record in self.records],
        }


def account_of(found: Iterable[FileRef], records: Iterable[FileRecord]) -> FileAccount:
    """The account of the files found, each with exactly one disposition.

    Raises IMG-1023 when a file has none, several, or was never found.
    """
    ordered = sorted(records, key=lambda record: record.ref)
    told = Counter(record.ref for record in ordered)
    expected = set(found)
    missing = sorted(ref.label for ref in expected - told.keys())
    surplus = sorted(ref.label for ref in told.keys() - expected)
    twice = sorted(ref.label for ref, times in told.items() if times > 1)
    if missing or surplus or twice:
        raise refuse("IMG-1023", missing=missing, surplus=surplus, twice=twice)
    return FileAccount(tuple(ordered))


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    record: FileRecord
    value: T | None = None
    listed: tuple[DirectoryRecord, ...] = ()


@overload
def scan(
    paths: Paths,
    *,
    workers: int = ...,
    progress: Progress | None = ...,
    limits: Limits = ...,
    digests: bool = ...,
    aside: Collection[str] = ...,
) -> tuple[list[Header], FileAccount]: ...


@overload
def scan(
    paths: Paths,
    *,
    convert: Callable[[Header], T],
    workers: int = ...,
    progress: Progress | None = ...,
    limits: Limits = ...,
    digests: bool = ...,
    aside: Collection[str] = ...,
) -> tuple[list[T], FileAccount]: ...


def scan(
    paths: Paths,
    *,
    convert: Callable[[Header], Any] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    limits: Limits = DEFAULT_LIMITS,
    digests: bool = False,
    aside: Collection[str] = (),
) -> tuple[list[Any], FileAccount]:
    """Every DICOM header at `paths`, converted, in order of path, and the account of every file.

    `convert` runs where the header is read, in a pool of processes when `workers` > 1: then it and
    what it returns must be picklable. A refusal that it raises refuses the file, or sets it aside
    when its code is in `aside`. `progress` is told files done and files in all; `digests` adds the
    SHA-256 of every file. The result does not depend on `workers`.

    Raises IMG-1001 for a path where nothing is; what is wrong with a file is in the account.
    """
    found = find_files(paths, limits=limits)
    reader = _ChunkReader(convert, limits, digests, frozenset(aside))
    outcomes: list[_Outcome[Any]] = []
    for part in _parts(found.files, reader, workers):
        outcomes += part
        if progress is not None:
            progress(len(outcomes), len(found.files))
    records = [*found.settled, *(outcome.record for outcome in outcomes)]
    missing = list(_promised(outcomes, records))
    refs = [*found.files, *(record.ref for record in (*found.settled, *missing))]
    values = [
        outcome.value for outcome in outcomes if outcome.record.disposition is Disposition.USED
    ]
    return values, account_of(refs, [*records, *missing])


def _parts(
    files: tuple[FileRef, ...], reader: _ChunkReader, workers: int
) -> Iterator[list[_Outcome[Any]]]:
    size = max(1, min(_LARGEST_CHUNK, len(files) // (max(workers, 1) * _CHUNKS_A_WORKER) + 1))
    chunks = [files[start : start + size] for start in range(0, len(files), size)]
    if workers <= 1 or len(chunks) <= 1:
        yield from map(reader, chunks)
        return
    with ProcessPoolExecutor(max_workers=min(workers, len(chunks))) as pool:
        yield from pool.map(reader, chunks)


def _promised(
    outcomes: Iterable[_Outcome[Any]], records: Iterable[FileRecord]
) -> Iterator[FileRecord]:
    directories = [outcome for outcome in outcomes if outcome.listed]
    if not directories:
        return
    present = {medium_name(record.ref.label) for record in records}
    told: set[FileRef] = set()
    for outcome in directories:
        for record in missing_records(outcome.record.ref, outcome.listed, present):
            # Two directories of one medium may promise the same file.
            if record.ref not in told:
                told.add(record.ref)
                yield record


@dataclass(frozen=True, slots=True)
class _ChunkReader:
    """Reads some files; sent whole to a worker process."""

    convert: Callable[[Header], Any] | None
    limits: Limits
    digests: bool
    aside: frozenset[str]

    def __call__(self, refs: tuple[FileRef, ...]) -> list[_Outcome[Any]]:
        return [self.read(ref) for ref in refs]

    def read(self, ref: FileRef) -> _Outcome[Any]:
        digest: str | None = None
        try:
            digest = _digest(ref) if self.digests else None
            header = read_header(ref, limits=self.limits)
            if header is None:
                return _Outcome(FileRecord(ref, Disposition.NOT_DICOM, sha256=digest))
            if header.is_media_directory:
                listed = directory_records(header.dataset)
                reason = notice("IMG-1009", file=ref.label, kind="DICOMDIR")
                return _Outcome(set_aside(ref, reason, sha256=digest), listed=listed)
            value = header if self.convert is None else self.convert(header)
        except Refusal as refusal:
            if refusal.code in self.aside:
                return _Outcome(set_aside(ref, refusal.diagnostic, sha256=digest))
            return _Outcome(refused(ref, refusal, sha256=digest))
        record = FileRecord(ref, Disposition.USED, notices=header.notices, sha256=digest)
        return _Outcome(record, value)


def _digest(ref: FileRef) -> str:
    with ref.open() as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


__all__ = ["Disposition", "FileAccount", "FileRecord", "Progress", "account_of", "scan"]
