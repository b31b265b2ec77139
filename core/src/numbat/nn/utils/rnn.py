"""Sequences of different lengths in one tensor: padded, or packed step by step.

A packed sequence holds, for each step, the rows of all sequences that are that long, longest first,
so that a recurrent layer computes nothing for padding. Source: PyTorch, `torch.nn.utils.rnn`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numbat import ops
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence(NamedTuple):
    """Sequences of different lengths, step by step.

    Attributes:
        data: (sum of lengths, *), all rows of the first step, then of the second, ...
        batch_sizes: how many rows each step has, int64.
        sorted_indices: where each packed sequence stood before sorting; None where all were sorted.
        unsorted_indices: where each sequence stands in the pack.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **keywords: Any) -> PackedSequence:
        """The pack with its data in another element type."""
        return self._replace(data=self.data.to(*args, **keywords))

    @property
    def is_cuda(self) -> bool:
        """False: memory is the CPU's."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    return None if permutation is None else wrap(np.argsort(permutation.array))


def _lengths(lengths: Any) -> Array:
    found = np.asarray(lengths.array if isinstance(lengths, Tensor) else list(lengths))
    if found.ndim != 1 or not found.size or found.min() < 1:
        raise refuse(
            "CORE-0610", lengths=found.reshape(-1).tolist(), because="each must be 1 or more"
        )
    return found.astype(np.int64)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences, (T, N, *) or (N, T, *) with `batch_first`, of the given lengths.

    Raises CORE-0610 for lengths that are not one a sequence, below 1 or above T, or, under
    `enforce_sorted`, that rise.
    """
    sizes = _lengths(lengths)
    order = None
    if enforce_sorted:
        if np.any(np.diff(sizes) > 0):
            raise refuse("CORE-0610", lengths=sizes.tolist(), because="they must fall or stay")
    else:
        order = np.argsort(-sizes, kind="stable")
        sizes = sizes[order]
        input = ops.index_select(input, 0 if batch_first else 1, wrap(order))
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    if len(sizes) != batch or sizes[0] > steps:
        raise refuse(
            "CORE-0610", lengths=sizes.tolist(),
            because=f"the input holds {batch} sequences of {steps} steps",
        )  # fmt: skip
    present = np.arange(sizes[0])[:, None] < sizes
    data = input[wrap(np.nonzero(present.reshape(-1))[0] // batch),
                 wrap(np.nonzero(present.reshape(-1))[0] % batch)]  # fmt: skip
    counts = wrap(present.sum(1))
    if order is None:
        return PackedSequence(data, counts)
    places = wrap(order)
    return PackedSequence(data, counts, places, invert_permutation(places))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The padded sequences, (T, N, *) or (N, T, *), and their lengths.

    Raises CORE-0610 where `total_length` is below the longest.
    """
    counts = sequence.batch_sizes.array
    steps, batch = len(counts), int(counts[0])
    if total_length is not None:
        if total_length < steps:
            raise refuse("CORE-0610", lengths=[steps], because=f"total_length is {total_length}")
        steps = total_length
    step = np.repeat(np.arange(len(counts)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    data = sequence.data
    whole = wrap(np.full((steps, batch, *data.shape[1:]), padding_value, data.array.dtype))
    padded = ops.index_put(whole, (wrap(step), wrap(row)), data)
    lengths = (np.arange(batch)[:, None] < counts).sum(1)
    if sequence.unsorted_indices is not None:
        padded = ops.index_select(padded, 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.array]
    return (padded.transpose(0, 1) if batch_first else padded), wrap(lengths)


def pad_sequence(
    sequences: Iterable[Tensor] | Tensor, batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Sequences (T_i, *) in one tensor (T, N, *), or (N, T, *), padded to the longest.

    Raises CORE-0608 for another `padding_side` than "left" or "right".
    """
    if padding_side not in ("left", "right"):
        raise refuse(
            "CORE-0608", module="pad_sequence", argument="padding_side", value=padding_side,
            wanted="left or right",
        )  # fmt: skip
    several = list(sequences)
    longest = max(len(one) for one in several)
    padded = []
    for one in several:
        if len(one) < longest:
            shape = (longest - len(one), *one.shape[1:])
            more = wrap(np.full(shape, padding_value, one.array.dtype))
            one = ops.cat([one, more] if padding_side == "right" else [more, one])
        padded.append(one)
    return ops.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each of its own length."""
    by_row = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [by_row[at, : int(size)] for at, size in enumerate(_lengths(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences (T_i, *); raises as `pack_padded_sequence`."""
    lengths = [len(one) for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a pack as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
