"""Views against PyTorch: its sample inputs, and random chains of views with writes through them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from opinfo import compare, databases

import numbat as nb
from numbat.ops.registry import OPERATORS

FAMILIES = {"viewing", "shaping", "rearranging", "joining"}
NAMES = [
    name
    for name, entry in OPERATORS.items()
    if entry.family in FAMILIES and entry.torch in databases()
]
TYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.uint8)


def _outside(sample, dtype):
    # The harness carries a tensor's elements over, not the memory around them.
    return isinstance(sample.input, torch.Tensor) and sample.input.storage_offset() != 0


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    skip = _outside if name == "as_strided" else None
    tally = compare(name, dtypes=TYPES, limit=25, skip=skip)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared > 0


def test_as_strided_reaches_the_memory_viewed():
    theirs = torch.arange(12.0, dtype=torch.float64, requires_grad=True)
    mine = nb.tensor(np.arange(12.0), requires_grad=True)
    weights = np.arange(6.0).reshape(3, 2)
    for one, weigh in ((theirs, torch.from_numpy(weights)), (mine, nb.from_numpy(weights))):
        whole = one * 1
        part = whole[4:8]
        (part.as_strided((3, 2), (1, 2)) * weigh).sum().backward()
    assert mine.grad.tolist() == theirs.grad.tolist()
    with torch.no_grad():
        seen = theirs[4:8].as_strided((3, 2), (2, 3), 1)
    assert mine[4:8].as_strided((3, 2), (2, 3), 1).tolist() == seen.tolist()


SMALL = st.integers(-9, 9).map(float)


class ViewsAndWrites(RuleBasedStateMachine):
    """The same views and writes on our tensors and torch's; every value and gradient agrees."""

    @initialize(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), seed=st.integers(0, 99))
    def begin(self, shape, seed):
        values = np.random.default_rng(seed).normal(size=shape)
        self.mine = nb.tensor(values, requires_grad=True)
        self.theirs = torch.tensor(values, requires_grad=True)
        self.other_mine = nb.tensor(np.float64(1.5), requires_grad=True)
        self.other_theirs = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        self.pairs = [(self.mine * 1, self.theirs * 1)]
        self.refused = False

    def pick(self, data):
        return self.pairs[data.draw(st.integers(0, len(self.pairs) - 1), label="view")]

    def view(self, data, change):
        if len(self.pairs) < 8:
            mine, theirs = self.pick(data)
            self.pairs.append((change(mine), change(theirs)))

    @rule(data=st.data())
    def select(self, data):
        mine, theirs = self.pick(data)
        if len(self.pairs) < 8 and theirs.ndim:
            axis = data.draw(st.integers(-theirs.ndim, theirs.ndim - 1))
            if theirs.shape[axis]:
                index = data.draw(st.integers(-theirs.shape[axis], theirs.shape[axis] - 1))
                self.pairs.append((mine.select(axis, index), theirs.select(axis, index)))

    @rule(data=st.data())
    def index(self, data):
        mine, theirs = self.pick(data)
        if len(self.pairs) < 8:
            parts = []
            for extent in theirs.shape:
                kind = data.draw(st.sampled_from(["whole", "slice", "number", "none", "rest"]))
                if kind == "rest":
                    parts.append(Ellipsis)
                    break
                if kind == "none":
                    parts += [None, slice(None)]
                elif kind == "number" and extent:
                    parts.append(data.draw(st.integers(-extent, extent - 1)))
                elif kind == "slice":
                    start, stop = data.draw(st.integers(-5, 5)), data.draw(st.integers(-5, 5))
                    parts.append(slice(start, stop, data.draw(st.integers(1, 3))))
                else:
                    parts.append(slice(None))
            parts = tuple(parts)
            self.pairs.append((mine[parts], theirs[parts]))

    @rule(data=st.data())
    def move(self, data):
        mine, theirs = self.pick(data)
        order = data.draw(st.permutations(range(theirs.ndim)))
        if len(self.pairs) < 8:
            self.pairs.append((mine.permute(order), theirs.permute(order)))

    @rule(data=st.data())
    def diagonal(self, data):
        mine, theirs = self.pick(data)
        if len(self.pairs) < 8 and theirs.ndim >= 2:
            offset = data.draw(st.integers(-2, 2))
            if theirs.diagonal(offset).numel():
                self.pairs.append((mine.diagonal(offset), theirs.diagonal(offset)))

    @rule(data=st.data())
    def flat(self, data):
        self.view(data, lambda one: one.unsqueeze(-1).squeeze(-1))

    @rule(data=st.data())
    def expand(self, data):
        self.view(data, lambda one: one.unsqueeze(0).expand(2, *one.shape))

    @rule(data=st.data())
    def unfold(self, data):
        mine, theirs = self.pick(data)
        if len(self.pairs) < 8 and theirs.ndim and theirs.shape[0] >= 2:
            self.pairs.append((mine.unfold(0, 2, 1), theirs.unfold(0, 2, 1)))

    def write(self, data, change):
        mine, theirs = self.pick(data)
        # Where several indices are one element, which write is last is not defined.
        places = set()
        for index in np.ndindex(tuple(theirs.shape)):
            place = sum(at * step for at, step in zip(index, theirs.stride(), strict=True))
            if place in places:
                return
            places.add(place)
        change(mine, self.other_mine)
        change(theirs, self.other_theirs)

    @rule(data=st.data(), value=SMALL)
    def add(self, data, value):
        self.write(data, lambda one, _: one.add_(value))

    @rule(data=st.data(), value=SMALL)
    def scale(self, data, value):
        self.write(data, lambda one, _: one.mul_(value))

    @rule(data=st.data(), value=SMALL)
    def fill(self, data, value):
        self.write(data, lambda one, _: one.fill_(value))

    @rule(data=st.data(), value=SMALL)
    def assign(self, data, value):
        def change(one, other):
            one[...] = other * value

        self.write(data, change)

    @rule(data=st.data(), value=SMALL)
    def add_other(self, data, value):
        self.write(data, lambda one, other: one.add_(other * value))

    @rule(data=st.data())
    def assign_by_index(self, data):
        mine, theirs = self.pick(data)
        if theirs.ndim and theirs.shape[0] and all(theirs.stride(i) for i in range(theirs.ndim)):
            rows = data.draw(
                st.lists(st.integers(0, theirs.shape[0] - 1), min_size=1, max_size=2, unique=True)
            )
            spread = theirs.numel() == len({
                sum(at * step for at, step in zip(index, theirs.stride(), strict=True))
                for index in np.ndindex(tuple(theirs.shape))
            })  # fmt: skip
            if spread:
                mine[nb.tensor(rows)] = self.other_mine * 2
                theirs[torch.tensor(rows)] = self.other_theirs * 2

    @rule(data=st.data())
    def assign_by_mask(self, data):
        def change(one, other):
            positive = one.detach().numpy() > 0
            mask = nb.tensor(positive) if isinstance(one, nb.Tensor) else torch.tensor(positive)
            one[mask] = other * 3

        self.write(data, change)

    @invariant()
    @precondition(lambda self: hasattr(self, "pairs"))
    def values_agree(self):
        for mine, theirs in self.pairs:
            assert mine.shape == tuple(theirs.shape)
            assert np.array_equal(mine.detach().numpy(), theirs.detach().numpy())
            assert mine._version == theirs._version
            assert mine.requires_grad == theirs.requires_grad

    def teardown(self):
        if not hasattr(self, "pairs"):
            return
        total_mine = total_theirs = 0
        for number, (mine, theirs) in enumerate(self.pairs):
            weights = np.random.default_rng(number).normal(size=tuple(theirs.shape))
            total_mine = total_mine + (mine * nb.from_numpy(weights)).sum()
            total_theirs = total_theirs + (theirs * torch.from_numpy(weights)).sum()
        total_mine.backward()
        total_theirs.backward()
        for mine, theirs in (
            (self.mine, self.theirs),
            (self.other_mine, self.other_theirs),
        ):
            if theirs.grad is None:
                assert mine.grad is None or not mine.grad.numpy().any()
            elif mine.grad is None:
                assert not theirs.grad.numpy().any()
            else:
                np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-9)


TestViewsAndWrites = ViewsAndWrites.TestCase
TestViewsAndWrites.settings = settings(max_examples=60, stateful_step_count=14, deadline=None)
