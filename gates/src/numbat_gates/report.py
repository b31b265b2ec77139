"""The report of a run as one JSON document: the source of everything that is shown of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any

from numbat_gates.digests import distribution_versions
from numbat_gates.evidence import dumps
from numbat_gates.results import (
    CheckResult,
    GateResult,
    PhaseResult,
    RequirementResult,
    Run,
    Status,
)

SCHEMA = "https://numbat.dev/schemas/gate-report/v0.1"
LEDGER_NAME = "ledger.jsonl"


def build(run: Run) -> dict[str, Any]:
    """The report of a run; JSON Schema: `schemas/report.schema.json`."""
    return {
        "schema": SCHEMA,
        "plane": run.plane.name,
        "version": run.version,
        "started_at": run.started_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        "duration_s": round(run.duration_s, 3),
        "phase": run.selected_phase,
        "selected_gates": list(run.selected_gates),
        "verdict": str(run.verdict),
        "exit_code": int(run.verdict.exit_code),
        "not_run": list(run.reasons),
        "phases": [_phase(item) for item in run.phases],
        "gates": [_gate(item) for item in run.gates],
        "requirements": [_requirement(item) for item in run.requirement_results],
        "undischarged": [
            {**asdict(item), "awaits": item.awaits or None} for item in run.undischarged
        ],
        "coverage": {
            "registry": run.plane.registry,
            "registered": run.registered,
            "covered": {
                code: [list(pair) for pair in pairs] for code, pairs in run.coverage.covered.items()
            },
            "uncovered": list(run.coverage.uncovered),
            "unregistered": list(run.coverage.unregistered),
        },
        "ledger": {"head": run.ledger_head, "length": run.ledger_length, "file": LEDGER_NAME},
        "digests": dict(run.digests),
        "environment": environment(),
    }


def environment() -> dict[str, Any]:
    """The machine and the distributions that a verdict was reached with."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.system(),
        "machine": platform.machine(),
        "distributions": distribution_versions(),
    }


def write(report: Mapping[str, Any], path: Path) -> Path:
    """Write a report as UTF-8 JSON with sorted keys; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(dumps(report) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    path = Path(__file__).parent / "schemas" / "report.schema.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _phase(item: PhaseResult) -> dict[str, Any]:
    return {
        "phase": item.phase.number,
        "title": item.phase.title,
        "verdict": str(item.verdict),
        "awaited": item.awaited,
        "gates": list(item.gates),
        "requirements": {str(status): list(item.requirements[status]) for status in Status},
    }


def _gate(item: GateResult) -> dict[str, Any]:
    return {
        "id": item.gate.id,
        "title": item.gate.title,
        "phase": item.gate.phase,
        "verdict": str(item.verdict),
        "duration_s": round(item.duration_s, 3),
        "discharges": list(item.gate.discharges),
        "passed": item.passed,
        "total": len(item.checks),
        "source": item.gate.source,
        "error": dict(item.error) if item.error else None,
        "not_run": list(item.not_run),
        "inputs": sorted(item.inputs),
        "checks": [_check(check) for check in item.checks],
    }


def _check(item: CheckResult) -> dict[str, Any]:
    return {**asdict(item), "verdict": str(item.verdict)}


def _requirement(item: RequirementResult) -> dict[str, Any]:
    requirement = item.requirement
    return {
        "id": requirement.id,
        "phase": requirement.phase,
        "text": requirement.text,
        "rationale": requirement.rationale,
        "source": requirement.source,
        "status": str(item.status),
        "awaits": str(requirement.awaits) if requirement.awaits else None,
        "because": requirement.because,
        "gates": list(item.gates),
    }
