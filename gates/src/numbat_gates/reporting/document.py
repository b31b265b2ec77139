"""A report file as read: its exact bytes, their digest, and the report that they hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from numbat_gates.digests import digest_bytes
from numbat_gates.report import schema
from numbat_gates.strict_json import NotStrictJson, parse_json
from numbat_registries import refuse

REPORT = "report.json"
ENVELOPE = "report.dsse.json"


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """One report.json; `digest` is of the stored bytes, which is what a signature binds."""

    path: Path
    data: bytes
    report: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the file as "sha256:<hex>"."""
        return digest_bytes(self.data)

    @property
    def envelope(self) -> Path:
        """Where the DSSE envelope of this report lies when it was signed."""
        return self.path.with_name(ENVELOPE)


def read_report(path: str | os.PathLike[str]) -> ReportDocument:
    """The report in a file, or in a folder as report.json.

    Raises GATE-0501 for a file that cannot be read, is not strict JSON or is not a gate report by
    its JSON Schema.
    """
    location = Path(path)
    if location.is_dir():
        location /= REPORT
    try:
        data = location.read_bytes()
    except OSError as error:
        raise refuse(
            "GATE-0501", document=location.name, reason=error.strerror or str(error)
        ) from error
    return ReportDocument(path=location, data=data, report=parse_report(data, name=location.name))


def parse_report(data: bytes, *, name: str = REPORT) -> Mapping[str, Any]:
    """The report that bytes hold; `name` says in a refusal which document it was.

    Raises GATE-0501 for what is not strict JSON or not a gate report by its JSON Schema.
    """
    try:
        report = parse_json(data)
    except NotStrictJson as error:
        raise refuse("GATE-0501", document=name, reason=str(error)) from error
    faults = sorted(_schema().iter_errors(report), key=lambda fault: fault.json_path)
    if faults:
        reason = f"{faults[0].json_path}: {faults[0].message}"
        raise refuse("GATE-0501", document=name, reason=reason[:500])
    found: Mapping[str, Any] = report
    return found


@cache
def _schema() -> Draft202012Validator:
    return Draft202012Validator(schema())
