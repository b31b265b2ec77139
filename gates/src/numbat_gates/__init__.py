"""Executable requirements: gates, their runner, reports, attestation and verification."""

from __future__ import annotations

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from numbat_gates.planes import Plane
from numbat_gates.registration import Gate, gate
from numbat_gates.verdicts import ExitCode, NotRun, Verdict

if TYPE_CHECKING:
    from numbat_gates.checks import Check
    from numbat_gates.corpora import corpus, require_corpus

__version__ = _version("numbat-gates")

__all__ = [
    "Check",
    "ExitCode",
    "Gate",
    "NotRun",
    "Plane",
    "Verdict",
    "corpus",
    "gate",
    "require_corpus",
]

# Loaded when first asked for, so that announcing a plane and listing gates stay light.
_LAZY = {
    "Check": "numbat_gates.checks",
    "corpus": "numbat_gates.corpora",
    "require_corpus": "numbat_gates.corpora",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
