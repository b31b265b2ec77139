"""Whether a ledger is as it was written: no line edited, removed, added, reordered or cut."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from numbat_registries import refuse

from numbat_ledger.chain import FORMAT, GENESIS, Entry, digest, parse_line, recomputed_hash


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What a verified ledger holds: digest of its last line, entries, torn lines, whether sealed."""

    head: str
    length: int
    torn: int
    sealed: bool


def verify_ledger(path: str | os.PathLike[str], *, head: str | None = None) -> LedgerState:
    """Walk the whole chain; against `head` (from a report) also the end of it.

    Without `head`, lines cut off the end as a whole cannot be seen: every report therefore binds
    the head of its ledger.

    Raises GATE-0201 for an edited line, GATE-0202 for one removed, added or reordered, GATE-0203
    for a torn end, GATE-0204 when the ledger does not end at `head`, GATE-0205 for another file.
    """
    name = Path(path).name
    lines = _read_lines(path, name)
    last: Entry | None = None
    fragment: bytes | None = None
    torn = 0
    for number, line in enumerate(lines, start=1):
        entry = parse_line(line.decode("utf-8", "replace"))
        if entry is None:
            if fragment is not None or last is None:
                raise refuse("GATE-0201", file=name, line=number)
            fragment = line
            continue
        _check_link(entry, last, name=name, number=number)
        if (entry.kind == "torn") != (fragment is not None):
            raise refuse(
                "GATE-0202", file=name, line=number, expected=_next_seq(last), found=entry.seq
            )
        if fragment is not None:
            if entry.fields != digest(fragment):
                raise refuse("GATE-0201", file=name, line=number - 1)
            torn, fragment = torn + 1, None
        last = entry
    if fragment is not None or last is None:
        raise refuse("GATE-0201", file=name, line=len(lines))
    if head is not None and head != last.hash:
        raise refuse("GATE-0204", file=name, expected=head, found=last.hash, length=last.seq + 1)
    return LedgerState(head=last.hash, length=last.seq + 1, torn=torn, sealed=last.kind == "seal")


def _read_lines(path: str | os.PathLike[str], name: str) -> list[bytes]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise refuse("GATE-0205", file=name, reason=error.strerror or str(error)) from error
    first, _, _ = content.partition(b"\n")
    opening = parse_line(first.decode("utf-8", "replace"))
    if opening is None or opening.kind != "open" or opening.note != FORMAT:
        raise refuse("GATE-0205", file=name, reason=f"its first line does not open a {FORMAT}")
    *lines, rest = content.split(b"\n")
    if rest:
        raise refuse("GATE-0203", file=name, line=len(lines) + 1, left_bytes=len(rest))
    return lines


def _next_seq(last: Entry | None) -> int:
    return 0 if last is None else last.seq + 1


def _check_link(entry: Entry, last: Entry | None, *, name: str, number: int) -> None:
    if recomputed_hash(entry) != entry.hash:
        raise refuse("GATE-0201", file=name, line=number)
    before = GENESIS if last is None else last.hash
    if entry.prev != before or entry.seq != _next_seq(last):
        raise refuse("GATE-0202", file=name, line=number, expected=_next_seq(last), found=entry.seq)
