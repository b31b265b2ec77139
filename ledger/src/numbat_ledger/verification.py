"""Whether a ledger is as it was written: no line edited, removed, added, reordered or cut."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from numbat_ledger.chain import read_lines
from numbat_ledger.entries import (
    FORMAT,
    OPENING,
    Entry,
    digest,
    follows,
    is_unfinished,
    parse_line,
    recomputed_hash,
)
from numbat_registries import refuse


@dataclass(frozen=True, slots=True)
class LedgerState:
    """What a verified ledger holds: its last line's digest, entries, torn lines, whether sealed."""

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
    first, *lines = read_lines(Path(path))
    if first != OPENING.raw():
        _refuse_opening(first, name=name, alone=not lines)
    walk = _Walk(name)
    for line in lines[:-1]:
        walk.step(line)
    if not lines or lines[-1]:
        rest = lines[-1] if lines else first
        raise refuse("GATE-0203", file=name, line=walk.number + 1, left_bytes=len(rest))
    walk.stop()
    last = walk.last
    if head is not None and head != last.hash:
        raise refuse("GATE-0204", file=name, expected=head, found=last.hash, length=last.seq + 1)
    sealed = last.kind == "seal"
    return LedgerState(head=last.hash, length=last.seq + 1, torn=walk.torn, sealed=sealed)


def _refuse_opening(first: bytes, *, name: str, alone: bool) -> None:
    if alone and first and OPENING.raw().startswith(first):
        raise refuse("GATE-0203", file=name, line=1, left_bytes=len(first))
    reason = f"its first line does not open a {FORMAT}"
    raise refuse("GATE-0205", file=name, reason=reason)


class _Walk:
    """Goes down the lines and knows what has to come next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 1
        self.last: Entry = OPENING
        self.torn = 0
        self._left: list[bytes] = []

    def step(self, line: bytes) -> None:
        """Take the next line; raises GATE-0201 or GATE-0202 when it cannot be what was written."""
        self.number += 1
        entry = parse_line(line)
        if entry is None or recomputed_hash(entry) != entry.hash:
            if is_unfinished(line):
                # Right only if the next entry is the one by which a later writer recorded it.
                self._left.append(line)
                return
            raise refuse("GATE-0201", file=self.name, line=self.number - len(self._left))
        recorded = entry.kind == "torn" and entry.fields == digest(b"\n".join(self._left))
        if self._left and not (recorded and follows(entry, self.last)):
            raise refuse("GATE-0201", file=self.name, line=self.number - len(self._left))
        if not follows(entry, self.last) or (entry.kind == "torn") != bool(self._left):
            due = self.last.seq + 1
            raise refuse(
                "GATE-0202", file=self.name, line=self.number, expected=due, found=entry.seq
            )
        self.torn += entry.kind == "torn"
        self._left = []
        self.last = entry

    def stop(self) -> None:
        """Take the end of the file; raises GATE-0201 for a line that no later writer recorded."""
        if self._left:
            raise refuse("GATE-0201", file=self.name, line=self.number - len(self._left) + 1)
