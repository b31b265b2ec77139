"""Where the source raises which code: a static check that registry and source agree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from numbat_registries.registry import Registry


@dataclass(frozen=True, slots=True)
class RaiseSite:
    """One call of `refuse` or `notice` in the source; `code` is None when it is not a literal."""

    code: str | None
    verb: str
    module: str
    line: int
    fields: frozenset[str]

    @property
    def place(self) -> str:
        """The site as "module:line"."""
        return f"{self.module}:{self.line}"


def package_sources(package: str) -> Iterator[tuple[str, Path]]:
    """Every (module name, file) of an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return
    for location in spec.submodule_search_locations:
        root = Path(location)
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


def raise_sites(package: str) -> list[RaiseSite]:
    """Every `refuse(…)` and `notice(…)` call of a package, in order of module and line."""
    return [
        site
        for module, path in package_sources(package)
        for site in sites_in_source(path.read_text(encoding="utf-8"), module=module)
    ]


def sites_in_source(source: str, *, module: str) -> list[RaiseSite]:
    """The raise sites of one module's text."""
    sites = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
        if name not in ("refuse", "notice") or not node.args:
            continue
        if isinstance(node.func, ast.Attribute) and not _is_registries(node.func.value):
            continue
        sites.append(
            RaiseSite(
                code=_literal(node.args[0]),
                verb=name,
                module=module,
                line=node.lineno,
                fields=frozenset(keyword.arg for keyword in node.keywords if keyword.arg),
            )
        )
    return sorted(sites, key=lambda site: site.line)


def _literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _is_registries(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id == "numbat_registries"


def check_packages(packages: Iterable[str], registry: Registry) -> list[str]:
    """Disagreements between a registry and the packages that raise its codes, one line each.

    Tried: a code that is not a literal, is not registered, or is retired; evidence that a site
    gives but the registry does not know, or that the registry demands and the site does not give;
    a registered code that no site raises.
    """
    sites = [site for package in packages for site in raise_sites(package)]
    faults = []
    for site in sites:
        if site.code is None:
            faults.append(f"{site.place}: the code is not a literal")
        elif site.code.startswith(f"{registry.prefix}-"):
            faults += _site_faults(site, registry)
    raised = {site.code for site in sites}
    faults += [
        f"{code.code}: registered, and no site raises it"
        for code in registry.live
        if code.code not in raised
    ]
    return faults


def _site_faults(site: RaiseSite, registry: Registry) -> list[str]:
    code = registry.codes.get(site.code or "")
    if code is None:
        return [f"{site.place}: {site.code} is not registered"]
    if code.retired_in is not None:
        return [f"{site.place}: {site.code} was retired in {code.retired_in}"]
    faults = []
    if code.severity.is_raised != (site.verb == "refuse"):
        faults.append(
            f"{site.place}: {site.code} is a {code.severity}, but the site says {site.verb}"
        )
    demanded = {name for name, spec in code.fields.items() if not spec.optional}
    for name in sorted(site.fields - set(code.fields)):
        faults.append(f"{site.place}: {site.code} has no field {name}")
    for name in sorted(demanded - site.fields):
        faults.append(f"{site.place}: {site.code} needs the field {name}")
    return faults
