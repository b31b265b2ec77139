"""Training steps and small pieces of work: numbat against PyTorch, as ratios within one run.

    hatch run bench:core                       every scene
    hatch run bench:core --scene mlp64         one of them
    hatch run bench:core --rounds 5 --json     fewer rounds; figures as JSON

The table in README.md is what this prints.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pairs
from scenes import SCENES, Scene

HERE = Path(__file__)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench:core", description=__doc__)
    parser.add_argument("--scene", action="append", choices=list(SCENES))
    parser.add_argument(
        "--rounds", type=int, help="steps of each engine; else the scene's own number"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", nargs=2, metavar=("ENGINE", "SCENE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        engine, name = chosen.worker
        work(engine, SCENES[name])
        return 0
    measured = []
    for name in chosen.scene or SCENES:
        scene = SCENES[name]
        for peer in scene.peers:
            found = pairs.measure(HERE, name, chosen.rounds or scene.rounds, peer, scene.settings)
            measured.append(found)
            print(f"{name} ({peer}): {found.ratio:.2f}", file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps([{**asdict(one), "ratio": one.ratio} for one in measured], indent=2))
    else:
        print(f"{platform.processor() or platform.machine()}, {pairs.THREADS} threads, "
              f"torch {version('torch')}, numpy {version('numpy')}\n")  # fmt: skip
        print(pairs.table(measured))
    return 0


def work(engine: str, scene: Scene) -> None:
    """One worker: the scene in one engine."""
    space: Any
    if engine == "numbat":
        import numbat as space
    else:
        import torch as space

        space.set_num_threads(pairs.THREADS)
    build: Callable[[], Callable[[], object]] = lambda: scene.build(space, engine)  # noqa: E731
    pairs.serve(build, scene.warm)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
