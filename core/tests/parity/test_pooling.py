"""Pools against PyTorch: its own sample inputs, NaN, infinities and whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import compare, tensor_of, to_torch

import numbat as nb

F = torch.nn.functional
POOLS = [
    f"{kind}_pool{axes}d"
    for kind in ("max", "avg", "adaptive_avg", "adaptive_max")
    for axes in (1, 2, 3)
] + [f"max_unpool{axes}d" for axes in (1, 2, 3)]


@pytest.mark.parametrize("name", POOLS)
def test_samples(name):
    tally = compare(name, dtypes=(torch.float32, torch.float64, torch.int64), limit=60)
    assert not tally.faults, tally.faults
    assert tally.compared >= 4


@pytest.mark.parametrize("name", POOLS)
def test_half_types(name):
    tally = compare(name, dtypes=(torch.bfloat16, torch.float16), limit=10, scale=2)
    assert not tally.faults, tally.faults


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_max_pool_places_with_nan_and_ties(axes, ceil_mode, dtype):
    rng = np.random.default_rng(3)
    x = torch.tensor(rng.integers(0, 4, (2, 5, *(9, 8, 7)[:axes])), dtype=dtype)
    x[0, 0, 3], x[0, 1, 2], x[0, 2, 1] = float("nan"), float("inf"), float("-inf")
    x[1, 1] = float("-inf")
    for kernel, stride, padding, dilation in ((3, 2, 1, 1), (2, 3, 1, 2), (3, 1, 0, 3)):
        args = (kernel, stride, padding, dilation, ceil_mode)
        if kernel == 3 and dilation == 3 and axes > 1:
            args = (kernel, stride, 1, dilation, ceil_mode)
        wanted = getattr(F, f"max_pool{axes}d")(x, *args, return_indices=True)
        found = getattr(nb, f"max_pool{axes}d")(tensor_of(x), *args, return_indices=True)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(to_torch(one), other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_lp_pool(axes):
    x = torch.rand(2, 3, *(9, 8, 7)[:axes], dtype=torch.float64, requires_grad=True)
    for norm, kernel, stride, ceil_mode in ((2.0, 3, None, False), (3.0, 2, 1, True)):
        wanted = getattr(F, f"lp_pool{axes}d")(x, norm, kernel, stride, ceil_mode)
        mine = tensor_of(x).requires_grad_()
        found = getattr(nb, f"lp_pool{axes}d")(mine, norm, kernel, stride, ceil_mode)
        torch.testing.assert_close(to_torch(found), wanted.detach())
        (mine_grad,) = nb.autograd.grad(found.sum(), (mine,))
        (wanted_grad,) = torch.autograd.grad(wanted.sum(), (x,))
        torch.testing.assert_close(to_torch(mine_grad), wanted_grad)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_second_derivatives(kind):
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64, requires_grad=True)
    mine = tensor_of(x).requires_grad_()

    def penalty(f, one, grad):
        out = f(one, 3, 2, 1)
        (first,) = grad((out * out * out).sum(), (one,), create_graph=True)
        return grad((first * first).sum(), (one,))[0]

    wanted = penalty(getattr(F, f"{kind}_pool2d"), x, torch.autograd.grad)
    found = penalty(getattr(nb, f"{kind}_pool2d"), mine, nb.autograd.grad)
    torch.testing.assert_close(to_torch(found), wanted)
