"""Activation functions with kinks: straight pieces, chosen by comparisons.

As in `activations.py`, each has a numpy reference and a kernel of its name in
`kernels/activation.c`. Every comparison is PyTorch's own, so that values at a kink and NaN go the
same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels.activations import Activation
from numbat.ops.activations import snapshot
from numbat.ops.mapping import is_half, weighted
from numbat.ops.registry import Sample, operator
from numbat.tensors import dtypes
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "prelu", "relu", "relu6",
    "rrelu",
    "softshrink", "threshold",
]  # fmt: skip


def _away_from(*kinks: float) -> Any:
    """Samples 0.15 away from every kink."""

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (3, 2)):
            x = rng.uniform(-4, 4, shape)
            for kink in kinks:
                x = np.where(abs(x - kink) < 0.15, kink + 0.15, x)
            yield Sample((x.T,))

    return make


def _given(grad: Tensor, x: Tensor, function: Activation, numbers: tuple[float, ...]) -> Tensor:
    """The gradient times the slope at x; the slope is constant between kinks."""
    if not MODE.recording:
        return wrap(function.backward(grad.array, x.array, *numbers))
    return weighted(grad, function.slope(x.array, *numbers))


# -- ReLU ------------------------------------------------------------------------------------------


def relu_value(x: Array) -> Array:
    """x where it is above zero (or NaN), else zero."""
    return np.where(x <= 0, x.dtype.type(0), x)


def relu_slope(x: Array) -> Any:
    """One where x, or relu(x), is above zero (or NaN), else zero."""
    return np.where(x <= 0, x.dtype.type(0), x.dtype.type(1))


RELU = Activation("relu", relu_value, relu_slope, selects=True)


@operator(_away_from(0.0), torch="nn.functional.relu", in_place=True)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """x above zero, zero below."""
    if inplace:
        return overwrite(input, relu(input), "relu_")
    if not input.dtype.is_floating_point:
        return wrap(np.maximum(input.array, 0).astype(input.array.dtype, copy=False))
    # The result is kept for the gradient, not the input, so that the input may be written over.
    return record(RELU.forward(input.array), relu_backward, (input,), keep_result=True)


def relu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (_given(grad, node.unpack_result(), RELU, ()),)


# -- leaky ones ------------------------------------------------------------------------------------


def leaky_relu_value(x: Array, negative_slope: float) -> Array:
    """x above zero, else x times a slope."""
    return np.where(x > 0, x, x * x.dtype.type(negative_slope))


def leaky_relu_slope(x: Array, negative_slope: float) -> Any:
    """The derivative of `leaky_relu_value`."""
    return np.where(x > 0, x.dtype.type(1), x.dtype.type(negative_slope))


LEAKY_RELU = Activation("leaky_relu", leaky_relu_value, leaky_relu_slope)


@operator(_away_from(0.0), torch="nn.functional.leaky_relu", method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above zero, `negative_slope` times x below."""
    if inplace:
        return overwrite(input, leaky_relu(snapshot(input), negative_slope), "leaky_relu_")
    x = floating(input)
    numbers = (float(negative_slope),)
    return record(LEAKY_RELU.forward(x.array, *numbers), leaky_relu_backward, (x,), (x,), numbers)


def leaky_relu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, LEAKY_RELU, node.values),)


def _sample_prelu(rng: np.random.Generator) -> Any:
    for sample in _away_from(0.0)(rng):
        yield Sample((*sample.args, rng.uniform(0.1, 0.5, (1,))))
    yield Sample((rng.choice([-1.0, 1.0], (2, 3, 2)) * 0.5, rng.uniform(0.1, 0.5, 3)))


