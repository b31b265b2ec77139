"""Making a diagnostic: evidence checked against the registry, recorded, and bound to its plans."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from types import FrameType
from typing import Any

from numbat_registries.diagnostics import (
    Action,
    Diagnostic,
    Refusal,
    RepairPlan,
    is_of_type,
    withhold,
)
from numbat_registries.registry import Code, Field, find_code
from numbat_registries.templates import fill

Sink = Callable[[Diagnostic], int | None]

#: Called with every diagnostic; the ledger registers itself here while it is active.
sinks: list[Sink] = []

#: Set while a sink runs: a ledger that cannot be written must not try to record that it cannot.
_recording: ContextVar[bool] = ContextVar("numbat_registries_recording", default=False)


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


def _diagnose(code: Code, fields: Mapping[str, Any], frame: FrameType) -> Diagnostic:
    evidence = _checked(code, fields)
    phi = frozenset(name for name, spec in code.fields.items() if spec.phi)
    shown = withhold(evidence, phi)
    return Diagnostic(
        code=code.code,
        name=code.name,
        severity=code.severity,
        message=fill(code.message, shown),
        fields=evidence,
        plans=tuple(_bind(plan, code, evidence, shown) for plan in code.repair),
        site=f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}:{frame.f_lineno}",
        phi_fields=phi,
    )


def _record(diagnostic: Diagnostic) -> Diagnostic:
    if _recording.get():
        return diagnostic
    token = _recording.set(True)
    try:
        seqs = [sink(diagnostic) for sink in (*sinks, *_environment_sinks())]
    finally:
        _recording.reset(token)
    # The innermost ledger was activated last, and it is the one that `active_ledger` gives.
    seq = next((seq for seq in reversed(seqs) if seq is not None), None)
    return diagnostic if seq is None else replace(diagnostic, seq=seq)


def _environment_sinks() -> list[Sink]:
    # A worker process inherits NUMBAT_LEDGER but not the parent's sinks; the ledger lies above this
    # layer, so it is found by entry point and not by import.
    if not os.environ.get("NUMBAT_LEDGER") or any(hasattr(sink, "ledger") for sink in sinks):
        return []
    return [make() for make in _environment_sink_makers()]


@cache
def _environment_sink_makers() -> tuple[Callable[[], Sink], ...]:
    from importlib.metadata import entry_points

    return tuple(point.load() for point in entry_points(group="numbat.diagnostic_sinks"))


def _checked(code: Code, fields: Mapping[str, Any]) -> dict[str, Any]:
    evidence = {name: json_safe(value) for name, value in fields.items() if value is not None}
    unknown = sorted(set(fields) - set(code.fields))
    missing = sorted(
        name for name, spec in code.fields.items() if not spec.optional and name not in evidence
    )
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
    if isinstance(value, list) and spec.type == "array" and spec.items:
        inner = Field(name="", type=spec.items, says="")
        return all(_fits(item, inner) for item in value)
    return is_of_type(value, spec.type)


def json_safe(value: Any) -> Any:
    """The value as JSON data: arrays as lists, scalars as numbers, non-finite numbers by name.

    Sets come out sorted, so that equal evidence has one digest; what is no JSON (paths, dates,
    UIDs) comes out as its text, and text is always encodable.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _encodable(str.__str__(value))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) or hasattr(value, "as_integer_ratio"):
        return _json_number(float(value))
    if isinstance(value, Mapping):
        return {_encodable(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(json_safe, value), key=json.dumps)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [json_safe(item) for item in value]
    return _encodable(str(value))


def _json_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _encodable(text: str) -> str:
    # A file name that is not UTF-8 reaches Python as lone surrogates, which nothing can print.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _bind(
    plan: Mapping[str, Any], code: Code, evidence: Mapping[str, Any], shown: Mapping[str, Any]
) -> RepairPlan:
    args: dict[str, Any] = {}
    asks: dict[str, Mapping[str, Any]] = {}
    withheld = set()
    for name, spec in plan["args"].items():
        if "const" in spec:
            args[name] = deepcopy(spec["const"])
        elif "ask" in spec:
            asks[name] = {
                "type": spec["ask"],
                **{key: spec[key] for key in ("choices", "says") if key in spec},
            }
        elif spec["field"] in evidence:
            args[name] = deepcopy(evidence[spec["field"]])
            if code.fields[spec["field"]].phi:
                withheld.add(name)
        else:
            # The plan counts on evidence that this site could not give: somebody has to.
            field = code.fields[spec["field"]]
            asks[name] = {"type": field.type, "says": field.says}
    return RepairPlan(
        action=Action(plan["action"]),
        args=args,
        safe=plan["safe"],
        says=fill(plan["says"], shown),
        effect=fill(plan.get("effect", ""), shown),
        loses=fill(plan.get("loses", ""), shown),
        asks=asks,
        withheld=frozenset(withheld),
    )
