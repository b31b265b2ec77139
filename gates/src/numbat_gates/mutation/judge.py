"""A process that forks one child for each seeded fault: `python -P judge.py`, jobs on stdin.

It is run as a file and imports the standard library alone, so that nothing of the code under
judgement is loaded before the fault is in place. What is heavy and not under judgement is imported
once, before the first fork. The fault follows into the processes that a gate starts, by a
`sitecustomize` on their path that runs this file again.

Protocol: one JSON object a line. First the setting (`path`, `preload`, `environment`), answered by
{"ready": true}; then jobs, each answered by {"ended": how, "answer": what the child wrote or null}.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import marshal
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

#: Tells a process that a gate starts what is planted or traced; a JSON file.
VARIABLE = "NUMBAT_MUTATION"
_SITE = "sitecustomize.py"
_POLL_S = 0.004


# ---------------------------------------------------------------------- the fault in place


class Planted(MetaPathFinder):
    """Imports one module from compiled code in place of its file."""

    def __init__(self, module: str, code_file: str) -> None:
        self.module = module
        self.code_file = code_file

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with the planted code."""
        if name != self.module:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.origin is not None:
                spec.loader = _PlantedLoader(name, spec.origin, self.code_file)
                return spec
        return None


class _PlantedLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, code_file: str) -> None:
        super().__init__(name, path)
        self.code_file = code_file

    def get_code(self, fullname: str) -> CodeType:
        return marshal.loads(Path(self.code_file).read_bytes())  # type: ignore[no-any-return]


# ---------------------------------------------------------------------- which lines run


class Trace:
    """Notes in a file, as they first happen, which lines of some sources run in this process.

    Written at once, so that the lines of a process that is killed or leaves in a hurry count too.
    """

    def __init__(self, files: Sequence[str], into: str) -> None:
        self.numbers = {file: number for number, file in enumerate(files)}
        self.descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.seen: set[tuple[int, int]] = set()

    def start(self) -> None:
        """Watch every thread of this process from now on."""
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            threading.settrace(self._called)
            sys.settrace(self._called)

    def _monitor(self) -> None:
        # Switching a place off once it was seen leaves the program at its own speed.
        watch: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        watch.use_tool_id(watch.COVERAGE_ID, "numbat-mutation")

        def line(code: CodeType, number: int) -> Any:
            self.note(code.co_filename, number)
            return watch.DISABLE

        watch.register_callback(watch.COVERAGE_ID, watch.events.LINE, line)
        watch.set_events(watch.COVERAGE_ID, watch.events.LINE)

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self.numbers:
            return None
        self.note(frame.f_code.co_filename, frame.f_lineno)
        return self._ran

    def _ran(self, frame: FrameType, event: str, argument: object) -> Any:
        self.note(frame.f_code.co_filename, frame.f_lineno)
        return self._ran

    def note(self, file: str, line: int) -> None:
        """Note one line, once."""
        number = self.numbers.get(file)
        if number is not None and (number, line) not in self.seen:
            self.seen.add((number, line))
            os.write(self.descriptor, b"%d %d\n" % (number, line))


def install(task: dict[str, Any]) -> None:
    """Plant a fault, or trace, in this process."""
    if "module" in task:
        sys.meta_path.insert(0, Planted(task["module"], task["code"]))
    if "trace" in task:
        Trace(task["files"], task["trace"]).start()


def install_from_environment() -> None:
    """What a process that a gate started does first."""
    task = os.environ.get(VARIABLE)
    if task:
        with contextlib.suppress(OSError, ValueError):
            install(json.loads(Path(task).read_text(encoding="utf-8")))


# ---------------------------------------------------------------------- one child


def _child(task: dict[str, Any], folder: Path) -> None:
    """Run one job in this forked process; never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        # With signals as Python starts: the parent's way to stop is not the child's.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _streams(folder)
        _surroundings(task, folder)
        install(task)
        trial = importlib.import_module("numbat_gates.mutation.trial")
        trial.run(task, folder / "answer.json")
        status = 0
    except BaseException as error:
        # Whatever goes wrong here is an answer: code with the fault does not even load.
        text = f"{type(error).__name__}: {error}"
        answer = {"gate": "", "how": text, "passed": False, "gates": []}
        with contextlib.suppress(OSError):
            if not (folder / "answer.json").exists():
                (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    finally:
        os._exit(status)


def _streams(folder: Path) -> None:
    for number, name in ((0, os.devnull), (1, str(folder / "stdout")), (2, str(folder / "stderr"))):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
        descriptor = os.open(name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)


def _surroundings(task: dict[str, Any], folder: Path) -> None:
    scratch = folder / "tmp"
    scratch.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    site = folder / "site"
    site.mkdir()
    (site / _SITE).write_text(_SITECUSTOMIZE.format(judge=__file__), encoding="utf-8")
    told = folder / "task.json"
    told.write_text(json.dumps(task), encoding="utf-8")
    os.environ[VARIABLE] = str(told)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(site), *([before] if before else [])])
    limit = task.get("memory_bytes")
    if limit:
        # A fault may ask for memory without end; the machine has other work.
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or limit <= hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


_SITECUSTOMIZE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_numbat_judge", {judge!r})
judge = importlib.util.module_from_spec(spec)
spec.loader.exec_module(judge)
judge.pass_on(__file__)
judge.install_from_environment()
"""


def pass_on(own: str) -> None:
    """Run the `sitecustomize` of this installation that ours stands in front of."""
    rest = [place for place in sys.path if Path(place) != Path(own).parent]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ---------------------------------------------------------------------- the parent of children


class Judge:
    """Forks, waits and kills: one child at a time."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self.scratch = Path(setting["scratch"])
        self.running = 0
        self.parent = os.getppid()
        os.environ.update(setting["environment"])
        for name in setting["forget"]:
            os.environ.pop(name, None)
        sys.path[:] = setting["path"]
        for name in setting["preload"]:
            # One that cannot be loaded first is loaded where it is needed.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        signal.signal(signal.SIGTERM, self._stop)

    def judge(self, task: dict[str, Any]) -> dict[str, Any]:
        """Run one job in a child, within its time."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            ended = self._run(task, folder)
            file = folder / "answer.json"
            answer = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
            return {"ended": ended, "answer": answer}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, task: dict[str, Any], folder: Path) -> str:
        self.running = os.fork()
        if self.running == 0:
            _child(task, folder)
        deadline = time.monotonic() + task["limit_s"]
        pid = status = 0
        try:
            while time.monotonic() < deadline:
                pid, status = os.waitpid(self.running, os.WNOHANG)
                if pid:
                    break
                if os.getppid() != self.parent:
                    # Nobody is left to hear the answer.
                    self._kill()
                    os._exit(1)
                time.sleep(_POLL_S)
            else:
                self._kill()
                os.waitpid(self.running, 0)
                return "late"
        finally:
            # What the gate started and left behind.
            self._kill()
            self.running = 0
        if os.WIFSIGNALED(status):
            return f"killed by signal {os.WTERMSIG(status)}"
        return "ended"

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.running, signal.SIGKILL)

    def _stop(self, number: int, frame: object) -> None:
        if self.running:
            self._kill()
        os._exit(1)


def _lines() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Read the setting, then judge each job until stdin ends."""
    answer_stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is printed while importing is no answer
    lines = _lines()
    judge = Judge(next(lines))

    def tell(value: Any) -> None:
        answer_stream.write(json.dumps(value) + "\n")
        answer_stream.flush()

    tell({"ready": True})
    for task in lines:
        tell(judge.judge(task))


if __name__ == "__main__":
    main()
