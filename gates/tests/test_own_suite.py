"""The frameworks' own gates: whole as a table, and those that need no other process pass."""

from __future__ import annotations

from numbat_gates.planes import FRAMEWORKS
from numbat_gates.registration import load_gates
from numbat_gates.requirements import requirements_of
from numbat_gates.runner import run_plane
from numbat_gates.verdicts import Verdict
from numbat_registries import load_registry

#: The rest starts processes by the dozen, and CI runs the whole suite: hatch run gates:gates.
QUICK = ("GATE-G01", "GATE-G03", "GATE-G04", "GATE-G05", "GATE-G10", "GATE-G14")


def test_every_requirement_has_a_gate_and_every_code_a_requirement() -> None:
    requirements = requirements_of(FRAMEWORKS)
    gates = load_gates(FRAMEWORKS, requirements)
    assert [gate.fault or gate.missing for gate in gates if gate.function is None] == []
    assert len(gates) >= 10
    named = {name for gate in gates for name in gate.discharges}
    assert named == set(requirements.requirements)
    codes = load_registry("gates")
    assert {name for code in codes for name in code.requirement} <= named
    assert [gate.id for gate in gates if gate.last] == ["GATE-G18"]


def test_the_quick_gates_pass_and_cover_every_code() -> None:
    run = run_plane(FRAMEWORKS, gates=QUICK)
    failing = [
        (result.gate.id, check.name, check.measured)
        for result in run.gates
        for check in result.checks
        if check.verdict is not Verdict.PASS
    ]
    assert failing == []
    assert run.verdict is Verdict.PASS
    assert (run.coverage.uncovered, run.coverage.unregistered) == ((), ())
