"""Optimisers against torch's, over torch's own list of settings (`optim_db`): 100 steps of each.

`torch.testing._internal` is private to torch and pinned with it (2.13.0).
"""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.testing._internal.common_optimizers import optim_db

import numbat as nb
from numbat import optim

STEPS = 100
SHAPES = [(7, 5), (5,), (), (3, 2, 4)]
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
NOT_HERE = {"SparseAdam"}


def cases():
    for info in optim_db:
        name = info.optim_cls.__name__
        if name in NOT_HERE:
            continue
        seen = set()
        for given in info.optim_inputs_func(device="cpu"):
            settings = {key: value for key, value in given.kwargs.items() if key != "foreach"}
            if settings.get("differentiable") or settings.get("capturable"):
                continue
            settings = {
                key: float(one) if isinstance(one, torch.Tensor) else one
                for key, one in settings.items()
            }
            if "betas" in settings:
                settings["betas"] = tuple(float(one) for one in settings["betas"])
            if repr(settings) in seen:
                continue
            seen.add(repr(settings))
            yield pytest.param(name, settings, id=f"{name}-{given.desc or len(seen)}")


CASES = list(cases())


class Problem:
    """Parameters, and gradients that are a bounded function of them and of the step."""

    def __init__(self, name, dtype, seed=0):
        rng = np.random.default_rng(seed)
        shapes = [shape for shape in SHAPES if len(shape) == 2] if name == "Muon" else SHAPES
        self.start = [np.asarray(rng.normal(size=shape), dtype) for shape in shapes]
        self.factors = [np.asarray(rng.uniform(0.2, 2, size=shape), dtype) for shape in shapes]
        self.noise = [np.asarray(rng.normal(size=(STEPS, *shape)), dtype) for shape in shapes]

    def gradients(self, values, step):
        for value, factor, noise in zip(values, self.factors, self.noise, strict=True):
            yield np.asarray(np.tanh(value) * factor + noise[step] * value.dtype.type(0.3))

    def loss(self, params, tensor, optimizer):
        optimizer.zero_grad()
        total = 0.0
        for one, factor in zip(params, self.factors, strict=True):
            square = one * one
            total = total + (square * tensor(factor) + square * square * 0.01).sum()
        total.backward()
        return total


def built(name, module, params, settings):
    one_by_one = {} if module is optim or name in ("LBFGS", "Muon") else {"foreach": False}
    return getattr(module, name)(params, **one_by_one, **settings)


def trajectories(name, settings, dtype, steps=STEPS):
    """Our parameters and optimiser and torch's after each step, each from its own gradients."""
    given = Problem(name, dtype)
    mine = [nb.tensor(one, requires_grad=True) for one in given.start]
    theirs = [torch.tensor(one, requires_grad=True) for one in given.start]
    ours = built(name, optim, mine, settings)
    other = built(name, torch.optim, theirs, settings)
    assert ours.defaults.keys() == other.defaults.keys()
    for step in range(steps):
        if name == "LBFGS":
            ours.step(lambda: given.loss(mine, nb.tensor, ours))
            other.step(lambda: given.loss(theirs, torch.tensor, other))
        else:
            for one, grad in zip(
                mine, given.gradients([one.array for one in mine], step), strict=True
            ):
                one.grad = nb.tensor(grad)
            for one, grad in zip(
                theirs, given.gradients([one.detach().numpy() for one in theirs], step), strict=True
            ):
                one.grad = torch.tensor(grad)
            ours.step()
            other.step()
        yield mine, theirs, ours, other


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_trajectory(name, settings, dtype):
    steps = 10 if name == "LBFGS" else STEPS
    tolerance = TOLERANCE[dtype]
    if name == "Muon":
        # Its products are rounded to bfloat16, in an order of sums that is BLAS's own.
        tolerance = 5e-3
    elif name == "LBFGS" and dtype == "float32":
        tolerance = 1e-4
    for count, (mine, theirs, _, _) in enumerate(trajectories(name, settings, dtype, steps), 1):
        if count not in (1, 2, 10, 50, steps):
            continue
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(
                one.array, other.detach().numpy(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize(("name", "settings"), [case for case in CASES if case.values[0] != "Muon"])
def test_state_has_torchs_layout(name, settings):
    steps = 3
    *_, last = trajectories(name, settings, "float64", steps)
    _, _, my_optimizer, their_optimizer = last
    mine, theirs = my_optimizer.state_dict(), their_optimizer.state_dict()
    assert mine.keys() == theirs.keys()
    for group, other in zip(mine["param_groups"], theirs["param_groups"], strict=True):
        assert group.keys() == other.keys()
        assert group["params"] == other["params"]
    assert mine["state"].keys() == theirs["state"].keys()
    for key, state in mine["state"].items():
        other = theirs["state"][key]
        if name == "LBFGS":
            assert set(state) == set(other) - {"al"}
            continue
        assert state.keys() == other.keys()
        for entry, value in state.items():
            if isinstance(value, nb.Tensor):
                expected = other[entry].numpy()
                assert value.array.dtype == expected.dtype, entry
                np.testing.assert_allclose(value.array, expected, rtol=1e-10, atol=1e-12)
            else:
                assert value == other[entry]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "NAdam", "Adafactor", "ASGD"])
