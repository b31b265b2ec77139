"""One line of a ledger: what it says, its only spelling, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

FORMAT = "numbat-ledger/1"
GENESIS = "sha256:" + "0" * 64

#: What callers append; the ledger itself also writes "open" and "torn".
Kind = Literal["raise", "notice", "assert", "seal"]

_TEXTS = ("kind", "prev", "hash", "code", "site", "gate", "check", "fields", "note")
_NAMES = ("seq", "ref", *_TEXTS)
_DRAFTED = ("kind", "code", "site", "gate", "check", "fields", "ref", "note")


@dataclass(frozen=True, slots=True)
class Draft:
    """What an entry will say, before it has a place in the chain."""

    kind: str
    code: str = ""
    site: str = ""
    gate: str = ""
    check: str = ""
    fields: str = ""
    ref: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger.

    `kind` is open (the first line), raise, notice, assert (a check expected the entry numbered
    `ref`), torn (what a killed writer left of a line, by digest) or seal (a run ended here).
    `fields` is the digest of the evidence without what may identify a patient.
    """

    seq: int
    kind: str
    prev: str
    hash: str
    code: str = ""
    site: str = ""
    gate: str = ""
    check: str = ""
    fields: str = ""
    ref: int | None = None
    note: str = ""

    def line(self) -> str:
        """The entry as it stands in the file, without its line end."""
        return canonical(_body(self))

    def raw(self) -> bytes:
        """The bytes of `line`."""
        return self.line().encode("ascii")


def _body(entry: Entry) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in _NAMES}
    return {name: value for name, value in values.items() if value not in ("", None)}


def canonical(body: Mapping[str, Any]) -> str:
    """JSON with sorted keys, no blanks and ASCII alone: one text for one value."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def digest(text: str | bytes) -> str:
    """SHA-256 as "sha256:<hex>"."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make_entry(draft: Draft, *, after: Entry | None) -> Entry:
    """The draft as the entry that follows `after`, with its own digest filled in."""
    seq, prev = (0, GENESIS) if after is None else (after.seq + 1, after.hash)
    body = {name: getattr(draft, name) for name in _DRAFTED}
    unsigned = Entry(seq=seq, prev=prev, hash="", **body)
    return Entry(seq=seq, prev=prev, hash=recomputed_hash(unsigned), **body)


def recomputed_hash(entry: Entry) -> str:
    """The digest that the entry's own content gives."""
    body = _body(entry)
    body.pop("hash", None)
    return digest(canonical(body))


#: Every ledger opens with this line.
OPENING = make_entry(Draft(kind="open", note=FORMAT), after=None)


def parse_line(line: str | bytes) -> Entry | None:
    """The entry that a line holds, or None when the line is not spelt as an entry is written.

    Blanks, repeated or reordered keys, escapes and stray bytes change no value and are refused all
    the same: evidence has one spelling.
    """
    try:
        raw = (line.encode("ascii") if isinstance(line, str) else line).removesuffix(b"\n")
        entry = Entry(**json.loads(raw))
        well_typed = (
            type(entry.seq) is int
            and (entry.ref is None or type(entry.ref) is int)
            and all(type(getattr(entry, name)) is str for name in _TEXTS)
        )
        return entry if well_typed and entry.raw() == raw else None
    except (ValueError, TypeError, RecursionError):
        return None


def is_unfinished(line: bytes) -> bool:
    """Whether a killed writer may have left this: the beginning of a line is never whole JSON."""
    try:
        json.loads(line)
    except ValueError:
        return True
    except RecursionError:
        return False
    return False


def follows(entry: Entry, last: Entry) -> bool:
    """Whether an entry is the successor of the one before it."""
    return entry.prev == last.hash and entry.seq == last.seq + 1
