"""Losses over reductions, weights and ignored targets, by hand and against PyTorch's answers."""

import math

import numpy as np

import numbat as nb
from numbat.gates._known import known
from numbat.gates.gradients import samples_of
from numbat.gates.operators import apart
from numbat.ops.registry import OPERATORS
from numbat_gates import Check, gate

F = nb.nn.functional
FAMILIES = ("losses", "class_losses", "distances", "ctc")


@gate(
    "CORE-G22",
    phase=2,
    discharges=["CORE-R022"],
    title="Losses give PyTorch's values and gradients",
)
def losses(check: Check) -> None:
    recorded = known(check, "operators")
    compared = 0
    for operator in OPERATORS.values():
        answers = recorded["answers"].get(operator.name)
        if operator.family not in FAMILIES or answers is None:
            continue
        compared += 1
        pairs = zip(samples_of(operator), answers, strict=True)
        faults = [
            found
            for sample, answer in pairs
            if "results" in answer and (found := apart(operator, sample, answer))
        ]
        check.equal(f"{operator.name}: results and gradients", faults, [])
    check.at_least("losses compared", compared, 15)
    _by_hand(check)


def _by_hand(check: Check) -> None:
    logits = nb.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 3.0]], dtype=nb.float64)
    labels = nb.tensor([0, 1, -100])
    first, second = math.log1p(math.exp(-2.0)), math.log1p(math.exp(-1.0))
    weights = nb.tensor([3.0, 1.0], dtype=nb.float64)
    by_hand = {
        "the mean is over what counts": (F.cross_entropy(logits, labels), (first + second) / 2),
        "and by its weights": (
            F.cross_entropy(logits, labels, weight=weights),
            (3 * first + second) / 4,
        ),
        "labels are smoothed": (
            F.cross_entropy(logits[:1], labels[:1], label_smoothing=0.2),
            0.9 * first + 0.1 * (first + 2.0),
        ),
    }
    for name, (found, required) in by_hand.items():
        check.close(name, measured=found.array, required=np.array(required), atol=1e-12)
    far = F.binary_cross_entropy_with_logits(nb.tensor([1000.0]), nb.tensor([0.0]))
    check.equal("a logit of 1000 does not overflow", far.item(), 1000.0)
