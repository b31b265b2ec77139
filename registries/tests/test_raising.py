"""refuse and notice: evidence held against the registry, and turned into JSON."""

from __future__ import annotations

import enum
import json
import math
import os
import subprocess
import sys
from collections import UserList, deque
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from numbat_registries import Diagnostic, Refusal, Severity, find_code, notice, refuse
from numbat_registries.raising import json_safe, sinks

pytestmark = pytest.mark.usefixtures("trial")

#: The machine may be busy; how long an example takes says nothing.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

GAP: dict[str, Any] = {"patient_name": "x", "gap_mm": 4.0, "indices": [1]}


def refused(code: str, *args: Any, verb: Any = refuse, **fields: Any) -> dict[str, Any]:
    """The evidence of the refusal, which must have exactly this code."""
    with pytest.raises(Refusal) as caught:
        raise verb(*args, **fields)
    assert caught.value.code == code
    return dict(caught.value.diagnostic.fields)


@pytest.fixture
def seen() -> Iterator[list[Diagnostic]]:
    recorded: list[Diagnostic] = []
    sinks.append(recorded.append)
    yield recorded
    sinks.remove(recorded.append)


def test_a_refusal_knows_its_code_evidence_and_site() -> None:
    refusal = refuse("TRY-0001", **GAP)
    line = sys._getframe().f_lineno - 1
    assert isinstance(refusal, Exception)
    assert refusal.code == "TRY-0001"
    assert refusal.diagnostic.severity is Severity.REFUSAL
    assert refusal.diagnostic.fields == GAP
    function = "test_a_refusal_knows_its_code_evidence_and_site"
    assert refusal.diagnostic.site == f"{__name__}:{function}:{line}"
    assert refusal.diagnostic.seq is None


def test_a_notice_comes_back_and_is_not_raised(seen: list[Diagnostic]) -> None:
    noticed = notice("TRY-0003", fine=False)
    assert isinstance(noticed, Diagnostic)
    assert noticed.severity is Severity.WARNING
    assert seen == [noticed]


def test_a_refusal_is_recorded_where_it_is_made(seen: list[Diagnostic]) -> None:
    refusal = refuse("TRY-0005", n=3)
    assert seen == [refusal.diagnostic]


def test_the_entry_of_the_innermost_ledger_is_the_one_named() -> None:
    numbers: list[Any] = [lambda _: 7, lambda _: None, lambda _: 9, lambda _: None]
    sinks.extend(numbers)
    try:
        assert notice("TRY-0002").seq == 9
    finally:
        for sink in numbers:
            sinks.remove(sink)


def test_a_sink_that_refuses_is_not_asked_to_record_that() -> None:
    calls = []

    def full(diagnostic: Diagnostic) -> int:
        calls.append(diagnostic.code)
        raise refuse("TRY-0005", n=0)

    sinks.append(full)
    try:
        with pytest.raises(Refusal) as caught:
            notice("TRY-0002")
    finally:
        sinks.remove(full)
    assert caught.value.code == "TRY-0005"
    assert calls == ["TRY-0002"]


# ------------------------------------------------------------------ misuse


@pytest.mark.parametrize("code", ["TRY-9999", "IGM-1203", "try-0001", "", "TRY", "TRY-0001 "])
@pytest.mark.parametrize("verb", [refuse, notice])
def test_an_unregistered_code_is_refused(code: str, verb: Any) -> None:
    assert refused("GATE-0101", code, verb=verb)["code"] == code


@pytest.mark.parametrize(
    ("fields", "unknown", "missing", "wrong"),
    [
        ({**GAP, "gap": 1.0}, ["gap"], [], []),
        ({"patient_name": "x", "indices": []}, [], ["gap_mm"], []),
        ({**GAP, "gap_mm": None}, [], ["gap_mm"], []),
        ({**GAP, "gap_mm": "4"}, [], [], ["gap_mm"]),
        ({**GAP, "gap_mm": True}, [], [], ["gap_mm"]),
        ({**GAP, "indices": [1, 2.5]}, [], [], ["indices"]),
        ({**GAP, "indices": [True]}, [], [], ["indices"]),
        ({**GAP, "indices": 1}, [], [], ["indices"]),
        ({**GAP, "indices": "12"}, [], [], ["indices"]),
        ({**GAP, "header": []}, [], [], ["header"]),
        ({**GAP, "patient_name": 5}, [], [], ["patient_name"]),
        ({"gap": 1, "gap_mm": []}, ["gap"], ["indices", "patient_name"], ["gap_mm"]),
    ],
)
def test_evidence_that_does_not_fit_is_refused(
    fields: dict[str, Any], unknown: list[str], missing: list[str], wrong: list[str]
) -> None:
    evidence = refused("GATE-0106", "TRY-0001", **fields)
    assert (evidence["unknown"], evidence["missing"], evidence["wrong"]) == (
        unknown,
        missing,
        wrong,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"remark": None},
        {"gap_mm": 4},
        {"gap_mm": math.nan},
        {"gap_mm": np.float32(4)},
        {"indices": np.array([1, 2])},
        {"indices": (1, 2)},
        {"indices": range(3)},
        {"header": {"Rows": np.int16(3)}},
    ],
)
def test_evidence_that_fits_once_it_is_json_is_taken(fields: dict[str, Any]) -> None:
    assert refuse("TRY-0001", **{**GAP, **fields}).code == "TRY-0001"


