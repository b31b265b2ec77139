"""A page for every id: what a code means and how it is repaired, what a requirement or gate is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from numbat_gates.planes import Plane, discover_planes
from numbat_gates.registration import Gate, declared_gates
from numbat_gates.requirements import Requirement, Requirements, requirements_of
from numbat_registries import Refusal, find_code, refuse
from numbat_registries.rendering import explain as explain_code

_CODE = re.compile(r"[A-Z]{3,5}-[0-9]{4}")


@dataclass(frozen=True, slots=True)
class Page:
    """One page, as Markdown and as data."""

    kind: str
    markdown: str
    data: dict[str, Any]


def explain(asked: str) -> Page:
    """The page of a diagnostic code, a requirement, a clause or a gate.

    Raises GATE-0905 for an id that this installation does not have.
    """
    name = asked.strip().upper() if "." not in asked else asked.strip()
    if _CODE.fullmatch(name):
        return _code_page(name, asked)
    for plane in discover_planes():
        if not plane.has_requirements:
            continue
        requirements, gates = requirements_of(plane), declared_gates(plane)
        gate = next((gate for gate in gates if gate.id == name), None)
        if gate is not None:
            return _gate_page(gate, plane, requirements)
        requirement = name.partition(".")[0]
        if requirement in requirements.requirements:
            known = name == requirement or name in requirements.clauses
            if known:
                return _requirement_page(
                    requirements.requirements[requirement], plane, requirements, gates
                )
    raise refuse("GATE-0905", asked=asked)


def _code_page(name: str, asked: str) -> Page:
    try:
        code = find_code(name)
    except Refusal as unknown:
        raise refuse("GATE-0905", asked=asked) from unknown
    data = {
        "kind": "code",
        "code": code.code,
        "name": code.name,
        "severity": str(code.severity),
        "since": code.since,
        "retired_in": code.retired_in,
        "requirement": list(code.requirement),
        "message": code.message,
        "explains": code.explains,
        "fields": {
            field.name: {"type": field.type, "unit": field.unit, "says": field.says}
            for field in code.fields.values()
        },
        "example": code.example,
        "repair": [dict(plan) for plan in code.repair],
    }
    return Page("code", explain_code(code.code), data)


def _gate_page(gate: Gate, plane: Plane, requirements: Requirements) -> Page:
    lines = [f"# {gate.id} {gate.title}", "", f"A gate of phase {gate.phase} of {plane.name}."]
    lines += ["", f"Written at `{gate.source}`.", "", "## Discharges", ""]
    for name in gate.discharges:
        requirement = requirements.requirements.get(name)
        lines.append(f"- **{name}** {requirement.text if requirement else '(unknown)'}")
    lines += ["", f"Run it alone: `numbat-gates run {plane.name} --gate {gate.id}`"]
    data = {
        "kind": "gate",
        "plane": plane.name,
        "id": gate.id,
        "title": gate.title,
        "phase": gate.phase,
        "discharges": list(gate.discharges),
        "source": gate.source,
    }
    return Page("gate", "\n".join(lines) + "\n", data)


def _requirement_page(
    item: Requirement, plane: Plane, requirements: Requirements, gates: tuple[Gate, ...]
) -> Page:
    phase = requirements.phases[item.phase]
    clauses = requirements.clauses_of(item.id)
    naming = [gate for gate in gates if item.id in gate.discharges]
    lines = [f"# {item.id}", "", item.text, ""]
    lines += [f"Why: {item.rationale}", ""]
    lines += [f"Source: {item.source}", ""] if item.source else []
    lines += [f"Phase {phase.number} of {plane.name}: {phase.title}.", ""]
    lines += [f"**Awaits {item.awaits}**: {item.because}", ""] if item.awaits else []
    lines += ["## Gates that discharge it", ""]
    lines += [f"- **{gate.id}** {gate.title}" for gate in naming] or ["None."]
    if clauses:
        lines += ["", "## Clauses that stay undischarged", ""]
        lines += [f"- **{c.id}** {c.text} Awaits {c.awaits}: {c.because}" for c in clauses]
    data = {
        "kind": "requirement",
        "plane": plane.name,
        "id": item.id,
        "phase": item.phase,
        "text": item.text,
        "rationale": item.rationale,
        "source": item.source,
        "awaits": str(item.awaits) if item.awaits else None,
        "because": item.because,
        "gates": [gate.id for gate in naming],
        "clauses": [
            {"id": c.id, "text": c.text, "awaits": str(c.awaits), "because": c.because}
            for c in clauses
        ],
    }
    return Page("requirement", "\n".join(lines) + "\n", data)
