"""What a run found: checks, gates, requirements, phases, and the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from numbat_gates.planes import Plane
from numbat_gates.registration import Gate
from numbat_gates.requirements import Phase, Requirement, Requirements
from numbat_gates.verdicts import Verdict, combine
from numbat_ledger import Coverage


class Status(StrEnum):
    """Where a requirement stands after a run."""

    DISCHARGED = "discharged"
    DECLARED = "declared"
    OPEN = "open"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: what was measured, against what, in JSON data; `tolerance` is in `unit`."""

    name: str
    kind: str
    verdict: Verdict
    measured: Any = None
    required: Any = None
    tolerance: float | None = None
    unit: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate after its run.

    `error` is the type and text of an exception that was no refusal; `not_run` are the reasons why
    it, or a part of it, was not measured; `clauses` maps each clause that it spoke about to whether
    it discharged it; `inputs` maps the name of each input to its digest.
    """

    gate: Gate
    checks: tuple[CheckResult, ...]
    duration_s: float
    error: Mapping[str, str] | None = None
    not_run: tuple[str, ...] = ()
    clauses: Mapping[str, bool] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> int:
        """How many checks passed."""
        return sum(check.verdict is Verdict.PASS for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks; an error or a part not run is never a pass, nor is no check."""
        verdicts = [check.verdict for check in self.checks]
        if self.error is not None:
            verdicts.append(Verdict.ERROR)
        if self.not_run:
            verdicts.append(Verdict.NOT_RUN)
        return combine(verdicts)


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """A requirement, the gates that name it, and where it stands."""

    requirement: Requirement
    gates: tuple[str, ...]
    status: Status


@dataclass(frozen=True, slots=True)
class Undischarged:
    """A clause, or a whole requirement, that this run did not discharge, with the typed reason.

    `awaits` is empty for a requirement that is open: nothing says why it has no verdict.
    """

    clause: str
    requirement: str
    text: str
    awaits: str
    because: str


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase with its gates, its requirements by status, and its verdict.

    A phase without gates whose requirements are all declared is `awaited`: NOT_RUN, and no fault
    of the plane.
    """

    phase: Phase
    gates: tuple[str, ...]
    requirements: Mapping[Status, tuple[str, ...]]
    verdict: Verdict
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plane's gates, whole: everything that a report says comes from here.

    `selected_gates` is empty when gates were not picked by id; `reasons` say why nothing was run.
    """

    plane: Plane
    version: str
    started_at: datetime
    duration_s: float
    selected_phase: int | None
    selected_gates: tuple[str, ...]
    requirements: Requirements
    gates: tuple[GateResult, ...]
    requirement_results: tuple[RequirementResult, ...]
    phases: tuple[PhaseResult, ...]
    undischarged: tuple[Undischarged, ...]
    coverage: Coverage
    registered: int
    ledger_file: Path
    ledger_head: str
    ledger_length: int
    digests: Mapping[str, Any]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
