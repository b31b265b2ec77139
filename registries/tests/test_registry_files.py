"""The registry files: found, valid, consistent, and told what is wrong when they are not."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from numbat_registries import Refusal, find_code, load_registries, load_registry, registry_names
from numbat_registries.registry import (
    data_directory,
    parse_registry,
    registry_path,
    validate_registry,
)

DISTRIBUTION = Path(__file__).parents[1]
NAMES = registry_names()
TRIAL = json.loads(Path(__file__).with_name("trial.json").read_text(encoding="utf-8"))
CODES = TRIAL["codes"]
GAP = CODES[0]


def code(number: int, name: str, /, **parts: Any) -> dict[str, Any]:
    """A valid registry entry, with the given parts in place of the plain ones."""
    return {
        "code": f"TRY-{number:04d}",
        "name": name,
        "severity": "refusal",
        "since": "0.1",
        "requirement": ["TRY-R001"],
        "message": "something is the matter here",
        "fields": {},
        "explains": "A code that exists for the tests of the registries.",
        "example": ["pass"],
        "repair": [plan()],
    } | parts


def plan(**parts: Any) -> dict[str, Any]:
    """A valid repair plan, with the given parts in place of the plain ones."""
    return {"action": "fix-input", "args": {}, "safe": False, "says": "mend the input"} | parts


def document(*codes: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return copy.deepcopy({"plane": "trial", "prefix": "TRY", "codes": list(codes)} | parts)


# ------------------------------------------------------------------ the files of this release


def test_there_are_registries() -> None:
    assert {"gates", "imaging"} <= set(NAMES)
    assert load_registries().keys() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_registry_is_valid(name: str) -> None:
    parsed = json.loads(registry_path(name).read_text(encoding="utf-8"))
    assert validate_registry(parsed) == []
    assert parsed["plane"] == name


@pytest.mark.parametrize("name", NAMES)
def test_every_code_is_found_by_its_name(name: str) -> None:
    registry = load_registry(name)
    assert all(find_code(code.code) is code for code in registry)
    assert len(registry) == len(list(registry))


def test_no_two_registries_share_a_prefix() -> None:
    prefixes = Counter(registry.prefix for registry in load_registries().values())
    assert [prefix for prefix, times in prefixes.items() if times > 1] == []


# ------------------------------------------------------------------ faults of a document


def test_the_codes_of_the_tests_are_valid() -> None:
    assert validate_registry(document(*CODES)) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"code": "TRY-1"}, ".code: "),
        ({"name": "Slice Gap"}, ".name: "),
        ({"severity": "error"}, ".severity: "),
        ({"since": 1}, ".since: "),
        ({"retired_in": ""}, ".retired_in: "),
        ({"requirement": ["R1"]}, ".requirement[0]: "),
        ({"message": "short"}, ".message: "),
        ({"explains": ""}, ".explains: "),
        ({"explains": "too little said"}, ".explains: "),
        ({"example": []}, ".example: "),
        ({"repair": []}, ".repair: "),
        ({"colour": "red"}, "[0]: "),
        ({"fields": {"x": {"type": "float", "says": "a number"}}}, ".fields.x.type: "),
        ({"fields": {"x": {"type": "number"}}}, ".fields.x: "),
        (
            {"fields": {"x": {"type": "array", "says": "a thing", "items": "x"}}},
            ".fields.x.items: ",
        ),
        (
            {"fields": {"x": {"type": "number", "says": "two", "items": "string"}}},
            ".fields.x.type: ",
        ),
    ],
)
def test_a_code_that_is_not_documented_or_typed_is_told(change: dict[str, Any], told: str) -> None:
    lines = validate_registry(document(code(1, "a-code", **change)))
    assert any(told in line for line in lines), lines


@pytest.mark.parametrize("missing", sorted(code(1, "x")))
def test_a_code_without_one_of_its_parts_is_told(missing: str) -> None:
    entry = code(1, "a-code")
    del entry[missing]
    (line,) = validate_registry(document(entry))
    assert f"'{missing}' is a required property" in line


@pytest.mark.parametrize("missing", ["plane", "prefix", "codes"])
def test_a_registry_without_one_of_its_parts_is_told(missing: str) -> None:
    whole = document()
    del whole[missing]
    (line,) = validate_registry(whole)
    assert f"'{missing}' is a required property" in line


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"action": "panic"}, "repair[0].action: "),
        ({"says": "do it"}, "repair[0].says: "),
        ({"safe": "yes"}, "repair[0].safe: "),
        ({"safe": True, "loses": "slices"}, "repair[0]: "),
        ({"action": "rerun-with"}, "repair[0].args: "),
        ({"action": "install-package"}, "repair[0].args: "),
        ({"args": {"x": {}}}, "repair[0].args.x: "),
        ({"args": {"x": {"const": 1, "ask": "string"}}}, "repair[0].args.x: "),
        ({"args": {"x": {"ask": "date"}}}, "repair[0].args.x.ask: "),
        ({"args": {"x": {"ask": "string", "choices": []}}}, "repair[0].args.x.choices: "),
        ({"args": {"x": {"field": "nothing"}}}, "plan binds unknown field nothing"),
        ({"says": "mend the {thing}"}, "text uses {thing}, which is not a field"),
        ({"effect": "mends the {thing}"}, "text uses {thing}, which is not a field"),
        ({"loses": "the {thing}"}, "text uses {thing}, which is not a field"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_told(change: dict[str, Any], told: str) -> None:
    lines = validate_registry(document(code(1, "a-code", repair=[plan(**change)])))
    assert any(told in line for line in lines), lines


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("a gap of {gap} mm", "text uses {gap}"),
        ("a gap of {gap_mm:.2f} mm", "text formats {gap_mm} itself"),
        ("a gap of {gap_mm!r} mm", "text formats {gap_mm} itself"),
        ("a gap of {gap_mm.real} mm", "text uses {gap_mm.real}"),
        ("a gap of {indices[0]} mm", "text uses {indices[0]}"),
        ("a gap of {} mm", "text uses {}"),
        ("a gap of {gap_mm mm", "is no template"),
        ("a gap of gap_mm} mm", "is no template"),
    ],
)
def test_a_message_that_cannot_be_filled_is_told(message: str, told: str) -> None:
    lines = validate_registry(document(GAP | {"message": message}))
    assert any(told in line for line in lines), lines


def test_braces_may_be_written_twice() -> None:
    assert validate_registry(document(GAP | {"message": "the set {{1}} with {gap_mm}"})) == []


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ([code(1, "a"), code(1, "b")], "TRY-0001: is registered twice"),
        ([code(1, "a"), code(2, "a")], "a: is the name of several codes"),
        ([code(1, "a", code="GEN-0001")], "GEN-0001: does not start with TRY-"),
    ],
)
def test_codes_that_would_have_two_meanings_are_told(
    codes: list[dict[str, Any]], told: str
) -> None:
    assert told in validate_registry(document(*codes))


# ------------------------------------------------------------------ loading


@pytest.mark.parametrize(
    "codes", [[code(1, "a"), code(1, "b")], [code(1, "a", code="GEN-0001")]], ids=["twice", "other"]
)
def test_an_inconsistent_registry_does_not_load(codes: list[dict[str, Any]]) -> None:
    with pytest.raises(Refusal) as caught:
        parse_registry(document(*codes))
    assert caught.value.code == "GATE-0103"


def test_a_retired_code_stays_and_is_not_live() -> None:
    registry = parse_registry(document(*CODES))
    assert registry.codes["TRY-0004"].retired_in == "0.1"
    assert "TRY-0004" not in {code.code for code in registry.live}
    assert len(registry.live) == len(CODES) - 1


@pytest.mark.parametrize("name", ["radiology", "", "schema/registry.schema", "../registries/gates"])
def test_only_a_registry_loads_as_one(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        load_registry(name)
    assert caught.value.code == "GATE-0102"
    assert caught.value.diagnostic.fields["known"] == list(NAMES)


def test_a_damaged_installation_is_said_to_be_one(registries_in: Path) -> None:
    with pytest.raises(LookupError, match=r"damaged: its gates\.json is missing"):
        find_code("TRY-0001")
    gates = json.loads((DISTRIBUTION / "gates.json").read_text(encoding="utf-8"))
    gates["codes"].append(gates["codes"][0])
    (registries_in / "gates.json").write_text(json.dumps(gates), encoding="utf-8")
    with pytest.raises(LookupError, match="damaged: GATE-0101 is registered twice"):
        load_registry("gates")


# ------------------------------------------------------------------ where the files lie


def test_an_editable_installation_reads_the_checkout() -> None:
    assert (data_directory() / "gates.json").is_file()
    assert (data_directory() / "schema" / "registry.schema.json").is_file()


def test_every_file_goes_into_the_wheel() -> None:
    settings = tomllib.loads((DISTRIBUTION / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = {path.name: f"numbat_registries/data/{path.name}" for path in registry_files()}
    assert shipped == {"schema": "numbat_registries/data/schema"} | files


def registry_files() -> list[Path]:
    return sorted(DISTRIBUTION.glob("*.json"))


def test_the_wheel_of_the_sdist_finds_the_same_files(tmp_path: Path) -> None:
    """Built from a copy, so that nothing outside the distribution but its version is read."""
    source = tmp_path / "workspace" / "registries"
    ignored = shutil.ignore_patterns("__pycache__", "tests", "dist", ".*")
    shutil.copytree(DISTRIBUTION, source, ignore=ignored)
    shutil.copy(DISTRIBUTION.parent / "VERSION.py", source.parent)
    build(source, "sdist", tmp_path)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    build(unpacked, "wheel", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
            "from numbat_registries import load_registries\n"
            "from numbat_registries.registry import data_directory, registry_names\n"
            "assert (data_directory() / 'schema' / 'registry.schema.json').is_file()\n"
            "print(data_directory(), *registry_names(), sum(map(len, load_registries().values())))",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout.split()
    codes = sum(len(json.loads(path.read_text("utf-8"))["codes"]) for path in registry_files())
    folder = tmp_path / "site" / "numbat_registries" / "data"
    assert said == [str(folder), *(path.stem for path in registry_files()), str(codes)]


def build(source: Path, target: str, into: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
