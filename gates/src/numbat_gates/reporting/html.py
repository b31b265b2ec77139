"""The report as one self-contained HTML page for a regulator: no script, no outside resource."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from numbat_gates.reporting import wording

#: Columns of the requirement × gate matrix that fit across a printed A4 page.
_MATRIX_COLUMNS = 12

SECTIONS = (
    ("result", "Result"),
    ("reading", "What was tested, and how to read it"),
    ("attention", "Checks that did not pass"),
    ("undischarged", "Clauses not discharged"),
    ("requirements", "Requirements"),
    ("gates", "Gates and their checks"),
    ("matrix", "Requirements by gate"),
    ("coverage", "Coverage of diagnostics"),
    ("evidence", "Evidence: digests and ledger"),
    ("environment", "Environment of the run"),
    ("signature", "Signature"),
    ("verify", "How to verify this report"),
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a page may say of an envelope that lies beside the report: the key names it claims."""

    envelope: str
    keyids: tuple[str, ...]


def render_html(
    report: Mapping[str, Any],
    *,
    digest: str,
    signature: Signature | None = None,
    font_css: str = "",
    page_numbers: Mapping[str, int] | None = None,
) -> str:
    """The report as HTML; equal arguments give equal text.

    `digest` is that of the stored report.json, printed on every page so that a page can be traced
    to the file. `font_css` and `page_numbers` (of sections, for the contents) are for paper.
    """
    page: str = _template().render(
        report=report,
        digest=digest,
        signature=signature,
        sections=SECTIONS,
        number={anchor: index for index, (anchor, _) in enumerate(SECTIONS, start=1)},
        page_numbers=page_numbers or {},
        css=Markup(font_css + _stylesheet(report, digest)),
        w=wording,
        tally=wording.tally(report["gates"]),
        checks=[check for gate in report["gates"] for check in gate["checks"]],
        attention=[gate for gate in _worst_first(report) if gate["verdict"] != "PASS"],
        worst_first=_worst_first(report),
        matrix=matrix_parts(report),
        undischarged=undischarged_groups(report),
        gate_ids=[gate["id"] for gate in report["gates"]],
    )
    return page


def matrix_parts(
    report: Mapping[str, Any], *, columns: int = _MATRIX_COLUMNS
) -> list[list[Mapping[str, Any]]]:
    """The gates of the requirement × gate matrix, cut into tables of like width that fit a page."""
    gates = list(report["gates"])
    parts = -(-len(gates) // columns)
    width = -(-len(gates) // parts) if parts else columns
    return [gates[start : start + width] for start in range(0, len(gates), width)]


def undischarged_groups(report: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """The undischarged clauses by what they await; those without a declared reason in front."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for clause in report["undischarged"]:
        groups.setdefault(clause["awaits"] or "", []).append(clause)
    return sorted(groups.items())


def _worst_first(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return wording.worst_first(report["gates"])


def _stylesheet(report: Mapping[str, Any], digest: str) -> str:
    css = files("numbat_gates.reporting").joinpath("templates/report.css").read_text("utf-8")
    phase = "" if report["phase"] is None else f", phase {report['phase']}"
    head = f"numbat {report['plane']} {report['version']}{phase}"
    values = {
        "HEAD": head,
        "VERDICT": f"Verdict: {report['verdict'].replace('_', ' ')}",
        "FOOT": f"report.json {digest}",
    }
    return re.sub(r'"@(HEAD|VERDICT|FOOT)@"', lambda found: css_string(values[found[1]]), css)


def css_string(text: str) -> str:
    """Any text as a CSS string that can end neither the string nor the style element."""
    return '"' + re.sub(r"[^A-Za-z0-9 .,:]", lambda c: f"\\{ord(c[0]):06x}", text) + '"'


def slug(identifier: str) -> str:
    """An element id for a gate or requirement id."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", identifier)


def verdict_mark(verdict: str) -> Markup:
    """A verdict in words, with a class for its colour; the words alone carry the meaning."""
    return Markup('<span class="verdict v-{}">{}</span>').format(
        verdict.lower().replace("_", "-"), verdict.replace("_", " ")
    )


def status_mark(status: str) -> Markup:
    """The status of a requirement in words, with a class for its colour."""
    return Markup('<span class="status s-{}">{}</span>').format(status, status)


def breakable(text: str) -> Markup:
    """Text that may wrap after the joints of a dotted name, path or digest."""
    parts: Sequence[str] = re.split(r"(?<=[./_:,])", text)
    return Markup("<wbr>").join(parts)


@cache
def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("numbat_gates.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        slug=slug, verdict=verdict_mark, status=status_mark, breakable=breakable
    )
    return environment.get_template("report.html.j2")
