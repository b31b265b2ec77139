"""Averages of models against torch's, and the ramped average against its formula in torch."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.optim import swa_utils as theirs

import numbat as nb
from numbat import nn, optim
from numbat.optim import swa_utils as ours
from numbat.optim.ema import EMA


def models():
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    mine = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    copied(mine, other)
    return mine, other


def copied(mine, other):
    for one, values in zip(mine.state_dict().values(), other.state_dict().values(), strict=True):
        one.array[...] = values.numpy()


def moved(other, rng):
    for value in other.state_dict().values():
        if value.is_floating_point():
            value += torch.tensor(rng.normal(size=value.shape)).float() * 0.3
        else:
            value += 1


def same(mine, other, tolerance=2e-6):
    assert list(mine.state_dict()) == list(other.state_dict())
    for name, value in mine.state_dict().items():
        expected = other.state_dict()[name].numpy()
        np.testing.assert_allclose(value.array, expected, rtol=tolerance, atol=tolerance)


CHOICES = {
    "mean": lambda module: {},
    "ema": lambda module: {"avg_fn": module.get_ema_avg_fn(0.9)},
    "ema of all": lambda module: {"multi_avg_fn": module.get_ema_multi_avg_fn(0.9)},
    "mean of all": lambda module: {"multi_avg_fn": module.get_swa_multi_avg_fn()},
}


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("choice", CHOICES)
def test_averaged_model(choice, use_buffers):
    if choice == "mean of all" and use_buffers:
        pytest.skip("torch cannot average counts so")
    mine, other = models()
    one = ours.AveragedModel(mine, use_buffers=use_buffers, **CHOICES[choice](ours))
    two = theirs.AveragedModel(other, use_buffers=use_buffers, **CHOICES[choice](theirs))
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved(other, rng)
        copied(mine, other)
        one.update_parameters(mine)
        two.update_parameters(other)
        same(one, two)


def test_ramped_average():
    mine, other = models()
    average, expected = EMA(mine), copy.deepcopy(other)
    rng = np.random.default_rng(0)
    for count in range(1, 60):
        moved(other, rng)
        copied(mine, other)
        average.update(mine)
        decay = 0.9999 * (1 - math.exp(-count / 2000))
        for name, value in expected.state_dict().items():
            if value.is_floating_point():
                value.mul_(decay).add_((1 - decay) * other.state_dict()[name])
            else:
                value.copy_(other.state_dict()[name])
        same(average.module, expected)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 7])
def test_swalr(strategy, epochs):
    found = []
    for library, module, averages in ((nb, optim, ours), (torch, torch.optim, theirs)):
        weight = library.zeros(2, requires_grad=True)
        optimizer = module.SGD([{"params": [weight], "lr": 0.1}], lr=0.1)
        schedule = averages.SWALR(optimizer, 0.03, epochs, strategy)
        rates = [optimizer.param_groups[0]["lr"]]
        for _ in range(12):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        found.append(rates)
    assert found[0] == found[1]


def test_batch_statistics():
    mine, other = models()
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(6, 3)).astype(np.float32) for _ in range(4)]
    ours.update_bn([nb.tensor(one) for one in batches], mine)
    theirs.update_bn([torch.tensor(one) for one in batches], other)
    same(mine, other, 1e-5)
