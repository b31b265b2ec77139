"""Verification: a real signed report, and everything that may be done to it afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numbat_gates import Check, gate
from numbat_gates.gates._toy import Answer, Toy, toy_plane
from numbat_gates.keys import KeyFiles, keygen

_ADDS = "from numbat_toy import add\ncheck.equal('one and one', add(1, 1), 2)"
_TABLE = """
from pathlib import Path
check.data(Path(__file__).parents[1] / "table.txt")
check.true("a table", True)
"""
_RAISES = """
from numbat_registries import load_registry
with check.refuses("GATE-0102", "an unknown registry"):
    load_registry("radiology")
"""


@gate(
    "GATE-G15",
    phase=3,
    discharges=["GATE-R019", "GATE-R017"],
    title="A verdict is only as fresh as what it rests on, and an edited report is refused",
)
def verification(check: Check) -> None:
    with toy_plane() as toy:
        toy.requirements("TOY-R001").gate(1, _ADDS).gate(2, _TABLE).gate(3, _RAISES)
        toy.write("table.txt", "1 2 3\n")
        key = keygen(toy.root / "key")
        folder = toy.root / "report"
        made = toy.ask("run", "toy", "--report", str(folder), "--key", str(key.private))
        check.equal("a signed run: exit status", made.code, 0)
        fresh = toy.ask("verify", str(folder), "--key", str(key.public), "--json")
        check.equal("fresh: exit status", fresh.code, 0)
        check.equal("fresh: signature", fresh.document["signature"]["state"], "valid")
        check.equal("fresh: nothing is stale", fresh.document["stale"], [])
        unchecked = toy.ask("verify", str(folder), "--json").document["signature"]
        check.equal("without a key: signature", unchecked["state"], "unchecked")
        _stale(check, toy, key)
        _edited(check, toy, key)


def _verified(toy: Toy, key: KeyFiles, folder: Path | None = None) -> Answer:
    report = folder or toy.root / "report"
    return toy.ask("verify", str(report), "--key", str(key.public), "--json")


def _stale(check: Check, toy: Toy, key: KeyFiles) -> None:
    """Each change is taken back afterwards, and the report is fresh again."""
    every = ["TOY-G01", "TOY-G02", "TOY-G03"]

    def tried(name: str, part: str, void: list[str], file: str, old: str, new: str) -> None:
        toy.edit(file, old, new)
        answer = _verified(toy, key)
        toy.edit(file, new, old)
        found = answer.document
        check.equal(f"{name}: exit status", answer.code, 3)
        check.equal(f"{name}: verdict", found["verdict"], "NOT_RUN")
        check.equal(f"{name}: what was recorded", found["recorded"], "PASS")
        check.equal(f"{name}: what is named", [item["part"] for item in found["stale"]], [part])
        not_run = [gate for gate, verdict in found["gates"].items() if verdict == "NOT_RUN"]
        check.equal(f"{name}: gates that no longer count", not_run, void)

    gate_1 = "gates/gate_01.py"
    tried("a check edited after its report", "gate", ["TOY-G01"], gate_1, "1, 1), 2", "1, 2), 3")
    tried("code", "code", every, "__init__.py", "a + b", "a - b")
    tried("a requirement", "requirements", every, "requirements.toml", "Rule", "Guideline")
    toy.gate(4, "check.true('later', True)")
    answer = _verified(toy, key)
    check.equal("a gate added: exit status", answer.code, 3)
    check.equal("a gate added: it is named", answer.document["gates"]["TOY-G04"], "NOT_RUN")
    (toy.package / "gates" / "gate_04.py").unlink()
    check.equal("all taken back: exit status", _verified(toy, key).code, 0)


def _edited(check: Check, toy: Toy, key: KeyFiles) -> None:
    more = toy.root / "more"
    toy.ask("run", "toy", "--report", str(more), "--key", str(key.private))
    requests = []
    for number, (_, _, signed, change) in enumerate(_EDITS):
        copy = toy.root / f"copy {number}"
        shutil.copytree(toy.root / "report", copy)
        change(copy)
        # Where nobody asks for the signature, report and ledger have to speak for themselves.
        keys = ["--key", str(key.public)] if signed else []
        requests.append(["verify", str(copy), *keys, "--json"])
    for (name, code, _, _), answer in zip(_EDITS, toy.ask_all(requests), strict=True):
        check.equal(f"{name}: exit status", answer.code, 4)
        check.equal(f"{name}: code", answer.document.get("code"), code)


def _in_report(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "report.json"
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document), encoding="utf-8")

    return apply


def _in_ledger(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "ledger.jsonl"
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return apply


def _another_signature(folder: Path) -> None:
    shutil.copy(folder.parent / "more" / "report.dsse.json", folder)


def _no_signature(folder: Path) -> None:
    (folder / "report.dsse.json").unlink()


def _edit_page(folder: Path) -> None:
    page = folder / "report.html"
    page.write_bytes(page.read_bytes() + b"<!-- -->")


_SIGNED, _UNSIGNED = True, False
_TITLE = _in_report(lambda report: report["gates"][0].update(title="Better"))
_VERDICT = _in_report(lambda report: report.update(verdict="FAIL", exit_code=1))
_CHECKS = _in_report(lambda report: report["gates"][0]["checks"].clear())
_CUT = _in_ledger(lambda lines: lines[:-1])
_CUT_LINE = _in_ledger(lambda lines: [*lines[:-1], lines[-1][:-9]])
_REMOVED = _in_ledger(lambda lines: [lines[0], *lines[2:]])
_EXCHANGED = _in_ledger(lambda lines: [lines[0], lines[2], lines[1], *lines[3:]])
_EDITED = _in_ledger(lambda lines: [x.replace(b"GATE-0102", b"GATE-0103") for x in lines])

#: What is done to a copy of the report, and the code that is due.
_EDITS: tuple[tuple[str, str, bool, Callable[[Path], None]], ...] = (
    ("a report edited after signing", "GATE-0606", _SIGNED, _TITLE),
    ("a page edited after signing", "GATE-0606", _SIGNED, _edit_page),
    ("a ledger edited after signing", "GATE-0606", _SIGNED, _CUT),
    ("a valid signature over another run", "GATE-0605", _SIGNED, _another_signature),
    ("a signature taken away", "GATE-0610", _SIGNED, _no_signature),
    ("a verdict that its gates do not give", "GATE-0611", _UNSIGNED, _VERDICT),
    ("a check taken out", "GATE-0611", _UNSIGNED, _CHECKS),
    ("a ledger line removed", "GATE-0202", _UNSIGNED, _REMOVED),
    ("ledger lines exchanged", "GATE-0202", _UNSIGNED, _EXCHANGED),
    ("a ledger line edited", "GATE-0201", _UNSIGNED, _EDITED),
    ("a ledger cut off", "GATE-0204", _UNSIGNED, _CUT),
    ("a ledger cut within a line", "GATE-0203", _UNSIGNED, _CUT_LINE),
)
