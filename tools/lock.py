"""Resolve everything that the workspace may install, and write it to .ci/constraints.txt.

The ranges in the pyproject.toml files are what numbat works with; the lock is what CI installs by,
so that a run can be repeated. It names versions only, never where they come from. PyTorch is left
out: the parity environment pins it exactly.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workspace import ROOT, load_pyproject, members

__all__ = ["LOCK", "main", "requirements"]

LOCK = ROOT / ".ci" / "constraints.txt"
LEFT_OUT = {"torch"}
OLDEST_PYTHON = "3.11"


def requirements() -> tuple[Requirement, ...]:
    """What the members, their extras, their builds and the environments ask of the registry."""
    own = {canonicalize_name(member.distribution) for member in members()}
    texts: list[str] = []
    for member in members():
        settings = load_pyproject(member.path)
        texts += settings["build-system"]["requires"]
        texts += settings["project"].get("dependencies", [])
        for extra in settings["project"].get("optional-dependencies", {}).values():
            texts += extra
    for environment in load_pyproject(ROOT)["tool"]["hatch"]["envs"].values():
        texts += environment.get("dependencies", [])
        texts += environment.get("extra-dependencies", [])
    asked = {str(Requirement(text)): Requirement(text) for text in texts}
    outside = [r for r in asked.values() if canonicalize_name(r.name) not in own | LEFT_OUT]
    return tuple(sorted(outside, key=str))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="lock", description=__doc__)
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest that the ranges admit"
    )
    chosen = parser.parse_args(arguments)
    command = [os.environ.get("HATCH_UV", "uv"), "pip", "compile", "-", "--quiet", "--universal"]
    command += ["--python-version", OLDEST_PYTHON, "--strip-extras", "--no-annotate", "--no-header"]
    command += ["--output-file", str(LOCK)]
    if chosen.upgrade:
        command.append("--upgrade")
    asked = "\n".join(str(requirement) for requirement in requirements())
    resolved = subprocess.run(
        command, input=asked, text=True, stdout=subprocess.DEVNULL, check=False
    )
    if resolved.returncode:
        return 1
    print(f"{Path(LOCK).relative_to(ROOT)}: {len(LOCK.read_text().splitlines())} distributions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
