"""Making a diagnostic: evidence checked against the registry, recorded, and bound to its plans."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numbat_registries.diagnostics import WITHHELD, Action, Diagnostic, Refusal, RepairPlan
from numbat_registries.registry import Code, Field, find_code
from numbat_registries.templates import fill

Sink = Callable[[Diagnostic], int | None]

#: Called with every diagnostic; the ledger registers itself here while it is active.
sinks: list[Sink] = []

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def refuse(code: str, /, **fields: Any) -> Refusal:
    """A typed refusal to raise: `raise refuse("IMG-1203", gap_mm=4.0, …)`.

    Raises GATE-0101 for an unregistered code, GATE-0106 for evidence that does not fit the
    registered fields, GATE-0107 for a code that is recorded and not raised, or is retired.
    """
    registered = find_code(code)
    if not registered.severity.is_raised or registered.retired_in is not None:
        state = "retired" if registered.retired_in else str(registered.severity)
        raise refuse("GATE-0107", code=code, state=state, verb="raised")
    return Refusal(_record(_diagnose(registered, fields, sys._getframe(1))))


def notice(code: str, /, **fields: Any) -> Diagnostic:
    """Record a warning or notice, and give it back to travel with the result.

    Raises GATE-0101, GATE-0106 and GATE-0107 as `refuse` does.
    """
    registered = find_code(code)
    if registered.severity.is_raised or registered.retired_in is not None:
        state = "retired" if registered.retired_in else str(registered.severity)
        raise refuse("GATE-0107", code=code, state=state, verb="noticed")
    return _record(_diagnose(registered, fields, sys._getframe(1)))


def _diagnose(code: Code, fields: Mapping[str, Any], frame: Any) -> Diagnostic:
    evidence = _checked(code, fields)
    phi = frozenset(name for name, spec in code.fields.items() if spec.phi)
    shown = {name: WITHHELD if name in phi else value for name, value in evidence.items()}
    function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return Diagnostic(
        code=code.code,
        name=code.name,
        severity=code.severity,
        message=fill(code.message, shown),
        fields=evidence,
        plans=tuple(_bind(plan, evidence, shown) for plan in code.repair),
        site=f"{frame.f_globals.get('__name__', '?')}:{function}:{frame.f_lineno}",
        phi_fields=phi,
    )


def _record(diagnostic: Diagnostic) -> Diagnostic:
    if os.environ.get("NUMBAT_LEDGER") and not any(hasattr(sink, "ledger") for sink in sinks):
        _load_environment_sink()
    seqs = [sink(diagnostic) for sink in tuple(sinks)]
    seq = next((seq for seq in seqs if seq is not None), None)
    return diagnostic if seq is None else replace(diagnostic, seq=seq)


def _load_environment_sink() -> None:
    # A worker process inherits NUMBAT_LEDGER but not the parent's sinks; the ledger lies above this
    # layer, so it is found by entry point and not by import.
    from importlib.metadata import entry_points

    for point in entry_points(group="numbat.diagnostic_sinks"):
        sinks.append(point.load()())


def _checked(code: Code, fields: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(fields) - set(code.fields))
    missing = sorted(
        name for name, spec in code.fields.items() if not spec.optional and name not in fields
    )
    evidence = {name: json_safe(value) for name, value in fields.items() if value is not None}
    wrong = sorted(
        name
        for name, value in evidence.items()
        if name in code.fields and not _fits(value, code.fields[name])
    )
    if unknown or missing or wrong:
        raise refuse("GATE-0106", code=code.code, unknown=unknown, missing=missing, wrong=wrong)
    return evidence


def _fits(value: Any, spec: Field) -> bool:
    if spec.type == "number" and isinstance(value, str):
        return value in ("NaN", "Infinity", "-Infinity")
    if isinstance(value, bool) and spec.type != "boolean":
        return False
    if not isinstance(value, _PYTHON_TYPES[spec.type]):
        return False
    if isinstance(value, list) and spec.items:
        inner = Field(name="", type=spec.items, says="")
        return all(_fits(item, inner) for item in value)
    return True


def json_safe(value: Any) -> Any:
    """The value as JSON data: arrays as lists, scalars as numbers, non-finite numbers by name."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool | int | str) or value is None:
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(item) for item in value]
    return str(value)


def _bind(
    plan: Mapping[str, Any], evidence: Mapping[str, Any], shown: Mapping[str, Any]
) -> RepairPlan:
    args: dict[str, Any] = {}
    asks: dict[str, Mapping[str, Any]] = {}
    for name, spec in plan["args"].items():
        if "const" in spec:
            args[name] = spec["const"]
        elif "field" in spec and spec["field"] in evidence:
            args[name] = evidence[spec["field"]]
        elif "ask" in spec:
            asks[name] = {
                "type": spec["ask"],
                **{key: spec[key] for key in ("choices", "says") if key in spec},
            }
    return RepairPlan(
        action=Action(plan["action"]),
        args=args,
        safe=plan["safe"],
        says=fill(plan["says"], shown),
        effect=plan.get("effect", ""),
        loses=plan.get("loses", ""),
        asks=asks,
    )
