"""What the tests of the whole workspace share: distributions, built once a session."""

from __future__ import annotations

import pytest

from wheelhouse import Distributions, build_all
from workspace import members


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    into = tmp_path_factory.mktemp("distributions")
    return Distributions(
        wheels=build_all(members(), "wheel", into / "wheels"),
        sdists=build_all(members(), "sdist", into / "sdists"),
    )
