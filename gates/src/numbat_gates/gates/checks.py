"""Checks: each kind passes on what is right, and fails on what only looks like it."""

from __future__ import annotations

import math

from numbat_gates import Check, gate
from numbat_gates.checks import Check as Trial
from numbat_gates.gates._toy import toys
from numbat_gates.registration import Gate
from numbat_gates.requirements import parse_requirements
from numbat_gates.verdicts import Verdict
from numbat_ledger import activate, read_entries
from numbat_registries import load_registry

_NAN = float("nan")
_REQUIREMENTS = parse_requirements(
    {
        "phase": {"1": {"title": "Counting"}},
        "requirement": [
            {"id": "TOY-R001", "phase": 1, "text": "It counts.", "rationale": "All rests on it."}
        ],
        "clause": [
            {
                "id": "TOY-R001.c1",
                "requirement": "TOY-R001",
                "text": "Readers agree.",
                "awaits": "clinical-data",
                "because": "It needs readers.",
            }
        ],
    },
    file="requirements.toml",
)
_GATE = Gate(id="TOY-G01", phase=1, discharges=("TOY-R001",), title="A toy", module="toy", line=1)


@gate(
    "GATE-G10",
    phase=2,
    discharges=["GATE-R012"],
    title="Every kind of check passes on what is right and fails on what only looks like it",
)
def checks(check: Check) -> None:
    _equal(check)
    _close(check)
    _bounds(check)
    _conditions(check)
    _refusals(check)


def _trial(check: Check) -> Trial:
    return Trial(_GATE, plane=check.plane, requirements=_REQUIREMENTS)


def _verdicts(check: Check, kind: str, trial: Trial, due: dict[str, bool]) -> None:
    found = {item.name: item.verdict is Verdict.PASS for item in trial.results}
    for name, passes in due.items():
        check.equal(f"{kind}: {name}", found.get(name), passes)


def _equal(check: Check) -> None:
    cases = {
        "the same number": (2, 2, True),
        "another number": (2, 3, False),
        "NaN and NaN": (_NAN, _NAN, False),
        "NaN in a list": ([1.0, _NAN], [1.0, _NAN], False),
        "the same list": ([1, [2, 3]], [1, [2, 3]], True),
        "a list that is shorter": ([1], [1, 2], False),
        "the same mapping": ({"a": [1]}, {"a": [1]}, True),
        "a mapping with one key more": ({"a": 1, "b": 2}, {"a": 1}, False),
        "text and number": ("2", 2, False),
        "nothing and zero": (None, 0, False),
    }
    trial = _trial(check)
    for name, (measured, required, _) in cases.items():
        trial.equal(name, measured, required)
    _verdicts(check, "equal", trial, {name: passes for name, (_, _, passes) in cases.items()})


def _close(check: Check) -> None:
    cases = {
        "within": (1.0009, 1.0, True),
        "just beyond": (1.0011, 1.0, False),
        "below by more": (0.9, 1.0, False),
        "lists within": ([1.0, 2.0], [1.0, 2.0005], True),
        "one element beyond": ([1.0, 2.0], [1.0, 2.1], False),
        "NaN": (_NAN, _NAN, False),
        "NaN among others": ([1.0, _NAN], [1.0, 2.0], False),
        "infinity and a number": (math.inf, 1.0, False),
        "equal infinities": (math.inf, math.inf, True),
        "a scalar against a list": (1.0, [1.0, 1.0], False),
        "lists of two lengths": ([1.0], [1.0, 1.0], False),
        "nothing against nothing": ([], [], False),
        "a boolean": (True, 1.0, False),
        "text": ("1.0", 1.0, False),
    }
    trial = _trial(check)
    for name, (measured, required, _) in cases.items():
        trial.close(name, measured=measured, required=required, atol=1e-3, unit="mm")
    trial.close("exactly the tolerance", measured=1.5, required=1.0, atol=0.5)
    due = {name: passes for name, (_, _, passes) in cases.items()}
    _verdicts(check, "close", trial, due | {"exactly the tolerance": True})
    said = {item.name: item.detail for item in trial.results}
    check.equal(
        "close: where it is worst", said["one element beyond"], "largest difference 0.1 at [1]"
    )


def _bounds(check: Check) -> None:
    trial = _trial(check)
    trial.at_most("below", 1, 2)
    trial.at_most("on it", 2, 2)
    trial.at_most("above", 3, 2)
    trial.at_most("undefined", _NAN, 2)
    trial.at_most("undefined limit", 1, _NAN)
    due = {"below": True, "on it": True, "above": False, "undefined": False}
    _verdicts(check, "at most", trial, due | {"undefined limit": False})
    trial = _trial(check)
    trial.at_least("above", 3, 2)
    trial.at_least("on it", 2, 2)
    trial.at_least("below", 1, 2)
    trial.at_least("undefined", _NAN, 2)
    due = {"above": True, "on it": True, "below": False, "undefined": False}
    _verdicts(check, "at least", trial, due)


def _conditions(check: Check) -> None:
    trial = _trial(check)
    trial.true("so", True)
    trial.true("not so", False)
    trial.true("so", False)
    _verdicts(check, "true", trial, {"so": True, "not so": False, "so #2": False})
    for condition in ([False], "no", 1, None):
        with check.refuses("GATE-0401", f"{condition!r} is no condition"):
            trial.true("a condition", condition)
    with check.refuses("GATE-0402", "a clause that the requirement does not have"):
        trial.discharge("TOY-R001.c9")
    with check.refuses("GATE-0403", "a clause that no machine can settle"):
        trial.discharge("TOY-R001.c1")
    for digest in ("", "c36a72e9052419a0", "sha256:" + 63 * "0", "SHA256:" + 64 * "0"):
        with check.refuses("GATE-0405", f"{digest!r} is no digest of an input"):
            trial.note_input("file:answers", digest)
    check.equal("inputs that were bound", trial.inputs, {})
    trial.skip("a peer", "not installed")
    check.equal("a skipped check", str(trial.results[-1].verdict), "NOT_RUN")
    check.equal("its reason", trial.not_run, ["a peer: not installed"])


def _refusals(check: Check) -> None:
    with toys() as folder, activate(folder / "ledger.jsonl") as ledger:
        trial = _trial(check)
        with trial.refuses("GATE-0102", "the code"):
            load_registry("radiology")
        with trial.refuses("GATE-0103", "another code"):
            load_registry("radiology")
        with trial.refuses("GATE-0102", "nothing"):
            pass
        with trial.refuses("GATE-0102", "no refusal"):
            raise KeyError("name")
        due = {"the code": True, "another code": False, "nothing": False, "no refusal": False}
        _verdicts(check, "refuses", trial, due)
        asserted = [
            (entry.code, entry.check)
            for entry in read_entries(ledger.path)
            if entry.kind == "assert"
        ]
        check.equal("refuses: what the ledger holds", asserted, [("GATE-0102", "the code")])
    with check.refuses("GATE-0101", "a check that waits for no registered code"):
        _trial(check).refuses("GATE-9999")
