"""The static check sees every raise site, whatever the functions are called there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from numbat_registries import Registry, load_registry
from numbat_registries.raise_sites import check_packages, raise_sites, sites_in_source

OWN = ("numbat_registries", "numbat_ledger")


def found(source: str) -> list[tuple[str | None, str, str]]:
    return [(site.code, site.verb, site.fault) for site in sites_in_source(source, module="m")]


@pytest.mark.parametrize(
    "source",
    [
        "from numbat_registries import refuse\nraise refuse('TRY-0001')",
        "from numbat_registries import refuse as r\nraise r('TRY-0001')",
        "import numbat_registries\nraise numbat_registries.refuse('TRY-0001')",
        "import numbat_registries as nr\nraise nr.refuse('TRY-0001')",
        "import numbat_registries.raising\nraise numbat_registries.raising.refuse('TRY-0001')",
        "import numbat_registries.raising as ra\nraise ra.refuse('TRY-0001')",
        "from numbat_registries import raising\nraise raising.refuse('TRY-0001')",
        "from numbat_registries import raising as ra\nraise ra.refuse('TRY-0001')",
        "from numbat_registries.raising import refuse as no\nraise no('TRY-0001')",
        "from numbat_registries import *\nraise refuse('TRY-0001')",
        "from numbat_imaging.faults import refuse as r\nraise r('TRY-0001')",
        "from .faults import refuse as r\nraise r('TRY-0001')",
        "from . import faults\nraise faults.refuse('TRY-0001')",
        "def f():\n    from numbat_registries import refuse as r\n    raise r('TRY-0001')",
        "if x:\n    import numbat_registries as nr\nf = lambda: nr.refuse('TRY-0001')",
        "self.registries.refuse('TRY-0001')",
        "modules['numbat_registries'].refuse('TRY-0001')",
        "# -*- coding: latin-1 -*-\nimport numbat_registries as nr\nraise nr.refuse('TRY-0001')",
    ],
)
def test_an_alias_hides_no_site(source: str) -> None:
    (site,) = sites_in_source(source.encode("latin-1"), module="m")
    assert (site.code, site.verb) == ("TRY-0001", "refuse")
    assert site.line == source[: source.index("TRY-0001")].count("\n") + 1


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from numbat_registries import refuse\nraise refuse(code)", "not a literal"),
        ("from numbat_registries import refuse\nraise refuse(f'TRY-{n}')", "not a literal"),
        ("from numbat_registries import refuse\nraise refuse('TRY-' + n)", "not a literal"),
        ("from numbat_registries import refuse\nraise refuse(*args)", "not a literal"),
        ("from numbat_registries import refuse\nraise refuse()", "not a literal"),
        ("from numbat_registries import refuse\nr = refuse\nr('TRY-0001')", "passed on as a value"),
        ("import numbat_registries as nr\nr = nr.refuse", "passed on as a value"),
        ("from numbat_registries import notice\nmap(notice, codes)", "passed on as a value"),
        ("from numbat_registries import refuse\npartial(refuse, 'X')", "passed on as a value"),
        ("from numbat_registries import refuse\ndef f(r=refuse): ...", "passed on as a value"),
        ("import numbat_registries as nr\ngetattr(nr, 'refuse')(x)", "fetched by name"),
        ("importlib.import_module('numbat_registries').f(x)", "imported by name"),
        ("__import__('numbat_registries').f(x)", "imported by name"),
        ("from numbat_registries import Diagnostic\nDiagnostic('TRY-1')", "made by hand"),
        ("from numbat_registries import Diagnostic as D\nD('TRY-1')", "made by hand"),
        ("import numbat_registries as nr\nnr.Diagnostic('TRY-1')", "made by hand"),
        ("import numbat_registries as nr\nnr.refuse('TRY-0001')", "made and not raised"),
    ],
)
def test_a_use_that_hides_its_code_is_a_fault(source: str, fault: str) -> None:
    assert any(fault in site_fault for _, _, site_fault in found(source)), found(source)


@pytest.mark.parametrize(
    "source",
    [
        "def refuse(x): ...\nrefuse('anything')",
        "from flask import notice\nnotice('anything')",
        "board.notice('hello')",
        "from numbat_registries import Diagnostic\ndef f(d: Diagnostic) -> Diagnostic: ...",
        "from numbat_registries import Refusal\nraise Refusal(diagnostic)",
        "__all__ = ['refuse', 'notice']",
        "from numbat_registries import refuse, notice",
        "getattr(settings, 'refuse')",
    ],
)
def test_what_is_no_raise_site_is_not_taken_for_one(source: str) -> None:
    assert found(source) == []


def test_a_notice_may_be_dropped_and_a_refusal_kept() -> None:
    source = """
