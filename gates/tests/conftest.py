"""Throw-away planes: a package on sys.path with requirements, gates and an announcement."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

from numbat_gates.planes import Plane

_numbers = count(1)

REQUIREMENTS = """
[phase.1]
title = "From files to a volume"

[[requirement]]
id = "DEM-R001"
phase = 1
text = "Every file is accounted for."
rationale = "A lost file is a lost slice."
source = "DICOM PS3.3 C.7.6.2"
"""


@dataclass
class PlaneFolder:
    """A plane being built; `write` adds files to its package."""

    root: Path
    package: str
    name: str = "demo"
    registry: str = "gates"
    plane: Plane = field(init=False)

    def __post_init__(self) -> None:
        self.plane = Plane(name=self.name, package=self.package, registry=self.registry)
        self.write("__init__.py", "")
        self.write("gates/__init__.py", "")

    @property
    def folder(self) -> Path:
        return self.root / self.package

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def requirements(self, text: str = "", *, base: str = REQUIREMENTS) -> PlaneFolder:
        self.write("requirements.toml", base + dedent(text))
        return self

    def gate(
        self,
        body: str,
        *,
        id: str = "DEM-G01",  # noqa: A002
        phase: int = 1,
        discharges: tuple[str, ...] = ("DEM-R001",),
        title: str = "Every file",
        module: str = "",
        before: str = "",
        last: bool = False,
    ) -> PlaneFolder:
        name = module or id.lower().replace("-", "_")
        text = [
            "from numbat_gates import gate",
            dedent(before),
            f"@gate({id!r}, phase={phase}, discharges={list(discharges)!r}, "
            f"title={title!r}, last={last})",
            "def measure(check):",
            *(f"    {line}" for line in dedent(body).strip().splitlines() or ["pass"]),
        ]
        path = self.folder / "gates" / f"{name}.py"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        return self

    def announce(self) -> PlaneFolder:
        """Install it as a distribution with an entry point, as a wheel would."""
        self.write(
            "plane.py",
            f"""
            from numbat_gates.planes import Plane

            PLANE = Plane(name={self.name!r}, package={self.package!r}, registry={self.registry!r})
            """,
        )
        info = self.root / f"{self.package}-1.2.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {self.package.replace('_', '-')}\nVersion: 1.2\n"
        (info / "METADATA").write_text(metadata)
        points = f"[numbat.planes]\n{self.name} = {self.package}.plane:PLANE\n"
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()
        return self


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlaneFolder]:
    """An importable plane of its own name, gone after the test."""
    package = f"numbat_throwaway_{next(_numbers)}"
    root = tmp_path / "site"
    root.mkdir()
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.delenv("NUMBAT_CORPUS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield PlaneFolder(root=root, package=package)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
