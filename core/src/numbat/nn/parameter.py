"""The two kinds of tensor a module registers: parameters, which learn, and buffers, which do
not."""

from __future__ import annotations

from typing import Any

from numbat.tensors.creation import array_of
from numbat.tensors.dtypes import as_dtype, get_default_dtype
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


class Parameter(Tensor):
    """A leaf that a module registers when it is assigned to one; it shares memory with `data`.

    Raises CORE-0301 where a gradient is wanted of a type that is not floating.
    """

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        self.array = data.array if isinstance(data, Tensor) else array_of(data)
        if requires_grad:
            self.requires_grad_(True)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to one; it shares memory
    with `data`.

    Attributes:
        persistent: whether it is part of the module's state.
    """

    persistent = True

    def __init__(self, data: Any = (), *, persistent: bool = True) -> None:
        self.array = data.array if isinstance(data, Tensor) else array_of(data)
        self.persistent = persistent


class _Unshaped:
    """What stands for a tensor whose shape the first input will tell."""

    unshaped_dtype: Any

    def materialize(self: Any, shape: Any, dtype: Any = None) -> None:
        """Gives it memory of the shape, without values, and makes it an ordinary parameter or
        buffer."""
        import numpy as np

        self.array = np.empty(tuple(shape), as_dtype(dtype or self.unshaped_dtype).numpy)
        self.__class__ = self.shaped_class

    def __getattr__(self, name: str) -> Any:
        if name == "array":
            raise refuse("CORE-0612", kind=type(self).__name__)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        copy = type(self)(dtype=self.unshaped_dtype)
        copy.wants_grad = self.wants_grad
        memo[id(self)] = copy
        return copy


class UninitializedParameter(_Unshaped, Parameter):
    """A parameter without a shape, until the first input tells it; every use of it is CORE-0612."""

    shaped_class = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        self.unshaped_dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
        self.wants_grad = requires_grad


class UninitializedBuffer(_Unshaped, Buffer):
    """A buffer without a shape, until the first input tells it; every use of it is CORE-0612."""

    shaped_class = Buffer

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> None:  # fmt: skip
        self.unshaped_dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
        self.wants_grad = requires_grad
        self.persistent = persistent


def is_unshaped(tensor: Any) -> bool:
    """Whether a tensor waits for its shape."""
    return isinstance(tensor, _Unshaped)
