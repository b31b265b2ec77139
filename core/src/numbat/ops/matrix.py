"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import reshape, transpose
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "matmul",
]  # fmt: skip


def product(x: Array, y: Array) -> Array:
    """`x @ y` by BLAS; float16 and bfloat16 are multiplied in float32 and rounded once."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        return np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return np.asarray(np.matmul(x, y))


def _sample_matmul(rng: np.random.Generator) -> Any:
    shapes = [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 2)),
    ]
    for one, other in shapes:
        yield Sample((rng.normal(size=one), rng.normal(size=other)))


@operator(_sample_matmul)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors gain an axis that the result loses, further axes broadcast.

    Raises CORE-0210 where the inner extents differ, CORE-0111 where the element types do.
    """
    x, y = input.array, other.array
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        raise refuse(
            "CORE-0111", operator="matmul", first=input.dtype.name, second=other.dtype.name
        )
    try:
        array = product(x, y)
    except ValueError:
        raise refuse(
            "CORE-0210", operator="matmul", first=list(x.shape), second=list(y.shape)
        ) from None
    saved = (input if other.requires_grad else None, other if input.requires_grad else None)
    shapes = x.shape, y.shape
    return record(array, matmul_backward, (input, other), saved, shapes)


def matmul_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    shape_x, shape_y = node.values
    if len(shape_y) == 1:
        grad = reshape(grad, (*grad.shape, 1))
        y = None if y is None else reshape(y, (-1, 1))
    if len(shape_x) == 1:
        grad = reshape(grad, (*grad.shape[:-1], 1, grad.shape[-1]))
        x = None if x is None else reshape(x, (1, -1))
    to_x = to_y = None
    if node.sources[0] is not None:
        to_x = matmul(grad, transpose(y, -1, -2))
        if len(shape_x) == 1:
            to_x = reshape(to_x.sum_to_size((1, *shape_x)), shape_x)
    if node.sources[1] is not None:
        to_y = matmul(transpose(x, -1, -2), grad)
        if len(shape_y) == 1:
            to_y = reshape(to_y.sum_to_size((*shape_y, 1)), shape_y)
    return to_x, to_y
