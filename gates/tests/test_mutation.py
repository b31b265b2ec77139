"""The mutation run on throw-away planes: fates, settings, and judges that hang, die or fork."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from numbat_gates.cli import cli
from numbat_gates.digests import digest_tree
from numbat_gates.mutation import Fate, MutationRun, load_settings, mutate
from numbat_gates.mutation.judging import Bench, judge, try_all
from numbat_gates.mutation.settings import seeded
from numbat_gates.verdicts import ExitCode
from numbat_registries import Refusal

SUMS = """
from functools import cache

LIMIT = 4


def add(a, b):
    return a + b


@cache
def table():
    return {1: 2 * 2}


def countdown(number):
    while number > 0:
        number = number - 1
    return number


def in_a_thread(number):
    return number + 1


def in_a_process(number):
    return number + 2
"""
FIRST = """
from numbat_throwaway import sums
check.equal("sum", sums.add(2, 3), 5)
check.equal("table", sums.table()[1], 4)
"""
SECOND = """
import threading, subprocess, sys
import multiprocessing
from numbat_throwaway import sums
check.equal("table again", sums.table()[1], 4)
found = []
thread = threading.Thread(target=lambda: found.append(sums.in_a_thread(1)))
thread.start()
thread.join()
check.equal("thread", found, [2])
with multiprocessing.get_context("spawn").Pool(1) as pool:
    check.equal("process", pool.map(sums.in_a_process, [1]), [3])
