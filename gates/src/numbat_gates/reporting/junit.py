"""The report as JUnit XML: a suite for each gate, a case for each check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from numbat_gates.reporting.wording import measured_and_required, value_text

#: Characters that XML 1.0 cannot hold, not even escaped (§2.2).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: Mapping[str, Any]) -> str:
    """The report as JUnit XML: NOT_RUN is `skipped`, ERROR is `error`, FAIL is `failure`.

    A gate that did not pass as a whole (no check, stopped, not run) gets a case named after the
    gate, so that no reader counts an empty suite as green.
    """
    suites = [_suite(gate, report) for gate in report["gates"]]
    root = ET.Element(
        "testsuites",
        {
            "name": _xml(f"numbat {report['plane']} {report['version']}"),
            "time": f"{report['duration_s']:.3f}",
            **{
                name: str(sum(int(suite.attrib[name]) for suite in suites))
                for name in ("tests", "failures", "errors", "skipped")
            },
        },
    )
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(gate: Mapping[str, Any], report: Mapping[str, Any]) -> ET.Element:
    cases = [_case(check, gate, report) for check in gate["checks"]]
    whole = _whole_gate_case(gate, report)
    if whole is not None:
        cases.append(whole)
    suite = ET.Element(
        "testsuite",
        {
            "name": _xml(f"{gate['id']} {gate['title']}"),
            "tests": str(len(cases)),
            "failures": str(_count(cases, "failure")),
            "errors": str(_count(cases, "error")),
            "skipped": str(_count(cases, "skipped")),
            "time": f"{gate['duration_s']:.3f}",
            "timestamp": _xml(report["started_at"][:19]),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("verdict", gate["verdict"]),
        ("phase", str(gate["phase"])),
        ("discharges", " ".join(gate["discharges"])),
        ("source", gate["source"]),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    suite.extend(cases)
    return suite


def _case(
    check: Mapping[str, Any], gate: Mapping[str, Any], report: Mapping[str, Any]
) -> ET.Element:
    case = _empty_case(check["name"], gate, report)
    found, required = measured_and_required(check)
    detail = value_text(check["detail"], limit=2000) if check["detail"] else ""
    if check["verdict"] == "FAIL":
        message = f"measured {found or 'nothing'}, required {required}"
        _outcome(case, "failure", message, kind=check["kind"], text=detail)
    elif check["verdict"] == "ERROR":
        _outcome(case, "error", detail or "stopped unexpectedly", kind=check["kind"])
    elif check["verdict"] == "NOT_RUN":
        _outcome(case, "skipped", detail or required or "not run")
    return case


def _whole_gate_case(gate: Mapping[str, Any], report: Mapping[str, Any]) -> ET.Element | None:
    verdicts = {check["verdict"] for check in gate["checks"]}
    if gate["verdict"] == "PASS" or (gate["verdict"] in verdicts and not gate["error"]):
        return None
    case = _empty_case(gate["id"], gate, report)
    if gate["error"]:
        text = gate["error"]["text"]
        message = str(text).partition("\n")[0]
        _outcome(case, "error", message, kind=gate["error"]["type"], text=text)
    elif gate["verdict"] == "NOT_RUN":
        _outcome(case, "skipped", "; ".join(gate["not_run"]) or "the gate has no check")
    else:
        _outcome(case, "failure", f"the gate's verdict is {gate['verdict']}", kind="gate")
    return case


def _empty_case(name: str, gate: Mapping[str, Any], report: Mapping[str, Any]) -> ET.Element:
    classname = f"numbat.{report['plane']}.{gate['id']}"
    return ET.Element("testcase", {"classname": _xml(classname), "name": _xml(name)})


def _outcome(
    case: ET.Element, tag: str, message: str, *, kind: str | None = None, text: str = ""
) -> None:
    attributes = {"message": _xml(message)} | ({"type": _xml(kind)} if kind else {})
    ET.SubElement(case, tag, attributes).text = _xml(text) or None


def _count(cases: list[ET.Element], tag: str) -> int:
    return sum(case.find(tag) is not None for case in cases)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
