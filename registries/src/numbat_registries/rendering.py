"""A diagnostic for people (text), programs (RFC 9457 problem details) and scanners (SARIF)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numbat_registries.diagnostics import Diagnostic, RepairPlan, Severity
from numbat_registries.registry import Code, find_code
from numbat_registries.templates import readable

TYPE_URI = "https://numbat.dev/codes/"

#: HTTP status of each severity: a refusal is a well-formed request that the domain rules decline.
_STATUS = {
    Severity.REFUSAL: 422,
    Severity.FAILURE: 500,
    Severity.WARNING: 200,
    Severity.NOTICE: 200,
}
_SARIF_LEVEL = {
    Severity.REFUSAL: "error",
    Severity.FAILURE: "error",
    Severity.WARNING: "warning",
    Severity.NOTICE: "note",
}


def to_text(diagnostic: Diagnostic) -> str:
    """The diagnostic as a few plain lines: what, the evidence, and each way out."""
    code = find_code(diagnostic.code)
    lines = [f"{diagnostic.code} {diagnostic.name} ({diagnostic.severity}): {diagnostic.message}"]
    for name, value in diagnostic.public_fields().items():
        unit = code.fields[name].unit if name in code.fields else ""
        lines.append(f"    {name} = {readable(value)}{' ' + unit if unit else ''}")
    for number, plan in enumerate(diagnostic.plans, start=1):
        lines.append(f"  {number}. {plan_text(plan)}")
    lines.append(f"  more: numbat-gates explain {diagnostic.code}")
    return "\n".join(lines)


def plan_text(plan: RepairPlan) -> str:
    """One repair plan as a line or two."""
    safety = "" if plan.safe else " (needs a person's decision)"
    parts = [f"{plan.action}: {plan.says}{safety}"]
    if plan.effect:
        parts.append(f"     effect: {plan.effect}")
    if plan.loses:
        parts.append(f"     loses: {plan.loses}")
    return "\n".join(parts)


def to_rich(diagnostic: Diagnostic) -> Any:
    """The diagnostic as a rich renderable for a terminal."""
    from rich.text import Text

    style = "bold red" if diagnostic.severity.is_raised else "bold yellow"
    first, *rest = to_text(diagnostic).split("\n")
    text = Text()
    text.append(f"{diagnostic.code} {diagnostic.name}", style=style)
    text.append(first.removeprefix(f"{diagnostic.code} {diagnostic.name}"))
    for line in rest:
        text.append("\n" + line, style="dim" if line.startswith("    ") else "")
    return text


def to_problem(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as RFC 9457 problem details.

    Source: RFC 9457 §3; `code`, `fields`, `repair`, `severity` and `site` are extension members.
    """
    code = find_code(diagnostic.code)
    return {
        "type": TYPE_URI + diagnostic.code,
        "title": code.name.replace("-", " "),
        "status": _STATUS[diagnostic.severity],
        "detail": diagnostic.message,
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "fields": diagnostic.public_fields(),
        "repair": [plan.to_dict() for plan in diagnostic.plans],
        "site": diagnostic.site,
    }


def to_sarif(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as one SARIF result.

    Every kind is "fail": SARIF allows a level, which scanners sort by, with no other (§3.27.9).
    Source: SARIF 2.1.0 §3.27.
    """
    module, _, place = diagnostic.site.partition(":")
    return {
        "ruleId": diagnostic.code,
        "level": _SARIF_LEVEL[diagnostic.severity],
        "kind": "fail",
        "message": {"text": diagnostic.message},
        "locations": [
            {"logicalLocations": [{"fullyQualifiedName": f"{module}.{place.split(':')[0]}"}]}
        ],
        "properties": {
            "site": diagnostic.site,
            "fields": diagnostic.public_fields(),
            "repair": [plan.to_dict() for plan in diagnostic.plans],
        },
    }


def to_sarif_log(diagnostics: Iterable[Diagnostic], *, tool: str, version: str) -> dict[str, Any]:
    """A whole SARIF 2.1.0 log of diagnostics, with a rule for each code that occurs."""
    found = list(diagnostics)
    codes = [find_code(code) for code in sorted({d.code for d in found})]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": tool,
                        "version": version,
                        "rules": [sarif_rule(c) for c in codes],
                    }
                },
                "results": [to_sarif(diagnostic) for diagnostic in found],
            }
        ],
    }


def sarif_rule(code: Code) -> dict[str, Any]:
    """A registered code as a SARIF reporting descriptor (SARIF 2.1.0 §3.49)."""
    return {
        "id": code.code,
        "name": code.name,
        "shortDescription": {"text": code.message},
        "fullDescription": {"text": code.explains},
        "helpUri": TYPE_URI + code.code,
        "defaultConfiguration": {"level": _SARIF_LEVEL[code.severity]},
    }


def explain(code_name: str) -> str:
    """The page of a code as Markdown: meaning, evidence, an input that raises it, and repairs.

    Raises GATE-0101 for an unregistered code.
    """
    code = find_code(code_name)
    lines = [f"# {code.code} {code.name}", ""]
    if code.retired_in:
        lines += [f"**Retired in {code.retired_in}.** The number is never used again.", ""]
    requirement = ", ".join(code.requirement) or "none"
    lines += [
        code.explains,
        "",
        f"Severity: {code.severity}. Since {code.since}. Requirement: {requirement}.",
        "",
    ]
    lines += [f"> {code.message}", "", "## Evidence", "", *_evidence_lines(code), ""]
    heading = "## What raised it" if code.retired_in else "## A minimal input that raises it"
    lines += [heading, "", "```python", code.example, "```", ""]
    lines += ["## Repair", "", *_repair_lines(code)]
    return "\n".join(lines) + "\n"


def _evidence_lines(code: Code) -> Iterator[str]:
    if not code.fields:
        yield "None."
    for spec in code.fields.values():
        kind = f"{spec.type} of {spec.items}" if spec.items else spec.type
        unit = f", {spec.unit}" if spec.unit else ""
        absent = " (may be absent)" if spec.optional else ""
        withheld = " (withheld: may identify a patient)" if spec.phi else ""
        yield f"- `{spec.name}` ({kind}{unit}): {spec.says}{absent}{withheld}"


def _repair_lines(code: Code) -> Iterator[str]:
    if not code.repair:
        yield "Nothing needs repair; it is for information."
    for plan in code.repair:
        yield (
            f"- **{plan['action']}**{'' if plan['safe'] else ' (needs a decision)'}: {plan['says']}"
        )
        if plan["args"]:
            yield "  " + "; ".join(
                f"`{name}`: {_argument_text(spec)}" for name, spec in plan["args"].items()
            )
        for extra in ("effect", "loses"):
            if plan.get(extra):
                yield f"  {extra.capitalize()}: {plan[extra]}"


def _argument_text(spec: Any) -> str:
    if "const" in spec:
        return f"`{spec['const']}`"
    if "field" in spec:
        return f"the evidence `{spec['field']}`"
    choices = f", one of {', '.join(map(str, spec['choices']))}" if "choices" in spec else ""
    return f"to be answered ({spec['ask']}{choices})"
