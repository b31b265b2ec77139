"""Raise sites: the static check that registry and source agree, and that it can fail."""

from __future__ import annotations

from dataclasses import replace

from numbat_gates import Check, gate
from numbat_gates.digests import FRAMEWORK_PACKAGES
from numbat_registries import Registry, load_registry
from numbat_registries.raise_sites import check_packages, raise_sites, sites_in_source

_HERE = "numbat_gates.gates."
_IMPORT = "from numbat_registries import refuse, notice\n"
_RIGHT = "raise refuse('GATE-0102', name=name, known=[])"


@gate(
    "GATE-G02",
    phase=1,
    discharges=["GATE-R002"],
    title="Every registered code has a raise site, and every raise site a registered code",
)
def raise_sites_agree(check: Check) -> None:
    registry = load_registry("gates")
    check.equal("disagreements", check_packages(FRAMEWORK_PACKAGES, registry), [])
    sites = [site for package in FRAMEWORK_PACKAGES for site in raise_sites(package)]
    raised = {site.code for site in sites if not site.module.startswith(_HERE)}
    for code in registry.live:
        # A raise in a gate shows nothing: only the software's own sites count.
        check.true(f"{code.code} {code.name} has a raise site", code.code in raised)
    _a_code_that_nothing_raises(check, registry)
    _an_unregistered_code(check, registry)
    _wrong_sites(check)


def _a_code_that_nothing_raises(check: Check, registry: Registry) -> None:
    idle = replace(registry.codes["GATE-0102"], code="GATE-0199", name="never-raised")
    more = replace(registry, codes={**registry.codes, "GATE-0199": idle})
    check.equal(
        "a registered code that nothing raises is told",
        check_packages(FRAMEWORK_PACKAGES, more),
        ["GATE-0199: registered, and no site raises it"],
    )
    retired = replace(more, codes={**more.codes, "GATE-0199": replace(idle, retired_in="0.2")})
    check.equal("a retired code needs none", check_packages(FRAMEWORK_PACKAGES, retired), [])


def _an_unregistered_code(check: Check, registry: Registry) -> None:
    fewer = replace(
        registry, codes={code: it for code, it in registry.codes.items() if code != "GATE-0102"}
    )
    told = check_packages(FRAMEWORK_PACKAGES, fewer)
    check.at_least("raises of a code that nobody registered are told", len(told), 1, "sites")
    check.true("each says so", all(line.endswith("GATE-0102 is not registered") for line in told))


def _wrong_sites(check: Check) -> None:
    for name, text in {
        "a literal refusal": _RIGHT,
        "a notice": "notice('GATE-0102', name=name, known=[])",
    }.items():
        found = sites_in_source(_IMPORT + text, module="toy")
        check.equal(f"{name}: code", [site.code for site in found], ["GATE-0102"])
        check.equal(f"{name}: fault", [site.fault for site in found], [""])
        check.equal(f"{name}: place", [site.place for site in found], ["toy:2"])
        check.equal(f"{name}: evidence", [sorted(s.fields) for s in found], [["known", "name"]])
    for name, text in {
        "a code that is computed": "raise refuse('GATE-' + '0102', name=name, known=[])",
        "a refusal made and dropped": _RIGHT.removeprefix("raise "),
        "refuse under another name": "make = refuse",
        "refuse passed on": "list(map(refuse, codes))",
        "refuse fetched by name": "import numbat_registries\ngetattr(numbat_registries, 'refuse')",
        "a diagnostic made by hand": "from numbat_registries import Diagnostic\nDiagnostic('X')",
        "an import by name": "import_module('numbat_registries')",
    }.items():
        faults = [site.fault for site in sites_in_source(_IMPORT + text, module="toy")]
        check.true(f"{name} is told", any(faults), measured=faults, required="a fault")
