"""The quick start of the README prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_quick_start_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    program, said = re.findall(r"```(?:python|console)\n(.*?)```", text, re.DOTALL)
    exec(compile(program, str(README), "exec"), {"__name__": "quick_start"})
    assert capsys.readouterr().out == said
