"""Smooth activation functions; those with kinks stand in `rectifiers.py`.

Each has its numpy reference (`mish_value`, `mish_slope`; GELU's and SiLU's in
`kernels/activation_references.py`) and a kernel of the same name in `kernels/activation.c`. The
backward pass calls the kernel; where the pass itself is recorded, for second derivatives, the same
formula is written in operators.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels.activation_references import (
    gelu_slope,
    gelu_tanh_slope,
    gelu_tanh_value,
    gelu_value,
    logistic,
    silu_slope,
    silu_value,
)
from numbat.kernels.activations import Activation
from numbat.ops.mapping import weighted
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import unary
from numbat.ops.viewing import axis_of
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "celu", "elu", "gelu", "glu", "logsigmoid", "mish", "selu", "silu", "softplus", "softsign",
    "tanhshrink",
]  # fmt: skip

_ROOT_HALF = math.sqrt(0.5)
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def snapshot(input: Tensor) -> Tensor:
    """The tensor with its values copied and its history kept, for an operator that then writes over
    it."""
    out = Tensor.__new__(Tensor)
    out.wants_grad = input.requires_grad
    out.node = input.node
    out.array = input.array.copy(order="K")
    return out


# -- GELU ------------------------------------------------------------------------------------------


GELU = Activation("gelu", gelu_value, gelu_slope)
GELU_TANH = Activation("gelu_tanh", gelu_tanh_value, gelu_tanh_slope)


def _sample_gelu(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(3, 2)).T,), {"approximate": "tanh"})
    yield Sample((rng.normal(size=()),))


@operator(_sample_gelu, torch="nn.functional.gelu", method=False)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal lies below x.

    Args:
        input: any shape.
        approximate: "none", or "tanh" for Hendrycks and Gimpel's formula.

    Raises CORE-0430 for another approximation. Source: arXiv 1606.08415.
    """
    if approximate not in ("none", "tanh"):
        raise refuse(
            "CORE-0430",
            operator="gelu",
            argument="approximate",
            given=str(approximate),
            known=["none", "tanh"],
        )
    x = floating(input)
    function = GELU if approximate == "none" else GELU_TANH
    return record(function.forward(x.array), gelu_backward, (x,), (x,), approximate)


def gelu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    exact = node.values == "none"
    if not MODE.recording:
        return (wrap((GELU if exact else GELU_TANH).backward(grad.array, x.array)),)
    if exact:
        below = ((x * _ROOT_HALF).erf() + 1) * 0.5
        return (grad * (below + x * (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))),)
    s = ((x + x * x * x * _CUBE) * (2 * _ROOT_2_OVER_PI)).sigmoid()
    slope = (x * x * (3 * _CUBE) + 1) * (2 * _ROOT_2_OVER_PI)
    return (grad * (s + x * s * (1 - s) * slope),)


# -- SiLU and Mish ---------------------------------------------------------------------------------


SILU = Activation("silu", silu_value, silu_slope)


@operator(unary(), torch="nn.functional.silu", method=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x times its logistic function (also called swish)."""
    if inplace:
        return overwrite(input, silu(snapshot(input)), "silu_")
    x = floating(input)
    return record(SILU.forward(x.array), silu_backward, (x,), (x,))


def silu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    if not MODE.recording:
        return (wrap(SILU.backward(grad.array, x.array)),)
    s = x.sigmoid()
    return (grad * (s * (1 + x * (1 - s))),)


def mish_value(x: Array) -> Any:
    """x times tanh(softplus(x))."""
    return x * mish_gate(x)


def mish_gate(x: Array) -> Any:
    """tanh(log(1 + e^x)) = (e^2 + 2e) / (e^2 + 2e + 2), with e = exp(x); one beyond 20."""
    e = np.exp(np.minimum(x, 20))
    n = e * (e + 2)
    return n / (n + 2)


def mish_slope(x: Array) -> Any:
    """The derivative of `mish_value`."""
    gate = mish_gate(x)
    return gate + x * logistic(x) * (1 - gate * gate)


MISH = Activation("mish", mish_value, mish_slope)


@operator(unary(), torch="nn.functional.mish", method=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times tanh(softplus(x)). Source: arXiv 1908.08681."""
    if inplace:
        return overwrite(input, mish(snapshot(input)), "mish_")
    x = floating(input)
    return record(MISH.forward(x.array), mish_backward, (x,), (x,))


def mish_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    if not MODE.recording:
        return (wrap(MISH.backward(grad.array, x.array)),)
    gate = softplus(x).tanh()
    return (grad * (gate + x * x.sigmoid() * (1 - gate * gate)),)


# -- softplus and the logarithm of the logistic function -------------------------------------------


def softplus_value(x: Array, beta: float, threshold: float) -> Array:
    """log(1 + exp(beta x)) / beta; x itself where beta x is beyond the threshold."""
    u = x * x.dtype.type(beta)
    soft = (np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u)))) / x.dtype.type(beta)
    return np.where(u > threshold, x, soft)


def softplus_slope(x: Array, beta: float, threshold: float) -> Any:
    """The derivative of `softplus_value`."""
    u = x * x.dtype.type(beta)
    return np.where(u > threshold, x.dtype.type(1), logistic(u))


