"""Verdicts: a plane with every way in which a gate can end, run by the real command line."""

from __future__ import annotations

from typing import Any

from numbat_gates import Check, gate
from numbat_gates.gates._toy import Toy, toy_plane
from numbat_gates.verdicts import ExitCode, Verdict, combine

_PASSES = "check.true('it counts', True)"
#: Body of a gate → verdict that is due, and what its reason or error has to name.
_ENDS = {
    1: (_PASSES, "PASS", ""),
    2: ("check.equal('one and one', 1 + 1, 3)", "FAIL", ""),
    3: ("pass", "NOT_RUN", "it made no check"),
    4: (f"{_PASSES}\ncheck.skip('a peer', 'not installed')", "NOT_RUN", "a peer: not installed"),
    5: (f"{_PASSES}\nraise NotRun('no machine of that kind')", "NOT_RUN", "no machine"),
    6: (f"{_PASSES}\nraise KeyError('spacing')", "ERROR", "KeyError"),
    7: ("check.true('a list', [False])", "ERROR", "GATE-0401"),
    8: ("check.equal('off', 1, 2)\nraise NotRun('half way')", "FAIL", "half way"),
    9: ("from numbat_registries import load_registry\nload_registry('radiology')", "FAIL", ""),
    10: ("print('talk')\ncheck.true('it counts', True)", "PASS", ""),
    11: ("raise AssertionError", "ERROR", "AssertionError"),
}
_MISSING = 12
_FAULTY = 13
_OPEN_PHASE = """
[phase.2]
title = "The toy multiplies"

[[requirement]]
id = "TOY-R002"
phase = 2
text = "It multiplies."
rationale = "Later work rests on it."
"""


@gate(
    "GATE-G11",
    phase=2,
    discharges=["GATE-R008", "GATE-R013"],
    title="No verdict is better than what was measured, and no gate takes another with it",
)
def verdicts(check: Check) -> None:
    _combined(check)
    with toy_plane() as toy:
        _every_end(check, toy)
    with toy_plane() as toy:
        _phases(check, toy)
        _ledgers(check, toy)


def _combined(check: Check) -> None:
    order = (Verdict.PASS, Verdict.NOT_RUN, Verdict.FAIL, Verdict.ERROR)
    check.equal("none at all", str(combine([])), "NOT_RUN")
    for place, worse in enumerate(order):
        for better in order[: place + 1]:
            check.equal(f"{better} and {worse}", str(combine([better, worse])), str(worse))
            check.equal(f"{worse} and {better}", str(combine([worse, better])), str(worse))
    codes = [int(verdict.exit_code) for verdict in order]
    check.equal("exit statuses", codes, [0, 3, 1, 5])
    check.equal("one for each meaning", sorted(map(int, ExitCode)), list(range(6)))


def _every_end(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001")
    for number, (body, _, _) in _ENDS.items():
        toy.gate(number, body)
    toy.gate(_MISSING, _PASSES, before="import a_package_that_nobody_has")
    toy.gate(_FAULTY, _PASSES, before="1 / 0")
    answer = toy.ask("run", "toy", "--json")
    gates = {int(item["id"][-2:]): item for item in answer.document["gates"]}
    for number, (body, verdict, names) in _ENDS.items():
        _end(check, gates[number], f"`{body}`", verdict, names)
    _end(
        check, gates[_MISSING], "a package that is missing", "NOT_RUN", "a_package_that_nobody_has"
    )
    _end(check, gates[_FAULTY], "a module that breaks", "ERROR", "ZeroDivisionError")
    check.equal("all of them ran", len(gates), len(_ENDS) + 2)
    check.equal("the run is as bad as its worst", answer.document["verdict"], "ERROR")
    check.equal("and says so", answer.code, 5)
    unasked = gates[9]["checks"][0]
    check.equal("a refusal that nobody asked for is named", unasked["measured"], "GATE-0102")
    check.true("what a gate prints is no answer", "talk" not in answer.stdout)


def _end(check: Check, found: dict[str, Any], name: str, verdict: str, names: str) -> None:
    check.equal(f"{name}: verdict", found["verdict"], verdict)
    told = " ".join([*found["not_run"], *map(str, (found["error"] or {}).values())])
    if names:
        check.true(f"{name}: reason", names in told, measured=told, required=names)


def _phases(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001", more=_OPEN_PHASE).gate(1, _PASSES)
    toy.gate(2, "check.equal('twice two', 2 * 2, 5)", discharges="TOY-R002", phase=2)
    answer = toy.ask("run", "toy", "--json")
    phases = {item["phase"]: item["verdict"] for item in answer.document["phases"]}
    check.equal("a verdict for each phase", phases, {1: "PASS", 2: "FAIL"})
    check.equal("the whole is the worst", answer.code, 1)
    for phase, code in ((1, 0), (2, 1)):
        alone = toy.ask("run", "toy", "--phase", str(phase), "--json")
        check.equal(f"phase {phase} alone: exit status", alone.code, code)
        ran = [item["id"] for item in alone.document["gates"]]
        check.equal(f"phase {phase} alone: gates", ran, [f"TOY-G0{phase}"])
    picked = toy.ask("run", "toy", "--gate", "TOY-G01", "--json")
    check.equal("one gate alone: exit status", picked.code, 0)


def _ledgers(check: Check, toy: Toy) -> None:
    file = str(toy.root / "kept.jsonl")
    first = toy.ask("run", "toy", "--phase", "1", "--ledger", file, "--json")
    check.equal("a ledger of one's own", first.code, 0)
    again = toy.ask("run", "toy", "--phase", "1", "--ledger", file, "--json")
    check.equal("a second run into it: exit status", again.code, 4)
    check.equal("a second run into it: code", again.document["code"], "GATE-0404")
