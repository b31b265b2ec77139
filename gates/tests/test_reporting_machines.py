"""SARIF and JUnit: what scanners and CI read must say no more and no less than the report."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from numbat_gates.reporting.junit import render_junit
from numbat_gates.reporting.sarif import render_sarif
from numbat_gates.reporting.specimen import specimen_report

#: SARIF 2.1.0 §3.27.9 and §3.27.10.
KINDS = {"pass", "open", "informational", "notApplicable", "review", "fail"}
LEVELS = {"none", "note", "warning", "error"}


def run_of(report: dict[str, Any]) -> dict[str, Any]:
    log = json.loads(render_sarif(report))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return dict(run)


@pytest.mark.parametrize("passing", [False, True])
def test_sarif_keeps_the_rules_of_its_standard(passing: bool) -> None:
    run = run_of(specimen_report(passing=passing))
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"]
    for result in run["results"]:
        assert result["kind"] in KINDS
        assert result["level"] in LEVELS
        assert (result["level"] == "none") == (result["kind"] != "fail")
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result.get("locations", []):
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            assert re.fullmatch(r"[\w/]+\.py", physical["artifactLocation"]["uri"])
            assert physical["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
    prints = [result["partialFingerprints"]["numbatCheck/v1"] for result in run["results"]]
    assert len(prints) == len(set(prints))
    (invocation,) = run["invocations"]
    started, ended = (
        datetime.fromisoformat(invocation[name]) for name in ("startTimeUtc", "endTimeUtc")
    )
    assert 41 < (ended - started).total_seconds() < 42


def kinds(run: dict[str, Any], rule: str) -> list[str]:
    return [result["kind"] for result in run["results"] if result["ruleId"] == rule]


def test_sarif_says_what_the_report_says() -> None:
    report = specimen_report()
    run = run_of(report)
    assert kinds(run, "SPC-G03") == ["fail", "fail"]
    assert kinds(run, "SPC-G01") == ["pass"]
    assert kinds(run, "SPC-G09") == ["open", "open"]
    assert kinds(run, "SPC-G11") == ["fail"]
    assert kinds(run, "SPC-R014") == ["open", "fail"]
    assert kinds(run, "SPC-1218") == ["review"]
    open_clauses = [r["properties"]["clause"] for r in run["results"] if "properties" in r]
    assert open_clauses == [clause["clause"] for clause in report["undischarged"]]
    assert run["invocations"][0]["executionSuccessful"] is False
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["associatedRule"]["id"] == "SPC-G11"
    failing = next(result for result in run["results"] if result["ruleId"] == "SPC-G03")
    assert "measured 0.01314159 mm, required ≤ 0.01 mm" in failing["message"]["text"]


def test_a_passing_report_has_no_failing_result() -> None:
    run = run_of(specimen_report(passing=True))
    assert {result["kind"] for result in run["results"]} == {"pass", "open"}
    assert run["invocations"][0]["executionSuccessful"] is True


def test_codes_of_an_installed_registry_bring_their_own_rule() -> None:
    report = specimen_report()
    report["coverage"] |= {"registry": "gates", "uncovered": ["GATE-0501", "GATE-9999"]}
    run = run_of(report)
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules["GATE-0501"]["name"] == "report-malformed"
    assert "does not hold" in rules["GATE-9999"]["shortDescription"]["text"]


def suites_of(report: dict[str, Any]) -> ET.Element:
    return ET.fromstring(render_junit(report))


def test_junit_counts_are_those_of_its_cases() -> None:
    root = suites_of(specimen_report())
    for element in (root, *root):
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.attrib[name]) == len(element.findall(f".//{tag}"))
        assert int(element.attrib["tests"]) == len(element.findall(".//testcase"))
    assert {name: root.attrib[name] for name in ("failures", "errors", "skipped")} == {
        "failures": "2", "errors": "1", "skipped": "1",
    }  # fmt: skip
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(names) == len(set(names))


def test_junit_has_a_suite_a_gate_and_a_case_a_check() -> None:
    report = specimen_report()
    root = suites_of(report)
    for gate, suite in zip(report["gates"], root, strict=True):
        assert suite.attrib["name"].startswith(gate["id"])
        names = [case.attrib["name"] for case in suite.iter("testcase")]
        whole = [gate["id"]] if gate["error"] else []
        assert names == [check["name"] for check in gate["checks"]] + whole
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "measured 0.01314159 mm, required ≤ 0.01 mm"
    assert "2.49 mm" in (failure.text or "")
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "the reference tables are not on this machine"
    error = root.find(".//error")
    assert error is not None
    assert error.attrib["type"] == "builtins.KeyError"


def test_a_gate_without_checks_is_not_green() -> None:
    report = specimen_report(passing=True)
    report["gates"][0] |= {
        "checks": [], "passed": 0, "total": 0,
        "verdict": "NOT_RUN", "not_run": ["it made no check"],
    }  # fmt: skip
    suite = suites_of(report)[0]
    assert (suite.attrib["tests"], suite.attrib["skipped"]) == ("1", "1")
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "it made no check"


def test_text_that_xml_cannot_hold_does_not_break_it() -> None:
    report = specimen_report()
    report["gates"][2]["checks"][4] |= {"name": 'a\x00\x1b[31m<&>"\ud800\uffff', "detail": "\x08"}
    case = suites_of(report)[2].findall("testcase")[4]
    assert case.attrib["name"] == 'a\ufffd\ufffd[31m<&>"\ufffd\ufffd'
