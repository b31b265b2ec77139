"""Checks: what passes, what fails, what is refused, and what reaches the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numbat_gates.checks import Check, input_name
from numbat_gates.digests import digest_bytes, digest_file
from numbat_gates.planes import FRAMEWORKS
from numbat_gates.registration import Gate
from numbat_gates.requirements import parse_requirements
from numbat_gates.verdicts import NotRun, Verdict
from numbat_ledger import activate, coverage, read_entries
from numbat_registries import Refusal, find_code, load_registry, refuse

CLAUSES = [
    {
        "id": f"DEM-R001.c{number}",
        "requirement": "DEM-R001",
        "text": "A part.",
        "awaits": awaits,
        "because": "Not here.",
    }
    for number, awaits in enumerate(("corpus", "hardware", "clinical-data"), start=1)
]
REQUIREMENT = {"id": "DEM-R001", "phase": 1, "text": "Every file.", "rationale": "Or one is lost."}


@pytest.fixture
def check() -> Check:
    requirements = parse_requirements(
        {
            "phase": {"1": {"title": "Files"}},
            "requirement": [REQUIREMENT, REQUIREMENT | {"id": "DEM-R002"}],
            "clause": [*CLAUSES, CLAUSES[0] | {"id": "DEM-R002.c1", "requirement": "DEM-R002"}],
        },
        file="requirements.toml",
    )
    gate = Gate(
        id="DEM-G01", phase=1, discharges=("DEM-R001",), title="Files", module="demo", line=1
    )
    return Check(gate, plane=FRAMEWORKS, requirements=requirements)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "ledger.jsonl"
    with activate(path):
        yield path


def last(check: Check) -> Any:
    return check.results[-1]


# ---------------------------------------------------------------------- measurements


def test_a_check_says_whether_it_passed_and_keeps_what_it_saw(check: Check) -> None:
    assert check.equal("rows", 512, 512) is True
    assert check.equal("rows", 511, 512) is False
    assert last(check).name == "rows #2"
    assert (last(check).measured, last(check).required) == (511, 512)
    assert last(check).verdict is Verdict.FAIL


def test_close_is_within_the_tolerance_and_not_a_hair_beyond(check: Check) -> None:
    assert check.close("edge", measured=1.5, required=1.0, atol=0.5, unit="mm")
    assert not check.close("past", measured=1.5000001, required=1.0, atol=0.5, unit="mm")
    assert (last(check).tolerance, last(check).unit) == (0.5, "mm")
    grid = np.zeros((2, 3))
    grid[1, 2] = 0.25
    assert not check.close("grid", measured=grid, required=np.zeros((2, 3)), atol=0.1)
    assert last(check).detail == "largest difference 0.25 at [1, 2]"


def test_nothing_is_close_to_an_undefined_number(check: Check) -> None:
    assert not check.close("nan", measured=math.nan, required=math.nan, atol=math.inf)
    assert not check.at_most("nan", math.nan, 1.0)
    assert not check.at_least("nan", math.nan, 1.0)
    assert not check.at_most("limit", 1.0, math.nan)


def test_bounds_hold_at_the_bound(check: Check) -> None:
    assert check.at_most("time", 2, 2, "s")
    assert not check.at_most("time", 2.1, 2, "s")
    assert check.at_least("share", np.float32(0.5), 0.5)
    assert not check.at_least("share", 0.49, 0.5)


@pytest.mark.parametrize("condition", [[False], "no", 1, None, (), np.array([True])])
def test_a_condition_that_is_no_boolean_is_refused(check: Check, condition: Any) -> None:
    with pytest.raises(Refusal) as caught:
        check.true("measured", condition)
    assert caught.value.code == "GATE-0401"
    assert not check.results


@pytest.mark.parametrize(
    "digest", ["", "c36a72e9052419a0", "sha256:" + 63 * "0", "md5:" + 64 * "0"]
)
def test_an_input_is_bound_by_a_digest_alone(check: Check, digest: str) -> None:
    with pytest.raises(Refusal) as caught:
        check.note_input("file:answers", digest)
    assert caught.value.code == "GATE-0405"
    assert caught.value.diagnostic.fields["digest"] == digest
    assert check.inputs == {}


def test_the_booleans_of_numpy_are_booleans(check: Check) -> None:
    assert check.true("yes", np.bool_(True))
    assert not check.true("no", np.array([1, 2]).sum() == 4, measured=3, required=4)


# ---------------------------------------------------------------------- refusals


def test_the_expected_code_passes_and_is_asserted(check: Check, ledger: Path) -> None:
    with check.refuses("GATE-0102", "an unknown registry") as caught:
        load_registry("radiology")
    assert last(check).verdict is Verdict.PASS
    assert caught.diagnostic is not None
    assert caught.diagnostic.fields["name"] == "radiology"
    found = coverage(read_entries(ledger), load_registry("gates"))
    assert found.covered == {"GATE-0102": (("DEM-G01", "an unknown registry"),)}


def other_refusal() -> None:
    load_registry("radiology")


def no_refusal() -> None:
    load_registry("gates")


def broken() -> None:
    raise KeyError("DOE^JANE")


@pytest.mark.parametrize(
    ("act", "measured"),
    [(other_refusal, "GATE-0102"), (no_refusal, None), (broken, "KeyError")],
)
def test_anything_else_fails_and_asserts_nothing(
    check: Check, ledger: Path, act: Any, measured: str | None
) -> None:
    with check.refuses("GATE-0101"):
        act()
    assert (last(check).verdict, last(check).measured) == (Verdict.FAIL, measured)
    assert "DOE" not in last(check).detail
    assert not coverage(read_entries(ledger), load_registry("gates")).covered


def test_a_raise_that_no_check_expected_covers_nothing(check: Check, ledger: Path) -> None:
    with pytest.raises(Refusal):
        load_registry("radiology")
    # The same code, raised again and swallowed before the block ends: the block saw no refusal.
    with check.refuses("GATE-0102"), suppress(Refusal):
        load_registry("radiology")
    assert last(check).verdict is Verdict.FAIL
    assert not coverage(read_entries(ledger), load_registry("gates")).covered


def test_a_code_that_is_not_registered_cannot_be_expected(check: Check) -> None:
    with pytest.raises(Refusal) as caught:
        check.refuses("IMG-9999")
    assert caught.value.code == "GATE-0101"


def test_not_run_and_interrupts_leave_the_block(check: Check) -> None:
    for kind in (NotRun("no tool"), KeyboardInterrupt()):
        with pytest.raises(type(kind)), check.refuses("GATE-0102"):
            raise kind
    assert not check.results


def test_a_refusal_of_another_process_is_asserted_too(check: Check, ledger: Path) -> None:
    with (
        ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool,
        check.refuses("GATE-0101", "elsewhere"),
    ):
        pool.submit(find_code, "IMG-9999").result()
    assert last(check).verdict is Verdict.PASS
    found = coverage(read_entries(ledger), load_registry("gates"))
    assert found.covered == {"GATE-0101": (("DEM-G01", "elsewhere"),)}


def test_a_refusal_inside_a_nested_ledger_is_asserted_in_the_outer_one(
    check: Check, ledger: Path, tmp_path: Path
) -> None:
    with check.refuses("GATE-0102", "inner run"), activate(tmp_path / "inner.jsonl"):
        find_code("GATE-0101")
        load_registry("radiology")
    found = coverage(read_entries(ledger), load_registry("gates"))
    assert found.covered == {"GATE-0102": (("DEM-G01", "inner run"),)}


def test_checks_work_without_a_ledger(check: Check) -> None:
    with check.refuses("GATE-0102"):
        load_registry("radiology")
    assert last(check).verdict is Verdict.PASS


# ---------------------------------------------------------------------- what is not measured


def test_a_skip_is_not_run(check: Check) -> None:
    check.skip("peer", "dcm2niix is not installed")
    assert last(check).verdict is Verdict.NOT_RUN
    assert check.not_run == ["peer: dcm2niix is not installed"]


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("DEM-R001.c1", None),
        ("DEM-R001.c2", None),
        ("DEM-R001.c3", "GATE-0403"),
        ("DEM-R001.c9", "GATE-0402"),
        ("DEM-R002.c1", "GATE-0402"),
        ("DEM-R001", "GATE-0402"),
    ],
)
def test_only_own_clauses_that_a_machine_settles_are_discharged(
    check: Check, clause: str, code: str | None
) -> None:
    if code is None:
        check.discharge(clause)
        assert check.clauses == {clause: True}
        return
    with pytest.raises(Refusal) as caught:
        check.discharge(clause)
    assert caught.value.code == code


# ---------------------------------------------------------------------- inputs


def test_inputs_are_bound_by_digest(check: Check, tmp_path: Path) -> None:
    path = tmp_path / "scan.dcm"
    path.write_bytes(b"DICM")
    assert check.data(path) == path
    assert check.data(b"header") == b"header"
    assert check.inputs["file:scan.dcm"] == digest_file(path)
    assert digest_bytes(b"header") in check.inputs.values()


def test_two_inputs_of_one_name_are_both_kept(check: Check, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        path = tmp_path / folder / "scan.dcm"
        path.parent.mkdir()
        path.write_text(folder)
        check.data(path)
    assert len(check.inputs) == 2


def test_an_installed_file_is_named_by_its_place() -> None:
    assert input_name(Path(np.__file__)) == "installed:numpy/__init__.py"


# ---------------------------------------------------------------------- coverage of the run


def test_coverage_needs_the_whole_run(check: Check, ledger: Path) -> None:
    check.whole_run = False
    with pytest.raises(NotRun):
        check.coverage()


def test_covers_registry_fails_for_each_code_that_no_check_asserted(
    check: Check, ledger: Path
) -> None:
    with check.refuses("GATE-0102"):
        load_registry("radiology")
    with pytest.raises(Refusal):
        raise refuse("GATE-0401", check="x", type="list")
    check.results.clear()
    check.covers_registry()
    verdicts = {result.name.split()[0]: result.verdict for result in check.results}
    assert verdicts["GATE-0102"] is Verdict.PASS
    assert verdicts["GATE-0401"] is Verdict.FAIL
    assert len(check.results) == len(load_registry("gates").live) + 1
