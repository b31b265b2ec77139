"""Renderings of a report: HTML and PDF for people, SARIF and JUnit XML for machines."""

from __future__ import annotations

from numbat_gates.reporting.document import ENVELOPE, REPORT, ReportDocument, read_report
from numbat_gates.reporting.html import Signature, render_html
from numbat_gates.reporting.junit import render_junit
from numbat_gates.reporting.pdf import render_pdf
from numbat_gates.reporting.sarif import render_sarif

__all__ = [
    "ENVELOPE",
    "REPORT",
    "ReportDocument",
    "Signature",
    "read_report",
    "render_html",
    "render_junit",
    "render_pdf",
    "render_sarif",
]
