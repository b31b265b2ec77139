"""The registry of trial.json, for the tests alone: one code of each kind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numbat_registries import registry as registry_module
from numbat_registries.registry import Registry, data_directory, load_registry


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The registry "trial", installed beside gates.json."""
    folder = tmp_path_factory.mktemp("registries")
    shutil.copy(data_directory() / "gates.json", folder)
    shutil.copytree(data_directory() / "schema", folder / "schema")
    shutil.copy(Path(__file__).with_name("trial.json"), folder)
    with _data_directory(folder):
        yield load_registry("trial")


@pytest.fixture
def registries_in(tmp_path: Path) -> Iterator[Path]:
    """An empty folder that is taken for the installed registries."""
    with _data_directory(tmp_path):
        yield tmp_path


@contextmanager
def _data_directory(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry_module, "data_directory", lambda: folder)
        _forget()
        yield
    _forget()


def _forget() -> None:
    load_registry.cache_clear()
    registry_module._by_prefix.cache_clear()
