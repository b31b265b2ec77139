"""What an active ledger records: of this process, its threads, and the processes it starts."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from numbat_ledger import Entry, Ledger, activate, active_ledger, context, read_entries
from numbat_ledger import verify_ledger as verify
from numbat_ledger.activation import LedgerSink, current_labels
from numbat_ledger.entries import canonical, digest
from numbat_registries import Diagnostic, Refusal, Severity, load_registry, refuse
from numbat_registries.raising import sinks

REFUSE = "from numbat_registries import refuse; refuse('GATE-0102', name='x', known=[])"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger.jsonl"


@pytest.fixture(autouse=True)
def _no_other_ledger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tests may themselves run under a ledger."""
    outer = list(sinks)
    sinks.clear()
    monkeypatch.delenv("NUMBAT_LEDGER", raising=False)
    monkeypatch.delenv("NUMBAT_LEDGER_CONTEXT", raising=False)
    yield
    assert sinks == []
    assert "NUMBAT_LEDGER" not in os.environ
    assert "NUMBAT_LEDGER_CONTEXT" not in os.environ
    sinks.extend(outer)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import writing_processes

    return writing_processes


def refused(name: str = "x") -> Diagnostic:
    return refuse("GATE-0102", name=name, known=["a"]).diagnostic


def raised(path: Path) -> list[Entry]:
    return [entry for entry in read_entries(path) if entry.kind in ("raise", "notice")]


