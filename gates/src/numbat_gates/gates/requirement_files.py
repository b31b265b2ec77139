"""Requirements: read strictly, and a gap among them is never a pass."""

from __future__ import annotations

from typing import Any

from numbat_gates import Check, gate
from numbat_gates.gates._toy import Toy, toy_plane
from numbat_gates.requirements import load_requirements, parse_requirements

_ENTRY = {"id": "TOY-R001", "phase": 1, "text": "It counts.", "rationale": "All rests on it."}
_CLAUSE = {
    "id": "TOY-R001.c1",
    "requirement": "TOY-R001",
    "text": "On large numbers.",
    "awaits": "hardware",
    "because": "No machine here is large enough.",
}
_FILE = "requirements.toml"
_SECOND_PHASE = """
[phase.2]
title = "The toy multiplies"

[[requirement]]
id = "TOY-R009"
phase = 2
text = "It multiplies."
rationale = "Later work rests on it."
awaits = "later-phase"
because = "Multiplying is not built yet."

[[clause]]
id = "TOY-R001.c1"
requirement = "TOY-R001"
text = "On large numbers."
awaits = "hardware"
because = "No machine here is large enough."
"""


@gate(
    "GATE-G08",
    phase=2,
    discharges=["GATE-R009", "GATE-R010"],
    title="Requirements are read strictly, and one that nothing proves is never passed over",
)
def requirement_files(check: Check) -> None:
    _strictly(check)
    with toy_plane() as toy:
        _gaps(check, toy)
        _declared(check, toy)
        _discharged_here(check, toy)


def _parse(*entries: dict[str, Any], clauses: tuple[dict[str, Any], ...] = ()) -> None:
    document = {"phase": {"1": {"title": "Counting"}}, "requirement": list(entries)}
    parse_requirements(document | ({"clause": list(clauses)} if clauses else {}), file=_FILE)


def _strictly(check: Check) -> None:
    whole = {"phase": {"1": {"title": "Counting"}}, "requirement": [_ENTRY], "clause": [_CLAUSE]}
    read = parse_requirements(whole, file=_FILE)
    check.equal("a whole file: requirements", list(read.requirements), ["TOY-R001"])
    check.equal(
        "a whole file: clauses", [c.id for c in read.clauses_of("TOY-R001")], ["TOY-R001.c1"]
    )
    with check.refuses("GATE-0301", "an unknown table"):
        parse_requirements({"requirements": []}, file=_FILE)
    with check.refuses("GATE-0301", "a phase without a title"):
        parse_requirements({"phase": {"1": {}}}, file=_FILE)
    with check.refuses("GATE-0302", "an id given twice"):
        _parse(_ENTRY, _ENTRY)
    with check.refuses("GATE-0303", "an unknown key"):
        _parse(_ENTRY | {"titel": "Counting"})
    with check.refuses("GATE-0303", "a reason in words without its type"):
        _parse(_ENTRY | {"because": "nobody is free"})
    with check.refuses("GATE-0303", "an empty text"):
        _parse(_ENTRY | {"text": " "})
    with check.refuses("GATE-0304", "a phase that is not declared"):
        _parse(_ENTRY | {"phase": 2})
    with check.refuses("GATE-0305", "a reason outside the closed list"):
        _parse(_ENTRY | {"awaits": "spare time", "because": "nobody is free"})
    with check.refuses("GATE-0306", "a clause of no requirement"):
        _parse(_ENTRY, clauses=(_CLAUSE | {"requirement": "TOY-R007"},))
    own = check.plane.requirements_file
    check.data(own)
    check.equal("our own file", load_requirements(own), check.requirements)


def _gaps(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001", "TOY-R002").gate(1, "check.equal('one and one', 1 + 1, 2)")
    answer = toy.ask("run", "toy", "--json")
    report = answer.document
    check.equal("a requirement that no gate names: exit status", answer.code, 3)
    check.equal("its run", report["verdict"], "NOT_RUN")
    check.equal("its gates", [g["verdict"] for g in report["gates"]], ["PASS"])
    status = {item["id"]: item["status"] for item in report["requirements"]}
    check.equal("its status", status, {"TOY-R001": "discharged", "TOY-R002": "open"})
    told = [(item["clause"], item["awaits"]) for item in report["undischarged"]]
    check.equal("it is among the undischarged, with no reason", told, [("TOY-R002", None)])
    rows = toy.ask("matrix", "toy", "--gaps", "--json").document["rows"]
    found = [(row["requirement"], row["gate"], row["gap"]) for row in rows]
    gap = "no gate names it, and it declares no reason"
    check.equal("it is a row of the matrix", found, [("TOY-R002", None, gap)])


def _declared(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001", more=_SECOND_PHASE)
    answer = toy.ask("run", "toy", "--json")
    report = answer.document
    check.equal("declared with a reason: exit status", answer.code, 0)
    told = [(item["clause"], item["awaits"]) for item in report["undischarged"]]
    due = [("TOY-R001.c1", "hardware"), ("TOY-R009", "later-phase")]
    check.equal("each is told with its typed reason", told, due)
    phases = {item["phase"]: (item["verdict"], item["awaited"]) for item in report["phases"]}
    check.equal("phases", phases, {1: ("PASS", False), 2: ("NOT_RUN", True)})
    text = toy.ask("run", "toy").stdout
    check.true("people read it too", "TOY-R009" in text and "awaits later-phase" in text)
    alone = toy.ask("run", "toy", "--phase", "2", "--json")
    check.equal("a phase that only awaits, asked for alone", alone.code, 3)


def _discharged_here(check: Check, toy: Toy) -> None:
    toy.gate(1, "check.discharge('TOY-R001.c1')\ncheck.equal('one and one', 1 + 1, 2)")
    told = [item["clause"] for item in toy.ask("run", "toy", "--json").document["undischarged"]]
    check.equal("a clause that this machine discharges", told, ["TOY-R009"])
    toy.gate(1, "check.discharge('TOY-R001.c1')\ncheck.equal('one and one', 1 + 1, 3)")
    told = [item["clause"] for item in toy.ask("run", "toy", "--json").document["undischarged"]]
    check.true("no clause of a gate that fails", "TOY-R001.c1" in told, measured=told)
