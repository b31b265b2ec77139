"""Sorted, ranked and counted elements against torch; of equal ones the values alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import opinfo
import pytest
import torch

import numbat as nb

EXACT = [
    "bincount", "bucketize", "histc", "median", "nanmedian", "nanquantile", "quantile",
    "searchsorted", "unique", "unique_consecutive",
]  # fmt: skip
RANKED = ["kthvalue", "mode", "msort", "sort", "topk"]


@pytest.mark.parametrize("name", EXACT)
def test_torch_samples(name: str) -> None:
    tally = opinfo.compare(name, dtypes=tuple(opinfo.DTYPES), limit=25)
    assert tally.compared
    assert not tally.faults, tally.faults[:3]


@pytest.mark.parametrize(
    "kind", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float64"]
)
@pytest.mark.parametrize("name", RANKED)
def test_torch_samples_with_equal_elements(name: str, kind: str) -> None:
    """torch's order of equal elements is unspecified: values agree, and indices lead to them."""
    info = opinfo.databases()[name][0]
    dtype = getattr(torch, kind)
    if dtype not in info.supported_dtypes("cpu"):
        pytest.skip("torch has no such type here")
    torch.manual_seed(0)
    for number, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=False)):
        if number >= 25:
            break
        args = opinfo.to_numbat(list(sample.args))
        keywords = opinfo.to_numbat(dict(sample.kwargs))
        x = opinfo.to_numbat(sample.input)
        theirs = info(sample.input, *sample.args, **sample.kwargs)
        mine = getattr(nb, name)(x, *args, **keywords)
        wanted = theirs if isinstance(theirs, torch.Tensor) else theirs[0]
        found = mine if isinstance(mine, nb.Tensor) else mine.values
        assert not opinfo.apart(found, wanted)
        if not isinstance(mine, nb.Tensor):
            _leads_to(mine, x, found, _axis(name, args, keywords))


def _axis(name: str, args: list[Any], keywords: dict[str, Any]) -> int:
    place = 1 if name in ("kthvalue", "topk") else 0
    return int(keywords.get("dim", args[place] if len(args) > place else -1))


def _leads_to(mine: Any, x: nb.Tensor, found: nb.Tensor, axis: int) -> None:
    assert mine.indices.dtype is nb.int64
    if not x.ndim:
        return
    places = mine.indices.array
    kept = places if places.ndim == x.ndim else np.expand_dims(places, axis)
    taken = np.take_along_axis(x.array, kept, axis).reshape(found.shape)
    same = (taken == found.array) | ((taken != taken) & (found.array != found.array))
    assert same.all()


@pytest.mark.parametrize("name", RANKED)
def test_gradients_where_no_elements_are_equal(name: str) -> None:
    x = np.random.default_rng(1).permutation(24).reshape(4, 6) * 0.5
    weights = np.random.default_rng(2).normal(size=(4, 6))
    args = {"kthvalue": (2,), "topk": (3,)}.get(name, ())
    mine, theirs = nb.tensor(x), torch.tensor(x)
    mine.requires_grad, theirs.requires_grad = True, True
    got, wanted = getattr(nb, name)(mine, *args), getattr(torch, name)(theirs, *args)
    got = got if isinstance(got, nb.Tensor) else got.values
    wanted = wanted if isinstance(wanted, torch.Tensor) else wanted.values
    part = weights.reshape(-1)[: got.numel()].reshape(got.shape)
    (got * nb.tensor(part)).sum().backward()
    (wanted * torch.tensor(part)).sum().backward()
    np.testing.assert_array_equal(mine.grad.array, theirs.grad.numpy())


def test_stable_sort_keeps_the_order_of_equal_elements() -> None:
    x = np.random.default_rng(5).integers(0, 4, (3, 50))
    for descending in (False, True):
        mine = nb.sort(nb.tensor(x), 1, descending, stable=True)
        theirs = torch.sort(torch.tensor(x), dim=1, descending=descending, stable=True)
        np.testing.assert_array_equal(mine.indices.array, theirs.indices.numpy())


def test_a_few_of_many() -> None:
    x = np.random.default_rng(6).normal(size=(3, 1000)).astype(np.float32)
    mine, theirs = nb.topk(nb.tensor(x), 5), torch.topk(torch.tensor(x), 5)
    np.testing.assert_array_equal(mine.indices.array, theirs.indices.numpy())
    x[0, 7] = np.nan
    assert nb.topk(nb.tensor(x), 5).indices.array[0, 0] == 7
