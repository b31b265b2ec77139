"""Many writers at once, and writers killed at any point: the chain stays whole."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from numbat_ledger import Ledger, read_entries, verify_ledger

LONG_S = 60  # a process that hangs fails the test, however busy the machine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger.jsonl"


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import writing_processes

    return writing_processes


def run_all(method: str, target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> None:
    """Run the target once for each argument list, all at once; none may fail or hang."""
    context = multiprocessing.get_context(method)
    started = [context.Process(target=target, args=args) for args in arguments]  # type: ignore[attr-defined]
    for process in started:
        process.start()
    for process in started:
        process.join(LONG_S)
        process.kill()
        process.join()
    assert [process.exitcode for process in started] == [0] * len(arguments)


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("writers", [2, 8])
def test_processes_that_write_at_once(
    path: Path, processes: ModuleType, method: str, writers: int
) -> None:
    count = 200
    names = [f"writer {n}" for n in range(writers)]
    run_all(method, processes.append_many, [(str(path), name, count) for name in names])
    state = verify_ledger(path)
    assert (state.length, state.torn) == (writers * count + 1, 0)
    entries = list(read_entries(path))
    assert [entry.seq for entry in entries] == list(range(writers * count + 1))
    for name in names:
        assert [e.note for e in entries if e.site == name] == [str(n) for n in range(count)]


@pytest.mark.parametrize("shared", [True, False])
def test_threads_that_write_at_once(path: Path, shared: bool) -> None:
    ours = Ledger(path)

    def write(name: str) -> None:
        ledger = ours if shared else Ledger(path)
        for n in range(50):
            ledger.append("notice", code="GATE-0102", site=name, note=str(n))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, "abcdefgh"))
    assert verify_ledger(path).length == 401
    entries = list(read_entries(path))
    for name in "abcdefgh":
        assert [e.note for e in entries if e.site == name] == [str(n) for n in range(50)]


def test_a_fork_in_the_middle_of_anothers_entry(path: Path, processes: ModuleType) -> None:
    """The child has no thread that would free a lock which another thread held at the fork."""
    ledger = Ledger(path)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            ledger.append("notice", code="GATE-0102", site="parent")

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            run_all("fork", processes.append_once, [(ledger,)] * 4)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    verify_ledger(path)
    assert sum(entry.site == "child" for entry in read_entries(path)) == 24


def test_writers_killed_at_any_point(path: Path, processes: ModuleType) -> None:
    """Long entries, so that most kills fall into the middle of one."""
    chance = random.Random(20260731)
    context = multiprocessing.get_context("fork")
    last_acknowledged = []
    for _ in range(15):
        reading, writing = os.pipe()
        writers = [
            context.Process(target=processes.append_until_killed, args=(str(path), 60_000, writing))
            for _ in range(2)
        ]
        for writer in writers:
            writer.start()
        os.close(writing)
        os.read(reading, 1)  # at least one of them is under way
        time.sleep(chance.uniform(0, 0.01))
        for writer in writers:
            assert writer.pid is not None
            os.kill(writer.pid, signal.SIGKILL)
        for writer in writers:
            writer.join(LONG_S)
            assert writer.exitcode == -signal.SIGKILL
        said = b""
        while piece := os.read(reading, 1 << 16):
            said += piece
        os.close(reading)
        last_acknowledged += [int(seq) for seq in said.split(b"\n")[1:-1]]
        entry = Ledger(path).append("notice", code="GATE-0102", note="the next writer")
        assert entry.seq > max(last_acknowledged, default=0)
    head = Ledger(path).append("seal").hash
    state = verify_ledger(path, head=head)
    assert state.sealed
    entries = list(read_entries(path))
    assert [entry.seq for entry in entries] == list(range(state.length))
    assert set(last_acknowledged) <= {e.seq for e in entries if e.note.startswith("x")}
    assert sum(entry.kind == "torn" for entry in entries) == state.torn
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_stopped_writer_that_is_killed_gives_the_lock_back(
    path: Path, processes: ModuleType
) -> None:
    reading, writing = os.pipe()
    context = multiprocessing.get_context("fork")
    writer = context.Process(
        target=processes.append_until_killed, args=(str(path), 500_000, writing)
    )
    writer.start()
    os.close(writing)
    os.read(reading, 1)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGSTOP)
    waiting = threading.Thread(target=lambda: Ledger(path).append("seal"))
    waiting.start()
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(LONG_S)
    os.close(reading)
    waiting.join(LONG_S)
    assert not waiting.is_alive()
    assert verify_ledger(path).sealed


def test_a_reader_never_sees_half_an_entry(path: Path) -> None:
    ledger = Ledger(path)
    ledger.begin()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            ledger.append("notice", code="GATE-0102", note="x" * 50_000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            assert verify_ledger(path).torn == 0
    finally:
        stop.set()
        thread.join()
