"""Verification of reports that were really made: a small plane is run, and then changed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from numbat_gates.cli_reports import verification_lines, write_reports
from numbat_gates.command import command_group
from numbat_gates.keys import KeyFiles, keygen
from numbat_gates.planes import find_plane
from numbat_gates.report import build
from numbat_gates.runner import run_plane
from numbat_gates.verdicts import Verdict
from numbat_gates.verify import Verification, verify
from numbat_registries import Refusal

REQUIREMENTS = """
[phase.1]
title = "The toy counts"

[[requirement]]
id = "TOY-R001"
phase = 1
text = "One and one is two."
rationale = "Everything else rests on it."

[[requirement]]
id = "TOY-R002"
phase = 1
text = "Nobody counts below zero."
rationale = "There is nothing there."
"""
GATE = """
from pathlib import Path
from numbat_gates import gate
from numbat_toy import add


@gate("TOY-G01", phase=1, discharges=["TOY-R001"], title="The toy adds")
def adding(check):
    check.equal("one and one", add(1, 1), 2)
    check.data(Path(__file__).parents[1] / "table.txt")
    check.data(Path("DATA"))
"""
OTHER = """
from numbat_gates import gate


@gate("TOY-G02", phase=1, discharges=["TOY-R002"], title="Nothing is below zero")
def below(check):
    check.at_least("the least number", 0, 0)
    with check.refuses("GATE-0607"):
        from numbat_gates.strict_json import canonical_json

        canonical_json(float("nan"))
