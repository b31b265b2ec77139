"""The numbered requirements of a plane, read from its requirements.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from numbat_gates.planes import Plane
from numbat_registries import refuse


class Awaits(StrEnum):
    """Why a clause cannot be discharged yet: a closed list, so that gaps have typed reasons."""

    CLINICAL_DATA = "clinical-data"
    CORPUS = "corpus"
    ELAPSED_TIME = "elapsed-time"
    HARDWARE = "hardware"
    LICENCE = "licence"
    LATER_PHASE = "later-phase"

    @property
    def depends_on_machine(self) -> bool:
        """Whether one machine may discharge the clause although another cannot."""
        return self in (Awaits.CORPUS, Awaits.HARDWARE, Awaits.LICENCE)


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of a plane's acceptance."""

    number: int
    title: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One numbered requirement; `awaits` and `because` declare that it cannot be met yet."""

    id: str
    phase: int
    text: str
    rationale: str
    source: str = ""
    awaits: Awaits | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a requirement that stays undischarged although the requirement has a gate."""

    id: str
    requirement: str
    text: str
    awaits: Awaits
    because: str


@dataclass(frozen=True, slots=True)
class Requirements:
    """All requirements of one plane, by id, with their phases and open clauses."""

    phases: Mapping[int, Phase]
    requirements: Mapping[str, Requirement]
    clauses: Mapping[str, Clause]

    def of_phase(self, number: int) -> tuple[Requirement, ...]:
        """The requirements of one phase, in the order of the file."""
        return tuple(r for r in self.requirements.values() if r.phase == number)

    def clauses_of(self, requirement: str) -> tuple[Clause, ...]:
        """The declared clauses of one requirement."""
        return tuple(c for c in self.clauses.values() if c.requirement == requirement)

    def texts(self) -> list[dict[str, Any]]:
        """All that the requirements say, as plain data in the order of ids: what is digested."""
        items: list[Requirement | Clause] = [*self.requirements.values(), *self.clauses.values()]
        rows = [
            {
                "id": item.id,
                "of": item.phase if isinstance(item, Requirement) else item.requirement,
                "text": item.text,
                "rationale": getattr(item, "rationale", ""),
                "source": getattr(item, "source", ""),
                "awaits": str(item.awaits or ""),
                "because": item.because,
            }
            for item in items
        ]
        return sorted(rows, key=lambda row: str(row["id"]))


def requirements_of(plane: Plane) -> Requirements:
    """The requirements of a plane; none when it has no file of them yet.

    Raises the codes that `load_requirements` names.
    """
    if not plane.has_requirements:
        return Requirements(phases={}, requirements={}, clauses={})
    return load_requirements(plane.requirements_file)


def load_requirements(path: Path) -> Requirements:
    """The requirements of one file.

    Raises GATE-0301 when the file is not TOML of this shape, GATE-0302 for an id given twice,
    GATE-0303 for an entry that is incomplete or has an unknown key, GATE-0304 for an undeclared
    phase, GATE-0305 for a reason outside the closed list, GATE-0306 for a clause of no requirement.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise refuse("GATE-0301", file=path.name, reason=str(error)) from error
    return parse_requirements(document, file=path.name)


def parse_requirements(document: Mapping[str, Any], *, file: str) -> Requirements:
    """The requirements of a parsed document; raises the codes that `load_requirements` names."""
    unknown = sorted(set(document) - {"phase", "requirement", "clause"})
    if unknown:
        raise refuse("GATE-0301", file=file, reason=f"unknown table {', '.join(unknown)}")
    phases = _phases(document.get("phase", {}), file=file)
    requirements: dict[str, Requirement] = {}
    for entry in _tables(document, "requirement", file=file):
        requirement = _requirement(entry, phases)
        _claim_id(requirement.id, requirements)
        requirements[requirement.id] = requirement
    clauses: dict[str, Clause] = {}
    for entry in _tables(document, "clause", file=file):
        clause = _clause(entry, requirements)
        _claim_id(clause.id, {**requirements, **clauses})
        clauses[clause.id] = clause
    return Requirements(phases=phases, requirements=requirements, clauses=clauses)


def _tables(document: Mapping[str, Any], name: str, *, file: str) -> Iterable[Mapping[str, Any]]:
    entries = document.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise refuse("GATE-0301", file=file, reason=f"{name} is not a list of [[{name}]] tables")
    return entries


def _phases(tables: Any, *, file: str) -> dict[int, Phase]:
    phases = {}
    for number, table in tables.items() if isinstance(tables, dict) else ():
        title = table.get("title") if isinstance(table, dict) else None
        if not number.isdecimal() or not isinstance(title, str) or not title:
            raise refuse("GATE-0301", file=file, reason=f"[phase.{number}] needs a number, a title")
        phases[int(number)] = Phase(number=int(number), title=title)
    return dict(sorted(phases.items()))


def _claim_id(new: str, taken: Mapping[str, object]) -> None:
    if new in taken:
        raise refuse("GATE-0302", id=new)


def _requirement(entry: Mapping[str, Any], phases: Mapping[int, Phase]) -> Requirement:
    name = _checked(
        entry,
        needed=("id", "phase", "text", "rationale"),
        allowed=("source", "awaits", "because"),
    )
    phase = entry["phase"]
    if phase not in phases:
        raise refuse("GATE-0304", id=name, phase=phase, known=list(phases))
    return Requirement(
        id=name,
        phase=phase,
        text=entry["text"],
        rationale=entry["rationale"],
        source=entry.get("source", ""),
        awaits=_awaits(entry),
        because=entry.get("because", ""),
    )


def _clause(entry: Mapping[str, Any], requirements: Mapping[str, Requirement]) -> Clause:
    name = _checked(entry, needed=("id", "requirement", "text", "awaits", "because"), allowed=())
    if entry["requirement"] not in requirements:
        raise refuse("GATE-0306", id=name, requirement=entry["requirement"])
    awaits = _awaits(entry)
    assert awaits is not None
    return Clause(
        id=name,
        requirement=entry["requirement"],
        text=entry["text"],
        awaits=awaits,
        because=entry["because"],
    )


def _checked(entry: Mapping[str, Any], *, needed: tuple[str, ...], allowed: tuple[str, ...]) -> str:
    name = entry.get("id", "")
    label = name if isinstance(name, str) and name else "(no id)"
    faults = [f"has no {key}" for key in needed if key not in entry]
    faults += [f"has an unknown key {key}" for key in sorted(set(entry) - {*needed, *allowed})]
    for key, value in entry.items():
        if key == "phase":
            if not isinstance(value, int) or isinstance(value, bool):
                faults.append("has a phase that is not a whole number")
        elif not isinstance(value, str) or not value.strip():
            faults.append(f"has a {key} that is not a text")
    if ("awaits" in entry) != ("because" in entry) and "awaits" not in needed:
        faults.append("needs awaits and because together, or neither")
    if faults:
        raise refuse("GATE-0303", id=label, faults=faults)
    return label


def _awaits(entry: Mapping[str, Any]) -> Awaits | None:
    value = entry.get("awaits")
    if value is None:
        return None
    if value not in tuple(Awaits):
        raise refuse(
            "GATE-0305", id=entry["id"], awaits=value, known=[str(reason) for reason in Awaits]
        )
    return Awaits(value)
