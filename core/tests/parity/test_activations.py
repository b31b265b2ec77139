"""Activation functions against torch, over its own sample inputs, special values and memory
layouts."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb

SMOOTH = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "logsigmoid",
    "mish",
    "selu",
    "silu",
    "softplus",
    "softsign",
    "tanhshrink",
]
KINKED = [
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "prelu", "relu", "relu6",
    "softshrink",
    "threshold",
]  # fmt: skip
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("name", SMOOTH + KINKED)
def test_torchs_samples(name: str) -> None:
    # torch multiplies by a sixth in single precision, also for float64.
    tally = compare(name, dtypes=DTYPES, scale=200 if name == "hardsigmoid" else 1)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared
    assert tally.gradients


EXTRA = {"threshold": (0.5, 2.0), "glu": (0,)}
SPECIAL = [
    0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 20.0, -20.0, 50.0, -50.0, 1e-8, -1e-8, 1e30,
    -1e30,
    float("inf"), float("-inf"), float("nan"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [one for one in SMOOTH + KINKED if one != "prelu"])
def test_special_values_and_strides(name: str, dtype: torch.dtype) -> None:
    values = torch.tensor(SPECIAL, dtype=dtype)
    for given in (values, torch.stack([values, values.flip(0)]).T, values.repeat(2)[::2]):
        theirs = given.detach().clone().requires_grad_()
        theirs_in = theirs if given.is_contiguous() else given.detach().requires_grad_()
        mine = tensor_of(given)
        mine.requires_grad = True
        expected = getattr(torch.nn.functional, name)(theirs_in, *EXTRA.get(name, ()))
        found = getattr(nb, name)(mine, *EXTRA.get(name, ()))
        torch.testing.assert_close(
            to_torch(found), expected.detach(), rtol=1e-5, atol=1e-6, equal_nan=True
        )
        (to,) = torch.autograd.grad(expected.sum(), theirs_in)
        found.sum().backward()
        finite = torch.isfinite(given)  # torch's own vector and scalar paths differ beyond
        torch.testing.assert_close(
            to_torch(mine.grad)[finite], to[finite], rtol=1e-5, atol=1e-6, equal_nan=True
        )


IN_PLACE = [
    "celu",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "silu",
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    values = torch.randn(3, 5)
    leaf, mine = values.clone().requires_grad_(), tensor_of(values)
    mine.requires_grad = True
    expected = getattr(torch.nn.functional, name)(leaf * 2, inplace=True)
    target = mine * 2
    found = getattr(nb, name)(target, inplace=True)
    assert found is target
    torch.testing.assert_close(to_torch(found), expected.detach())
    expected.square().sum().backward()
    (found * found).sum().backward()
    torch.testing.assert_close(to_torch(mine.grad), leaf.grad, rtol=1e-5, atol=1e-5)


def test_rrelu_draws_torchs_slopes() -> None:
    values = torch.randn(7, 9)
    torch.manual_seed(3)
    nb.manual_seed(3)
    expected = torch.nn.functional.rrelu(values, training=True)
    found = nb.rrelu(tensor_of(values), training=True)
    torch.testing.assert_close(to_torch(found), expected)
    expected = torch.nn.functional.rrelu(values)
    torch.testing.assert_close(to_torch(nb.rrelu(tensor_of(values))), expected)
