"""The backward pass over graphs made at random, against differences; hooks, freeing, threads."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat.autograd.gradcheck import worst_disagreement
from numbat.tensors.tensor import Tensor
from numbat_registries import Refusal

STEPS = ("add", "sub", "mul", "mean", "transpose", "view_in_place", "neg", "matmul")


def grown(steps: list[tuple[str, int, int]], *leaves: Tensor) -> Tensor:
    """A graph whose every step takes two earlier results of 3x3."""
    held = list(leaves)
    for name, first, second in steps:
        x, y = held[first % len(held)], held[second % len(held)]
        match name:
            case "add":
                made = x + y
            case "sub":
                made = x - y * 0.5
            case "mul":
                made = x * y
            case "mean":
                made = x - y.mean(0, keepdim=True)
            case "transpose":
                made = x.transpose(0, 1) * y
            case "neg":
                made = -x
            case "matmul":
                made = (x @ y) * 0.3
            case _:
                made = x * 1
                made.as_strided((2, 2), (3, 1), 1).mul_(y.as_strided((2, 2), (3, 1), 0))
        held.append(made)
    return held[-1]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 20), st.integers(0, 20)),
        min_size=1,
        max_size=7,
    ),
    st.integers(0, 2**16),
)
def test_graphs_made_at_random(steps: list[tuple[str, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = tuple(nb.tensor(rng.uniform(-1, 1, (3, 3)), requires_grad=True) for _ in range(2))
    found = grown(steps, *leaves)
    if not found.requires_grad:
        return
    assert worst_disagreement(lambda *given: grown(steps, *given), leaves) is None


def test_a_graph_is_freed_with_its_result() -> None:
    x = nb.ones(3, requires_grad=True)
    middle = x * 2
    gone = weakref.ref(middle.grad_fn)
    result = (middle * middle).sum()
    del middle
    gc.disable()
    try:
        del result
        assert gone() is None
    finally:
        gc.enable()


def test_an_operator_that_keeps_its_result_makes_no_cycle() -> None:
    x = nb.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        result = x.exp()
        gone = weakref.ref(result)
        del result
        assert gone() is None
    finally:
        gc.enable()


def test_the_first_gradient_is_taken_over_where_nobody_else_holds_it() -> None:
    x = nb.ones(1000, requires_grad=True)
    given = nb.ones(1000)
    (x + 0).backward(given)
    assert x.grad is not None
    assert not np.shares_memory(x.grad.array, given.array)
    y = nb.ones(1000, requires_grad=True)
    z = nb.ones(1000, requires_grad=True)
    (y + z).sum().backward()
    assert y.grad is not None
    assert z.grad is not None
    assert not np.shares_memory(y.grad.array, z.grad.array)
    y.grad.add_(1)
    assert z.grad.tolist() == [1.0] * 1000


def test_threads_have_their_own_switch() -> None:
    seen: list[bool] = []

    def look() -> None:
        seen.append(nb.is_grad_enabled())

    with nb.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [True]


def test_the_switch_returns_after_an_error() -> None:
    with pytest.raises(Refusal), nb.no_grad():
        nb.ones(2).reshape(3)
    assert nb.is_grad_enabled()


def test_inputs_limit_what_receives_gradients() -> None:
    x, y = nb.ones(2, requires_grad=True), nb.ones(2, requires_grad=True)
    (x * y).sum().backward(inputs=[x])
    assert x.grad is not None
    assert y.grad is None


def test_a_deep_chain_needs_no_deep_stack() -> None:
    x = nb.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0]
