"""Schedules of the learning rate against torch's: the same series, to the last bit."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import numbat as nb
from numbat import optim

STEPS = 70


def sgd(library, lrs=(0.1, 0.37)):
    zeros, module = (nb.zeros, optim) if library is nb else (torch.zeros, torch.optim)
    groups = [{"params": [zeros(2, requires_grad=True)], "lr": lr} for lr in lrs]
    return module.SGD(groups, lr=0.1, momentum=0.9)


def adam(library):
    zeros, module = (nb.zeros, optim) if library is nb else (torch.zeros, torch.optim)
    return module.Adam([zeros(2, requires_grad=True)], lr=0.1)


class Inverse:
    def __init__(self):
        self.power = 0.5

    def __call__(self, epoch):
        return 1 / (1 + epoch) ** self.power


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambdas": lambda s, o: s.LambdaLR(o, [Inverse(), lambda epoch: math.sin(epoch + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "step": lambda s, o: s.StepLR(o, 7, 0.3),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 30], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.37, 11),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.7, 13),
    "linear to one": lambda s, o: s.LinearLR(o),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda s, o: s.PolynomialLR(o, 40, 1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 17, 0.003),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.003),
    "restarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=STEPS),
    "one cycle of epochs": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.7], epochs=10, steps_per_epoch=7, anneal_strategy="linear", three_phase=True
    ),
    "one cycle in three": lambda s, o: s.OneCycleLR(
        o, 0.5, total_steps=STEPS, pct_start=0.2, three_phase=True, div_factor=7
    ),
    "triangular": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 5, 8),
    "triangular2": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, mode="triangular2"),
    "exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, mode="exp_range", gamma=0.97),
    "own cycles": lambda s, o: s.CyclicLR(
        o, 0.01, 0.3, 6, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations",
        cycle_momentum=False,
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
    "warm-up, then cosine": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=6), s.CosineAnnealingLR(o, 40)], [6]
    ),
    "three after another": lambda s, o: s.SequentialLR(
        o,
        [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.StepLR(o, 3, 0.5)],
        [5, 25],
    ),
    "nested": lambda s, o: s.SequentialLR(
        o,
        [
            s.SequentialLR(o, [s.LinearLR(o, 0.2, total_iters=4), s.StepLR(o, 2)], [6]),
            s.PolynomialLR(o, 20),
        ],
        [9],
    ),
}  # fmt: skip


def values(optimizer):
    return [
        [group["lr"], group.get("momentum"), group.get("betas")] for group in optimizer.param_groups
    ]


def series(library, make, optimizer, steps=STEPS):
    schedule = make(library, optimizer)
    found = [values(optimizer)]
    for _ in range(steps - 1):
        optimizer.step()
        schedule.step()
        assert schedule.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
        found.append(values(optimizer))
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_series(name):
    make = SCHEDULES[name]
    ours = series(optim.lr_scheduler, make, sgd(nb))
    theirs = series(torch.optim.lr_scheduler, make, sgd(torch))
    assert ours == theirs


@pytest.mark.parametrize("name", ["one cycle", "triangular", "exp_range"])
def test_series_of_betas(name):
    make = SCHEDULES[name]
    ours = series(optim.lr_scheduler, make, adam(nb))
    assert ours == series(torch.optim.lr_scheduler, make, adam(torch))


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_continues(name):
    make = SCHEDULES[name]
    whole = series(optim.lr_scheduler, make, sgd(nb))
    first = sgd(nb)
    schedule = make(optim.lr_scheduler, first)
    for _ in range(20):
        first.step()
        schedule.step()
    second = sgd(nb)
    again = make(optim.lr_scheduler, second)
    second.load_state_dict(first.state_dict())
    again.load_state_dict(schedule.state_dict())
    for step in range(21, STEPS):
        second.step()
        again.step()
        assert values(second) == whole[step]


@pytest.mark.parametrize(
    "name", ["step", "multistep", "exponential", "linear", "cosine", "restarts"]
)
def test_going_to_an_epoch(name):
    make = SCHEDULES[name]
    found = []
    for library, module in ((nb, optim.lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = sgd(library)
        schedule = make(module, optimizer)
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for epoch in (3, 11, 12, 29):
                schedule.step(epoch)
                found.append((library.__name__, values(optimizer)))
    half = len(found) // 2
    assert [one[1] for one in found[:half]] == [one[1] for one in found[half:]]


@pytest.mark.parametrize("name", ["step", "cosine", "exponential", "linear", "multiplicative"])
def test_going_on_from_an_epoch(name):
    makes = {
        "step": lambda s, o: s.StepLR(o, 7, 0.3, last_epoch=10),
        "cosine": lambda s, o: s.CosineAnnealingLR(o, 17, last_epoch=10),
        "exponential": lambda s, o: s.ExponentialLR(o, 0.9, last_epoch=10),
        "linear": lambda s, o: s.LinearLR(o, 0.1, total_iters=20, last_epoch=10),
        "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9, last_epoch=10),
    }
    found = []
    for library, module in ((nb, optim.lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = sgd(library)
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"] * 2
        found.append(series(module, makes[name], optimizer, 20))
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
@pytest.mark.parametrize("cooldown", [0, 3])
def test_plateau(mode, threshold_mode, cooldown):
    rng = np.random.default_rng(0)
    metrics = np.round(1 / (1 + np.arange(120) / 5) + rng.normal(size=120) * 0.03, 3)
    found = []
    for library, module in ((nb, optim.lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = sgd(library)
        schedule = module.ReduceLROnPlateau(
            optimizer, mode, 0.3, 2, 0.01, threshold_mode, cooldown, [1e-4, 1e-3], 1e-6
        )
        rates = []
        for metric in metrics:
            schedule.step(metric)
            rates.append(values(optimizer))
        found.append(rates)
    assert found[0] == found[1]


def test_every_schedule_of_torch_is_there():
    assert set(torch.optim.lr_scheduler.__all__) == set(optim.lr_scheduler.__all__)
