"""The tensor: an array, what is known of its gradient, and the tensors it shares memory with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from numbat.tensors import dtypes
from numbat.tensors.device import CPU, Device
from numbat_registries import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numbat.autograd.tape import Node

Array = np.ndarray[Any, np.dtype[Any]]


class Tensor:
    """An array of one element type, with the history that made it.

    Operators are its methods; `tensors/methods.py` hangs them on, so that each stands once, in
    `ops/`.

    Attributes of the engine (torch's public names are properties):
        array: the values, a numpy array; views share it with their root.
        node: the recorded operator that made it; None for a leaf.
        root: whose version counter this shares; None when it is its own.
        base: the tensor of which this is a differentiable view; None when it is no view.
        history: how often a write through a view, or in place, gave this tensor another node.
        seen: the base's history when this view's node was made.
    """

    # Defaults live on the class: a fresh tensor sets nothing but its array.
    wants_grad = False
    grad: Tensor | None = None
    node: Node | None = None
    root: Tensor | None = None
    base: Tensor | None = None
    own_version = 0
    history = 0
    seen = 0
    leaf_hooks: dict[int, Callable[[Tensor], Tensor | None]] | None = None
    after_accumulation: dict[int, Callable[[Tensor], None]] | None = None
    array: Array

    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __init__(self, data: Any = (), dtype: Any = None, requires_grad: bool = False) -> None:
        from numbat.tensors.creation import array_of

        self.array = array_of(data, dtype)
        if requires_grad:
            self.requires_grad = True

    # -- gradient -----------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows to it; settable on leaves of a floating type (else CORE-0301,
        CORE-0302)."""
        if self.base is not None and self.seen != self.base.history:
            _refresh(self)
        return self.wants_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, wanted: bool = True) -> Tensor:
        """Asks for a gradient of a leaf, in place.

        Raises CORE-0301 for a type that is not floating, CORE-0302 where it is no leaf.
        """
        if wanted and not self.dtype.is_floating_point:
            raise refuse("CORE-0301", dtype=self.dtype.name)
        if not wanted and self.node is not None:
            raise refuse("CORE-0302", operator=self.node.name)
        self.wants_grad = bool(wanted)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator made it."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operator that made it; None for a leaf."""
        if self.base is not None and self.seen != self.base.history:
            _refresh(self)
        return self.node

    @property
    def _version(self) -> int:
        root = self.root
        return self.own_version if root is None else root.own_version

    @property
    def _base(self) -> Tensor | None:
        return self.base

    @property
    def data(self) -> Tensor:
        """The same memory without history and without this tensor's version counter."""
        out = Tensor.__new__(Tensor)
        out.array = self.array
        return out

    @data.setter
    def data(self, other: Tensor) -> None:
        self.array = other.array

    # -- shape --------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """Its element type."""
        return dtypes.BY_NUMBER[self.array.dtype.num]

    @property
    def device(self) -> Device:
        """Where its memory is: the CPU."""
        return CPU

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, outermost first."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self.array.ndim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.array.nbytes

    def size(self, dim: int | None = None) -> Any:
        """Its extents, or that of one axis."""
        return self.array.shape if dim is None else self.array.shape[dim]

    def dim(self) -> int:
        """How many axes it has."""
        return self.array.ndim

    def numel(self) -> int:
        """How many elements it has."""
        return self.array.size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours along each axis, in elements."""
        item = self.array.itemsize
        strides = tuple(step // item for step in self.array.strides)
        return strides if dim is None else strides[dim]

    def data_ptr(self) -> int:
        """The address of its first element."""
        return int(self.array.__array_interface__["data"][0])

    def is_contiguous(self) -> bool:
        """Whether its elements lie in memory in the order of its indices, without gaps."""
        return self.array.flags.c_contiguous

    def is_floating_point(self) -> bool:
        """Whether its element type is a floating one."""
        return self.dtype.is_floating_point

    # -- Python -------------------------------------------------------------------------------

    def item(self) -> Any:
        """The one element as a Python number.

        Raises CORE-0103 where it has more or fewer than one.
        """
        if self.array.size != 1:
            raise refuse("CORE-0103", shape=list(self.shape), wanted="one element")
        return self.array.item()

    def tolist(self) -> Any:
        """Its elements as nested lists of Python numbers."""
        return self.array.tolist()

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self.array.shape[0])

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise refuse(
                "CORE-0103", shape=list(self.shape), wanted="one element, to be true or false"
            )
        return bool(self.array.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.array.dtype.kind not in "iub" or self.array.size != 1:
            raise TypeError("only integer tensors of a single element can be an index")
        return int(self.array.item())

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        for index in range(self.array.shape[0]):
            yield self[index]

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self.array == (value.array if isinstance(value, Tensor) else value)))

    def __format__(self, spec: str) -> str:
        if not self.array.ndim and spec:
            return format(self.item(), spec)
        return str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.node is not None:
            raise refuse("CORE-0303", operator=self.node.name)
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        copy.array = self.array.copy()
        copy.wants_grad = self.wants_grad
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), np.array(self.array, order="C"), self.wants_grad))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...


def _refresh(view: Tensor) -> None:
    from numbat.autograd.in_place import refresh

    refresh(view)


def _rebuild(kind: type[Tensor], array: Array, requires_grad: bool) -> Tensor:
    tensor = kind.__new__(kind)
    tensor.array = array
    tensor.wants_grad = requires_grad
    return tensor


def wrap(array: Any) -> Tensor:
    """A tensor of an array (or of the scalar that numpy gives for no axes), without history."""
    out = Tensor.__new__(Tensor)
    out.array = array if type(array) is np.ndarray else np.asarray(array)
    return out
