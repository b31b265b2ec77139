"""Activation checkpointing: a part of the model keeps its inputs alone and runs again for its
gradients.

Source: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016 (arXiv
1604.06174); PyTorch, "torch.utils.checkpoint".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from numbat.autograd.engine import _fitted, _Pass
from numbat.autograd.mode import MODE, enable_grad
from numbat.autograd.tape import Node, _next_number, _part_backward
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["checkpoint", "checkpoint_sequential"]

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Contexts | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **keywords: Any,
) -> Any:
    """`function(*args, **keywords)`, whose activations are made anew in the backward pass.

    Gradients reach the arguments and whatever else `function` uses, and may be differentiated
    again.

    Args:
        function: gives a tensor, or a tuple, list or dict of them.
        preserve_rng_state: draws the same random numbers the second time.
        context_fn: gives the contexts of the first and the second run.
        use_reentrant, debug, early_stop: taken as torch's, without effect: there is one way.
        determinism_check: "none" lets the second run give other shapes.

    Raises, in the backward pass, CORE-0323 where the second run gives other results than the first,
    CORE-0304 where an argument was written over in between.
    """
    first, second = (nullcontext(), nullcontext()) if context_fn is None else context_fn()
    if not MODE.recording:
        with first:
            return function(*args, **keywords)
    random_state = _random_state() if preserve_rng_state else None
    start = _next_number()
    with first:
        result = function(*args, **keywords)
    region = _Region(function, args, keywords, second, random_state, determinism_check != "none")
    return region.recorded(result, start)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **keywords: Any
) -> Any:
    """Runs a `Sequential` (or a list of functions) in `segments` parts, each but the last
    checkpointed."""
    several = list(functions.children() if hasattr(functions, "children") else functions)
    length = len(several) // segments
    end = 0
    for start in range(0, length * (segments - 1), length):
        end = start + length
        input = checkpoint(_chained(several[start:end]), input, **keywords)
    return _chained(several[end:])(input)


def _chained(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def chained(value: Any) -> Any:
        for one in functions:
            value = one(value)
        return value

    return chained


def _random_state() -> Any:
    from numbat.random import get_rng_state

    return get_rng_state()


def _tensors_of(result: Any) -> list[Tensor]:
    """The tensors of a result, in order."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [one for part in result for one in _tensors_of(part)]
    return []


def _with_tensors(result: Any, tensors: list[Tensor]) -> Any:
    """The same structure with its tensors replaced, first to last; `tensors` is used up."""
    if isinstance(result, Tensor):
        return tensors.pop(0)
    if isinstance(result, dict):
        return {key: _with_tensors(one, tensors) for key, one in result.items()}
    if isinstance(result, (tuple, list)):
        parts = [_with_tensors(one, tensors) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def _made_since(tensor: Tensor, start: int) -> Node | None:
    """The node of a tensor that was recorded after `start`; None for all others."""
    node = tensor.grad_fn
    return node if node is not None and node.number > start else None


def _sources_outside(nodes: list[Node], start: int) -> list[Node | Tensor]:
    """Where the gradients of nodes recorded after `start` leave them: older nodes and leaves."""
    outside: dict[int, Node | Tensor] = {}
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for source in node.sources:
            if isinstance(source, Node) and source.number > start:
                stack.append(source)
            elif source is not None:
                outside[id(source)] = source
    return list(outside.values())


class _Region:
    """One checkpointed call: what is needed to run it again."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any],
        context: AbstractContextManager[Any], random_state: Any, checked: bool,
    ) -> None:  # fmt: skip
        self.function = function
        self.args = args
        self.keywords = keywords
        self.context = context
        self.random_state = random_state
        self.checked = checked
        self.places: list[int] = []
        self.layouts: list[tuple[tuple[int, ...], Any]] = []

    def recorded(self, result: Any, start: int) -> Any:
        """The result with one node in place of all that the call recorded."""
        tensors = _tensors_of(result)
        self.layouts = [(one.array.shape, one.array.dtype) for one in tensors]
        inner = [_made_since(one, start) for one in tensors]
        self.places = [at for at, node in enumerate(inner) if node is not None]
        if not self.places:
            return result
        sources = tuple(_sources_outside([node for node in inner if node is not None], start))
        saved = tuple(one for one in self.args if isinstance(one, Tensor))
        whole = Node(
            checkpoint_backward, sources, tensors[self.places[0]].array.shape,
            tensors[self.places[0]].array.dtype, saved, self,
        )  # fmt: skip
        if len(self.places) > 1:
            whole.parts = [None] * len(self.places)
        outs = list(tensors)
        for index, at in enumerate(self.places):
            array = tensors[at].array
            out = outs[at] = wrap(array)
            out.wants_grad = True
            out.node = whole
            if whole.parts is not None:
                out.node = Node(_part_backward, (whole,), array.shape, array.dtype, (), index)
        return _with_tensors(result, outs)

    def again(self) -> list[Tensor]:
        """The results of a second run."""
        with enable_grad(), self.context:
            if self.random_state is None:
                return _tensors_of(self.function(*self.args, **self.keywords))
            from numbat.random import fork_rng, set_rng_state

            with fork_rng():
                set_rng_state(self.random_state)
                return _tensors_of(self.function(*self.args, **self.keywords))

    def check(self, tensors: list[Tensor]) -> None:
        """Refuses results of other shapes or types than the first run's."""
        layouts = [(one.array.shape, one.array.dtype) for one in tensors]
        if len(layouts) != len(self.layouts) or (self.checked and layouts != self.layouts):
            raise refuse(
                "CORE-0323", first=[_written(one) for one in self.layouts],
                second=[_written(one) for one in layouts],
            )  # fmt: skip


def _written(layout: tuple[tuple[int, ...], Any]) -> str:
    return f"{layout[1]}{list(layout[0])}"


def checkpoint_backward(node: Node, grad: Any) -> list[Tensor | None]:
    node.unpack()
    region: _Region = node.values
    grads = list(grad) if node.parts is not None else [grad]
    tensors = region.again()
    region.check(tensors)
    roots = [tensors[at] for at in region.places]
    pairs = [(root, one) for root, one in zip(roots, grads, strict=True) if one is not None]
    inner = _InnerPass(node.sources, MODE.recording)
    inner.run([root for root, _ in pairs], [one for _, one in pairs])
    return [inner.gathered.get(id(source)) for source in node.sources]


class _InnerPass(_Pass):
    """The backward pass of a second run, which ends where the region began."""

    def __init__(self, sources: tuple[Node | Tensor | None, ...], create_graph: bool) -> None:
        super().__init__(create_graph, create_graph, None)
        self.ends = {id(source) for source in sources}
        self.gathered: dict[int, Tensor] = {}

    def deliver(self, source: Node | Tensor, grad: Tensor) -> None:
        """Gathers what leaves the region; all else waits for its node."""
        key = id(source)
        if key not in self.ends:
            super().deliver(source, grad)
            return
        if isinstance(source, Node):
            shape, dtype = source.shape, source.dtype
        else:
            shape, dtype = source.array.shape, source.array.dtype
        if grad.array.shape != shape or grad.array.dtype != dtype:
            grad = _fitted(grad, shape, dtype)
        before = self.gathered.get(key)
        self.gathered[key] = grad if before is None else before + grad
