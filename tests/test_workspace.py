"""One version, literal pins, the same rooms in every package, and no file outside a room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from workspace import ROOT, Member, load_pyproject, members, workspace_version

PLANES = ("imaging", "genomics", "terminology", "evidence", "voice", "agent")
MEMBERS = ("registries", "ledger", "gates", "core", *(f"planes/{p}" for p in PLANES), "abi")

ROOT_FILES = {
    ".gitattributes",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "NOTICE",
    "README.md",
    "VERSION.py",
    "pyproject.toml",
}
ROOT_ROOMS = {".ci", "tests", "tools"}
MEMBER_FILES = {
    "CHANGELOG.md",
    "DESIGN.md",
    "LICENSE",
    "README.md",
    "hatch_build.py",
    "pyproject.toml",
}
MEMBER_ROOMS = {"bench", "docs", "src", "tests"}

every_member = pytest.mark.parametrize(
    "member", [pytest.param(member, id=member.room) for member in members()]
)


def tracked_files() -> Iterator[PurePosixPath]:
    """What is committed, or would be: neither ignored files nor build outputs."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = filter(None, listed.stdout.split("\0"))
    yield from (PurePosixPath(name) for name in names if (ROOT / name).is_file())


def has_room(file: PurePosixPath) -> bool:
    """Whether the tree has a place for this file."""
    if len(file.parts) == 1:
        return file.name in ROOT_FILES
    if file.parts[0] in ROOT_ROOMS:
        return True
    for room in MEMBERS:
        if file.is_relative_to(room):
            inside = file.relative_to(room)
            if room == "registries" and (inside.parts[0] == "schema" or inside.match("*.json")):
                return True
            return inside.parts[0] in (MEMBER_FILES if len(inside.parts) == 1 else MEMBER_ROOMS)
    return False


def test_every_file_of_the_tree_is_in_a_room() -> None:
    assert [str(file) for file in tracked_files() if not has_room(file)] == []


@pytest.mark.parametrize(
    "stray", ["notes.txt", "utils/x.py", "planes/dental/README.md", "core/a.py", "ledger/x/y.py"]
)
def test_a_stray_file_is_told(stray: str) -> None:
    assert not has_room(PurePosixPath(stray))


def test_the_members_are_those_of_the_house() -> None:
    assert {member.room for member in members()} == set(MEMBERS)
    projects = {str(file.parent) for file in tracked_files() if file.name == "pyproject.toml"}
    assert projects - {"."} == set(MEMBERS)


@every_member
def test_every_package_has_the_same_rooms(member: Member) -> None:
    wanted = ["pyproject.toml", "README.md", "LICENSE", "tests", "bench", "src"]
    wanted += ["DESIGN.md"] if member.room.startswith("planes/") else []
    assert [name for name in wanted if not (member.path / name).exists()] == []
    assert (member.source / "__init__.py").is_file()
    assert (member.source / "py.typed").is_file()
    assert list((member.path / "tests").rglob("test_*.py"))


@every_member
def test_every_package_carries_the_licence(member: Member) -> None:
    assert (member.path / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    project = load_pyproject(member.path)["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]


@every_member
def test_no_readme_is_a_heading_alone(member: Member) -> None:
    text = (member.path / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {member.distribution}\n")
    assert len(text.split()) > 20


@every_member
def test_the_version_is_read_from_one_file(member: Member) -> None:
    settings = load_pyproject(member.path)
    assert settings["project"]["dynamic"] == ["version"]
    path = settings["tool"]["hatch"]["version"]["path"]
    assert (member.path / path).resolve() == ROOT / "VERSION.py"


@every_member
def test_pins_between_members_are_literal_and_equal(member: Member) -> None:
    version = Version(workspace_version())
    pin = f">={version.major}.{version.minor},<{version.major}.{version.minor + 1}"
    stated = load_pyproject(member.path)["project"].get("dependencies", [])
    own = {other.distribution for other in members()}
    for text in stated:
        name = Requirement(text).name
        if name in own:
            assert text == f"{name}{pin}"
    assert Requirement(f"any{pin}").specifier.contains(version)


@every_member
def test_every_other_dependency_has_a_lower_bound(member: Member) -> None:
    project = load_pyproject(member.path)["project"]
    texts = [*project.get("dependencies", [])]
    for extra in project.get("optional-dependencies", {}).values():
        texts += extra
    unbound = [t for t in texts if not _has_lower_bound(Requirement(t))]
    assert unbound == []


def test_every_tool_of_an_environment_has_a_lower_bound() -> None:
    texts = [
        text
        for environment in load_pyproject(ROOT)["tool"]["hatch"]["envs"].values()
        for text in environment.get("dependencies", [])
    ]
    outside = [text for text in texts if not text.startswith("numbat-")]
    assert [text for text in outside if not _has_lower_bound(Requirement(text))] == []


def _has_lower_bound(requirement: Requirement) -> bool:
    return any(clause.operator in {">=", "==", "~="} for clause in requirement.specifier)


@every_member
def test_dependencies_are_static(member: Member) -> None:
    settings = load_pyproject(member.path)
    assert "metadata" not in settings["tool"]["hatch"]
    assert {canonicalize_name(settings["project"]["name"])} == {settings["project"]["name"]}


def test_each_tool_looks_at_every_member() -> None:
    settings = load_pyproject(ROOT)["tool"]
    sources = {f"{member.room}/src" for member in members()}
    assert {path for path in settings["mypy"]["files"] if path.endswith("/src")} == sources
    tested = {f"{member.room}/tests" for member in members()} | {"tests"}
    assert set(settings["pytest"]["ini_options"]["testpaths"]) == tested
    environments = settings["hatch"]["envs"]
    for name in ("hatch-test", "lint"):
        stated = environments[name]["workspace"]["members"]
        paths = [member if isinstance(member, str) else member["path"] for member in stated]
        assert paths == environments["default"]["workspace"]["members"]
    (matrix,) = environments["plane"]["matrix"]
    assert matrix["plane"] == list(PLANES)


@pytest.mark.parametrize("name", ["gates", "mutate"])
def test_every_plane_has_its_command(name: str) -> None:
    scripts = load_pyproject(ROOT)["tool"]["hatch"]["envs"][name]["scripts"]
    script = {"gates": "gate", "mutate": "mutate"}[name]
    for plane in PLANES:
        assert scripts[plane] == f"hatch run plane.{plane}:{script} {{args}}"
    assert scripts["gates"] == f"hatch run frameworks:{script} {{args}}"


def test_no_module_is_an_attic() -> None:
    attics = {"utils.py", "helpers.py", "common.py", "misc.py", "util.py"}
    assert [str(file) for file in tracked_files() if file.name in attics] == []


def test_the_changelog_has_this_version() -> None:
    assert f"## {workspace_version()}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_tree_is_the_one_under_test() -> None:
    for member in members():
        module = __import__(member.package)
        assert Path(str(module.__file__)).is_relative_to(ROOT)
