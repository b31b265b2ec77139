"""The ledger file: one JSON object a line, each holding the digest of the line before it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from numbat_ledger.entries import (
    FORMAT,
    OPENING,
    Draft,
    Entry,
    Kind,
    canonical,
    digest,
    is_unfinished,
    make_entry,
    parse_line,
    recomputed_hash,
)
from numbat_ledger.locking import locked_for_append, process_lock, read_whole_lines, write_all
from numbat_registries import Refusal, refuse

__all__ = ["Entry", "Kind", "Ledger", "canonical", "digest", "parse_line", "read_entries"]

_OPENING_LINE = OPENING.raw() + b"\n"
_WINDOW_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class _Written:
    """How this process left the file: which one, how long, and its last entry."""

    device: int
    inode: int
    size: int
    last: Entry


@dataclass(frozen=True, slots=True)
class _End:
    """How a ledger ends: its last whole entry, and what a killed writer left after it.

    `left` is None when nothing was left; `unended` tells that the last line end is missing.
    """

    last: Entry
    left: bytes | None = None
    unended: bool = False


class _Unfit(Exception):
    """The file is not fit for another entry; `refusal` says so once the locks are free."""

    def __init__(self, refusal: Callable[[], Refusal]) -> None:
        self.refusal = refusal


class Ledger:
    """An append-only ledger file, safe for many processes and threads at once.

    A line is written under an exclusive lock and is in the file, whole, before `append` returns.
    A writer killed in the middle leaves an unfinished last line; the next writer ends it and
    records its digest, so that nothing is ever rewritten. Entries survive the death of every
    process; a `seal` is also flushed to the disk.

    Raises GATE-0201 and GATE-0205 for a file that does not end as a ledger does, GATE-0206 when it
    cannot be written, GATE-0207 when it was cut or exchanged between two entries of this process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._written: _Written | None = None

    def begin(self) -> None:
        """Make sure that the file is there and is a ledger, before anything has to be recorded."""
        self._write(None)

    def append(
        self,
        kind: Kind,
        *,
        code: str = "",
        site: str = "",
        gate: str = "",
        check: str = "",
        fields: str = "",
        ref: int | None = None,
        note: str = "",
    ) -> Entry:
        """Write one entry and give it back; it is in the file when this returns.

        Raises GATE-0208 for a kind that only the ledger itself writes, and for an assertion about
        no entry.
        """
        if kind not in get_args(Kind):
            raise refuse("GATE-0208", kind=str(kind), reason=f"not among {get_args(Kind)}")
        if (kind == "assert") != (ref is not None):
            raise refuse("GATE-0208", kind=kind, reason="assertions, and they alone, have a ref")
        return self._write(Draft(kind, code, site, gate, check, fields, ref, note))

    def _write(self, draft: Draft | None) -> Entry:
        # A refusal is itself recorded by whoever is active, so it is made after the locks are free.
        try:
            with process_lock, locked_for_append(self.path) as descriptor:
                return self._write_locked(descriptor, draft)
        except _Unfit as unfit:
            raise unfit.refusal() from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise refuse("GATE-0206", file=self.path.name, reason=reason) from error

    def _write_locked(self, descriptor: int, draft: Draft | None) -> Entry:
        status = os.fstat(descriptor)
        end = self._end(descriptor, status)
        if end is None:
            begun = os.pread(descriptor, status.st_size, 0)
            last, content = OPENING, _OPENING_LINE.removeprefix(begun)
        else:
            last, content = end.last, b""
        if draft is not None:
            if end is not None:
                last, content = _ended(end)
            last = make_entry(draft, after=last)
            content += last.raw() + b"\n"
        write_all(descriptor, content)
        if last.kind == "seal":
            os.fsync(descriptor)
        if draft is not None:
            size = status.st_size + len(content)
            self._written = _Written(status.st_dev, status.st_ino, size, last)
        return last

    def _end(self, descriptor: int, status: os.stat_result) -> _End | None:
        """The end of the file; None while its first line is not whole yet."""
        size, written, name = status.st_size, self._written, self.path.name
        if written is not None:
            if (written.device, written.inode) != (status.st_dev, status.st_ino):
                reason = "another file took its place"
                raise _Unfit(lambda: refuse("GATE-0207", file=name, reason=reason))
            if size < written.size:
                reason = f"{written.size} bytes became {size}"
                raise _Unfit(lambda: refuse("GATE-0207", file=name, reason=reason))
            if size == written.size:
                return _End(written.last)
        begun = os.pread(descriptor, len(_OPENING_LINE), 0)
        if begun != _OPENING_LINE:
            if _OPENING_LINE.startswith(begun):
                return None
            reason = f"its first line does not open a {FORMAT}"
            raise _Unfit(lambda: refuse("GATE-0205", file=name, reason=reason))
        window = _WINDOW_BYTES
        while (end := self._end_within(descriptor, max(0, size - window), size)) is None:
            window *= 4
        return end

    def _end_within(self, descriptor: int, start: int, size: int) -> _End | None:
        """The end, when the last entry lies whole after `start`."""
        tail = os.pread(descriptor, size - start, start)
        lines = tail.split(b"\n")
        first = 0 if start == 0 else 1  # what comes before the first line end may be half a line
        for position in range(len(lines) - 1, first - 1, -1):
            entry = parse_line(lines[position])
            if entry is None or recomputed_hash(entry) != entry.hash:
                continue
            after = lines[position + 1 :]
            if all(map(is_unfinished, after)):
                return _end_after(entry, after)
            before = start + len(b"\n".join(lines[: position + 1]))
            raise _Unfit(self._altered(os.pread(descriptor, before, 0).count(b"\n") + 2))
        return None

    def _altered(self, line: int) -> Callable[[], Refusal]:
        return lambda: refuse("GATE-0201", file=self.path.name, line=line)


def _end_after(entry: Entry, after: list[bytes]) -> _End:
    """The end of a ledger from its last entry and the pieces of lines after that."""
    if not after:
        return _End(entry, unended=True)
    if after == [b""]:
        return _End(entry)
    return _End(entry, left=b"\n".join(after).removesuffix(b"\n"), unended=after[-1] != b"")


def _ended(end: _End) -> tuple[Entry, bytes]:
    """The entry to go on from, and what ends the line that a killed writer left."""
    content = b"\n" if end.unended else b""
    if end.left is None:
        return end.last, content
    note = f"{len(end.left)} bytes left by a writer that was stopped"
    torn = make_entry(Draft(kind="torn", fields=digest(end.left), note=note), after=end.last)
    return torn, content + torn.raw() + b"\n"


def read_entries(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """The entries of a ledger in order, without judging it; other lines are passed over.

    Raises GATE-0205 for a file that cannot be read.
    """
    for line in read_lines(Path(path)):
        entry = parse_line(line)
        if entry is not None:
            yield entry


def read_lines(path: Path) -> list[bytes]:
    """The lines of a ledger without their ends; the last one is empty unless its end is missing.

    Raises GATE-0205 for a file that cannot be read.
    """
    try:
        return read_whole_lines(path).split(b"\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise refuse("GATE-0205", file=path.name, reason=reason) from error
