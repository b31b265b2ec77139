"""The commands of the README exist, and CI runs the ones that a newcomer is told to type."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from workspace import ROOT, load_pyproject, members

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(member.path / "README.md" for member in members()),
]
HATCH_OWN = {"test", "build", "env", "version", "shell"}


def command_lines(document: Path) -> list[str]:
    """Commands in the document's shell blocks: whole lines, or those after `$ ` in a session."""
    lines: list[str] = []
    for language, block in re.findall(
        r"^```(\w+)\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        text = re.sub(r"\\\n\s*", "", block)
        if language == "console":
            lines += [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        elif language in {"bash", "sh", "shell"}:
            lines += [line.strip() for line in text.splitlines()]
    stripped = (re.sub(r"\s+#.*$", "", line) for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def simple_commands(lines: list[str]) -> list[list[str]]:
    """Each command of a line joined by && or |, as words, without settings of variables."""
    found = []
    for line in lines:
        for part in re.split(r"&&|\|\|?|;", line):
            words = shlex.split(part)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words:
                found.append(words)
    return found


def ci_lines() -> list[str]:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = (line.strip() for line in script.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def ci_hatch_commands() -> set[str]:
    """Every `hatch …` command that CI runs, as typed."""
    pattern = re.compile(r"(?<![\w/.-])hatch (?:run [\w.]+:[\w-]+|test(?: -m \w+)?|build --all)")
    return {match for line in ci_lines() for match in pattern.findall(line)}


def scripts(environment: str) -> set[str]:
    environments = load_pyproject(ROOT)["tool"]["hatch"]["envs"]
    return set(environments.get(environment.split(".")[0], {}).get("scripts", {}))


def newcomer() -> list[str]:
    """The two commands that the README opens with."""
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    blocks = re.findall(r"^```bash\n(.*?)^```", opening, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line]


def test_a_newcomer_types_two_commands() -> None:
    assert newcomer() == ["python3 -m pip install hatch && hatch run gates:imaging", "hatch test"]


def test_ci_runs_what_the_newcomer_types() -> None:
    run = "\n".join(ci_lines())
    for line in newcomer():
        for command in line.split(" && "):
            assert command in run


def test_every_command_of_ci_is_documented() -> None:
    documented = "\n".join(
        line for name in ("README.md", "CONTRIBUTING.md") for line in command_lines(ROOT / name)
    )
    assert sorted(c for c in ci_hatch_commands() if c not in documented) == []


def test_ci_runs_the_suite_of_every_plane_that_has_requirements() -> None:
    suites = {
        f"hatch run gates:{member.plane}"
        for member in members()
        if member.plane and (member.source / "requirements.toml").is_file()
    }
    assert suites - ci_hatch_commands() == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_hatch_command_in_a_document_exists(document: Path) -> None:
    for words in simple_commands(command_lines(document)):
        if words[0] != "hatch":
            continue
        if words[1] == "run":
            environment, _, script = words[2].partition(":")
            assert script in scripts(environment), words
        else:
            assert words[1] in HATCH_OWN, words


@cache
def _help(program: str, verb: str) -> str:
    """What `program verb --help` prints; fails where there is no such verb."""
    executable = Path(sys.executable).with_name(program)
    arguments = [str(executable), *([verb] if verb else []), "--help"]
    asked = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, f"{program} {verb}: {asked.stderr}"
    return asked.stdout


def own_commands() -> list[tuple[str, list[str]]]:
    programs = {
        name
        for member in members()
        for name in load_pyproject(member.path)["project"].get("scripts", {})
    }
    return [
        (document.relative_to(ROOT).as_posix(), words)
        for document in DOCUMENTS
        for words in simple_commands(command_lines(document))
        if words[0] in programs
    ]


@pytest.mark.parametrize(("document", "words"), own_commands(), ids=lambda v: str(v)[:60])
def test_every_verb_and_option_in_a_document_exists(document: str, words: list[str]) -> None:
    verb = words[1] if len(words) > 1 and not words[1].startswith("-") else ""
    printed = _help(words[0], verb)
    for word in words[1:]:
        if word.startswith("--"):
            assert word.split("=")[0] in printed, document