def run(program: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_refusal_inside_is_recorded_with_its_labels(path: Path) -> None:
    with activate(path) as ledger, context(gate="GATE-G01", check="refuses"):
        diagnostic = refused()
        assert active_ledger() is ledger
    (entry,) = raised(path)
    assert (entry.kind, entry.code) == ("raise", "GATE-0102")
    assert (entry.gate, entry.check) == ("GATE-G01", "refuses")
    assert entry.site == diagnostic.site
    assert entry.seq == diagnostic.seq == 1
    assert entry.fields == digest(canonical({"name": "x", "known": ["a"]}))


def test_nothing_outside_is_recorded(path: Path) -> None:
    refused()
    with activate(path):
        pass
    assert refused().seq is None
    assert raised(path) == []
    assert active_ledger() is None


def test_a_run_without_refusals_has_a_ledger_too(path: Path) -> None:
    with activate(path):
        pass
    assert verify(path).length == 1


def test_a_block_ends_with_an_exception(path: Path) -> None:
    with pytest.raises(Refusal), activate(path), context(gate="g"):
        load_registry("radiology")
    assert [entry.code for entry in raised(path)] == ["GATE-0102"]
    assert current_labels() == ("", "")


@pytest.mark.parametrize(
    ("name", "code"), [("", "GATE-0206"), ("no/run.jsonl", "GATE-0206"), ("text", "GATE-0205")]
)
def test_what_cannot_be_a_ledger_is_refused_at_once(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "text").write_text("notes\n", encoding="utf-8")
    with pytest.raises(Refusal) as caught, activate(tmp_path / name):
        raise AssertionError("the block must not begin")
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda folder: shutil.rmtree(folder), "GATE-0206"),
        (lambda folder: os.truncate(folder / "run.jsonl", 0), "GATE-0207"),
    ],
    ids=["gone", "cut"],
)
def test_a_refusal_that_cannot_be_recorded_says_so_and_does_not_hang(
    tmp_path: Path, damage: Any, code: str
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    with activate(folder / "run.jsonl"):
        refused()
        damage(folder)
        with pytest.raises(Refusal) as caught:
            refused()
    assert caught.value.code == code
    assert caught.value.diagnostic.seq is None


def test_a_notice_is_recorded_as_one(path: Path) -> None:
    sink = LedgerSink(Ledger(path))
    sink(diagnostic(severity=Severity.WARNING))
    sink(diagnostic(severity=Severity.FAILURE))
    assert [entry.kind for entry in raised(path)] == ["notice", "raise"]


def diagnostic(**parts: Any) -> Diagnostic:
    whole = {
        "code": "IMG-1102",
        "name": "two-patients",
        "severity": Severity.REFUSAL,
        "message": "two patients",
        "fields": {},
        "plans": (),
        "site": "m:f:1",
    }
    return Diagnostic(**whole | parts)


def test_patient_data_leaves_no_trace(path: Path) -> None:
    """Not even as a digest, from which a name could be guessed."""
    sink = LedgerSink(Ledger(path))
    for name in ("Secretive^Sam", "Other^One"):
        fields = {"patient_name": name, "n": 2}
        sink(diagnostic(fields=fields, phi_fields=frozenset({"patient_name"})))
    first, second = raised(path)
    assert first.fields == second.fields == digest(canonical({"n": 2}))
    assert b"Secretive" not in path.read_bytes()


def test_evidence_that_is_not_utf_8_is_recorded(path: Path) -> None:
    with activate(path):
        assert refused(os.fsdecode(b"caf\xe9.dcm")).seq == 1
    verify(path)


def test_a_code_that_nobody_registered_is_recorded_by_name(path: Path) -> None:
    with activate(path), pytest.raises(Refusal):
        refuse("IMG-9999")
    (entry,) = raised(path)
    assert (entry.code, entry.note) == ("GATE-0101", "IMG-9999")


# ------------------------------------------------------------------ ledgers within ledgers


def test_a_ledger_inside_another_records_for_both(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl"
    with activate(outer):
        refused("a")
        refused("b")
        with activate(inner) as ledger:
            assert active_ledger() is ledger
            assert refused("c").seq == 1
        assert refused("d").seq == 4
    assert [entry.seq for entry in raised(outer)] == [1, 2, 3, 4]
    assert [entry.seq for entry in raised(inner)] == [1]


def test_a_ledger_inside_itself_records_once(path: Path) -> None:
    with activate(path), activate(path):
        refused()
    assert len(raised(path)) == 1


def test_a_process_under_a_ledger_may_open_its_own(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl"
    program = f"""
from numbat_ledger import activate, active_ledger
from numbat_registries import refuse
def go(): return refuse("GATE-0102", name="x", known=[]).diagnostic.seq
with activate({str(inner)!r}):
    print(go())
go()
with activate({str(inner)!r}):
    print(go())
print(active_ledger().path)
"""
    with activate(outer):
        refused()
        assert run(program).split() == ["1", "2", str(outer)]
    assert len(raised(outer)) == 4
    assert len(raised(inner)) == 2
    verify(outer)
    verify(inner)


# ------------------------------------------------------------------ processes


def test_a_child_process_records_in_the_parents_ledger(path: Path) -> None:
    with activate(path):
        run(REFUSE)
        with context(gate="IMG-G03", check="two patients"):
            run(REFUSE)
        run(REFUSE)
    run(REFUSE)
    assert [(entry.gate, entry.check) for entry in raised(path)] == [
        ("", ""),
        ("IMG-G03", "two patients"),
        ("", ""),
    ]
    assert verify(path).length == 4


def test_a_childs_child_records_there_too(path: Path) -> None:
    with activate(path), context(gate="g", check="c"):
        run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {REFUSE!r}])")
    assert [(entry.gate, entry.check) for entry in raised(path)] == [("g", "c")]


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_pool_records_and_its_refusals_come_back(
    path: Path, processes: ModuleType, method: str
) -> None:
    start = multiprocessing.get_context(method)
    with (
        activate(path),
        context(gate="g", check="c"),
        ProcessPoolExecutor(2, mp_context=start) as pool,
    ):
        seqs = list(pool.map(processes.refuse_here, "abcdef"))
        assert pool.submit(processes.ledger_of_process).result() == str(path)
        with pytest.raises(Refusal) as caught:
            pool.submit(processes.refuse_out_of, ["radiology"]).result()
    entries = raised(path)
    assert sorted(seqs) == [1, 2, 3, 4, 5, 6]
    assert caught.value.code == "GATE-0102"
    assert caught.value.diagnostic.seq == 7
    assert {(entry.gate, entry.check) for entry in entries} == {("g", "c")}
    assert verify(path).length == 8


def test_the_environment_alone_switches_a_process_on(path: Path) -> None:
    program = "from numbat_ledger import active_ledger as a; print(a().path); " + REFUSE
    labels = json.dumps(["g", "c"])
    said = run(program, NUMBAT_LEDGER=str(path), NUMBAT_LEDGER_CONTEXT=labels)
    assert said.strip() == str(path)
    assert [(entry.gate, entry.check) for entry in raised(path)] == [("g", "c")]


@pytest.mark.parametrize("labels", ["", "nonsense", "[]", "7", '["a"]', '{"a": 1}'])
def test_labels_that_are_none_are_passed_over(path: Path, labels: str) -> None:
    run(REFUSE, NUMBAT_LEDGER=str(path), NUMBAT_LEDGER_CONTEXT=labels)
    assert [(entry.gate, entry.check) for entry in raised(path)] == [("", "")]


# ------------------------------------------------------------------ labels


def test_a_label_that_is_not_given_stays(path: Path) -> None:
    with context(gate="g"):
        with context(check="c"):
            assert current_labels() == ("g", "c")
            with context(gate="", check=""):
                assert current_labels() == ("", "")
        assert current_labels() == ("g", "")
    assert current_labels() == ("", "")


def test_a_thread_has_the_labels_of_the_block_it_was_started_in(path: Path) -> None:
    with activate(path), context(gate="g", check="c"):
        thread = threading.Thread(target=refused)
        thread.start()
        thread.join()
    assert [(entry.gate, entry.check) for entry in raised(path)] == [("g", "c")]


def test_threads_keep_their_own_labels(path: Path) -> None:
    together = threading.Barrier(4)

    def work(name: str) -> None:
        for n in range(20):
            with context(gate=name, check=str(n)):
                together.wait(60)
                refused(name)

    with activate(path):
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    labels = sorted((entry.gate, int(entry.check)) for entry in raised(path))
    assert labels == [(name, n) for name in "abcd" for n in range(20)]


def test_blocks_that_end_in_another_order_leave_nothing_behind() -> None:
    first, second = context(gate="first"), context(gate="second")
    first.__enter__()
    other = threading.Thread(target=second.__enter__)
    other.start()
    other.join()
    assert json.loads(os.environ["NUMBAT_LEDGER_CONTEXT"]) == ["second", ""]
    first.__exit__(None, None, None)
    assert json.loads(os.environ["NUMBAT_LEDGER_CONTEXT"]) == ["second", ""]
    with pytest.raises(ValueError, match="different Context"):
        second.__exit__(None, None, None)  # its label belongs to the other thread
    assert "NUMBAT_LEDGER_CONTEXT" not in os.environ


def test_what_the_environment_said_before_comes_back(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("NUMBAT_LEDGER", str(tmp_path / "before.jsonl"))
        with activate(path):
            assert os.environ["NUMBAT_LEDGER"] == str(path)
        assert os.environ["NUMBAT_LEDGER"] == str(tmp_path / "before.jsonl")
