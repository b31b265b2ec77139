"""L-BFGS: a quasi-Newton method whose memory is limited.

Source: PyTorch 2.13, `torch/optim/lbfgs.py`, after minFunc (M. Schmidt); Nocedal and Wright 2006,
algorithms 3.5, 3.6 and 7.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.autograd.in_place import bump
from numbat.autograd.mode import enable_grad, no_grad
from numbat.optim.optimizer import Optimizer, check, check_settings, scalar
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

Point = tuple[float, float, Array, float]
"""Of a line search: the step, the loss there, the gradient, and the derivative along the line."""


class LBFGS(Optimizer):
    """Minimises the loss that a closure gives, up to `max_iter` directions a step.

    All parameters stand in one group, and their state at the first of them.

    Raises CORE-0701 for a setting outside its range, CORE-0703 for several groups, CORE-0705 for a
    step without a closure.
    """

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_settings("LBFGS", lr=lr)
        check("LBFGS", "line_search_fn", line_search_fn, "strong_wolfe or None",
              line_search_fn in (None, "strong_wolfe"))  # fmt: skip
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise refuse("CORE-0703", because="LBFGS takes one group")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    def _gradient(self) -> Array:
        return np.concatenate([
            np.zeros(one.array.size, one.array.dtype) if one.grad is None
            else one.grad.array.reshape(-1)
            for one in self._params
        ])  # fmt: skip

    def _move(self, step: float, direction: Array) -> None:
        begin = 0
        for one in self._params:
            part = direction[begin : begin + one.array.size].reshape(one.array.shape)
            one.array += part * one.array.dtype.type(step)
            bump(one)
            begin += one.array.size

    @no_grad()
    def _stepped(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is None:
            raise refuse("CORE-0705", optimizer="LBFGS")
        evaluate = enable_grad()(closure)
        first = evaluate()
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        state["func_evals"] += 1
        gradient = self._gradient()
        if abs(gradient).max() > self.param_groups[0]["tolerance_grad"]:
            self._iterate(evaluate, state, float(first), gradient)
        return first

    def _iterate(self, closure: Any, state: dict[str, Any], loss: float, gradient: Array) -> None:
        group = self.param_groups[0]
        lr, most = scalar(group["lr"]), group["max_iter"]
        memory = _Memory.of(state, group["history_size"])
        evaluations = 1
        for count in range(1, most + 1):
            state["n_iter"] += 1
            memory.look(gradient, first=state["n_iter"] == 1)
            before = loss
            direction = memory.direction
            step = lr
            if state["n_iter"] == 1:
                step = min(1.0, 1.0 / float(abs(gradient).sum())) * lr
            memory.step = step
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                loss, gradient, step, used = self._search(
                    closure, step, direction, loss, gradient, slope, group["max_eval"] - evaluations
                )
                memory.step = step
                self._move(step, direction)
            else:
                self._move(step, direction)
                if count != most:
                    loss = float(closure())
                    gradient = self._gradient()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                count == most
                or evaluations >= group["max_eval"]
                or abs(gradient).max() <= group["tolerance_grad"]
                or abs(direction * step).max() <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        memory.keep(state, before)

    def _search(
        self, closure: Any, step: float, direction: Array, loss: float, gradient: Array,
        slope: float, most: int,
    ) -> tuple[float, Array, float, int]:  # fmt: skip
        start = [one.array.copy() for one in self._params]

        def at(step: float) -> Point:
            self._move(step, direction)
            found = float(closure())
            there = self._gradient()
            for one, values in zip(self._params, start, strict=True):
                one.array[...] = values
                bump(one)
            return step, found, there, float(there @ direction)

        return strong_wolfe(at, step, direction, (0.0, loss, gradient, slope), most)


class _Memory:
    """The differences of gradients and of positions that approximate the inverse Hessian."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changes: list[Array] = []
        self.steps: list[Array] = []
        self.inverses: list[float] = []
        self.scale: float = 1.0
        self.before: Array | None = None
        self.direction: Array = np.empty(0)
        self.step: float = 0.0

    @classmethod
    def of(cls, state: dict[str, Any], size: int) -> _Memory:
        """The memory that a state holds."""
        memory = cls(size)
        if state.get("d") is not None:
            memory.direction, memory.step = state["d"].array, float(state["t"])
            memory.changes = [one.array for one in state["old_dirs"]]
            memory.steps = [one.array for one in state["old_stps"]]
            memory.inverses = [float(one) for one in state["ro"]]
            memory.scale = float(state["H_diag"])
            memory.before = state["prev_flat_grad"].array
        return memory

    def keep(self, state: dict[str, Any], loss: float) -> None:
        """Writes the memory into a state, under torch's names."""
        assert self.before is not None
        state.update(
            d=wrap(self.direction), t=self.step, old_dirs=[wrap(one) for one in self.changes],
            old_stps=[wrap(one) for one in self.steps],
            ro=[wrap(np.asarray(one, self.direction.dtype)) for one in self.inverses],
            H_diag=self.scale, prev_flat_grad=wrap(self.before), prev_loss=loss,
        )  # fmt: skip

    def look(self, gradient: Array, *, first: bool) -> None:
        """Remembers where the last step led, and finds the next direction."""
        kind = gradient.dtype.type
        if first:
            self.direction = -gradient
            self.changes, self.steps, self.inverses, self.scale = [], [], [], 1.0
        else:
            assert self.before is not None
            change = gradient - self.before
            step = self.direction * kind(self.step)
            product = change @ step
            if product > 1e-10:
                if len(self.changes) == self.size:
                    for one in (self.changes, self.steps, self.inverses):
                        one.pop(0)
                self.changes.append(change)
                self.steps.append(step)
                self.inverses.append(float(kind(1.0) / product))
                self.scale = float(product / (change @ change))
            self.direction = self._turned(-gradient)
        self.before = gradient.copy()

    def _turned(self, q: Array) -> Array:
        kind = q.dtype.type
        weights = []
        for change, step, inverse in reversed(
            list(zip(self.changes, self.steps, self.inverses, strict=True))
        ):
            weight = (step @ q) * kind(inverse)
            weights.append(weight)
            q = q - change * weight
        r: Array = q * kind(self.scale)
        for change, step, inverse in zip(self.changes, self.steps, self.inverses, strict=True):
            r = r + step * (weights.pop() - (change @ r) * kind(inverse))
        return r


