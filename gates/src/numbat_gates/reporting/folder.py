"""The files of a report: written together, or rendered again from report.json."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numbat_gates import report as reports
from numbat_gates.attestation import gate_run_predicate, make_statement, peek_keyids, sign
from numbat_gates.digests import digest_file
from numbat_gates.keys import key_id, load_private_key
from numbat_gates.reporting.document import ENVELOPE, REPORT, ReportDocument, read_report
from numbat_gates.reporting.html import Signature, render_html
from numbat_gates.reporting.junit import render_junit
from numbat_gates.reporting.pdf import render_pdf
from numbat_gates.reporting.sarif import render_sarif

#: File name of each rendering.
RENDERINGS = {
    "html": "report.html",
    "pdf": "report.pdf",
    "sarif": "report.sarif",
    "junit": "report.junit.xml",
}


def write_reports(
    report: Mapping[str, Any],
    directory: str | os.PathLike[str],
    *,
    ledger_file: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    pdf: bool = False,
) -> list[Path]:
    """Write report.json, its renderings, the ledger and, with a key, the signed envelope.

    The envelope comes last and covers every other file. What an earlier run left in the folder and
    this one does not write again is removed, for it would belong to another report.

    Raises GATE-0609 for a key that cannot be read, before anything is written; GATE-0502 when a
    PDF is asked for and its extra is not installed; GATE-0607 for a report that is not JSON.
    """
    folder = Path(directory)
    private = None if key is None else load_private_key(key)
    signature = None if private is None else Signature(ENVELOPE, (key_id(private.public_key()),))
    written = [reports.write(report, folder / REPORT)]
    written += _take_ledger(ledger_file, folder / Path(report["ledger"]["file"]).name)
    _remove_leftovers(folder)
    formats = ["html", "sarif", "junit", *(["pdf"] if pdf else [])]
    written += render_files(read_report(folder / REPORT), formats, folder, signature=signature)
    if private is not None:
        subjects = {path.name: digest_file(path) for path in written}
        statement = make_statement(subjects, gate_run_predicate(report))
        written.append(_write(folder / ENVELOPE, sign(statement, [private])))
    return written


def render_files(
    document: ReportDocument,
    formats: Sequence[str],
    directory: Path,
    *,
    signature: Signature | None = None,
) -> list[Path]:
    """Render a report in the formats that RENDERINGS names; the files appear whole or not at all.

    Raises GATE-0502 when a PDF is asked for and its extra is not installed.
    """
    report, digest = document.report, document.digest
    ways: dict[str, Callable[[], bytes]] = {
        "html": lambda: render_html(report, digest=digest, signature=signature).encode("utf-8"),
        "pdf": lambda: render_pdf(report, digest=digest, signature=signature),
        "sarif": lambda: render_sarif(report).encode("utf-8"),
        "junit": lambda: render_junit(report).encode("utf-8"),
    }
    return [_write(directory / RENDERINGS[name], ways[name]()) for name in formats]


def signature_beside(document: ReportDocument) -> Signature | None:
    """What the envelope beside a report claims, unverified; None when there is no envelope.

    Raises GATE-0601 for an envelope that is malformed.
    """
    if not document.envelope.is_file():
        return None
    return Signature(document.envelope.name, peek_keyids(document.envelope.read_bytes()))


def _take_ledger(source: str | os.PathLike[str] | None, target: Path) -> list[Path]:
    if source is None:
        return []
    path = Path(source)
    if not (target.exists() and target.samefile(path)):
        shutil.copyfile(path, target)
    return [target]


def _remove_leftovers(folder: Path) -> None:
    for name in (ENVELOPE, *RENDERINGS.values()):
        (folder / name).unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(data)
    draft.replace(path)
    return path