from numbat_registries import notice, refuse
notice("TRY-0002")
refusal = refuse("TRY-0005", n=1)
"""
    assert found(source) == [("TRY-0002", "notice", ""), ("TRY-0005", "refuse", "")]


def test_sites_come_with_their_fields_in_the_order_of_lines() -> None:
    source = "\n".join(
        [
            "from numbat_registries import notice, refuse",
            "def f():",
            "    if a: raise refuse('TRY-0005', n=(",
            "        notice('TRY-0003', fine=True)",
            "    ))",
            "    raise refuse('TRY-0001', gap_mm=1, **rest)",
        ]
    )
    sites = sites_in_source(source, module="m")
    assert [(s.place, s.code, sorted(s.fields), s.open_fields) for s in sites] == [
        ("m:3", "TRY-0005", ["n"], False),
        ("m:4", "TRY-0003", ["fine"], False),
        ("m:6", "TRY-0001", ["gap_mm"], True),
    ]


# ------------------------------------------------------------------ whole packages

RIGHT = """
from numbat_registries import notice, refuse

def read(n):
    notice("TRY-0002")
    notice("TRY-0003", fine=True)
    if n:
        raise refuse("TRY-0005", n=n)
    raise refuse("TRY-0001", patient_name="x", gap_mm=1.0, indices=[])
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module in a package "trial_plane" that can be imported."""
    folder = tmp_path / "trial_plane" / "inner"
    folder.mkdir(parents=True)
    for init in (folder, folder.parent):
        (init / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    module = folder / "reading.py"
    module.write_text(RIGHT, encoding="utf-8")
    return module


def test_a_package_that_agrees_has_no_faults(trial: Registry, package: Path) -> None:
    assert check_packages(["trial_plane"], trial) == []
    assert {site.module for site in raise_sites("trial_plane")} == {"trial_plane.inner.reading"}
    assert "trial_plane" not in sys.modules


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"TRY-0001"', '"TRY-0009"', "trial_plane.inner.reading:9: TRY-0009 is not registered"),
        ('"TRY-0001"', '"TYR-0001"', "trial_plane.inner.reading:9: TYR-0001 is not registered"),
        ('"TRY-0001"', '"nonsense"', "trial_plane.inner.reading:9: nonsense is not registered"),
        ('"TRY-0001"', '"GATE-9999"', "trial_plane.inner.reading:9: GATE-9999 is not registered"),
        ('"TRY-0005", n=n', '"TRY-0004"', "trial_plane.inner.reading:8: TRY-0004 was retired"),
        ("gap_mm=1.0", "gap=1.0", "TRY-0001 has no field gap"),
        ("gap_mm=1.0", "gap=1.0", "TRY-0001 needs the field gap_mm"),
        (
            "gap_mm=1.0, indices=[]",
            "**rest",
            "trial_plane.inner.reading:9: TRY-0001 gets its evidence as **mapping, not by name",
        ),
        ('notice("TRY-0002")', 'raise refuse("TRY-0002")', "is a notice, but the site says refuse"),
        ("raise refuse(", "notice(", "is a refusal, but the site says notice"),
        ('notice("TRY-0002")', "", "TRY-0002: registered, and no site raises it"),
        ('notice("TRY-0002")', "# notice('TRY-0002')", "TRY-0002: registered, and no site raises"),
        ('notice("TRY-0002")', "'notice(TRY-0002)'", "TRY-0002: registered, and no site raises it"),
        ("        raise refuse(", "        refuse(", "TRY-0005 is made and not raised"),
        ('"TRY-0001"', "code", "trial_plane.inner.reading:9: the code is not a literal"),
    ],
)
def test_every_disagreement_is_told(
    trial: Registry, package: Path, before: str, after: str, fault: str
) -> None:
    assert before in RIGHT
    package.write_text(RIGHT.replace(before, after), encoding="utf-8")
    told = check_packages(["trial_plane"], trial)
    assert any(fault in line for line in told), told


def test_codes_of_other_registries_are_checked_too(trial: Registry, package: Path) -> None:
    more = RIGHT + '\ndef f(): raise refuse("GATE-0102", nom="x")\n'
    package.write_text(more, encoding="utf-8")
    assert check_packages(["trial_plane"], trial) == [
        "trial_plane.inner.reading:11: GATE-0102 has no field nom",
        "trial_plane.inner.reading:11: GATE-0102 needs the field known",
        "trial_plane.inner.reading:11: GATE-0102 needs the field name",
    ]


def test_a_package_that_is_not_there_is_a_fault(trial: Registry) -> None:
    told = check_packages(["numbat_nowhere"], trial)
    assert told[0] == "numbat_nowhere: no such package is installed"


def test_a_single_module_is_a_package_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Registry
) -> None:
    (tmp_path / "trial_single.py").write_text(RIGHT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert check_packages(["trial_single"], trial) == []


@pytest.mark.parametrize("package_name", OWN)
def test_the_own_sites_are_literal_registered_and_fitting(package_name: str) -> None:
    told = check_packages([package_name], load_registry("gates"))
    assert [line for line in told if "no site raises it" not in line] == []


def test_the_own_codes_all_have_a_site() -> None:
    told = check_packages(OWN, load_registry("gates"))
    assert [line for line in told if line.startswith(("GATE-01", "GATE-02"))] == []
