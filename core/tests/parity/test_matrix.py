"""Products of matrices against PyTorch's sample inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from opinfo import compare, databases, tensor_of

import numbat as nb
from numbat.ops.registry import OPERATORS

NAMES = [
    name
    for name, entry in OPERATORS.items()
    if entry.family == "matrix" and entry.torch in databases()
]
ROUNDED_ONCE = {"addbmm", "addr"}
"""torch rounds the terms of float16 and bfloat16 one by one here; numbat's sum is the nearer
one."""


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    types = (torch.float32, torch.float64, torch.int64)
    tally = compare(name, dtypes=types, limit=25)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared > 0


@pytest.mark.parametrize("name", sorted(set(NAMES) - ROUNDED_ONCE))
def test_half_types(name):
    tally = compare(name, dtypes=(torch.bfloat16, torch.float16), limit=12, scale=2)
    assert not tally.faults, tally.faults[:3]


def test_einsum(monkeypatch):
    entry = OPERATORS["einsum"]

    def turned(tensors, equation):
        return nb.einsum(equation, tensors)

    monkeypatch.setitem(OPERATORS, "einsum", replace(entry, function=turned))
    tally = compare("einsum", dtypes=(torch.float32, torch.float64, torch.int64))
    assert not tally.faults, tally.faults[:3]
    assert tally.compared >= 20


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk,kl,lm->im", "bhqd,bhkd->bhqk", "...ij,jk->...ik", "i,i->", "ij,ij->ij", "iij->ij",
        "ab,cb,db,eb->acde", "abc,cd,def,be->af", "i,j,k->kji", "...,...->...", "bi,bij,bj->b",
    ],
)  # fmt: skip
def test_einsum_equations(equation):
    rng = np.random.default_rng(4)
    extents = {letter: 2 + number % 3 for number, letter in enumerate("abcdefhijklmqk")}
    terms = equation.partition("->")[0].split(",")
    shapes = [
        [extents[one] for one in term.replace("...", "xy") if one not in "xy"]
        if "..." not in term
        else [3, 2, *(extents[one] for one in term.replace("...", ""))]
        for term in terms
    ]
    theirs = [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    mine = [tensor_of(one).requires_grad_() for one in theirs]
    wanted, found = torch.einsum(equation, *theirs), nb.einsum(equation, *mine)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), atol=1e-10)
    wanted.sum().backward()
    found.sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), atol=1e-10)
