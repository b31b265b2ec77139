"""Coverage counts what a check asked for and got, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numbat_ledger import Coverage, Entry, Ledger, activate, coverage, read_entries
from numbat_registries import Refusal, Registry, load_registry, refuse
from numbat_registries.registry import parse_registry


def entry(code: str, **parts: Any) -> dict[str, Any]:
    return {
        "code": code,
        "name": code.lower(),
        "severity": "refusal",
        "since": "0.1",
        "requirement": [],
        "message": "something is the matter",
        "fields": {},
        "explains": "A code for the tests of coverage.",
        "example": ["pass"],
        "repair": [],
    } | parts


REGISTRY = parse_registry(
    {
        "plane": "trial",
        "prefix": "TRY",
        "codes": [
            entry("TRY-0001"),
            entry("TRY-0002", severity="notice"),
            entry("TRY-0003"),
            entry("TRY-0004", retired_in="0.1"),
        ],
    }
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "run.ledger.jsonl")


def measured(ledger: Ledger, registry: Registry = REGISTRY) -> Coverage:
    return coverage(read_entries(ledger.path), registry)


def asserted(ledger: Ledger, code: str, *, gate: str = "TRY-G01", check: str = "c") -> Entry:
    about = ledger.append("raise", code=code)
    return ledger.append("assert", code=code, gate=gate, check=check, ref=about.seq)


def test_an_asserted_raise_covers_its_code(ledger: Ledger) -> None:
    asserted(ledger, "TRY-0001")
    noticed = ledger.append("notice", code="TRY-0002")
    ledger.append("assert", code="TRY-0002", gate="TRY-G02", check="d", ref=noticed.seq)
    found = measured(ledger)
    assert found.covered == {
        "TRY-0001": (("TRY-G01", "c"),),
        "TRY-0002": (("TRY-G02", "d"),),
    }
    assert found.uncovered == ("TRY-0003",)
    assert found.unregistered == ()
    assert not found.complete


def test_coverage_is_complete_when_every_live_code_is_asserted(ledger: Ledger) -> None:
    for code in ("TRY-0001", "TRY-0002", "TRY-0003"):
        asserted(ledger, code)
    assert measured(ledger).complete


def _raise_alone(ledger: Ledger) -> None:
    ledger.append("raise", code="TRY-0001", gate="TRY-G01", check="c")


def _assert_about_another(ledger: Ledger) -> None:
    about = ledger.append("raise", code="TRY-0003")
    ledger.append("assert", code="TRY-0001", gate="TRY-G01", check="c", ref=about.seq)


def _assert_about_nothing(ledger: Ledger) -> None:
    ledger.append("assert", code="TRY-0001", gate="TRY-G01", check="c", ref=99)


def _assert_about_itself(ledger: Ledger) -> None:
    ledger.append("assert", code="TRY-0001", gate="TRY-G01", check="c", ref=1)


def _assert_before_the_raise(ledger: Ledger) -> None:
    ledger.append("assert", code="TRY-0001", gate="TRY-G01", check="c", ref=2)
    ledger.append("raise", code="TRY-0001")


def _assert_about_an_assertion(ledger: Ledger) -> None:
    ledger.append("assert", code="TRY-0001", ref=99)
    ledger.append("assert", code="TRY-0001", ref=1)


def _assert_about_a_seal(ledger: Ledger) -> None:
    ledger.append("assert", code="TRY-0001", ref=ledger.append("seal", code="TRY-0001").seq)


@pytest.mark.parametrize(
    "write",
    [
        _raise_alone,
        _assert_about_another,
        _assert_about_nothing,
        _assert_about_itself,
        _assert_before_the_raise,
        _assert_about_an_assertion,
        _assert_about_a_seal,
    ],
)
def test_nothing_else_covers_a_code(ledger: Ledger, write: Callable[[Ledger], None]) -> None:
    write(ledger)
    found = measured(ledger)
    assert "TRY-0001" in found.uncovered
    assert found.covered == {}


def test_every_check_that_asserted_a_code_is_named_once(ledger: Ledger) -> None:
    for check in ("b", "a", "b"):
        asserted(ledger, "TRY-0001", check=check)
    assert measured(ledger).covered["TRY-0001"] == (("TRY-G01", "b"), ("TRY-G01", "a"))


def test_a_retired_code_is_neither_due_nor_covered(ledger: Ledger) -> None:
    asserted(ledger, "TRY-0004")
    found = measured(ledger)
    assert "TRY-0004" not in {*found.covered, *found.uncovered, *found.unregistered}


def test_a_code_under_the_prefix_that_is_not_registered_is_seen(ledger: Ledger) -> None:
    asserted(ledger, "TRY-0009")
    asserted(ledger, "IMG-0009")
    found = measured(ledger)
    assert found.unregistered == ("TRY-0009",)
    assert found.covered == {}


@pytest.mark.parametrize("code", ["TRY-9999", "IGM-1203"])
def test_an_attempt_to_raise_an_unregistered_code_is_seen(ledger: Ledger, code: str) -> None:
    with activate(ledger.path), pytest.raises(Refusal):
        refuse(code)
    assert measured(ledger).unregistered == (code,)


def test_an_attempt_that_a_check_asked_for_is_no_fault(ledger: Ledger) -> None:
    with activate(ledger.path), pytest.raises(Refusal) as caught:
        refuse("GATE-9999")
    seq = caught.value.diagnostic.seq
    ledger.append("assert", code="GATE-0101", gate="GATE-G01", check="c", ref=seq)
    found = measured(ledger, load_registry("gates"))
    assert found.unregistered == ()
    assert "GATE-0101" in found.covered


def test_an_empty_ledger_covers_nothing() -> None:
    assert coverage([], REGISTRY).uncovered == ("TRY-0001", "TRY-0002", "TRY-0003")
