"""Chains of operators in one pass over memory: each equals its parts, and is faster.

`bias_gelu` is `gelu(x + bias)`, `batch_norm_silu` is `silu(batch_norm(x))`, `dropout_add` is
`dropout(x) + residual`, `linear_cross_entropy` is `cross_entropy(linear(x))` without the logits. A
linear layer with its bias prefilled is `linear` itself (`matrix.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels import normalisation as kernels
from numbat.kernels import softmax as softmax_kernels
from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import run
from numbat.kernels.products import multiply
from numbat.ops.activations import gelu, silu
from numbat.ops.class_losses import cross_entropy
from numbat.ops.mapping import widened
from numbat.ops.matrix import linear
from numbat.ops.normalisation import (
    _check_channels,
    _chosen,
    batch_norm,
    channel_gradients,
    folded,
    present,
    update_statistics,
)
from numbat.ops.registry import Sample, operator
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "batch_norm_silu", "bias_gelu", "dropout_add", "linear_cross_entropy",
]  # fmt: skip

_FLOAT32 = np.dtype(np.float32)
_MULTIPLY_ADD = kernel("nb_multiply_add", "PPPPll")
ROWS = 512
"""Rows of logits that exist at a time in `linear_cross_entropy`."""


# -- bias and GELU ---------------------------------------------------------------------------------


def _sample_bias_gelu(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=3)))
    yield Sample((rng.normal(size=(2, 2, 3)), rng.normal(size=3)), {"approximate": "tanh"})


@operator(_sample_bias_gelu, torch=None, method=False)
def bias_gelu(input: Tensor, bias: Tensor, *, approximate: str = "none") -> Tensor:
    """`gelu(input + bias)`; (..., C) and (C,).

    Raises CORE-0430 for another approximation, CORE-0433 for a bias of another shape.
    """
    x = input.array
    if not x.ndim or bias.array.shape != x.shape[-1:]:
        raise refuse(
            "CORE-0433", operator="bias_gelu", shape=list(x.shape), weight_shape=list(bias.shape)
        )
    if x.dtype != _FLOAT32 or not x.flags.c_contiguous or approximate not in ("none", "tanh"):
        return gelu(input + bias, approximate=approximate)
    name = "gelu" if approximate == "none" else "gelu_tanh"
    rows = x.reshape(-1, x.shape[-1])
    out = kernels.affine(rows, np.ones(x.shape[-1], _FLOAT32), bias.array, activation=name)
    return record(out.reshape(x.shape), bias_gelu_backward, (input, bias), (input, bias), name)


def bias_gelu_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, bias = node.unpack()
    name = node.values
    if MODE.recording:
        from numbat.autograd.engine import grad as gradient

        z = x + bias
        out = gelu(z, approximate="none" if name == "gelu" else "tanh")
        (to,) = gradient(out, z, grad, create_graph=True)
        assert to is not None
        return to, to
    columns = x.array.shape[-1]
    rows = x.array.reshape(-1, columns)
    given = np.ascontiguousarray(grad.array).reshape(rows.shape)
    zeros, ones = np.zeros(columns, _FLOAT32), np.ones(columns, _FLOAT32)
    through, sums, _ = kernels.gradient_sums(given, rows, zeros, ones, bias.array, activation=name)
    return wrap(through.reshape(x.array.shape)), wrap(sums.astype(x.array.dtype))


# -- batch norm and SiLU ---------------------------------------------------------------------------


def _sample_norm_silu(rng: np.random.Generator) -> Any:
    x, weight, bias = rng.normal(size=(3, 2, 2)), rng.normal(size=2), rng.normal(size=2)
    yield Sample((x, None, None, weight, bias), {"training": True})


@operator(_sample_norm_silu, torch=None, method=False)
def batch_norm_silu(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """`silu(batch_norm(input, ...))`; arguments and refusals as in `batch_norm`.

    Neither the normalised tensor nor its logistic function is kept: the backward pass computes both
    again.
    """
    x = input.array
    if x.dtype != _FLOAT32 or not x.size or (not training and running_mean is None):
        return silu(
            batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
        )
    _check_channels(input, running_mean, running_var, weight, bias)
    if training:
        mean, variance = kernels.moments(x)
        update_statistics(x, mean, variance, running_mean, running_var, momentum)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, variance = running_mean.array.astype(np.float64), running_var.array.astype(np.float64)
    rstd = 1 / np.sqrt(variance + eps)
    scale, shift = folded(mean, rstd, weight, bias)
    out = kernels.affine(x, scale, shift, activation="silu")
    kept = (mean, rstd, training, eps, (True, weight is not None, bias is not None))
    return record(
        out, batch_norm_silu_backward, present(input, weight, bias), (input, weight, bias), kept
    )


def batch_norm_silu_backward(node: Node, grad: Tensor) -> tuple[Any, ...]:
    x, weight, bias = node.unpack()
    mean, rstd, training, eps, given = node.values
    if MODE.recording:
        from numbat.autograd.engine import grad as gradient

        still = None if training else wrap(mean)
        spread = None if training else wrap(1 / (rstd * rstd) - eps)
        out = silu(batch_norm(x, still, spread, weight, bias, training, None, eps))
        inputs = present(x, weight, bias)
        wanted = [one for one in inputs if one.requires_grad]
        wave = iter(gradient(out, wanted, grad, create_graph=True))
        return tuple(next(wave) if one.requires_grad else None for one in inputs)
    found = channel_gradients(
        grad.array, x.array, weight, bias, mean, rstd, training=training, activation="silu"
    )
    return _chosen(node, found, given)


# -- dropout and residual --------------------------------------------------------------------------


def _sample_dropout_add(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), 0.5, False))


@operator(_sample_dropout_add, torch=None, random=True, method=False)
def dropout_add(input: Tensor, residual: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout(input, p, training) + residual`, with the same numbers drawn.

    Raises CORE-0502 for a probability outside [0, 1].
    """
    from numbat.ops.sampling import dropout

    dropped = dropout(wrap(np.ones_like(input.array)), p, training)
    if not training or p == 0:
        return input + residual
    x, y, factors = input.array, residual.array, dropped.array
    if (
        x.dtype == y.dtype == _FLOAT32
        and x.shape == y.shape
        and x.strides == y.strides == factors.strides
    ):
        out = np.empty_like(x)
        where = (address(x), address(factors), address(y), address(out))
        run(_MULTIPLY_ADD, where, x.size, 65536)
    else:
        out = (x * factors + y).astype(np.result_type(x, y), copy=False)
    return record(out, dropout_add_backward, (input, residual), values=factors)


