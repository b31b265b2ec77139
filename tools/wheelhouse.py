"""Build the members' distributions, and install them where nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workspace import Member, closure

__all__ = [
    "BuildError",
    "Distributions",
    "EmptyEnvironment",
    "InstallError",
    "build",
    "build_all",
    "build_from_sdist",
]


class BuildError(Exception):
    """A member's distribution does not build."""


class InstallError(Exception):
    """Distributions cannot be installed together in an empty environment."""


def build(folder: Path, target: str, into: Path) -> Path:
    """Build one distribution ("wheel" or "sdist") of the project in `folder`; returns its file."""
    before = set(into.glob("*")) if into.is_dir() else set()
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    _run(command, BuildError, cwd=folder)
    (built,) = set(into.glob("*")) - before
    return built


def build_all(members: Iterable[Member], target: str, into: Path) -> dict[str, Path]:
    """Build one target of each member; distribution name to file."""
    into.mkdir(parents=True, exist_ok=True)
    wanted = list(members)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        files = pool.map(lambda m: build(m.path, target, into / m.distribution), wanted)
        return {m.distribution: file for m, file in zip(wanted, files, strict=True)}


@dataclass(frozen=True, slots=True)
class Distributions:
    """Built files of every member, by distribution name."""

    wheels: dict[str, Path]
    sdists: dict[str, Path]

    def wheels_for(self, member: Member) -> dict[str, Path]:
        """The member's wheel and those of the members it declares, by distribution name."""
        return {needed.distribution: self.wheels[needed.distribution] for needed in closure(member)}


def build_from_sdist(sdist: Path, work: Path, into: Path) -> Path:
    """Unpack an sdist beside nothing of the workspace and build its wheel there."""
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    return build(work / sdist.name.removesuffix(".tar.gz"), "wheel", into)


@dataclass(frozen=True, slots=True)
class EmptyEnvironment:
    """A virtual environment that starts with nothing in it, outside the source tree."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> EmptyEnvironment:
        _run([*_uv(), "venv", "--quiet", "--python", sys.executable, str(path)], InstallError)
        return cls(path)

    @property
    def python(self) -> Path:
        return self.scripts / ("python.exe" if os.name == "nt" else "python")

    @property
    def scripts(self) -> Path:
        return self.path / ("Scripts" if os.name == "nt" else "bin")

    def install(self, wheels: Iterable[Path]) -> None:
        """Install these wheels, and from the package registry what they declare beyond them.

        Members go by file and never by name, so that no stranger's package can stand in for one.
        """
        files = [str(wheel) for wheel in wheels]
        python = ["--quiet", "--python", str(self.python)]
        _run([*_uv(), "pip", "install", *python, *files], InstallError)
        _run([*_uv(), "pip", "check", *python], InstallError)

    def install_extras(self, member: Member, wheels: dict[str, Path]) -> None:
        """Install what the member's extras declare; `wheels` are the member's and its needs'."""
        own = wheels[member.distribution].as_uri()
        others = [str(file) for name, file in wheels.items() if name != member.distribution]
        named = f"{member.distribution}[{','.join(member.extras)}] @ {own}"
        python = ["--quiet", "--python", str(self.python)]
        _run([*_uv(), "pip", "install", *python, named, *others], InstallError)

    def distributions(self) -> set[str]:
        """Names of all that is installed."""
        listed = self.run("-c", _LIST_DISTRIBUTIONS)
        return set(listed.stdout.split())

    def run(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python away from the caller's paths; the caller judges the exit status."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.path,
            env={**_bare_environment(), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


_LIST_DISTRIBUTIONS = (
    "from importlib.metadata import distributions\n"
    "print(*(d.name.lower().replace('_', '-') for d in distributions()))"
)


def _bare_environment() -> dict[str, str]:
    """The caller's environment without what would let the source tree or a ledger leak in."""
    leaks = ("PYTHON", "NUMBAT_", "COVERAGE_", "PYTEST_", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(leaks)}


def _uv() -> list[str]:
    """The uv that hatch brings, or the one installed beside this Python, or the one on PATH."""
    beside = Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
    candidates = [os.environ.get("HATCH_UV"), str(beside), shutil.which("uv")]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return [candidate]
    return [sys.executable, "-m", "uv"]


def _run(command: list[str], failure: type[Exception], *, cwd: Path | None = None) -> None:
    finished = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if finished.returncode:
        said = finished.stderr.strip() or finished.stdout.strip()
        raise failure(f"{' '.join(command)} exited {finished.returncode}:\n{said}")
