"""Autocast and the scaler without torch: what is cast, nested, kept, recorded and refused."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import numbat as nb
from numbat import amp
from numbat.ops.placement import AUTOCAST, TABLES
from numbat_registries import Refusal


def refused(code, function, *args, **keywords):
    with pytest.raises(Refusal) as caught:
        function(*args, **keywords)
    assert caught.value.code == code


def pair():
    return nb.randn(4, 4), nb.randn(4, 4, requires_grad=True)


def test_products_are_lower_and_the_rest_is_as_given():
    x, w = pair()
    with amp.autocast("cpu"):
        y = x @ w
        assert amp.is_autocast_enabled()
        assert y.dtype is nb.bfloat16
        assert (x + w).dtype is nb.float32
        assert (y + x).dtype is nb.float32
        assert nb.cat([y, x]).dtype is nb.float32
        assert nb.cat([y, y]).dtype is nb.bfloat16
    assert (x @ w).dtype is nb.float32
    assert not amp.is_autocast_enabled()


def test_cuda_placement_computes_norms_and_softmax_in_float32():
    x, w = pair()
    with amp.autocast("cpu", dtype=nb.float16, placement="cuda"):
        y = x @ w
        assert y.dtype is nb.float16
        assert nb.softmax(y, -1).dtype is nb.float32
        assert nb.layer_norm(y, (4,)).dtype is nb.float32
        assert nb.exp(y).dtype is nb.float32
        assert y.sum().dtype is nb.float32
    assert TABLES["cuda"]["binary_cross_entropy"] == "refused"


def test_float64_stays_float64():
    x, w = pair()
    with amp.autocast("cpu"):
        assert (x.double() @ w.double()).dtype is nb.float64


def test_contexts_nest_and_can_be_switched_off():
    x, w = pair()
    with amp.autocast("cpu", dtype=nb.bfloat16):
        with amp.autocast("cpu", dtype=nb.float16):
            assert (x @ w).dtype is nb.float16
            with amp.autocast("cpu", enabled=False):
                assert (x @ w).dtype is nb.float32
        assert (x @ w).dtype is nb.bfloat16
    assert AUTOCAST.table is None
    with pytest.raises(Refusal), amp.autocast("cpu"):
        x @ nb.randn(3, 3)
    assert AUTOCAST.table is None
    assert not AUTOCAST.cache


def test_decorator():
    x, w = pair()

    @amp.autocast("cpu", dtype=nb.float16)
    def product(x, w):
        """Doc."""
        return x @ w

    assert product(x, w).dtype is nb.float16
    assert product.__doc__ == "Doc."
    assert (x @ w).dtype is nb.float32


def test_gradients_of_master_weights_are_float32():
    x, w = pair()
    with amp.autocast("cpu"):
        y = (x @ w).float().sum()
    y.backward()
    assert w.grad.dtype is nb.float32
    expected = x.array.T @ np.ones((4, 4), np.float32)
    np.testing.assert_allclose(w.grad.array, expected, atol=0.05)


def test_casts_of_weights_are_kept_within_the_outermost_context():
    x, w = pair()
    with amp.autocast("cpu"):
        x @ w
        (kept,) = [cast for _, cast in AUTOCAST.cache.values()]
        y = x @ w
        assert [cast for _, cast in AUTOCAST.cache.values()] == [kept]
        with amp.autocast("cpu", cache_enabled=False):
            x @ w.detach().requires_grad_()
            assert len(AUTOCAST.cache) == 1
    assert not AUTOCAST.cache
    y.float().sum().backward()
    assert w.grad is not None


def test_other_threads_are_not_placed():
    seen = []
    with amp.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(amp.is_autocast_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def stepped(scaler, weight, optimizer, grad):
    scaler.scale(weight.sum())
    weight.grad = nb.tensor(grad)
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale()


def test_dynamics_of_the_scale():
    weight = nb.zeros(2, requires_grad=True)
    optimizer = nb.optim.SGD([weight], lr=1.0)
    scaler = amp.GradScaler(growth_interval=2)
    assert scaler.get_scale() == 65536
    good, bad = [1.0, 1.0], [math.nan, 1.0]
    scales = [
        stepped(scaler, weight, optimizer, one) for one in (good, good, good, bad, good, good)
    ]
    assert scales == [65536, 131072, 131072, 65536, 65536, 131072]
    assert np.isfinite(weight.array).all()
    state = scaler.state_dict()
    other = amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    low = amp.GradScaler(init_scale=2.0, floor=1.0)
    assert [stepped(low, weight, optimizer, bad) for _ in range(3)] == [1.0, 1.0, 1.0]


def test_a_scaler_that_is_off_passes_through():
    weight = nb.zeros(2, requires_grad=True)
    optimizer = nb.optim.SGD([weight], lr=1.0)
    scaler = amp.GradScaler(enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    np.testing.assert_array_equal(weight.array, [-1, -1])


def test_large_float64_gradients_are_finite():
    weight = nb.zeros(2, dtype=nb.float64, requires_grad=True)
    optimizer = nb.optim.SGD([weight], lr=0.0)
    scaler = amp.GradScaler()
    assert stepped(scaler, weight, optimizer, np.array([1e300, 1.0])) == 65536


def test_refusals():
    weight = nb.zeros(2, requires_grad=True)
    optimizer = nb.optim.SGD([weight], lr=1.0)
    refused("CORE-0720", amp.GradScaler().update)
    refused("CORE-0720", amp.GradScaler().unscale_, optimizer)
    refused("CORE-0721", amp.GradScaler, growth_factor=1.0)
    refused("CORE-0721", amp.GradScaler, backoff_factor=1.0)
    scaler = amp.GradScaler()
    scaler.scale(weight.sum())
    refused("CORE-0722", scaler.step, optimizer)
    scaler = amp.GradScaler()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    refused("CORE-0720", scaler.unscale_, optimizer)
    scaler.step(optimizer)
    refused("CORE-0720", scaler.step, optimizer)
    refused("CORE-0720", scaler.step, optimizer, closure=lambda: None)
    half = nb.zeros(2, dtype=nb.float16, requires_grad=True)
    half.grad = nb.ones(2, dtype=nb.float16)
    refused("CORE-0723", scaler.unscale_, nb.optim.SGD([half]))
    refused("CORE-0724", amp.autocast, "cpu", dtype=nb.float64)
    refused("CORE-0726", amp.autocast, "cpu", placement="mps")
    refused("CORE-0104", amp.autocast, "cuda")