def dropout_add_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad * wrap(node.values), grad


# -- head and loss ---------------------------------------------------------------------------------


def _sample_linear_cross_entropy(rng: np.random.Generator) -> Any:
    x, weight, bias = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=5)
    target = np.array([0, 4, -100, 2])
    yield Sample((x, weight, target), {"linear_bias": bias})
    yield Sample((x, weight, target), {"reduction": "sum", "label_smoothing": 0.1})


@operator(
    _sample_linear_cross_entropy,
    torch="nn.functional.linear_cross_entropy",
    method=False,
    twice=False,
)
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """`cross_entropy(linear(input, ...), target)` in chunks of 512 rows: the logits never exist
    whole.

    The gradients are made in the forward pass, while a chunk's logits are at hand, where any is
    wanted.

    Args:
        input: (..., width).
        linear_weight: (classes, width), or (classes, ..., width) for losses with further axes.
        target: (...), classes; or probabilities (..., classes).
        linear_bias: of the weight's shape without its last axis.
        weight: (classes,), a factor for each class.
        reduction: "mean", "sum" or "none".
        ignore_index: a class that counts for nothing; -100 when left out.
        label_smoothing: the part of each target that is spread over all classes.
        options: PyTorch's way to ask for chunks; they are taken in any case.

    Targets that are probabilities, further axes and "none" go by the two operators themselves.

    Raises what `linear` and `cross_entropy` raise, CORE-0312 where a second derivative is asked
    for.
    """
    ignored = -100 if ignore_index is None else ignore_index
    shape, w = input.array.shape, linear_weight.array
    chunked = (
        reduction in ("mean", "sum")
        and w.ndim == 2
        and shape[-1:] == w.shape[1:]
        and target.array.shape == shape[:-1]
        and target.array.dtype.kind in "iu"
        and (linear_bias is None or linear_bias.array.shape == w.shape[:1])
        and (weight is None or weight.array.shape == w.shape[:1])
        and 0 <= label_smoothing <= 1
    )
    if not chunked:
        logits = _logits(input, linear_weight, linear_bias)
        return cross_entropy(
            logits, target, weight, None, ignored, None, reduction, label_smoothing
        )
    targets = np.ascontiguousarray(target.array.reshape(-1), np.int64)
    _check_classes(targets, ignored, w.shape[0])
    inputs = present(input, linear_weight, linear_bias)
    wanted = MODE.recording and any(one.requires_grad for one in inputs)
    loss, gradients = _in_chunks(
        input, linear_weight, linear_bias, weight, targets, ignored, label_smoothing,
        mean=reduction == "mean", wanted=wanted,
    )  # fmt: skip
    return record(
        loss.astype(input.array.dtype), linear_cross_entropy_backward, inputs, values=gradients
    )


