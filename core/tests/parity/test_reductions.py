"""Reductions and running results against torch: its samples, ties, zeros, NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import opinfo
import pytest
import torch

import numbat as nb
from numbat.ops.registry import OPERATORS

FAMILIES = ("reductions", "moments", "extremals", "lengths", "cumulative")
NAMES = [entry.name for entry in OPERATORS.values() if entry.family in FAMILIES and entry.torch]


@pytest.mark.parametrize("name", NAMES)
def test_torch_samples(name: str) -> None:
    tally = opinfo.compare(name, dtypes=tuple(opinfo.DTYPES), limit=25)
    assert tally.compared
    # logcumsumexp near 1e4 in float32: both gradients are exact to eps * 1e4.
    faults = [one for one in tally.faults if name != "logcumsumexp" or "gradient" not in one.what]
    assert not faults, faults[:3]


ODD = {
    "ties": [[1.0, 3.0, 3.0], [3.0, 0.0, 0.0], [-1.0, -1.0, -2.0]],
    "zeros": [[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, -3.0]],
    "nan": [[1.0, float("nan"), 3.0], [float("nan")] * 3, [1.0, 2.0, 3.0]],
    "inf": [[1.0, float("inf"), 3.0], [float("-inf")] * 3, [float("inf"), float("-inf"), 0.0]],
    "plain": [[1.5, -2.0, 3.0], [0.5, 0.25, -4.0], [2.0, 1.0, 7.0]],
}

CALLS: dict[str, Any] = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(0),
    "nansum": lambda x: x.nansum(1),
    "nanmean": lambda x: x.nanmean(1),
    "prod all": lambda x: x.prod(),
    "prod": lambda x: x.prod(1),
    "max all": lambda x: x.max(),
    "min all": lambda x: x.min(),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(0, True),
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin((0, 1)),
    "aminmax": lambda x: x.aminmax(dim=1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(1, unbiased=False),
    "std of one": lambda x: x[:, :1].std(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: x.norm(dim=1),
    "norm 1": lambda x: x.norm(1, 1),
    "norm 3": lambda x: x.norm(3, 1),
    "norm 1.5": lambda x: x.norm(1.5, 1),
    "norm inf": lambda x: x.norm(float("inf"), 1),
    "norm 0": lambda x: x.norm(0, 1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
    "median": lambda x: x.median(1),
    "median all": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(1),
    "nanmedian all": lambda x: x.nanmedian(),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "sort": lambda x: x.sort(1, stable=True),
    "sort down": lambda x: x.sort(1, True, stable=True) if isinstance(x, nb.Tensor)
    else x.sort(dim=1, descending=True, stable=True),
    "all": lambda x: x.all(1),
    "any": lambda x: x.any(),
    "count": lambda x: x.count_nonzero(1),
    "quantile": lambda x: x.quantile(0.3, 1),
    "nanquantile": lambda x: x.nanquantile(0.3, 1),
    "diff": lambda x: x.diff(),
    "dist": lambda x: (x - x).norm(),
}  # fmt: skip


@pytest.mark.parametrize("values", list(ODD))
@pytest.mark.parametrize("name", list(CALLS))
def test_odd_values(name: str, values: str) -> None:
    if name == "sort" or name == "sort down":
        call = CALLS[name] if name == "sort down" else lambda x: x.sort(dim=1, stable=True)
    else:
        call = CALLS[name]
    array = np.array(ODD[values])
    mine, theirs = nb.tensor(array), torch.tensor(array)
    mine.requires_grad, theirs.requires_grad = True, True
    got, wanted = call(mine), call(theirs)
    several = isinstance(wanted, tuple)
    for one, other in zip(got if several else [got], wanted if several else [wanted], strict=True):
        np.testing.assert_allclose(one.array, other.detach().numpy(), rtol=1e-12, atol=1e-15)
    first, their_first = (got[0], wanted[0]) if several else (got, wanted)
    assert first.requires_grad == their_first.requires_grad
    if first.requires_grad:
        first.sum().backward()
        their_first.sum().backward()
        if values in ("nan", "inf") and name in _LOOSE:
            return
        slope = torch.zeros_like(theirs) if theirs.grad is None else theirs.grad
        np.testing.assert_allclose(mine.grad.array, slope.numpy(), rtol=1e-12, atol=1e-15)


_LOOSE = {"prod", "prod all", "cumprod", "std", "var", "std of one"}
"""Products of infinities and NaN, where the order of the factors decides which is NaN."""


def test_axes_by_name_and_type() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    mine, theirs = nb.tensor(x), torch.tensor(x)
    for dim in (None, 0, -1, (0, 2), [1], ()):
        for keepdim in (False, True):
            np.testing.assert_allclose(
                nb.sum(mine, dim=dim, keepdim=keepdim).array,
                torch.sum(theirs, dim=dim, keepdim=keepdim).numpy(),
            )
    for name, dtype in (
        ("sum", nb.float32),
        ("prod", nb.int32),
        ("mean", nb.float32),
        ("cumsum", nb.int64),
    ):
        args = (1,) if name == "cumsum" else ()
        found = getattr(mine, name)(*args, dtype=dtype)
        wanted = getattr(theirs, name)(*args, dtype=getattr(torch, dtype.name))
        np.testing.assert_allclose(found.array, wanted.numpy())
        assert found.dtype is dtype


def test_long_columns_keep_their_precision() -> None:
    x = np.random.default_rng(3).uniform(size=(1 << 18, 3)).astype(np.float32)
    exact = x.astype(np.float64).sum(0)
    assert np.abs(nb.tensor(x).sum(0).array / exact - 1).max() < 1e-6
