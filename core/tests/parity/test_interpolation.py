"""Interpolation, grids, padding and unfolding against PyTorch's own sample inputs, and against
NaN."""

from __future__ import annotations

import itertools

import pytest
import torch
from opinfo import compare, tensor_of, to_torch

import numbat as nb

F = torch.nn.functional


@pytest.mark.parametrize(
    "name",
    ["grid_sample", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold_windows"],
)
def test_samples(name):
    tally = compare(name, dtypes=(torch.float32, torch.float64, torch.int64), limit=80, scale=4)
    assert not tally.faults, tally.faults
    assert tally.compared >= 2


def test_fold():
    for size, kernel, keywords in (
        ((4, 5), (2, 3), {}), ((6, 5), 2, {"stride": 2, "padding": 1}),
        ((7, 7), 3, {"dilation": 2}),
    ):  # fmt: skip
        columns = F.unfold(torch.randn(2, 3, *size, dtype=torch.float64), kernel, **keywords)
        columns.requires_grad_()
        wanted = F.fold(columns, size, kernel, **keywords)
        mine = tensor_of(columns).requires_grad_()
        found = nb.fold(mine, size, kernel, **keywords)
        torch.testing.assert_close(to_torch(found), wanted.detach())
        (one,) = nb.autograd.grad((found * found).sum(), (mine,))
        (other,) = torch.autograd.grad((wanted * wanted).sum(), (columns,))
        torch.testing.assert_close(to_torch(one), other)


@pytest.mark.parametrize("aligned", [False, True])
def test_affine_grid(aligned):
    for size in ((2, 3, 4, 5), (1, 1, 1, 6), (2, 2, 3, 4, 5)):
        maps = torch.randn(size[0], len(size) - 2, len(size) - 1, requires_grad=True)
        wanted = F.affine_grid(maps, size, aligned)
        mine = tensor_of(maps).requires_grad_()
        found = nb.affine_grid(mine, size, aligned)
        torch.testing.assert_close(to_torch(found), wanted.detach(), rtol=1e-5, atol=1e-6)
        (one,) = nb.autograd.grad((found * found).sum(), (mine,))
        (other,) = torch.autograd.grad((wanted * wanted).sum(), (maps,))
        torch.testing.assert_close(to_torch(one), other)


def test_interpolate_samples():
    tally = compare("interpolate", limit=400, scale=4)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared >= 40


def test_pad_samples():
    types = (torch.float32, torch.float64, torch.int64, torch.bool)
    tally = compare("pad", dtypes=types, limit=300)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared >= 40


@pytest.mark.parametrize("name", ["interpolate", "pad", "pixel_shuffle", "unfold_windows"])
def test_half_types(name):
    tally = compare(name, dtypes=(torch.bfloat16, torch.float16), limit=60, scale=4)
    assert not tally.faults, tally.faults[:3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_interpolate_settings(dtype):
    torch.manual_seed(1)
    for mode, axes in (
        ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("nearest", 2),
        ("nearest-exact", 3), ("nearest", 3), ("area", 2),
    ):  # fmt: skip
        x = torch.randn(2, 3, *(7, 5, 6)[:axes], dtype=dtype)
        plain = mode in ("nearest", "nearest-exact", "area")
        for aligned in (None,) if plain else (False, True):
            for keywords in (
                {"size": (11, 3, 9)[:axes]}, {"scale_factor": 1.7}, {"scale_factor": 0.6},
                {"scale_factor": 2.3, "recompute_scale_factor": True}, {"size": (1,) * axes},
            ):  # fmt: skip
                wanted = F.interpolate(x, mode=mode, align_corners=aligned, **keywords)
                found = nb.interpolate(tensor_of(x), mode=mode, align_corners=aligned, **keywords)
                torch.testing.assert_close(to_torch(found), wanted, rtol=2e-5, atol=2e-5)


def test_grid_sample_outside_and_nan():
    torch.manual_seed(2)
    for axes in (2, 3):
        x = torch.randn(2, 3, *(5, 4, 6)[:axes], requires_grad=True)
        grid = (torch.rand(2, *(4, 3, 2)[:axes], axes) * 5 - 2.5).requires_grad_()
        modes = ("bilinear", "nearest", "bicubic")[: 4 - axes + 1]
        for mode, padding, aligned in itertools.product(
            modes, ("zeros", "border", "reflection"), (False, True)
        ):
            wanted = F.grid_sample(x, grid, mode, padding, aligned)
            mine = [tensor_of(one).requires_grad_() for one in (x, grid)]
            found = nb.grid_sample(*mine, mode, padding, aligned)
            torch.testing.assert_close(to_torch(found), wanted.detach(), rtol=1e-4, atol=1e-5)
            weights = torch.randn_like(wanted)
            for one, other in zip(
                nb.autograd.grad(found, mine, tensor_of(weights)),
                torch.autograd.grad(wanted, (x, grid), weights),
                strict=True,
            ):
                torch.testing.assert_close(to_torch(one), other, rtol=1e-4, atol=1e-4)
    broken = torch.full((1, 2, 2, 2), float("nan"))
    x = torch.randn(1, 1, 4, 4)
    for padding in ("zeros", "border", "reflection"):
        wanted = F.grid_sample(x, broken, "nearest", padding, False)
        found = nb.grid_sample(tensor_of(x), tensor_of(broken), "nearest", padding, False)
        torch.testing.assert_close(to_torch(found), wanted, equal_nan=True)


def test_second_derivatives():
    x = torch.randn(1, 2, 5, 6, dtype=torch.float64, requires_grad=True)

    def penalty(f, one, grad):
        out = f(one)
        (first,) = grad((out * out * out).sum(), (one,), create_graph=True)
        return grad((first * first).sum(), (one,))[0]

    for mine, theirs in (
        (lambda t: nb.interpolate(t, scale_factor=1.5, mode="bilinear"),
         lambda t: F.interpolate(t, scale_factor=1.5, mode="bilinear")),
        (lambda t: nb.pad(t, (1, 2, 2, 0), mode="reflect"),
         lambda t: F.pad(t, (1, 2, 2, 0), mode="reflect")),
        (lambda t: nb.pad(t, (1, -2, 2, 0)), lambda t: F.pad(t, (1, -2, 2, 0))),
        (lambda t: nb.unfold_windows(t, 3, padding=1), lambda t: F.unfold(t, 3, padding=1)),
    ):  # fmt: skip
        wanted = penalty(theirs, x, torch.autograd.grad)
        found = penalty(mine, tensor_of(x).requires_grad_(), nb.autograd.grad)
        torch.testing.assert_close(to_torch(found), wanted)
