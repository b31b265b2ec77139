"""What the tests run in processes of their own; found there by name, so it is no test module."""

from __future__ import annotations

import os
from collections.abc import Sequence

from numbat_ledger import Ledger, active_ledger
from numbat_registries import load_registry, refuse


def append_many(path: str, name: str, count: int) -> None:
    """Append numbered entries, as fast as they go."""
    ledger = Ledger(path)
    for n in range(count):
        ledger.append("notice", code="GATE-0102", site=name, note=str(n))


def append_until_killed(path: str, size: int, acknowledged: int) -> None:
    """Append long entries without end, and say on a pipe which of them are in the file."""
    ledger = Ledger(path)
    while True:
        entry = ledger.append("notice", code="GATE-0102", note="x" * size)
        os.write(acknowledged, f"{entry.seq}\n".encode())


def append_once(ledger: Ledger) -> None:
    """Append with the ledger object of the parent, as a fork finds it."""
    ledger.append("notice", code="GATE-0102", site="child")


def refuse_here(name: str) -> int | None:
    """Make a refusal, and give the number under which it was recorded."""
    return refuse("GATE-0102", name=name, known=[]).diagnostic.seq


def refuse_out_of(names: Sequence[str]) -> None:
    """Let a refusal out of the process."""
    for name in names:
        load_registry(name)


def ledger_of_process() -> str:
    """The ledger that records this process."""
    ledger = active_ledger()
    return str(ledger.path) if ledger else ""
