"""Hostile inputs tried in processes of their own: what comes of each, and at what cost.

A process has so much memory and so many seconds for each case and may die of it; the next case goes
on in another.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn

from numbat_registries import Refusal
from numbat_registries.raising import sinks

#: What the address space of a trial may grow by: threads and arenas reserve far more than they use.
_HEADROOM_BYTES = 1536 << 20
#: How many times its seconds of work a case may take by the clock: others may be at work too.
_PATIENCE = 8
_STATUS = "/proc/self/status"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of case `number`.

    `kind`: value, refusal, untyped, hang, memory or crash; `detail` is the code of a refusal, or
    where an exception arose. `seconds` are those of work, not of waiting. `grown_bytes` is how far
    the peak of resident memory lay above what the process held before; 0 where the system does not
    tell.
    """

    number: int
    kind: str
    detail: str
    seconds: float
    grown_bytes: int

    @property
    def is_fault(self) -> bool:
        """Whether no reader may do this."""
        return self.kind not in ("value", "refusal")


class Hang(BaseException):
    """The time of a case is over; nothing that catches exceptions catches this."""


def read_whole_way(paths: Path | Sequence[Path]) -> str:
    """What a user would do: look at it, then read its volumes with all their voxels.

    Gives "value", or the code of the refusal. The report must be JSON without NaN.
    """
    from numbat_imaging.inspection import inspect
    from numbat_imaging.volume import read_volumes

    code = ""
    try:
        json.dumps(inspect(paths).to_dict(), allow_nan=False)
    except Refusal as refusal:
        code = _typed(refusal)
    try:
        for volume in read_volumes(paths):
            if volume.voxels.size < 1 << 22:
                volume.values()
            volume.at_lps_mm((0, 0, 0))
    except Refusal as refusal:
        code = _typed(refusal)
    return code or "value"


def _typed(refusal: Refusal) -> str:
    # A decoder's lack of memory must not pass for a damaged image.
    if "MemoryError" in str(refusal.diagnostic.fields):
        raise MemoryError(refusal.code)
    if not refusal.code.startswith("IMG-"):
        # Evidence that does not fit its own code is a fault of who refused.
        raise TypeError(f"{refusal.code} from {refusal.diagnostic.site}")
    return refusal.code


def trials(
    count: int,
    judge: Callable[[int], str],
    *,
    workers: int | None = None,
    seconds: float = 10.0,
    memory_bytes: int = _HEADROOM_BYTES,
) -> Iterator[Outcome]:
    """What comes of `judge(number)` for each number below `count`, in no order.

    `judge` gives "value" or the code of a refusal. It runs in forked processes that record nothing
    in a ledger.
    """
    crew = workers or len(os.sched_getaffinity(0))
    waiting = [
        _Lane(judge, iter(range(k, count, crew)), seconds, memory_bytes) for k in range(crew)
    ]
    waiting = [lane for lane in waiting if lane.start()]
    while waiting:
        ready, _, _ = select.select([lane.pipe for lane in waiting], [], [], 1.0)
        for lane in list(waiting):
            if lane.pipe in ready or lane.is_late:
                yield from lane.take()
                if lane.is_done:
                    waiting.remove(lane)


class _Lane:
    """Cases that one process after another works through."""

    def __init__(
        self, judge: Callable[[int], str], numbers: Iterator[int], seconds: float, memory: int
    ) -> None:
        self.judge, self.seconds, self.memory = judge, seconds, memory
        self.left = list(numbers)
        self.is_done = not self.left
        self.pipe: BinaryIO
        self.child = 0
        self.heard = 0.0

    def start(self) -> bool:
        """Begin, or go on after a death; False when no case is left."""
        if not self.left:
            self.is_done = True
            return False
        reading, writing = os.pipe()
        sys.stdout.flush()
        self.child = os.fork()
        if self.child == 0:
            os.close(reading)
            _work(self.judge, self.left, writing, self.seconds, self.memory)
        os.close(writing)
        self.pipe = os.fdopen(reading, "rb", buffering=1 << 16)
        self.heard = time.monotonic()
        return True

    @property
    def is_late(self) -> bool:
        """Whether its process does not even answer the alarm."""
        return time.monotonic() - self.heard > _PATIENCE * self.seconds

    def take(self) -> Iterator[Outcome]:
        if self.is_late and not select.select([self.pipe], [], [], 0)[0]:
            os.kill(self.child, signal.SIGKILL)
            yield self._died("hang", "no answer to the alarm")
            return
        self.heard = time.monotonic()
        line = self.pipe.readline()
        if not line:
            if self.left:
                yield self._died("crash", "")
            else:
                self._reap()
                self.is_done = True
            return
        number, kind, detail, took, grown = json.loads(line)
        self.left.remove(number)
        yield Outcome(number, kind, detail, took, grown)

    def _died(self, kind: str, detail: str) -> Outcome:
        status = self._reap()
        signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if not detail:
            detail = signal.Signals(signalled).name if signalled else f"exit {status >> 8}"
        number = self.left.pop(0)
        self.start()
        return Outcome(number, kind, detail, 0.0, 0)

    def _reap(self) -> int:
        self.pipe.close()
        return os.waitpid(self.child, 0)[1]


def _work(
    judge: Callable[[int], str], numbers: Iterable[int], out: int, seconds: float, memory: int
) -> NoReturn:
    """The life of a forked process; never comes back."""
    try:
        gc.freeze()
        # What mutants are refused for is no evidence of anything: it is not recorded.
        sinks.clear()
        os.environ.pop("NUMBAT_LEDGER", None)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 2)
        signal.signal(signal.SIGPROF, _too_late)
        size = _memory("VmSize")
        resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in numbers:
            os.write(out, json.dumps(_judged(judge, number, seconds)).encode() + b"\n")
    finally:
        # No handler, buffer or test runner of the parent is this process's business.
        os._exit(0)


def _judged(
    judge: Callable[[int], str], number: int, seconds: float
) -> tuple[int, str, str, float, int]:
    before = _reset_peak()
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        detail = judge(number)
        kind = "value" if detail == "value" else "refusal"
    except Hang as late:
        kind, detail = "hang", _site(late)
    except MemoryError as fault:
        kind, detail = "memory", _site(fault)
    except Exception as fault:
        kind, detail = "untyped", f"{type(fault).__name__} {_site(fault)}: {fault}"[:400]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = max(0, _memory("VmHWM") - before)
    return number, kind, detail, time.process_time() - started, grown


def _too_late(number: int, frame: FrameType | None) -> None:
    raise Hang


def _site(fault: BaseException) -> str:
    """Where in this package an exception came out, and where it arose."""
    frames = traceback.extract_tb(fault.__traceback__)
    own = [f for f in frames if "numbat" in f.filename and "trials" not in f.filename]
    shown = [*own[-1:], *frames[-1:]]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in shown)


def _reset_peak() -> int:
    """Forget the peak of resident memory; gives what is resident now, in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    try:
        with open(_STATUS, encoding="ascii") as status:
            for line in status:
                if line.startswith(name):
                    return int(line.split()[1]) << 10
    except OSError:
        return 0
    return 0
