"""The members of the workspace, as their pyproject.toml files state them."""

from __future__ import annotations

import runpy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

__all__ = ["ROOT", "Member", "closure", "load_pyproject", "members", "workspace_version"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Member:
    """One distribution of the workspace."""

    path: Path
    distribution: str
    package: str
    dependencies: tuple[Requirement, ...]
    extras: tuple[str, ...]
    packages: tuple[str, ...]
    """Import names of all it installs, `package` first."""
    plane: str | None
    """Name under which it announces itself to the runner, or None."""

    @property
    def source(self) -> Path:
        return self.path / "src" / self.package

    @property
    def modules(self) -> list[Path]:
        """Every module that it installs."""
        return sorted((self.path / "src").rglob("*.py"))

    @property
    def room(self) -> str:
        """Path from the root of the tree, with forward slashes."""
        return self.path.relative_to(ROOT).as_posix()


def load_pyproject(folder: Path) -> dict[str, Any]:
    """The parsed pyproject.toml of a folder."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def workspace_version() -> str:
    """The one version, read from VERSION.py."""
    return str(runpy.run_path(str(ROOT / "VERSION.py"))["__version__"])


def members() -> tuple[Member, ...]:
    """Every member that `hatch build --all` builds, each after the members it depends on."""
    patterns = load_pyproject(ROOT)["tool"]["hatch"]["envs"]["default"]["workspace"]["members"]
    folders = [folder for pattern in patterns for folder in sorted(ROOT.glob(pattern))]
    return tuple(_member(folder) for folder in folders if (folder / "pyproject.toml").is_file())


def _member(folder: Path) -> Member:
    settings = load_pyproject(folder)
    project = settings["project"]
    folders = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    packages = tuple(Path(folder).name for folder in folders)
    announced = list(project.get("entry-points", {}).get("numbat.planes", {}))
    return Member(
        path=folder,
        distribution=project["name"],
        package=packages[0],
        dependencies=tuple(Requirement(text) for text in project.get("dependencies", ())),
        packages=packages,
        extras=tuple(project.get("optional-dependencies", {})),
        plane=announced[0] if announced else None,
    )


def closure(member: Member) -> tuple[Member, ...]:
    """The member and every member that its declared dependencies reach, itself first."""
    by_name = {other.distribution: other for other in members()}
    found: dict[str, Member] = {}
    waiting = [member]
    while waiting:
        current = waiting.pop()
        if current.distribution in found:
            continue
        found[current.distribution] = current
        waiting += [by_name[r.name] for r in current.dependencies if r.name in by_name]
    return tuple(found.values())