@operator(_sample_prelu, torch="nn.functional.prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above zero, x times a learnt slope below: one slope, or one for each channel.

    Args:
        input: (N, C, ...), or any shape for a single slope.
        weight: (1,) or (C,), of the input's type.

    Raises CORE-0433 where the number of slopes is neither one nor that of channels.
    """
    x = floating(input)
    slopes, shape = weight.array.size, x.array.shape
    if (
        slopes != 1
        and (len(shape) < 2 or slopes != shape[1])
        and not (len(shape) == 1 and slopes == shape[0] == 1)
    ):
        raise refuse(
            "CORE-0433", operator="prelu", shape=list(shape), weight_shape=list(weight.shape)
        )
    if weight.array.ndim:
        axes = (1, slopes) + (1,) * (len(shape) - 2) if len(shape) >= 2 else (1,) * len(shape)
        weight = weight.reshape(axes)
    above = x.array > 0
    array = np.where(above, x.array, x.array * weight.array).astype(x.array.dtype, copy=False)
    return record(array, prelu_backward, (x, weight), (x, weight))


def prelu_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, weight = node.unpack()
    above = x.array > 0
    below = weighted(grad, ~above)
    for_x = weighted(grad, above) + below * weight if node.sources[0] is not None else None
    return for_x, below * x if node.sources[1] is not None else None


def _sample_rrelu(rng: np.random.Generator) -> Any:
    for sample in _away_from(0.0)(rng):
        yield Sample(sample.args, {"training": False})
        yield Sample(sample.args, {"training": True})


@operator(_sample_rrelu, torch="nn.functional.rrelu", random=True, method=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    """x above zero, x times a slope below: drawn for each element in training, else the mean slope.

    The slopes are uniform in [lower, upper), drawn for elements at or below zero alone, in their
    order, by the default generator, as PyTorch draws them on the CPU.
    Source: arXiv 1505.00853.
    """
    if inplace:
        return overwrite(input, rrelu(snapshot(input), lower, upper, training), "rrelu_")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    x = floating(input)
    slopes = np.ones(x.array.shape, x.array.dtype)
    drawn = x.array <= 0
    slopes[drawn] = _uniform(int(np.count_nonzero(drawn)), lower, upper)
    return weighted(x, slopes)


def _uniform(count: int, lower: float, upper: float) -> Array:
    """Numbers of the default generator, uniform in [lower, upper), in float64."""
    from numbat.ops.sampling import rand

    return rand(count, dtype=dtypes.float64).array * (upper - lower) + lower


# -- hard steps ------------------------------------------------------------------------------------


def hardtanh_value(x: Array, low: float, high: float) -> Array:
    """x held between two bounds; NaN passes."""
    x = np.where(x < low, x.dtype.type(low), x)
    return np.where(x > high, x.dtype.type(high), x)


def hardtanh_slope(x: Array, low: float, high: float) -> Any:
    """One strictly between the bounds, else zero."""
    return np.where((x <= low) | (x >= high), x.dtype.type(0), x.dtype.type(1))


HARDTANH = Activation("hardtanh", hardtanh_value, hardtanh_slope, selects=True)


@operator(_away_from(-1.0, 1.0), torch="nn.functional.hardtanh", method=False)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x held between `min_val` and `max_val`.

    Raises CORE-0431 where the bounds cross.
    """
    if min_val > max_val:
        raise refuse(
            "CORE-0431", operator="hardtanh", argument="max_val", given=float(max_val),
            wanted=f"at least min_val, {float(min_val)}",
        )  # fmt: skip
    if inplace:
        return overwrite(input, hardtanh(snapshot(input), min_val, max_val), "hardtanh_")
    numbers = (float(min_val), float(max_val))
    if not input.dtype.is_floating_point:
        return wrap(np.clip(input.array, *numbers).astype(input.array.dtype))
    return record(
        HARDTANH.forward(input.array, *numbers), hardtanh_backward, (input,), (input,), numbers
    )


def hardtanh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, HARDTANH, node.values),)


