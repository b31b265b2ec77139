"""Ufuncs over two tensors, and the refusal where their shapes do not broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.tensors.tensor import Tensor
from numbat_registries import Refusal, refuse


def apply(operator: str, ufunc: Any, x: Tensor, y: Tensor) -> Any:
    """`ufunc` of the two arrays.

    Raises CORE-0201 where their shapes do not broadcast.
    """
    try:
        return ufunc(x.array, y.array)
    except ValueError:
        check_broadcast(operator, x.array.shape, y.array.shape)
        raise


def check_broadcast(operator: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which the shapes meet.

    Raises CORE-0201, with a suggestion where one axis more would make them meet.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise _mismatch(operator, *shapes) from None


def _mismatch(operator: str, *shapes: tuple[int, ...]) -> Refusal:
    shown = [list(shape) for shape in shapes]
    return refuse("CORE-0201", operator=operator, shapes=shown, suggestion=_suggestion(*shapes[:2]))


def _suggestion(first: tuple[int, ...], second: tuple[int, ...] = ()) -> str:
    """A change of one operand that makes the two shapes broadcast; empty where none of one step
    does."""
    for name, mine, other in (("second", second, first), ("first", first, second)):
        for axis in range(len(mine) + 1):
            widened = (*mine[:axis], 1, *mine[axis:])
            if _meet(widened, other):
                return f"unsqueeze({axis}) of the {name}"
        if len(mine) == 2 and _meet(mine[::-1], other):
            return f"the transpose of the {name}"
    return ""


def _meet(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(first, second)
    except ValueError:
        return False
    return True
