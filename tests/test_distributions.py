"""Each distribution builds, installs alone where nothing else is, and runs its gates there."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from wheelhouse import Distributions, EmptyEnvironment, build_from_sdist
from workspace import Member, members, workspace_version

pytestmark = pytest.mark.installed

PASS, NOT_RUN = 0, 3

every_member = pytest.mark.parametrize(
    "member", [pytest.param(member, id=member.room) for member in members()]
)


def contents(wheel: Path) -> dict[str, str]:
    """Digest of each file of a wheel, but for the record that holds the digests."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if not name.endswith("/RECORD")
        }


@every_member
def test_a_wheel_holds_the_package_and_nothing_else(built: Distributions, member: Member) -> None:
    names = contents(built.wheels[member.distribution])
    folders = {name.split("/")[0] for name in names}
    stem = f"{member.distribution.replace('-', '_')}-{workspace_version()}"
    assert folders == {*member.packages, f"{stem}.dist-info"}
    assert {f"{package}/py.typed" for package in member.packages} <= names.keys()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {path.relative_to(member.path / "src").as_posix() for path in member.modules}
    packed = {name for name in names if name.endswith(".py")}
    assert packed == sources


@every_member
def test_an_sdist_builds_the_same_wheel(
    built: Distributions, member: Member, tmp_path: Path
) -> None:
    sdist = built.sdists[member.distribution]
    again = build_from_sdist(sdist, tmp_path / "unpacked", tmp_path / "wheel")
    assert contents(again) == contents(built.wheels[member.distribution])


@every_member
def test_a_distribution_installs_alone(
    built: Distributions, member: Member, tmp_path: Path
) -> None:
    environment = EmptyEnvironment.create(tmp_path / "environment")
    wheels = built.wheels_for(member)
    environment.install(wheels.values())
    told = environment.run(
        "-c",
        f"import {member.package} as m, importlib.metadata as i\n"
        f"print(i.version({member.distribution!r}), m.__file__)",
    )
    assert told.returncode == 0, told.stderr
    version, place = told.stdout.split(maxsplit=1)
    assert version == workspace_version()
    assert Path(place.strip()).is_relative_to(environment.path)

    own = {other.distribution for other in members()}
    present = environment.distributions()
    assert present & own == set(wheels)
    assert "torch" not in present
    assert ("pysam" in present) <= (member.plane == "genomics")

    if member.plane is not None:
        if member.extras:
            environment.install_extras(member, wheels)
        _runs_its_gates(environment, member)


def _runs_its_gates(environment: EmptyEnvironment, member: Member) -> None:
    """A plane with requirements passes as installed; one without says that nothing was run."""
    built_yet = (member.source / "requirements.toml").is_file()
    reports = environment.path / "reports"
    run = environment.run(
        "-m", "numbat_gates", "run", str(member.plane), "--report", str(reports), "--json"
    )
    assert run.returncode == (PASS if built_yet else NOT_RUN), run.stderr[-4000:]
    report = json.loads(run.stdout)
    assert report["plane"] == member.plane
    assert report["version"] == workspace_version()
    assert report["verdict"] == ("PASS" if built_yet else "NOT_RUN")
    assert bool(report["gates"]) == built_yet
