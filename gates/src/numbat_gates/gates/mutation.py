"""The mutation run: a judge of gates that is judged itself, on faults whose fate is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numbat_gates import Check, gate
from numbat_gates.digests import digest_tree
from numbat_gates.gates._toy import Toy, toy_plane
from numbat_gates.mutation import faults_in

_SUMS = '''
"""A text with 1 + 1 and True in it."""

import os


def add(a: "list[1]", b: int = 0) -> int:
    """No fault goes into texts: 2 > 1."""
    return a + b


def is_large(number):
    return number > 3


def unused(number):
    return number * 2


def in_a_process(number):
    return number - 1


def stops(number):
    if number < 0:
        os.kill(os.getpid(), 9)
    return True


class Sum:
    def __repr__(self):
        return "1" * 3
'''
_GATE = """
import subprocess, sys
from numbat_toy import sums

check.equal("two and three", sums.add(2, 3), 5)
check.equal("five is large", sums.is_large(5), True)
check.equal("one is not", sums.is_large(1), False)
check.true("nothing stops", sums.stops(7))
source = "from numbat_toy import sums; print(sums.in_a_process(3))"
ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
check.equal("in a process of its own", ended.stdout, "2\\n")
"""
_SETTINGS = 'modules = ["sums.py"]\noperators = ["arithmetic", "comparison"]\nat_least = 0.7\n'

#: The faulty line → the fate that is due.
_FATES = {
    "return a - b": "caught",
    "return number >= 3": "survived",
    "return number <= 3": "caught",
    "return number / 2": "not reached",
    "return number + 1": "caught",
    "if number <= 0:": "survived",
    "if number >= 0:": "caught",
}


@gate(
    "GATE-G17",
    phase=4,
    discharges=["GATE-R018"],
    title="A fault that gates catch is told from one that none catches and one that none reaches",
)
def mutation(check: Check) -> None:
    with toy_plane() as toy:
        toy.requirements("TOY-R001").gate(1, _GATE)
        toy.write("sums.py", _SUMS)
        _refused(check, toy)
        toy.write("mutation.toml", _SETTINGS)
        before = digest_tree(toy.package)
        answer = toy.ask("mutate", "toy", "--json")
        _fates(check, answer.document)
        check.equal("a score below what is required: exit status", answer.code, 1)
        check.equal("no file was changed", digest_tree(toy.package), before)
        _declared(check, toy, answer.document)
        _seeding(check, toy.package / "sums.py")


def _fates(check: Check, document: dict[str, Any]) -> None:
    found = {fault["mutated"]: fault for fault in document["faults"]}
    check.equal("faults that were seeded", sorted(found), sorted(_FATES))
    for mutated, fate in _FATES.items():
        check.equal(f"`{mutated}`", found.get(mutated, {}).get("fate"), fate)
    counts = {"caught": 4, "survived": 2, "not reached": 1, "declared": 0}
    check.equal("counts", document["counts"], counts)
    check.close("score", measured=document["score"], required=4 / 7, atol=1e-3)
    survivor = found["return number >= 3"]
    check.equal("a survivor: its place", (survivor["file"], survivor["line"]), ("sums.py", 13))
    check.equal("a survivor: as it was", survivor["source"], "return number > 3")
    check.equal("a survivor: gates that ran", survivor["gates"], ["TOY-G01"])
    told = found["return a - b"]["how"]
    check.equal("a caught one: by which check", told, "FAIL: two and three")
    died = found["if number >= 0:"]["how"]
    check.true("a fault that kills its process", "died" in died, measured=died)


def _declared(check: Check, toy: Toy, before: dict[str, Any]) -> None:
    ids = {fault["mutated"]: fault["id"] for fault in before["faults"]}
    names = (ids["if number <= 0:"], ids["return number / 2"], "0123456789ab")
    entries = [f'\n[[equivalent]]\nid = "{name}"\nbecause = "shown"\n' for name in names]
    toy.write("mutation.toml", _SETTINGS + "".join(entries))
    # A line in front of it all: what is declared stays declared.
    toy.edit("sums.py", "import os\n", "import os\n\nFIRST = ()\n")
    answer = toy.ask("mutate", "toy", "--json")
    document = answer.document
    fates = {fault["mutated"]: fault["fate"] for fault in document["faults"]}
    check.equal("declared", fates["if number <= 0:"], "declared")
    check.equal("not counted", document["counted"], 5)
    check.equal("a score that is reached: exit status", answer.code, 0)
    check.equal("a declaration of no fault is told", document["stale_declarations"], [names[2]])
    text = toy.ask("mutate", "toy", "--sample", "2", "--seed", "7", "--module", "sums")
    again = toy.ask("mutate", "toy", "--sample", "2", "--seed", "7", "--json").document
    check.equal("a sample: its size", len(again["faults"]), 2)
    verdict = text.stdout.rstrip().splitlines()[-1]
    check.true("a sample: people read that it is one", "seed 7" in verdict, measured=verdict)
    picked = [fault["source"] for fault in again["faults"] if fault["fate"] == "survived"]
    check.true("a sample: the same each time", all(line in text.stdout for line in picked))


def _refused(check: Check, toy: Toy) -> None:
    def tried(name: str, code: str, settings: str | None = None, status: int = 4) -> None:
        if settings is not None:
            toy.write("mutation.toml", settings)
        answer = toy.ask("mutate", "toy", "--json")
        check.equal(f"{name}: exit status", answer.code, status)
        check.equal(f"{name}: code", answer.document["code"], code)

    tried("no settings", "GATE-0801")
    tried("settings with an unknown key", "GATE-0801", _SETTINGS + "sample = 3\n")
    tried("an operator that is not there", "GATE-0801", _SETTINGS.replace("arith", "geo"))
    tried("a module that is not there", "GATE-0801", _SETTINGS.replace("sums", "products"))
    tried("a gate that is not there", "GATE-0801", _SETTINGS + 'gates = ["TOY-G09"]\n')
    toy.gate(2, "check.equal('one and one', 1 + 1, 3)")
    tried("a gate that fails without a fault", "GATE-0802", _SETTINGS)
    toy.gate(2, "check.skip('a peer', 'not installed')")
    tried("no gate that passes here", "GATE-0803", _SETTINGS + 'gates = ["TOY-G02"]\n')
    (toy.package / "gates" / "gate_02.py").unlink()


def _seeding(check: Check, path: Path) -> None:
    faults = faults_in("numbat_toy.sums", path)
    texts = [fault.source for fault in faults if '"""' in fault.source or "[2]" in fault.mutated]
    check.equal("no fault in texts and annotations", texts, [])
    check.equal("none in what only shows a value", [f for f in faults if "Sum" in f.function], [])
    check.equal("ids are told apart", len({fault.id for fault in faults}), len(faults))
    check.equal("the same again", faults_in("numbat_toy.sums", path), faults)
    examples = {
        "x = values[0] - values[-1]": ["x = values[0] + values[-1]", "x = values[1] - values[-1]"],
        "x = not a and b or c": ["x = a and b or c", "x = (not a or b) or c"],
        "x = max(a, axis=1)": ["x = min(a, axis=1)", "x = max(a, axis=0)"],
        "x = values[1:-1]": ["x = values[2:-1]", "x = values[1:-2]"],
        "x = -a * 0.5": ["x = a * 0.5", "x = -a / 0.5", "x = -a * 1.0"],
        "x = a if b else c": ["x = c if b else a"],
        "check(a)": ["pass"],
        "for x in a: y(x)": ["for x in a: continue"],
    }
    for source, due in examples.items():
        path.write_text(source + "\n", encoding="utf-8")
        found = [fault.mutated for fault in faults_in("numbat_toy.sums", path)]
        missing = [text for text in due if text not in found]
        check.equal(f"`{source}`: faults that are missing", missing, [])
