"""The linear operator behind average pools, interpolation and padding: sums over places, axis by
axis."""

from __future__ import annotations

from numbat.autograd.tape import Node, record
from numbat.kernels.convolution import channels_first, channels_last
from numbat.kernels.resampling import Table, resample
from numbat.tensors.tensor import Array, Tensor


def resampled(array: Array, tables: tuple[Table, ...]) -> Array:
    """An array `(N, C, *in)` with a table applied along each axis of space."""
    return channels_first(resample(channels_last(array), tables))


def resampling(input: Tensor, tables: tuple[Table, ...]) -> Tensor:
    """A tensor `(N, C, *in)` with a table applied along each axis of space."""
    return record(resampled(input.array, tables), resampling_backward, (input,), values=tables)


def resampling_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (resampling(grad, tuple([table.transposed for table in node.values])),)
