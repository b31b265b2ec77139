"""`torch.nn.init`, function by function: the same values from the same seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import numbat as nb
from numbat.nn import init

FLOATS = ("float64", "float32", "float16", "bfloat16")


def filled(name, shape, dtype, *args, seed=9, **keywords):
    nb.manual_seed(seed)
    torch.manual_seed(seed)
    ours = nb.zeros(shape, dtype=getattr(nb, dtype), requires_grad=True)
    theirs = torch.zeros(shape, dtype=getattr(torch, dtype), requires_grad=True)
    assert getattr(init, name)(ours, *args, **keywords) is ours
    getattr(torch.nn.init, name)(theirs, *args, **keywords)
    assert (nb.rand(3).array == torch.rand(3).numpy()).all()
    assert ours.grad_fn is None
    return ours.array.astype(np.float64), theirs.detach().double().numpy()


SHAPES = [(4, 3), (5, 7), (6, 4, 3), (8, 4, 3, 3), (4, 2, 3, 3, 3), (64, 33)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("uniform_", ()), ("uniform_", (-0.3, 0.7)), ("normal_", ()), ("normal_", (1.0, 0.2)),
        ("constant_", (0.3,)), ("ones_", ()), ("zeros_", ()), ("xavier_uniform_", ()),
        ("xavier_uniform_", (1.7,)), ("xavier_normal_", (1.7,)), ("kaiming_uniform_",
        (math.sqrt(5),)), ("kaiming_uniform_", (0, "fan_out", "relu")), ("kaiming_normal_", (0,
        "fan_out", "relu")), ("kaiming_normal_", (0.1,)), ("trunc_normal_", ()), ("trunc_normal_",
        (0.5, 0.02, 0.4, 0.6)), ("trunc_normal_", (0.0, 1.0, 1.2, 1.4)), ("trunc_normal_", (0.0,
        1.0, -0.1, 0.2)),
    ],
)  # fmt: skip
def test_values(name, args, shape, dtype):
    ours, theirs = filled(name, shape, dtype, *args)
    if dtype == "float64":
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    elif torch.backends.cpu.get_cpu_capability() == "AVX2" or "uniform" in name:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_eye(shape):
    np.testing.assert_array_equal(*filled("eye_", shape, "float32"))


@pytest.mark.parametrize("shape", [(4, 3, 3), (4, 2, 3, 2), (6, 5, 3, 2, 4)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups):
    np.testing.assert_array_equal(*filled("dirac_", shape, "float32", groups))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (9, 4), (6, 3, 3), (16, 8, 3, 3)])
def test_orthogonal(shape, dtype):
    ours, theirs = filled("orthogonal_", shape, dtype, 1.3)
    np.testing.assert_allclose(ours, theirs, atol=1e-13 if dtype == "float64" else 3e-6)


def test_sparse():
    np.testing.assert_array_equal(*filled("sparse_", (20, 7), "float32", 0.3, std=0.1))


@pytest.mark.parametrize("name", [*init.LINEAR, "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_gains(name):
    assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    if name == "leaky_relu":
        assert init.calculate_gain(name, 0.2) == torch.nn.init.calculate_gain(name, 0.2)


def test_own_generator():
    ours, theirs = nb.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    a = init.kaiming_uniform_(nb.zeros(5, 4), generator=ours).array
    b = torch.nn.init.kaiming_uniform_(torch.zeros(5, 4), generator=theirs).numpy()
    np.testing.assert_array_equal(a, b)


def test_every_name_is_there():
    assert set(torch.nn.init.__all__) <= set(dir(init))
