"""Connectionist temporal classification: the likelihood of a sequence without its alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.ops.losses import reduced
from numbat.ops.registry import Sample, operator
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "ctc_loss",
]  # fmt: skip


def _sample_ctc(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(5, 2, 4))
    x = x - np.log(np.exp(x).sum(axis=2, keepdims=True))
    targets = np.array([[1, 1, 2], [3, 0, 0]])
    yield Sample((x, targets, np.array([5, 4]), np.array([3, 1])))
    yield Sample((x, np.array([1, 2, 3]), (5, 5), (2, 1)), {"reduction": "sum", "blank": 0})
    yield Sample((x[:, 0], np.array([1, 2]), 5, 2), {"reduction": "none", "blank": 3})


@operator(_sample_ctc, torch="nn.functional.ctc_loss", twice=False, method=False)
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the logarithm of the summed likelihood of all alignments of each target.

    Args:
        log_probs: (T, N, C) or (T, C), logarithms of probabilities, as of `log_softmax`.
        targets: (N, S), or all in one row; whole numbers, none of them the blank.
        input_lengths, target_lengths: (N,), or a number without a batch.
        blank: the class of the blank.
        reduction: "none"; "sum"; or "mean" over the batch of losses divided by their targets'
            lengths.
        zero_infinity: gives 0, and no gradient, where a target has no alignment.

    The gradient is that of the function itself. PyTorch's has the probabilities added to it, which
    the gradient of `log_softmax` takes away again: through it, both are equal.

    Raises CORE-0437 where lengths or targets do not fit, CORE-0240 for a target that is no class,
    CORE-0430, CORE-0312 where a second derivative is asked for. Source: Graves et al. 2006.
    """
    x = floating(log_probs)
    single = x.array.ndim == 2
    if single:
        x = x.unsqueeze(1)
    labels, inputs, lengths = _labels(x, targets, input_lengths, target_lengths, blank)
    losses = _ctc(x, labels, inputs, lengths, blank, zero_infinity)
    if reduction == "mean":
        result: Tensor = (losses / wrap(np.maximum(lengths, 1).astype(losses.array.dtype))).mean()
        return result
    return reduced(
        "ctc_loss", losses.squeeze(0) if single and reduction == "none" else losses, reduction
    )


def _lengths(value: Any, batch: int, largest: int, name: str) -> Array:
    given = value.array if isinstance(value, Tensor) else np.asarray(value)
    given = given.reshape(-1)
    if (
        given.dtype.kind not in "iu"
        or given.size != batch
        or (given.size and not 0 <= int(given.min()) <= int(given.max()) <= largest)
    ):
        raise refuse(
            "CORE-0437", operator="ctc_loss", wanted=f"{batch} {name} from 0 to {largest}",
            given=", ".join(str(one) for one in given.tolist()),
        )  # fmt: skip
    return given.astype(np.int64)


def _labels(
    x: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int
) -> tuple[Array, Array, Array]:
    """The targets as rows of a batch, and the checked lengths of inputs and targets."""
    if x.array.ndim != 3 or targets.array.ndim > 2 or targets.array.dtype.kind not in "iu":
        raise refuse(
            "CORE-0437", operator="ctc_loss", wanted="(T, N, C) and whole numbers (N, S)",
            given=f"{list(x.shape)} and {targets.dtype.name} {list(targets.shape)}",
        )  # fmt: skip
    steps, batch, classes = x.array.shape
    given = targets.array
    inputs = _lengths(input_lengths, batch, steps, "input lengths")
    if given.ndim == 2:
        lengths = _lengths(target_lengths, batch, given.shape[1], "target lengths")
        rows = given.astype(np.int64)
    else:
        lengths = _lengths(target_lengths, batch, given.size, "target lengths")
        if int(lengths.sum()) != given.size and batch > 1:
            raise refuse(
                "CORE-0437", operator="ctc_loss", wanted=f"{int(lengths.sum())} targets in a row",
                given=str(given.size),
            )  # fmt: skip
        rows = np.zeros((batch, int(lengths.max(initial=0))), np.int64)
        starts = np.cumsum(lengths) - lengths
        for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            rows[row, :length] = given[start : start + length]
    named = rows[np.arange(rows.shape[1]) < lengths[:, None]]
    for bad in (
        *named[(named < 0) | (named >= classes)][:1].tolist(),
        *([blank] if not 0 <= blank < classes else []),
    ):
        raise refuse("CORE-0240", operator="ctc_loss", index=int(bad), dim=2, extent=classes)
    return rows, inputs, lengths


