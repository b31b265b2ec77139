"""Losses over classes: cross-entropy and its parts, and margins between classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels import softmax as kernels
from numbat.ops.activations import logsigmoid
from numbat.ops.losses import reduced, reduction_of
from numbat.ops.mapping import weighted, widened
from numbat.ops.registry import Sample, operator
from numbat.ops.softmax import log_softmax, softmax
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss",
]  # fmt: skip


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise refuse(
            "CORE-0430",
            operator=name,
            argument="reduction",
            given=str(reduction),
            known=["none", "mean", "sum"],
        )


def class_axis(input: Tensor) -> int:
    """The axis of classes: the only one, or the second."""
    return 0 if input.array.ndim == 1 else 1


def class_targets(
    name: str, input: Tensor, target: Tensor, ignore_index: int
) -> tuple[Array, Array]:
    """Targets as int64 and which of them count.

    Raises CORE-0437 for targets of another type or shape, CORE-0240 for one that is no class.
    """
    shape, index = input.array.shape, target.array
    axis = class_axis(input)
    wanted = shape[:axis] + shape[axis + 1 :]
    if index.dtype.kind not in "iu" or index.shape != wanted or not shape:
        raise refuse(
            "CORE-0437", operator=name, wanted=f"whole numbers of shape {list(wanted)}",
            given=f"{target.dtype.name} of shape {list(index.shape)}",
        )  # fmt: skip
    index = index.astype(np.int64, copy=False)
    counted = index != ignore_index
    held = index if counted.all() else index[counted]
    if held.size:
        low, high = int(held.min()), int(held.max())
        if low < 0 or high >= shape[axis]:
            bad = low if low < 0 else high
            raise refuse("CORE-0240", operator=name, index=bad, dim=axis, extent=shape[axis])
    return index, counted


def _class_weight(name: str, input: Tensor, weight: Tensor | None) -> Array | None:
    if weight is None:
        return None
    classes = input.array.shape[class_axis(input)]
    if weight.array.shape != (classes,):
        raise refuse(
            "CORE-0433", operator=name, shape=list(input.shape), weight_shape=list(weight.shape)
        )
    return weight.array


# -- cross-entropy ---------------------------------------------------------------------------------


def _sample_nll(rng: np.random.Generator) -> Any:
    # Weights are whole numbers here: they are constants to the loss and get no gradient.
    yield Sample((rng.normal(size=(4, 3)), np.array([0, 2, -100, 1])))
    yield Sample((rng.normal(size=(2, 3, 2)), np.array([[0, 2], [1, 1]]), np.array([1, 2, 1])))
    yield Sample((rng.normal(size=3), np.array(1)), {"reduction": "sum"})


@operator(_sample_nll, torch="nn.functional.nll_loss", method=False)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the input at each target's class.

    Args:
        input: (N, C), (N, C, ...) or (C,), logarithms of probabilities.
        target: (N,), (N, ...) or (), classes.
        weight: (C,), a factor for each class; the mean is divided by the factors' sum.
        ignore_index: a target that counts for nothing.
        size_average, reduce, reduction: "mean", "sum" or "none".

    Raises CORE-0437, CORE-0240, CORE-0433 where the target or the weight does not fit, CORE-0430.
    """
    how = reduction_of(size_average, reduce, reduction)
    _check_reduction("nll_loss", how)
    x = floating(input)
    index, counted = class_targets("nll_loss", x, target, ignore_index)
    classes = np.where(counted, index, 0)
    weights = _class_weight("nll_loss", x, weight)
    factors = (
        counted.astype(x.array.dtype) if weights is None else np.where(counted, weights[classes], 0)
    )
    axis = class_axis(x)
    chosen = x.gather(axis, wrap(np.expand_dims(classes, axis))).squeeze(axis)
    loss = -weighted(chosen, factors.astype(x.array.dtype))
    if how == "mean":
        result: Tensor = loss.sum() / float(factors.sum(dtype=np.float64))
        return result
    return loss.sum() if how == "sum" else loss


def _sample_cross_entropy(rng: np.random.Generator) -> Any:
    x, target = rng.normal(size=(4, 3)), np.array([0, 2, -100, 1])
    yield Sample((x, target))
    yield Sample((x, target, np.array([1, 2, 1])), {"label_smoothing": 0.1, "reduction": "sum"})
    yield Sample((rng.normal(size=(2, 3, 2)), np.array([[0, 2], [1, 1]])), {"reduction": "none"})
    yield Sample((x, rng.uniform(0, 1, (4, 3))), {"label_smoothing": 0.2})


