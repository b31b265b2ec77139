"""Diagnostics as text, problem details, SARIF and pages: complete, and without patient data."""

from __future__ import annotations

import json
from dataclasses import replace

from numbat_gates import Check, gate
from numbat_gates.gates._examples import run_example
from numbat_registries import Diagnostic, load_registry, refuse
from numbat_registries.diagnostics import WITHHELD
from numbat_registries.rendering import explain, to_problem, to_sarif, to_sarif_log, to_text

_PATIENT = "Doe^Jane"
_TERMINAL = "\x1b[31mred"


@gate(
    "GATE-G04",
    phase=1,
    discharges=["GATE-R004"],
    title="Diagnostics are told whole and without patient data, and each page's example holds",
)
def rendering(check: Check) -> None:
    told = refuse("GATE-0102", name=_TERMINAL, known=["gates"]).diagnostic
    _as_text(check, told)
    _as_data(check, told)
    _without_patient_data(check, told)
    _pages(check)


def _as_text(check: Check, told: Diagnostic) -> None:
    text = to_text(told)
    for part in ("GATE-0102", "unknown-registry", "gates", "supply-argument", "explain GATE-0102"):
        check.true(f"the text holds {part}", part in text)
    check.true("evidence gives the terminal no command", "\x1b" not in text)
    check.true("the evidence is readable all the same", "\\x1b[31mred" in text)


def _as_data(check: Check, told: Diagnostic) -> None:
    problem = to_problem(told)
    check.equal(
        "members of RFC 9457 §3.1 that are there",
        sorted({"type", "title", "status", "detail"} & set(problem)),
        ["detail", "status", "title", "type"],
    )
    check.equal("problem: code", problem["code"], "GATE-0102")
    check.equal("problem: evidence", problem["fields"], {"name": _TERMINAL, "known": ["gates"]})
    check.equal("problem: a refusal is a client's error", problem["status"], 422)
    check.equal("problem: it is JSON", json.loads(json.dumps(problem, allow_nan=False)), problem)
    log = to_sarif_log([told, told], tool="numbat-gates", version="0")
    run = log["runs"][0]
    check.equal("SARIF: version", log["version"], "2.1.0")
    check.equal(
        "SARIF: one rule a code", [r["id"] for r in run["tool"]["driver"]["rules"]], [told.code]
    )
    check.equal("SARIF: one result each", [r["ruleId"] for r in run["results"]], [told.code] * 2)
    check.equal("SARIF: level", to_sarif(told)["level"], "error")


def _without_patient_data(check: Check, told: Diagnostic) -> None:
    marked = replace(
        told, fields={"name": _PATIENT, "known": []}, phi_fields=frozenset({"name"}), message="–"
    )
    for name, shown in {
        "text": to_text(marked),
        "problem details": json.dumps(to_problem(marked), ensure_ascii=False),
        "SARIF": json.dumps(to_sarif(marked), ensure_ascii=False),
        "repr": repr(marked),
    }.items():
        check.true(f"{name} without the patient's name", _PATIENT not in shown)
    check.equal("the name is marked as withheld", marked.public_fields()["name"], WITHHELD)
    check.equal("the caller still gets it", marked.fields["name"], _PATIENT)


def _pages(check: Check) -> None:
    for code in load_registry("gates").live:
        page = explain(code.code)
        whole = all(part in page for part in (code.explains, code.message, code.example))
        check.true(f"page of {code.code} {code.name}", whole)
        if code.severity.is_raised:
            with check.refuses(code.code, f"example of {code.code} {code.name}"):
                run_example(code)
        else:
            with check.notices(code.code, f"example of {code.code} {code.name}"):
                run_example(code)
