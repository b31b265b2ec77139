"""Registries: what is registered is valid, and nothing but what is registered is raised."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy

from numbat_gates import Check, gate
from numbat_gates.gates._examples import run_source
from numbat_registries import load_registries, load_registry
from numbat_registries.registry import registry_path, validate_registry


@gate(
    "GATE-G01",
    phase=1,
    discharges=["GATE-R001"],
    title="Only registered codes are raised, with evidence that fits",
)
def registries(check: Check) -> None:
    for name in load_registries():
        check.data(registry_path(name), name=f"registry-{name}")
        document = json.loads(registry_path(name).read_text(encoding="utf-8"))
        check.equal(f"{name}: faults of the registry file", validate_registry(document), [])
        codes = [entry["code"] for entry in document["codes"]]
        check.equal(f"{name}: codes are sorted and unique", codes, sorted(set(codes)))
    _invalid_files_are_told(check)
    _requirements_exist(check)
    _faults_at_the_raise(check)
    _evidence(check)


def _invalid_files_are_told(check: Check) -> None:
    good = json.loads(registry_path("gates").read_text(encoding="utf-8"))
    first = good["codes"][0]
    field = next(iter(first["fields"]))
    plan = first["repair"][0]
    faults = {
        "a code twice": {"codes": [first, first]},
        "another plane's prefix": {"codes": [first | {"code": "IMG-0001"}]},
        "an unknown severity": {"codes": [first | {"severity": "grave"}]},
        "a refusal without a repair": {"codes": [first | {"repair": []}]},
        "an unknown action": {"codes": [first | {"repair": [plan | {"action": "hope"}]}]},
        "a message over no field": {"codes": [first | {"message": "nothing but {absent_mm} mm"}]},
        "a field of an unknown type": {
            "codes": [first | {"fields": {field: {"type": "real", "says": "a number"}}}]
        },
        "a code without an example": {"codes": [first | {"example": []}]},
    }
    for name, change in faults.items():
        told = validate_registry(deepcopy(good) | change)
        check.at_least(f"a registry with {name} is told", len(told), 1, "faults")


def _requirements_exist(check: Check) -> None:
    known = set(check.requirements.requirements)
    named = {name for code in load_registry("gates") for name in code.requirement}
    check.equal("requirements that codes name and nobody stated", sorted(named - known), [])
    bare = [code.code for code in load_registry("gates").live if not code.requirement]
    check.equal("codes that serve no requirement", bare, [])


def _faults_at_the_raise(check: Check) -> None:
    with check.refuses("GATE-0101", "an unregistered code") as caught:
        run_source("from numbat_registries import refuse\nraise refuse('GATE-9999', why='none')")
    if caught.diagnostic is not None:
        check.equal("the unregistered code is named", caught.diagnostic.fields["code"], "GATE-9999")
    unfit = {
        "a field that the code does not have": "name='x', known=[], colour='red'",
        "a missing field": "known=[]",
        "a field of another type": "name=3, known=[]",
        "a list of another type": "name='x', known=[1, 2]",
    }
    for name, fields in unfit.items():
        with check.refuses("GATE-0106", name):
            run_source(f"from numbat_registries import refuse\nraise refuse('GATE-0102', {fields})")
    with check.refuses("GATE-0107", "a refusal that is only noticed"):
        run_source("from numbat_registries import notice\nnotice('GATE-0102', name='x', known=[])")


def _evidence(check: Check) -> None:
    with check.refuses("GATE-0102", "an unknown registry") as caught:
        load_registry("radiology")
    told = caught.diagnostic
    if told is None:
        return
    check.equal(
        "the site of the raise",
        told.site.rpartition(":")[0],
        "numbat_registries.registry:load_registry",
    )
    check.equal("the evidence", told.fields["name"], "radiology")
    check.equal("the severity", str(told.severity), "refusal")
    check.at_least("ways out", len(told.plans), 1, "plans")
    check.equal("it crosses processes whole", pickle.loads(pickle.dumps(told)), told)
