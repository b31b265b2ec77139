"""The ledger file: one JSON object a line, each holding the digest of the line before it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from filelock import FileLock
from numbat_registries import refuse

FORMAT = "numbat-ledger/1"
GENESIS = "sha256:" + "0" * 64
_TAIL_BYTES = 1 << 16


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
        return canonical({**_body(self), "hash": self.hash})


def _body(entry: Entry) -> dict[str, Any]:
    names = (field.name for field in fields(Entry))
    values = {name: getattr(entry, name) for name in names if name != "hash"}
    return {name: value for name, value in values.items() if value not in ("", None)}


def canonical(body: Mapping[str, Any]) -> str:
    """JSON with sorted keys and no blanks: one text for one value."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str | bytes) -> str:
    """SHA-256 as "sha256:<hex>"."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make_entry(*, seq: int, kind: str, prev: str, **body: Any) -> Entry:
    """An entry with its own digest filled in."""
    draft = Entry(seq=seq, kind=kind, prev=prev, hash="", **body)
    return Entry(seq=seq, kind=kind, prev=prev, hash=digest(canonical(_body(draft))), **body)


def parse_line(line: str) -> Entry | None:
    """The entry that a line holds, or None when the line is not a whole entry."""
    try:
        body = json.loads(line)
        return Entry(**body)
    except (ValueError, TypeError):
        return None


def recomputed_hash(entry: Entry) -> str:
    """The digest that the entry's own content gives."""
    return digest(canonical(_body(entry)))


class Ledger:
    """An append-only ledger file, safe for many processes and threads at once.

    A line is written whole under an exclusive lock. A writer killed in the middle leaves a torn
    last line; the next writer ends it and records its digest, so that nothing is ever rewritten.

    Raises GATE-0205 for a file that is not a ledger, GATE-0206 when it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._lock = FileLock(f"{self.path}.lock", thread_local=False)
        self._mutex = threading.Lock()
        self._tail: tuple[int, Entry] | None = None

    def append(self, kind: str, **body: Any) -> Entry:
        """Write one entry and give it back; it is in the file when this returns."""
        with self._mutex:
            try:
                with self._lock, open(self.path, "ab+") as stream:
                    return self._append_locked(stream, kind, body)
            except OSError as error:
                raise refuse(
                    "GATE-0206", file=self.path.name, reason=error.strerror or str(error)
                ) from error

    def _append_locked(self, stream: Any, kind: str, body: Mapping[str, Any]) -> Entry:
        size = stream.seek(0, os.SEEK_END)
        last = self._last_entry(stream, size)
        lines = []
        if last is None:
            last = make_entry(seq=0, kind="open", prev=GENESIS, note=FORMAT)
            lines.append(last)
        elif isinstance(last, _Torn):
            stream.write(b"\n")
            last = make_entry(
                seq=last.after.seq + 1,
                kind="torn",
                prev=last.after.hash,
                fields=digest(last.fragment),
                note=f"{len(last.fragment)} bytes left by a writer that was stopped",
            )
            lines.append(last)
        entry = make_entry(seq=last.seq + 1, kind=kind, prev=last.hash, **body)
        lines.append(entry)
        stream.write("".join(f"{line.line()}\n" for line in lines).encode("utf-8"))
        stream.flush()
        self._tail = (stream.tell(), entry)
        return entry

    def _last_entry(self, stream: Any, size: int) -> Entry | _Torn | None:
        if size == 0:
            return None
        if self._tail is not None and self._tail[0] == size:
            return self._tail[1]
        stream.seek(max(0, size - _TAIL_BYTES))
        *whole, rest = stream.read().split(b"\n")
        entries = [parse_line(line.decode("utf-8", "replace")) for line in whole[-2:]]
        last = next((entry for entry in reversed(entries) if entry is not None), None)
        if last is None:
            raise refuse("GATE-0205", file=self.path.name, reason="its last line is not an entry")
        return _Torn(rest, last) if rest else last


@dataclass(frozen=True, slots=True)
class _Torn:
    fragment: bytes
    after: Entry


def read_entries(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """The entries of a ledger in order, without judging it; torn lines are passed over."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            entry = parse_line(line)
            if entry is not None:
                yield entry
