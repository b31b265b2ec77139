"""The report on paper; where the extra is not installed, the refusal that says so."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from numbat_gates.reporting.folder import write_reports
from numbat_gates.reporting.html import SECTIONS
from numbat_gates.reporting.pdf import EXTRA, load_package, render_pdf
from numbat_gates.reporting.specimen import specimen_report
from numbat_registries import Refusal

DIGEST = "sha256:" + "d" * 64
PACKAGES = ("plutoprint", "pypdf", "fontpkg_ibm_plex_mono", "fontpkg_ibm_plex_sans_condensed")
with_extra = pytest.mark.skipif(
    not all(find_spec(name) for name in PACKAGES), reason=f"{EXTRA} is not installed"
)


@pytest.mark.parametrize("package", ["plutoprint", "pypdf"])
def test_an_absent_engine_is_a_refusal_that_names_it(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in PACKAGES[: PACKAGES.index(package)]:
        monkeypatch.setitem(sys.modules, name, load_package("json"))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Refusal) as caught:
        write_reports(specimen_report(), tmp_path, pdf=True)
    assert caught.value.code == "GATE-0502"
    assert caught.value.diagnostic.fields["package"] == package
    assert caught.value.diagnostic.plans[0].args == {"package": "numbat-gates[pdf]"}


@pytest.fixture(scope="module")
def printed() -> Any:
    from pypdf import PdfReader

    return PdfReader(BytesIO(render_pdf(specimen_report(), digest=DIGEST)))


@with_extra
def test_every_page_has_its_head_foot_and_number(printed: Any) -> None:
    count = len(printed.pages)
    assert count > 5
    for number, page in enumerate(printed.pages, start=1):
        text = " ".join(page.extract_text().split())
        assert "numbat specimen 0.1.0" in text
        assert "Verdict: ERROR" in text
        assert f"Page {number} of {count}" in text
        assert DIGEST in text


@with_extra
def test_the_heads_of_tables_are_repeated(printed: Any) -> None:
    texts = [" ".join(page.extract_text().split()) for page in printed.pages]
    heads = [text for text in texts if "Verdict Check Measured Required" in text]
    begun = sum("Gates and their checks" in text for text in texts)
    assert len(heads) > begun
    for gate in specimen_report()["gates"]:
        assert any(gate["title"] in text for text in texts)


@with_extra
def test_bookmarks_and_contents_lead_to_the_sections(printed: Any) -> None:
    titles = [title for _, title in SECTIONS]
    outline = [(item.title, printed.get_destination_page_number(item)) for item in printed.outline]
    assert [title for title, _ in outline] == [f"{n} {t}" for n, t in enumerate(titles, start=1)]
    contents = printed.pages[0].extract_text()
    for title, page in outline:
        assert title.partition(" ")[2] in printed.pages[page].extract_text()
        assert str(page + 1) in contents
    assert printed.trailer["/Root"]["/Lang"] == "en"


@with_extra
def test_fonts_are_embedded_and_come_from_the_extra(printed: Any) -> None:
    fonts = {
        str(font.get_object()["/BaseFont"])
        for page in printed.pages
        for font in page["/Resources"]["/Font"].values()
    }
    assert fonts
    assert all("IBMPlex" in name for name in fonts)


@with_extra
def test_one_report_gives_one_file_and_another_gives_another() -> None:
    first = render_pdf(specimen_report(), digest=DIGEST)
    assert first == render_pdf(specimen_report(), digest=DIGEST)
    assert first != render_pdf(specimen_report(passing=True), digest=DIGEST)
