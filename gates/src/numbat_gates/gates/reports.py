"""Reports: one document by its schema, and renderings that say what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

from jsonschema import Draft202012Validator

from numbat_gates import Check, gate
from numbat_gates.digests import digest_bytes
from numbat_gates.gates._toy import toy_plane
from numbat_gates.report import schema
from numbat_gates.reporting import render_html, render_junit, render_pdf, render_sarif
from numbat_gates.reporting.document import parse_report
from numbat_gates.reporting.specimen import specimen_bytes, specimen_report

_TAG = "<script>alert(1)</script>"
_BODY = f"""
check.equal("one and one", 1 + 1, 2)
check.close("far off", measured=[1.0, 2.5], required=[1.0, 2.0], atol=0.1, unit="mm")
check.equal("undefined", float("nan"), 0.0)
check.equal({_TAG!r}, 1, 1)
"""


@gate(
    "GATE-G13",
    phase=3,
    discharges=["GATE-R016"],
    title="One report by its schema, and HTML, SARIF, JUnit and PDF that say the same",
)
def reports(check: Check) -> None:
    Draft202012Validator.check_schema(schema())
    for passing in (True, False):
        report = specimen_report(passing=passing)
        parse_report(specimen_bytes(passing=passing))
        _renderings(check, report, f"invented, passing {passing}")
    _no_report(check)
    with toy_plane() as toy:
        toy.requirements("TOY-R001").gate(1, _BODY)
        folder = toy.root / "report"
        answer = toy.ask("run", "toy", "--report", str(folder), "--json")
        written = sorted(path.name for path in folder.iterdir())
        due = ["ledger.jsonl", "report.html", "report.json", "report.junit.xml", "report.sarif"]
        check.equal("files of a run", written, due)
        data = (folder / "report.json").read_bytes()
        report = dict(parse_report(data))
        check.equal("stdout and file say the same", answer.document, report)
        check.true("no undefined number in it", b"NaN" not in data)
        undefined = report["gates"][0]["checks"][2]["measured"]
        check.equal("an undefined number has its reason", undefined, {"undefined": "not a number"})
        _renderings(check, report, "of a run")
        page = (folder / "report.html").read_text(encoding="utf-8")
        check.true("names of checks are text in the page", _TAG not in page)
        check.true("and are there", "&lt;script&gt;alert(1)" in page)
        same = toy.ask("report", "render", str(folder), "--html", "--out", str(toy.root / "again"))
        check.equal("rendered again: exit status", same.code, 0)
        again = (toy.root / "again" / "report.html").read_text(encoding="utf-8")
        check.true("rendered again: the same page", again == page)


def _renderings(check: Check, report: Mapping[str, Any], name: str) -> None:
    verdicts = [item["verdict"] for each in report["gates"] for item in each["checks"]]
    page = render_html(report, digest=digest_bytes(b""))
    for said in (report["ledger"]["head"][7:23], *(each["id"] for each in report["gates"])):
        check.true(f"{name}: the page holds {said}", said in page)
    for clause in report["undischarged"]:
        check.true(f"{name}: the page holds {clause['clause']}", clause["clause"] in page)
    check.true(f"{name}: the page loads nothing", "http-equiv" not in page and "src=" not in page)

    suites = ElementTree.fromstring(render_junit(report))
    check.equal(
        f"{name}: failures in JUnit", len(suites.findall(".//failure")), verdicts.count("FAIL")
    )
    errors = sum(each["error"] is not None for each in report["gates"])
    check.equal(f"{name}: errors in JUnit", len(suites.findall(".//error")), errors)

    run = json.loads(render_sarif(report))["runs"][0]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    results = [item for item in run["results"] if item["kind"] == "fail"]
    failed = {g["id"] for g in report["gates"] if g["verdict"] in ("FAIL", "ERROR")}
    told = {item["ruleId"] for item in results}
    check.equal(f"{name}: failing gates in SARIF", sorted(failed - told), [])
    check.equal(f"{name}: SARIF results without a rule", sorted(told - rules), [])
    passes = report["verdict"] == "PASS"
    check.equal(f"{name}: a passing report has no failing result", not results, passes)
    _printed(check, report, name)


def _printed(check: Check, report: Mapping[str, Any], name: str) -> None:
    """A PDF is made whole where its engine is installed, and refused by name where it is not."""
    parts = ("plutoprint", "pypdf", "fontpkg_ibm_plex_sans_condensed", "fontpkg_ibm_plex_mono")
    if not all(map(find_spec, parts)):
        with check.refuses("GATE-0502", f"{name}: no PDF without its engine"):
            render_pdf(report, digest=digest_bytes(b""))
        return
    printed = render_pdf(report, digest=digest_bytes(b""))
    check.true(f"{name}: the PDF is one", printed.startswith(b"%PDF-"))
    check.true(f"{name}: the PDF is whole", printed.rstrip().endswith(b"%%EOF"))
    again = render_pdf(report, digest=digest_bytes(b""))
    check.equal(f"{name}: printed twice alike", digest_bytes(again), digest_bytes(printed))


def _no_report(check: Check) -> None:
    report = specimen_report(passing=True)
    faults: dict[str, bytes] = {
        "not JSON": b"{",
        "a member twice": b'{"verdict": "FAIL", "verdict": "PASS"}',
        "an undefined number": b'{"duration_s": NaN}',
        "an unknown verdict": json.dumps(report | {"verdict": "FINE"}).encode(),
        "no ledger": json.dumps({k: v for k, v in report.items() if k != "ledger"}).encode(),
        "an unknown member": json.dumps(report | {"colour": "red"}).encode(),
    }
    for name, data in faults.items():
        with check.refuses("GATE-0501", f"no report: {name}"):
            parse_report(data)
