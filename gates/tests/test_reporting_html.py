"""The HTML page: whole, self-contained, readable without colour, and safe with any text in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_gates.reporting.html import SECTIONS, Signature, css_string, matrix_parts, render_html
from numbat_gates.reporting.specimen import specimen_report
from numbat_gates.reporting.wording import measured_and_required, value_text

DIGEST = "sha256:" + "d" * 64
VOID = {"meta", "col", "br", "wbr", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """A page taken apart: elements, ids, links, headings, rows and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.rows: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open or "script" in self.open:
            return
        self.text.append(data)
        if "tr" in self.open:
            self.rows[-1] += data

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def page(report: dict[str, Any] | None = None, **options: Any) -> Page:
    return Page(render_html(report or specimen_report(), digest=DIGEST, **options))


@pytest.mark.parametrize("passing", [False, True])
def test_the_page_is_well_formed_and_self_contained(passing: bool) -> None:
    text = render_html(specimen_report(passing=passing), digest=DIGEST)
    found = Page(text)
    assert found.open == []
    assert not found.all("script", "link", "img", "iframe")
    assert not re.search(r"https?:|url\(|@import", text)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in found.all("a")]
    assert links
    assert {link for link in links if link is not None} <= {f"#{name}" for name in ids}
    assert {a["aria-labelledby"] for a in found.all("section", "nav", "article")} <= set(ids)


def test_headings_and_tables_can_be_heard() -> None:
    found = page()
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for attributes in found.all("th"))
    assert found.all("html") == [{"lang": "en"}]
    titles = [title for _, title in SECTIONS]
    assert all(title in found.words for title in titles)


def test_every_verdict_is_a_word() -> None:
    text = render_html(specimen_report(), digest=DIGEST)
    marks = re.findall(r'class="verdict v-([a-z-]+)">([A-Z ]+)<', text)
    assert {name for name, _ in marks} == {"pass", "fail", "not-run", "error"}
    assert all(name == word.lower().replace(" ", "-") for name, word in marks)
    assert len(marks) == text.count('class="verdict')


def test_every_check_requirement_clause_and_digest_is_there() -> None:
    report = specimen_report()
    words = page(report).words
    for gate in report["gates"]:
        assert gate["title"] in words
        assert all(check["name"] in words for check in gate["checks"])
    for requirement in report["requirements"]:
        assert requirement["text"] in words
    for clause in report["undischarged"]:
        assert clause["text"] in words
        assert clause["because"] in words
    for part in ("code", "frameworks", "gates", "inputs"):
        for name, digest in report["digests"][part].items():
            assert name in words
            assert digest in words
    for name in (report["ledger"]["head"], report["digests"]["requirements"], DIGEST):
        assert name in words


def test_what_failed_stands_first_with_measured_and_required() -> None:
    report = specimen_report()
    found = page(report)
    section = found.words.index(
        "Checks that did not pass", found.words.index("how to read it") + 400
    )
    failing = found.words.index("0.01314159 mm ≤ 0.01 mm")
    assert section < failing < found.words.rindex("Gates and their checks")
    gates = re.findall(r'<h3 id="gate-(SPC-G\d+)"', render_html(report, digest=DIGEST))
    assert gates[:3] == ["SPC-G11", "SPC-G03", "SPC-G09"]
    assert sorted(gates) == [gate["id"] for gate in report["gates"]]


def test_gaps_keep_their_rows_in_the_matrix() -> None:
    rows = page().rows
    gap = "SPC-R014 GAP: no gate names this requirement open"
    assert gap in [" ".join(row.split()) for row in rows]
    assert any("SPC-R012" in row and "no gate: awaits clinical-data" in row for row in rows)


@pytest.mark.parametrize("count", [0, 1, 12, 13, 30])
def test_a_wide_matrix_is_cut_into_like_parts(count: int) -> None:
    gates = [{"id": f"X-G{index}"} for index in range(count)]
    parts = matrix_parts({"gates": gates})
    assert [gate for part in parts for gate in part] == gates
    assert all(len(part) <= 12 for part in parts)
    assert not parts or len(parts[0]) - len(parts[-1]) < len(parts)


HOSTILE = "</style><script>alert(1)</script>\"'&{{ 7*7 }}"


