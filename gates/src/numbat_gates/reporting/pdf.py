"""The report on paper: the HTML page printed to PDF, with bookmarks and page numbers.

The engine (plutoprint), the fonts and pypdf are the optional extra `numbat-gates[pdf]`; nothing of
it comes from the system, so that one report gives one PDF on every machine.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.resources import files
from io import BytesIO
from types import ModuleType
from typing import Any

from numbat_gates.reporting.html import SECTIONS, Signature, render_html
from numbat_registries import refuse

EXTRA = "numbat-gates[pdf]"

#: The faces of the page: family, weight, package, file.
_FACES = (
    ("Report Sans", 400, "fontpkg_ibm_plex_sans_condensed", "IBMPlexSansCondensed-Regular.ttf"),
    ("Report Sans", 600, "fontpkg_ibm_plex_sans_condensed", "IBMPlexSansCondensed-SemiBold.ttf"),
    ("Report Sans", 700, "fontpkg_ibm_plex_sans_condensed", "IBMPlexSansCondensed-Bold.ttf"),
    ("Report Mono", 400, "fontpkg_ibm_plex_mono", "IBMPlexMono-Regular.ttf"),
)

#: Printing moves no section once its page number is in the contents; more passes than this means
#: that two layouts alternate, and then the last one's numbers stand.
_PASSES = 3


def render_pdf(
    report: Mapping[str, Any], *, digest: str, signature: Signature | None = None
) -> bytes:
    """The report as PDF (A4); equal arguments and engine versions give equal bytes.

    Raises GATE-0502 when a package of the extra `numbat-gates[pdf]` is not installed.
    """
    engine, pypdf = load_package("plutoprint"), load_package("pypdf")
    font_css = _font_css()
    pages: dict[str, int] = {}
    printed = b""
    for _ in range(_PASSES):
        page = render_html(
            report, digest=digest, signature=signature, font_css=font_css, page_numbers=pages
        )
        printed = _print(engine, page)
        found = _section_pages(pypdf, printed)
        if found == pages:
            break
        pages = found
    return _finish(pypdf, printed, report, pages)


def load_package(name: str) -> ModuleType:
    """A package of the extra, imported.

    Raises GATE-0502 when it is not installed, or does not load on this platform.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise refuse(
            "GATE-0502", package=name.replace("_", "-"), extra=EXTRA, reason=str(error)
        ) from error


@cache
def _font_css() -> str:
    faces = []
    for family, weight, package, file in _FACES:
        load_package(package)
        data = files(package).joinpath("files", file).read_bytes()
        source = f"data:font/ttf;base64,{base64.b64encode(data).decode('ascii')}"
        faces.append(
            f'@font-face {{ font-family: "{family}"; font-weight: {weight}; src: url({source}); }}'
        )
    return "\n".join(faces)


def _print(engine: ModuleType, page: str) -> bytes:
    book = engine.Book(engine.PAGE_SIZE_A4, media=engine.MEDIA_TYPE_PRINT)
    # Without a base the engine cannot resolve the links within the page.
    book.load_html(page, base_url="file:///report.html")
    # The clock must not reach the file; its dates are set from the report at the end. Loading a
    # page resets them.
    for name in (engine.PDF_METADATA_CREATION_DATE, engine.PDF_METADATA_MODIFICATION_DATE):
        book.set_metadata(name, "1970-01-01T00:00:00Z")
    stream = BytesIO()
    book.write_to_pdf_stream(stream)
    return stream.getvalue()


def _section_pages(pypdf: ModuleType, printed: bytes) -> dict[str, int]:
    reader = pypdf.PdfReader(BytesIO(printed))
    targets = reader.named_destinations
    return {
        anchor: reader.get_destination_page_number(targets[anchor]) + 1
        for anchor, _ in SECTIONS
        if anchor in targets
    }


def _finish(
    pypdf: ModuleType, printed: bytes, report: Mapping[str, Any], pages: Mapping[str, int]
) -> bytes:
    writer = pypdf.PdfWriter(clone_from=BytesIO(printed))
    for number, (anchor, title) in enumerate(SECTIONS, start=1):
        if anchor in pages:
            writer.add_outline_item(title=f"{number} {title}", page_number=pages[anchor] - 1)
    root = writer.root_object
    root[pypdf.generic.NameObject("/Lang")] = pypdf.generic.TextStringObject("en")
    root[pypdf.generic.NameObject("/PageMode")] = pypdf.generic.NameObject("/UseOutlines")
    instant = _pdf_date(report["started_at"])
    writer.metadata = {
        "/Title": f"Gate report: numbat {report['plane']} {report['version']}",
        "/Subject": f"Verdict: {report['verdict'].replace('_', ' ')}",
        "/Creator": "numbat-gates",
        **({"/CreationDate": instant, "/ModDate": instant} if instant else {}),
    }
    _set_identifier(pypdf, writer, printed)
    stream = BytesIO()
    writer.write(stream)
    return stream.getvalue()


def _set_identifier(pypdf: ModuleType, writer: Any, printed: bytes) -> None:
    # A random /ID would make each printing of one report another file.
    name = pypdf.generic.ByteStringObject(hashlib.sha256(printed).digest()[:16])
    writer._ID = pypdf.generic.ArrayObject([name, name])


def _pdf_date(iso: str) -> str | None:
    try:
        instant = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return None
    return f"D:{instant:%Y%m%d%H%M%S}Z"
