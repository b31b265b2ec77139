"""Losses element by element and over pairs of vectors; those over classes stand in
`class_losses.py`.

Names, arguments and defaults are PyTorch's; `size_average` and `reduce` are its old names for
`reduction`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.activations import logsigmoid, softplus
from numbat.ops.broadcasting import check_broadcast
from numbat.ops.distances import pairwise_distance
from numbat.ops.extremes import minimum, where
from numbat.ops.mapping import widened
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import identity_backward
from numbat.tensors.promotion import operands
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "dice_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss",
    "mse_loss", "poisson_nll_loss", "sigmoid_focal_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the old arguments ask for, where they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    """The loss itself, its mean or its sum.

    Raises CORE-0430 for another reduction.
    """
    if reduction in ("mean", "sum"):
        result: Tensor = loss.mean() if reduction == "mean" else loss.sum()
        return result
    if reduction == "none":
        return loss
    raise refuse(
        "CORE-0430",
        operator=name,
        argument="reduction",
        given=str(reduction),
        known=["none", "mean", "sum"],
    )


def _pair(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one type.

    Raises CORE-0201 where their shapes do not broadcast.
    """
    check_broadcast(name, input.array.shape, target.array.shape)
    return operands(input, target)


def _weighted(
    name: str, loss: Tensor, weight: Tensor | None, reduction: str, *, by_weight: bool = True
) -> Tensor:
    """The loss times a weight; its mean is divided by the weights' sum where `by_weight`."""
    if weight is None:
        return reduced(name, loss, reduction)
    if weight.shape != loss.shape:
        raise refuse(
            "CORE-0433", operator=name, shape=list(loss.shape), weight_shape=list(weight.shape)
        )
    if reduction == "mean" and by_weight:
        result: Tensor = (loss * weight).sum() / weight.sum()
        return result
    return reduced(name, loss * weight, reduction)


# -- distances of values ---------------------------------------------------------------------------


