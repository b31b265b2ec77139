"""Padding: a constant around a tensor, or its own cells reflected, repeated or wrapped round."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.kernels.resampling import Table, along_axis
from numbat.ops.registry import Sample, operator
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

__all__ = [
    "pad",
]  # fmt: skip

MODES = ("constant", "reflect", "replicate", "circular")


@lru_cache(maxsize=512)
def _table(extent: int, before: int, after: int, mode: str) -> Table:
    """Which cell of an axis each cell of the padded axis shows."""
    at = np.arange(-before, extent + after)
    if mode == "reflect":
        period = max(2 * (extent - 1), 1)
        at = np.abs(at) % period
        at = np.minimum(at, period - at) if extent > 1 else np.zeros_like(at)
    elif mode == "replicate":
        at = np.clip(at, 0, extent - 1)
    else:
        # Cells that negative widths cut away are not there to wrap round.
        first, end = max(-before, 0), extent - max(-after, 0)
        at = (at - first) % max(end - first, 1) + first
    return Table.of(at[:, None], extent)


def _shown(array: Array, widths: tuple[tuple[int, int], ...], mode: str) -> Array:
    out = array
    for axis, (before, after) in enumerate(widths):
        if before or after:
            out = along_axis(out, axis, _table(array.shape[axis], before, after, mode))
    return out


def _surrounded(array: Array, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    """The array with a constant around it; negative widths cut cells away."""
    shape = [
        before + extent + after for extent, (before, after) in zip(array.shape, widths, strict=True)
    ]
    out = np.empty_like(array, shape=shape)
    if any(before > 0 or after > 0 for before, after in widths):
        out[...] = value
    inner, outer = [], []
    for extent, (before, after) in zip(array.shape, widths, strict=True):
        inner.append(slice(max(-before, 0), extent - max(-after, 0)))
        outer.append(slice(max(before, 0), before + extent + after - max(after, 0)))
    out[tuple(outer)] = array[tuple(inner)]
    return out


def _sample_pad(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), (1, 2)))
    yield Sample((rng.normal(size=(2, 3, 4)), (-1, 2, 0, -1)), {"value": 1.5})
    for mode in MODES[1:]:
        yield Sample((rng.normal(size=(1, 2, 4)), (2, 1)), {"mode": mode})
        yield Sample((rng.normal(size=(1, 3, 4, 3)), (1, 2, 2, 1)), {"mode": mode})


@operator(_sample_pad, torch="nn.functional.pad", method=False)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """The tensor with cells added before and after, pairs of widths from the last axis forward.

    A constant goes around any axes; negative widths cut. The other modes pad the last one, two or
    three axes: 'reflect' mirrors at the border's cell, 'replicate' repeats it, 'circular' wraps
    round.

    Raises CORE-0410 for a mode that there is not, or widths that the mode or the shape does not
    take.
    """
    array = input.array
    given = tuple([int(one) for one in pad])
    pairs = len(given) // 2

    def refused(because: str) -> Exception:
        return refuse(
            "CORE-0410",
            mode=str(mode),
            widths=list(given),
            shape=list(array.shape),
            because=because,
        )

    if mode not in MODES:
        raise refused(f"the modes are {', '.join(MODES)}")
    if len(given) % 2 or pairs > array.ndim:
        raise refused("it takes a width before and one after for each axis, from the last forward")
    widths = ((0, 0),) * (array.ndim - pairs) + tuple(
        (given[2 * place], given[2 * place + 1]) for place in reversed(range(pairs))
    )
    for extent, (before, after) in zip(array.shape, widths, strict=True):
        if extent + before + after < 0 or (
            min(before, after) < 0 and extent + min(before, after) < 0
        ):
            raise refused("more cells would be cut than there are")
    if mode == "constant":
        out = _surrounded(array, widths, 0 if value is None else value)
        return record(out, pad_backward, (input,), values=widths)
    if value is not None and value != 0:
        raise refused("a value goes with the mode 'constant' alone")
    if pairs not in (1, 2, 3) or array.ndim not in (pairs + 1, pairs + 2):
        raise refused("this mode pads the last one, two or three axes, after one or two others")
    for extent, (before, after) in zip(array.shape, widths, strict=True):
        if before <= 0 and after <= 0:
            continue
        most = {"reflect": extent - 1, "circular": extent}.get(mode)
        if most is not None and max(before, after) > most:
            raise refused(f"'{mode}' adds at most {max(most, 0)} cells to {extent}")
        if extent == 0:
            raise refused("there is no cell to repeat")
    return record(_shown(array, widths, mode), pad_shown_backward, (input,), values=(widths, mode))


def pad_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    back = tuple([(-before, -after) for before, after in node.values])
    return (record(_surrounded(grad.array, back, 0), pad_backward, (grad,), values=back),)


def pad_shown_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    """Each cell receives the gradients of all the cells that show it."""
    widths, mode = node.values
    out = grad.array
    for axis, (before, after) in enumerate(widths):
        if before or after:
            extent = out.shape[axis] - before - after
            out = along_axis(out, axis, _table(extent, before, after, mode).transposed)
    return (record(out, pad_gathered_backward, (grad,), values=(widths, mode)),)


def pad_gathered_backward(node: Node, above: Tensor) -> tuple[Tensor]:
    widths, mode = node.values
    return (
        record(_shown(above.array, widths, mode), pad_shown_backward, (above,), values=node.values),
    )
