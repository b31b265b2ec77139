"""Runs: what becomes of gates that fail, break, skip or measure nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from numbat_gates.report import build, schema, write
from numbat_gates.requirements import Awaits
from numbat_gates.results import Status
from numbat_gates.runner import Listener, run_plane
from numbat_gates.verdicts import Verdict
from numbat_ledger import read_entries, verify_ledger
from numbat_registries import Refusal

TRUE = "check.true('measured', True)"
FALSE = "check.true('measured', False)"
SECOND = """
[[requirement]]
id = "DEM-R002"
phase = 1
text = "Every slice."
rationale = "Why."
"""
AWAITED = """
[phase.2]
title = "Many frames"

[[requirement]]
id = "DEM-R010"
phase = 2
text = "Multi-frame objects are read."
rationale = "Why."
awaits = "later-phase"
because = "From phase 2 on."
"""


def valid(run: Any) -> dict[str, Any]:
    report = build(run)
    jsonschema.Draft202012Validator(schema()).validate(report)
    return report


def statuses(run: Any) -> dict[str, str]:
    return {item.requirement.id: str(item.status) for item in run.requirement_results}


@pytest.mark.parametrize(
    ("body", "verdict", "status"),
    [
        (TRUE, Verdict.PASS, Status.DISCHARGED),
        (FALSE, Verdict.FAIL, Status.FAILED),
        (f"{TRUE}\n{FALSE}", Verdict.FAIL, Status.FAILED),
        ("pass", Verdict.NOT_RUN, Status.OPEN),
        (f"{TRUE}\ncheck.skip('peer', 'not installed')", Verdict.NOT_RUN, Status.OPEN),
        (f"{FALSE}\ncheck.skip('peer', 'not installed')", Verdict.FAIL, Status.FAILED),
        (f"{TRUE}\nraise KeyError('spacing')", Verdict.ERROR, Status.FAILED),
        (f"{FALSE}\nraise KeyError('spacing')", Verdict.ERROR, Status.FAILED),
        (
            f"{TRUE}\nfrom numbat_gates import NotRun\nraise NotRun('no GPU')",
            Verdict.NOT_RUN,
            "open",
        ),
        (
            f"{TRUE}\nfrom numbat_registries import load_registry\nload_registry('radiology')",
            Verdict.FAIL,
            Status.FAILED,
        ),
        ("check.true('measured', [False])", Verdict.ERROR, Status.FAILED),
    ],
)
def test_the_verdict_of_a_gate(plane: Any, body: str, verdict: Verdict, status: str) -> None:
    run = run_plane(plane.requirements().gate(body).plane)
    assert run.gates[0].verdict is verdict
    assert run.verdict is verdict
    assert statuses(run) == {"DEM-R001": status}
    valid(run)


def test_a_package_that_is_missing_is_not_run(plane: Any) -> None:
    run = run_plane(plane.requirements().gate(TRUE, before="import numbat_no_such_tool").plane)
    assert run.verdict is Verdict.NOT_RUN
    assert "numbat_no_such_tool" in run.gates[0].not_run[0]


def test_a_module_that_breaks_is_an_error_of_its_own_gate(plane: Any) -> None:
    plane.requirements(SECOND).gate(TRUE, before="1 / 0")
    run = run_plane(plane.gate(TRUE, id="DEM-G02", discharges=("DEM-R002",)).plane)
    assert [str(result.verdict) for result in run.gates] == ["ERROR", "PASS"]
    assert statuses(run) == {"DEM-R001": "failed", "DEM-R002": "discharged"}


def test_a_requirement_that_no_gate_names_is_open_and_stops_the_phase(plane: Any) -> None:
    run = run_plane(plane.requirements(SECOND).gate(TRUE).plane)
    assert statuses(run)["DEM-R002"] == "open"
    assert (run.phases[0].verdict, run.verdict) == (Verdict.NOT_RUN, Verdict.NOT_RUN)
    assert [(item.clause, item.awaits) for item in run.undischarged] == [("DEM-R002", "")]


def test_a_declared_requirement_does_not_stop_the_phase(plane: Any) -> None:
    declared = SECOND + 'awaits = "elapsed-time"\nbecause = "Thirty days."\n'
    run = run_plane(plane.requirements(declared).gate(TRUE).plane)
    assert run.verdict is Verdict.PASS
    assert [(item.clause, item.awaits) for item in run.undischarged] == [
        ("DEM-R002", str(Awaits.ELAPSED_TIME))
    ]


def test_a_requirement_needs_all_of_its_gates(plane: Any) -> None:
    run = run_plane(plane.requirements().gate(TRUE).gate(FALSE, id="DEM-G02").plane)
    assert statuses(run) == {"DEM-R001": "failed"}


def test_a_phase_that_wholly_awaits_is_not_run_and_not_counted(plane: Any) -> None:
    plane.requirements(AWAITED).gate(TRUE)
    run = run_plane(plane.plane)
    assert [(str(p.verdict), p.awaited) for p in run.phases] == [("PASS", False), ("NOT_RUN", True)]
    assert run.verdict is Verdict.PASS
    assert run_plane(plane.plane, phase=2).verdict is Verdict.NOT_RUN


def test_one_phase_runs_alone(plane: Any) -> None:
    later = AWAITED.replace('awaits = "later-phase"\nbecause = "From phase 2 on."\n', "")
    plane.requirements(later).gate(TRUE)
    plane.gate(FALSE, id="DEM-G02", phase=2, discharges=("DEM-R010",))
    one, two = (run_plane(plane.plane, phase=number) for number in (1, 2))
    assert [result.gate.id for result in one.gates] == ["DEM-G01"]
    assert [result.gate.id for result in two.gates] == ["DEM-G02"]
    assert (one.verdict, two.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert statuses(one) == {"DEM-R001": "discharged"}


def test_a_gate_counts_in_every_phase_whose_requirements_it_discharges(plane: Any) -> None:
    later = AWAITED.replace('awaits = "later-phase"\nbecause = "From phase 2 on."\n', "")
    plane.requirements(later).gate(FALSE, phase=2, discharges=("DEM-R001", "DEM-R010"))
    run = run_plane(plane.plane, phase=1)
    assert run.verdict is Verdict.FAIL


def test_a_picked_gate_is_judged_alone_and_its_phase_is_not(plane: Any) -> None:
    plane.requirements(SECOND).gate(TRUE).gate(TRUE, id="DEM-G02", discharges=("DEM-R002",))
    run = run_plane(plane.plane, gates=["DEM-G02"])
    assert [result.gate.id for result in run.gates] == ["DEM-G02"]
    assert (run.verdict, run.phases[0].verdict) == (Verdict.PASS, Verdict.NOT_RUN)
    assert valid(run)["selected_gates"] == ["DEM-G02"]


@pytest.mark.parametrize(("asked", "code"), [({"phase": 7}, "0904"), ({"gates": ["X"]}, "0903")])
def test_what_the_plane_does_not_have_is_refused(plane: Any, asked: Any, code: str) -> None:
    plane.requirements().gate(TRUE)
    with pytest.raises(Refusal) as caught:
        run_plane(plane.plane, **asked)
    assert caught.value.code == f"GATE-{code}"


def test_a_plane_without_requirements_is_not_run_and_says_so(plane: Any) -> None:
    run = run_plane(plane.plane)
    assert run.verdict is Verdict.NOT_RUN
    assert "no requirements yet" in run.reasons[0]
    assert valid(run)["digests"]["requirements"] is None


# ---------------------------------------------------------------------- clauses and corpora

CLAUSE = """
[[clause]]
id = "DEM-R001.c1"
requirement = "DEM-R001"
text = "On a machine with a GPU."
awaits = "hardware"
because = "There is none here."
"""


@pytest.mark.parametrize(
    ("body", "open_clauses"),
    [
        (TRUE, ["DEM-R001.c1"]),
        (f"{TRUE}\ncheck.discharge('DEM-R001.c1')", []),
        (f"{FALSE}\ncheck.discharge('DEM-R001.c1')", ["DEM-R001", "DEM-R001.c1"]),
    ],
)
def test_a_clause_counts_only_when_its_gate_passes(
    plane: Any, body: str, open_clauses: list[str]
) -> None:
    run = run_plane(plane.requirements(CLAUSE).gate(body).plane)
    assert [item.clause for item in run.undischarged] == open_clauses


def test_one_gate_that_cannot_settle_a_clause_leaves_it_open(plane: Any) -> None:
    plane.requirements(CLAUSE).gate(f"{TRUE}\ncheck.discharge('DEM-R001.c1')")
    plane.gate(f"{FALSE}\ncheck.discharge('DEM-R001.c1')", id="DEM-G02")
    run = run_plane(plane.plane)
    assert "DEM-R001.c1" in [item.clause for item in run.undischarged]


# ---------------------------------------------------------------------- ledger and digests

RAISES = """
from numbat_registries import load_registry
with check.refuses("GATE-0102", "unknown registry"):
    load_registry("radiology")