def _sample_pair(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    y = np.where(abs(abs(x - y) - 1) < 0.1, y + 0.3, y)
    yield Sample((x, y))
    yield Sample((x, y), {"reduction": "sum"})
    yield Sample((x, y), {"reduction": "none"})


@operator(_sample_pair, torch="nn.functional.mse_loss", method=False)
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(input - target)^2. Raises CORE-0201, CORE-0430, CORE-0433."""
    x, y = _pair("mse_loss", input, target)
    how = reduction_of(size_average, reduce, reduction)
    return _weighted("mse_loss", (x - y).square(), weight, how)


@operator(_sample_pair, torch="nn.functional.l1_loss", method=False)
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """|input - target|. Raises CORE-0201, CORE-0430, CORE-0433."""
    x, y = _pair("l1_loss", input, target)
    how = reduction_of(size_average, reduce, reduction)
    return _weighted("l1_loss", (x - y).abs(), weight, how)


@operator(_sample_pair, torch="nn.functional.smooth_l1_loss", method=False)
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """A square below `beta`, the distance less beta / 2 above.

    Raises CORE-0201, CORE-0430, CORE-0431 for a negative beta. Source: arXiv 1504.08083.
    """
    if beta < 0:
        raise refuse(
            "CORE-0431",
            operator="smooth_l1_loss",
            argument="beta",
            given=float(beta),
            wanted="0 or more",
        )
    how = reduction_of(size_average, reduce, reduction)
    if beta == 0:
        return l1_loss(input, target, reduction=how)
    x, y = _pair("smooth_l1_loss", input, target)
    gap = x - y
    near = wrap(np.abs(gap.array) < beta)
    return reduced(
        "smooth_l1_loss", where(near, gap * gap * (0.5 / beta), gap.abs() - 0.5 * beta), how
    )


@operator(_sample_pair, torch="nn.functional.huber_loss", method=False)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Half the square up to `delta`, delta times (distance - delta / 2) beyond.

    Raises CORE-0201, CORE-0430, CORE-0431 for a delta that is not positive.
    """
    if delta <= 0:
        raise refuse(
            "CORE-0431",
            operator="huber_loss",
            argument="delta",
            given=float(delta),
            wanted="above 0",
        )
    x, y = _pair("huber_loss", input, target)
    gap = x - y
    near = wrap(np.abs(gap.array) < delta)
    loss = where(near, gap * gap * 0.5, (gap.abs() - 0.5 * delta) * delta)
    return _weighted("huber_loss", loss, weight, reduction, by_weight=False)


# -- probabilities of two outcomes -----------------------------------------------------------------


def _sample_probabilities(rng: np.random.Generator) -> Any:
    x, y = rng.uniform(0.1, 0.9, (2, 3)), rng.uniform(0.1, 0.9, (2, 3))
    yield Sample((x, y))
    yield Sample((x, y, rng.uniform(0.5, 2, (2, 3))), {"reduction": "sum"})


@operator(_sample_probabilities, torch="nn.functional.binary_cross_entropy", method=False)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-(t log p + (1 - t) log(1 - p)); the logarithms are held at -100, as PyTorch holds them.

    Raises CORE-0433 for shapes that differ, CORE-0438 for a probability outside [0, 1], CORE-0430.
    """
    if input.shape != target.shape:
        raise refuse(
            "CORE-0433",
            operator="binary_cross_entropy",
            shape=list(input.shape),
            weight_shape=list(target.shape),
        )
    x, y = operands(input, target)
    if x.array.size and not bool(((x.array >= 0) & (x.array <= 1)).all() | np.isnan(x.array).any()):
        raise refuse("CORE-0438", operator="binary_cross_entropy", shape=list(x.shape))
    loss = record(_binary(widened(x.array), widened(y.array)).astype(x.array.dtype),
                  binary_cross_entropy_backward, (x, y), (x, y))  # fmt: skip
    how = reduction_of(size_average, reduce, reduction)
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, how)


def _binary(p: Array, t: Array) -> Any:
    with np.errstate(divide="ignore"):
        return (t - 1) * np.maximum(np.log1p(-p), -100) - t * np.maximum(np.log(p), -100)


def binary_cross_entropy_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    p, t = node.unpack()
    for_p = for_t = None
    if node.sources[0] is not None:
        for_p = grad * (p - t) / (p * (1 - p)).clamp_min(1e-12)
    if node.sources[1] is not None:
        for_t = grad * ((-p).log1p() - p.log())
    return for_p, for_t


def _sample_logits(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.uniform(0, 1, (2, 3))
    yield Sample((x, y))
    yield Sample((x, y), {"pos_weight": rng.uniform(0.5, 2, 3), "reduction": "sum"})


@operator(_sample_logits, torch="nn.functional.binary_cross_entropy_with_logits", method=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`binary_cross_entropy(sigmoid(input), target)` without overflow.

    Args:
        input: logits of any shape.
        target: of that shape, in [0, 1].
        weight: broadcasts; factors of the losses.
        size_average, reduce, reduction: "mean", "sum" or "none".
        pos_weight: broadcasts; factors of the positive part.

    Raises CORE-0433 for shapes that differ, CORE-0430.
    """
    if input.shape != target.shape:
        raise refuse(
            "CORE-0433", operator="binary_cross_entropy_with_logits", shape=list(input.shape),
            weight_shape=list(target.shape),
        )  # fmt: skip
    loss = _logit_loss(input, target, pos_weight)
    how = reduction_of(size_average, reduce, reduction)
    return reduced(
        "binary_cross_entropy_with_logits", loss if weight is None else loss * weight, how
    )


def _logit_loss(input: Tensor, target: Tensor, pos_weight: Tensor | None = None) -> Tensor:
    below = logsigmoid(input)
    if pos_weight is not None:
        below = below * ((pos_weight - 1) * target + 1)
    return (1 - target) * input - below


def _sample_focal(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.uniform(0, 1, (2, 3))
    yield Sample((x, y))
    yield Sample((x, y), {"alpha": -1, "gamma": 1.5, "reduction": "mean"})


@operator(_sample_focal, torch=None, method=False)
def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """Binary cross-entropy of logits times (1 - p_t)^gamma, so that easy examples count less.

    Args:
        inputs: logits of any shape.
        targets: of that shape, in [0, 1].
        alpha: the factor of positives, 1 - alpha that of negatives; none below 0.
        gamma: the exponent.
        reduction: "none", "mean" or "sum".

    Raises CORE-0433, CORE-0430. Source: arXiv 1708.02002; torchvision.ops.sigmoid_focal_loss.
    """
    p = inputs.sigmoid()
    loss = binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = loss * (1 - right) ** gamma
    if alpha >= 0:
        loss = loss * (targets * alpha + (1 - targets) * (1 - alpha))
    return reduced("sigmoid_focal_loss", loss, reduction)


def _sample_dice(rng: np.random.Generator) -> Any:
    x, y = rng.uniform(0, 1, (2, 2, 3)), rng.uniform(0, 1, (2, 2, 3))
    yield Sample((x, y))
    yield Sample((x, y), {"reduction": "none", "smooth": 0.5})


@operator(_sample_dice, torch=None, method=False)
def dice_loss(
    input: Tensor, target: Tensor, smooth: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """One less the Dice overlap of each channel of each example.

    1 - (2 sum p t + smooth) / (sum p + sum t + smooth), over all axes but the first two.

    Args:
        input: (N, C, ...), probabilities (after sigmoid or softmax).
        target: of that shape, in [0, 1].
        smooth: keeps empty channels defined: both empty is a loss of 0.
        reduction: "mean", "sum" or "none", which gives (N, C).

    Raises CORE-0433 for shapes that differ or fewer than three axes, CORE-0430.
    Source: arXiv 1606.04797, with sums in the place of sums of squares.
    """
    if input.shape != target.shape or input.array.ndim < 3:
        raise refuse(
            "CORE-0433",
            operator="dice_loss",
            shape=list(input.shape),
            weight_shape=list(target.shape),
        )
    axes = tuple(range(2, input.array.ndim))
    both = (input * target).sum(axes)
    size = input.sum(axes) + target.sum(axes)
    return reduced("dice_loss", 1 - (both * 2 + smooth) / (size + smooth), reduction)


# -- likelihoods -----------------------------------------------------------------------------------


def _sample_kl(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.uniform(0.1, 0.9, (2, 3))
    yield Sample((x, y), {"reduction": "batchmean"})
    yield Sample((x, np.log(y)), {"log_target": True, "reduction": "sum"})


@operator(_sample_kl, torch="nn.functional.kl_div", method=False)
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """The Kullback-Leibler divergence, element by element: target (log target - input).

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms where `log_target`.
        size_average, reduce, reduction: "batchmean" divides the sum by the first extent.
        log_target: what `target` holds.

    Raises CORE-0201, CORE-0430.
    """
    x, y = _pair("kl_div", input, target)
    loss = y.exp() * (y - x) if log_target else y.xlogy(y) - y * x
    how = reduction_of(size_average, reduce, reduction)
    if how == "batchmean":
        total = loss.sum()
        result: Tensor = total / x.array.shape[0] if x.array.ndim else total
        return result
    return reduced("kl_div", loss, how)


def _sample_poisson(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.uniform(0.2, 4, (2, 3))
    yield Sample((x, y))
    yield Sample((np.exp(x), y), {"log_input": False, "full": True, "reduction": "sum"})


@operator(_sample_poisson, torch="nn.functional.poisson_nll_loss", method=False)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative logarithm of Poisson's likelihood of counts.

    Args:
        input: rates, or their logarithms where `log_input`.
        target: counts.
        log_input: what `input` holds.
        full: adds Stirling's term for counts above one.
        size_average, reduce, reduction: "mean", "sum" or "none".
        eps: added to rates before their logarithm.

    Raises CORE-0201, CORE-0430.
    """
    x, y = _pair("poisson_nll_loss", input, target)
    loss = x.exp() - y * x if log_input else x - y * (x + eps).log()
    if full:
        large = wrap(y.array > 1)
        safe = where(large, y, 1.0)
        stirling = safe * safe.log() - safe + (safe * (2 * math.pi)).log() * 0.5
        loss = loss + where(large, stirling, 0.0)
    return reduced("poisson_nll_loss", loss, reduction_of(size_average, reduce, reduction))


def _sample_gaussian(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    yield Sample((x, y, rng.uniform(0.5, 2, (2, 3))))
    yield Sample((x, y, rng.uniform(0.5, 2, (2,))), {"full": True, "reduction": "sum"})


@operator(_sample_gaussian, torch="nn.functional.gaussian_nll_loss", method=False)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative logarithm of the normal likelihood: (log var + (input - target)^2 / var) / 2.

    Args:
        input, target: means and observations.
        var: variances, of the input's shape, without its last axis or with an extent of one; or a
            number.
        full: adds log(2 pi) / 2.
        eps: variances count as this at least; the gradient passes all the same.
        reduction: "mean", "sum" or "none".

    Raises CORE-0431 for a negative variance, CORE-0433 for variances of another shape, CORE-0430.
    """
    x, y = _pair("gaussian_nll_loss", input, target)
    if not isinstance(var, Tensor):
        return gaussian_nll_loss(
            x, y, wrap(np.full(x.shape, var, x.array.dtype)), full, eps, reduction
        )
    if var.array.size and var.array.min() < 0:
        raise refuse(
            "CORE-0431",
            operator="gaussian_nll_loss",
            argument="var",
            given=float(var.array.min()),
            wanted="0 or more",
        )
    shape, given = x.array.shape, var.array.shape
    if given != shape:
        if shape[:-1] == given:
            var = var.unsqueeze(-1)
        elif len(shape) != len(given) or [
            b for a, b in zip(shape, given, strict=True) if a != b
        ] != [1]:
            raise refuse(
                "CORE-0433",
                operator="gaussian_nll_loss",
                shape=list(shape),
                weight_shape=list(given),
            )
    assert isinstance(var, Tensor)
    held = _at_least(var, eps)
    loss = (held.log() + (x - y).square() / held) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced("gaussian_nll_loss", loss, reduction)


def _at_least(var: Tensor, eps: float) -> Tensor:
    """Variances held from below, with the gradient of the variances themselves."""
    return record(np.maximum(var.array, var.array.dtype.type(eps)), identity_backward, (var,))


# -- margins of two classes and of pairs -----------------------------------------------------------


def _sample_signs(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.choice(np.array([-1.0, 1.0]), (2, 3))))


def _only_first(samples: Callable[..., Any]) -> Callable[..., Any]:
    """Samples whose targets are whole numbers, so that no gradient of them is looked at."""

    def make(rng: np.random.Generator) -> Any:
        for sample in samples(rng):
            *rest, target = sample.args
            yield Sample((*rest, target.astype(np.int64)), sample.keywords)

    return make


@operator(_only_first(_sample_signs), torch="nn.functional.soft_margin_loss", method=False)
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """log(1 + exp(-target * input)) for targets of 1 and -1. Raises CORE-0201, CORE-0430."""
    x, y = _pair("soft_margin_loss", input, target)
    how = reduction_of(size_average, reduce, reduction)
    return reduced("soft_margin_loss", softplus(-(y * x), 1, math.inf), how)


@operator(_only_first(_sample_signs), torch="nn.functional.hinge_embedding_loss", method=False)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The distance where the target is 1, max(0, margin - distance) where it is -1.

    Raises CORE-0201, CORE-0430.
    """
    check_broadcast("hinge_embedding_loss", input.array.shape, target.array.shape)
    apart = where(wrap(target.array != 1), (margin - input).clamp_min(0), 0.0)
    together = where(wrap(target.array != -1), input, 0.0)
    how = reduction_of(size_average, reduce, reduction)
    return reduced("hinge_embedding_loss", together + apart, how)


def _sample_ranking(rng: np.random.Generator) -> Any:
    yield Sample(
        (rng.normal(size=4), rng.normal(size=4), rng.choice(np.array([-1.0, 1.0]), 4)),
        {"margin": 0.3},
    )


@operator(_only_first(_sample_ranking), torch="nn.functional.margin_ranking_loss", method=False)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin - target (input1 - input2)): target 1 ranks the first higher, -1 the second.

    Raises CORE-0201, CORE-0430.
    """
    check_broadcast(
        "margin_ranking_loss", input1.array.shape, input2.array.shape, target.array.shape
    )
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return reduced("margin_ranking_loss", loss, reduction_of(size_average, reduce, reduction))


def _sample_cosine(rng: np.random.Generator) -> Any:
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    yield Sample((x, y, np.array([1.0, -1, 1, -1])), {"margin": -0.9})


@operator(_only_first(_sample_cosine), torch="nn.functional.cosine_embedding_loss", method=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cos for targets of 1, max(0, cos - margin) for targets of -1.

    Args:
        input1, input2: (N, D) or (D,).
        target: (N,) or ().
        margin: from -1 to 1.
        size_average, reduce, reduction: "mean", "sum" or "none".

    Raises CORE-0201, CORE-0430.
    """
    axis = target.array.ndim
    x, y = _pair("cosine_embedding_loss", input1, input2)
    both = (x * y).sum(axis)
    cosine = both / (((x * x).sum(axis) + 1e-12) * ((y * y).sum(axis) + 1e-12)).sqrt()
    together = where(wrap(target.array == 1), 1 - cosine, 0.0)
    apart = where(wrap(target.array == -1), (cosine - margin).clamp_min(0), 0.0)
    how = reduction_of(size_average, reduce, reduction)
    return reduced("cosine_embedding_loss", together + apart, how)


def _sample_triplet(rng: np.random.Generator) -> Any:
    three = tuple(rng.normal(size=(3, 4)) for _ in range(3))
    yield Sample(three, {"margin": 5.0})
    yield Sample(three, {"margin": 5.0, "swap": True, "reduction": "sum"})


@operator(_sample_triplet, torch="nn.functional.triplet_margin_loss", method=False)
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin + distance to the positive - distance to the negative).

    Args:
        anchor, positive, negative: (N, D) or (D,).
        margin: how much nearer the positive must be.
        p, eps: of the distance, as in `pairwise_distance`.
        swap: takes the positive's distance to the negative where that is smaller.
        size_average, reduce, reduction: "mean", "sum" or "none".

    Raises CORE-0201, CORE-0430, CORE-0431 for a margin that is not positive.
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    how = reduction_of(size_average, reduce, reduction)
    return _triplet(
        "triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, how
    )


def _triplet(
    name: str, three: tuple[Tensor, Tensor, Tensor], distance: Callable[[Tensor, Tensor], Tensor],
    margin: float, swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    if margin <= 0:
        raise refuse(
            "CORE-0431", operator=name, argument="margin", given=float(margin), wanted="above 0"
        )
    anchor, positive, negative = three
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(name, (near - far + margin).clamp_min(0), reduction)


@operator(_sample_triplet, torch="nn.functional.triplet_margin_with_distance_loss", method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with a distance of the caller's; `pairwise_distance` when left out."""
    distance = pairwise_distance if distance_function is None else distance_function
    three = (anchor, positive, negative)
    return _triplet("triplet_margin_with_distance_loss", three, distance, margin, swap, reduction)