"""
SETTINGS = 'modules = ["sums.py"]\n'


def text(source: str, plane: Any) -> str:
    return source.replace("numbat_throwaway", plane.package)


@pytest.fixture
def sums(plane: Any) -> Any:
    plane.requirements().write("sums.py", SUMS)
    plane.write("mutation.toml", SETTINGS)
    return plane.gate(text(FIRST, plane)).gate(text(SECOND, plane), id="DEM-G02")


def fates(run: MutationRun) -> dict[str, str]:
    return {item.fault.mutated: str(item.fate) for item in run.judgements}


def bench(plane: Any, scratch: Path, **more: Any) -> Bench:
    return Bench(plane.plane, scratch, environment={}, memory_bytes=4 << 30, **more)


def test_each_fault_has_the_fate_that_is_due(sums: Any) -> None:
    before = digest_tree(sums.folder)
    told: list[tuple[str, int, int]] = []
    run = mutate(sums.plane, progress=lambda *what: told.append(what))
    found = fates(run)
    assert found["return a - b"] == Fate.CAUGHT
    assert found["return {1: 2 / 2}"] == Fate.CAUGHT
    assert found["while number >= 0:"] == Fate.NOT_REACHED
    assert found["LIMIT = 5"] == Fate.SURVIVED
    # What only a thread, or a process that the gate starts, runs.
    assert found["return number - 1"] == Fate.CAUGHT
    assert found["return number - 2"] == Fate.CAUGHT
    assert digest_tree(sums.folder) == before
    assert run.silent == {}
    assert set(run.seconds) == {"DEM-G01", "DEM-G02"}
    assert told[-1] == ("seeded faults", len(run.judgements), len(run.judgements))
    caught = next(item for item in run.judgements if item.fault.mutated == "return a - b")
    assert (caught.gates[-1], caught.how) == ("DEM-G01", "FAIL: sum")
    assert json.loads(json.dumps(run.to_dict()))["counted"] == run.counted


def test_a_gate_that_needs_what_another_cached_is_a_judge_too(plane: Any) -> None:
    """Each gate is run by itself: what an earlier one had cached would hide its lines."""
    plane.requirements().write("sums.py", SUMS)
    plane.write("mutation.toml", SETTINGS + 'operators = ["arithmetic"]\n')
    idle = text("from numbat_throwaway import sums\nsums.table()\ncheck.true('x', True)", plane)
    plane.gate(idle).gate(text(FIRST, plane), id="DEM-G02")
    assert fates(mutate(plane.plane))["return {1: 2 / 2}"] == Fate.CAUGHT


def test_the_run_is_the_same_again_and_with_other_workers(sums: Any) -> None:
    one, two = mutate(sums.plane, workers=1), mutate(sums.plane, workers=3)
    assert [i.fault.id for i in one.judgements] == [i.fault.id for i in two.judgements]
    assert fates(one) == fates(two)


def test_samples_and_modules(sums: Any) -> None:
    ids = [fault.id for fault in seeded(sums.plane, load_settings(sums.plane))]
    first = mutate(sums.plane, sample=3, seed=5)
    assert [item.fault.id for item in first.judgements] == [
        item.fault.id for item in mutate(sums.plane, sample=3, seed=5).judgements
    ]
    picked = [item.fault.id for item in first.judgements]
    assert picked == [name for name in ids if name in picked]
    with pytest.raises(Refusal) as caught:
        mutate(sums.plane, module="no_such_module")
    assert caught.value.code == "GATE-0803"


def test_a_declared_fault_is_told_and_not_counted(sums: Any) -> None:
    (limit,) = (
        fault
        for fault in seeded(sums.plane, load_settings(sums.plane))
        if fault.mutated == "LIMIT = 5"
    )
    entries = f'[[equivalent]]\nid = "{limit.id}"\nbecause = "nothing reads it"\n'
    entries += '[[equivalent]]\nid = "000000000000"\nbecause = "it was there once"\n'
    sums.write("mutation.toml", SETTINGS + 'operators = ["constant"]\n' + entries)
    run = mutate(sums.plane)
    (declared,) = run.having(Fate.DECLARED)
    assert (declared.fault.id, declared.how) == (limit.id, "nothing reads it")
    assert run.counted == len(run.judgements) - 1
    assert run.stale == ("000000000000",)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ("", "modules"),
        ("modules = 3", "modules"),
        ('modules = ["sums.py"', "Unclosed"),
        (SETTINGS + "sample = 3", "unknown key sample"),
        (SETTINGS + 'operators = ["geometry"]', "no operator geometry"),
        (SETTINGS + 'gates = "DEM-G01"', "gates"),
        (SETTINGS + "at_least = 90", "at_least"),
        (SETTINGS + "at_least = true", "at_least"),
        (SETTINGS + "[environment]\nA = 1", "environment"),
        (SETTINGS + '[[equivalent]]\nid = "a"', "why"),
        (SETTINGS + '[[equivalent]]\nid = "a"\nbecause = "x"\n' * 2, "twice"),
        ('modules = ["products.py"]', "products.py names no module"),
        ('modules = ["sums.py::product"]', "no faults in product"),
        ('modules = ["numbat_nowhere:*.py"]', "names no module"),
        (SETTINGS + 'gates = ["DEM-G09"]', "DEM-G09"),
    ],
)
def test_settings_are_read_strictly(sums: Any, settings: str, names: str) -> None:
    sums.write("mutation.toml", settings)
    with pytest.raises(Refusal) as caught:
        mutate(sums.plane)
    assert caught.value.code == "GATE-0801"
    assert names in caught.value.diagnostic.fields["reason"]


def test_patterns_name_files_functions_and_other_packages(sums: Any) -> None:
    sums.write("deep/down.py", "X = 1\n")
    sums.write(
        "mutation.toml",
        'modules = ["sums.py::add", "**/down.py", "numbat_ledger:locking.py", "sums.py::table"]\n',
    )
    faults = seeded(sums.plane, load_settings(sums.plane))
    assert {(fault.module, fault.function) for fault in faults} >= {
        (f"{sums.package}.sums", "add"),
        (f"{sums.package}.sums", "table"),
        (f"{sums.package}.deep.down", ""),
        ("numbat_ledger.locking", "write_all"),
    }
    assert "countdown" not in {fault.function for fault in faults}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("check.equal('one', 1, 2)", "GATE-0802"),
        ("raise KeyError('spacing')", "GATE-0802"),
        ("import os; os._exit(0)", "GATE-0802"),
        ("check.skip('a peer', 'absent')", ""),
    ],
)
def test_gates_that_do_not_pass_judge_nothing(sums: Any, body: str, code: str) -> None:
    sums.gate(body, id="DEM-G03")
    if not code:
        run = mutate(sums.plane, sample=1)
        assert run.silent == {"DEM-G03": "NOT_RUN: a peer: absent"}
        return
    with pytest.raises(Refusal) as caught:
        mutate(sums.plane)
    assert caught.value.code == code
    assert caught.value.diagnostic.fields["gates"] == ["DEM-G03"]


def test_a_trial_that_hangs_or_dies_is_an_answer(sums: Any, tmp_path: Path) -> None:
    children = tmp_path / "children"
    sums.gate(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(children)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)",
        id="DEM-G03",
    )
    sums.gate("import os; os.kill(os.getpid(), 9)", id="DEM-G04")
    with judge(bench(sums, tmp_path)) as mine:
        hanging = mine.try_gates(["DEM-G03"], limit_s=3)
        assert (hanging.passed, hanging.how) == (False, "it did not end within 3 s")
        # What the gate had started went with it.
        child = int(children.read_text())
        assert _is_gone(child)
        dying = mine.try_gates(["DEM-G04"], limit_s=60)
        assert (dying.passed, dying.how) == (False, "its process died (killed by signal 9)")
        assert mine.try_gates(["DEM-G01"], limit_s=60).passed
    assert [path for path in tmp_path.iterdir() if path.is_dir() and path.name != "site"] == []


def _is_gone(pid: int) -> bool:
    for _ in range(500):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_a_judge_that_is_stopped_stops_its_child(sums: Any, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    sums.gate(body, id="DEM-G03")

    def trial(mine: Any, gate: str) -> Any:
        if gate == "DEM-G01":
            while not note.exists():
                time.sleep(0.02)
            raise KeyboardInterrupt
        return mine.try_gates([gate], limit_s=600)

    with pytest.raises(KeyboardInterrupt):
        list(try_all(bench(sums, tmp_path), ["DEM-G03", "DEM-G01"], trial, workers=2))
    assert _is_gone(int(note.read_text()))


def test_memory_without_end_is_an_answer(sums: Any, tmp_path: Path) -> None:
    sums.gate("x = bytearray(64 << 30)\ncheck.true('x', True)", id="DEM-G03")
    with judge(bench(sums, tmp_path)) as mine:
        answer = mine.try_gates(["DEM-G03"], limit_s=60)
    assert not answer.passed
    assert "MemoryError" in answer.how


def test_libraries_that_do_not_bear_a_fork_are_not_loaded_before_it(sums: Any) -> None:
    """A gate that fails only for how it is run must not seem to catch everything."""
    sums.root.joinpath("numbat_forkless.py").write_text("import os\nAT_IMPORT = os.getpid()\n")
    body = "import numbat_forkless, os\ncheck.equal('same', numbat_forkless.AT_IMPORT, os.getpid())"
    sums.gate(f"{text(FIRST, sums)}\n{body}").gate(body, id="DEM-G02")
    found = fates(mutate(sums.plane))
    assert found["return a - b"] == Fate.CAUGHT
    assert found["LIMIT = 5"] == Fate.SURVIVED


def test_the_ledger_of_the_caller_hears_nothing(sums: Any, tmp_path: Path) -> None:
    from numbat_ledger import activate, read_entries

    sums.gate("from numbat_registries import load_registry\n"
              "with check.refuses('GATE-0102'):\n    load_registry('x')", id="DEM-G03")  # fmt: skip
    with activate(tmp_path / "ledger.jsonl") as ledger:
        mutate(sums.plane, sample=1)
    assert [entry.kind for entry in read_entries(ledger.path)] == ["open"]


# ---------------------------------------------------------------------- the command


def test_the_command_tells_survivors_and_the_score(sums: Any, tmp_path: Path) -> None:
    sums.announce()
    file = tmp_path / "out" / "mutation.json"
    result = CliRunner().invoke(cli, ["mutate", "demo", "--at-least", "0.1", "--report", str(file)])
    assert result.exit_code == ExitCode.PASS, result.output
    lines = result.stdout.splitlines()
    assert "      - LIMIT = 4" in lines
    assert "      + LIMIT = 5" in lines
    assert any(line.startswith("No gate runs these lines: ") for line in lines)
    assert lines[-1].startswith("PASS  demo: score ")
    report = json.loads(file.read_text(encoding="utf-8"))
    assert report["exit_code"] == 0
    assert report["schema"] == "https://numbat.dev/schemas/mutation/v0.1"
    strict = CliRunner().invoke(cli, ["mutate", "demo", "--at-least", "1", "--json"])
    assert strict.exit_code == ExitCode.FAIL
    assert json.loads(strict.stdout)["score"] == report["score"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_run_leaves_no_process_behind(
    sums: Any, tmp_path: Path, number: signal.Signals
) -> None:
    note = tmp_path / "started"
    body = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    sums.gate(body, id="DEM-G03")
    sums.announce()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    variables = os.environ | {"PYTHONPATH": str(sums.root), "TMPDIR": str(scratch)}
    with subprocess.Popen(
        [sys.executable, "-m", "numbat_gates", "mutate", "demo"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        while not (note.exists() and note.read_text()) and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(number)
        stderr = running.communicate(timeout=120)[1]
    assert _is_gone(int(note.read_text()))
    if number is signal.SIGINT:
        assert running.returncode == ExitCode.NOT_RUN, stderr
        assert list(scratch.iterdir()) == []
