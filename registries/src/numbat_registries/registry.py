"""The registry files: which codes exist, what they mean and how they are repaired."""

from __future__ import annotations

import json
from collections import Counter
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
    """Where the JSON files lie: inside the wheel, or at the top of the distribution's checkout."""
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
    if name not in registry_names():
        from numbat_registries.raising import refuse

        raise refuse("GATE-0102", name=name, known=list(registry_names()))
    return parse_registry(json.loads(registry_path(name).read_text(encoding="utf-8")))


def parse_registry(document: Mapping[str, Any]) -> Registry:
    """A registry from its parsed JSON.

    Raises GATE-0103 when it repeats a code or uses another plane's prefix.
    """
    from numbat_registries.raising import refuse

    for code, reason in _inconsistencies(document):
        if document["prefix"] == "GATE":
            # The registry of the refusals about registries cannot be refused by its own codes.
            raise LookupError(f"numbat-registries is damaged: {code} {reason}")
        raise refuse("GATE-0103", code=code, reason=reason)
    codes = {entry["code"]: _parse_code(entry) for entry in document["codes"]}
    return Registry(plane=document["plane"], prefix=document["prefix"], codes=codes)


def _inconsistencies(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    prefix = document["prefix"]
    times = Counter(entry["code"] for entry in document["codes"])
    for code in times:
        if times[code] > 1:
            yield code, "is registered twice"
        if not code.startswith(f"{prefix}-"):
            yield code, f"does not start with {prefix}-"


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
        if code == "GATE-0101":
            raise LookupError(
                "numbat-registries is damaged: its gates.json is missing or not whole"
            )
        from numbat_registries.raising import refuse

        raise refuse("GATE-0101", code=code, registries=list(registry_names()))
    return found


def validate_registry(document: Mapping[str, Any]) -> list[str]:
    """Faults of a registry document, one line each; empty when valid.

    Tried: the JSON Schema; then codes or names given twice and foreign prefixes; then texts and
    plans that use a field which their code does not have.
    """
    from jsonschema import Draft202012Validator

    schema_path = data_directory() / "schema" / "registry.schema.json"
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    faults = sorted(Draft202012Validator(schema).iter_errors(document), key=lambda e: e.json_path)
    lines = [f"{fault.json_path}: {fault.message}" for fault in faults]
    return lines or [*_code_faults(document), *_text_faults(document)]


def _code_faults(document: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{code}: {reason}" for code, reason in _inconsistencies(document))
    times = Counter(entry["name"] for entry in document["codes"])
    yield from (f"{name}: is the name of several codes" for name in times if times[name] > 1)


def _text_faults(document: Mapping[str, Any]) -> Iterator[str]:
    from numbat_registries.templates import template_faults

    for entry in document["codes"]:
        known = set(entry["fields"])
        texts = [entry["message"]]
        for plan in entry["repair"]:
            texts += [plan[part] for part in ("says", "effect", "loses") if part in plan]
            for argument in plan["args"].values():
                if "field" in argument and argument["field"] not in known:
                    yield f"{entry['code']}: plan binds unknown field {argument['field']}"
        for text in texts:
            yield from (f"{entry['code']}: {fault}" for fault in template_faults(text, known))
