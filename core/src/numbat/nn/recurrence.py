"""One step of each recurrent cell, and a layer's run over all steps.

Gates stand in torch's order: input, forget, cell, output for the LSTM; reset, update, new for the
GRU. Source: Hochreiter, Schmidhuber, "Long Short-Term Memory", 1997; Cho et al., 2014 (arXiv
1406.1078).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numbat import ops
from numbat.tensors.tensor import Tensor

__all__ = ["Weights", "gru_step", "lstm_step", "relu_step", "run", "tanh_step"]

State = tuple[Tensor, ...]
"""The hidden state, and for the LSTM the cell's after it."""


class Weights(NamedTuple):
    """The weights of one layer in one direction; biases and projection may be absent."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None
    hidden_bias: Tensor | None
    projection: Tensor | None = None


Step = Callable[[Tensor, State, Weights], State]
"""From what the input gives to the gates, and a state, the next state."""


def tanh_step(given: Tensor, state: State, weights: Weights) -> State:
    """tanh(W_ih x + W_hh h)."""
    return (ops.tanh(given + ops.linear(state[0], weights.hidden, weights.hidden_bias)),)


def relu_step(given: Tensor, state: State, weights: Weights) -> State:
    """relu(W_ih x + W_hh h)."""
    return (ops.relu(given + ops.linear(state[0], weights.hidden, weights.hidden_bias)),)


def lstm_step(given: Tensor, state: State, weights: Weights) -> State:
    """c' = f c + i g and h' = o tanh(c'), projected where there is a projection."""
    hidden, cell = state
    gates = given + ops.linear(hidden, weights.hidden, weights.hidden_bias)
    entry, kept, new, out = gates.chunk(4, -1)
    cell = ops.sigmoid(kept) * cell + ops.sigmoid(entry) * ops.tanh(new)
    hidden = ops.sigmoid(out) * ops.tanh(cell)
    if weights.projection is not None:
        hidden = ops.linear(hidden, weights.projection)
    return hidden, cell


def gru_step(given: Tensor, state: State, weights: Weights) -> State:
    """h' = n + z (h - n), n = tanh(W_in x + r W_hn h)."""
    (hidden,) = state
    reset_x, update_x, new_x = given.chunk(3, -1)
    reset_h, update_h, new_h = ops.linear(hidden, weights.hidden, weights.hidden_bias).chunk(3, -1)
    reset = ops.sigmoid(reset_x + reset_h)
    update = ops.sigmoid(update_x + update_h)
    new = ops.tanh(new_x + reset * new_h)
    return (new + update * (hidden - new),)


def run(
    step: Step,
    data: Tensor,
    batch_sizes: list[int],
    state: State,
    weights: Weights,
    backwards: bool,
) -> tuple[Tensor, State]:
    """A layer's results over all steps, packed, and the state each sequence ends with.

    `data`: (sum of batch sizes, features), the rows of one step after another; sizes never rise.
    """
    given = ops.linear(data, weights.input, weights.input_bias).split(batch_sizes)
    if backwards:
        results, state = _backwards(step, given, batch_sizes, state, weights)
    else:
        results, state = _forwards(step, given, batch_sizes, state, weights)
    return ops.cat(results), state


def _forwards(
    step: Step, given: tuple[Tensor, ...], sizes: list[int], state: State, weights: Weights
) -> tuple[list[Tensor], State]:
    results: list[Tensor] = []
    ended: list[State] = []
    rows = sizes[0]
    for one, size in zip(given, sizes, strict=True):
        if size < rows:
            # Sequences that are over leave; the last ones leave first.
            ended.append(tuple(part[size:] for part in state))
            state = tuple(part[:size] for part in state)
            rows = size
        state = step(one, state, weights)
        results.append(state[0])
    if ended:
        ended.append(state)
        ended.reverse()
        state = tuple(ops.cat(list(parts)) for parts in zip(*ended, strict=True))
    return results, state


def _backwards(
    step: Step, given: tuple[Tensor, ...], sizes: list[int], state: State, weights: Weights
) -> tuple[list[Tensor], State]:
    start = state
    rows = sizes[-1]
    if rows < sizes[0]:
        state = tuple(part[:rows] for part in start)
    results: list[Tensor] = []
    for one, size in zip(reversed(given), reversed(sizes), strict=True):
        if size > rows:
            # Shorter sequences begin here, each with its own first state.
            state = tuple(
                ops.cat([part, first[rows:size]]) for part, first in zip(state, start, strict=True)
            )
            rows = size
        state = step(one, state, weights)
        results.append(state[0])
    results.reverse()
    return results, state
