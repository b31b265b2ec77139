"""Requirements: what a file may say, and what it is refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numbat_gates.digests import requirements_digest
from numbat_gates.requirements import Awaits, load_requirements, parse_requirements
from numbat_registries import Refusal

PHASES = {"1": {"title": "Files"}, "2": {"title": "Series"}}


def entry(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": "IMG-R001",
        "phase": 1,
        "text": "Every file.",
        "rationale": "Or a slice is lost.",
    }
    return {key: value for key, value in (whole | changes).items() if value is not None}


def clause(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": "IMG-R001.c1",
        "requirement": "IMG-R001",
        "text": "On real scans.",
        "awaits": "corpus",
        "because": "Real scans are in no wheel.",
    }
    return {key: value for key, value in (whole | changes).items() if value is not None}


def document(*requirements: dict[str, Any], clauses: tuple[dict[str, Any], ...] = ()) -> Any:
    return {"phase": PHASES, "requirement": list(requirements), "clause": list(clauses)}


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "requirements.toml"
    path.write_text(
        '[phase.1]\ntitle = "Files"\n'
        '[[requirement]]\nid = "IMG-R001"\nphase = 1\ntext = "Every file."\nrationale = "Why."\n'
        'awaits = "hardware"\nbecause = "No scanner here."\n'
        '[[clause]]\nid = "IMG-R001.c1"\nrequirement = "IMG-R001"\ntext = "Part."\n'
        'awaits = "corpus"\nbecause = "No scans here."\n',
        encoding="utf-8",
    )
    found = load_requirements(path)
    assert [phase.title for phase in found.phases.values()] == ["Files"]
    assert found.requirements["IMG-R001"].awaits is Awaits.HARDWARE
    assert [item.id for item in found.clauses_of("IMG-R001")] == ["IMG-R001.c1"]
    assert [item.id for item in found.of_phase(1)] == ["IMG-R001"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (document(entry(), entry()), "GATE-0302"),
        (document(entry(), clauses=(clause(id="IMG-R001"),)), "GATE-0302"),
        (document(entry(phase=None)), "GATE-0303"),
        (document(entry(phase="1")), "GATE-0303"),
        (document(entry(phase=True)), "GATE-0303"),
        (document(entry(id=None)), "GATE-0303"),
        (document(entry(text="  ")), "GATE-0303"),
        (document(entry(rationale=None)), "GATE-0303"),
        (document(entry(await_="corpus")), "GATE-0303"),
        (document(entry(awaits="corpus")), "GATE-0303"),
        (document(entry(because="nobody knows")), "GATE-0303"),
        (document(entry(phase=3)), "GATE-0304"),
        (document(entry(awaits="time", because="soon")), "GATE-0305"),
        (document(entry(), clauses=(clause(awaits="soon"),)), "GATE-0305"),
        (document(entry(), clauses=(clause(awaits=None),)), "GATE-0303"),
        (document(entry(), clauses=(clause(requirement="IMG-R009"),)), "GATE-0306"),
        ({"requirements": []}, "GATE-0301"),
        ({"requirement": {"id": "IMG-R001"}}, "GATE-0301"),
        ({"phase": {"one": {"title": "Files"}}}, "GATE-0301"),
        ({"phase": {"1": {}}}, "GATE-0301"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: Any, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_requirements(wrong, file="requirements.toml")
    assert caught.value.code == code


def test_a_misspelt_key_is_named() -> None:
    with pytest.raises(Refusal) as caught:
        parse_requirements(document(entry(await_="corpus")), file="requirements.toml")
    assert caught.value.diagnostic.fields["faults"] == ["has an unknown key await_"]


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "requirements.toml"
    path.write_text("[[requirement]", encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        load_requirements(path)
    assert caught.value.code == "GATE-0301"


def test_the_digest_follows_the_texts_and_not_the_layout() -> None:
    first, second = entry(), entry(id="IMG-R002", phase=2)
    one = parse_requirements(document(first, second), file="a")
    other = parse_requirements(document(second, dict(reversed(first.items()))), file="b")
    assert requirements_digest(one) == requirements_digest(other)
    changed = parse_requirements(document(first | {"text": "Most files."}, second), file="a")
    assert requirements_digest(one) != requirements_digest(changed)
    weakened = parse_requirements(
        document(first | {"awaits": "hardware", "because": "none"}, second), file="a"
    )
    assert requirements_digest(one) != requirements_digest(weakened)


def test_only_what_a_machine_can_settle_depends_on_one() -> None:
    assert {reason for reason in Awaits if reason.depends_on_machine} == {
        Awaits.CORPUS,
        Awaits.HARDWARE,
        Awaits.LICENCE,
    }
