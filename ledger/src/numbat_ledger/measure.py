"""Coverage: which registered codes a check asked for and got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numbat_registries import Registry

from numbat_ledger.chain import Entry


@dataclass(frozen=True, slots=True)
class Coverage:
    """Codes by whether an asserted check raised them.

    `covered` maps a code to its (gate, check) pairs; `uncovered` are registered and live but no
    check asserted them; `unregistered` were raised under the registry's prefix but are not in it.
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
    raised: dict[int, str] = {}
    covered: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        if entry.kind in ("raise", "notice"):
            raised[entry.seq] = entry.code
        elif entry.kind == "assert" and entry.ref is not None:
            if raised.get(entry.ref) == entry.code:
                covered.setdefault(entry.code, []).append((entry.gate, entry.check))
    live = {code.code for code in registry.live}
    ours = {code for code in raised.values() if code.startswith(f"{registry.prefix}-")}
    return Coverage(
        covered={
            code: tuple(dict.fromkeys(covered[code])) for code in sorted(covered) if code in live
        },
        uncovered=tuple(sorted(live - set(covered))),
        unregistered=tuple(sorted(ours - set(registry.codes))),
    )
