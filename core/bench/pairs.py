"""Two engines take turns at one piece of work, each in a process of its own.

A worker builds its work once, warms up, and then runs one step for each line it is sent; the parent
sends lines to both in turn, so that what else the machine does falls on both alike. Medians are
compared. Both OPENBLAS variables are unset in the workers, unless a scene holds the core type.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

THREADS = 2


@dataclass(frozen=True)
class Pair:
    """The medians of one scene, in seconds a step, and the peak memory of each process in MiB."""

    scene: str
    numbat_s: float
    peer_s: float
    numbat_mib: float
    peer_mib: float
    rounds: int
    peer: str

    @property
    def ratio(self) -> float:
        """Time of numbat over time of the peer; below 1 is faster."""
        return self.numbat_s / self.peer_s


class Worker:
    """One process that runs steps on demand."""

    def __init__(self, script: Path, engine: str, scene: str, settings: dict[str, str]) -> None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")
        }
        environment |= {"OMP_NUM_THREADS": str(THREADS), **settings}
        self.process = subprocess.Popen(
            [sys.executable, str(script), "--worker", engine, scene],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.read()

    def read(self) -> dict[str, float]:
        """The worker's next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with {self.process.wait()}")
        found: dict[str, float] = json.loads(line)
        return found

    def step(self) -> float:
        """Seconds of one step."""
        assert self.process.stdin is not None
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return self.read()["seconds"]

    def close(self) -> float:
        """Ends the worker; gives its peak memory in MiB."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        peak = self.read()["peak_mib"]
        self.process.wait()
        return peak


def measure(
    script: Path,
    scene: str,
    rounds: int,
    peer: str = "torch",
    settings: dict[str, str] | None = None,
) -> Pair:
    """Runs one scene in both engines, in turn, `rounds` times each."""
    mine = Worker(script, "numbat", scene, settings or {})
    theirs = Worker(script, peer, scene, settings or {})
    times: dict[str, list[float]] = {"mine": [], "theirs": []}
    for _ in range(rounds):
        times["mine"].append(mine.step())
        times["theirs"].append(theirs.step())
    return Pair(
        scene,
        statistics.median(times["mine"]),
        statistics.median(times["theirs"]),
        mine.close(),
        theirs.close(),
        rounds,
        peer,
    )


def serve(build: Callable[[], Callable[[], object]], warm: int) -> None:
    """The worker's side: builds, warms up, and answers each line with the seconds of one step."""
    step = build()
    for _ in range(warm):
        step()
    print(json.dumps({"ready": 1.0}), flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        step()
        print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak_mib": peak}), flush=True)


def table(pairs: list[Pair]) -> str:
    """The pairs as a Markdown table."""
    lines = [
        "| scene | numbat | peer | ratio | peak memory, ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for pair in pairs:
        lines.append(
            f"| {pair.scene} ({pair.peer}) | {_time(pair.numbat_s)} | {_time(pair.peer_s)} "
            f"| {pair.ratio:.2f} | {pair.numbat_mib / pair.peer_mib:.2f} |"
        )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
