"""The softmax family: exponentials that sum to one along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels import softmax as kernels
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import axis_of
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "gumbel_softmax", "log_softmax", "softmax", "softmin",
]  # fmt: skip


def _sample_softmax(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), -1))
    yield Sample((rng.normal(size=(2, 3, 2)), 1))
    yield Sample((rng.normal(size=(3, 2)).T, 0))
    yield Sample((rng.normal(size=()), 0))


def _prepared(input: Tensor, dim: int | None, dtype: Any, name: str) -> tuple[Tensor, int]:
    """The tensor in the type to compute in, and the axis counted from the front.

    Raises CORE-0204 for an axis that is not there, CORE-0102 for whole numbers without `dtype`.
    """
    if dtype is not None:
        input = input.to(dtype)
    if not input.dtype.is_floating_point:
        raise refuse("CORE-0102", dtype=input.dtype.name, operation=name)
    if dim is None:
        # torch's rule of old, for calls that name no axis.
        dim = 0 if input.array.ndim in (0, 1, 3) else 1
    return input, axis_of(dim, input.array.ndim, name)


@operator(_sample_softmax)
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None, **_: Any) -> Tensor:
    """exp(x) divided by its sum along `dim`.

    Args:
        input: any shape.
        dim: the axis along which the result sums to one.
        dtype: the floating type to cast to before.

    Raises CORE-0204 for an axis that is not there, CORE-0102 for whole numbers without `dtype`.
    """
    x, axis = _prepared(input, dim, dtype, "softmax")
    return record(
        kernels.softmax(x.array, axis), softmax_backward, (x,), values=axis, keep_result=True
    )


def softmax_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    y, axis = node.unpack_result(), node.values
    if not MODE.recording:
        return (wrap(kernels.softmax_backward(grad.array, y.array, axis)),)
    weighted = grad * y
    return (weighted - y * weighted.sum(axis, keepdim=True),)


@operator(_sample_softmax)
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None, **_: Any) -> Tensor:
    """The logarithm of softmax, without overflow. Arguments and refusals as in `softmax`."""
    x, axis = _prepared(input, dim, dtype, "log_softmax")
    return record(
        kernels.log_softmax(x.array, axis),
        log_softmax_backward,
        (x,),
        values=axis,
        keep_result=True,
    )


def log_softmax_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    y, axis = node.unpack_result(), node.values
    if not MODE.recording:
        return (wrap(kernels.log_softmax_backward(grad.array, y.array, axis)),)
    return (grad - y.exp() * grad.sum(axis, keepdim=True),)


@operator(_sample_softmax, torch="nn.functional.softmin", method=False)
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None, **_: Any) -> Tensor:
    """The softmax of -x. Arguments and refusals as in `softmax`."""
    return softmax(-input, dim, dtype)


def _sample_gumbel(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)),), {"tau": 0.5, "dim": 0})


@operator(_sample_gumbel, torch=None, random=True, method=False)
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A softmax of logits plus Gumbel noise: a sample of categories that has a gradient.

    Args:
        logits: any shape; unnormalised logarithms of probabilities along `dim`.
        tau: the temperature.
        hard: gives one-hot samples, with the gradient of the soft ones.
        eps: not used; PyTorch keeps it for old calls.
        dim: the axis of categories.

    Source: arXiv 1611.01144, 1611.00712.
    """
    noise = -(wrap(np.empty(logits.shape, logits.array.dtype)).exponential_().log())
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = np.zeros_like(soft.array)
    top = np.expand_dims(soft.array.argmax(axis=dim), dim)
    np.put_along_axis(chosen, top, 1, axis=dim)
    result: Tensor = wrap(chosen) - soft.detach() + soft
    return result
