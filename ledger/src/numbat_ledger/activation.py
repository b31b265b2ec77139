"""Switching a ledger on, for this process and for those that it starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from numbat_registries import Diagnostic
from numbat_registries.raising import sinks

from numbat_ledger.chain import Ledger, canonical, digest

_LEDGER = "NUMBAT_LEDGER"
_CONTEXT = "NUMBAT_LEDGER_CONTEXT"

_labels: ContextVar[tuple[str, str]] = ContextVar("numbat_ledger_labels", default=("", ""))


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
        entry = self.ledger.append(
            "raise" if diagnostic.severity.is_raised else "notice",
            code=diagnostic.code,
            site=diagnostic.site,
            gate=gate,
            check=check,
            fields=digest(canonical(public)),
        )
        return entry.seq


def current_labels() -> tuple[str, str]:
    """The gate and check in which this code runs; empty outside a run."""
    labels = _labels.get()
    if labels == ("", "") and _CONTEXT in os.environ:
        gate, check = json.loads(os.environ[_CONTEXT])
        return gate, check
    return labels


def active_ledger() -> Ledger | None:
    """The ledger that records this process, if any."""
    return next((sink.ledger for sink in reversed(sinks) if isinstance(sink, LedgerSink)), None)


def environment_sink() -> Callable[[Diagnostic], int | None]:
    """The sink of a process whose parent switched a ledger on (entry point of the registries)."""
    return LedgerSink(Ledger(os.environ[_LEDGER]))


@contextmanager
def activate(path: str | os.PathLike[str]) -> Iterator[Ledger]:
    """Record every diagnostic raised inside, in this process and in those it starts."""
    ledger = Ledger(path)
    sink = LedgerSink(ledger)
    sinks.append(sink)
    with _environment(_LEDGER, str(ledger.path)):
        try:
            yield ledger
        finally:
            sinks.remove(sink)


@contextmanager
def context(*, gate: str = "", check: str = "") -> Iterator[None]:
    """Label what is raised inside with a gate and a check."""
    token = _labels.set((gate, check))
    with _environment(_CONTEXT, json.dumps([gate, check])):
        try:
            yield
        finally:
            _labels.reset(token)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