@operator(_away_from(0.0, 6.0), torch="nn.functional.relu6", method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x held between zero and six."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid_value(x: Array) -> Array:
    """(x + 3) / 6, held between zero and one."""
    return hardtanh_value(x + 3, 0.0, 6.0) / 6


def hardsigmoid_slope(x: Array) -> Any:
    """A sixth strictly between -3 and 3, else zero."""
    return np.where((x > -3) & (x < 3), x.dtype.type(1 / 6), x.dtype.type(0))


HARDSIGMOID = Activation("hardsigmoid", hardsigmoid_value, hardsigmoid_slope, selects=True)


@operator(_away_from(-3.0, 3.0), torch="nn.functional.hardsigmoid", method=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(x + 3) / 6, held between zero and one."""
    if inplace:
        return overwrite(input, hardsigmoid(snapshot(input)), "hardsigmoid_")
    x = floating(input)
    return record(HARDSIGMOID.forward(x.array), hardsigmoid_backward, (x,), (x,))


def hardsigmoid_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, HARDSIGMOID, ()),)


def hardswish_value(x: Array) -> Array:
    """x times its hard logistic function."""
    return x * hardtanh_value(x + 3, 0.0, 6.0) / 6


def hardswish_slope(x: Array) -> Any:
    """The derivative of `hardswish_value`."""
    inner = x / 3 + x.dtype.type(0.5)
    return np.where(x <= -3, x.dtype.type(0), np.where(x < 3, inner, x.dtype.type(1)))


HARDSWISH = Activation("hardswish", hardswish_value, hardswish_slope, selects=True)


@operator(_away_from(-3.0, 3.0), torch="nn.functional.hardswish", method=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times (x + 3) / 6, the latter held between zero and one. Source: arXiv 1905.02244."""
    if inplace:
        return overwrite(input, hardswish(snapshot(input)), "hardswish_")
    x = floating(input)
    return record(HARDSWISH.forward(x.array), hardswish_backward, (x,), (x,))


def hardswish_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    if not MODE.recording:
        return (wrap(HARDSWISH.backward(grad.array, x.array)),)
    inside = (x.array > -3) & (x.array < 3)
    return (weighted(grad, x.array >= 3) + weighted(grad * (x / 3 + 0.5), inside),)


# -- shrinking and thresholds ----------------------------------------------------------------------


def hardshrink_value(x: Array, bound: float) -> Array:
    """x outside [-bound, bound], else zero."""
    return np.where((x >= -bound) & (x <= bound), x.dtype.type(0), x)


def hardshrink_slope(x: Array, bound: float) -> Any:
    """One outside [-bound, bound], else zero."""
    return np.where((x >= -bound) & (x <= bound), x.dtype.type(0), x.dtype.type(1))


def softshrink_value(x: Array, bound: float) -> Any:
    """x brought nearer to zero by `bound`, at most to zero; NaN passes."""
    kind = x.dtype.type
    return np.where(x > bound, x - kind(bound), np.where(x < -bound, x + kind(bound), x * kind(0)))


HARDSHRINK = Activation("hardshrink", hardshrink_value, hardshrink_slope, selects=True)
SOFTSHRINK = Activation("softshrink", softshrink_value, hardshrink_slope, selects=True)


@operator(_away_from(-0.5, 0.5), torch="nn.functional.hardshrink")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x outside [-lambd, lambd], zero within."""
    x = floating(input)
    numbers = (_as_held(lambd, x),)
    return record(HARDSHRINK.forward(x.array, *numbers), hardshrink_backward, (x,), (x,), numbers)


def hardshrink_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, HARDSHRINK, node.values),)


@operator(_away_from(-0.5, 0.5), torch="nn.functional.softshrink", method=False)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x brought nearer to zero by `lambd`, at most to zero.

    Raises CORE-0431 for a negative `lambd`.
    """
    if lambd < 0:
        raise refuse(
            "CORE-0431",
            operator="softshrink",
            argument="lambd",
            given=float(lambd),
            wanted="0 or more",
        )
    x = floating(input)
    numbers = (_as_held(lambd, x),)
    return record(SOFTSHRINK.forward(x.array, *numbers), softshrink_backward, (x,), (x,), numbers)


def softshrink_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, SOFTSHRINK, node.values),)


def _as_held(number: float, x: Tensor) -> float:
    """A bound as the tensor's type holds it, for comparisons that are PyTorch's."""
    return float(x.array.dtype.type(number)) if is_half(x.array.dtype) else float(number)


def threshold_value(x: Array, bound: float, value: float) -> Array:
    """x above the bound (or NaN), else a value."""
    return np.where(x <= bound, x.dtype.type(value), x)


def threshold_slope(x: Array, bound: float, value: float) -> Any:
    """One above the bound (or for NaN), else zero."""
    return np.where(x <= bound, x.dtype.type(0), x.dtype.type(1))


THRESHOLD = Activation("threshold", threshold_value, threshold_slope, selects=True)


def _sample_threshold(rng: np.random.Generator) -> Any:
    for sample in _away_from(0.5)(rng):
        yield Sample((*sample.args, 0.5, 20.0))


@operator(_sample_threshold, torch="nn.functional.threshold", method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above `threshold`, else `value`."""
    if inplace:
        return overwrite(input, _threshold(snapshot(input), threshold, value), "threshold_")
    return _threshold(input, threshold, value)


def _threshold(input: Tensor, bound: float, value: float) -> Tensor:
    if not input.dtype.is_floating_point:
        kept = input.array
        return wrap(np.where(kept <= bound, kept.dtype.type(value), kept))
    numbers = (_as_held(bound, input), float(value))
    return record(
        THRESHOLD.forward(input.array, *numbers), threshold_backward, (input,), (input,), numbers
    )


def threshold_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (_given(grad, x, THRESHOLD, node.values),)
