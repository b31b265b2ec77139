"""Switching a ledger on, for this process and for those that it starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from numbat_ledger.chain import Ledger
from numbat_ledger.entries import canonical, digest
from numbat_ledger.locking import process_lock
from numbat_registries import Diagnostic
from numbat_registries.raising import sinks

_labels: ContextVar[tuple[str, str] | None] = ContextVar("numbat_ledger_labels", default=None)


class LedgerSink:
    """Writes each diagnostic of this process to one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def __call__(self, diagnostic: Diagnostic) -> int | None:
        """Record one diagnostic and give the number of its entry."""
        gate, check = current_labels()
        public = {
            name: value
            for name, value in diagnostic.fields.items()
            if name not in diagnostic.phi_fields
        }
        # That somebody raised a code nobody registered shows in the coverage under its own name.
        unregistered = diagnostic.fields["code"] if diagnostic.code == "GATE-0101" else ""
        entry = self.ledger.append(
            "raise" if diagnostic.severity.is_raised else "notice",
            code=diagnostic.code,
            site=diagnostic.site,
            gate=gate,
            check=check,
            fields=digest(canonical(public)),
            note=unregistered,
        )
        return entry.seq


class _Inherited:
    """An environment variable that says to child processes what the latest open block says.

    Blocks of several threads may end in any order; the value before all of them comes back last.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._before: str | None = None
        self._open: list[tuple[object, str]] = []

    @property
    def value(self) -> str:
        """What the variable says now; empty when it is not set."""
        return os.environ.get(self.name, "")

    @contextmanager
    def saying(self, value: str) -> Iterator[None]:
        """Set the variable until the block ends."""
        block = (object(), value)
        with process_lock:
            if not self._open:
                self._before = os.environ.get(self.name)
            self._open.append(block)
            self._show()
        try:
            yield
        finally:
            with process_lock:
                self._open.remove(block)
                self._show()

    def _show(self) -> None:
        value = self._open[-1][1] if self._open else self._before
        if value is None:
            os.environ.pop(self.name, None)
        else:
            os.environ[self.name] = value


_ledger = _Inherited("NUMBAT_LEDGER")
_context = _Inherited("NUMBAT_LEDGER_CONTEXT")
_environment_sinks: dict[str, LedgerSink] = {}


def current_labels() -> tuple[str, str]:
    """The gate and check in which this code runs; empty outside a run.

    A thread or process that was not started with this context has the labels of the latest block.
    """
    labels = _labels.get()
    if labels is not None:
        return labels
    try:
        gate, check = json.loads(_context.value or '["",""]')
        return str(gate), str(check)
    except (ValueError, TypeError):
        return "", ""


def active_ledger() -> Ledger | None:
    """The ledger that records this process, if any: the one activated last, or the parent's."""
    mine = next((sink for sink in reversed(sinks) if isinstance(sink, LedgerSink)), None)
    if mine is None and _ledger.value:
        mine = environment_sink()
    return mine.ledger if mine is not None else None


def environment_sink() -> LedgerSink:
    """The sink of a process whose parent switched a ledger on (entry point of the registries)."""
    path = _ledger.value
    return _environment_sinks.setdefault(path, LedgerSink(Ledger(path)))


@contextmanager
def activate(path: str | os.PathLike[str]) -> Iterator[Ledger]:
    """Record every diagnostic raised inside, in this process and in those it starts.

    Inside another ledger's block, or in a process whose parent keeps one, that ledger records this
    process too. Raises GATE-0201, GATE-0205 and GATE-0206, as `Ledger` does, before it begins.
    """
    ledger = Ledger(path)
    ledger.begin()
    outer = active_ledger()
    added: list[Callable[[Diagnostic], int | None]] = []
    if outer is not None and not any(isinstance(sink, LedgerSink) for sink in sinks):
        added.append(environment_sink())
    known = [sink.ledger.path for sink in (*sinks, *added) if isinstance(sink, LedgerSink)]
    if ledger.path not in known:
        added.append(LedgerSink(ledger))
    sinks.extend(added)
    try:
        with _ledger.saying(str(ledger.path)):
            yield ledger
    finally:
        for sink in added:
            sinks.remove(sink)


@contextmanager
def context(*, gate: str | None = None, check: str | None = None) -> Iterator[None]:
    """Label what is raised inside with a gate and a check; one not given stays as it is."""
    outer = current_labels()
    labels = (outer[0] if gate is None else gate, outer[1] if check is None else check)
    token = _labels.set(labels)
    try:
        with _context.saying(json.dumps(labels)):
            yield
    finally:
        _labels.reset(token)
