"""Imports point downward, planes never import one another, and src never imports torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from workspace import ROOT, Member, load_pyproject, members

LAYERS = ("registries", "ledger", "gates", "core", "planes", "abi")


def layer(member: Member) -> int:
    return LAYERS.index(member.room.split("/")[0])


def imported_packages(source: str) -> Iterator[str]:
    """Top-level packages that a module names in an import, whether or not it ever runs."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and node.args and _callee(node) in _IMPORTERS:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value.split(".")[0]


_IMPORTERS = {"import_module", "__import__", "importorskip", "find_spec"}


def _callee(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "attr", None) or getattr(function, "id", "")


def violations(member: Member, source: str) -> list[str]:
    """What a module of this member may not import, and does."""
    by_package = {package: other for other in members() for package in other.packages}
    found = []
    for package in imported_packages(source):
        if package == "torch":
            found.append(package)
        elif package not in member.packages and package in by_package:
            other = by_package[package]
            if layer(other) >= layer(member):
                found.append(package)
    return found


def modules() -> list[tuple[Member, Path]]:
    return [(member, path) for member in members() for path in member.modules]


@pytest.mark.parametrize(
    ("member", "path"),
    [pytest.param(m, p, id=p.relative_to(ROOT).as_posix()) for m, p in modules()],
)
def test_a_module_imports_only_what_lies_below_it(member: Member, path: Path) -> None:
    assert violations(member, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source", "named"),
    [
        ("planes/imaging", "import numbat_genomics", ["numbat_genomics"]),
        ("planes/imaging", "from numbat_evidence.measures import auc", ["numbat_evidence"]),
        ("planes/agent", "if TYPE_CHECKING:\n    import numbat_imaging", ["numbat_imaging"]),
        ("planes/voice", "def f():\n    import numbat_agent.plane as p", ["numbat_agent"]),
        ("planes/imaging", "importlib.import_module('numbat_genomics.vcf')", ["numbat_genomics"]),
        ("registries", "import numbat_ledger", ["numbat_ledger"]),
        ("gates", "import numbat", ["numbat"]),
        ("core", "from torch.nn import functional", ["torch"]),
        ("abi", "__import__('torch')", ["torch"]),
        ("planes/imaging", "import numbat, numbat_gates.planes, numpy, torchx", []),
        ("abi", "import numbat_imaging", []),
        ("planes/imaging", "from .genomics import torch", []),
    ],
)
def test_the_check_tells_a_violation(room: str, source: str, named: list[str]) -> None:
    member = next(member for member in members() if member.room == room)
    assert violations(member, source) == named


def test_import_linter_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = str(ROOT / "pyproject.toml")
    assert lint_imports(config_filename=config, no_cache=True) == EXIT_STATUS_SUCCESS


def test_import_linter_knows_every_package() -> None:
    contracts = load_pyproject(ROOT)["tool"]["importlinter"]
    packages = {package for member in members() for package in member.packages}
    layers = contracts["contracts"][0]["layers"]
    ranked = {name.strip() for names in layers for name in names.split("|")}
    assert set(contracts["root_packages"]) == packages
    assert ranked == packages
    assert set(contracts["contracts"][1]["source_modules"]) == packages
