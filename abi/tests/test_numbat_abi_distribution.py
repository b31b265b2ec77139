"""The package as a machine has it: importable, typed, and of the workspace's version."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

import numbat_abi


def test_version_is_that_of_the_distribution() -> None:
    assert numbat_abi.__version__ == version("numbat-abi")


def test_types_are_published() -> None:
    assert (files("numbat_abi") / "py.typed").is_file()
