"""From gate results to verdicts: where each requirement stands, each phase, and the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numbat_gates.registration import Gate
from numbat_gates.requirements import Clause, Requirement, Requirements
from numbat_gates.results import GateResult, PhaseResult, RequirementResult, Status, Undischarged
from numbat_gates.verdicts import Verdict, combine


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The judged run."""

    requirements: tuple[RequirementResult, ...]
    phases: tuple[PhaseResult, ...]
    undischarged: tuple[Undischarged, ...]
    verdict: Verdict


def phases_of(gate: Gate, requirements: Requirements) -> set[int]:
    """The phases that a gate counts in: its own, and those of the requirements it discharges."""
    named = (requirements.requirements.get(name) for name in gate.discharges)
    return {gate.phase, *(item.phase for item in named if item is not None)}


def judge(
    *,
    requirements: Requirements,
    gates: Sequence[Gate],
    results: Sequence[GateResult],
    phase: int | None,
    picked: Sequence[str],
) -> Acceptance:
    """Judge a run of some or all `gates` of a plane.

    The verdict of a run of picked gates is theirs alone; otherwise it is the worst of its phases,
    leaving out a phase that wholly awaits something, unless there is nothing else.
    """
    by_id = {result.gate.id: result for result in results}
    asked = [
        item for item in requirements.requirements.values() if phase is None or item.phase == phase
    ]
    judged = tuple(_requirement(item, gates, by_id) for item in asked)
    phases = tuple(
        _phase(number, requirements, gates, by_id, judged)
        for number in requirements.phases
        if phase is None or number == phase
    )
    return Acceptance(
        requirements=judged,
        phases=phases,
        undischarged=_undischarged(requirements, judged, results),
        verdict=_verdict(phases, results, picked),
    )


def _requirement(
    item: Requirement, gates: Sequence[Gate], by_id: Mapping[str, GateResult]
) -> RequirementResult:
    naming = tuple(gate.id for gate in gates if item.id in gate.discharges)
    verdicts = [by_id[name].verdict if name in by_id else Verdict.NOT_RUN for name in naming]
    worst = combine(verdicts)
    if worst in (Verdict.FAIL, Verdict.ERROR):
        status = Status.FAILED
    elif worst is Verdict.PASS:
        status = Status.DISCHARGED
    elif item.awaits is not None:
        status = Status.DECLARED
    else:
        status = Status.OPEN
    return RequirementResult(requirement=item, gates=naming, status=status)


def _phase(
    number: int,
    requirements: Requirements,
    gates: Sequence[Gate],
    by_id: Mapping[str, GateResult],
    judged: Sequence[RequirementResult],
) -> PhaseResult:
    mine = tuple(gate.id for gate in gates if number in phases_of(gate, requirements))
    verdicts = [by_id[name].verdict if name in by_id else Verdict.NOT_RUN for name in mine]
    standing = {
        status: tuple(
            item.requirement.id
            for item in judged
            if item.requirement.phase == number and item.status is status
        )
        for status in Status
    }
    if standing[Status.OPEN]:
        # Nothing measured it and nothing says why: the phase is not passed.
        verdicts.append(Verdict.NOT_RUN)
    others = any(standing[status] for status in Status if status is not Status.DECLARED)
    return PhaseResult(
        phase=requirements.phases[number],
        gates=mine,
        requirements=standing,
        verdict=combine(verdicts),
        awaited=not mine and not others and bool(standing[Status.DECLARED]),
    )


def _verdict(
    phases: Sequence[PhaseResult], results: Sequence[GateResult], picked: Sequence[str]
) -> Verdict:
    if picked:
        return combine(result.verdict for result in results)
    counting = [phase.verdict for phase in phases if not phase.awaited]
    return combine(counting)


def _undischarged(
    requirements: Requirements,
    judged: Sequence[RequirementResult],
    results: Sequence[GateResult],
) -> tuple[Undischarged, ...]:
    found = []
    for item in judged:
        if item.status in (Status.DECLARED, Status.OPEN, Status.FAILED):
            found.append(_whole(item, results))
        found += [
            _part(clause)
            for clause in requirements.clauses_of(item.requirement.id)
            if not _is_discharged(clause, results)
        ]
    return tuple(found)


def _is_discharged(clause: Clause, results: Sequence[GateResult]) -> bool:
    spoke = [result for result in results if clause.id in result.clauses]
    return bool(spoke) and all(
        result.clauses[clause.id] and result.verdict is Verdict.PASS for result in spoke
    )


def _whole(item: RequirementResult, results: Sequence[GateResult]) -> Undischarged:
    requirement = item.requirement
    by_verdict = {
        verdict: [
            result.gate.id
            for result in results
            if result.gate.id in item.gates and result.verdict is verdict
        ]
        for verdict in Verdict
    }
    failed = by_verdict[Verdict.FAIL] + by_verdict[Verdict.ERROR]
    ended = failed + by_verdict[Verdict.PASS]
    silent = [name for name in item.gates if name not in ended]
    if item.status is Status.DECLARED:
        awaits, because = str(requirement.awaits), requirement.because
    elif item.status is Status.FAILED:
        awaits, because = "", f"failed in {', '.join(failed)}"
    elif item.gates:
        awaits, because = "", f"not measured by {', '.join(silent)} in this run"
    else:
        awaits, because = "", "no gate names it, and it declares no reason"
    return Undischarged(
        clause=requirement.id,
        requirement=requirement.id,
        text=requirement.text,
        awaits=awaits,
        because=because,
    )


def _part(clause: Clause) -> Undischarged:
    return Undischarged(
        clause=clause.id,
        requirement=clause.requirement,
        text=clause.text,
        awaits=str(clause.awaits),
        because=clause.because,
    )
