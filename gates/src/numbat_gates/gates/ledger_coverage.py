"""Coverage: only what a check asked for and got, held against entries made for the purpose."""

from __future__ import annotations

from dataclasses import replace

from numbat_gates import Check, gate
from numbat_gates.gates._toy import Toy, toy_plane
from numbat_ledger import Coverage, coverage
from numbat_ledger.entries import OPENING, Draft, Entry, make_entry
from numbat_registries import Registry, load_registry

_FROM_A_CHECK = """
from numbat_registries import load_registry
try:
    load_registry("radiology")
except Exception:
    pass
check.true("something else", True)
"""
_ASSERTED = """
from numbat_registries import load_registry
with check.refuses("GATE-0102", "an unknown registry"):
    load_registry("radiology")
"""
_ANOTHER_CODE = """
from numbat_registries import load_registry
with check.refuses("GATE-0103", "the wrong code"):
    load_registry("radiology")
"""
_UNREGISTERED = """
from numbat_registries import refuse
try:
    raise refuse("TOY-0001", reason="nobody registered it")
except Exception:
    pass
check.true("something else", True)
"""


@gate(
    "GATE-G07",
    phase=1,
    discharges=["GATE-R007"],
    title="A code is covered only where a check asked for it and got it",
)
def ledger_coverage(check: Check) -> None:
    _entries(check)
    with toy_plane() as toy:
        _planes(check, toy)


def _chain(*drafts: Draft) -> list[Entry]:
    entries = [OPENING]
    for draft in drafts:
        entries.append(make_entry(draft, after=entries[-1]))
    return entries


def _entries(check: Check) -> None:
    whole = load_registry("gates")
    two = {code: whole.codes[code] for code in ("GATE-0102", "GATE-0103")}
    registry = replace(whole, codes=two)
    raised = Draft("raise", code="GATE-0102", site="toy:1")
    asked = Draft("assert", code="GATE-0102", gate="TOY-G01", check="asks", ref=1)

    def found(*drafts: Draft, against: Registry = registry) -> Coverage:
        return coverage(_chain(*drafts), against)

    check.equal("nothing raised", list(found().uncovered), ["GATE-0102", "GATE-0103"])
    check.equal("a raise that no check expected", dict(found(raised).covered), {})
    told = found(raised, asked)
    check.equal("an asserted raise", dict(told.covered), {"GATE-0102": (("TOY-G01", "asks"),)})
    check.equal("what is left", list(told.uncovered), ["GATE-0103"])
    check.true("not complete", not told.complete)
    check.equal("an assertion without a raise", dict(found(replace(asked, ref=0)).covered), {})
    other = replace(asked, code="GATE-0103")
    check.equal("an assertion of another code", dict(found(raised, other).covered), {})
    later = found(replace(asked, ref=2), raised)
    check.equal("an assertion before the raise", dict(later.covered), {})
    stray = Draft("raise", code="GATE-0777")
    check.equal("an unregistered code", list(found(stray).unregistered), ["GATE-0777"])
    tried = Draft("raise", code="GATE-0101", note="TOY-0001")
    check.equal(
        "an attempt at an unregistered code",
        list(found(tried, against=whole).unregistered),
        ["TOY-0001"],
    )
    retired = replace(
        registry, codes={**two, "GATE-0103": replace(two["GATE-0103"], retired_in="0.2")}
    )
    check.true("a retired code is not due", found(raised, asked, against=retired).complete)


def _planes(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001")
    for name, body, covered in (
        ("a raise on the way to another check", _FROM_A_CHECK, []),
        ("an asserted raise", _ASSERTED, ["GATE-0102"]),
        ("an assertion of another code", _ANOTHER_CODE, []),
    ):
        answer = toy.gate(1, body).ask("coverage", "toy", "--json")
        check.equal(f"run with {name}: covered", sorted(answer.document["covered"]), covered)
        check.equal(f"run with {name}: exit status", answer.code, 1)
    answer = toy.gate(1, _UNREGISTERED).ask("coverage", "toy", "--json")
    check.equal("run with an unregistered code", answer.document["unregistered"], ["TOY-0001"])
    _the_coverage_gate(check, toy)


def _the_coverage_gate(check: Check, toy: Toy) -> None:
    toy.gate(1, _ASSERTED)
    toy.gate(9, "check.covers_registry()", last=True)
    report = toy.ask("run", "toy", "--json").document
    gate_09 = next(item for item in report["gates"] if item["id"] == "TOY-G09")
    check.equal("a coverage gate over uncovered codes", gate_09["verdict"], "FAIL")
    passed = [c["name"][:9] for c in gate_09["checks"] if c["verdict"] == "PASS"]
    check.equal("it passes the covered code alone", passed, ["GATE-0102", "codes rai"])
    alone = toy.ask("run", "toy", "--gate", "TOY-G09", "--json")
    check.equal("a coverage gate by itself is not run", alone.document["verdict"], "NOT_RUN")