def _logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The linear layer, with the weight's further axes as those of the result."""
    outer = weight.array.shape[:-1]
    if len(outer) == 1:
        return linear(input, weight, bias)
    flat = weight.reshape((-1, weight.array.shape[-1]))
    out = linear(input, flat, None if bias is None else bias.reshape((-1,)))
    result: Tensor = out.reshape((*input.array.shape[:-1], *outer))
    return result


def _check_classes(targets: Array, ignored: int, classes: int) -> None:
    held = targets[targets != ignored]
    if held.size:
        low, high = int(held.min()), int(held.max())
        if low < 0 or high >= classes:
            bad = low if low < 0 else high
            raise refuse(
                "CORE-0240", operator="linear_cross_entropy", index=bad, dim=1, extent=classes
            )


def _in_chunks(
    input: Tensor, weight: Tensor, bias: Tensor | None, class_weight: Tensor | None, targets: Array,
    ignored: int, smoothing: float, *, mean: bool, wanted: bool,
) -> tuple[Array, list[Array]]:  # fmt: skip
    """The loss, and the gradients of the input, the weight and the bias where they are wanted."""
    x = np.ascontiguousarray(widened(input.array)).reshape(targets.size, -1)
    w = np.ascontiguousarray(widened(weight.array))
    b = None if bias is None else widened(bias.array)
    factors = None if class_weight is None else np.ascontiguousarray(class_weight.array, x.dtype)
    divisor = _divisor(targets[targets != ignored], factors) if mean else 1.0
    classes = w.shape[0]
    for_x = np.empty_like(x) if wanted else None
    for_w = np.zeros_like(w) if wanted else None
    for_b = np.zeros(classes) if wanted else None
    logits = np.empty((min(ROWS, len(x)), classes), x.dtype)
    total = 0.0
    scale = np.full(ROWS, np.float64(1) / divisor if divisor else np.nan).astype(x.dtype)
    fast = x.dtype == _FLOAT32
    losses = softmax_kernels.cross_entropy if fast else softmax_kernels.cross_entropy_reference
    for start in range(0, len(x), ROWS):
        rows = x[start : start + ROWS]
        chunk, at = logits[: len(rows)], targets[start : start + ROWS]
        if b is not None:
            chunk[...] = b
        multiply(rows, w.T, chunk, 1.0, 0.0 if b is None else 1.0)
        loss, log_sum = losses(chunk, at, factors, ignored, smoothing)
        total += float(loss.sum(dtype=np.float64))
        if for_x is None or for_w is None or for_b is None:
            continue
        slopes = scale[: len(rows)]
        if fast:
            softmax_kernels.cross_entropy_backward(
                slopes, chunk, at, factors, log_sum, ignored, smoothing, chunk
            )
        else:
            chunk[...] = softmax_kernels.cross_entropy_backward_reference(
                slopes, chunk, at, factors, log_sum, ignored, smoothing
            )
        multiply(chunk, w, for_x[start : start + ROWS])
        multiply(chunk.T, rows, for_w, 1.0, 1.0)
        if b is not None:
            for_b += chunk.sum(axis=0, dtype=np.float64)
    loss_value = np.asarray(total / divisor if divisor else np.nan)
    if for_x is None or for_w is None or for_b is None:
        return loss_value, []
    gradients = [for_x.reshape(input.array.shape), for_w]
    return loss_value, gradients if b is None else [*gradients, for_b.astype(x.dtype)]


def _divisor(targets: Array, factors: Array | None) -> float:
    """The sum of the factors of the targets that count."""
    if factors is None:
        return float(targets.size)
    return float(factors[targets].sum(dtype=np.float64))


def linear_cross_entropy_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    if MODE.recording:
        raise refuse("CORE-0312", operator="linear_cross_entropy")
    factor = grad.array.item()
    found: list[Tensor | None] = []
    for source, one in zip(node.sources, node.values, strict=True):
        if source is None:
            found.append(None)
            continue
        found.append(wrap(one if factor == 1 else one * one.dtype.type(factor)))
    return tuple(found)