def _extended(labels: Array, lengths: Array, blank: int) -> tuple[Array, Array, Array]:
    """Labels with blanks between them; which places exist; and from which a label may follow the
    one before last without a blank."""
    batch, width = labels.shape
    states = np.full((batch, 2 * width + 1), blank, np.int64)
    states[:, 1::2] = np.where(np.arange(width) < lengths[:, None], labels, blank)
    there = np.arange(2 * width + 1) <= 2 * lengths[:, None]
    skips = np.zeros_like(there)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, there, skips & there


def _shifted(values: Array, by: int) -> Array:
    """Values moved along the last axis by one or two places, -inf where none comes."""
    out = np.full_like(values, -np.inf)
    if by > 0:
        out[:, by:] = values[:, :-by]
    else:
        out[:, :by] = values[:, -by:]
    return out


def _sum_of_logs(*terms: Array) -> Any:
    """log(sum(exp(terms))), -inf of nothing."""
    top = np.maximum.reduce(terms)
    held = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore"):
        return held + np.log(sum(np.exp(term - held) for term in terms))


def _ctc(
    x: Tensor, labels: Array, inputs: Array, lengths: Array, blank: int, zero_infinity: bool
) -> Tensor:
    """The loss of each sequence."""
    states, there, skips = _extended(labels, lengths, blank)
    probs = x.array.astype(np.float64)
    seen = np.take_along_axis(probs, np.broadcast_to(states, (len(probs), *states.shape)), axis=2)
    seen = np.where(there, seen, -np.inf)
    alphas = np.full(seen.shape, -np.inf)
    batch = np.arange(len(lengths))
    if len(seen):
        alphas[0, :, :2] = seen[0, :, :2]
    for step in range(1, len(seen)):
        before = alphas[step - 1]
        jumped = np.where(skips, _shifted(before, 2), -np.inf)
        alphas[step] = seen[step] + _sum_of_logs(before, _shifted(before, 1), jumped)
    last = np.maximum(inputs - 1, 0)
    if len(seen):
        ends = alphas[last, batch]
        final = ends[batch, 2 * lengths]
        other = np.where(lengths > 0, ends[batch, np.maximum(2 * lengths - 1, 0)], -np.inf)
        whole = np.where(
            inputs > 0, _sum_of_logs(final, other), np.where(lengths > 0, -np.inf, 0.0)
        )
    else:
        whole = np.where(lengths > 0, -np.inf, 0.0)
    losses = np.where(np.isneginf(whole) & zero_infinity, 0.0, -whole)
    values = (states, there, skips, seen, alphas, whole, inputs, lengths, zero_infinity)
    return record(losses.astype(x.array.dtype), ctc_backward, (x,), (x,), values)


def ctc_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    if MODE.recording:
        raise refuse("CORE-0312", operator="ctc_loss")
    (x,) = node.unpack()
    states, there, skips, seen, alphas, whole, inputs, lengths, zero_infinity = node.values
    batch = np.arange(len(lengths))
    later = np.full(there.shape, -np.inf)  # the likelihood of what follows a step, from each state
    ended = np.full(there.shape, -np.inf)
    ended[batch, 2 * lengths] = 0
    ended[batch, np.maximum(2 * lengths - 1, 0)] = 0
    follow = np.zeros_like(skips)
    follow[:, :-2] = skips[:, 2:]
    out = np.zeros(x.array.shape)
    for step in range(len(seen) - 1, -1, -1):
        if step < len(seen) - 1:
            onward = later + seen[step + 1]
            jumped = np.where(follow, _shifted(onward, -2), -np.inf)
            later = _sum_of_logs(onward, _shifted(onward, -1), jumped)
        later = np.where((inputs == step + 1)[:, None], ended, later)
        with np.errstate(invalid="ignore"):
            shares = np.exp(alphas[step] + later - whole[:, None])
        shares = np.where(there & (step < inputs)[:, None], shares, 0)
        for state in range(there.shape[1]):
            out[step, batch, states[:, state]] -= shares[:, state]
    out *= grad.array.astype(np.float64)[:, None]
    if zero_infinity:
        out[:, np.isneginf(whole)] = 0
    return (wrap(out.astype(x.array.dtype)),)
