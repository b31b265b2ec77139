"""What a plane's mutation.toml says: where faults are seeded, which gates judge, what is none."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numbat_gates.mutation.operators import OPERATORS
from numbat_gates.mutation.seeding import Fault, faults_in
from numbat_gates.planes import Plane
from numbat_registries import refuse

_KEYS = frozenset({"modules", "operators", "gates", "at_least", "environment", "equivalent"})


@dataclass(frozen=True, slots=True)
class Settings:
    """How a plane's gates are judged.

    `modules` are patterns of files in the plane's package ("geometry/*.py"), of one function
    ("volume.py::grid_of"), or of another package ("numbat_ledger:chain.py"). `gates` judge; all of
    the plane's when empty. `environment` holds variables of the judged processes, in which
    "{scratch}" is a folder that they share. `equivalent` maps the ids of faults that change nothing
    which could be measured to the reason.
    """

    modules: tuple[str, ...]
    operators: tuple[str, ...] = tuple(OPERATORS)
    gates: tuple[str, ...] = ()
    at_least: float = 0.9
    environment: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)


def load_settings(plane: Plane) -> Settings:
    """The settings of a plane.

    Raises GATE-0801 when the plane has none, or they are not of this shape.
    """
    path = plane.mutation_file
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refuse(
            "GATE-0801", plane=plane.name, file=path.name, reason=reason or "unreadable"
        ) from error
    reason = _objection(document)
    if reason:
        raise refuse("GATE-0801", plane=plane.name, file=path.name, reason=reason)
    return Settings(
        modules=tuple(document["modules"]),
        operators=tuple(document.get("operators", OPERATORS)),
        gates=tuple(document.get("gates", ())),
        at_least=float(document.get("at_least", 0.9)),
        environment=dict(document.get("environment", {})),
        equivalent={item["id"]: item["because"] for item in document.get("equivalent", ())},
    )


def _objection(document: Mapping[str, Any]) -> str:
    """What is wrong with the document, or nothing."""
    for name in sorted(set(document) - _KEYS):
        return f"unknown key {name}"
    for name in ("modules", "operators", "gates"):
        value = document.get(name, [] if name != "modules" else None)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return f"{name} is no list of texts"
    for name in document.get("operators", ()):
        if name not in OPERATORS:
            return f"there is no operator {name}, only {', '.join(OPERATORS)}"
    limit = document.get("at_least", 0.9)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit <= 1:
        return "at_least is no number from 0 to 1"
    variables = document.get("environment", {})
    if not isinstance(variables, dict) or not all(isinstance(v, str) for v in variables.values()):
        return "environment is no table of texts"
    return _objection_to_equivalents(document.get("equivalent", []))


def _objection_to_equivalents(entries: Any) -> str:
    if not isinstance(entries, list):
        return "equivalent is no list of [[equivalent]] tables"
    for entry in entries:
        whole = isinstance(entry, dict) and set(entry) == {"id", "because"}
        if not whole or not all(isinstance(v, str) and v.strip() for v in entry.values()):
            return "an [[equivalent]] needs the id of a fault, why it is none, and nothing else"
    names = [entry["id"] for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"{twice[0]} is declared twice" if twice else ""


def seeded(plane: Plane, settings: Settings) -> list[Fault]:
    """Every fault that the settings seed, in the order of modules and of their text.

    Raises GATE-0801 for a pattern that names no module, or a function that the module lacks.
    """
    wanted: dict[tuple[str, Path], set[str]] = {}
    whole: set[tuple[str, Path]] = set()
    for pattern in settings.modules:
        files, _, function = pattern.partition("::")
        found = list(_modules(plane, files))
        if not found:
            _refuse_pattern(plane, f"{files} names no module")
        for target in found:
            wanted.setdefault(target, set()).add(function)
            if not function:
                whole.add(target)
    faults: list[Fault] = []
    for (module, path), functions in sorted(wanted.items()):
        names = () if (module, path) in whole else tuple(sorted(functions))
        mine = faults_in(module, path, operators=settings.operators, functions=names)
        inside = {fault.function.partition(".")[0] for fault in mine}
        for name in names:
            if name.partition(".")[0] not in inside:
                _refuse_pattern(plane, f"{path.name} has no faults in {name}")
        faults += mine
    return faults


def _refuse_pattern(plane: Plane, reason: str) -> None:
    raise refuse("GATE-0801", plane=plane.name, file=plane.mutation_file.name, reason=reason)


def _modules(plane: Plane, pattern: str) -> Iterator[tuple[str, Path]]:
    package, _, inside = pattern.rpartition(":")
    package = package or plane.package
    root = _folder(package)
    if root is None:
        return
    for path in sorted(root.glob(inside)):
        if path.suffix == ".py":
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


def _folder(package: str) -> Path | None:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
