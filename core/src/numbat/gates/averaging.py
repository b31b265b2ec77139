"""The moving average of a model, worked out beside it in plain numpy."""

import math
from typing import Any

import numpy as np

import numbat as nb
from numbat.optim.ema import EMA
from numbat_gates import Check, gate


@gate(
    "CORE-G32",
    phase=3,
    discharges=["CORE-R032"],
    title="The average covers buffers, at every step, with a ramped decay",
)
def averaging(check: Check) -> None:
    nb.manual_seed(5)
    model = nb.nn.Sequential(nb.nn.Linear(3, 4), nb.nn.BatchNorm1d(4))
    average = EMA(model, decay=0.99, tau=20)
    expected = {name: np.array(value.array) for name, value in model.state_dict().items()}
    for step in range(1, 31):
        _move(model, step)
        average.update(model)
        decay = 0.99 * (1 - math.exp(-step / 20))
        for name, value in model.state_dict().items():
            given = value.array
            if given.dtype.kind == "f":
                expected[name] = decay * expected[name] + (1 - decay) * given
            else:
                expected[name] = given.copy()
    found: dict[str, Any] = average.module.state_dict()
    check.equal("the names of the average", sorted(found), sorted(expected))
    for name, value in found.items():
        check.close(name, measured=value.array, required=expected[name], atol=2e-6)
    still = EMA(model, decay=0.9, tau=0)
    check.equal(
        "without ramp the decay is constant", [still.decay_at(n) for n in (1, 9)], [0.9] * 2
    )
    check.true(
        "the average requires no gradient",
        not any(p.requires_grad for p in still.module.parameters()),
    )
    with check.refuses("CORE-0709", "an average of another model"):
        average.update(nb.nn.Linear(3, 4))


def _move(model: Any, step: int) -> None:
    """One training step, so that weights and running statistics change."""
    nb.manual_seed(step)
    loss = (model(nb.randn(8, 3)) ** 2).mean() + model[0].weight.square().sum()
    model.zero_grad()
    loss.backward()
    with nb.no_grad():
        for one in model.parameters():
            one.sub_(one.grad * 0.1)
