"""Judges at work: processes that try one fault after the other, and what they answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from numbat_gates.planes import Plane

_JUDGE = Path(__file__).with_name("judge.py")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: One thread each: the workers share the cores, and results must not depend on how many there are.
_QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
#: What this process was told and a judged one must not hear.
_FORGET = ("NUMBAT_LEDGER", "NUMBAT_LEDGER_CONTEXT", "NUMBAT_MUTATION")


@dataclass(frozen=True, slots=True)
class Answer:
    """How a trial ended.

    `passed` when every gate of it did; `gates` ran; `how` says what did not pass. `modules` are
    those that were loaded at the end, when asked for.
    """

    passed: bool
    how: str
    gates: tuple[str, ...] = ()
    seconds: Mapping[str, float] | None = None
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bench:
    """What all trials of one run share.

    `preload` names modules that a judge imports before its first trial; `environment` are variables
    of the judged processes; `scratch` is a folder that goes with the run.
    """

    plane: Plane
    scratch: Path
    environment: Mapping[str, str]
    memory_bytes: int
    preload: tuple[str, ...] = ()


class Judge:
    """One judging process; `try_gates` may be called from any thread, one at a time."""

    def __init__(self, bench: Bench, process: subprocess.Popen[str]) -> None:
        self.bench = bench
        self.process = process

    def try_gates(self, gates: Sequence[str], *, limit_s: float, **more: Any) -> Answer:
        """Run these gates with what `more` plants or traces, until one does not pass."""
        plane = self.bench.plane
        told = self._ask(
            {
                "plane": {
                    "name": plane.name,
                    "package": plane.package,
                    "registry": plane.registry,
                    "distribution": plane.distribution,
                },
                "gates": list(gates),
                "limit_s": limit_s,
                "memory_bytes": self.bench.memory_bytes,
                **more,
            }
        )
        answer = told["answer"]
        if told["ended"] == "late":
            return Answer(False, f"it did not end within {limit_s:.0f} s")
        if answer is None:
            return Answer(False, f"its process died ({told['ended']})")
        return Answer(
            passed=answer["passed"],
            how=answer["how"],
            gates=tuple(answer["gates"]),
            seconds=answer.get("seconds"),
            modules=tuple(answer.get("modules", ())),
        )

    def start(self) -> None:
        """Give the process its setting, and wait until it has loaded what it should."""
        self._ask(
            {
                "scratch": str(self.bench.scratch),
                "path": sys.path,
                "preload": list(self.bench.preload),
                "environment": _QUIET | dict(self.bench.environment),
                "forget": _FORGET,
            }
        )

    def _ask(self, value: Any) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(value) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"a judging process ended with {self.process.wait()}")
        return json.loads(line)


@contextmanager
def judge(bench: Bench) -> Iterator[Judge]:
    """A judging process; it and what it runs are stopped at the end."""
    with subprocess.Popen(
        # -P: the folder of the script must not shadow modules of the code under judgement.
        [sys.executable, "-P", str(_JUDGE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env=os.environ | _QUIET,
        start_new_session=True,
    ) as process:
        try:
            made = Judge(bench, process)
            made.start()
            yield made
        finally:
            process.terminate()


def try_all(
    bench: Bench,
    items: Iterable[_Item],
    trial: Callable[[Judge, _Item], _Result],
    *,
    workers: int,
) -> Iterator[tuple[_Item, _Result]]:
    """Try each item with one of several judges; results come as they are ready."""
    waiting = list(items)
    with ExitStack() as stack:
        judges: SimpleQueue[Judge] = SimpleQueue()
        for _ in range(min(workers, len(waiting))):
            judges.put(stack.enter_context(judge(bench)))
        ready: SimpleQueue[tuple[_Item, _Result] | BaseException] = SimpleQueue()

        def work(item: _Item) -> None:
            mine = judges.get()
            try:
                ready.put((item, trial(mine, item)))
            except BaseException as error:
                # The thread that waits has to hear of it, or it would wait for ever.
                ready.put(error)
            finally:
                judges.put(mine)

        pool = ThreadPoolExecutor(max_workers=workers)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for item in waiting:
            pool.submit(work, item)
        for _ in waiting:
            found = ready.get()
            if isinstance(found, BaseException):
                raise found
            yield found
