"""A linear head and its cross-entropy under torch's name and arguments."""

from __future__ import annotations

from typing import Any

from numbat import ops
from numbat.tensors.tensor import Tensor

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    Class targets (N) of inputs (N, in) without class weights, reduced to one number, take the fused
    operator, which never forms all logits and has no second derivative (CORE-0312); all else goes
    the plain way.

    Args:
        input: (N, in) or (in).
        linear_weight: (classes, in), or (classes, d1, ..., in) for several losses a row.
        target: classes (N, d1, ...), or probabilities (N, classes, d1, ...).
        linear_bias: (classes, d1, ...).
        weight: (classes), how much each class counts.
        ignore_index: the class that counts for nothing; -100 when left out.
        options: taken as torch's, without effect: chunks are chosen by the operator.

    Source: PyTorch 2.13, `torch.nn.functional.linear_cross_entropy`.
    """
    ignored = -100 if ignore_index is None else ignore_index
    several = linear_weight.shape[1:-1]
    plain = input.ndim == 2 and not several and target.ndim == 1
    if plain and weight is None and reduction != "none" and not target.is_floating_point():
        return ops.linear_cross_entropy(
            input, linear_weight, target, linear_bias, ignore_index=ignored, reduction=reduction,
            label_smoothing=label_smoothing,
        )  # fmt: skip
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = ops.linear(input, flat, bias)
    if several:
        logits = logits.reshape(*input.shape[:-1], linear_weight.shape[0], *several)
    found: Tensor = ops.cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    return found
