"""Typed refusals: every diagnostic code of numbat, with evidence and executable repair plans."""

from importlib.metadata import version as _version

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

__version__ = _version("numbat-registries")

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
