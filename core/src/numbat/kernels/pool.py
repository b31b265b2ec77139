"""Kernels over ranges, split over the processor's cores.

A kernel works on a range `[begin, end)` of rows, pixels or elements. `run` cuts the whole range
into pieces whose bounds depend on the range and the grain alone, never on how many threads there
are, and hands them out as threads come free; so results are the same bit for bit for any number of
threads.

    scale = kernel("nb_scale", "PPfll")              # calling.py: the last two are begin and end
    run(scale, (address(x), address(out), 2.0), x.size, grain=65536)

Each piece writes what no other piece writes. A sum over the range takes a slot for each piece:

    grain = 4096
    slots = np.empty((pieces(rows, grain), columns), np.float32)
    run(kernel, (address(x), address(slots), grain), rows, grain)  # in C: slot = begin / grain
    total = slots.sum(axis=0)                        # in the order of the pieces

What to keep in mind:

- A piece should take 50 us or more (a hand-over to another thread costs about 10 us, a further
  piece 1 us); a range of one piece is run at once by the caller, without any of this.
- Pieces are called from several threads: they must not run Python that is not safe there, and never
  matrix products: BLAS has threads of its own, and both together would have more threads than
  cores.
- A call to `run` within a piece runs its pieces one after another.
- An exception within a piece is raised by `run`, after the other pieces have ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import Any

from numbat_registries import refuse


def _cores() -> int:
    """How many cores this process may use; `NUMBAT_THREADS` in the environment asks for a
    number."""
    asked = os.environ.get("NUMBAT_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Job:
    """One call of `run`: the pieces that are left to take, and those that are still to end."""

    __slots__ = ("args", "done", "ended", "failure", "function", "grain", "last", "taken", "total")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], total: int, grain: int, last: int
    ) -> None:
        self.function = function
        self.args = args
        self.total = total
        self.grain = grain
        self.last = last
        self.taken = count()
        self.ended = count()
        self.failure: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def work(self) -> None:
        """Takes pieces until none is left."""
        function, args, total, grain, last = (
            self.function, self.args, self.total, self.grain, self.last,
        )  # fmt: skip
        while True:
            piece = next(self.taken)
            if piece > last:
                return
            begin = piece * grain
            try:
                function(*args, begin, min(begin + grain, total))
            except BaseException as failure:
                self.failure = failure
            if next(self.ended) == last:
                self.done.release()


class _Pool:
    """The threads that wait for jobs; the caller of `run` is one more."""

    def __init__(self) -> None:
        self.wanted = _cores()
        self.reset()

    def reset(self) -> None:
        self.queue: SimpleQueue[_Job | None] = SimpleQueue()
        self.started = 0
        self.starting = threading.Lock()
        self.inside = threading.local()

    def start(self, helpers: int) -> None:
        with self.starting:
            while self.started < helpers:
                self.started += 1
                threading.Thread(
                    target=self.serve, args=(self.queue,), name="numbat-pool", daemon=True
                ).start()

    def serve(self, queue: SimpleQueue[_Job | None]) -> None:
        from numbat.tensors import storage

        storage.install()  # numpy's allocator is set for each thread.
        self.inside.job = True
        while (job := queue.get()) is not None:
            job.work()
            del job  # Its arrays are the caller's.


_POOL = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.reset)


def pieces(total: int, grain: int) -> int:
    """How many pieces a range is cut into."""
    return -(-total // grain)


def run(function: Callable[..., Any], args: tuple[Any, ...], total: int, grain: int) -> None:
    """Calls `function(*args, begin, end)` for every piece of `[0, total)`, on all threads.

    Args:
        function: a kernel (`calling.kernel`), or a Python function that mostly waits for one.
        args: its arguments before the range; arrays go by address, and the caller keeps them alive.
        total: the end of the range.
        grain: the length of a piece; the last one may be shorter. Choose it by the work, not by the
            number of threads.
    """
    if total <= grain:
        if total > 0:
            function(*args, 0, total)
        return
    last = -(-total // grain) - 1
    helpers = min(_POOL.wanted - 1, last)
    if helpers <= 0 or getattr(_POOL.inside, "job", None) is not None:
        for begin in range(0, total, grain):
            function(*args, begin, min(begin + grain, total))
        return
    if _POOL.started < helpers:
        _POOL.start(helpers)
    job = _Job(function, args, total, grain, last)
    for _ in range(helpers):
        _POOL.queue.put(job)
    _POOL.inside.job = job
    try:
        job.work()
    finally:
        _POOL.inside.job = None
    job.done.acquire()
    if job.failure is not None:
        raise job.failure


def get_num_threads() -> int:
    """How many threads kernels are split over."""
    return _POOL.wanted


def set_num_threads(threads: int) -> None:
    """Sets how many threads kernels and matrix products are split over; kernels' results stay the
    same bit for bit.

    Raises CORE-0400 for a number below one.
    """
    if threads < 1:
        raise refuse("CORE-0400", threads=int(threads))
    surplus = _POOL.started - max(threads - 1, 0)
    _POOL.wanted = threads
    if surplus > 0:
        with _POOL.starting:
            for _ in range(surplus):
                _POOL.queue.put(None)
            _POOL.started -= surplus
    from numbat.kernels.blas import THREADS

    THREADS.limit(threads)
