"""`numbat-gates` as people, auditors and programs use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from numbat_gates.cli import cli
from numbat_gates.report import schema

TRUE = "check.true('measured', True)"
SECOND = """
[[requirement]]
id = "DEM-R002"
phase = 1
text = "Every slice."
rationale = "Why."
awaits = "clinical-data"
because = "It needs readers."

[[clause]]
id = "DEM-R001.c1"
requirement = "DEM-R001"
text = "On a machine with a GPU."
awaits = "hardware"
because = "There is none here."
"""
RAISES = """
from numbat_registries import load_registry
with check.refuses("GATE-0102", "unknown registry"):
    load_registry("radiology")
"""


def ask(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def answer(*args: str) -> Any:
    return json.loads(ask(*args, "--json").stdout)


@pytest.fixture
def demo(plane: Any) -> Any:
    return plane.requirements(SECOND).gate(RAISES).announce()


def as_process(plane: Any, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "numbat_gates", *args],
        env=os.environ | {"PYTHONPATH": str(plane.root)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


# ---------------------------------------------------------------------- run


def test_a_run_as_people_read_it(demo: Any) -> None:
    result = ask("run", "demo")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert any(line.split()[:3] == ["PASS", "DEM-G01", "1/1"] for line in lines)
    assert "Clauses not discharged: 2 (1 awaits clinical-data, 1 awaits hardware)" in lines
    assert any("DEM-R002" in line and "awaits clinical-data" in line for line in lines)
    assert any("1 of" in line and "codes raised and asserted" in line for line in lines)
    assert lines[-1].startswith("PASS  demo: 1 of 1 checks passed in 1 gate,")
    assert "\x1b" not in result.stdout
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize(
    ("body", "word", "code"),
    [
        (TRUE, "PASS", 0),
        ("check.at_most('residual', 0.2, 0.1, 'mm')", "FAIL", 1),
        ("check.skip('peer', 'not installed')", "NOT RUN", 3),
        ("pass", "NOT RUN", 3),
        ("raise KeyError('spacing')", "ERROR", 5),
    ],
)
def test_the_exit_status_is_the_verdict(plane: Any, body: str, word: str, code: int) -> None:
    plane.requirements().gate(body).announce()
    result = ask("run", "demo")
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1].startswith(f"{word}  demo")


def test_a_failing_check_shows_measured_against_required(plane: Any) -> None:
    body = "check.close('affine', measured=[1.0, 2.5], required=[1.0, 2.0], atol=0.1, unit='mm')"
    plane.requirements().gate(body).announce()
    text = ask("run", "demo").stdout
    assert "✗ affine" in text
    assert "measured [1, 2.5] mm" in text
    assert "required [1, 2] ± 0.1 mm" in text
    assert "largest difference 0.5 at [1]" in text


def test_many_failing_checks_are_counted_and_not_all_printed(plane: Any) -> None:
    plane.requirements().gate("for n in range(50):\n    check.equal(f'row {n}', n, -1)").announce()
    text = ask("run", "demo").stdout
    assert text.count("✗") == 12
    assert "and 38 more failing checks" in text


def test_a_run_as_programs_read_it(demo: Any) -> None:
    report = answer("run", "demo")
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert (report["verdict"], report["exit_code"], report["version"]) == ("PASS", 0, "1.2")


def test_a_run_in_a_process_of_its_own(demo: Any) -> None:
    done = as_process(demo, "run", "demo", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["plane"] == "demo"
    assert as_process(demo, "run", "demo", "--fast").returncode == 2
    assert as_process(demo, "run", "radiology").returncode == 2


def test_a_report_folder_holds_the_report_and_its_ledger(demo: Any, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    assert ask("run", "demo", "--report", str(folder)).exit_code == 0
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (folder / report["ledger"]["file"]).is_file()
    again = ask("run", "demo", "--report", str(folder))
    assert again.exit_code == 0, again.output


def test_a_key_without_a_report_is_malformed(demo: Any, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("x")
    assert ask("run", "demo", "--key", str(key)).exit_code == 2
    assert ask("run", "demo", "--pdf").exit_code == 2


def test_an_unknown_plane_names_the_known_ones(demo: Any) -> None:
    result = ask("run", "radiology")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "demo" in result.stderr
    assert "demo" in answer("run", "radiology")["fields"]["known"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("run", "demo", "--gate", "DEM-G99"), "GATE-0903"),
        (("run", "demo", "--phase", "9"), "GATE-0904"),
        (("run", "demo", "--phase", "one"), "GATE-0902"),
        (("run",), "GATE-0902"),
        (("explain", "IMG-X001"), "GATE-0905"),
        (("explain", "GATE-9999"), "GATE-0905"),
        (("list", "radiology"), "GATE-0901"),
        (("matrix", "radiology"), "GATE-0901"),
        (("coverage", "radiology"), "GATE-0901"),
    ],
)
def test_malformed_requests_are_exit_2_with_a_code(
    demo: Any, args: tuple[str, ...], code: str
) -> None:
    result = ask(*args, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["code"] == code


def test_a_plane_without_requirements_is_not_run(plane: Any) -> None:
    plane.announce()
    result = ask("run", "demo")
    assert result.exit_code == 3
    assert "has no requirements yet" in result.stdout
    assert answer("run", "demo")["verdict"] == "NOT_RUN"


def test_requirements_that_contradict_themselves_are_refused(plane: Any) -> None:
    plane.requirements(SECOND + SECOND).announce()
    assert ask("run", "demo").exit_code == 4


# ---------------------------------------------------------------------- list and explain


def test_the_list_counts_what_the_plane_has(demo: Any) -> None:
    (row,) = [row for row in answer("list")["planes"] if row["plane"] == "demo"]
    assert (row["gates"], row["requirements"], row["clauses"], row["phases"]) == (1, 2, 1, [1])
    assert row["codes"] > 0
    assert "demo" in ask("list").stdout


def test_a_plane_that_cannot_be_loaded_is_listed_and_harms_no_other(demo: Any) -> None:
    demo.write("plane.py", "raise RuntimeError('broken')\n")
    rows = {row["plane"]: row for row in answer("list")["planes"]}
    assert "broken" in rows["demo"]["fault"]
    assert "gates" in rows
    assert "cannot be loaded" in ask("list").stdout
    assert ask("run", "demo").exit_code == 4


def test_a_plane_is_described_without_running_its_gates(demo: Any) -> None:
    demo.gate(TRUE, before="raise RuntimeError('imported')")
    found = answer("list", "demo")
    assert [gate["id"] for gate in found["gates"]] == ["DEM-G01"]
    assert [item["gates"] for item in found["requirements"]] == [["DEM-G01"], []]
    text = ask("list", "demo").stdout
    assert "awaits clinical-data" in text


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        ("GATE-0901", "code", "unknown-plane"),
        ("gate-0901", "code", "unknown-plane"),
        ("DEM-G01", "gate", "--gate DEM-G01"),
        ("DEM-R001", "requirement", "A lost file is a lost slice."),
        ("DEM-R001.c1", "requirement", "There is none here."),
        ("DEM-R002", "requirement", "It needs readers."),
    ],
)
def test_everything_with_an_id_has_a_page(demo: Any, asked: str, kind: str, says: str) -> None:
    result = ask("explain", asked)
    assert result.exit_code == 0
    assert says in result.stdout
    assert answer("explain", asked)["kind"] == kind


# ---------------------------------------------------------------------- matrix and coverage


def test_the_matrix_has_a_row_for_each_check_and_each_gap(demo: Any) -> None:
    rows = answer("matrix", "demo")["rows"]
    told = [(row["requirement"], row["gate"], row["check"], bool(row["gap"])) for row in rows]
    assert told == [
        ("DEM-R001", "DEM-G01", "unknown registry", False),
        ("DEM-R001.c1", None, None, True),
        ("DEM-R002", None, None, True),
    ]
    gaps = answer("matrix", "demo", "--gaps")["rows"]
    assert [row["requirement"] for row in gaps] == ["DEM-R001.c1", "DEM-R002"]
    assert "2 requirements, 3 rows, 2 of them gaps" in ask("matrix", "demo").stdout


@pytest.mark.parametrize(
    ("body", "gap"),
    [
        ("pass", "it made no check"),
        ("check.skip('peer', 'not installed')", "skipped: not installed"),
        ("raise KeyError('spacing')", "it broke"),
        ("from numbat_gates import NotRun\nraise NotRun('no GPU')", "no GPU"),
    ],
)
def test_a_gate_that_measured_nothing_is_a_gap(plane: Any, body: str, gap: str) -> None:
    plane.requirements().gate(body).announce()
    (row,) = answer("matrix", "demo")["rows"]
    assert gap in row["gap"]


def test_coverage_fails_while_a_code_is_not_asserted(demo: Any) -> None:
    result = ask("coverage", "demo")
    assert result.exit_code == 1
    assert "GATE-0102  DEM-G01  unknown registry" in result.stdout
    found = answer("coverage", "demo")
    assert list(found["covered"]) == ["GATE-0102"]
    assert "GATE-0901" in found["uncovered"]


def test_coverage_passes_when_every_code_is_asserted(
    demo: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = answer("run", "demo")
    report["coverage"]["uncovered"] = []
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert ask("coverage", "demo", "--report", str(path)).exit_code == 0
    assert ask("matrix", "demo", "--report", str(path)).exit_code == 0


def test_a_report_of_another_plane_is_malformed(demo: Any, tmp_path: Path) -> None:
    report = answer("run", "demo")
    report["plane"] = "other"
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert ask("coverage", "demo", "--report", str(path)).exit_code == 2


# ---------------------------------------------------------------------- corpus


def test_corpus_sets_are_listed_fetched_and_digested(demo: Any, tmp_path: Path) -> None:
    made = tmp_path / "made" / "demo" / "scans"
    made.mkdir(parents=True)
    (made / "a.dcm").write_bytes(b"a")
    digest = ask("corpus", "digest", str(made)).stdout.strip()
    demo.write(
        "corpus.toml",
        f"""
        [[set]]
        name = "demo/scans"
        source = "made by the tests"
        commit = "none"
        licence = "CC0-1.0"
        sha256 = "{digest}"
        """,
    )
    root = str(tmp_path / "corpus")
    assert answer("corpus", "list")["sets"][0]["state"] == "absent"
    fetched = answer("corpus", "fetch", "demo/scans", "--from", str(tmp_path / "made"))
    assert fetched["sets"][0]["name"] == "demo/scans"
    assert answer("corpus", "list")["sets"][0]["state"] == "present"
    assert ask("corpus", "fetch", "demo/scans", "--into", root).exit_code == 4
    assert ask("corpus", "fetch", "demo/typo").exit_code == 4
    assert ask("corpus", "fetch").exit_code == 2
    assert ask("corpus", "fetch", "demo/scans", "--all").exit_code == 2
    assert ask("corpus").exit_code == 2


# ---------------------------------------------------------------------- the command as a whole


def every_command(command: click.Command, path: str = "") -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    return [
        found
        for name in command.list_commands(context)
        for found in every_command(command.get_command(context, name), f"{path} {name}".strip())  # type: ignore[arg-type]
    ]


def test_every_verb_has_json_help_and_exit_statuses() -> None:
    commands = dict(every_command(cli))
    assert {"run", "list", "matrix", "coverage", "explain", "corpus list"} <= set(commands)
    for name, command in commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, name
        assert command.help, name


def test_listing_imports_nothing_heavy(demo: Any) -> None:
    code = (
        "import sys\nfrom numbat_gates.cli import cli\n"
        "try:\n    cli.main(['list', '--json'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'jinja2', 'cryptography', 'jsonschema', 'numpy', 'pydicom', 'nibabel', 'rich'}\n"
        "sys.stderr.write(repr(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(demo.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[]"
