"""Recurrent layers and cells: RNN, LSTM, GRU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat import ops
from numbat.nn import functional as F
from numbat.nn import init, recurrence
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter
from numbat.nn.recurrence import State, Step, Weights
from numbat.nn.utils.rnn import PackedSequence
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
"""How many gates of `hidden_size` each mode has."""

STEPS: dict[str, Step] = {
    "RNN_TANH": recurrence.tanh_step, "RNN_RELU": recurrence.relu_step,
    "LSTM": recurrence.lstm_step, "GRU": recurrence.gru_step,
}  # fmt: skip


class RNNBase(Module):
    """What the recurrent layers share.

    Weights of layer k: `weight_ih_lk` (gates hidden, features), `weight_hh_lk` (gates hidden,
    hidden), `bias_ih_lk`, `bias_hh_lk`, with `proj_size` `weight_hr_lk` (proj, hidden), each
    again as `..._reverse` where `bidirectional`; all from U(-1/sqrt(hidden), 1/sqrt(hidden)).

    Input: (T, N, features), (N, T, features) with `batch_first`, (T, features), or a packed
    sequence.
    Raises CORE-0608 for options out of their range, CORE-0609 for other shapes.
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options()
        out_size = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        gates = GATES[mode] * hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else out_size * directions
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, width), "weight_hh": (gates, out_size),
                }  # fmt: skip
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, Parameter(empty(*shape, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def _check_options(self) -> None:
        for argument, right, wanted in (
            ("mode", self.mode in GATES, f"one of {list(GATES)}"),
            ("hidden_size", self.hidden_size > 0, "a number above 0"),
            ("num_layers", self.num_layers > 0, "a number above 0"),
            ("dropout", 0 <= self.dropout <= 1, "a probability from 0 to 1"),
            (
                "proj_size",
                self.proj_size == 0
                or (self.mode == "LSTM" and 0 < self.proj_size < self.hidden_size),
                "0, or for an LSTM a number below hidden_size",
            ),
        ):
            if not right:
                raise refuse(
                    "CORE-0608", module=type(self).__name__, argument=argument,
                    value=str(getattr(self, argument)), wanted=wanted,
                )  # fmt: skip

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: weights need not lie side by side here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _weights(self) -> list[Weights]:
        found = []
        for names in self._all_weights:
            parts = [getattr(self, name) for name in names]
            projection = parts.pop() if self.proj_size else None
            biases = parts[2:] if self.bias else [None, None]
            found.append(Weights(parts[0], parts[1], biases[0], biases[1], projection))
        return found

    def _sizes_of_state(self) -> tuple[int, ...]:
        first = self.proj_size or self.hidden_size
        return (first, self.hidden_size) if self.mode == "LSTM" else (first,)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Results of the last layer, (T, N, directions out) or as the input is, and the last
        states.

        `hx`: the first states, (layers directions, N, out); for the LSTM a pair, the cell's second.
        """
        if isinstance(input, PackedSequence):
            data, counts, order, back = input
            sizes = [int(one) for one in counts.array]
            state = self._first_state(hx, sizes[0], data, True)
            if order is not None and hx is not None:
                state = tuple(ops.index_select(one, 1, order) for one in state)
            out, state = self._layers(data, sizes, state)
            if back is not None:
                state = tuple(ops.index_select(one, 1, back) for one in state)
            return PackedSequence(out, counts, order, back), self._state_out(state)
        if input.ndim not in (2, 3):
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(input.shape),
                wanted="2 or 3 axes",
            )  # fmt: skip
        batched = input.ndim == 3
        steps = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            steps = input.transpose(0, 1)
        count, batch = steps.shape[:2]
        state = self._first_state(hx, batch, steps, batched)
        data = steps.reshape(count * batch, steps.shape[2])
        flat, state = self._layers(data, [batch] * count, state)
        out = flat.reshape(count, batch, -1)
        if not batched:
            return out.squeeze(1), self._state_out(tuple(one.squeeze(1) for one in state))
        return (out.transpose(0, 1) if self.batch_first else out), self._state_out(state)

    def _state_out(self, state: State) -> Any:
        return state if self.mode == "LSTM" else state[0]

    def _first_state(self, hx: Any, batch: int, like: Tensor, batched: bool) -> State:
        """The first states as (layers directions, N, out); zeros where none is given."""
        if like.shape[-1] != self.input_size:
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(like.shape),
                wanted=f"{self.input_size} features",
            )  # fmt: skip
        rows = self.num_layers * (2 if self.bidirectional else 1)
        shapes = [(rows, batch, size) for size in self._sizes_of_state()]
        if hx is None:
            return tuple(wrap(np.zeros(shape, like.array.dtype)) for shape in shapes)
        given = tuple(hx) if self.mode == "LSTM" else (hx,)
        if not batched:
            given = tuple(one.unsqueeze(1) if one.ndim == 2 else one for one in given)
        for one, shape in zip(given, shapes, strict=True):
            if one.shape != shape:
                raise refuse(
                    "CORE-0609", module=type(self).__name__, shape=list(one.shape),
                    wanted=f"a state of shape {list(shape)}",
                )  # fmt: skip
        return given

    def _layers(self, data: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        directions = 2 if self.bidirectional else 1
        step = STEPS[self.mode]
        weights = self._weights()
        last: list[State] = []
        for layer in range(self.num_layers):
            results = []
            for direction in range(directions):
                at = layer * directions + direction
                first = tuple(one[at] for one in state)
                out, end = recurrence.run(step, data, sizes, first, weights[at], direction == 1)
                results.append(out)
                last.append(end)
            data = results[0] if directions == 1 else ops.cat(results, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                data = F.dropout(data, self.dropout, True)
        return data, tuple(ops.stack(list(parts)) for parts in zip(*last, strict=True))

    def extra_repr(self) -> str:
        """Its sizes, and options that differ from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
            ("dropout", 0), ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """Layers of h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or of relu with that `nonlinearity`."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Layers of long short-term memory; its state is a pair (h, c)."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Layers of gated recurrent units."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip


class RNNCellBase(Module):
    """What the cells share: one step of one layer. Input: (N, features) or (features)."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, bias: bool, dtype: Any
    ) -> None:
        super().__init__()
        if mode not in GATES:
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="nonlinearity", value=mode,
                wanted="tanh or relu",
            )  # fmt: skip
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = GATES[mode] * hidden_size
        self._step = STEPS[mode]
        self._states = 2 if mode == "LSTM" else 1
        self.weight_ih = Parameter(empty(gates, input_size, dtype=dtype))
        self.weight_hh = Parameter(empty(gates, hidden_size, dtype=dtype))
        self.register_parameter("bias_ih", Parameter(empty(gates, dtype=dtype)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(gates, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew, from U(-1/sqrt(hidden), 1/sqrt(hidden))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def _next(self, input: Tensor, given: tuple[Tensor, ...] | None) -> State:
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(input.shape),
                wanted=f"1 or 2 axes, the last of {self.input_size}",
            )  # fmt: skip
        if given is None:
            shape = (*input.shape[:-1], self.hidden_size)
            given = (wrap(np.zeros(shape, input.array.dtype)),) * self._states
        for one in given:
            if one.shape != (*input.shape[:-1], self.hidden_size):
                raise refuse(
                    "CORE-0609", module=type(self).__name__, shape=list(one.shape),
                    wanted=f"a state of shape {[*input.shape[:-1], self.hidden_size]}",
                )  # fmt: skip
        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return self._step(ops.linear(input, weights.input, weights.input_bias), given, weights)

    def extra_repr(self) -> str:
        """Its sizes, and options that differ from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        kind = getattr(self, "nonlinearity", "tanh")
        return text if kind == "tanh" else f"{text}, nonlinearity={kind}"


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (N, hidden_size) or (hidden_size)."""
        return self._next(input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: from (h, c) the next (h, c)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__("LSTM", input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        """The next state and the next cell state."""
        return self._next(input, None if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__("GRU", input_size, hidden_size, bias, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (N, hidden_size) or (hidden_size)."""
        return self._next(input, None if hx is None else (hx,))[0]
