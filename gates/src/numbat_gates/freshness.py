"""Whether the evidence of a report still belongs to what is installed here, part by part."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numbat_gates.corpora import corpus_root
from numbat_gates.digests import digest_tree, distribution_versions, plane_digests
from numbat_gates.planes import find_plane, plane_names
from numbat_gates.registration import declared_gates
from numbat_gates.requirements import load_requirements

#: Parts of the digests that every gate rests on, with the word for one of their members.
_SHARED = {"code": "code", "frameworks": "framework"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One part that is not as it was at the run, or that could not be looked at.

    `part` is plane, code, framework, requirements, registry, gate, input, environment or file;
    `state` is changed, removed, added, absent or unchecked; `gates` are those whose evidence it
    voids. Digests are "sha256:<hex>", empty where there is none.
    """

    part: str
    name: str
    state: str
    recorded: str = ""
    found: str = ""
    gates: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """The finding as one line."""
        void = f": voids {', '.join(self.gates)}" if self.gates else ""
        return f"{self.part} {self.name} {self.state}{void}"


def find_stale(report: Mapping[str, Any]) -> list[Finding]:
    """What changed since the run in code, frameworks, requirements, registry, gates and inputs.

    Gates are read and not run.

    Raises the codes of `load_requirements` and `declared_gates` when what is installed is broken.
    """
    every = tuple(gate["id"] for gate in report["gates"])
    name = report["plane"]
    if name not in plane_names():
        return [Finding("plane", name, "absent", gates=every)]
    recorded, found = report["digests"], current_digests(name)
    findings = []
    for part, word in _SHARED.items():
        findings += [
            Finding(word, *difference, gates=every)
            for difference in _differences(recorded[part], found[part])
        ]
    for part in ("requirements", "registry"):
        if recorded[part] != found[part]:
            values = recorded[part] or "", found[part] or ""
            findings.append(Finding(part, name, "changed", *values, gates=every))
    findings += _stale_gates(report, found["gates"])
    findings += [item for item in _inputs(report) if item.state == "changed"]
    return findings


def find_unchecked(report: Mapping[str, Any]) -> list[Finding]:
    """What voids nothing but should be said: inputs not present here, another environment."""
    findings = [item for item in _inputs(report) if item.state == "unchecked"]
    there = report["environment"]["distributions"]
    here = distribution_versions()
    for name, version in sorted(there.items()):
        if name in here and here[name] != version:
            findings.append(Finding("environment", name, "changed", version, here[name]))
    return findings


def current_digests(plane_name: str) -> dict[str, Any]:
    """The digests of an installed plane as they are now, inputs left out."""
    plane = find_plane(plane_name)
    if not plane.has_requirements:
        return {"code": {}, "frameworks": {}, "requirements": None, "gates": {}, "registry": None}
    requirements = load_requirements(plane.requirements_file)
    return plane_digests(plane, requirements, declared_gates(plane))


def _differences(
    recorded: Mapping[str, str], found: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    for name in sorted({*recorded, *found}):
        before, now = recorded.get(name, ""), found.get(name, "")
        if before != now:
            state = "added" if not before else "changed" if now else "removed"
            yield name, state, before, now


def _stale_gates(report: Mapping[str, Any], found: Mapping[str, str]) -> Iterator[Finding]:
    ran = {gate["id"] for gate in report["gates"]}
    for difference in _differences(report["digests"]["gates"], found):
        name = difference[0]
        if name in ran:
            yield Finding("gate", *difference, gates=(name,))
        elif difference[1] == "added" and report["phase"] is None and not report["selected_gates"]:
            # The run was of the whole plane, and the plane now has a gate that it knows nothing of.
            yield Finding("gate", *difference, gates=(name,))


def _inputs(report: Mapping[str, Any]) -> Iterator[Finding]:
    for name, recorded in sorted(report["digests"]["inputs"].items()):
        base = re.sub(r"#[0-9a-f]{8}$", "", name)
        path = _input_path(base)
        if path is None or not path.exists():
            yield Finding("input", name, "unchecked", recorded)
            continue
        found = digest_tree(path)
        if found != recorded:
            gates = tuple(g["id"] for g in report["gates"] if {name, base} & set(g["inputs"]))
            everything = tuple(g["id"] for g in report["gates"])
            yield Finding("input", name, "changed", recorded, found, gates or everything)


def _input_path(name: str) -> Path | None:
    kind, _, place = name.partition(":")
    # A report that nobody signed must not lead this process out of the folders of its inputs.
    if not place or ".." in Path(place).parts or Path(place).is_absolute():
        return None
    if kind == "corpus":
        return corpus_root() / place
    if kind == "installed":
        roots = [Path(folder) for folder in sys.path if Path(folder).name == "site-packages"]
        return next((root / place for root in roots if (root / place).exists()), None)
    return None
