"""Gradients held to differences: first and second derivatives of any function of tensors.

Source: PyTorch, `torch.autograd.gradcheck`; central differences in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numbat.autograd.engine import grad
from numbat.autograd.mode import no_grad
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

STEP = 1e-6
TOLERANCE = 1e-4
"""How far a derivative may lie from its difference, absolutely and relatively."""


@dataclass(frozen=True)
class Disagreement:
    """One derivative that does not agree with its difference.

    Attributes:
        output, input: which result, with respect to which input.
        derivative, difference: the two values at the worst element.
    """

    output: int
    input: int
    derivative: float
    difference: float


def gradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Any] | Tensor,
    *,
    eps: float = STEP,
    atol: float = TOLERANCE,
    rtol: float = TOLERANCE,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of `function` at `inputs` agree with central differences.

    Args:
        function: takes the inputs, gives a tensor or a sequence of them.
        inputs: tensors (those in float64 that require a gradient are checked) and plain values.
        eps: the step of the differences.
        atol, rtol: absolute and relative tolerance.
        raise_exception: raises CORE-0313 where they do not agree, instead of giving False.
    """
    several = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    worst = worst_disagreement(function, several, eps=eps, atol=atol, rtol=rtol)
    if worst is None:
        return True
    if raise_exception:
        raise refuse(
            "CORE-0313",
            output=worst.output,
            input=worst.input,
            derivative=worst.derivative,
            difference=worst.difference,
        )
    return False


def gradgradcheck(
    function: Callable[..., Any],
    inputs: Sequence[Any] | Tensor,
    *,
    eps: float = STEP,
    atol: float = TOLERANCE,
    rtol: float = TOLERANCE,
    raise_exception: bool = True,
) -> bool:
    """Whether second derivatives agree with central differences of the first; see `gradcheck`."""
    several = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    return gradcheck(
        first_derivatives(function, several),
        several,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
    )


def first_derivatives(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """The function that gives the gradients of a fixed, uneven sum of `function`'s results."""
    places = _checked(inputs)

    def derivatives(*given: Any) -> Any:
        total = _weighted(_results(function(*given)))
        found = grad(
            total, [given[place] for place in places], create_graph=True, allow_unused=True
        )
        return [one for one in found if one is not None and one.requires_grad]

    return derivatives


def worst_disagreement(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    *,
    eps: float = STEP,
    atol: float = TOLERANCE,
    rtol: float = TOLERANCE,
) -> Disagreement | None:
    """The derivative that lies furthest from its difference, where one lies too far.

    Every element of every checked input is moved once each way; the gradients are those of an
    uneven sum of each result, so that no error of one element hides behind another's.
    """
    worst: Disagreement | None = None
    places = _checked(inputs)
    outputs = [one for one in _results(function(*inputs)) if one.requires_grad]
    for index, output in enumerate(outputs):
        found = grad(
            _weighted([output]),
            [inputs[place] for place in places],
            retain_graph=True,
            allow_unused=True,
        )
        for place, derivative in zip(places, found, strict=True):
            given = inputs[place].array
            measured = np.zeros(given.shape) if derivative is None else derivative.array
            expected = _differences(function, inputs, place, index, eps)
            apart = np.abs(measured - expected)
            allowed = atol + rtol * np.abs(expected)
            # A NaN agrees with nothing.
            beyond = ~(apart <= allowed)
            if beyond.any():
                at = np.unravel_index(int(np.argmax(np.where(beyond, apart, -1))), given.shape)
                one = Disagreement(index, place, float(measured[at]), float(expected[at]))
                if worst is None or _apart(one) > _apart(worst):
                    worst = one
    return worst


def _apart(one: Disagreement) -> float:
    return abs(one.derivative - one.difference)


def _checked(inputs: tuple[Any, ...]) -> list[int]:
    return [
        place
        for place, one in enumerate(inputs)
        if isinstance(one, Tensor) and one.requires_grad and one.array.dtype == np.float64
    ]


def _results(given: Any) -> list[Tensor]:
    several = [given] if isinstance(given, Tensor) else list(given)
    return [one for one in several if isinstance(one, Tensor) and one.is_floating_point()]


def _weights(shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    uneven: Array = 0.5 + np.modf(np.arange(1, count + 1) * 0.6180339887498949)[0]
    return uneven.reshape(shape)


def _weighted(results: Sequence[Tensor]) -> Tensor:
    total: Tensor | None = None
    for one in results:
        if one.requires_grad:
            part = (one * wrap(_weights(one.shape).astype(one.array.dtype))).sum()
            total = part if total is None else total + part
    assert total is not None
    return total


def _differences(
    function: Callable[..., Any], inputs: tuple[Any, ...], place: int, index: int, eps: float
) -> Array:
    given = inputs[place].array
    moved = given.copy()
    result = np.empty(given.shape)

    def value() -> float:
        with no_grad():
            fresh = wrap(moved.copy())
            several = [fresh if at == place else one for at, one in enumerate(inputs)]
            fresh.requires_grad = True
        outputs = [one for one in _results(function(*several)) if one.requires_grad]
        return float((outputs[index].array * _weights(outputs[index].shape)).sum())

    for at in np.ndindex(*given.shape):
        before = moved[at]
        moved[at] = before + eps
        above = value()
        moved[at] = before - eps
        below = value()
        moved[at] = before
        result[at] = (above - below) / (2 * eps)
    return result
