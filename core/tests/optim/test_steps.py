"""Optimisers without torch: known steps, fused as the loop, states, groups and refusals."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import numbat as nb
from numbat import optim
from numbat.optim import lr_scheduler
from numbat.optim.ema import EMA
from numbat.optim.lbfgs import LBFGS
from numbat_registries import Refusal


def refused(code, function, *args, **keywords):
    with pytest.raises(Refusal) as caught:
        function(*args, **keywords)
    assert caught.value.code == code


ALL = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.1},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.5},
    "Adadelta": {"lr": 2.0},
    "Adamax": {"lr": 0.1},
    "NAdam": {"lr": 0.1},
    "RAdam": {"lr": 0.1},
    "ASGD": {"lr": 0.1},
    "Rprop": {"lr": 0.05},
    "Lion": {"lr": 0.02},
    "Adafactor": {"lr": 0.3},
    "LAMB": {"lr": 0.05},
    "Muon": {"lr": 0.05},
}


def steps(name, settings, count=40, dtype=nb.float32, seed=0, shape=(6, 5), **more):
    """A parameter after steps on a quadratic bowl with noise, and its optimiser."""
    rng = np.random.default_rng(seed)
    weight = nb.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True)
    other = nb.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True)
    optimizer = getattr(optim, name)([weight, other], **settings, **more)
    for _ in range(count):
        for one in (weight, other):
            noise = rng.normal(size=shape) * 0.01
            one.grad = nb.tensor(2 * one.array.astype(np.float64) + noise, dtype=dtype)
        optimizer.step()
    return weight, optimizer


@pytest.mark.parametrize("name", ALL)
def test_every_optimiser_descends(name):
    start = np.random.default_rng(0).normal(size=(6, 5))
    weight, _ = steps(name, ALL[name])
    assert np.square(weight.array).sum() < 0.7 * np.square(start).sum()


@pytest.mark.parametrize("name", ALL)
def test_every_optimiser_climbs(name):
    if name == "Muon":
        pytest.skip("torch's Muon has no maximize")
    down, _ = steps(name, ALL[name], 1)
    up, _ = steps(name, ALL[name] | {"weight_decay": 0} if name not in ("Rprop",) else ALL[name], 1,
                  maximize=True)  # fmt: skip
    start = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    assert np.square(up.array).sum() > np.square(start).sum() > np.square(down.array).sum()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("dtype", [nb.float32, nb.float64])
def test_fused_is_the_loop_bit_by_bit(name, dtype):
    together, _ = steps(name, ALL[name], 20, dtype, shape=(301, 7), fused=True)
    alone, _ = steps(name, ALL[name], 20, dtype, shape=(301, 7), foreach=False)
    np.testing.assert_array_equal(together.array, alone.array)


@pytest.mark.parametrize(
    "name", [name for name in ALL if name not in ("Adafactor", "LAMB", "Muon")]
)
def test_blocks_are_the_whole_bit_by_bit(name):
    """A parameter stepped block by block, on several threads, is what its columns are alone."""
    whole, _ = steps(name, ALL[name], 3, shape=(3, 40000))
    strided_start = np.random.default_rng(0)
    first = strided_start.normal(size=(3, 40000))
    weight = nb.tensor(np.asfortranarray(first)).float()
    weight = nb.from_numpy(np.asfortranarray(weight.array)).requires_grad_()
    other = nb.tensor(strided_start.normal(size=(3, 40000)), dtype=nb.float32, requires_grad=True)
    optimizer = getattr(optim, name)([weight, other], **ALL[name])
    for _ in range(3):
        for one in (weight, other):
            noise = strided_start.normal(size=(3, 40000)) * 0.01
            one.grad = nb.tensor(2 * one.array.astype(np.float64) + noise, dtype=nb.float32)
        optimizer.step()
    tolerance = 1e-6 if name in ("SGD", "Adam", "AdamW") else 0.0
    np.testing.assert_allclose(weight.array, whole.array, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALL)
def test_a_saved_state_continues(name):
    weight, optimizer = steps(name, ALL[name], 5)
    twin = nb.tensor(weight.array.copy(), requires_grad=True)
    other = optimizer.param_groups[0]["params"][1]
    second = nb.tensor(other.array.copy(), requires_grad=True)
    fresh = getattr(optim, name)([twin, second], lr=123.0)
    fresh.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    assert fresh.param_groups[0]["lr"] == ALL[name]["lr"]
    for seed in range(3):
        grad = np.random.default_rng(seed).normal(size=(6, 5)).astype(np.float32)
        for one in (weight, twin, other, second):
            one.grad = nb.tensor(grad)
        optimizer.step()
        fresh.step()
        np.testing.assert_array_equal(weight.array, twin.array)


@pytest.mark.parametrize("name", ALL)
def test_narrow_parameters_are_stepped_in_float32(name):
    for dtype in (nb.float16, nb.bfloat16):
        weight, optimizer = steps(name, ALL[name], 10, dtype)
        assert weight.dtype is dtype
        assert np.isfinite(weight.array.astype(np.float64)).all()
        for state in optimizer.state.values():
            assert all(one.dtype is dtype for key, one in state.items()
                       if key not in ("step", "mu", "eta", "mu_product"))  # fmt: skip


def test_known_steps():
    """First steps that can be computed by hand."""

    def after(name, grad, start=1.0, **settings):
        weight = nb.tensor([[start]], dtype=nb.float64, requires_grad=True)
        optimizer = getattr(optim, name)([weight], **settings)
        weight.grad = nb.tensor([[grad]], dtype=nb.float64)
        optimizer.step()
        return weight.item()

    assert after("SGD", 2.0, lr=0.1) == pytest.approx(0.8)
    assert after("SGD", 2.0, lr=0.1, weight_decay=0.5) == pytest.approx(0.75)
    assert after("SGD", 2.0, lr=0.1, momentum=0.9, nesterov=True) == pytest.approx(1 - 0.38)
    # Adam's first step is the rate, whatever the gradient is.
    for grad in (1e-3, 5.0):
        assert after("Adam", grad, lr=0.1) == pytest.approx(0.9, abs=1e-5)
        assert after("AdamW", grad, lr=0.1, weight_decay=0.1) == pytest.approx(0.89, abs=1e-5)
        assert after("Lion", grad, lr=0.1) == pytest.approx(0.9)
        assert after("Lion", grad, lr=0.1, weight_decay=0.1) == pytest.approx(0.89)
        assert after("Adagrad", grad, lr=0.1) == pytest.approx(0.9, abs=1e-5)
        assert after("Rprop", grad, lr=0.1) == pytest.approx(0.9)
    # LAMB's step is as long as the parameter, times the rate.
    for start in (1.0, 4.0):
        assert after("LAMB", 3.0, start, lr=0.1, weight_decay=0) == pytest.approx(0.9 * start)
    assert after("RMSprop", 2.0, lr=0.1, alpha=0.75, eps=0) == pytest.approx(0.8)
    assert after("Adamax", 2.0, lr=0.1, eps=0) == pytest.approx(0.9)


def test_lion_by_its_formula():
    rng = np.random.default_rng(0)
    weight = nb.tensor(rng.normal(size=7), dtype=nb.float64, requires_grad=True)
    p, m = weight.array.copy(), np.zeros(7)
    optimizer = optim.Lion([weight], lr=0.01, betas=(0.9, 0.99), weight_decay=0.3)
    for grad in rng.normal(size=(30, 7)):
        weight.grad = nb.tensor(grad)
        optimizer.step()
        p = p * (1 - 0.01 * 0.3) - 0.01 * np.sign(0.9 * m + 0.1 * grad)
        m = 0.99 * m + 0.01 * grad
        np.testing.assert_allclose(weight.array, p, rtol=1e-12)


def test_lamb_by_its_formula():
    rng = np.random.default_rng(0)
    weight = nb.tensor(rng.normal(size=(4, 3)), dtype=nb.float64, requires_grad=True)
    p = weight.array.copy()
    m, v = np.zeros((4, 3)), np.zeros((4, 3))
    optimizer = optim.LAMB([weight], lr=0.01, weight_decay=0.1)
    for step, grad in enumerate(rng.normal(size=(30, 4, 3)), 1):
        weight.grad = nb.tensor(grad)
        optimizer.step()
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
        u = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6) + 0.1 * p
        p = p - 0.01 * np.linalg.norm(p) / np.linalg.norm(u) * u
        np.testing.assert_allclose(weight.array, p, rtol=1e-10)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_valley_of_rosenbrock(search):
    x = nb.tensor([-1.2, 1.0], dtype=nb.float64, requires_grad=True)
    optimizer = LBFGS([x], lr=1.0 if search else 1e-2, line_search_fn=search, max_iter=100)

    def loss():
        optimizer.zero_grad()
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        value.backward()
        return value

    first = loss().item()
    for _ in range(5):
        last = optimizer.step(loss)
    if search:
        np.testing.assert_allclose(x.array, [1, 1], atol=1e-4)
    else:
        assert last.item() < first


def test_closure_hooks_and_zero_grad():
    weight = nb.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)
    called = []
    before = optimizer.register_step_pre_hook(lambda *_: called.append("before"))
    optimizer.register_step_post_hook(lambda *_: called.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        called.append("closure")
        return loss

    with nb.no_grad():
        assert optimizer.step(closure).item() == 5.0
    assert called == ["before", "closure", "after"]
    before.remove()
    optimizer.zero_grad(set_to_none=False)
    np.testing.assert_array_equal(weight.grad.array, [0, 0])
    optimizer.zero_grad()
    assert weight.grad is None
    optimizer.step()
    assert called[-1] == "after"
    # What was saved for a backward pass before the step was written over, and that is noticed.
    loss = (weight * weight).sum()
    weight.grad = nb.ones(2)
    optimizer.step()
    refused("CORE-0304", loss.backward)


def test_groups_have_settings_of_their_own():
    one, two = nb.ones(1, requires_grad=True), nb.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [one], "lr": 0.5}, {"params": two}], lr=0.1)
    one.grad = two.grad = nb.ones(1)
    optimizer.step()
    assert (one.item(), round(two.item(), 6)) == (0.5, 0.9)
    assert optimizer.state_dict()["param_groups"][1]["params"] == [1]
    assert "lr: 0.5" in repr(optimizer)
    again = copy.deepcopy(optimizer.state_dict())
    assert again["param_groups"][0]["lr"] == 0.5
    rate = nb.tensor(0.25)
    assert optim.SGD([one], lr=rate).param_groups[0]["lr"] is rate


def test_a_rate_in_a_tensor_is_followed_by_schedules():
    rate = nb.tensor(0.5)
    weight = nb.ones(1, requires_grad=True)
    optimizer = optim.SGD([weight], lr=rate)
    schedule = lr_scheduler.StepLR(optimizer, 1, 0.5)
    weight.grad = nb.ones(1)
    optimizer.step()
    schedule.step()
    assert rate.item() == 0.25
    optimizer.step()
    assert weight.item() == 0.25


def test_average_with_ramped_decay():
    model = nb.nn.Linear(2, 2)
    average = EMA(model)
    start = model.weight.array.copy()
    expected = start.copy()
    for count in range(1, 30):
        with nb.no_grad():
            model.weight.array[...] = start + count
        average.update(model)
        decay = 0.9999 * (1 - math.exp(-count / 2000))
        expected = decay * expected + (1 - decay) * model.weight.array
        np.testing.assert_allclose(average.module.weight.array, expected, rtol=1e-5)
    assert not average.module.weight.requires_grad
    other = EMA(model)
    other.load_state_dict(average.state_dict())
    assert other.updates == 29
    np.testing.assert_array_equal(other.module.weight.array, average.module.weight.array)
    refused("CORE-0709", average.update, nb.nn.Linear(2, 3))


def test_clipping():
    weight = nb.zeros(2, requires_grad=True)
    weight.grad = nb.tensor([3.0, 4.0])
    assert optim.clip_grad_norm_([weight], 10.0).item() == 5.0
    np.testing.assert_array_equal(weight.grad.array, [3, 4])
    assert optim.clip_grad_norm_(weight, 1.0).item() == 5.0
    np.testing.assert_allclose(weight.grad.array, np.array([3, 4]) / (5 + 1e-6), rtol=1e-6)
    optim.clip_grad_value_([weight], 0.7)
    np.testing.assert_allclose(weight.grad.array, [0.6, 0.7], rtol=1e-6)
    assert optim.clip_grad_norm_([], 1.0).item() == 0.0


def test_refusals():
    weight = nb.zeros(2, requires_grad=True)
    refused("CORE-0701", optim.SGD, [weight], lr=-1.0)
    refused("CORE-0701", optim.SGD, [weight], nesterov=True)
    refused("CORE-0701", optim.Adam, [weight], betas=(1.0, 0.9))
    refused("CORE-0701", optim.Adadelta, [weight], rho=2.0)
    refused("CORE-0702", optim.Adam, [weight], differentiable=True)
    refused("CORE-0702", optim.Adam, [weight], foreach=True, fused=True)
    refused("CORE-0703", optim.SGD, [])
    refused("CORE-0703", optim.SGD, weight)
    refused("CORE-0703", optim.SGD, [weight * 2])
    refused("CORE-0703", optim.SGD, [{"params": [weight]}, {"params": [weight]}])
    refused("CORE-0703", optim.SGD, [3.0])
    two = optim.SGD([weight, nb.zeros(2, requires_grad=True)])
    refused("CORE-0704", optim.SGD([weight]).load_state_dict, two.state_dict())
    refused("CORE-0705", optim.LBFGS([weight]).step)
    weight.grad = nb.tensor([math.inf, 0.0])
    refused("CORE-0706", optim.clip_grad_norm_, [weight], 1.0, error_if_nonfinite=True)
    refused("CORE-0707", lr_scheduler.ConstantLR, two, factor=2.0)
    refused("CORE-0707", lr_scheduler.StepLR, two, 1, last_epoch=3)
    refused("CORE-0707", lr_scheduler.OneCycleLR, two, 0.1)
    refused("CORE-0707", lr_scheduler.LambdaLR, two, [lambda epoch: 1.0] * 3)
    refused("CORE-0708", optim.Muon, [weight])