def test_torchs_state_is_taken_over(name):
    settings = {"lr": 0.01} | ({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})
    *_, last = trajectories(name, settings, "float64", 5)
    mine, theirs, _, their_optimizer = last
    saved = copy.deepcopy(their_optimizer.state_dict())

    def turned(value):
        if isinstance(value, torch.Tensor):
            return nb.tensor(value.numpy())
        if isinstance(value, dict):
            return {key: turned(one) for key, one in value.items()}
        return value

    fresh = getattr(optim, name)(mine, lr=0.5)
    fresh.load_state_dict(turned(saved))
    # torch casts what it loads to the parameter's type, so it is to load as well.
    their_optimizer = getattr(torch.optim, name)(theirs, lr=0.5, foreach=False)
    their_optimizer.load_state_dict(saved)
    assert fresh.param_groups[0]["lr"] == 0.01
    for _ in range(5):
        for one, other in zip(mine, theirs, strict=True):
            one.array[...] = other.detach().numpy()
            other.grad = other.detach() * 0.3 + 1
            one.grad = nb.tensor(other.grad.numpy())
        fresh.step()
        their_optimizer.step()
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one.array, other.detach().numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "RAdam"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_parameters(name, dtype):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=(40,)), rng.normal(size=(10, 40))
    mine = nb.tensor(start, dtype=dtype).requires_grad_()
    theirs = torch.tensor(start).to(getattr(torch, dtype)).requires_grad_()
    settings = {"lr": 0.01} | ({} if name == "SGD" else {"eps": 1e-3})
    ours = built(name, optim, [mine], settings)
    other = built(name, torch.optim, [theirs], settings)
    for grad in grads:
        mine.grad = nb.tensor(grad, dtype=dtype)
        theirs.grad = torch.tensor(grad).to(theirs.dtype)
        ours.step()
        other.step()
    error = 0.01 if dtype == "float16" else 0.08
    np.testing.assert_allclose(
        mine.array.astype(np.float64), theirs.detach().double().numpy(), atol=error
    )


def test_groups_with_names_and_settings_of_their_own():
    def build(library):
        tensor = library.zeros if library is nb else torch.zeros
        w, b = tensor(2, requires_grad=True), tensor(3, requires_grad=True)
        module = optim if library is nb else torch.optim
        made = module.SGD(
            [{"params": [("w", w)], "lr": 0.5}, {"params": [("b", b)], "momentum": 0.9}], lr=0.1
        )
        return made.state_dict()

    assert build(nb) == build(torch)


def gradients(seed, dtype, shapes=((40, 30), (30,), (2, 3, 4), ())):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape), dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, math.inf, 0.5])
@pytest.mark.parametrize("max_norm", [0.1, 1.0, 1e4])
def test_clipping_by_norm(norm_type, max_norm, dtype):
    if dtype == "float16" and norm_type == 0.5:
        pytest.skip("torch's norm overflows")
    values = gradients(0, dtype)
    mine = [nb.tensor(one, requires_grad=True) for one in values]
    theirs = [torch.tensor(one, requires_grad=True) for one in values]
    for one, other, grad in zip(mine, theirs, values, strict=True):
        one.grad, other.grad = nb.tensor(grad), torch.tensor(grad)
    ours = optim.clip_grad_norm_(mine, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    tolerance = {"float64": 1e-12, "float32": 2e-6, "float16": 4e-3}[dtype]
    np.testing.assert_allclose(ours.item(), expected.item(), rtol=tolerance)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(
            one.grad.array, other.grad.numpy(), rtol=tolerance, atol=tolerance * 0.01
        )


def test_clipping_of_norms_that_are_not_finite():
    for bad in (math.inf, math.nan):
        one, other = nb.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
        one.grad, other.grad = nb.tensor([1.0, bad, 2.0]), torch.tensor([1.0, bad, 2.0])
        optim.clip_grad_norm_(one, 1.0)
        torch.nn.utils.clip_grad_norm_(other, 1.0)
        np.testing.assert_array_equal(one.grad.array, other.grad.numpy())


def test_clipping_by_value():
    one, other = nb.zeros(40, 30, requires_grad=True), torch.zeros(40, 30, requires_grad=True)
    (grad,) = gradients(1, "float32", ((40, 30),))
    one.grad, other.grad = nb.tensor(grad), torch.tensor(grad)
    optim.clip_grad_value_([one], 0.3)
    torch.nn.utils.clip_grad_value_([other], 0.3)
    np.testing.assert_array_equal(one.grad.array, other.grad.numpy())
