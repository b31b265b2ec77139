"""SHA-256 digests of what a verdict rests on: code, requirement texts, gates, inputs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numbat_gates.planes import Plane
from numbat_gates.registration import Gate, gate_modules
from numbat_gates.requirements import Requirements

#: What executes: sources and compiled modules.
CODE_SUFFIXES = frozenset({".py", ".pyx", ".c", ".h", ".so", ".pyd", ".dylib"})
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
FRAMEWORK_PACKAGES = ("numbat_registries", "numbat_ledger", "numbat_gates")


def is_digest(text: str) -> bool:
    """Whether a text is a digest as this module writes it."""
    return _DIGEST.fullmatch(text) is not None


def digest_bytes(data: bytes) -> str:
    """SHA-256 as "sha256:<hex>"."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def digest_json(value: Any) -> str:
    """SHA-256 of JSON data written with sorted keys and no blanks."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return digest_bytes(text.encode("utf-8"))


def digest_tree(folder: Path) -> str:
    """SHA-256 over all files of a folder: the sorted lines "<hex>  <path inside>" that sha256sum
    would write. A single file has the digest of its bytes.
    """
    if folder.is_file():
        return digest_file(folder)
    lines = sorted(
        (path.relative_to(folder).as_posix(), digest_file(path))
        for path in folder.rglob("*")
        if path.is_file()
    )
    text = "".join(f"{digest.removeprefix('sha256:')}  {name}\n" for name, digest in lines)
    return digest_bytes(text.encode("utf-8"))


def code_digests(package: str, *, without: Iterable[Path] = ()) -> dict[str, str]:
    """The digest of every file of a package that executes, by its path inside the package's parent.

    `without` names folders to leave out.
    """
    excluded = tuple(without)
    return {
        path.relative_to(root.parent).as_posix(): digest_file(path)
        for root in _roots(package)
        for path in sorted(root.rglob("*"))
        if path.suffix in CODE_SUFFIXES
        and path.is_file()
        and not any(folder in path.parents for folder in excluded)
    }


def framework_digests() -> dict[str, str]:
    """The digests of registries, ledger and gates, without the frameworks' own gates."""
    found: dict[str, str] = {}
    for package in FRAMEWORK_PACKAGES:
        found |= code_digests(package, without=[root / "gates" for root in _roots(package)])
    return found


def requirements_digest(requirements: Requirements) -> str:
    """The digest of what the requirements say, whatever the layout of their file."""
    return digest_json(requirements.texts())


def gate_digests(plane: Plane, gates: Iterable[Gate]) -> dict[str, str]:
    """The digest of each gate's module together with the helper modules of the gates' folder."""
    modules = dict(gate_modules(plane))
    holding = {modules[item.module] for item in gates if item.module in modules}
    helpers = sorted(set(plane.gates_directory.rglob("*.py")) - set(modules.values()))
    shared = [(path.relative_to(plane.gates_directory).as_posix(), path) for path in helpers]
    by_path = {
        path: digest_json(
            [[name, digest_file(file)] for name, file in [(path.name, path), *shared]]
        )
        for path in holding
    }
    return {item.id: by_path[modules[item.module]] for item in gates if item.module in modules}


def registry_digest(name: str) -> str:
    """The digest of a registry file."""
    from numbat_registries.registry import registry_path

    return digest_file(registry_path(name))


def distribution_versions() -> dict[str, str]:
    """Name and version of every distribution of this environment."""
    found = {
        item.metadata["Name"]: item.version for item in distributions() if item.metadata["Name"]
    }
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


def plane_digests(
    plane: Plane, requirements: Requirements, gates: Iterable[Gate]
) -> dict[str, Any]:
    """Everything but the inputs: the digests that a later check of a report computes again."""
    return {
        "code": code_digests(plane.package, without=[plane.gates_directory]),
        "frameworks": framework_digests(),
        "requirements": requirements_digest(requirements),
        "gates": gate_digests(plane, gates),
        "registry": registry_digest(plane.registry),
    }


def _roots(package: str) -> Iterator[Path]:
    spec = find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(location)
