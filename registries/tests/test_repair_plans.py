"""Repair plans carried out by a program: answered, turned into a call, and that call made."""

from __future__ import annotations

from typing import Any

import pytest

from numbat_registries import Action, Refusal, RepairPlan, load_registry, refuse

pytestmark = pytest.mark.usefixtures("trial")


def read_series(*, gap: str = "refuse", tilt: str = "keep", patient: str = "") -> str:
    """Stands for a reader that refuses a gap until it is told what to do with it."""
    if gap == "refuse":
        raise refuse("TRY-0001", patient_name="A^B", gap_mm=4.0, indices=[2], remark="odd")
    return f"{gap} {tilt} {patient}"


def plans() -> tuple[RepairPlan, ...]:
    with pytest.raises(Refusal) as caught:
        read_series()
    return caught.value.diagnostic.plans


def test_a_plan_reruns_what_was_refused() -> None:
    keywords = plans()[0].answer(tilt="resample").keywords()
    assert keywords.pop("remark") == "odd"
    assert read_series(**keywords) == "keep resample A^B"


def test_the_plan_of_a_real_refusal_reruns_it() -> None:
    with pytest.raises(Refusal) as caught:
        load_registry("radiology")
    (plan,) = caught.value.diagnostic.plans
    assert plan.safe
    assert load_registry(**plan.answer(name="gates").keywords()).prefix == "GATE"


def test_a_plan_is_bound_to_constants_evidence_and_questions() -> None:
    rerun, quarantine = plans()
    assert rerun.action is Action.RERUN_WITH
    assert rerun.args == {"gap": "keep", "patient": "A^B", "remark": "odd"}
    assert rerun.asks == {
        "tilt": {"type": "string", "choices": ["keep", "resample"], "says": "which?"}
    }
    assert not rerun.safe
    assert quarantine.safe


def test_evidence_that_a_site_could_not_give_becomes_a_question() -> None:
    plan = refuse("TRY-0001", patient_name="A^B", gap_mm=4.0, indices=[]).diagnostic.plans[0]
    assert plan.asks["remark"] == {"type": "string", "says": "what else was seen"}
    assert "remark" not in plan.args
    assert plan.answer(tilt="keep", remark="none").keywords()["remark"] == "none"


def test_an_answer_leaves_the_plan_itself_alone() -> None:
    plan = plans()[0]
    plan.answer(tilt="keep")
    assert "tilt" in plan.asks
    assert "tilt" not in plan.args


def test_what_a_caller_does_to_a_plan_does_not_reach_the_next() -> None:
    first = refuse("TRY-0001", patient_name="A", gap_mm=1, indices=[1], birth=["2000"])
    first.diagnostic.plans[1].args["when"].append("2001")
    assert first.diagnostic.fields["birth"] == ["2000"]


@pytest.mark.parametrize(
    ("answers", "argument", "reason"),
    [
        ({"slope": 1}, "slope", "not asked for"),
        ({"tilt": "ignore"}, "tilt", "not among ['keep', 'resample']"),
        ({"tilt": 3}, "tilt", "not of the type string"),
        ({"tilt": ["keep"]}, "tilt", "not of the type string"),
        ({"gap": "keep"}, "gap", "not asked for"),
    ],
)
def test_a_wrong_answer_is_refused(answers: dict[str, Any], argument: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        plans()[0].answer(**answers)
    fields = caught.value.diagnostic.fields
    assert caught.value.code == "GATE-0104"
    assert (fields["argument"], fields["reason"]) == (argument, reason)
    assert fields["asked"] == ["tilt"]


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("integer", 3, 3.5),
        ("integer", 3, True),
        ("number", 3.5, "3.5"),
        ("boolean", False, 0),
        ("array", [1], "1"),
        ("array", (1,), None),
        ("object", {"a": 1}, []),
        ("string", "", b""),
    ],
)
def test_an_answer_has_the_type_that_was_asked_for(kind: str, right: Any, wrong: Any) -> None:
    plan = RepairPlan(Action.RERUN_WITH, {}, safe=True, says="", asks={"x": {"type": kind}})
    assert plan.answer(x=right).keywords() == {"x": right}
    with pytest.raises(Refusal) as caught:
        plan.answer(x=wrong)
    assert caught.value.code == "GATE-0104"


def test_open_questions_make_no_call() -> None:
    with pytest.raises(Refusal) as caught:
        plans()[0].keywords()
    assert caught.value.code == "GATE-0105"
    assert caught.value.diagnostic.fields["open_questions"] == ["tilt"]


@pytest.mark.parametrize("action", list(Action))
def test_only_plans_that_are_calls_make_one(action: Action) -> None:
    plan = RepairPlan(action, {"a": 1}, safe=True, says="do it")
    if action in (Action.RERUN_WITH, Action.CHOOSE_OPTION, Action.SUPPLY_ARGUMENT):
        assert plan.keywords() == {"a": 1}
        return
    with pytest.raises(Refusal) as caught:
        plan.keywords()
    assert caught.value.code == "GATE-0105"
    assert caught.value.diagnostic.fields["action"] == str(action)


def test_a_plan_as_data_leaves_out_what_it_does_not_have() -> None:
    bare = RepairPlan(Action.ASK_OPERATOR, {}, safe=False, says="ask")
    assert bare.to_dict() == {"action": "ask-operator", "args": {}, "safe": False, "says": "ask"}
    assert repr(bare) == "<RepairPlan ask-operator()>"
    assert repr(plans()[0]) == (
        "<RepairPlan rerun-with(gap='keep', patient='‹withheld›', remark='odd', tilt=?)>"
    )
