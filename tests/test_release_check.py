"""The release check counts rightly, and tells a wheel that is not what the tree holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import every_gate
import release_check
from release_check import Counts, counted_in_tree
from workspace import Member, members

GATES = """
@gate("X-G01", phase=1, discharges=["X-R001"], title="…")
def one(check): ...

@gate("X-G02", phase=1, discharges=["X-R002"], title="…")
def two(check): ...

def gate_of_nothing(gate): ...
"""


def test_a_plane_is_counted_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "planes" / "dental" / "src" / "numbat_dental"
    (package / "gates").mkdir(parents=True)
    (package / "gates" / "teeth.py").write_text(GATES)
    (package / "requirements.toml").write_text(
        "".join(f'[[requirement]]\nid = "X-R{number:03}"\n' for number in (1, 2, 3))
    )
    (tmp_path / "registries").mkdir()
    (tmp_path / "registries" / "dental.json").write_text(
        json.dumps({"codes": [{}, {}, {}, {}, {"retired_in": "0.1"}]})
    )
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    member = Member(
        path=tmp_path / "planes" / "dental",
        distribution="numbat-dental",
        package="numbat_dental",
        dependencies=(),
        extras=(),
        packages=("numbat_dental",),
        plane="dental",
    )
    assert counted_in_tree(member) == Counts(requirements=3, gates=2, codes=4)


def test_a_plane_that_is_not_built_has_nothing() -> None:
    unbuilt = [m for m in members() if m.plane and not (m.source / "requirements.toml").exists()]
    assert {counted_in_tree(member) for member in unbuilt} <= {Counts(0, 0, 0)}


@pytest.mark.installed
def test_a_wheel_that_lost_a_gate_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_one_more_gate(member: Member) -> Counts:
        counts = counted_in_tree(member)
        return replace(counts, gates=counts.gates + (member.plane == "imaging"))

    monkeypatch.setattr(release_check, "counted_in_tree", with_one_more_gate)
    assert release_check.main(["--json"]) == release_check.FAIL
    rows = {row["distribution"]: row for row in json.loads(capsys.readouterr().out)}
    faults = {name: row["faults"] for name, row in rows.items() if row["faults"]}
    assert list(faults) == ["numbat-imaging"]
    (fault,) = faults["numbat-imaging"]
    assert "gates, the tree has" in fault


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 3, 0], 3), ([3, 1, 2], 1), ([0, 5, 1], 5), ([], 3), ([0, 2, 3], 2)],
)
def test_every_suite_counts_toward_one_exit_code(codes: list[int], expected: int) -> None:
    assert every_gate.exit_code(codes) == expected
