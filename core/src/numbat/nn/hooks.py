"""Hooks around a module's forward and backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Handle, Node, record_many
from numbat.tensors.tensor import Tensor

if TYPE_CHECKING:
    from numbat.nn.module import Module

BEFORE, AFTER, BACKWARD, BACKWARD_BEFORE = (
    "forward_pre", "forward", "full_backward", "full_backward_pre",
)  # fmt: skip


def register(table: dict[int, Any], hook: Any, first: bool) -> Handle:
    """Puts a hook at the end of a table, or at its front."""
    handle = Handle(table, hook)
    if first:
        others = {key: one for key, one in table.items() if key != handle.key}
        for key in others:
            del table[key]
        table.update(others)
    return handle


def call(module: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The module's forward pass with all its hooks, in torch's order."""
    always = [entry for entry in module.hooks_of(AFTER).values() if entry[2]]
    called: list[Any] = []
    try:
        result = _call(module, args, keywords, called)
    except Exception:
        for entry in always:
            if not any(entry is one for one in called):
                _after(module, entry, args, keywords, None)
        raise
    return result


def _call(
    module: Module, args: tuple[Any, ...], keywords: dict[str, Any], called: list[Any]
) -> Any:
    for hook, with_keywords, _ in list(module.hooks_of(BEFORE).values()):
        if with_keywords:
            given = hook(module, args, keywords)
            if given is not None:
                args, keywords = given
        else:
            given = hook(module, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
    watch = None
    if module.hooks_of(BACKWARD) or module.hooks_of(BACKWARD_BEFORE):
        watch = _Watch(module)
        args = watch.through_inputs(args)
    result = module.forward(*args, **keywords)
    for entry in list(module.hooks_of(AFTER).values()):
        called.append(entry)
        given = _after(module, entry, args, keywords, result)
        if given is not None:
            result = given
    if watch is not None:
        result = watch.through_outputs(result)
    return result


def _after(module: Module, entry: Any, args: Any, keywords: Any, result: Any) -> Any:
    hook: Callable[..., Any] = entry[0]
    return hook(module, args, keywords, result) if entry[1] else hook(module, args, result)


class _Watch:
    """Two identities, before and after a module, whose backward functions call its backward
    hooks."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.grad_output: tuple[Tensor | None, ...] = ()
        self.inputs_watched = False
        self.places: list[int] = []
        self.count = 0

    def through_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count = len(args)
        self.places = [at for at, one in enumerate(args) if isinstance(one, Tensor)]
        tensors = tuple(args[at] for at in self.places)
        if not (MODE.recording and any(one.requires_grad for one in tensors)):
            return args
        self.inputs_watched = True
        outs = self._identity(tensors, self.inputs_backward)
        changed = list(args)
        for at, out in zip(self.places, outs, strict=True):
            changed[at] = out
        return tuple(changed)

    def through_outputs(self, result: Any) -> Any:
        several = result if isinstance(result, (tuple, list)) else (result,)
        places = [at for at, one in enumerate(several) if isinstance(one, Tensor)]
        tensors = tuple(several[at] for at in places)
        self.outputs = len(several)
        self.output_places = places
        if not (MODE.recording and any(one.requires_grad for one in tensors)):
            return result
        outs = self._identity(tensors, self.outputs_backward)
        if not isinstance(result, (tuple, list)):
            return outs[0]
        changed = list(result)
        for at, out in zip(places, outs, strict=True):
            changed[at] = out
        if hasattr(result, "_fields"):
            return type(result)(*changed)
        return type(result)(changed)

    @staticmethod
    def _identity(tensors: tuple[Tensor, ...], backward: Any) -> tuple[Tensor, ...]:
        outs = record_many(
            [one.array for one in tensors], backward, tensors,
            differentiable=[one.requires_grad for one in tensors],
        )  # fmt: skip
        for out, one in zip(outs, tensors, strict=True):
            # The memory is one, so the count of writes is one.
            out.root = one if one.root is None else one.root
        return outs

    def outputs_backward(self, node: Node, grads: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        full: list[Tensor | None] = [None] * self.outputs
        for at, grad in zip(self.output_places, grads, strict=True):
            full[at] = grad
        given_all = tuple(full)
        for hook in list(self.module.hooks_of(BACKWARD_BEFORE).values()):
            given = hook(self.module, given_all)
            if given is not None:
                given_all = given if isinstance(given, tuple) else (given,)
        self.grad_output = given_all
        if not self.inputs_watched:
            nothing = (None,) * self.count
            for hook in list(self.module.hooks_of(BACKWARD).values()):
                hook(self.module, nothing, given_all)
        return tuple(given_all[at] for at in self.output_places)

    def inputs_backward(self, node: Node, grads: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        full: list[Tensor | None] = [None] * self.count
        for at, grad in zip(self.places, grads, strict=True):
            full[at] = grad
        given_all = tuple(full)
        for hook in list(self.module.hooks_of(BACKWARD).values()):
            given = hook(self.module, given_all, self.grad_output)
            if given is not None:
                given_all = given if isinstance(given, tuple) else (given,)
        return tuple(given_all[at] for at in self.places)
