"""Every operator's results and gradients against those that PyTorch gave."""

from typing import Any

import numpy as np

import numbat as nb
from numbat.gates._known import digest_of, known, unpacked, weights
from numbat.gates.gradients import samples_of
from numbat.ops.registry import OPERATORS, Operator, Sample
from numbat.ops.trials import as_tensors, floating_tensors
from numbat_gates import Check, gate

TOLERANCE = 1e-8
"""Of float64 results, absolutely and relatively: another order of additions, another libm."""


@gate(
    "CORE-G09",
    phase=1,
    discharges=["CORE-R009"],
    title="Operators give PyTorch's values and gradients",
)
def operators(check: Check) -> None:
    recorded = known(check, "operators")
    compared = 0
    for operator in OPERATORS.values():
        answers = recorded["answers"].get(operator.name)
        if answers is None:
            reason = recorded["without"].get(operator.name, "")
            check.true(f"{operator.name} has answers, or a reason why not", bool(reason))
            continue
        compared += 1
        samples = samples_of(operator)
        check.equal(
            f"{operator.name}: the calls that were recorded",
            [digest_of([list(one.args), one.keywords]) for one in samples],
            [one["call"] for one in answers],
        )
        faults = [
            f"sample {number}: {found}"
            for number, (sample, answer) in enumerate(zip(samples, answers, strict=False))
            if "results" in answer and (found := apart(operator, sample, answer))
        ]
        check.equal(f"{operator.name}: results and gradients", faults, [])
    check.at_least("operators compared", compared, 200)


def apart(operator: Operator, sample: Sample, answer: dict[str, Any]) -> str:
    """How an operator's results and gradients on a sample differ from an answer; empty if not."""
    args = as_tensors(list(sample.args), nb.float64)
    keywords = {name: as_tensors(value, nb.float64) for name, value in sample.keywords.items()}
    inputs = floating_tensors([args, list(keywords.values())])
    if "gradients" in answer:
        for one in inputs:
            one.requires_grad = True
    try:
        given = operator.function(*args, **keywords)
    except Exception as error:
        # One operator's fault must not hide the next one's.
        return repr(error)[:300]
    results = [one for one in _flat(given) if isinstance(one, nb.Tensor)]
    wanted = [unpacked(one) for one in answer["results"]]
    if len(results) != len(wanted):
        return f"{len(results)} results, PyTorch gave {len(wanted)}"
    for index, (mine, theirs) in enumerate(zip(results, wanted, strict=True)):
        found = _difference(mine.array, theirs)
        if found:
            return f"result {index}: {found}"
    if "gradients" in answer:
        return _gradients_apart(results, inputs, answer["gradients"])
    return ""


def _gradients_apart(results: list[nb.Tensor], inputs: list[nb.Tensor], answers: Any) -> str:
    roots = [one for one in results if one.requires_grad]
    if not roots:
        return "no result requires a gradient"
    given = [nb.tensor(weights(one.shape, index)) for index, one in enumerate(roots)]
    found = nb.autograd.grad(roots, inputs, given, allow_unused=True)
    for index, (mine, theirs) in enumerate(zip(found, answers, strict=True)):
        wanted = np.zeros(inputs[index].shape) if theirs is None else unpacked(theirs)
        measured = np.zeros(inputs[index].shape) if mine is None else mine.array
        apart = _difference(measured, wanted)
        if apart:
            return f"gradient {index}: {apart}"
    return ""


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [found for one in value for found in _flat(one)]
    return [value]


def _difference(mine: Any, theirs: Any) -> str:
    if mine.shape != theirs.shape:
        return f"shape {mine.shape}, PyTorch's {theirs.shape}"
    if theirs.dtype.kind != "f":
        return (
            "" if np.array_equal(mine, theirs) else f"{mine.tolist()}, PyTorch's {theirs.tolist()}"
        )
    close = np.isclose(mine.astype(np.float64), theirs, TOLERANCE, TOLERANCE, equal_nan=True)
    if close.all():
        return ""
    worst = np.unravel_index(int(np.argmin(close)), close.shape) if close.ndim else ()
    return f"{mine[worst]!r} at {list(map(int, worst))}, PyTorch's {theirs[worst]!r}"
