"""The table of gates: one source, read without running it, and nothing outside it."""

from __future__ import annotations

from numbat_gates import Check, gate
from numbat_gates.gates._toy import Toy, toy_plane
from numbat_gates.planes import find_plane
from numbat_gates.registration import declared_gates, gate_modules

_BREAKS = "raise RuntimeError('gates are read, not run')"
_PASSES = "check.true('it ran', True)"


@gate(
    "GATE-G09",
    phase=2,
    discharges=["GATE-R011"],
    title="Gates are read from their source, and a wrong one is refused before anything runs",
)
def gate_table(check: Check) -> None:
    plane = find_plane(check.plane.name)
    declared = declared_gates(plane)
    modules = [item.module for item in declared]
    check.equal("our own gates: one a module", sorted(modules), [m for m, _ in gate_modules(plane)])
    titles = [item.title for item in declared]
    check.equal("our own gates: titles are told apart", len(set(titles)), len(titles))
    named = {name for item in declared for name in item.discharges}
    open_ = [r.id for r in check.requirements.requirements.values() if r.awaits is None]
    check.equal("our own requirements that no gate names", sorted(set(open_) - named), [])
    with toy_plane() as toy:
        _read_and_not_run(check, toy)
        _refused(check, toy)


def _read_and_not_run(check: Check, toy: Toy) -> None:
    toy.requirements("TOY-R001").gate(1, _PASSES, before=_BREAKS)
    listed = toy.ask("list", "toy", "--json").document["gates"]
    check.equal("listed without running it", [item["id"] for item in listed], ["TOY-G01"])
    answer = toy.ask("run", "toy", "--json")
    check.equal("a module that cannot be loaded", answer.document["gates"][0]["verdict"], "ERROR")
    check.equal("its exit status", answer.code, 5)


def _refused(check: Check, toy: Toy) -> None:
    def tried(name: str, code: str) -> None:
        answer = toy.ask("run", "toy", "--json")
        check.equal(f"{name}: exit status", answer.code, 4)
        check.equal(f"{name}: code", answer.document["code"], code)

    toy.gate(1, _PASSES, discharges="TOY-R404")
    tried("a gate that names an unknown requirement", "GATE-0313")
    told = toy.ask("run", "toy", "--json").document["fields"]
    check.equal("the unknown requirement is named", told["requirement"], "TOY-R404")
    toy.gate(1, _PASSES).gate(2, _PASSES)
    toy.edit("gates/gate_02.py", "TOY-G02", "TOY-G01")
    tried("an id given twice", "GATE-0312")
    toy.gate(2, _PASSES)
    toy.edit("gates/gate_02.py", '"TOY-G02"', 'f"TOY-G0{2}"')
    tried("an id that the source does not show", "GATE-0316")
    toy.gate(2, _PASSES)
    toy.edit("gates/gate_02.py", "@gate(", "declare = gate\n@declare(")
    tried("a gate under another name", "GATE-0316")
    toy.gate(2, _PASSES)
    toy.edit("gates/gate_02.py", '["TOY-R001"]', "[]")
    tried("a gate that discharges nothing", "GATE-0311")
    toy.write("gates/gate_02.py", "def measure(:\n")
    tried("a module that is not Python", "GATE-0315")
    toy.gate(2, _PASSES, discharges="TOY-R002").requirements("TOY-R001", more=_AWAITS)
    tried("a gate that claims what no machine can settle", "GATE-0314")


_AWAITS = """
[[requirement]]
id = "TOY-R002"
phase = 1
text = "Readers agree."
rationale = "They decide."
awaits = "clinical-data"
because = "It needs readers."
"""
