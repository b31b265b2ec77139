"""Convolutions against PyTorch: its own sample inputs, second derivatives, and strided operands."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import compare, tensor_of, to_torch

import numbat as nb

NAMES = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    types = (torch.float32, torch.float64, torch.int64)
    tally = compare(name, dtypes=types, limit=40, scale=4)
    assert not tally.faults, tally.faults
    assert tally.compared >= 10


@pytest.mark.parametrize("name", NAMES)
def test_half_types(name):
    # PyTorch adds the parts of a transposed convolution up in the half type itself.
    scale = 60 if "transpose" in name else 2
    tally = compare(name, dtypes=(torch.bfloat16, torch.float16), limit=8, scale=scale)
    assert not tally.faults, tally.faults


CASES = [
    # channels, outputs, space, kernel, settings
    (3, 48, (23, 19), (3, 3), {"stride": 2, "padding": 1}),
    (48, 40, (13, 11), (3, 3), {"stride": 1, "padding": 1}),
    (17, 33, (9, 14), (3, 3), {"padding": 2, "dilation": 2}),
    (16, 32, (9, 14), (5, 2), {"padding": (1, 2), "stride": (1, 3)}),
    (24, 36, (10, 10), (3, 3), {"padding": 1, "groups": 3}),
    (20, 20, (10, 9), (3, 3), {"padding": 1, "groups": 20}),
    (20, 40, (10, 9), (3, 3), {"padding": 1, "groups": 20, "stride": 2}),
    (32, 64, (10, 10), (1, 1), {}),
    (32, 64, (11, 10), (1, 1), {"stride": 2}),
    (6, 5, (7,), (4,), {"padding": "same"}),
    (19, 21, (40,), (7,), {"padding": 3, "stride": 2}),
    (4, 18, (6, 7, 9), (3, 3, 3), {"padding": 1}),
    (16, 16, (6, 7, 9), (2, 2, 2), {"stride": 2}),
    (8, 24, (5, 6, 7), (3, 1, 3), {"padding": (2, 0, 1), "stride": (1, 2, 2)}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_and_gradients(case, dtype):
    channels, outs, space, kernel, settings = case
    rng = np.random.default_rng(1)
    groups = settings.get("groups", 1)
    name = f"conv{len(space)}d"
    arrays = [
        rng.normal(size=(2, channels, *space)),
        rng.normal(size=(outs, channels // groups, *kernel)),
        rng.normal(size=outs),
    ]
    mine = [nb.tensor(one, dtype=dtype, requires_grad=True) for one in arrays]
    theirs = [torch.tensor(one, dtype=getattr(torch, dtype), requires_grad=True) for one in arrays]
    out = getattr(nb, name)(*mine, **settings)
    wanted = getattr(torch.nn.functional, name)(*theirs, **settings)
    weights = rng.normal(size=tuple(wanted.shape))
    out.backward(nb.tensor(weights, dtype=dtype))
    wanted.backward(torch.tensor(weights, dtype=wanted.dtype))
    pairs = [(out, wanted), *((m.grad, t.grad) for m, t in zip(mine, theirs, strict=True))]
    for one, other in pairs:
        scale = float(other.detach().abs().max())
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(
            to_torch(one).numpy(), other.detach().numpy(), rtol=0, atol=tolerance * scale
        )


@pytest.mark.parametrize("transposed", [False, True])
def test_second_derivatives(transposed):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64, requires_grad=True)
    w = torch.randn(
        *((3, 4) if transposed else (4, 3)), 3, 2, dtype=torch.float64, requires_grad=True
    )
    settings = {"stride": 2, "padding": 1}
    name = "conv_transpose2d" if transposed else "conv2d"

    def penalty(lib, f, one, weight, grad):
        out = f(one, weight, **settings)
        gx, gw = grad((out * out).sum(), (one, weight), create_graph=True)
        return grad((gx * gx * gx).sum() + (gw * gw * gw).sum(), (one, weight))

    wanted = penalty(torch, getattr(torch.nn.functional, name), x, w, torch.autograd.grad)
    mine = [tensor_of(one).requires_grad_() for one in (x, w)]
    found = penalty(nb, getattr(nb, name), *mine, nb.autograd.grad)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(to_torch(one), other, rtol=1e-9, atol=1e-9)


def test_channels_last_and_strided_inputs_give_the_same():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 8, 9, 10)).astype(np.float32)
    w = nb.tensor(rng.normal(size=(16, 8, 3, 3)), dtype=nb.float32)
    plain = nb.conv2d(nb.tensor(x), w, padding=1).array
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    wide = np.zeros((2, 8, 18, 10), np.float32)
    wide[:, :, ::2] = x
    for array in (last, wide[:, :, ::2]):
        assert np.array_equal(nb.conv2d(nb.from_numpy(array), w, padding=1).array, plain)
