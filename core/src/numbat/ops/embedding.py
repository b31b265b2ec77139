"""Rows of a table by their numbers, alone and in bags; and numbers as one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.in_place import bump
from numbat.autograd.tape import Node, record
from numbat.ops.accumulating import accumulated_at
from numbat.ops.mapping import weighted, widened
from numbat.ops.registry import Sample, operator
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "embedding", "embedding_bag", "one_hot",
]  # fmt: skip


def _checked(name: str, index: Array, extent: int) -> Array:
    """Row numbers.

    Raises CORE-0437 for numbers that are not whole, CORE-0240 for one outside the table.
    """
    if index.dtype.kind not in "iu":
        raise refuse("CORE-0437", operator=name, wanted="whole numbers", given=str(index.dtype))
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= extent:
            bad = low if low < 0 else high
            raise refuse("CORE-0240", operator=name, index=bad, dim=0, extent=extent)
    return index


def _padding(padding_idx: int | None, extent: int) -> int:
    """The padding row counted from the front; -1 where there is none."""
    if padding_idx is None:
        return -1
    if not -extent <= padding_idx < extent:
        raise refuse("CORE-0240", operator="embedding", index=padding_idx, dim=0, extent=extent)
    return padding_idx % extent


def _renormalise(weight: Tensor, index: Array, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up and are longer than `max_norm` down to it, in place."""
    rows = np.unique(index)
    values = widened(weight.array[rows])
    if norm_type == float("inf"):
        norms = np.abs(values).max(axis=1)
    else:
        norms = (np.abs(values) ** norm_type).sum(axis=1) ** (1 / norm_type)
    long = norms > max_norm
    if long.any():
        scaled = values[long] * (max_norm / (norms[long] + 1e-7))[:, None]
        weight.array[rows[long]] = scaled.astype(weight.array.dtype)
        bump(weight)


def _sample_embedding(rng: np.random.Generator) -> Any:
    # No sample names its padding row: that one's gradient is zero, whatever differences say.
    index = np.array([[0, 2, 2], [3, 1, 0]])
    yield Sample((index, rng.normal(size=(4, 3))))
    yield Sample((index, rng.normal(size=(5, 3))), {"padding_idx": -1})


