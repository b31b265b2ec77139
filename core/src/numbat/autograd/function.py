"""Operators that a user writes: a forward and a backward function of their own.

Source: PyTorch, "Extending torch.autograd".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import ref

import numpy as np

from numbat.autograd.in_place import adopt
from numbat.autograd.mode import MODE, no_grad
from numbat.autograd.tape import Node, _part_backward, record, record_many, sources_of
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What a `Function` keeps between its forward and its backward.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether its gradient is wanted.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple[Tensor | None, ...] = ()
    _fixed: tuple[Tensor, ...] = ()
    _written: tuple[Tensor, ...] = ()
    _materialize = True
    _node: Node | None = None
    _places: tuple[int | None, ...] = ()
    _owners: tuple[Any, ...] = ()
    _several = False
    _is_tensor: tuple[bool, ...] = ()
    _layouts: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`, which reads them as `saved_tensors`.

        Raises CORE-0326 for what is neither a tensor nor None.
        """
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                raise refuse("CORE-0326", given=type(one).__name__)
        self._to_save = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which results have no gradient."""
        self._fixed = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs the forward wrote over; they must be among the results."""
        self._written = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether a result to which no gradient came counts as one of zeros (else as None)."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`.

        Raises CORE-0304 where one was written over since, CORE-0305 where the graph was freed.
        """
        node = self._node
        if node is None:
            return self._to_save
        found = []
        for one, place in zip(node.unpack(), self._places, strict=True):
            found.append(one if place is None else self._own_result(node, one, place))
        return tuple(found)

    def _own_result(self, node: Node, kept: Tensor, place: int) -> Tensor:
        """A result that was saved, with the history it had."""
        owner, version = self._owners[place]
        tensor = owner()
        if tensor is not None and tensor._version != version:
            raise refuse(
                "CORE-0304", operator=node.name, shape=list(kept.shape),
                version=tensor._version, expected_version=version,
            )  # fmt: skip
        out = wrap(kept.array)
        out.node = node
        if self._several:
            array = kept.array
            out.node = Node(_part_backward, (node,), array.shape, array.dtype, (), place)
        out.wants_grad = True
        return out


class Function:
    """An operator with a gradient of its own: static `forward(ctx, ...)` and `backward(ctx,
    *grads)`.

    `apply` calls it. `forward` may also leave out `ctx` where `setup_context(ctx, inputs, output)`
    is defined. `backward` gives one gradient (or None) for each argument of `apply`. The class's
    name is the operator's in graphs and refusals.
    """

    _engine_backward: Callable[[Node, Any], Any]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)

        def engine_backward(node: Node, grads: Any) -> list[Tensor | None]:
            return _backward(cls, node, grads)

        engine_backward.__name__ = f"{cls.__name__}_backward"
        cls._engine_backward = staticmethod(engine_backward)

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Computes the results; a subclass defines it. Raises CORE-0320 here."""
        raise refuse("CORE-0320", function="Function", part="forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Computes the gradients; a subclass defines it. Raises CORE-0320 here."""
        raise refuse("CORE-0320", function="Function", part="backward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what `backward` needs, for a `forward` that takes no `ctx`."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs the operator and records it.

        Raises CORE-0320 where `forward` is missing.
        """
        if cls.forward is Function.forward:
            raise refuse("CORE-0320", function=cls.__name__, part="forward")
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(one, Tensor) and one.requires_grad for one in args)
        recorded = MODE.recording and any(ctx.needs_input_grad)
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        return _recorded(cls, ctx, args, result) if recorded else result


def _recorded(kind: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], result: Any) -> Any:
    several = isinstance(result, tuple)
    results = result if several else (result,)
    places = [at for at, one in enumerate(results) if isinstance(one, Tensor)]
    tensors = [results[at] for at in places]
    inputs = tuple(one for one in args if isinstance(one, Tensor))
    flows = [one.dtype.is_floating_point and not _among(one, ctx._fixed) for one in tensors]
    if not any(flows):
        return result
    ctx._places = tuple(_place(one, tensors) for one in ctx._to_save)
    saved = tuple(
        one if place is None else wrap(tensors[place].array)
        for one, place in zip(ctx._to_save, ctx._places, strict=True)
    )
    ctx._several = len(tensors) > 1
    ctx._is_tensor = tuple(isinstance(one, Tensor) for one in args)
    ctx._layouts = tuple((one.array.shape, one.array.dtype) for one in tensors)
    arrays = [one.array for one in tensors]
    if ctx._several:
        made = record_many(arrays, kind._engine_backward, inputs, saved, ctx, flows)
    else:
        made = (record(arrays[0], kind._engine_backward, inputs, saved, ctx),)
    outs = [_placed(new, old, ctx, inputs) for new, old in zip(made, tensors, strict=True)]
    ctx._owners = tuple((ref(out), out._version) for out in outs)
    ctx._to_save = ctx._fixed = ctx._written = ()
    if not several:
        return outs[0]
    changed = list(results)
    for at, out in zip(places, outs, strict=True):
        changed[at] = out
    return tuple(changed)


def _placed(new: Tensor, old: Tensor, ctx: FunctionCtx, inputs: tuple[Tensor, ...]) -> Tensor:
    """The tensor a caller gets for a result: the input itself where it was written over."""
    if _among(old, ctx._written):
        if new.requires_grad:
            adopt(old, new)
        return old
    if _among(old, inputs):
        new.root = old if old.root is None else old.root
    return new


def _among(tensor: Tensor, several: tuple[Tensor, ...]) -> bool:
    return any(tensor is one for one in several)


def _place(tensor: Tensor | None, results: list[Tensor]) -> int | None:
    return next((at for at, one in enumerate(results) if one is tensor), None)


def _backward(kind: type[Function], node: Node, grads: Any) -> list[Tensor | None]:
    ctx: Any = node.values
    if kind.backward is Function.backward:
        raise refuse("CORE-0320", function=kind.__name__, part="backward")
    given = list(grads) if ctx._several else [grads]
    if ctx._materialize:
        given = [
            wrap(np.zeros(shape, dtype)) if one is None else one
            for one, (shape, dtype) in zip(given, ctx._layouts, strict=True)
        ]
    ctx._node = node
    try:
        found = kind.backward(ctx, *given)
    finally:
        ctx._node = None
    found = found if isinstance(found, tuple) else (found,)
    wanted = len(ctx.needs_input_grad)
    tail = found[wanted:]
    if len(found) < wanted or any(one is not None for one in tail):
        raise refuse("CORE-0321", function=kind.__name__, given=len(found), wanted=wanted)
    return [one for one, at in zip(found, ctx._is_tensor, strict=False) if at]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a `Function.backward` that is not differentiable itself: a second derivative is
    CORE-0322."""

    @wraps(backward)
    def guarded(ctx: Any, *grads: Any) -> Any:
        recording = MODE.recording
        with no_grad():
            found = backward(ctx, *grads)
        if not recording:
            return found
        name = ctx._node.name
        reached = sources_of(tuple(one for one in grads if isinstance(one, Tensor))) or ()
        # The gradients depend on the inputs, too, though nothing recorded how.
        sources = tuple(one for one in (*reached, *ctx._node.sources) if one is not None)

        def refused(node: Node, grad: Tensor) -> Any:
            raise refuse("CORE-0322", function=name)

        def marked(one: Any) -> Any:
            if not isinstance(one, Tensor):
                return one
            out = wrap(one.array)
            out.node = Node(refused, sources, out.array.shape, out.array.dtype)
            out.wants_grad = True
            return out

        if isinstance(found, tuple):
            return tuple(marked(one) for one in found)
        return marked(found)

    return guarded
