"""Every code's documented example raises exactly that code, and its page cannot drift."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from numbat_registries import Code, find_code, load_registries
from numbat_registries.examples import codes_raised_by_example
from numbat_registries.rendering import explain

#: What raises the codes of a registry, where that is not numbat_<registry>.
PACKAGES = {
    "gates": ("numbat_ledger", "numbat_gates"),
    "core": ("numbat",),
}
CODES = [
    pytest.param(name, code, id=code.code)
    for name, registry in load_registries().items()
    for code in registry
]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)


#: Notices that no public call gives without another one before.
_PRECEDED_BY = {"IMG-1219": ("IMG-1217",)}


@pytest.mark.parametrize(("registry", "code"), CODES)
def test_the_example_raises_exactly_its_code(registry: str, code: Code) -> None:
    if code.retired_in is not None:
        pytest.skip(f"retired in {code.retired_in}: nothing raises it any more")
    absent = [
        package
        for package in PACKAGES.get(registry, (f"numbat_{registry}",))
        if find_spec(package) is None
    ]
    if absent and any(package in code.example for package in absent):
        pytest.skip(f"{', '.join(absent)} not installed")
    raised = codes_raised_by_example(code)
    assert raised[-1:] == [code.code]
    if not code.severity.is_raised:
        # A notice may be about a refusal that was caught on the way, and may follow one that says
        # what it is about (a volume was resampled, and this of it lay outside).
        told = [c for c in raised if not find_code(c).severity.is_raised]
        assert told in ([code.code], [*_PRECEDED_BY.get(code.code, ()), code.code])


@pytest.mark.parametrize(("registry", "code"), CODES)
def test_the_page_shows_the_example(registry: str, code: Code) -> None:
    assert f"```python\n{code.example}\n```" in explain(code.code)


def example(*lines: str, like: str = "GATE-0102") -> Code:
    code = load_registries()["gates"].codes[like]
    return Code(
        code=code.code,
        name=code.name,
        severity=code.severity,
        since=code.since,
        requirement=code.requirement,
        message=code.message,
        fields=code.fields,
        explains=code.explains,
        example="\n".join(lines),
        repair=code.repair,
    )


def test_an_example_that_raises_nothing_or_another_code_is_told() -> None:
    other = "from numbat_registries import load_registry, refuse"
    assert codes_raised_by_example(example("pass")) == []
    assert codes_raised_by_example(example(other, "raise refuse('GATE-9999')")) == ["GATE-0101"]
    caught = example(other, "try:", "    load_registry('x')", "except Exception: pass")
    assert codes_raised_by_example(caught) == ["GATE-0102"]


def test_an_exception_that_is_no_refusal_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        codes_raised_by_example(example("1 / 0"))


def test_what_an_example_prints_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    noisy = "import sys; print('out'); print('err', file=sys.stderr)"
    codes_raised_by_example(example(noisy))
    assert capsys.readouterr() == ("", "")
