"""Where the source raises which code: a static check that registry and source agree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from numbat_registries.registry import Registry, load_registries

_VERBS = ("refuse", "notice")
_HOME = "numbat_registries"
_CODE = re.compile(r"[A-Z]{3,5}-[0-9]{4}")


@dataclass(frozen=True, slots=True)
class RaiseSite:
    """One use of `refuse` or `notice` in the source.

    `code` is None when it cannot be read off the source; `fault` says why, or what else is wrong
    with the site. `open_fields` tells that evidence was given as `**mapping`.
    """

    code: str | None
    verb: str
    module: str
    line: int
    fields: frozenset[str] = frozenset()
    open_fields: bool = False
    fault: str = ""

    @property
    def place(self) -> str:
        """The site as "module:line"."""
        return f"{self.module}:{self.line}"


def package_sources(package: str) -> Iterator[tuple[str, Path]]:
    """Every (module name, file) of an installed package or module, without importing it.

    Nothing for a package that is not installed.
    """
    spec = find_spec(package)
    if spec is None:
        return
    if not spec.submodule_search_locations:
        if spec.origin and spec.origin.endswith(".py"):
            yield package, Path(spec.origin)
        return
    for location in spec.submodule_search_locations:
        root = Path(location)
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


def raise_sites(package: str) -> list[RaiseSite]:
    """Every use of `refuse` and `notice` in a package, in order of module and line."""
    return [
        site
        for module, path in package_sources(package)
        for site in sites_in_source(path.read_bytes(), module=module)
    ]


def sites_in_source(source: str | bytes, *, module: str) -> list[RaiseSite]:
    """The raise sites of one module's text, under whatever name it imports the two functions.

    A use that hides its code (the function assigned, passed on or fetched by name, a diagnostic
    made by hand) is a site with a fault, so that no code is raised unseen.
    """
    tree = ast.parse(source)
    names = _Names.of(tree, module=module)
    callees = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    dropped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    sites = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            site = _call(node, names, module=module, dropped=id(node) in dropped)
        elif isinstance(node, ast.Name | ast.Attribute) and id(node) not in callees:
            site = _mention(node, names, module=module)
        else:
            site = None
        if site is not None:
            sites.append(site)
    return sorted(sites, key=lambda site: site.line)


@dataclass(frozen=True, slots=True)
class _Names:
    """What the names of one module stand for, wherever in it they were imported."""

    verbs: Mapping[str, str]
    modules: frozenset[str]
    makers: frozenset[str]

    @classmethod
    def of(cls, tree: ast.AST, *, module: str) -> _Names:
        verbs: dict[str, str] = {}
        modules: set[str] = set()
        makers: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules |= {_bound(alias) for alias in node.names if _is_numbat(alias.name)}
            elif isinstance(node, ast.ImportFrom) and (node.level or _is_numbat(node.module or "")):
                for alias in node.names:
                    if alias.name == "*":
                        verbs |= {verb: verb for verb in _VERBS}
                        makers.add("Diagnostic")
                    elif alias.name in _VERBS:
                        verbs[_bound(alias)] = alias.name
                    elif alias.name == "Diagnostic":
                        makers.add(_bound(alias))
                    else:
                        modules.add(_bound(alias))
        if module == f"{_HOME}.raising":
            verbs |= {verb: verb for verb in _VERBS}
            makers.clear()
        return cls(verbs, frozenset(modules), frozenset(makers))

    def verb(self, node: ast.expr) -> str | None:
        """The verb that an expression names, if it names one."""
        if isinstance(node, ast.Name):
            return self.verbs.get(node.id)
        if isinstance(node, ast.Attribute) and node.attr in _VERBS and self.is_module(node.value):
            return node.attr
        return None

    def is_module(self, node: ast.expr) -> bool:
        """Whether an expression names a numbat module, or something imported from one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules

    def makes_diagnostic(self, node: ast.expr) -> bool:
        """Whether an expression names the class Diagnostic."""
        if isinstance(node, ast.Name):
            return node.id in self.makers
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "Diagnostic"
            and self.is_module(node.value)
        )


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_numbat(module: str) -> bool:
    return module.partition(".")[0].startswith("numbat")


