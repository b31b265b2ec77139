"""Coverage: which registered codes a check asked for and got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numbat_ledger.entries import Entry
from numbat_registries import Registry

_UNREGISTERED = "GATE-0101"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Codes by whether an asserted check raised them.

    `covered` maps a code to its (gate, check) pairs; `uncovered` are registered and live but no
    check asserted them; `unregistered` were raised and are not in the registry, be it under its
    prefix or (an attempt that GATE-0101 refused, and no check had asked for) under any.
    """

    covered: Mapping[str, tuple[tuple[str, str], ...]]
    uncovered: tuple[str, ...]
    unregistered: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every live code is covered and nothing unregistered was raised."""
        return not self.uncovered and not self.unregistered


def coverage(entries: Iterable[Entry], registry: Registry) -> Coverage:
    """Measure a registry against a ledger's entries.

    Only an `assert` entry counts, and only when the entry it refers to raised or recorded the same
    code: a raise that no check expected covers nothing.
    """
    raised: dict[int, Entry] = {}
    asserted: set[int] = set()
    covered: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        if entry.kind in ("raise", "notice"):
            raised[entry.seq] = entry
        elif entry.kind == "assert" and entry.ref is not None:
            about = raised.get(entry.ref)
            if about is not None and about.code == entry.code:
                covered.setdefault(entry.code, []).append((entry.gate, entry.check))
                asserted.add(entry.ref)
    live = {code.code for code in registry.live}
    ours = {entry.code for entry in raised.values() if entry.code.startswith(f"{registry.prefix}-")}
    tried = {
        entry.note
        for seq, entry in raised.items()
        if entry.code == _UNREGISTERED and seq not in asserted
    }
    return Coverage(
        covered={
            code: tuple(dict.fromkeys(covered[code])) for code in sorted(covered) if code in live
        },
        uncovered=tuple(sorted(live - set(covered))),
        unregistered=tuple(sorted((ours | tried) - set(registry.codes))),
    )
