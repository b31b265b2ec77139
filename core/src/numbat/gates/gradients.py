"""Derivatives of every registered operator against central differences."""

from collections.abc import Callable
from typing import Any

import numpy as np

import numbat as nb
from numbat.autograd.gradcheck import (
    TOLERANCE,
    Disagreement,
    first_derivatives,
    worst_disagreement,
)
from numbat.ops.registry import OPERATORS, Operator, Sample
from numbat.ops.trials import as_function
from numbat_gates import Check, gate


@gate(
    "CORE-G07",
    phase=1,
    discharges=["CORE-R007"],
    title="Every operator's gradient agrees with differences",
)
def gradients(check: Check) -> None:
    for operator in OPERATORS.values():
        samples = samples_of(operator)
        check.true(f"{operator.name} has samples", bool(samples))
        if not operator.differentiable:
            continue
        _judge(check, operator, samples, "gradient", _first)
        if operator.twice:
            _judge(check, operator, samples, "second derivative", _second)


def samples_of(operator: Operator) -> list[Sample]:
    """The operator's samples, the same ones in every run."""
    return list(operator.samples(np.random.default_rng(20260)))


def _judge(
    check: Check,
    operator: Operator,
    samples: list[Sample],
    what: str,
    apart: Callable[[Operator, Sample], Disagreement | None],
) -> None:
    worst: tuple[float, str] = (0.0, "")
    for number, sample in enumerate(samples):
        try:
            found = apart(operator, sample)
        except Exception as error:
            # One operator's fault must not hide the next one's.
            check.equal(f"{what} of {operator.name}", f"sample {number}: {error!r}"[:300], "")
            return
        if found is not None:
            distance = abs(found.derivative - found.difference)
            # A NaN is as far away as can be.
            distance = distance if distance == distance else float("inf")
            if distance >= worst[0]:
                worst = (distance, f"sample {number}: {found}")
    check.equal(f"{what} of {operator.name} within {TOLERANCE}", worst[1], "")


def _first(operator: Operator, sample: Sample) -> Disagreement | None:
    function, inputs = as_function(operator, sample, nb.float64)
    return worst_disagreement(_seeded(operator, function), tuple(inputs)) if inputs else None


def _second(operator: Operator, sample: Sample) -> Disagreement | None:
    function, inputs = as_function(operator, sample, nb.float64)
    if not inputs:
        return None
    once = first_derivatives(_seeded(operator, function), tuple(inputs))
    return worst_disagreement(once, tuple(inputs), eps=1e-5)


def _seeded(operator: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that draws numbers draws the same ones at every call."""
    if not operator.random:
        return function

    def seeded(*given: Any) -> Any:
        nb.manual_seed(137)
        return function(*given)

    return seeded
