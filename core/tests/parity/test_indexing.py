"""Indexing, gathering and scattering against PyTorch: its sample inputs and random indices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from opinfo import compare, databases

import numbat as nb
from numbat.ops.registry import OPERATORS

NAMES = [
    name
    for name, entry in OPERATORS.items()
    if entry.family in {"indexing", "selecting"} and entry.torch in databases()
]
TYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16)


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    tally = compare(name, dtypes=TYPES, limit=25)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared > 0


@st.composite
def indexed(draw):
    """A shape, and an index of it in numpy's terms, tensors of indices as arrays."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    parts = []
    axis = 0
    ellipsis = False
    together = draw(st.lists(st.integers(1, 3), max_size=2))
    while axis < len(shape):
        kind = draw(
            st.sampled_from(["number", "slice", "none", "rest", "tensor", "mask", "true", "end"])
        )
        if kind == "end" or (kind == "rest" and ellipsis):
            break
        if kind == "none":
            parts.append(None)
            if len(parts) > 6:
                break
            continue
        if kind == "rest":
            parts.append(Ellipsis)
            ellipsis = True
            # What follows an ellipsis is counted from the back: only whole axes, to be simple.
            break
        if kind == "true":
            if True in [one for one in parts if isinstance(one, bool)] or together:
                continue
            parts.append(True)
            continue
        extent = shape[axis]
        if kind == "number":
            parts.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-5, 5)
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "tensor":
            size = [one if draw(st.booleans()) else 1 for one in together]
            values = st.integers(-extent, extent - 1)
            count = int(np.prod(size, dtype=int))
            drawn = draw(st.lists(values, min_size=count, max_size=count))
            parts.append(np.array(drawn, dtype=np.int64).reshape(size))
        elif len([one for one in parts if isinstance(one, np.ndarray)]) == 0 and not together:
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent))))
        else:
            continue
        axis += 1
    return tuple(shape), tuple(parts)


def _as(parts, make):
    return tuple(make(one) if isinstance(one, np.ndarray) else one for one in parts)


@settings(max_examples=200, deadline=None)
@given(indexed())
def test_every_kind_of_index_selects_as_in_torch(case):
    shape, parts = case
    values = np.random.default_rng(1).normal(size=shape)
    mine = nb.tensor(values, requires_grad=True)
    theirs = torch.tensor(values, requires_grad=True)
    found, wanted = mine[_as(parts, nb.tensor)], theirs[_as(parts, torch.tensor)]
    assert tuple(found.shape) == tuple(wanted.shape)
    assert np.array_equal(found.detach().numpy(), wanted.detach().numpy())
    weights = np.random.default_rng(2).normal(size=tuple(wanted.shape))
    (found * nb.tensor(weights)).sum().backward()
    (wanted * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(indexed(), st.booleans())
def test_every_kind_of_index_is_written_as_in_torch(case, whole):
    shape, parts = case
    values = np.random.default_rng(1).normal(size=shape)
    results = []
    for library, make in ((nb, nb.tensor), (torch, torch.tensor)):
        leaf = make(values, requires_grad=True)
        target = leaf * 1
        index = _as(parts, make)
        places = target[index]
        arrays = [one for one in parts if isinstance(one, np.ndarray) and one.dtype != bool]
        value = np.random.default_rng(3).normal(size=tuple(places.shape) if whole else ())
        if whole and arrays:
            # Where a place is named twice, which value stays is not defined.
            value = np.full(tuple(places.shape), 2.5)
        written = make(value, requires_grad=True)
        target[index] = written
        (target * target).sum().backward()
        results.append((target, leaf.grad, None if whole and arrays else written.grad))
        del library
    for found, wanted in zip(*results, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), atol=1e-12)
