"""The planes of this installation: announced by entry point, found without naming them here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path

from numbat_registries import Refusal, refuse

GROUP = "numbat.planes"


@dataclass(frozen=True)
class Plane:
    """One field of work with its own requirements, gates and registry of codes.

    `package` is the import name; requirements, gates, corpus and mutation lists lie inside it.
    `distribution` defaults to the package's name with hyphens.
    """

    name: str
    package: str
    registry: str
    distribution: str = ""

    @cached_property
    def directory(self) -> Path:
        """The folder of the package, found without importing it.

        Raises GATE-0317 when the package is not installed.
        """
        spec = find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise refuse("GATE-0317", plane=self.name, reason=f"no package {self.package}")
        return Path(next(iter(spec.submodule_search_locations)))

    @property
    def requirements_file(self) -> Path:
        """Where the numbered requirements are."""
        return self.directory / "requirements.toml"

    @property
    def gates_directory(self) -> Path:
        """Where the gates are, one module a gate."""
        return self.directory / "gates"

    @property
    def gates_package(self) -> str:
        """Import name of the package of gates."""
        return f"{self.package}.gates"

    @property
    def corpus_file(self) -> Path:
        """Where the optional corpus sets are listed."""
        return self.directory / "corpus.toml"

    @property
    def mutation_file(self) -> Path:
        """Where the faults to seed are listed."""
        return self.directory / "mutation.toml"

    @property
    def distribution_name(self) -> str:
        """The name under which the plane is installed."""
        return self.distribution or self.package.replace("_", "-")

    @property
    def version(self) -> str:
        """Version of the installed distribution, or "not installed" for a bare source folder."""
        try:
            return version(self.distribution_name)
        except PackageNotFoundError:
            return "not installed"

    @property
    def has_requirements(self) -> bool:
        """Whether the plane has anything to prove yet."""
        return self.requirements_file.is_file()


#: The suite of the frameworks themselves: registries, ledger and gates.
FRAMEWORKS = Plane(name="gates", package="numbat_gates", registry="gates")


def plane_names() -> tuple[str, ...]:
    """The installed planes by name, without loading them."""
    return tuple(sorted(_points()))


def discover_planes() -> tuple[Plane, ...]:
    """Every installed plane that can be loaded; `broken_planes` names the others."""
    return tuple(plane for _, plane in sorted(_survey()[0].items()))


def broken_planes() -> dict[str, str]:
    """The planes that announce themselves and cannot be loaded, each with the reason."""
    return _survey()[1]


def find_plane(name: str) -> Plane:
    """One plane by name.

    Raises GATE-0901 for a name that no installed package announces, GATE-0317 when the plane
    cannot be loaded.
    """
    points = _points()
    if name not in points:
        raise refuse("GATE-0901", plane=name, known=sorted(points))
    return _load(points[name])


def _survey() -> tuple[dict[str, Plane], dict[str, str]]:
    planes, broken = {}, {}
    for name, point in sorted(_points().items()):
        try:
            planes[name] = _load(point)
        except Refusal as refusal:
            broken[name] = str(refusal.diagnostic.fields["reason"])
    return planes, broken


def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _load(point: EntryPoint) -> Plane:
    try:
        plane = point.load()
    except Exception as error:
        # Whatever stops a foreign module from loading, the fault is the plane's and is named so.
        raise refuse(
            "GATE-0317", plane=point.name, reason=f"{point.value}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(plane, Plane):
        raise refuse("GATE-0317", plane=point.name, reason=f"{point.value} is not a Plane")
    return plane