"""


@dataclass(frozen=True)
class Toy:
    """An installed plane, and a folder with a report of its run."""

    package: Path
    folder: Path
    key: KeyFiles

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.package / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def edit_report(self, change: Callable[[dict[str, Any]], None]) -> None:
        path = self.folder / "report.json"
        report = json.loads(path.read_text())
        change(report)
        path.write_text(json.dumps(report))

    def run(self, folder: Path, **options: Any) -> dict[str, Any]:
        for name in [name for name in sys.modules if name.startswith("numbat_toy")]:
            del sys.modules[name]
        run = run_plane(find_plane("toy"), **options)
        report = build(run)
        write_reports(report, folder, ledger_file=run.ledger_file, key=self.key.private)
        return report


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    site = tmp_path / "site-packages"
    package = site / "numbat_toy"
    (package / "gates").mkdir(parents=True)
    (package / "__init__.py").write_text("def add(a, b):\n    return a + b\n")
    (package / "plane.py").write_text(
        "from numbat_gates.planes import Plane\n"
        'PLANE = Plane(name="toy", package="numbat_toy", registry="gates")\n'
    )
    (package / "table.txt").write_text("1 2 3\n")
    data = tmp_path / "outside.txt"
    data.write_text("4 5 6\n")
    (package / "requirements.toml").write_text(REQUIREMENTS)
    (package / "gates" / "__init__.py").write_text("")
    (package / "gates" / "adding.py").write_text(GATE.replace("DATA", data.as_posix()))
    (package / "gates" / "below.py").write_text(OTHER)
    info = site / "numbat_toy-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbat-toy\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[numbat.planes]\ntoy = numbat_toy.plane:PLANE\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Toy(package=package, folder=tmp_path / "report", key=keygen(tmp_path / "key"))
    report = made.run(made.folder)
    assert report["verdict"] == "PASS"
    yield made
    for name in [name for name in sys.modules if name.startswith("numbat_toy")]:
        del sys.modules[name]


def parts(found: Verification) -> list[tuple[str, str, str]]:
    return [(item.part, item.name, item.state) for item in found.stale]


def refused(*given: Any, **options: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        verify(*given, **options)
    return caught.value


def test_a_fresh_signed_report_is_verified_whole(toy: Toy) -> None:
    found = verify(toy.folder / "report.json", key=toy.key.public)
    assert (found.recorded, found.verdict, found.stale) == (Verdict.PASS, Verdict.PASS, ())
    assert found.signature.state == "valid"
    assert found.signature.keyids == (toy.key.keyid,)
    assert found.gates == {"TOY-G01": Verdict.PASS, "TOY-G02": Verdict.PASS}
    assert [(note.part, note.name) for note in found.notes] == [("input", "file:outside.txt")]
    assert found.verdict.exit_code == 0


def test_without_a_key_the_signature_is_said_to_be_unchecked(toy: Toy) -> None:
    found = verify(toy.folder)
    assert found.signature.state == "unchecked"
    assert any("not checked" in line for line in verification_lines(found))


def test_an_unsigned_report_is_verified_and_called_unsigned(toy: Toy) -> None:
    (toy.folder / "report.dsse.json").unlink()
    found = verify(toy.folder)
    assert (found.signature.state, found.verdict) == ("unsigned", Verdict.PASS)
    assert any("unsigned" in line for line in verification_lines(found))


def test_a_gate_edited_after_the_run_is_not_run(toy: Toy) -> None:
    toy.edit("gates/adding.py", "add(1, 1), 2", "add(1, 1), add(1, 1)")
    found = verify(toy.folder, key=toy.key.public)
    assert parts(found) == [("gate", "TOY-G01", "changed")]
    assert found.gates == {"TOY-G01": Verdict.NOT_RUN, "TOY-G02": Verdict.PASS}
    assert (found.recorded, found.verdict) == (Verdict.PASS, Verdict.NOT_RUN)
    assert found.verdict.exit_code == 3


def test_a_gate_removed_or_added_after_the_run_is_named(toy: Toy) -> None:
    toy.edit("gates/below.py", "TOY-G02", "TOY-G03")
    found = verify(toy.folder)
    assert parts(found) == [("gate", "TOY-G02", "removed"), ("gate", "TOY-G03", "added")]
    assert found.gates["TOY-G02"] is found.gates["TOY-G03"] is Verdict.NOT_RUN
    assert found.gates["TOY-G01"] is Verdict.PASS
    assert found.verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("__init__.py", "a + b", "a - -b", ("code", "numbat_toy/__init__.py", "changed")),
        ("requirements.toml", "is two", "is three", ("requirements", "toy", "changed")),
    ],
)
def test_code_and_requirement_texts_void_every_gate(
    toy: Toy, name: str, old: str, new: str, expected: tuple[str, str, str]
) -> None:
    toy.edit(name, old, new)
    found = verify(toy.folder)
    assert parts(found) == [expected]
    assert set(found.gates.values()) == {Verdict.NOT_RUN}
    assert found.verdict is Verdict.NOT_RUN


def test_a_module_that_is_new_or_gone_is_named(toy: Toy) -> None:
    (toy.package / "extra.py").write_text("")
    assert parts(verify(toy.folder)) == [("code", "numbat_toy/extra.py", "added")]
    (toy.package / "extra.py").unlink()
    (toy.package / "plane.py").rename(toy.package / "plain.py")
    (toy.package / "plain.py").rename(toy.package / "plane.py")
    assert parts(verify(toy.folder)) == []


def test_changed_input_voids_the_gates_that_used_it(toy: Toy) -> None:
    toy.edit("table.txt", "3", "4")
    found = verify(toy.folder)
    assert parts(found) == [("input", "installed:numbat_toy/table.txt", "changed")]
    assert found.gates == {"TOY-G01": Verdict.NOT_RUN, "TOY-G02": Verdict.PASS}


def test_another_registry_or_framework_voids_every_gate(toy: Toy) -> None:
    def change(report: dict[str, Any]) -> None:
        report["digests"]["registry"] = "sha256:" + "0" * 64
        report["digests"]["frameworks"]["numbat_gates/gone.py"] = "sha256:" + "0" * 64

    toy.edit_report(change)
    found = verify(toy.folder)
    assert parts(found) == [
        ("framework", "numbat_gates/gone.py", "removed"),
        ("registry", "toy", "changed"),
    ]
    assert set(found.gates.values()) == {Verdict.NOT_RUN}


def test_a_plane_that_is_not_installed_proves_nothing(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(toy.package.parent)])
    found = verify(toy.folder, key=toy.key.public)
    assert parts(found) == [("plane", "toy", "absent")]
    assert found.verdict is Verdict.NOT_RUN
    assert found.signature.state == "valid"


def test_a_failure_that_still_holds_stays_a_failure(toy: Toy) -> None:
    toy.edit("gates/below.py", "0, 0)", "-1, 0)")
    toy.run(toy.folder)
    assert verify(toy.folder).verdict is Verdict.FAIL
    toy.edit("gates/adding.py", "one and one", "1 and 1")
    found = verify(toy.folder)
    assert found.gates == {"TOY-G01": Verdict.NOT_RUN, "TOY-G02": Verdict.FAIL}
    assert found.verdict is Verdict.FAIL


@pytest.mark.parametrize("change", [b" ", b"\n"])
def test_a_report_edited_after_signing_is_refused(toy: Toy, change: bytes) -> None:
    path = toy.folder / "report.json"
    path.write_bytes(path.read_bytes() + change)
    assert verify(path).verdict is Verdict.PASS
    refusal = refused(path, key=toy.key.public)
    assert refusal.code == "GATE-0606"
    assert refusal.diagnostic.fields["file"] == "report.json"


@pytest.mark.parametrize(
    "name", ["report.html", "report.sarif", "report.junit.xml", "ledger.jsonl"]
)
def test_a_rendering_or_ledger_edited_after_signing_is_refused(toy: Toy, name: str) -> None:
    path = toy.folder / name
    path.write_bytes(path.read_bytes().replace(b"PASS", b"pass") + b"\n")
    refusal = refused(toy.folder, key=toy.key.public)
    assert refusal.code == "GATE-0606"
    assert refusal.diagnostic.fields["file"] == name


def test_a_rendering_that_was_not_passed_on_is_noted(toy: Toy) -> None:
    (toy.folder / "report.html").unlink()
    found = verify(toy.folder, key=toy.key.public)
    assert ("file", "report.html", "unchecked") in [(n.part, n.name, n.state) for n in found.notes]
    assert found.verdict is Verdict.PASS


def test_a_valid_signature_over_another_report_is_refused(toy: Toy, tmp_path: Path) -> None:
    toy.run(tmp_path / "other")
    other = tmp_path / "other" / "report.dsse.json"
    assert verify(tmp_path / "other", key=toy.key.public).signature.state == "valid"
    assert refused(toy.folder, key=toy.key.public, envelope=other).code == "GATE-0605"
    shutil.copy(other, toy.folder / "report.dsse.json")
    assert refused(toy.folder, key=toy.key.public).code == "GATE-0605"


def test_a_strangers_signature_is_refused(toy: Toy, tmp_path: Path) -> None:
    stranger = keygen(tmp_path / "stranger")
    assert refused(toy.folder, key=stranger.public).code == "GATE-0602"
    both = [toy.key.public, stranger.public]
    assert verify(toy.folder, key=both).signature.keyids == (toy.key.keyid,)
    assert refused(toy.folder, key=both, threshold=2).code == "GATE-0602"


def test_a_deleted_envelope_is_not_let_pass(toy: Toy, tmp_path: Path) -> None:
    (toy.folder / "report.dsse.json").unlink()
    assert refused(toy.folder, key=toy.key.public).code == "GATE-0610"
    assert refused(toy.folder, envelope=tmp_path / "absent.json").code == "GATE-0610"


def without_line(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def torn(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:20]]


@pytest.mark.parametrize(
    ("change", "code"),
    [(without_line, "GATE-0202"), (swapped, "GATE-0202"), (cut, "GATE-0204"), (torn, "GATE-0203")],
)
def test_a_ledger_that_is_not_as_written_is_refused(
    toy: Toy, change: Callable[[list[bytes]], list[bytes]], code: str
) -> None:
    path = toy.folder / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) > 3
    path.write_bytes(b"".join(change(lines)))
    assert refused(toy.folder).code == code
    path.unlink()
    assert refused(toy.folder).code == "GATE-0205"


def fail_a_check(report: dict[str, Any]) -> None:
    report["gates"][0]["checks"][0]["verdict"] = "FAIL"


def miscount(report: dict[str, Any]) -> None:
    report["gates"][0]["total"] += 1


def drop_checks(report: dict[str, Any]) -> None:
    report["gates"][0] |= {"checks": [], "passed": 0, "total": 0}


def hide_a_reason(report: dict[str, Any]) -> None:
    report["gates"][0]["verdict"] = "NOT_RUN"


def reword(report: dict[str, Any]) -> None:
    report |= {"verdict": "FAIL", "exit_code": 1}


def other_exit(report: dict[str, Any]) -> None:
    report["exit_code"] = 1


def phase_only(report: dict[str, Any]) -> None:
    report["phases"][0]["verdict"] = "FAIL"


def more_coverage(report: dict[str, Any]) -> None:
    report["coverage"]["covered"]["GATE-0501"] = [["TOY-G01", "one and one"]]


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        # Some of it the schema sees before.
        (fail_a_check, ("GATE-0501", "GATE-0611")),
        (drop_checks, ("GATE-0501", "GATE-0611")),
        (other_exit, ("GATE-0501", "GATE-0611")),
        (miscount, ("GATE-0611",)),
        (hide_a_reason, ("GATE-0611",)),
        (reword, ("GATE-0611",)),
        (phase_only, ("GATE-0611",)),
        (more_coverage, ("GATE-0611",)),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    toy: Toy, change: Callable[[dict[str, Any]], None], codes: tuple[str, ...]
) -> None:
    toy.edit_report(change)
    assert refused(toy.folder).code in codes


def test_an_input_name_leads_nowhere_else(toy: Toy) -> None:
    def change(report: dict[str, Any]) -> None:
        report["digests"]["inputs"] |= {
            "installed:../outside.txt": "sha256:" + "0" * 64,
            "corpus:/etc/passwd": "sha256:" + "0" * 64,
        }

    toy.edit_report(change)
    found = verify(toy.folder)
    assert found.stale == ()
    assert {"installed:../outside.txt", "corpus:/etc/passwd"} <= {n.name for n in found.notes}


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert refused(path).code == "GATE-0501"
    for text in ("{}", "[]", '{"verdict": "FAIL", "verdict": "PASS"}', "{", "\x00"):
        path.write_text(text)
        assert refused(path).code == "GATE-0501"


def command(capsys: pytest.CaptureFixture[str], *given: str) -> tuple[int, str]:
    lazy = {name: f"numbat_gates.cli_reports:{name}" for name in ("verify", "report", "keygen")}
    with pytest.raises(SystemExit) as ended:
        command_group("numbat-gates", "test", lazy=lazy).main(list(given))
    return int(str(ended.value.code)), capsys.readouterr().out


def test_the_command_ends_with_the_verdict_that_holds_now(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    report, key = str(toy.folder / "report.json"), str(toy.key.public)
    status, out = command(capsys, "verify", report, "--key", key, "--json")
    answer = json.loads(out)
    assert (status, answer["verdict"], answer["signature"]["state"]) == (0, "PASS", "valid")
    toy.edit("gates/adding.py", "one and one", "1 and 1")
    status, out = command(capsys, "verify", report)
    assert status == 3
    assert "gate TOY-G01 changed: voids TOY-G01" in out
    (toy.folder / "report.dsse.json").unlink()
    status, out = command(capsys, "verify", report, "--key", key, "--json")
    assert (status, json.loads(out)["code"]) == (4, "GATE-0610")
    status, out = command(capsys, "verify", report, "--threshold", "0")
    assert status == 2
    status, out = command(capsys, "verify")
    assert status == 2


def test_the_command_renders_again_what_was_signed(
    toy: Toy, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out = command(
        capsys, "report", "render", str(toy.folder), "--html", "--junit", "--sarif",
        "--out", str(tmp_path / "again"), "--json",
    )  # fmt: skip
    assert status == 0
    written = [Path(name) for name in json.loads(out)["files"]]
    assert len(written) == 3
    for path in written:
        assert path.read_bytes() == (toy.folder / path.name).read_bytes()
    status, _ = command(capsys, "report", "render", str(toy.folder))
    assert status == 2


def test_the_command_makes_a_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out = command(capsys, "keygen", str(tmp_path / "key"), "--json")
    assert (status, json.loads(out)["encrypted"]) == (0, False)
    status, out = command(capsys, "keygen", str(tmp_path / "key"), "--json")
    assert (status, json.loads(out)["code"]) == (4, "GATE-0608")
