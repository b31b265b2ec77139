"""Typed refusals: every diagnostic code of numbat, with evidence and executable repair plans."""

from numbat_registries.diagnostics import Action, Diagnostic, Refusal, RepairPlan, Severity
from numbat_registries.raising import notice, refuse
from numbat_registries.registry import (
    Code,
    Field,
    Registry,
    find_code,
    load_registries,
    load_registry,
    registry_names,
)

__all__ = [
    "Action",
    "Code",
    "Diagnostic",
    "Field",
    "Refusal",
    "Registry",
    "RepairPlan",
    "Severity",
    "find_code",
    "load_registries",
    "load_registry",
    "notice",
    "refuse",
    "registry_names",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        # Every command and every engine import passes here; the metadata is slow to load.
        from importlib.metadata import version

        return version("numbat-registries")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
