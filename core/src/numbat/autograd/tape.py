"""The tape: a node for each recorded operator, made when the operator runs.

A node knows its backward function, what that function needs (saved tensors and plain values), and
where each gradient goes: to the node that made the input, or to the input itself where it is a
leaf.
Nodes are numbered as they are made, so that running them in falling order is a topological order.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from numbat.autograd.mode import MODE
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse

Backward = Callable[["Node", Tensor], "Sequence[Tensor | None]"]

_ndarray = np.ndarray
_next_number = itertools.count(1).__next__


class Node:
    """One recorded operator.

    A backward function takes the node and the gradient of its result and gives one gradient for
    each input (None where there is none to give). It is written with differentiable operators, so
    that second derivatives need nothing more. It need not undo broadcasting nor casts: the engine
    sums a gradient to its input's shape and casts it to its input's type.

    Attributes:
        backward: the function; its name is the operator's.
        sources: for each input a Node, a leaf Tensor, or None where no gradient is wanted.
        saved: tensors the backward function needs; read them with `unpack`, which checks that
            nothing was written over them since.
        result: the array of the operator's own result; read it with `unpack_result`.
        values: plain values the backward function needs (axes, shapes).
        shape, dtype: of the result, for the gradients to fit.
        parts: for an operator with several results, the gradients gathered for each.
    """

    __slots__ = (
        "__weakref__", "backward", "dtype", "hooks", "number", "owner", "parts", "result", "saved",
        "shape", "site", "sources", "values", "versions",
    )  # fmt: skip

    def __init__(
        self,
        backward: Backward,
        sources: tuple[Node | Tensor | None, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        saved: tuple[Tensor | None, ...] = (),
        values: Any = None,
    ) -> None:
        self.backward: Backward | None = backward
        self.sources = sources
        self.shape = shape
        self.dtype = dtype
        self.saved: tuple[Tensor | None, ...] | None = saved
        self.values = values
        self.number = _next_number()
        self.hooks: Any = None
        self.parts: list[Tensor | None] | None = None
        self.result: Array | None = None
        if saved:
            self.versions = tuple([
                0 if one is None else one.own_version if one.root is None else one.root.own_version
                for one in saved
            ])  # fmt: skip
        if MODE.anomaly:
            self.site: Any = (_name_of(backward), traceback.extract_stack()[:-2])

    @property
    def name(self) -> str:
        """The operator's name, as `mul` or `conv2d`."""
        return _name_of(self.backward) if self.backward is not None else "freed"

    @property
    def needs(self) -> tuple[bool, ...]:
        """For each input, whether its gradient is wanted."""
        return tuple([source is not None for source in self.sources])

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """torch's view of the sources."""
        return tuple((source, 0) for source in self.sources)

    def unpack(self) -> Any:
        """The saved tensors.

        Raises CORE-0304 where one was written over since it was saved, CORE-0305 where the graph
        was freed by an earlier backward pass.
        """
        saved = self.saved
        if saved is None:
            raise refuse("CORE-0305", operator=self.name)
        for one, version in zip(saved, self.versions, strict=True):
            if one is not None and version != (
                one.own_version if one.root is None else one.root.own_version
            ):
                raise refuse(
                    "CORE-0304", operator=self.name, shape=list(one.shape),
                    version=one._version, expected_version=version,
                )  # fmt: skip
        return saved

    def keep_result(self, out: Tensor) -> None:
        """Saves the operator's own result; the link to its tensor is weak, so that no cycle keeps
        both."""
        self.result = out.array
        self.owner = ref(out)

    def unpack_result(self) -> Tensor:
        """The operator's own result, with this node as its history.

        Raises CORE-0304 where it was written over, CORE-0305 where the graph was freed.
        """
        if self.result is None:
            raise refuse("CORE-0305", operator=self.name)
        owner = self.owner()
        if owner is not None and owner.own_version:
            raise refuse(
                "CORE-0304", operator=self.name, shape=list(self.shape),
                version=owner.own_version, expected_version=0,
            )  # fmt: skip
        out = Tensor.__new__(Tensor)
        out.array = self.result
        out.node = self
        out.wants_grad = True
        return out

    def release(self) -> None:
        """Forgets what it saved, so that activations are freed while the backward pass runs."""
        self.saved = None
        self.result = None
        self.backward = None
        self.values = None

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Calls `hook` with the gradient of the result; what it gives replaces the gradient."""
        if self.hooks is None:
            self.hooks = {}
        return Handle(self.hooks, hook)

    def __repr__(self) -> str:
        return f"<{self.name} backward>"


class Handle:
    """What `register_hook` gives: `remove()` takes the hook away."""

    __slots__ = ("hooks", "key")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks = hooks
        self.key = _next_number()
        hooks[self.key] = hook

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _name_of(backward: Any) -> str:
    name: str = getattr(backward, "__name__", type(backward).__name__)
    return name.removesuffix("_backward").lstrip("_")


def record(
    array: Any,
    backward: Backward,
    inputs: tuple[Tensor, ...],
    saved: tuple[Tensor | None, ...] = (),
    values: Any = None,
    keep_result: bool = False,
) -> Tensor:
    """The tensor of an operator's result, recorded where an input requires a gradient.

    Args:
        array: the result, a numpy array or scalar.
        backward: see `Node`.
        inputs: the tensors to which `backward` gives gradients, in its order.
        saved: the tensors that `backward` unpacks.
        values: plain values for `backward`.
        keep_result: saves the result itself, for `unpack_result`.
    """
    out = Tensor.__new__(Tensor)
    out.array = array if type(array) is _ndarray else np.asarray(array)
    if MODE.recording:
        for one in inputs:
            if one.wants_grad or one.base is not None:
                sources = sources_of(inputs)
                if sources is not None:
                    node = Node(backward, sources, out.array.shape, out.array.dtype, saved, values)
                    out.node = node
                    out.wants_grad = True
                    if keep_result:
                        node.keep_result(out)
                break
    return out


def sources_of(inputs: tuple[Tensor, ...]) -> tuple[Node | Tensor | None, ...] | None:
    """Where the gradients of the inputs go; None where no input requires one."""
    found = tuple([
        None if not (one.wants_grad if one.base is None else one.requires_grad)
        else one if one.node is None else one.node
        for one in inputs
    ])  # fmt: skip
    for source in found:
        if source is not None:
            return found
    return None


def record_many(
    arrays: Sequence[Any],
    backward: Callable[[Node, list[Tensor | None]], Sequence[Tensor | None]],
    inputs: tuple[Tensor, ...],
    saved: tuple[Tensor | None, ...] = (),
    values: Any = None,
    differentiable: Sequence[bool] | None = None,
) -> tuple[Tensor, ...]:
    """The tensors of an operator with several results, recorded as one node.

    `backward` takes the node and a list with the gradient of each result (None where none came).
    `differentiable` names the results to which gradients belong; all, when left out.
    """
    outs = tuple([_plain(array) for array in arrays])
    if MODE.recording and any(one.requires_grad for one in inputs):
        sources = sources_of(inputs)
        assert sources is not None
        whole = Node(backward, sources, (), outs[0].array.dtype, saved, values)  # type: ignore[arg-type]
        whole.parts = [None] * len(outs)
        for index, out in enumerate(outs):
            if differentiable is None or differentiable[index]:
                out.node = Node(
                    _part_backward, (whole,), out.array.shape, out.array.dtype, (), index
                )
                out.wants_grad = True
    return outs


def _plain(array: Any) -> Tensor:
    out = Tensor.__new__(Tensor)
    out.array = array if type(array) is _ndarray else np.asarray(array)
    return out


def _part_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    """Lays the gradient of one result of several into their common node (the engine knows
    `parts`)."""
    whole = node.sources[0]
    assert isinstance(whole, Node)
    assert whole.parts is not None
    index = node.values
    before = whole.parts[index]
    whole.parts[index] = grad if before is None else before + grad
    return (grad,)


def record_view(array: Array, backward: Backward, source: Tensor, values: Any = None) -> Tensor:
    """The tensor of a view: it shares memory and version counter with `source`.

    A later write through either is seen by both, and by the gradients of both (`in_place.py`).
    """
    out = Tensor.__new__(Tensor)
    out.array = array if type(array) is _ndarray else np.asarray(array)
    base = source.base
    if base is None:
        base = source
    elif source.seen != base.history:
        source.requires_grad  # noqa: B018 - brings the node up to date
    if MODE.recording and source.wants_grad:
        node = source.node
        out.node = Node(
            backward,
            (source if node is None else node,),
            out.array.shape,
            out.array.dtype,
            (),
            values,
        )
        out.wants_grad = True
    out.root = source if source.root is None else source.root
    out.base = base
    out.seen = base.history
    return out
