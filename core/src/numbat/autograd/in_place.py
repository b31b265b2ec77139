"""Writing over a tensor: version counters, and the history of views that share the memory.

Writing through a view gives its base a new node (the base's gradient outside the view, the written
value's inside it), and every other view of that base finds its history anew when it is next asked.
Source: PyTorch, "Autograd mechanics: in-place operations", and `VariableHooks::rebase_history`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse


class Region(NamedTuple):
    """A view's place in its base: all in bytes but the shapes."""

    base_shape: tuple[int, ...]
    base_strides: tuple[int, ...]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def region_of(view: Array, base: Array) -> Region:
    """Where `view` lies in the memory of `base`."""
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Region(base.shape, base.strides, int(offset), view.shape, view.strides)


def _span(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The lowest and one past the highest byte that a layout touches, from its first element."""
    low = sum(step * (n - 1) for n, step in zip(shape, strides, strict=True) if step < 0)
    high = sum(step * (n - 1) for n, step in zip(shape, strides, strict=True) if step > 0)
    return low, high + itemsize


def laid_out(grad: Array, region: Region) -> tuple[Array, Array]:
    """A copy of `grad` in the base's layout, and the view of the region within that copy."""
    item = grad.itemsize
    low, high = _span(region.base_shape, region.base_strides, item)
    memory = np.zeros(high - low, dtype=np.uint8)
    whole = _within(memory, -low, region.base_shape, region.base_strides, grad.dtype)
    whole[...] = grad
    return whole, _within(memory, region.offset - low, region.shape, region.strides, grad.dtype)


def _within(
    memory: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
) -> Array:
    if 0 in shape:
        return np.empty(shape, dtype)
    start: Array = memory[offset : offset + dtype.itemsize].view(dtype)
    return as_strided(start, shape, strides)


def region_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    """The gradient of a base from that of its view: zero outside the region."""
    from numbat.ops.viewing import scatter_region

    return (scatter_region(grad, node.values),)


def written_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of what stood in a base before a write through a view, and of what was
    written."""
    from numbat.ops.viewing import gather_region, zero_region

    region: Region = node.values
    return (
        zero_region(grad, region) if node.sources[0] is not None else None,
        gather_region(grad, region) if node.sources[1] is not None else None,
    )


def refresh(view: Tensor) -> None:
    """Brings a view's history up to date with writes to its base."""
    base = view.base
    assert base is not None
    if base.requires_grad:
        source = base if base.node is None else base.node
        view.node = Node(
            region_backward, (source,), view.array.shape, view.array.dtype, (),
            region_of(view.array, base.array),
        )  # fmt: skip
        view.wants_grad = True
    view.seen = base.history


def check_writable(target: Tensor, operator: str) -> None:
    """Refuses to write over a leaf that requires a gradient (CORE-0306), or over memory that
    several indices share (CORE-0307)."""
    if MODE.recording and target.requires_grad:
        root = target if target.base is None else target.base
        if target.node is None or (root.node is None and root.wants_grad):
            raise refuse("CORE-0306", operator=operator, shape=list(target.shape))
    array = target.array
    if (
        0 in array.strides
        and array.size
        and any(
            step == 0 and extent > 1
            for step, extent in zip(array.strides, array.shape, strict=True)
        )
    ):
        raise refuse("CORE-0307", operator=operator, shape=list(target.shape))


def overwrite(target: Tensor, result: Tensor, operator: str) -> Tensor:
    """Writes `result`, computed from `target`, over it: values, version and history.

    Raises CORE-0306, CORE-0307 (see `check_writable`), CORE-0202 where the result's shape is not
    the target's, CORE-0105 where its type cannot be cast to the target's.
    """
    check_writable(target, operator)
    if result.array.shape != target.array.shape:
        raise refuse(
            "CORE-0202", operator=operator,
            shape=list(target.array.shape), result_shape=list(result.array.shape),
        )  # fmt: skip
    if result.array.dtype != target.array.dtype:
        if result.dtype.category > target.dtype.category:
            raise refuse(
                "CORE-0105", operator=operator, result=result.dtype.name, target=target.dtype.name
            )
        result = result.to(target.dtype)
    if result.node is not None and result.node.saved:
        _keep_original(target, result.node)
    np.copyto(target.array, result.array)
    bump(target)
    if MODE.recording and result.requires_grad:
        adopt(target, result)
    return target


def written_by(ufunc: Any, target: Tensor, other: Any, operator: str) -> bool:
    """Writes `ufunc(target, other)` over the target at once, where neither history nor type
    changes.

    False where that does not hold, and nothing was written; the caller then takes the long way.
    Raises CORE-0307 for memory that several indices share.
    """
    array = target.array
    if MODE.recording and target.requires_grad:
        return False
    if isinstance(other, Tensor):
        if other.array.dtype is not array.dtype or (MODE.recording and other.requires_grad):
            return False
        other = other.array
        if other.shape != array.shape and other.ndim:
            return False
    elif type(other) is not float or array.dtype.kind != "f" or array.dtype.itemsize == 2:
        return False
    check_writable(target, operator)
    ufunc(array, other, out=array)
    bump(target)
    return True


def _keep_original(target: Tensor, node: Node) -> None:
    """Gives an operator that saved its target a copy of it, as it was, before it is written
    over."""
    saved = node.saved
    assert saved is not None
    if not any(one is target for one in saved):
        return
    original = Tensor.__new__(Tensor)
    original.array = target.array.copy()
    original.wants_grad = target.requires_grad
    original.node = target.node
    node.saved = tuple([original if one is target else one for one in saved])
    node.versions = tuple([
        0 if one is target else version for one, version in zip(saved, node.versions, strict=True)
    ])  # fmt: skip


def bump(target: Tensor) -> None:
    """Counts a write, for whoever saved the tensor before it."""
    root = target.root
    if root is None:
        root = target
    root.own_version += 1


def adopt(target: Tensor, result: Tensor) -> None:
    """Gives `target` the history of `result`, whose values it holds now."""
    base = target.base
    written = result if result.node is None else result.node
    if base is None:
        if isinstance(written, Node):
            target.node = written
        else:
            from numbat.ops.viewing import identity_backward

            target.node = Node(
                identity_backward, (written,), target.array.shape, target.array.dtype
            )
        target.wants_grad = True
        target.history += 1
        return
    before: Node | Tensor | None = None
    if base.requires_grad:
        before = base if base.node is None else base.node
    base.node = Node(
        written_backward, (before, written), base.array.shape, base.array.dtype, (),
        region_of(target.array, base.array),
    )  # fmt: skip
    base.wants_grad = True
    base.history += 1
