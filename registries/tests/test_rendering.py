"""A diagnostic as text, problem details, SARIF and a page; and what none of them may say."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numbat_registries import Diagnostic, Refusal, Registry, notice, refuse
from numbat_registries.diagnostics import WITHHELD
from numbat_registries.rendering import (
    explain,
    plan_text,
    to_problem,
    to_rich,
    to_sarif,
    to_sarif_log,
    to_text,
)

pytestmark = pytest.mark.usefixtures("trial")

#: The machine may be busy; how long an example takes says nothing.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAME = "Zwetschgenknödel^Æneas"


def gap(name: str = NAME, **more: Any) -> Refusal:
    return refuse("TRY-0001", patient_name=name, gap_mm=4.123456789, indices=[1, 2], **more)


def every_text(refusal: Refusal) -> dict[str, str]:
    """Whatever may end up in a log, a terminal or a report."""
    diagnostic = refusal.diagnostic
    record = logging.LogRecord("x", 40, "x.py", 1, "%s %r", (refusal, diagnostic), None)
    return {
        "str": str(refusal),
        "repr": repr(refusal),
        "args": repr(refusal.args),
        "diagnostic": f"{diagnostic!r} {diagnostic}",
        "plans": f"{diagnostic.plans!r}",
        "plan text": "\n".join(map(plan_text, diagnostic.plans)),
        "text": to_text(diagnostic),
        "rich": to_rich(diagnostic).plain,
        "problem": json.dumps(to_problem(diagnostic), ensure_ascii=False),
        "sarif": json.dumps(to_sarif(diagnostic), ensure_ascii=False),
        "sarif log": json.dumps(
            to_sarif_log([diagnostic], tool="t", version="1"), ensure_ascii=False
        ),
        "traceback": "".join(traceback.format_exception(refusal)),
        "log": logging.Formatter().format(record),
    }


def test_text_says_what_with_which_evidence_and_what_to_do() -> None:
    assert to_text(gap(remark="tilted").diagnostic).split("\n") == [
        "TRY-0001 slice-gap (refusal): ‹withheld›: gap of 4.12346 mm after slices 1, 2, tilted",
        "    patient_name = ‹withheld›",
        "    gap_mm = 4.12346 mm",
        "    indices = 1, 2",
        "    remark = tilted",
        "  1. rerun-with: ask ‹withheld› about 4.12346 mm (needs a person's decision)",
        "     effect: ‹withheld› is asked",
        "     loses: 4.12346 mm of ‹withheld›",
        "  2. quarantine: set the series aside",
        "  more: numbat-gates explain TRY-0001",
    ]


def test_absent_evidence_is_said_to_be_absent() -> None:
    diagnostic = gap().diagnostic
    assert diagnostic.message.endswith("after slices 1, 2, (not given)")
    assert "remark" not in diagnostic.fields
    assert "remark =" not in to_text(diagnostic)


def test_a_field_that_the_registry_dropped_since_still_renders() -> None:
    old = gap().diagnostic
    from_elsewhere = Diagnostic(
        old.code, old.name, old.severity, old.message, {"was_mm": 2.0}, (), old.site
    )
    assert "    was_mm = 2\n" in to_text(from_elsewhere)


def test_rich_has_the_same_words() -> None:
    diagnostic = gap(remark="[bold]not markup[/bold]").diagnostic
    assert to_rich(diagnostic).plain == to_text(diagnostic)


def test_problem_details_have_the_members_of_rfc_9457() -> None:
    diagnostic = gap().diagnostic
    problem = to_problem(diagnostic)
    assert problem["type"] == "https://numbat.dev/codes/TRY-0001"
    assert problem["title"] == "slice gap"
    assert problem["status"] == 422
    assert problem["detail"] == diagnostic.message
    assert problem["code"] == "TRY-0001"
    assert problem["severity"] == "refusal"
    assert problem["fields"] == {"patient_name": WITHHELD, "gap_mm": 4.123456789, "indices": [1, 2]}
    assert problem["site"] == diagnostic.site
    first, second = problem["repair"]
    assert first["action"] == "rerun-with"
    assert first["args"] == {"gap": "keep", "patient": WITHHELD}
    assert first["asks"]["tilt"]["choices"] == ["keep", "resample"]
    assert second["args"] == {"who": WITHHELD}
    assert json.loads(json.dumps(problem, allow_nan=False)) == problem


@pytest.mark.parametrize(
    ("make", "level", "status"),
    [
        (gap, "error", 422),
        (lambda: refuse("TRY-0005", n=1), "error", 500),
        (lambda: notice("TRY-0003", fine=True), "warning", 200),
        (lambda: notice("TRY-0002"), "note", 200),
    ],
    ids=["refusal", "failure", "warning", "notice"],
)
def test_each_severity_has_its_level_and_status(make: Any, level: str, status: int) -> None:
    made = make()
    diagnostic = made.diagnostic if isinstance(made, Refusal) else made
    result = to_sarif(diagnostic)
    assert result["level"] == level
    # SARIF 2.1.0 §3.27.9: with any other kind, level has to be "none".
    assert result["kind"] == "fail"
    assert to_problem(diagnostic)["status"] == status


def test_a_sarif_log_has_a_rule_for_every_result() -> None:
    log = to_sarif_log(
        [gap().diagnostic, gap().diagnostic, notice("TRY-0002")], tool="numbat", version="0.1"
    )
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["TRY-0001", "TRY-0002"]
    assert [result["ruleId"] for result in run["results"]] == ["TRY-0001", "TRY-0001", "TRY-0002"]
    (location,) = run["results"][0]["locations"][0]["logicalLocations"]
    assert location["fullyQualifiedName"] == f"{__name__}.gap"


def test_the_page_of_a_code_has_every_field_plan_and_the_example(trial: Registry) -> None:
    for code in trial:
        page = explain(code.code)
        assert page.startswith(f"# {code.code} {code.name}\n")
        assert code.explains in page
        assert code.message in page
        assert code.example in page
        for spec in code.fields.values():
            assert f"- `{spec.name}` ({spec.type}" in page
            assert spec.says in page
        for plan in code.repair:
            assert f"**{plan['action']}**" in page
            assert plan["says"] in page
            assert all(f"`{argument}`" in page for argument in plan["args"])
    assert "(withheld: may identify a patient)" in explain("TRY-0001")


def test_a_retired_code_keeps_its_page() -> None:
    page = explain("TRY-0004")
    assert "**Retired in 0.1.** The number is never used again." in page
    assert "## What raised it" in page


def test_an_unregistered_code_has_no_page() -> None:
    with pytest.raises(Refusal) as caught:
        explain("TRY-9999")
    assert caught.value.code == "GATE-0101"


# ------------------------------------------------------------------ patient data


def test_patient_data_is_in_no_text() -> None:
    refusal = gap(birth=["1931-02-03"])
    for name, text in every_text(refusal).items():
        assert NAME not in text, name
        assert "1931-02-03" not in text, name
        assert NAME.encode("ascii", "backslashreplace").decode() not in text, name


def test_what_happens_to_equal_patient_data_is_not_withheld() -> None:
    """A constant is no secret because a patient shares it: where it comes from counts."""
    plan = gap("keep").diagnostic.plans[0]
    assert plan.to_dict()["args"] == {"gap": "keep", "patient": WITHHELD}


@UNHURRIED
@given(
    name=st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=3),
    date=st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=3),
)
def test_no_patient_data_of_any_kind_is_in_any_text(name: str, date: str) -> None:
    for place, text in every_text(gap(name, birth=[date])).items():
        assert name not in text, place
        assert date not in text, place


def test_a_program_gets_what_is_withheld_from_texts() -> None:
    diagnostic = gap(birth=["1931-02-03"]).diagnostic
    assert diagnostic.fields["patient_name"] == NAME
    assert diagnostic.plans[1].args == {"who": NAME, "when": ["1931-02-03"]}
    answered = diagnostic.plans[0].answer(tilt="keep", remark="none")
    assert answered.keywords() == {"gap": "keep", "patient": NAME, "tilt": "keep", "remark": "none"}
    assert NAME not in repr(answered)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_keeps_everything(protocol: int) -> None:
    refusal = gap(birth=["1931-02-03"])
    back = pickle.loads(pickle.dumps(refusal, protocol))
    assert type(back) is Refusal
    assert back.diagnostic == refusal.diagnostic
    assert str(back) == str(refusal)
    assert back.diagnostic.fields["patient_name"] == NAME
    assert NAME not in to_text(back.diagnostic)


# ------------------------------------------------------------------ hostile evidence


@pytest.mark.parametrize(
    ("remark", "shown"),
    [
        ("a\nTRY-0002 forged line", r"a\nTRY-0002 forged line"),
        ("\x1b[2Jwiped", r"\x1b[2Jwiped"),
        ("left\u202eright", r"left\u202eright"),
        ("{gap_mm} {nothing} {0}", "{gap_mm} {nothing} {0}"),
        ("Größe × ½", "Größe × ½"),
    ],
    ids=["line break", "terminal command", "direction", "template", "plain"],
)
def test_evidence_cannot_forge_lines_or_command_a_terminal(remark: str, shown: str) -> None:
    diagnostic = gap(remark=remark).diagnostic
    lines = to_text(diagnostic).split("\n")
    assert len(lines) == len(to_text(gap(remark="plain").diagnostic).split("\n"))
    assert lines[0].endswith(f", {shown}")
    assert f"    remark = {shown}" in lines
    assert diagnostic.fields["remark"] == remark


@UNHURRIED
@given(st.text())
def test_any_text_renders_printably(remark: str) -> None:
    diagnostic = gap(remark=remark).diagnostic
    assert all(line.isprintable() for line in to_text(diagnostic).split("\n"))
    to_text(diagnostic).encode("utf-8")


def test_long_and_nested_evidence_is_readable() -> None:
    diagnostic = gap(header={"rows": 512, "ok": True, "spacing_mm": [0.5, 0.5]}).diagnostic
    assert "    header = rows: 512, ok: yes, spacing_mm: 0.5, 0.5" in to_text(diagnostic)
    many = refuse("TRY-0001", patient_name="x", gap_mm=1, indices=list(range(100)))
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 … and 88 more" in str(many)
    assert many.diagnostic.fields["indices"] == list(range(100))
