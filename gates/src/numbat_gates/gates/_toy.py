"""Throw-away planes: a package with requirements and gates, announced as a wheel would be.

Each is run by the real command line in a process of its own, with no ledger but its own, so that
what goes wrong inside on purpose is no part of the run that tries it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

#: A process that hangs ends the gate, however busy the machine.
_LONG_S = 300

#: What this process may have been told and a toy must not hear.
_OURS = frozenset(
    {
        "NUMBAT_CORPUS",
        "NUMBAT_KEY_PASSPHRASE",
        "NUMBAT_LEDGER",
        "NUMBAT_LEDGER_CONTEXT",
        "NUMBAT_TRACEBACK",
    }
)

PHASE = """
[phase.1]
title = "The toy counts"
"""
REQUIREMENT = """
[[requirement]]
id = "{id}"
phase = {phase}
text = "{text}"
rationale = "Everything else rests on it."
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.stdout)


class Toy:
    """A plane in a folder; the package is `numbat_toy` and its registry that of the gates."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "numbat_toy"
        self.package.mkdir(parents=True)
        self.write("__init__.py", "def add(a, b):\n    return a + b\n")
        self.write("gates/__init__.py", "")
        self.write(
            "plane.py",
            """
            from numbat_gates.planes import Plane

            PLANE = Plane(name="toy", package="numbat_toy", registry="gates")
            """,
        )
        self._announce()

    def _announce(self) -> None:
        info = self.root / "numbat_toy-1.2.dist-info"
        info.mkdir()
        metadata = "Metadata-Version: 2.1\nName: numbat-toy\nVersion: 1.2\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        points = "[numbat.planes]\ntoy = numbat_toy.plane:PLANE\n"
        (info / "entry_points.txt").write_text(points, encoding="utf-8")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the package."""
        path = self.package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the package as an editor would."""
        path = self.package / name
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise LookupError(f"{name} holds {old!r} {text.count(old)} times")
        path.write_text(text.replace(old, new), encoding="utf-8")

    def requirements(self, *ids: str, more: str = "", phase: int = 1) -> Toy:
        """State requirements by id, and whatever else the file should hold."""
        entries = [REQUIREMENT.format(id=item, phase=phase, text=f"Rule {item}.") for item in ids]
        self.write("requirements.toml", PHASE + "".join(entries) + dedent(more))
        return self

    def gate(
        self,
        number: int,
        body: str,
        *,
        discharges: str = "TOY-R001",
        before: str = "",
        phase: int = 1,
        last: bool = False,
    ) -> Toy:
        """Write the gate TOY-G<number>, whose function has this body."""
        lines = [
            "from numbat_gates import NotRun, gate",
            dedent(before).strip(),
            f'@gate("TOY-G{number:02d}", phase={phase}, discharges=["{discharges}"], '
            f'title="Gate {number}", last={last})',
            "def measure(check):",
            indent(dedent(body).strip() or "pass", "    "),
        ]
        path = self.package / "gates" / f"gate_{number:02d}.py"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self

    def ask(self, *arguments: str, **variables: str) -> Answer:
        """What `numbat-gates` answers where this plane is installed."""
        return ask(*arguments, path=self.root, **variables)

    def ask_all(self, requests: Iterable[Sequence[str]]) -> list[Answer]:
        """What it answers to several requests that do not depend on one another."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda request: self.ask(*request), requests))


def ask(*arguments: str, path: Path | None = None, **variables: str) -> Answer:
    """What `numbat-gates` answers in a process of its own, with `path` on the module path."""
    return python("-m", "numbat_gates", *arguments, path=path, **variables)


def python(*arguments: str, path: Path | None = None, **variables: str) -> Answer:
    """What a Python process of its own answers, which knows of no ledger and no corpus here."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        env=environment(path) | variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_LONG_S,
        check=False,
    )
    return Answer(ended.returncode, ended.stdout, ended.stderr)


def environment(path: Path | None = None) -> dict[str, str]:
    """The variables of such a process."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    places = [str(path)] if path else []
    places += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    # Sources are edited within a second of their last reading, which cached bytecode cannot tell.
    return kept | {
        "PYTHONPATH": os.pathsep.join(places),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(path or tempfile.gettempdir()),
    }


@contextmanager
def toys() -> Iterator[Path]:
    """A folder for planes and files, gone afterwards; `tempfile` makes its own inside it."""
    with tempfile.TemporaryDirectory(prefix="numbat-gates-") as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


@contextmanager
def toy_plane() -> Iterator[Toy]:
    """A plane without requirements and gates so far, gone afterwards."""
    with toys() as folder:
        yield Toy(folder / "site-packages")
