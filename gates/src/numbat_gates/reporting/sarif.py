"""The report as SARIF 2.1.0 for code scanning.

Source: SARIF 2.1.0 §3.27.9: a result of a kind other than `fail` has the level `none`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from numbat_gates.reporting.wording import measured_and_required, value_text
from numbat_registries import load_registry, registry_names
from numbat_registries.rendering import sarif_rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://numbat.dev"

#: What a code's uncovered state is called where the registry at hand no longer holds the code.
_UNKNOWN_RULE = "a code that the report names and the installed registry does not hold"


def render_sarif(report: Mapping[str, Any]) -> str:
    """The report as a SARIF log.

    A failing check is `fail`; a gate that passed is `pass`; an undischarged clause, and a check or
    gate that was not run, is `open`; a registered code that no check raised is `review`; a
    requirement without a gate is `fail` when nothing declares why.
    """
    results = list(_results(report))
    rules = _rules(report, {result["ruleId"] for result in results})
    index = {rule["id"]: position for position, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = index[result["ruleId"]]
    run = {
        "tool": {
            "driver": {
                "name": "numbat-gates",
                "version": report["version"],
                "informationUri": HOME,
                "rules": rules,
            }
        },
        "automationDetails": {"id": f"numbat/{report['plane']}/{report['phase'] or 'all'}/"},
        "invocations": [_invocation(report, index)],
        "originalUriBaseIds": {
            "PACKAGES": {"description": {"text": "where the plane's packages are installed"}}
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"verdict": report["verdict"], "ledgerHead": report["ledger"]["head"]},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _results(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for gate in report["gates"]:
        yield from _gate_results(gate)
    for clause in report["undischarged"]:
        yield _result(
            clause["requirement"],
            "open",
            f"{clause['clause']} is not discharged (awaits {clause['awaits']}): "
            f"{clause['text']} Because: {clause['because']}",
            key=clause["clause"],
            properties={"clause": clause["clause"], "awaits": clause["awaits"]},
        )
    for requirement in report["requirements"]:
        if requirement["status"] == "open":
            text = f"{requirement['id']} is open: no gate that was carried out shows it."
            yield _result(requirement["id"], "fail", text, key=f"{requirement['id']}/gap")
    for code in report["coverage"]["uncovered"]:
        yield _result(code, "review", f"{code} is registered, and no check raised it.", key=code)
    for code in report["coverage"]["unregistered"]:
        yield _result(code, "fail", f"{code} was raised, and is not registered.", key=code)


def _gate_results(gate: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    place = _location(gate["source"])
    for check in gate["checks"]:
        if check["verdict"] == "PASS":
            continue
        found, required = measured_and_required(check)
        detail = f" {value_text(check['detail'], limit=600)}" if check["detail"] else ""
        kind = "fail" if check["verdict"] in ("FAIL", "ERROR") else "open"
        text = (
            f"{gate['id']}, {check['name']}: measured {found or 'nothing'}, required {required}."
            if kind == "fail"
            else f"{gate['id']}, {check['name']}: not run."
        )
        yield _result(
            gate["id"], kind, text + detail, key=f"{gate['id']}/{check['name']}", place=place
        )
    if gate["verdict"] == "PASS":
        text = f"{gate['id']} passed: {gate['passed']} of {gate['total']} checks."
        yield _result(gate["id"], "pass", text, key=gate["id"], place=place)
    elif gate["verdict"] == "NOT_RUN":
        text = f"{gate['id']} was not run: {'; '.join(gate['not_run']) or 'it has no check'}."
        yield _result(gate["id"], "open", text, key=gate["id"], place=place)
    elif gate["verdict"] == "ERROR" and gate["error"]:
        text = (
            f"{gate['id']} stopped unexpectedly: {gate['error']['type']}: {gate['error']['text']}"
        )
        yield _result(gate["id"], "fail", text, key=gate["id"], place=place)


def _result(
    rule: str,
    kind: str,
    text: str,
    *,
    key: str,
    place: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": rule,
        "kind": kind,
        "level": "error" if kind == "fail" else "none",
        "message": {"text": text},
        "partialFingerprints": {"numbatCheck/v1": hashlib.sha256(key.encode()).hexdigest()},
    }
    if place:
        result["locations"] = [dict(place)]
    if properties:
        result["properties"] = dict(properties)
    return result


def _location(source: str) -> dict[str, Any]:
    module, _, line = source.partition(":")
    return {
        "physicalLocation": {
            "artifactLocation": {
                "uri": module.replace(".", "/") + ".py",
                "uriBaseId": "PACKAGES",
            },
            "region": {"startLine": int(line) if line.isdigit() and int(line) > 0 else 1},
        },
        "logicalLocations": [{"fullyQualifiedName": module, "kind": "module"}],
    }


def _rules(report: Mapping[str, Any], used: set[str]) -> list[dict[str, Any]]:
    rules = [
        {
            "id": gate["id"],
            "shortDescription": {"text": gate["title"]},
            "fullDescription": {"text": "Discharges " + (", ".join(gate["discharges"]) or "none")},
        }
        for gate in report["gates"]
    ]
    rules += [
        {
            "id": requirement["id"],
            "shortDescription": {"text": requirement["text"]},
            "fullDescription": {"text": requirement["rationale"] or requirement["text"]},
        }
        for requirement in report["requirements"]
    ]
    known = {rule["id"] for rule in rules}
    rules += [_code_rule(name, report["coverage"]["registry"]) for name in sorted(used - known)]
    return rules


def _code_rule(name: str, registry: str) -> dict[str, Any]:
    # A report may come from another version: a code that is not here is no reason to refuse.
    code = load_registry(registry).codes.get(name) if registry in registry_names() else None
    return (
        {"id": name, "shortDescription": {"text": _UNKNOWN_RULE}}
        if code is None
        else (sarif_rule(code))
    )


def _invocation(report: Mapping[str, Any], index: Mapping[str, int]) -> dict[str, Any]:
    started = datetime.fromisoformat(report["started_at"]).astimezone(UTC)
    ended = started + timedelta(seconds=report["duration_s"])
    return {
        "executionSuccessful": report["verdict"] in ("PASS", "FAIL"),
        "exitCode": report["exit_code"],
        "startTimeUtc": _utc(started),
        "endTimeUtc": _utc(ended),
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": f"{gate['error']['type']}: {gate['error']['text']}"},
                "associatedRule": {"id": gate["id"], "index": index[gate["id"]]},
            }
            for gate in report["gates"]
            if gate["error"]
        ],
    }


def _utc(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{instant.microsecond // 1000:03d}Z"
