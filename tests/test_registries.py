"""Every registry is valid, ships in the wheel, and shares no prefix or code with another."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from workspace import ROOT, load_pyproject, members

REGISTRIES = sorted((ROOT / "registries").glob("*.json"))
SCHEMA = ROOT / "registries" / "schema" / "registry.schema.json"

every_registry = pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem) for path in REGISTRIES]
)


def read(path: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return parsed


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(read(SCHEMA))


@every_registry
def test_a_registry_validates_against_the_schema(path: Path) -> None:
    errors = Draft202012Validator(read(SCHEMA)).iter_errors(read(path))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@every_registry
def test_a_registry_is_named_after_its_plane_and_not_empty(path: Path) -> None:
    registry = read(path)
    assert registry["plane"] == path.stem
    assert registry["codes"]
    assert all(c["code"].startswith(f"{registry['prefix']}-") for c in registry["codes"])


@every_registry
def test_a_registry_ships_in_the_wheel(path: Path) -> None:
    targets = load_pyproject(ROOT / "registries")["tool"]["hatch"]["build"]["targets"]
    shipped = targets["wheel"]["force-include"]
    assert shipped[path.name] == f"numbat_registries/data/{path.name}"


def test_prefixes_and_codes_are_nobody_elses() -> None:
    registries = [read(path) for path in REGISTRIES]
    prefixes = Counter(registry["prefix"] for registry in registries)
    codes = Counter(code["code"] for registry in registries for code in registry["codes"])
    names = Counter(code["name"] for registry in registries for code in registry["codes"])
    for counted in (prefixes, codes, names):
        assert [name for name, times in counted.items() if times > 1] == []


@every_registry
def test_a_code_serves_requirements_that_exist(path: Path) -> None:
    """A registry may outrun its plane's requirements only for a plane that has none."""
    plane = next(member for member in members() if member.plane == path.stem)
    stated = plane.source / "requirements.toml"
    numbered = tomllib.loads(stated.read_text(encoding="utf-8"))["requirement"]
    known = {requirement["id"] for requirement in numbered}
    named = {r for code in read(path)["codes"] for r in code["requirement"]}
    assert named - known == set()


def test_every_code_named_in_the_documents_is_registered() -> None:
    registered = {code["code"] for path in REGISTRIES for code in read(path)["codes"]}
    prefixes = "|".join(read(path)["prefix"] for path in REGISTRIES)
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    documents += [member.path / "README.md" for member in members()]
    for document in documents:
        named = set(
            re.findall(rf"\b(?:{prefixes})-\d{{4}}\b", document.read_text(encoding="utf-8"))
        )
        assert named - registered == set(), document
