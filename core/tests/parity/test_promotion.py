"""Promotion and casts: every pair of element types, every category, against torch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import numbat as nb
from numbat.tensors.dtypes import DTYPES
from numbat_registries import Refusal


def theirs(dtype: nb.dtype) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.name)
    return found


PAIRS = list(itertools.product(DTYPES, DTYPES))


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.name)
def test_types_meet_where_torch_lets_them_meet(first: nb.dtype, second: nb.dtype) -> None:
    try:
        expected = torch.promote_types(theirs(first), theirs(second))
    except RuntimeError:
        with pytest.raises(Refusal, match="CORE-0106"):
            nb.promote_types(first, second)
        return
    assert theirs(nb.promote_types(first, second)) == expected


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.name)
def test_operands_of_every_rank_meet_as_torchs(first: nb.dtype, second: nb.dtype) -> None:
    for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
        mine = [
            nb.ones(shape, dtype=one) for shape, one in zip(shapes, (first, second), strict=True)
        ]
        other = [
            torch.ones(shape, dtype=theirs(one))
            for shape, one in zip(shapes, (first, second), strict=True)
        ]
        try:
            expected = torch.result_type(*other)
        except RuntimeError:
            with pytest.raises(Refusal, match="CORE-0106"):
                nb.result_type(*mine)
            continue
        assert theirs(nb.result_type(*mine)) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda one: one.name)
@pytest.mark.parametrize("number", [True, 3, 2.5])
def test_numbers_meet_tensors_as_torchs(dtype: nb.dtype, number: float) -> None:
    for shape in ((2,), ()):
        try:
            expected = torch.result_type(torch.ones(shape, dtype=theirs(dtype)), number)
        except RuntimeError:
            with pytest.raises(Refusal, match="CORE-0106"):
                nb.result_type(nb.ones(shape, dtype=dtype), number)
            continue
        assert theirs(nb.result_type(nb.ones(shape, dtype=dtype), number)) == expected


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.name)
def test_casts_give_torchs_values(first: nb.dtype, second: nb.dtype) -> None:
    values = np.array([0, 1, 2, 3, 100, 127, 128, 200, 255, 256, 1000])
    if first.is_floating_point:
        values = np.concatenate([values, [0.5, 1.5, 2.5, -0.5, -1.5, -100.25]])
    elif first.is_signed:
        values = np.concatenate([values, [-1, -2, -128, -129]])
    source = torch.tensor(values.tolist(), dtype=torch.float64).to(theirs(first))
    mine = nb.tensor(values.tolist(), dtype=nb.float64).to(first)
    if first.is_floating_point and second.name.startswith("uint"):
        source, mine = source[values >= 0], mine[nb.tensor(values >= 0)]
    expected = source.to(theirs(second)).to(torch.float64)
    assert mine.to(second).to(nb.float64).tolist() == expected.tolist()