def test_text_of_a_report_stays_text() -> None:
    report = specimen_report()
    report["version"] = report["plane"] = HOSTILE
    report["gates"][2]["title"] = report["gates"][2]["checks"][4]["detail"] = HOSTILE
    report["gates"][8]["not_run"] = [HOSTILE]
    report["gates"][10]["error"] = {"type": HOSTILE, "text": HOSTILE}
    report["requirements"][0]["text"] = report["undischarged"][0]["because"] = HOSTILE
    report["digests"]["inputs"] = {HOSTILE: DIGEST}
    text = render_html(report, digest=DIGEST, signature=Signature(HOSTILE, (HOSTILE,)))
    found = Page(text)
    assert found.open == []
    assert not found.all("script")
    assert len(found.all("style")) == 1
    assert found.words.count(HOSTILE) > 8


@given(st.text())
def test_a_css_string_is_closed_only_at_its_end(text: str) -> None:
    made = css_string(text)
    assert re.fullmatch(r'"(?:[A-Za-z0-9 .,:]|\\[0-9a-f]{6})*"', made)
    plain = re.sub(r"\\([0-9a-f]{6})", lambda found: chr(int(found[1], 16)), made[1:-1])
    assert plain == text


def test_equal_reports_give_equal_pages() -> None:
    assert render_html(specimen_report(), digest=DIGEST) == render_html(
        specimen_report(), digest=DIGEST
    )


def test_signature_and_scope_are_told() -> None:
    assert "This report is unsigned." in page().words
    signed = page(signature=Signature("report.dsse.json", ("sha256:" + "e" * 64,)))
    assert "sha256:" + "e" * 64 in signed.words
    assert "unsigned" not in signed.words
    report = specimen_report() | {"phase": 1, "selected_gates": ["SPC-G01"]}
    assert "phase 1 only; only the gates SPC-G01" in page(report).words


def test_a_run_of_nothing_is_no_blank_page() -> None:
    report = specimen_report() | {
        "gates": [],
        "phases": [],
        "requirements": [],
        "undischarged": [],
        "verdict": "NOT_RUN",
        "not_run": ["the plane has no requirements yet"],
    }
    report["coverage"] |= {"covered": {}, "uncovered": [], "registered": 0}
    report["digests"] = {
        "code": {}, "frameworks": {}, "gates": {}, "inputs": {},
        "requirements": None, "registry": None,
    }  # fmt: skip
    words = page(report).words
    assert "the plane has no requirements yet" in words
    assert "No gate was run" in words
    assert "Every check of every gate passed" not in words


def check(measured: Any, required: Any, kind: str = "equal", **more: Any) -> dict[str, Any]:
    plain = {
        "measured": measured,
        "required": required,
        "kind": kind,
        "unit": "",
        "tolerance": None,
    }
    return plain | more


@pytest.mark.parametrize(
    ("given_check", "expected"),
    [
        (check(3, 4, unit="mm"), ("3 mm", "4 mm")),
        (check(1.5, 2.0, "close", tolerance=0.001, unit="mm"), ("1.5 mm", "2 ± 0.001 mm")),
        (check(0.5, 0.1, "at_most", unit="HU"), ("0.5 HU", "≤ 0.1 HU")),
        (check(0.5, 0.9, "at_least"), ("0.5", "≥ 0.9")),
        (check(None, "IMG-1203", "refuses"), ("", "refusal IMG-1203")),
        (check("IMG-1402", "IMG-1402", "notices"), ("IMG-1402", "notice IMG-1402")),
        (check(False, True, "true"), ("false", "true")),
        (check(False, None, "true"), ("false", "holds")),
        (check({"undefined": "not a number"}, 1.0, unit="mm"), ("undefined: not a number", "1 mm")),
        (check([1.25, None, "a"], {"b": 1}), ("[1.25, , a]", '{"b": 1}')),
    ],
)
def test_measured_and_required_in_words(
    given_check: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert measured_and_required(given_check) == expected


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_values_that_differ_never_read_the_same(measured: float, required: float) -> None:
    found, due = measured_and_required(check(measured, required))
    assert (found == due) <= (measured == required)


def test_long_values_say_that_they_are_cut() -> None:
    text = value_text(list(range(1000)))
    assert len(text) < 240
    assert "whole in report.json" in text