def cubic_minimum(first: Point, second: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points and their slopes is least, within bounds."""
    x1, f1, _, g1 = first
    x2, f2, _, g2 = second
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


ENOUGH, FLAT = 1e-4, 0.9
"""Wolfe's constants: how much of the slope a step must win, and how flat it must end."""


def strong_wolfe(
    at: Callable[[float], Point], step: float, direction: Array, start: Point, most: int,
    tolerance: float = 1e-9,
) -> tuple[float, Array, float, int]:  # fmt: skip
    """A step that holds Wolfe's strong conditions: its loss, gradient, length, and the evaluations.

    Args:
        at: evaluates a step along the line.
        start: the point of step 0.
        most: how many times the step may be changed.
    """
    _, loss, _, slope = start
    new = at(step)
    used, done, count = 1, False, 0
    before = start
    bracket: list[Point] = []
    while count < most:
        if new[1] > loss + ENOUGH * new[0] * slope or (count > 1 and new[1] >= before[1]):
            bracket = [before, new]
            break
        if abs(new[3]) <= -FLAT * slope:
            bracket, done = [new], True
            break
        if new[3] >= 0:
            bracket = [before, new]
            break
        bounds = (new[0] + 0.01 * (new[0] - before[0]), new[0] * 10)
        step = cubic_minimum(before, new, bounds)
        before, new = new, at(step)
        used += 1
        count += 1
    if count == most:
        bracket = [start, new]
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    if done:
        low = 0
    width = float(abs(direction).max())
    stuck = False
    while not done and count < most:
        ends = (bracket[0][0], bracket[1][0])
        if abs(ends[1] - ends[0]) * width < tolerance:
            break
        step = cubic_minimum(bracket[0], bracket[1])
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - step, step - min(ends)) < margin:
            # Twice near an end, or at it: try a tenth of the bracket away from it.
            if stuck or step >= max(ends) or step <= min(ends):
                nearer_top = abs(step - max(ends)) < abs(step - min(ends))
                step = max(ends) - margin if nearer_top else min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = at(step)
        used += 1
        count += 1
        if new[1] > loss + ENOUGH * step * slope or new[1] >= bracket[low][1]:
            bracket[high] = new
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(new[3]) <= -FLAT * slope:
                done = True
            elif new[3] * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    length, found, gradient, _ = bracket[low]
    return found, gradient, length, used
