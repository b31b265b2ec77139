"""The lock that CI installs by covers what the workspace asks for, and names versions only."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lock import LOCK, requirements


def locked() -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        requirement = Requirement(line)
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def test_the_lock_names_versions_only() -> None:
    for entries in locked().values():
        for entry in entries:
            assert entry.url is None
            assert [clause.operator for clause in entry.specifier] == ["=="]


@pytest.mark.parametrize("requirement", [pytest.param(r, id=str(r)) for r in requirements()])
def test_what_is_asked_for_is_locked_within_its_range(requirement: Requirement) -> None:
    entries = locked()[canonicalize_name(requirement.name)]
    for entry in entries:
        (clause,) = entry.specifier
        assert requirement.specifier.contains(clause.version)
