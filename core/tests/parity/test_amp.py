"""Autocast against `torch.autocast("cpu")`, operator by operator, and the scaler's dynamics.

The samples are torch's own (`op_db`); what is compared is the type of every result.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from opinfo import DTYPES, databases, to_numbat

import numbat as nb
from numbat import amp, optim
from numbat.ops.placement import TABLES
from numbat.ops.registry import OPERATORS

SAMPLES = 2
NOT_BY_TYPE = {
    # Ours are one operator with several roads, torch's are several operators.
    "einsum": "torch's contracts by bmm only where there is something to contract",
    "tensordot": "torch's multiplies by mm only where the product is no mere sum",
    "interpolate": "no policy on the CPU",
}
TABLED = sorted(set(TABLES["cpu"]) & set(OPERATORS))
OTHERS = [
    name
    for name in (
        "add", "mul", "exp", "log", "softmax", "log_softmax", "layer_norm", "sum", "mean", "relu",
        "gelu", "silu", "avg_pool2d", "max_pool2d", "mv", "dot", "where",
    )
    if name in OPERATORS
]  # fmt: skip


def kinds(value, tensor):
    """The types of the results, by name."""
    if isinstance(value, tensor):
        return [value.dtype.name if tensor is nb.Tensor else DTYPES[value.dtype].name]
    if isinstance(value, list | tuple):
        return [name for one in value for name in kinds(one, tensor)]
    return []


def cast(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype == torch.float32 else value
    if isinstance(value, list | tuple):
        return type(value)(cast(one, dtype) for one in value)
    if isinstance(value, dict):
        return {key: cast(one, dtype) for key, one in value.items()}
    return value


@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", [name for name in TABLED + OTHERS if name not in NOT_BY_TYPE])
def test_types_of_results(name, lower):
    entry = OPERATORS[name]
    called = entry.method if callable(entry.method) else entry.function
    compared = 0
    narrow = getattr(torch, lower)
    for info in databases().get(entry.torch or "", [])[:1]:
        if torch.float32 not in info.supported_dtypes("cpu"):
            continue
        for number, sample in enumerate(info.sample_inputs("cpu", torch.float32)):
            if number == SAMPLES:
                break
            for given in (torch.float32, narrow):
                first = cast(sample.input, given)
                args, keywords = cast(sample.args, given), cast(dict(sample.kwargs), given)
                try:
                    with torch.autocast("cpu", dtype=narrow), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        theirs = info(first, *args, **keywords)
                except (RuntimeError, NotImplementedError):
                    continue
                with amp.autocast("cpu", dtype=lower):
                    mine = called(to_numbat(first), *to_numbat(list(args)), **to_numbat(keywords))
                assert kinds(mine, nb.Tensor) == kinds(theirs, torch.Tensor), (given, sample)
                compared += 1
    if not compared:
        pytest.skip("torch has no sample for it")


def test_table_of_cuda_is_torchs_header():
    """The names that stand in `ATen/autocast_mode.h`, as far as we have the operators."""
    from pathlib import Path

    header = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
    text = header.read_text()
    for macro, policy in (
        ("AT_FORALL_LOWER_PRECISION_FP", "lower"), ("AT_FORALL_FP32", "float32"),
        ("AT_FORALL_FP32_SET_OPT_DTYPE", "float32"), ("AT_FORALL_PROMOTE", "promote"),
    ):  # fmt: skip
        body = text.split(f"#define {macro}(_)")[1].split("#define")[0]
        for line in body.splitlines():
            name = line.strip().removeprefix("_(").split(")")[0].split(",")[0].strip()
            if name in OPERATORS and OPERATORS[name].torch:
                assert TABLES["cuda"].get(name) == policy, name


def train(library, module, autocast, dtype, steps=5):
    """A product chain with a loss, under autocast, from the same weights."""
    rng = np.random.default_rng(0)
    make = nb.tensor if library is nb else torch.tensor
    x = make(rng.normal(size=(8, 6)).astype(np.float32))
    w = make(rng.normal(size=(6, 4)).astype(np.float32), requires_grad=True)
    v = make(rng.normal(size=(4, 3)).astype(np.float32), requires_grad=True)
    optimizer = module.SGD([w, v], lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with autocast("cpu", dtype=getattr(library, dtype)):
            y = (x @ w).relu() @ v
            twice = y + x @ w @ v
        loss = (twice * twice).mean().to(library.float32)
        loss.backward()
        optimizer.step()
        assert w.grad.dtype is library.float32
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_under_autocast(dtype):
    ours = train(nb, optim, amp.autocast, dtype)
    theirs = train(torch, torch.optim, torch.autocast, dtype)
    np.testing.assert_allclose(ours, theirs, rtol=3e-2 if dtype == "bfloat16" else 4e-3)
    assert ours[-1] < ours[0]


PATTERN = [0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1] + [0] * 12


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"growth_interval": 3},
        {"growth_interval": 2, "growth_factor": 4.0, "backoff_factor": 0.3},
        {"init_scale": 2.0**127, "growth_interval": 2}, {"init_scale": 3.0, "growth_interval": 1},
    ],
)  # fmt: skip
def test_series_of_scales(settings):
    found = []
    for library, module, scaler in (
        (nb, optim, amp.GradScaler(**settings)),
        (torch, torch.optim, torch.amp.GradScaler("cpu", **settings)),
    ):
        weight = library.ones(3, requires_grad=True)
        optimizer = module.SGD([weight], lr=0.5)
        series = []
        for bad in PATTERN:
            scaler.scale(weight.sum() * 0.0 + weight.sum() * 1e-3)
            weight.grad = library.ones(3) * (float("inf") if bad else 2.0)
            scaler.step(optimizer)
            scaler.update()
            series.append((scaler.get_scale(), weight.detach().tolist()))
        state = scaler.state_dict()
        found.append((series, state))
    assert found[0] == found[1]


def test_unscaled_gradients():
    found = []
    for library, module, scaler in (
        (nb, optim, amp.GradScaler(init_scale=3.0)),
        (torch, torch.optim, torch.amp.GradScaler("cpu", init_scale=3.0)),
    ):
        weight = library.ones(3, requires_grad=True)
        optimizer = module.SGD([weight], lr=0.5)
        scaler.scale((weight * weight).sum()).backward()
        scaler.unscale_(optimizer)
        found.append(weight.grad.tolist())
    assert found[0] == found[1]
