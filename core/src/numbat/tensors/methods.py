"""Hangs the operators on `Tensor`: methods, Python's operators, and the methods that write in
place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import numbat.ops as ops
from numbat.autograd import engine
from numbat.autograd.in_place import overwrite
from numbat.autograd.tape import Handle
from numbat.ops import indexing, shaping
from numbat.ops.aliases import SECOND_NAMES
from numbat.ops.registry import OPERATORS, Operator
from numbat.tensors import interchange, printing
from numbat.tensors.tensor import Tensor


def in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The method that writes an operator's result over its first tensor."""

    @wraps(function)
    def written(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        return overwrite(self, function(self, *args, **keywords), name)

    written.__name__ = written.__qualname__ = name
    return written


def _in_place_method(entry: Operator) -> Callable[..., Tensor]:
    """An operator's own method that writes in place, or the one made of its function."""
    if callable(entry.in_place):
        return entry.in_place
    return in_place(entry.name + "_", entry.function)


def _turned(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The operator with its operands exchanged, for a number on the left."""

    def turned(self: Tensor, other: Any) -> Any:
        return function(other, self)

    return turned


def _guarded(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """Equality, which answers False for what no tensor can equal."""

    def compared(self: Tensor, other: Any) -> Any:
        if isinstance(other, (Tensor, int, float, np.generic)):
            return function(self, other)
        return NotImplemented

    return compared


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, inputs: Any = None,
) -> None:  # fmt: skip
    """Adds to `.grad` of every leaf the gradient of this tensor; see `numbat.autograd.backward`."""
    engine.backward(self, gradient, retain_graph, create_graph, inputs)


def _retain_grad(self: Tensor) -> None:
    """Keeps this result's gradient in `.grad` when a backward pass reaches it."""
    node = self.grad_fn
    if node is None:
        return

    def keep(grad: Tensor) -> None:
        self.grad = grad if self.grad is None else self.grad + grad

    node.register_hook(keep)


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Calls `hook` with this tensor's gradient; what it gives replaces the gradient."""
    node = self.grad_fn
    if node is not None:
        handle: Handle = node.register_hook(hook)
        return handle
    if self.leaf_hooks is None:
        self.leaf_hooks = {}
    return Handle(self.leaf_hooks, hook)


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """Calls `hook` with this leaf each time its `.grad` was added to."""
    if self.after_accumulation is None:
        self.after_accumulation = {}
    return Handle(self.after_accumulation, hook)


DUNDERS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__pow__": "pow",
    "__mod__": "remainder", "__floordiv__": "floor_divide", "__matmul__": "matmul",
    "__neg__": "neg",
    "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
    "__invert__": "bitwise_not", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__pos__": "positive",
}  # fmt: skip
"""Python's operators, and the operators of the registry that they are."""

TURNED = {
    "__rsub__": "sub", "__rtruediv__": "div", "__rpow__": "pow", "__rmod__": "remainder",
    "__rfloordiv__": "floor_divide", "__rlshift__": "bitwise_left_shift",
    "__rrshift__": "bitwise_right_shift",
}  # fmt: skip

COMMUTING = {
    "__radd__": "add", "__rmul__": "mul", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
}  # fmt: skip

IN_PLACE = {
    "__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div",
    "__ipow__": "pow",
    "__imod__": "remainder", "__ifloordiv__": "floor_divide", "__iand__": "bitwise_and",
    "__ior__": "bitwise_or", "__ixor__": "bitwise_xor",
}  # fmt: skip

CASTS = ("half", "float", "double", "bfloat16", "int", "long", "short", "bool")


def _cast(name: str) -> Callable[[Tensor], Tensor]:
    def cast(self: Tensor) -> Tensor:
        return ops.to(self, dtype=name)

    cast.__name__ = name
    cast.__doc__ = f"The tensor as {name}."
    return cast


def _attach() -> None:
    for entry in OPERATORS.values():
        if entry.method and not entry.name.startswith("_") and "." not in entry.name:
            setattr(Tensor, entry.name, entry.function if entry.method is True else entry.method)
        if entry.in_place:
            setattr(Tensor, entry.name + "_", _in_place_method(entry))
    for second, name in SECOND_NAMES.items():
        setattr(Tensor, second, getattr(Tensor, name))
        if hasattr(Tensor, name + "_"):
            setattr(Tensor, second + "_", getattr(Tensor, name + "_"))
    for table, change in ((DUNDERS, None), (COMMUTING, None), (TURNED, _turned)):
        for dunder, name in table.items():
            if name in OPERATORS:
                function = OPERATORS[name].function
                setattr(Tensor, dunder, function if change is None else change(function))
    for dunder, name in IN_PLACE.items():
        if name in OPERATORS:
            setattr(Tensor, dunder, _in_place_method(OPERATORS[name]))
    for dunder, name in (("__eq__", "eq"), ("__ne__", "ne")):
        if name in OPERATORS:
            setattr(Tensor, dunder, _guarded(OPERATORS[name].function))
    for name in CASTS:
        setattr(Tensor, name, _cast(name))
    extra: dict[str, Any] = {
        "backward": _backward, "retain_grad": _retain_grad, "register_hook": _register_hook,
        "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
        "detach": ops.detach, "type_as": ops.type_as,
        "__getitem__": indexing.getitem, "__setitem__": indexing.setitem,
        "copy_": indexing.copy_, "fill_": indexing.fill_, "zero_": indexing.zero_,
        "index_put_": indexing.index_put_,
        "T": property(shaping.reversed_axes), "mT": property(shaping.matrix_transpose),
        "H": property(shaping.hermitian), "mH": property(shaping.matrix_transpose),
        "__repr__": printing.shown, "numpy": interchange.to_numpy, "cpu": interchange.cpu,
        "__array__": interchange.as_array, "__buffer__": interchange.as_buffer,
        "__array_namespace__": interchange.array_namespace, "to_device": interchange.to_device,
        "__dlpack__": interchange.to_dlpack, "__dlpack_device__": interchange.dlpack_device,
    }  # fmt: skip
    for name, function in extra.items():
        setattr(Tensor, name, function)


_attach()
