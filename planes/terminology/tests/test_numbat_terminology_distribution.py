"""The package as a machine has it: importable, typed, and of the workspace's version."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

import numbat_terminology


def test_version_is_that_of_the_distribution() -> None:
    assert numbat_terminology.__version__ == version("numbat-terminology")


def test_types_are_published() -> None:
    assert (files("numbat_terminology") / "py.typed").is_file()