@operator(_sample_embedding, torch="nn.functional.embedding", method=False)
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of a table that are named by number.

    Args:
        input: any shape, whole numbers in [0, rows).
        weight: (rows, width).
        padding_idx: a row that gets no gradient.
        max_norm: longer rows are first scaled down to this length, in place.
        norm_type: the p of that length.
        scale_grad_by_freq: a row's gradient is divided by how often it was named.
        sparse: gradients are dense here all the same.

    Raises CORE-0437 for numbers that are not whole, CORE-0240 for one outside the table.
    """
    table = weight.array
    index = _checked("embedding", input.array, table.shape[0])
    padding = _padding(padding_idx, table.shape[0])
    if max_norm is not None:
        _renormalise(weight, index, max_norm, norm_type)
    values = (index, table.shape[0], padding, scale_grad_by_freq)
    return record(table[index], embedding_backward, (weight,), values=values)


def embedding_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (rows_added(grad, *node.values),)


def rows_added(grad: Tensor, index: Array, extent: int, padding: int, by_frequency: bool) -> Tensor:
    """A table of zeros with the rows of `grad` added at their numbers: the gradient of
    `embedding`."""
    flat = index.reshape(-1)
    rows = grad.array.reshape(flat.size, -1) if flat.size else grad.array.reshape(0, grad.shape[-1])
    if padding >= 0:
        kept = flat != padding
        if not kept.all():
            flat, rows = flat[kept], rows[kept]
    if by_frequency:
        counts = np.bincount(flat, minlength=extent)
        rows = rows / counts[flat][:, None].astype(rows.dtype)
    table = accumulated_at(np.zeros((extent, rows.shape[1]), grad.array.dtype), (flat,), rows)
    values = (index, extent, padding, by_frequency)
    return record(table, rows_added_backward, (grad,), values=values)


def rows_added_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    index, extent, padding, by_frequency = node.values
    factors = np.ones(index.shape)
    if padding >= 0:
        factors[index == padding] = 0
    if by_frequency:
        factors = factors / np.maximum(np.bincount(index.reshape(-1), minlength=extent), 1)[index]
    rows = record(grad.array[index], embedding_backward, (grad,), values=(index, extent, -1, False))
    return (weighted(rows, np.broadcast_to(factors[..., None], rows.shape)),)


# -- bags ------------------------------------------------------------------------------------------


def _sample_bag(rng: np.random.Generator) -> Any:
    table, index, starts = rng.normal(size=(4, 3)), np.array([0, 2, 1, 3, 3]), np.array([0, 2, 2])
    yield Sample((index, table, starts))
    yield Sample((index, table, starts), {"mode": "sum", "per_sample_weights": rng.normal(size=5)})
    yield Sample((index, table, starts), {"mode": "max", "padding_idx": 1})
    yield Sample((np.array([[0, 1], [2, 1]]), table), {"mode": "mean"})


@operator(_sample_bag, torch="nn.functional.embedding_bag", method=False)
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or maximum of the rows of a table that each bag names.

    Args:
        input: (bags, numbers), or (numbers,) that `offsets` cut into bags.
        weight: (rows, width).
        offsets: (bags,), where each bag begins in `input`.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in `embedding`.
        mode: "sum", "mean" or "max"; an empty bag gives zeros.
        per_sample_weights: of the input's shape, factors of the rows in a sum.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: a number that counts for nothing.

    Raises CORE-0430 for another mode, CORE-0437 where offsets or weights do not go with the input,
    CORE-0240 for a number outside the table.
    """
    if mode not in ("sum", "mean", "max"):
        raise refuse(
            "CORE-0430",
            operator="embedding_bag",
            argument="mode",
            given=str(mode),
            known=["sum", "mean", "max"],
        )
    index, bag, bags = _bags(input, offsets, include_last_offset)
    _check_weights(input, per_sample_weights, mode)
    _checked("embedding_bag", index, weight.array.shape[0])
    padding = _padding(padding_idx, weight.array.shape[0])
    kept = np.flatnonzero(index != padding)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape((-1,))
    if kept.size != index.size:
        index, bag = index[kept], bag[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[wrap(kept)]
    rows = embedding(wrap(index), weight, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if mode == "max":
        return _largest(rows, bag, bags)
    summed = rows_added(rows, bag, bags, -1, False)
    if mode == "sum":
        return summed
    counts = np.maximum(np.bincount(bag, minlength=bags), 1).astype(summed.array.dtype)
    return summed / wrap(counts[:, None])


def _check_weights(input: Tensor, weights: Tensor | None, mode: str) -> None:
    if weights is not None and (mode != "sum" or weights.shape != input.shape):
        raise refuse(
            "CORE-0437", operator="embedding_bag",
            wanted="weights of the input's shape, and mode='sum'",
            given=f"weights of shape {list(weights.shape)}, mode={mode!r}",
        )  # fmt: skip


def _bags(input: Tensor, offsets: Tensor | None, with_end: bool) -> tuple[Array, Array, int]:
    """All numbers in a row, the bag of each, and how many bags there are."""
    numbers = input.array
    if numbers.ndim == 2 and offsets is None:
        bags, width = numbers.shape
        return numbers.reshape(-1), np.repeat(np.arange(bags), width), bags
    if numbers.ndim != 1 or offsets is None or offsets.array.ndim != 1:
        raise refuse(
            "CORE-0437", operator="embedding_bag", wanted="two axes, or one axis and offsets",
            given=f"shape {list(numbers.shape)}" + ("" if offsets is None else " and offsets"),
        )  # fmt: skip
    starts = offsets.array
    bags = starts.size - 1 if with_end else starts.size
    if starts.size and (
        starts[0] != 0 or int(starts[-1]) > numbers.size or (np.diff(starts) < 0).any()
    ):
        raise refuse(
            "CORE-0437", operator="embedding_bag",
            wanted="rising offsets that begin with 0 within the input",
            given=f"{starts.size} offsets",
        )  # fmt: skip
    bag = np.searchsorted(starts[:bags], np.arange(numbers.size), side="right") - 1
    return numbers, bag, bags


def _largest(rows: Tensor, bag: Array, bags: int) -> Tensor:
    """The maximum of each bag's rows, column by column; of equal ones the first gets the
    gradient."""
    width = rows.array.shape[1]
    if not bag.size:
        return wrap(np.zeros((bags, width), rows.array.dtype))
    starts = np.searchsorted(bag, np.arange(bags))
    full = np.bincount(bag, minlength=bags) > 0
    top = np.maximum.reduceat(rows.array, starts[full], axis=0)
    place = np.cumsum(full) - 1
    places = np.where(rows.array == top[place[bag]], np.arange(bag.size)[:, None], bag.size)
    first = np.zeros((bags, width), np.int64)
    first[full] = np.minimum(np.minimum.reduceat(places, starts[full], axis=0), bag.size - 1)
    chosen = rows.gather(0, wrap(first))
    return weighted(chosen, np.broadcast_to(full[:, None], (bags, width)))


def _sample_one_hot(rng: np.random.Generator) -> Any:
    yield Sample((np.array([0, 2, 1]),))
    yield Sample((np.array([[0, 2], [1, 1]]), 4))


@operator(_sample_one_hot, torch="nn.functional.one_hot", differentiable=False, method=False)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at each number: int64, of the input's shape and `num_classes` more.

    Args:
        tensor: any shape, int64, none negative.
        num_classes: how many classes; one more than the largest number for -1.

    Raises CORE-0437 for other numbers than int64, or none to count classes by, CORE-0240 for a
    number outside the classes.
    """
    index = tensor.array
    if index.dtype != np.int64 or (num_classes == -1 and not index.size):
        raise refuse(
            "CORE-0437",
            operator="one_hot",
            wanted="int64 numbers, or num_classes",
            given=tensor.dtype.name,
        )
    classes = int(index.max()) + 1 if num_classes == -1 else num_classes
    _checked("one_hot", index, classes)
    out = np.zeros((*index.shape, classes), np.int64)
    np.put_along_axis(out, index[..., None], 1, axis=-1)
    return wrap(out)