"""


def test_the_ledger_is_sealed_and_bound(plane: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept" / "ledger.jsonl"
    run = run_plane(plane.requirements().gate(RAISES).plane, ledger_file=path)
    state = verify_ledger(path, head=run.ledger_head)
    assert (state.length, state.sealed) == (run.ledger_length, True)
    assert [entry.kind for entry in read_entries(path)] == ["open", "raise", "assert", "seal"]
    assert dict(run.coverage.covered) == {"GATE-0102": (("DEM-G01", "unknown registry"),)}


def test_a_ledger_of_an_earlier_run_is_refused(plane: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    plane.requirements().gate(RAISES)
    run_plane(plane.plane, ledger_file=path)
    with pytest.raises(Refusal) as caught:
        run_plane(plane.plane, ledger_file=path)
    assert caught.value.code == "GATE-0404"


def test_a_run_within_a_gate_keeps_its_own_ledger(plane: Any) -> None:
    plane.requirements().gate(RAISES)
    outer = f"""
    from numbat_gates.planes import Plane
    from numbat_gates.runner import run_plane
    inner = run_plane(
        Plane(name="demo", package="{plane.package}", registry="gates"), gates=["DEM-G01"]
    )
    check.equal("the inner run covers its code", sorted(inner.coverage.covered), ["GATE-0102"])
    """
    plane.gate("\n".join(line[4:] for line in outer.splitlines()), id="DEM-G02")
    run = run_plane(plane.plane, gates=["DEM-G02"])
    assert run.verdict is Verdict.PASS
    assert not run.coverage.covered


def test_last_gates_run_after_all_others_and_see_their_coverage(plane: Any) -> None:
    plane.requirements(SECOND)
    plane.gate(
        "check.equal('seen', sorted(check.coverage().covered), ['GATE-0102'])",
        discharges=("DEM-R002",),
        last=True,
    )
    run = run_plane(plane.gate(RAISES, id="DEM-G02").plane)
    assert run.verdict is Verdict.PASS
    alone = run_plane(plane.plane, gates=["DEM-G01"])
    assert alone.verdict is Verdict.NOT_RUN


def test_digests_name_code_gates_helpers_and_inputs(plane: Any) -> None:
    plane.requirements().gate("check.data(b'pixels', name='pixels')\n" + TRUE)
    plane.write("geometry.py", "ORIGIN = 0\n")
    first = run_plane(plane.plane).digests
    assert f"{plane.package}/geometry.py" in first["code"]
    assert not any("/gates/" in name for name in first["code"])
    assert "numbat_gates/runner.py" in first["frameworks"]
    assert "bytes:pixels" in first["inputs"]

    plane.write("geometry.py", "ORIGIN = 1\n")
    plane.write("gates/_phantoms.py", "SIZE = 3\n")
    second = run_plane(plane.plane).digests
    changed = {name for name in second if second[name] != first[name]}
    assert changed == {"code", "gates"}


def test_a_run_is_told_while_it_goes_on(plane: Any) -> None:
    told: list[str] = []

    class Recorder(Listener):
        def started(self, plane: Any, gates: Any, requirements: Any) -> None:
            told.append(f"{plane.name} {len(gates)}")

        def gate_started(self, gate: Any) -> None:
            told.append(f"> {gate.id}")

        def check_made(self, gate: Any, result: Any) -> None:
            told.append(f"{gate.id} {result.name}")

        def gate_finished(self, result: Any) -> None:
            told.append(f"< {result.gate.id} {result.verdict}")

    run_plane(plane.requirements().gate(TRUE).plane, listener=Recorder())
    assert told == ["demo 1", "> DEM-G01", "DEM-G01 measured", "< DEM-G01 PASS"]


def test_what_a_gate_prints_is_no_answer(plane: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run_plane(plane.requirements().gate(f"print('talk')\n{TRUE}").plane)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "talk\n")


def test_an_exception_tells_its_place(plane: Any) -> None:
    run = run_plane(plane.requirements().gate("{}['spacing']").plane)
    error = run.gates[0].error
    assert error is not None
    assert error["type"] == "KeyError"
    assert f"{plane.package}.gates.dem_g01:measure:" in error["text"]


def test_a_report_appears_whole(plane: Any, tmp_path: Path) -> None:
    report = valid(
        run_plane(
            plane.requirements()
            .gate("check.close('x', measured=float('nan'), required=1.0, atol=1.0)")
            .plane
        )
    )
    path = write(report, tmp_path / "reports" / "report.json")
    text = path.read_text(encoding="utf-8")
    assert "NaN" not in text
    assert [item.name for item in path.parent.iterdir()] == ["report.json"]
