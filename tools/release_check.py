"""Build every wheel, install them where nothing else is, and ask them what they are.

Each distribution is asked its version and the place it was imported from; each plane its gates,
requirements and codes, through the runner as installed. What they answer is compared with what the
source tree holds, counted from the files themselves.

Exit codes: 0 all agree, 1 something differs or does not build, 2 malformed request, 3 the wheels
could not be installed, so that nothing was asked, 5 unexpected.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import tomllib
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wheelhouse import BuildError, EmptyEnvironment, InstallError, build_all
from workspace import ROOT, Member, members, workspace_version

__all__ = ["Counts", "counted_in_tree", "main"]

PASS, FAIL, NOT_RUN, INTERNAL = 0, 1, 3, 5


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a plane has of what a release is asked about; retired codes are not counted."""

    requirements: int
    gates: int
    codes: int


@dataclass(frozen=True, slots=True)
class Row:
    """One distribution: what the tree holds, what the installed one said, and why they differ."""

    distribution: str
    plane: str | None
    version: str | None
    tree: Counts | None
    installed: Counts | None
    faults: tuple[str, ...]


def counted_in_tree(member: Member) -> Counts:
    """Requirements, gates and codes of a plane, counted from its files without importing any."""
    stated = member.source / "requirements.toml"
    requirements = tomllib.loads(stated.read_text(encoding="utf-8")) if stated.is_file() else {}
    registry = ROOT / "registries" / f"{member.plane}.json"
    codes = json.loads(registry.read_text(encoding="utf-8"))["codes"] if registry.is_file() else []
    modules = (member.source / "gates").rglob("*.py")
    return Counts(
        requirements=len(requirements.get("requirement", [])),
        gates=sum(_gates_in(module.read_text(encoding="utf-8")) for module in modules),
        codes=sum(not code.get("retired_in") for code in codes),
    )


def _gates_in(source: str) -> int:
    """Functions decorated with `@gate(…)`."""
    return sum(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id == "gate"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="release:check", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, not a table")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="keep the wheels in this folder")
    chosen = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as work:
            rows = _interrogate(Path(work), chosen.wheels)
    except BuildError as error:
        print(error, file=sys.stderr)
        return FAIL
    except InstallError as error:
        print(error, file=sys.stderr)
        return NOT_RUN
    except Exception:
        traceback.print_exc()
        return INTERNAL
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        _print(rows)
    return FAIL if any(row.faults for row in rows) else PASS


def _interrogate(work: Path, keep: Path | None) -> list[Row]:
    everything = members()
    wheels = build_all(everything, "wheel", keep.resolve() if keep else work / "wheels")
    environment = EmptyEnvironment.create(work / "environment")
    environment.install(wheels.values())
    planes = _planes_as_told(environment)
    return [_ask(environment, member, planes) for member in everything]


def _planes_as_told(environment: EmptyEnvironment) -> dict[str, dict[str, Any]]:
    """What the installed runner says of each plane; empty where it says nothing readable."""
    answer = environment.run("-m", "numbat_gates", "list", "--json")
    if answer.returncode:
        print(answer.stderr, file=sys.stderr)
        return {}
    planes = json.loads(answer.stdout)["planes"]
    return {plane["plane"]: plane for plane in planes if "fault" not in plane}


def _ask(environment: EmptyEnvironment, member: Member, planes: dict[str, dict[str, Any]]) -> Row:
    answer = environment.run("-c", _WHO, member.distribution, member.package)
    told = json.loads(answer.stdout) if answer.returncode == 0 else {}
    faults: list[str] = []
    if not told:
        faults.append(f"does not import: {answer.stderr.strip().splitlines()[-1]}")
    else:
        if told["version"] != workspace_version():
            faults.append(f"version {told['version']}, the tree has {workspace_version()}")
        if not Path(told["file"]).is_relative_to(environment.path):
            faults.append(f"imported from {told['file']}, outside the environment")

    tree = counted_in_tree(member) if member.plane else None
    installed = None
    if member.plane in planes:
        installed = _counts_as_told(planes[member.plane])
    elif member.plane:
        faults.append("the installed runner cannot load it")
    if tree and installed:
        faults += [
            f"{installed_count} {name}, the tree has {tree_count}"
            for name, installed_count, tree_count in _pairs(installed, tree)
            if installed_count != tree_count
        ]
    return Row(
        distribution=member.distribution,
        plane=member.plane,
        version=told.get("version"),
        tree=tree,
        installed=installed,
        faults=tuple(faults),
    )


def _counts_as_told(plane: dict[str, Any]) -> Counts:
    return Counts(plane["requirements"], plane["gates"], plane["codes"])


def _pairs(installed: Counts, tree: Counts) -> list[tuple[str, int, int]]:
    return [(name, asdict(installed)[name], asdict(tree)[name]) for name in asdict(tree)]


def _print(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("installed", no_wrap=True)
    for heading in ("version", "requirements", "gates", "codes"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("against the tree", overflow="fold")
    for row in rows:
        counts = asdict(row.installed).values() if row.installed else ["–"] * 3
        verdict = "; ".join(row.faults) or "agrees"
        table.add_row(row.distribution, row.version or "?", *(str(c) for c in counts), verdict)
    Console().print(table)


_WHO = """
import importlib, importlib.metadata, json, sys
distribution, package = sys.argv[1:]
print(json.dumps({
    "version": importlib.metadata.version(distribution),
    "file": importlib.import_module(package).__file__,
}))
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
