"""Repair plans: what a program may carry out, and what it has to ask first."""

from __future__ import annotations

from numbat_gates import Check, gate
from numbat_registries import Action, Refusal, RepairPlan, load_registries, load_registry

_QUESTION = {"type": "string", "choices": ["keep", "resample"], "says": "what to do"}


@gate(
    "GATE-G03",
    phase=1,
    discharges=["GATE-R003"],
    title="Repair plans can be carried out, and take only what they ask for",
)
def repair_plans(check: Check) -> None:
    actions = {str(action) for action in Action}
    for name, registry in load_registries().items():
        used = {plan["action"] for code in registry for plan in code.repair}
        check.equal(f"{name}: actions outside the closed list", sorted(used - actions), [])
        bare = [
            code.code
            for code in registry.live
            if not code.repair and str(code.severity) != "notice"
        ]
        check.equal(f"{name}: codes without a way out", bare, [])
    _a_plan_is_carried_out(check)
    _answers(check)


def _a_plan_is_carried_out(check: Check) -> None:
    try:
        load_registry("radiology")
    except Refusal as refusal:
        plan = refusal.diagnostic.plans[0]
        check.equal("open questions", list(plan.asks), ["name"])
        again = plan.answer(name="gates")
        check.equal("the refused call made again", load_registry(**again.keywords()).plane, "gates")
        check.equal("the plan itself is unchanged", list(plan.asks), ["name"])
        check.equal("plan as data", plan.to_dict()["action"], "supply-argument")


def _answers(check: Check) -> None:
    plan = RepairPlan(
        Action.RERUN_WITH, {"path": "in"}, safe=False, says="choose", asks={"tilt": _QUESTION}
    )
    check.equal(
        "a plan with its answer",
        plan.answer(tilt="keep").keywords(),
        {"path": "in", "tilt": "keep"},
    )
    with check.refuses("GATE-0105", "a plan with an open question is no call"):
        plan.keywords()
    with check.refuses("GATE-0104", "an answer that is not among the choices"):
        plan.answer(tilt="ignore")
    with check.refuses("GATE-0104", "an answer of another type"):
        plan.answer(tilt=3)
    with check.refuses("GATE-0104", "an answer that nobody asked for"):
        plan.answer(colour="red")
    for action in (Action.OBTAIN_LICENCE, Action.ASK_OPERATOR, Action.REPORT_BUG):
        with check.refuses("GATE-0105", f"{action} is no call"):
            RepairPlan(action, {}, safe=False, says="ask the holder").keywords()