def test_patient_data_is_not_in_the_refusal_of_misfit_evidence() -> None:
    with pytest.raises(Refusal) as caught:
        refuse("TRY-0001", patient_name=["Secretive^Sam"], gap_mm="Secretive^Sam")
    assert "Secretive" not in json.dumps(dict(caught.value.diagnostic.fields))
    assert "Secretive" not in str(caught.value)


@pytest.mark.parametrize(
    ("verb", "code", "state"),
    [
        (notice, "TRY-0001", "refusal"),
        (notice, "TRY-0005", "failure"),
        (refuse, "TRY-0002", "notice"),
        (refuse, "TRY-0003", "warning"),
        (refuse, "TRY-0004", "retired"),
        (notice, "TRY-0004", "retired"),
    ],
)
def test_the_verb_has_to_suit_the_severity(verb: Any, code: str, state: str) -> None:
    evidence = refused("GATE-0107", code, verb=verb)
    assert (evidence["code"], evidence["state"]) == (code, state)
    assert find_code(code).code == code


# ------------------------------------------------------------------ JSON


class Old(str, enum.Enum):  # noqa: UP042 - a library may still have one
    RED = "red"


class Listed(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64("nan"), "NaN"),
        (np.inf, "Infinity"),
        (-np.inf, "-Infinity"),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(3.5), 3.5),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), [[1, 2], [3, 4]]),
        (np.array([1.0, np.nan]), [1.0, "NaN"]),
        (np.array([{"a": np.int64(1)}, None], dtype=object), [{"a": 1}, None]),
        (np.ma.masked_equal([1, 2], 2), [1, None]),
        ({1: (np.float32(1), {"b": np.arange(2)})}, {"1": [1.0, {"b": [0, 1]}]}),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (frozenset({2, 1, "1"}), ["1", 1, 2]),
        (Decimal("2.5"), 2.5),
        (Decimal("NaN"), "NaN"),
        (Fraction(1, 4), 0.25),
        (deque([1, 2]), [1, 2]),
        (UserList(["a"]), ["a"]),
        (range(3), [0, 1, 2]),
        (Path("/a/b"), "/a/b"),
        (date(2026, 1, 2), "2026-01-02"),
        (b"\x00\xff", "b'\\x00\\xff'"),
        (Old.RED, "red"),
        (Severity.NOTICE, "notice"),
        (Listed.ONE, 1),
        (1 + 2j, "(1+2j)"),
        (os.fsdecode(b"caf\xe9.dcm"), "caf\\udce9.dcm"),
        ({os.fsdecode(b"\xff"): 1}, {"\\udcff": 1}),
    ],
)
def test_json_safe(value: Any, expected: Any) -> None:
    safe = json_safe(value)
    assert safe == expected
    assert type(safe) is type(expected)
    json.dumps(safe, ensure_ascii=False, allow_nan=False).encode("utf-8")


def only_plain(value: Any) -> bool:
    if type(value) is list:
        return all(map(only_plain, value))
    if type(value) is dict:
        return all(type(key) is str and only_plain(item) for key, item in value.items())
    return value is None or type(value) in (str, int, float, bool)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.decimals(allow_nan=True).filter(lambda number: not number.is_snan()),
    st.fractions(),
    st.complex_numbers(),
    st.dates(),
    hnp.arrays(
        st.one_of(hnp.scalar_dtypes(), hnp.unicode_string_dtypes()),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers()), inner, max_size=4),
        st.frozensets(st.one_of(st.integers(), st.text(), st.none()), max_size=4),
    ),
    max_leaves=12,
)


@UNHURRIED
@given(NESTED)
def test_everything_becomes_plain_json(value: Any) -> None:
    safe = json_safe(value)
    assert only_plain(safe)
    assert json_safe(safe) == safe
    written = json.dumps(safe, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert json.loads(written) == safe


def test_equal_sets_are_written_alike_in_every_process() -> None:
    program = "from numbat_registries.raising import json_safe; print(json_safe(set('numbat')))"
    written = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert written == {"['a', 'b', 'm', 'n', 't', 'u']\n"}
