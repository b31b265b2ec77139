"""The backward pass: nodes run in falling order of their numbers, gradients meet where paths join.

Each node forgets what it saved as soon as it has run (unless the graph is to be kept), so that
activations are freed while gradients are made. Source: PyTorch, `torch/csrc/autograd/engine.cpp`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

Source = Node | Tensor


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | None = None,
) -> None:
    """Adds to `.grad` of every leaf the gradient of `tensors`.

    Args:
        tensors: what to differentiate; one element each, unless `grad_tensors` gives their
            gradients.
        grad_tensors: gradients of `tensors`, of their shapes.
        retain_graph: keeps what was saved, for a second pass; as `create_graph` when left out.
        create_graph: records the pass itself, for derivatives of a higher order.
        inputs: the only tensors to receive gradients; every leaf, when left out.

    Raises CORE-0308 where nothing requires a gradient, CORE-0309 where a gradient is needed and not
    given or has another shape, CORE-0305 where the graph was freed.
    """
    roots, grads = _roots(tensors, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    wanted = None if inputs is None else {_source_of(one): None for one in inputs}
    found = _run(roots, grads, keep, create_graph, wanted)
    if inputs is not None:
        for one in inputs:
            given = found.get(_source_of(one))
            if given is not None:
                accumulate(one, given, create_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`; no `.grad` changes.

    Raises CORE-0310 where an input is not part of the graph and `allow_unused` is not set, and what
    `backward` raises.
    """
    several = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    roots, grads = _roots(outputs, grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    for index, one in enumerate(several):
        if not one.requires_grad:
            raise refuse("CORE-0310", index=index, because="it does not require a gradient")
    found = _run(roots, grads, keep, create_graph, {_source_of(one): None for one in several})
    results: list[Tensor | None] = []
    for index, one in enumerate(several):
        given = found.get(_source_of(one))
        if given is None:
            if materialize_grads:
                given = wrap(np.zeros(one.shape, one.array.dtype))
            elif not allow_unused:
                raise refuse(
                    "CORE-0310", index=index, because="no path leads from the outputs to it"
                )
        results.append(given)
    return tuple(results)


def _source_of(tensor: Tensor) -> Source:
    node = tensor.grad_fn
    return tensor if node is None else node


def _roots(tensors: Any, grads: Any) -> tuple[list[Tensor], list[Tensor]]:
    roots = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = [grads] if grads is None or isinstance(grads, Tensor) else list(grads)
    if len(given) < len(roots):
        given += [None] * (len(roots) - len(given))
    found = []
    for root, one in zip(roots, given, strict=True):
        if not root.requires_grad:
            raise refuse("CORE-0308", shape=list(root.shape))
        if one is None:
            if root.array.size != 1:
                raise refuse("CORE-0309", shape=list(root.shape), because="none was given")
            one = wrap(np.ones_like(root.array))
        elif one.array.shape != root.array.shape:
            raise refuse(
                "CORE-0309",
                shape=list(root.shape),
                because=f"one of shape {list(one.shape)} was given",
            )
        found.append(one)
    return roots, found


def _run(
    roots: list[Tensor],
    grads: list[Tensor],
    keep: bool,
    create_graph: bool,
    wanted: dict[Source, None] | None,
) -> dict[Source, Tensor]:
    """Runs the nodes; where `wanted` is given, gathers its gradients instead of touching leaves."""
    before = MODE.recording
    MODE.recording = create_graph
    try:
        return _Pass(keep, create_graph, wanted).run(roots, grads)
    finally:
        MODE.recording = before


class _Pass:
    """One backward pass: gradients that wait for their nodes, and those that were asked for."""

    def __init__(self, keep: bool, create_graph: bool, wanted: dict[Source, None] | None) -> None:
        self.keep = keep
        self.create_graph = create_graph
        self.wanted = wanted
        self.found: dict[Source, Tensor] = {}
        self.pending: dict[Node, Tensor] = {}
        self.owned: set[Node] = set()
        self.heap: list[tuple[int, Node]] = []

    def run(self, roots: list[Tensor], grads: list[Tensor]) -> dict[Source, Tensor]:
        for root, grad in zip(roots, grads, strict=True):
            self.deliver(_source_of(root), grad)
        del roots, grads, root, grad
        heap, pending = self.heap, self.pending
        leads = self.leads_to_wanted() if self.wanted is not None else None
        while heap:
            node = heappop(heap)[1]
            given = pending.pop(node)
            self.owned.discard(node)
            if node.hooks is not None:
                given = _hooked(node.hooks, given)
            if self.wanted is not None and node in self.wanted:
                self.found[node] = given
            if leads is not None and node not in leads:
                continue
            self.step(node, given)
            del given
        return self.found

    def step(self, node: Node, given: Tensor) -> None:
        """Runs one node and hands its gradients on."""
        function = node.backward
        if function is None:
            raise refuse("CORE-0305", operator=node.name)
        if node.parts is not None:
            # The gradients of several results were gathered by their part nodes.
            results = function(node, node.parts)  # type: ignore[arg-type]
            node.parts = [None] * len(node.parts)
        else:
            results = function(node, given)
        del given
        if MODE.anomaly:
            _check_nan(node, results)
        sources = node.sources
        if not self.keep:
            node.release()
        index = 0
        # Popping lets each gradient be owned by whoever takes it.
        waiting = list(results)
        del results
        waiting.reverse()
        while waiting:
            one = waiting.pop()
            source = sources[index]
            index += 1
            if one is not None and source is not None:
                self.deliver(source, one)

    def deliver(self, source: Source, grad: Tensor) -> None:
        """Adds a gradient to what waits for its node, or to its leaf."""
        array = grad.array
        if type(source) is Node:
            if source.parts is None and (
                array.shape != source.shape or array.dtype is not source.dtype
            ):
                grad = _fitted(grad, source.shape, source.dtype)
            before = self.pending.get(source)
            if before is None:
                self.pending[source] = grad
                heappush(self.heap, (-source.number, source))
            elif source.parts is not None:
                return
            elif source in self.owned and not self.create_graph:
                np.add(before.array, grad.array, out=before.array)
            else:
                self.pending[source] = before + grad
                self.owned.add(source)
            return
        leaf: Tensor = source  # type: ignore[assignment]
        if array.shape != leaf.array.shape or array.dtype is not leaf.array.dtype:
            grad = _fitted(grad, leaf.array.shape, leaf.array.dtype)
        del array
        if self.wanted is None:
            accumulate(leaf, grad, self.create_graph)
        elif leaf in self.wanted:
            before = self.found.get(leaf)
            self.found[leaf] = grad if before is None else before + grad

    def leads_to_wanted(self) -> set[Node]:
        """The nodes from which a wanted source can be reached."""
        assert self.wanted is not None
        leads: set[Node] = set()
        seen: set[Node] = set()
        order: list[Node] = []
        stack = [node for _, node in self.heap]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            order.append(node)
            stack.extend(one for one in node.sources if type(one) is Node)
        for node in sorted(order, key=lambda one: one.number):
            if any(one in self.wanted or one in leads for one in node.sources if one is not None):
                leads.add(node)
        return leads


def _fitted(grad: Tensor, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
    """A gradient summed to the shape of what was broadcast, and cast to its type."""
    if grad.array.shape != shape:
        grad = grad.sum_to_size(shape)
    if grad.array.dtype != dtype:
        from numbat.tensors.dtypes import from_numpy_dtype

        grad = grad.to(from_numpy_dtype(dtype))
    return grad


def _hooked(hooks: dict[int, Any], grad: Tensor) -> Tensor:
    for hook in list(hooks.values()):
        given = hook(grad)
        if given is not None:
            grad = given
    return grad


def _sole(grad: Tensor) -> bool:
    """Whether the caller's caller alone holds the gradient and its memory, so that it may be
    kept."""
    return (
        sys.getrefcount(grad) <= _SOLE_TENSOR
        and sys.getrefcount(grad.array) <= _SOLE_ARRAY
        and grad.array.base is None
        and grad.array.flags.c_contiguous
    )


def accumulate(leaf: Tensor, grad: Tensor, create_graph: bool = False) -> None:
    """Adds a gradient to a leaf's, through the leaf's hooks; the first one is taken over, not
    copied, where nobody else holds it."""
    if leaf.leaf_hooks is not None and leaf.node is None:
        grad = _hooked(leaf.leaf_hooks, grad)
    before = leaf.grad
    if before is None:
        if create_graph:
            leaf.grad = grad
        else:
            leaf.grad = wrap(grad.array if _sole(grad) else grad.array.copy(order="C"))
    elif create_graph:
        leaf.grad = before + grad
    else:
        np.add(before.array, grad.array, out=before.array)
    if leaf.after_accumulation is not None:
        for hook in list(leaf.after_accumulation.values()):
            hook(leaf)


def _measure() -> tuple[int, int]:
    """The reference counts that a gradient has which nobody else holds, in this Python."""
    seen: list[tuple[int, int]] = []

    class Leaf:
        leaf_hooks = None
        node = None
        grad = None
        after_accumulation = None

    def sole(grad: Tensor) -> bool:
        seen.append((sys.getrefcount(grad), sys.getrefcount(grad.array)))
        return True

    def accumulate_like(leaf: Any, grad: Tensor) -> None:
        leaf.grad = wrap(grad.array if sole(grad) else grad.array.copy())

    def deliver_like(source: Any, grad: Tensor) -> None:
        array = grad.array
        del array
        accumulate_like(source, grad)

    def step_like() -> None:
        waiting = [wrap(np.zeros(1))]
        while waiting:
            one = waiting.pop()
            deliver_like(Leaf(), one)

    step_like()
    return seen[0]


_SOLE_TENSOR, _SOLE_ARRAY = _measure()


_PACKAGE = Path(__file__).parents[1]
_MACHINERY = tuple(
    str(_PACKAGE / room) for room in ("amp", "autograd", "nn", "ops", "optim", "random", "tensors")
)
"""Where a call site is not looked for: the engine itself."""


def _check_nan(node: Node, results: Sequence[Tensor | None]) -> None:
    for index, one in enumerate(results):
        if one is not None and one.array.dtype.kind in "fV" and bool(np.isnan(one.array).any()):
            name, site = getattr(node, "site", (node.name, []))
            callers = (f for f in reversed(site) if not f.filename.startswith(_MACHINERY))
            where = next((f"{f.filename}:{f.lineno}" for f in callers), "unknown")
            raise refuse("CORE-0311", operator=name, input=index, site=where)
