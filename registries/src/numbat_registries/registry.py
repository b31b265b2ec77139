"""The registry files: which codes exist, what they mean and how they are repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from numbat_registries.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Field:
    """One typed piece of evidence: JSON type, unit, and whether it may identify a patient."""

    name: str
    type: str
    says: str
    unit: str = ""
    items: str = ""
    phi: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """One registered diagnostic; `repair` holds the plans as written in the file."""

    code: str
    name: str
    severity: Severity
    since: str
    requirement: tuple[str, ...]
    message: str
    fields: Mapping[str, Field]
    explains: str
    example: str
    repair: tuple[Mapping[str, Any], ...]
    retired_in: str | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """All codes of one plane, retired ones included."""

    plane: str
    prefix: str
    codes: Mapping[str, Code]

    def __iter__(self) -> Iterator[Code]:
        return iter(self.codes.values())

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def live(self) -> tuple[Code, ...]:
        """The codes that are in use: a retired code keeps its page and is never raised."""
        return tuple(code for code in self.codes.values() if code.retired_in is None)


def data_directory() -> Path:
    """Where the JSON files lie: inside the wheel, or at the root of the distribution in a checkout."""
    package = Path(__file__).parent
    installed = package / "data"
    return installed if installed.is_dir() else package.parents[1]


def registry_names() -> tuple[str, ...]:
    """The registries that this installation holds, by file name."""
    return tuple(sorted(path.stem for path in data_directory().glob("*.json")))


def registry_path(name: str) -> Path:
    """The file of one registry."""
    return data_directory() / f"{name}.json"


@cache
def load_registry(name: str) -> Registry:
    """One registry by name, such as "imaging".

    Raises GATE-0102 when no such file is installed, GATE-0103 when it repeats a code or uses
    another plane's prefix.
    """
    path = registry_path(name)
    if not path.is_file():
        from numbat_registries.raising import refuse

        raise refuse("GATE-0102", name=name, known=list(registry_names()))
    return parse_registry(json.loads(path.read_text(encoding="utf-8")))


def parse_registry(document: Mapping[str, Any]) -> Registry:
    """A registry from its parsed JSON.

    Raises GATE-0103 when it repeats a code or uses another plane's prefix.
    """
    from numbat_registries.raising import refuse

    prefix = document["prefix"]
    codes: dict[str, Code] = {}
    for entry in document["codes"]:
        code = _parse_code(entry)
        if code.code in codes:
            raise refuse("GATE-0103", code=code.code, reason="registered twice")
        if not code.code.startswith(f"{prefix}-"):
            raise refuse("GATE-0103", code=code.code, reason=f"does not start with {prefix}-")
        codes[code.code] = code
    return Registry(plane=document["plane"], prefix=prefix, codes=codes)


def _parse_code(entry: Mapping[str, Any]) -> Code:
    fields = {name: Field(name=name, **spec) for name, spec in entry["fields"].items()}
    return Code(
        code=entry["code"],
        name=entry["name"],
        severity=Severity(entry["severity"]),
        since=entry["since"],
        requirement=tuple(entry["requirement"]),
        message=entry["message"],
        fields=fields,
        explains=entry["explains"],
        example="\n".join(entry["example"]),
        repair=tuple(entry["repair"]),
        retired_in=entry.get("retired_in"),
    )


def load_registries() -> dict[str, Registry]:
    """Every installed registry by name."""
    return {name: load_registry(name) for name in registry_names()}


@cache
def _by_prefix() -> dict[str, str]:
    return {
        json.loads(registry_path(name).read_text(encoding="utf-8"))["prefix"]: name
        for name in registry_names()
    }


def find_code(code: str) -> Code:
    """The registered code, whichever registry holds it.

    Raises GATE-0101 when no installed registry has it.
    """
    name = _by_prefix().get(code.partition("-")[0])
    found = load_registry(name).codes.get(code) if name else None
    if found is None:
        from numbat_registries.raising import refuse

        raise refuse("GATE-0101", code=code, registries=list(registry_names()))
    return found


def validate_registry(document: Mapping[str, Any]) -> list[str]:
    """Faults of a registry document against the JSON Schema, one line each; empty when valid."""
    from jsonschema import Draft202012Validator

    schema_path = data_directory() / "schema" / "registry.schema.json"
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    faults = sorted(Draft202012Validator(schema).iter_errors(document), key=lambda e: e.json_path)
    lines = [f"{fault.json_path}: {fault.message}" for fault in faults]
    return lines if lines else _template_faults(document)


def _template_faults(document: Mapping[str, Any]) -> list[str]:
    from numbat_registries.templates import names_in

    lines = []
    for entry in document["codes"]:
        known = set(entry["fields"])
        texts = [entry["message"], *(plan["says"] for plan in entry["repair"])]
        for unknown in sorted({name for text in texts for name in names_in(text)} - known):
            lines.append(f"{entry['code']}: text uses {{{unknown}}}, which is not a field")
        for plan in entry["repair"]:
            for argument in plan["args"].values():
                if "field" in argument and argument["field"] not in known:
                    lines.append(f"{entry['code']}: plan binds unknown field {argument['field']}")
    return lines