def _call(node: ast.Call, names: _Names, *, module: str, dropped: bool) -> RaiseSite | None:
    verb = names.verb(node.func)
    code = _literal(node.args[0]) if node.args else None
    if verb is None and isinstance(node.func, ast.Attribute) and node.func.attr in _VERBS:
        # Whatever the owner is, a call that spells out a code is a raise site.
        verb = node.func.attr if code is not None and _CODE.fullmatch(code) else None
    if verb is None:
        fault = _evasion(node, names)
        return RaiseSite(None, "", module, node.lineno, fault=fault) if fault else None
    fault = ""
    if code is None:
        fault = "the code is not a literal"
    elif dropped and verb == "refuse":
        fault = f"{code} is made and not raised"
    given = frozenset(keyword.arg for keyword in node.keywords if keyword.arg)
    open_fields = any(keyword.arg is None for keyword in node.keywords)
    return RaiseSite(code, verb, module, node.lineno, given, open_fields, fault)


def _evasion(node: ast.Call, names: _Names) -> str:
    if names.makes_diagnostic(node.func):
        return "a Diagnostic is made by hand, past the registry"
    callee = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if callee in ("import_module", "__import__") and first is not None:
        imported = _literal(first)
        return f"{imported} is imported by name" if (imported or "").startswith(_HOME) else ""
    if callee == "getattr" and len(node.args) > 1 and names.is_module(node.args[0]):
        verb = _literal(node.args[1])
        return f"{verb} is fetched by name" if verb in _VERBS else ""
    return ""


def _mention(node: ast.Name | ast.Attribute, names: _Names, *, module: str) -> RaiseSite | None:
    verb = names.verb(node) if isinstance(node.ctx, ast.Load) else None
    if verb is None:
        return None
    fault = f"{verb} is passed on as a value, so that its codes cannot be seen"
    return RaiseSite(None, verb, module, node.lineno, fault=fault)


def _literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def check_packages(packages: Iterable[str], registry: Registry) -> list[str]:
    """Disagreements between a registry and the packages that raise its codes, one line each.

    Tried: a package that is not there; a code that is hidden, not registered anywhere, or retired;
    evidence that a site gives but the registry does not know, or that the registry demands and the
    site does not give; a refusal made and not raised; a registered code that no site raises.
    """
    registries = {known.prefix: known for known in load_registries().values()}
    registries[registry.prefix] = registry
    faults = []
    raised = set()
    for package in packages:
        if next(package_sources(package), None) is None:
            faults.append(f"{package}: no such package is installed")
        for site in raise_sites(package):
            faults += _site_faults(site, registries)
            raised.add(site.code)
    faults += [
        f"{code.code}: registered, and no site raises it"
        for code in registry.live
        if code.code not in raised
    ]
    return faults


def _site_faults(site: RaiseSite, registries: Mapping[str, Registry]) -> list[str]:
    if site.fault:
        return [f"{site.place}: {site.fault}"]
    prefix = (site.code or "").partition("-")[0]
    code = registries[prefix].codes.get(site.code or "") if prefix in registries else None
    if code is None:
        return [f"{site.place}: {site.code} is not registered"]
    if code.retired_in is not None:
        return [f"{site.place}: {site.code} was retired in {code.retired_in}"]
    faults = []
    if code.severity.is_raised != (site.verb == "refuse"):
        faults.append(
            f"{site.place}: {site.code} is a {code.severity}, but the site says {site.verb}"
        )
    if site.open_fields:
        faults.append(f"{site.place}: {site.code} gets its evidence as **mapping, not by name")
    demanded = {name for name, spec in code.fields.items() if not spec.optional}
    for name in sorted(site.fields - set(code.fields)):
        faults.append(f"{site.place}: {site.code} has no field {name}")
    for name in sorted(demanded - site.fields):
        if not site.open_fields:
            faults.append(f"{site.place}: {site.code} needs the field {name}")
    return faults
