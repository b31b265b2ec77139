"""Wider borders: constant, reflected, repeated, or wrapped round."""

from __future__ import annotations

from typing import Any

from numbat.nn import functional as F
from numbat.nn.module import Module
from numbat.nn.tuples import repeated
from numbat.tensors.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """What all share: `padding` before and after each axis, last axis first, or one width for
    all."""

    axes: int
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.axes)

    def forward(self, input: Tensor) -> Tensor:
        """The input with wider borders; shape (N, C, *extents) or without N."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Its widths."""
        return str(self.padding)


class _ConstantPad(_Pad):
    """Borders of one value."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with borders of that value."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Its widths and value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Borders of zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Its widths."""
        return str(self.padding)


class ConstantPad1d(_ConstantPad):
    """Borders of one value around one axis."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Borders of one value around two axes."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Borders of one value around three axes."""

    axes = 3


class ZeroPad1d(_ZeroPad):
    """Borders of zeros around one axis."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """Borders of zeros around two axes."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Borders of zeros around three axes."""

    axes = 3


class ReflectionPad1d(_Pad):
    """Borders that mirror one axis at its outermost elements."""

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Borders that mirror two axes at their outermost elements."""

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Borders that mirror three axes at their outermost elements."""

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Borders that repeat the outermost elements of one axis."""

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Borders that repeat the outermost elements of two axes."""

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """Borders that repeat the outermost elements of three axes."""

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """Borders from the other end of one axis."""

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """Borders from the other end of two axes."""

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """Borders from the other end of three axes."""

    axes = 3
    mode = "circular"