SOFTPLUS = Activation("softplus", softplus_value, softplus_slope)


def _sample_softplus(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)) * 3,), {"beta": 2.0, "threshold": 3.0})


@operator(_sample_softplus, torch="nn.functional.softplus", method=False)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is beyond `threshold`."""
    x = floating(input)
    numbers = (float(beta), float(threshold))
    return record(SOFTPLUS.forward(x.array, *numbers), softplus_backward, (x,), (x,), numbers)


def softplus_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    beta, threshold = node.values
    if not MODE.recording:
        return (wrap(SOFTPLUS.backward(grad.array, x.array, beta, threshold)),)
    beyond = x.array * beta > threshold
    return (weighted(grad, beyond) + weighted(grad * (x * beta).sigmoid(), ~beyond),)


def logsigmoid_value(x: Array) -> Array:
    """The logarithm of the logistic function."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def logsigmoid_slope(x: Array) -> Any:
    """The derivative of `logsigmoid_value`."""
    return logistic(-x)


LOGSIGMOID = Activation("logsigmoid", logsigmoid_value, logsigmoid_slope)


@operator(unary(), torch="nn.functional.logsigmoid", method=False)
def logsigmoid(input: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    x = floating(input)
    return record(LOGSIGMOID.forward(x.array), logsigmoid_backward, (x,), (x,))


def logsigmoid_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    if not MODE.recording:
        return (wrap(LOGSIGMOID.backward(grad.array, x.array)),)
    return (grad * (-x).sigmoid(),)


# -- exponential linear units ----------------------------------------------------------------------


def elu_value(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """scale x above zero, scale alpha (exp(input_scale x) - 1) below."""
    return np.where(x <= 0, np.expm1(np.minimum(x, 0) * input_scale) * (alpha * scale), x * scale)


def elu_slope(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """The derivative of `elu_value`."""
    below = input_scale * alpha * scale * np.exp(np.minimum(x, 0) * input_scale)
    return np.where(x <= 0, below, x.dtype.type(scale))


ELU = Activation("elu", elu_value, elu_slope)


def _elu(input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    x = floating(input)
    numbers = (float(alpha), float(scale), float(input_scale))
    return record(ELU.forward(x.array, *numbers), elu_backward, (x,), (x,), numbers)


def elu_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    alpha, scale, input_scale = node.values
    if not MODE.recording:
        return (wrap(ELU.backward(grad.array, x.array, alpha, scale, input_scale)),)
    below = x.array <= 0
    curved = weighted(grad, below) * (weighted(x, below) * input_scale).exp()
    return (curved * (input_scale * alpha * scale) + weighted(grad, ~below) * scale,)


def _sample_elu(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), 1.5))


@operator(_sample_elu, torch="nn.functional.elu", method=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above zero, alpha (exp(x) - 1) below. Source: arXiv 1511.07289."""
    if inplace:
        return overwrite(input, _elu(snapshot(input), alpha, 1.0, 1.0), "elu_")
    return _elu(input, alpha, 1.0, 1.0)


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
"""The fixed point of arXiv 1706.02515."""


@operator(unary(), torch="nn.functional.selu", method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU scaled so that normal activations stay normal. Source: arXiv 1706.02515."""
    if inplace:
        return overwrite(input, _elu(snapshot(input), SELU_ALPHA, SELU_SCALE, 1.0), "selu_")
    return _elu(input, SELU_ALPHA, SELU_SCALE, 1.0)


@operator(_sample_elu, torch="nn.functional.celu", method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above zero, alpha (exp(x / alpha) - 1) below: smooth for every alpha. Source: arXiv
    1704.07483.

    Raises CORE-0431 for an alpha of zero.
    """
    if alpha == 0:
        raise refuse("CORE-0431", operator="celu", argument="alpha", given=0.0, wanted="not 0")
    if inplace:
        return overwrite(input, _elu(snapshot(input), alpha, 1.0, 1.0 / alpha), "celu_")
    return _elu(input, alpha, 1.0, 1.0 / alpha)


# -- compositions ----------------------------------------------------------------------------------


@operator(unary(), torch="nn.functional.tanhshrink", method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    x = floating(input)
    result: Tensor = x - x.tanh()
    return result


@operator(unary(), torch="nn.functional.softsign", method=False)
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    x = floating(input)
    result: Tensor = x / (x.abs() + 1)
    return result


def _sample_glu(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4)),))
    yield Sample((rng.normal(size=(4, 3)), 0))


@operator(_sample_glu, torch="nn.functional.glu", method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along an axis times the logistic function of the second. Source: arXiv
    1612.08083.

    Raises CORE-0204 for an axis that is not there, CORE-0432 where its extent is odd.
    """
    x = floating(input)
    axis = axis_of(dim, x.array.ndim, "glu")
    if not x.array.ndim or x.array.shape[axis] % 2:
        raise refuse("CORE-0432", operator="glu", shape=list(x.shape), dim=dim)
    half = x.array.shape[axis] // 2
    result: Tensor = x.narrow(axis, 0, half) * x.narrow(axis, half, half).sigmoid()
    return result