@operator(_sample_cross_entropy, torch="nn.functional.cross_entropy", method=False)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nll_loss(log_softmax(input), target)`; targets may be probabilities.

    Args:
        input: (N, C), (N, C, ...) or (C,), logits.
        target: (N,), (N, ...) or (), classes; or probabilities of the input's shape.
        weight: (C,), a factor for each class; the mean is divided by the factors of the targets,
            for probabilities by their number.
        ignore_index: a class that counts for nothing.
        size_average, reduce, reduction: "mean", "sum" or "none".
        label_smoothing: the part of each target that is spread over all classes.

    Raises CORE-0437, CORE-0240, CORE-0433 where the target or the weight does not fit, CORE-0431
    for a smoothing outside [0, 1], CORE-0430.
    """
    how = reduction_of(size_average, reduce, reduction)
    _check_reduction("cross_entropy", how)
    if not 0 <= label_smoothing <= 1:
        raise refuse(
            "CORE-0431", operator="cross_entropy", argument="label_smoothing",
            given=float(label_smoothing),
            wanted="from 0 to 1",
        )  # fmt: skip
    x = floating(input)
    if target.dtype.is_floating_point and target.shape == x.shape:
        return _of_probabilities(x, target, weight, how, label_smoothing)
    index, counted = class_targets("cross_entropy", x, target, ignore_index)
    weights = _class_weight("cross_entropy", x, weight)
    if weights is not None:
        weights = weights.astype(x.array.dtype)
    if how == "mean":
        if weights is None:
            divisor = float(np.count_nonzero(counted))
        else:
            divisor = float(weights[index[counted]].sum(dtype=np.float64))
    else:
        divisor = 1.0
    return _of_classes(x, index, weights, ignore_index, label_smoothing, how, divisor)


def _rows(array: Array, axis: int) -> Array:
    """The array as rows of classes, without gaps, in the type that is computed in."""
    moved = np.moveaxis(widened(array), axis, -1)
    return np.ascontiguousarray(moved).reshape(-1, moved.shape[-1])


def _of_classes(
    x: Tensor, index: Array, weights: Array | None, ignored: int, smoothing: float, reduction: str,
    divisor: float,
) -> Tensor:  # fmt: skip
    rows = _rows(x.array, class_axis(x))
    targets = np.ascontiguousarray(index.reshape(-1))
    held = None if weights is None else np.ascontiguousarray(widened(weights))
    forward = kernels.cross_entropy if rows.dtype == np.float32 else kernels.cross_entropy_reference
    if rows.size:
        loss, log_sum = forward(rows, targets, held, ignored, smoothing)
    else:
        loss, log_sum = np.zeros(len(rows), rows.dtype), np.zeros(len(rows), rows.dtype)
    values = (targets, held, ignored, smoothing, reduction, divisor, log_sum)
    array: Any = loss.reshape(index.shape)
    if reduction != "none":
        with np.errstate(invalid="ignore"):
            array = np.asarray(loss.sum(dtype=np.float64) / np.float64(divisor))
    return record(array.astype(x.array.dtype), cross_entropy_backward, (x,), (x,), values)


def cross_entropy_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    targets, weights, ignored, smoothing, reduction, divisor, log_sum = node.values
    axis = class_axis(x)
    if MODE.recording:
        return (_recorded(grad, x, node.values),)
    rows = _rows(x.array, axis)
    scale = np.empty(len(rows), rows.dtype)
    scale[...] = grad.array.reshape(-1)
    if reduction == "mean":
        scale /= rows.dtype.type(divisor)
    fast = rows.dtype == np.float32
    backward = kernels.cross_entropy_backward if fast else kernels.cross_entropy_backward_reference
    found = backward(scale, rows, targets, weights, log_sum, ignored, smoothing)
    shape = x.array.shape
    moved = found.reshape((*shape[:axis], *shape[axis + 1 :], shape[axis]))
    return (wrap(np.moveaxis(moved, -1, axis)),)


def _recorded(grad: Tensor, x: Tensor, values: Any) -> Tensor:
    """The gradient in operators: of (a + B) softmax - a one_hot - b w, as in `softmax.c`."""
    targets, weights, ignored, smoothing, reduction, divisor, _ = values
    axis, shape = class_axis(x), x.array.shape
    classes, dtype = shape[axis], x.array.dtype
    counted = targets != ignored
    chosen = np.where(counted, targets, 0)
    factors = np.ones(classes, dtype) if weights is None else weights.astype(dtype)
    a = np.where(counted, (1 - smoothing) * factors[chosen], 0).astype(dtype)
    b = np.where(counted, smoothing / classes, 0).astype(dtype)
    constant = b[:, None] * factors
    constant[np.arange(len(chosen)), chosen] += a
    outer = (*shape[:axis], *shape[axis + 1 :])

    def spread(rows: Array) -> Tensor:
        return wrap(np.moveaxis(rows.reshape((*outer, rows.shape[1])), -1, axis))

    slopes = softmax(x, axis) * spread((a + b * factors.sum())[:, None]) - spread(constant)
    result: Tensor = slopes * (grad.unsqueeze(axis) if reduction == "none" else grad / divisor)
    return result


def _of_probabilities(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    axis = class_axis(x)
    classes = x.array.shape[axis]
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    terms = log_softmax(x, axis) * target
    weights = _class_weight("cross_entropy", x, weight)
    if weights is not None:
        terms = terms * wrap(weights.reshape((-1,) + (1,) * (x.array.ndim - axis - 1)))
    result: Tensor = -terms.sum(axis) if reduction == "none" else -terms.sum()
    return result / (x.array.size / classes) if reduction == "mean" else result


# -- margins between classes -----------------------------------------------------------------------


def _sample_multi_margin(rng: np.random.Generator) -> Any:
    x, target = rng.normal(size=(3, 4)), np.array([0, 3, 1])
    yield Sample((x, target))
    yield Sample((x, target, 2, 0.5, np.array([1, 2, 1, 3])), {"reduction": "sum"})


@operator(_sample_multi_margin, torch="nn.functional.multi_margin_loss", method=False)
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes of max(0, margin - x[target] + x[class])^p, without the target itself.

    Args:
        input: (N, C) or (C,).
        target: (N,) or (), classes.
        p: 1 or 2.
        margin: how far the target's score must lead.
        weight: (C,), a factor for each target's class.
        size_average, reduce, reduction: "mean", "sum" or "none".

    Raises CORE-0437, CORE-0240, CORE-0433, CORE-0431 for another p, CORE-0430.
    """
    if p not in (1, 2):
        raise refuse(
            "CORE-0431", operator="multi_margin_loss", argument="p", given=float(p), wanted="1 or 2"
        )
    x = floating(input)
    single = x.array.ndim < 2
    if single:
        x = x.reshape((1, -1))
    flat = target.reshape((-1,)) if single else target
    index, _ = class_targets("multi_margin_loss", x, flat, -(2**62))
    weights = _class_weight("multi_margin_loss", x, weight)
    own = x.gather(1, wrap(index[:, None]))
    loss = (margin - own + x).clamp_min(0)
    if p == 2:
        loss = loss * loss
    others = np.ones(x.array.shape, x.array.dtype)
    others[np.arange(len(index)), index] = 0
    if weights is not None:
        others = others * weights.astype(x.array.dtype)[index][:, None]
    loss = weighted(loss, others).sum(1) / x.array.shape[1]
    how = reduction_of(size_average, reduce, reduction)
    return reduced("multi_margin_loss", loss.reshape(()) if single else loss, how)


def _sample_multilabel(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 4))
    yield Sample((x, np.array([[1, 3, -1, 0], [0, -1, 2, 2]])))
    yield Sample((x[0], np.array([2, -1, 0, 0])), {"reduction": "sum"})


@operator(_sample_multilabel, torch="nn.functional.multilabel_margin_loss", method=False)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The sum of max(0, 1 - x[target] + x[other]) over targets and other classes, divided by the
    classes.

    Args:
        input: (N, C) or (C,).
        target: of that shape, int64: the classes of each row, ended by -1.
        size_average, reduce, reduction: "mean", "sum" or "none".

    Raises CORE-0437 for a target of another shape, CORE-0240 for one that is no class, CORE-0430.
    """
    x, index = floating(input), target.array
    if index.shape != x.array.shape or index.dtype.kind not in "iu" or x.array.ndim > 2:
        raise refuse(
            "CORE-0437", operator="multilabel_margin_loss",
            wanted=f"whole numbers of shape {list(x.shape)}",
            given=f"{target.dtype.name} of shape {list(index.shape)}",
        )  # fmt: skip
    single = x.array.ndim < 2
    classes = index.shape[-1] if index.ndim else 1
    scores, index = x.reshape((-1, classes)), index.reshape(-1, classes)
    there = np.cumprod(index >= 0, axis=1).astype(bool)
    named = np.where(there, index, 0)
    if named.size and int(named.max()) >= classes:
        raise refuse(
            "CORE-0240",
            operator="multilabel_margin_loss",
            index=int(named.max()),
            dim=1,
            extent=classes,
        )
    positive = np.zeros(index.shape, bool)
    rows, places = np.nonzero(there)
    positive[rows, index[rows, places]] = True
    own = scores.gather(1, wrap(named))
    gaps = (1 - own.unsqueeze(2) + scores.unsqueeze(1)).clamp_min(0)
    pairs = there[:, :, None] & ~positive[:, None, :]
    loss = weighted(gaps, pairs).sum((1, 2)) / classes
    how = reduction_of(size_average, reduce, reduction)
    return reduced("multilabel_margin_loss", loss.reshape(()) if single else loss, how)


def _sample_multilabel_soft(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.uniform(0, 1, (2, 3))
    yield Sample((x, y))
    yield Sample((x, y, rng.uniform(0.5, 2, 3)), {"reduction": "none"})


@operator(_sample_multilabel_soft, torch="nn.functional.multilabel_soft_margin_loss", method=False)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes (the last axis) of binary cross-entropy with logits.

    Raises CORE-0201 where the weight does not broadcast, CORE-0430.
    """
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input.array.shape[-1]
    how = reduction_of(size_average, reduce, reduction)
    return reduced("multilabel_soft_margin_loss", loss, how)
