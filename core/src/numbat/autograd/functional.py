"""Derivatives of functions: Jacobians, Hessians and their products with vectors.

Each takes a function of tensors and its inputs (a tensor or a tuple of tensors) and gives results
in the structure of both, as PyTorch's `torch.autograd.functional`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.autograd.engine import grad
from numbat.autograd.mode import enable_grad
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple_of(value: Any, what: str) -> tuple[tuple[Tensor, ...], bool]:
    """The tensors, and whether several were given; CORE-0325 for anything but tensors."""
    several = isinstance(value, (tuple, list))
    found = tuple(value) if several else (value,)
    for one in found:
        if not isinstance(one, Tensor):
            raise refuse("CORE-0325", what=what, given=type(one).__name__)
    return found, several


def _leaves(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate with respect to: views of them where their own history counts, else
    copies without history."""
    if create_graph:
        return tuple(
            one.view_as(one) if one.requires_grad else one.detach().requires_grad_()
            for one in inputs
        )
    return tuple(one.detach().requires_grad_() for one in inputs)


def _called(
    func: Callable[..., Any], inputs: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], bool]:
    with enable_grad():
        return _tuple_of(func(*inputs), "result")


def _gradients(
    outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], weights: tuple[Tensor | None, ...],
    create_graph: bool, strict: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of the inputs, zeros where none flow (CORE-0310 under `strict`)."""
    flowing = [
        (one, weight) for one, weight in zip(outputs, weights, strict=True)
        if one.requires_grad and weight is not None
    ]  # fmt: skip
    found: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if flowing:
        with enable_grad():
            found = grad(
                [one for one, _ in flowing], inputs, [weight for _, weight in flowing],
                retain_graph=True, create_graph=create_graph, allow_unused=True,
            )  # fmt: skip
    results = []
    for index, (one, given) in enumerate(zip(inputs, found, strict=True)):
        if given is None:
            if strict:
                raise refuse(
                    "CORE-0310", index=index, because="no path leads from the outputs to it"
                )
            given = wrap(np.zeros(one.shape, one.array.dtype))
        results.append(given)
    return tuple(results)


def _settled(values: tuple[Tensor, ...], create_graph: bool, several: bool) -> Any:
    kept = values if create_graph else tuple(one.detach() for one in values)
    return kept if several else kept[0]


def _vectors(v: Any, like: tuple[Tensor, ...], what: str) -> tuple[Tensor, ...]:
    """The vectors of a product, of the shapes of `like`; ones where a lone number needs none.

    Raises CORE-0324 where one is missing or of another shape.
    """
    if v is None:
        if len(like) != 1 or like[0].array.size != 1:
            raise refuse("CORE-0324", what=what, given=[], wanted=[list(one.shape) for one in like])
        return (wrap(np.ones_like(like[0].array)),)
    found, _ = _tuple_of(v, "vector")
    if [one.shape for one in found] != [one.shape for one in like]:
        raise refuse(
            "CORE-0324", what=what, given=[list(one.shape) for one in found],
            wanted=[list(one.shape) for one in like],
        )  # fmt: skip
    return found


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The function's results, and the product of `v` with its Jacobian: one tensor an input.

    Raises CORE-0324 where `v` has not the results' shapes, CORE-0325 for what is no tensor.
    """
    given, several_in = _tuple_of(inputs, "input")
    leaves = _leaves(given, create_graph)
    outputs, several_out = _called(func, leaves)
    products = _gradients(outputs, leaves, _vectors(v, outputs, "v"), create_graph, strict)
    return (
        _settled(outputs, create_graph, several_out),
        _settled(products, create_graph, several_in),
    )


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The function's results, and the product of its Jacobian with `v`: one tensor a result.

    It differentiates the product of a vector with the Jacobian with respect to that vector ("double
    backward"). Raises as `vjp`.
    """
    given, _ = _tuple_of(inputs, "input")
    leaves = _leaves(given, create_graph)
    tangents = _vectors(v, given, "v")
    outputs, several_out = _called(func, leaves)
    dual = tuple(wrap(np.zeros_like(one.array)).requires_grad_() for one in outputs)
    backward = _gradients(outputs, leaves, dual, True, strict)
    products = _gradients(backward, dual, tangents, create_graph, strict)
    return (
        _settled(outputs, create_graph, several_out),
        _settled(products, create_graph, several_out),
    )


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivatives of every element of the results with respect to every element of the inputs.

    One tensor of shape (result shape, input shape) for each result and input; `vectorize` and
    `strategy` are taken as torch's and change nothing. Raises CORE-0325, and CORE-0310 under
    `strict`.
    """
    given, several_in = _tuple_of(inputs, "input")
    leaves = _leaves(given, create_graph)
    outputs, several_out = _called(func, leaves)
    rows = []
    for output in outputs:
        columns: list[list[Tensor]] = [[] for _ in leaves]
        for index in range(output.array.size):
            weight = np.zeros(output.shape, output.array.dtype)
            weight.reshape(-1)[index] = 1
            found = _gradients((output,), leaves, (wrap(weight),), create_graph, strict)
            for column, one in zip(columns, found, strict=True):
                column.append(one)
        row = tuple(
            _stacked(column, (*output.shape, *leaf.shape), leaf)
            for column, leaf in zip(columns, leaves, strict=True)
        )
        rows.append(_settled(row, create_graph, several_in))
    return tuple(rows) if several_out else rows[0]


def _stacked(parts: list[Tensor], shape: tuple[int, ...], like: Tensor) -> Tensor:
    from numbat.ops import stack

    if not parts:
        return wrap(np.zeros(shape, like.array.dtype))
    found: Tensor = stack(parts).reshape(shape)
    return found


def _scalar(func: Callable[..., Any]) -> Callable[..., Tensor]:
    def one_number(*inputs: Tensor) -> Tensor:
        result = func(*inputs)
        found, _ = _tuple_of(result, "result")
        if len(found) != 1 or found[0].array.size != 1:
            raise refuse(
                "CORE-0103",
                shape=list(found[0].shape),
                wanted="one element, to be differentiated twice",
            )
        number: Tensor = found[0].reshape(())
        return number

    return one_number


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function that gives one number: a tensor for each pair of inputs.

    Raises CORE-0103 where the function gives more than one number, and as `jacobian`.
    """
    _, several = _tuple_of(inputs, "input")
    number = _scalar(func)

    def first(*leaves: Tensor) -> Any:
        found = jacobian(number, leaves, create_graph=True)
        return found if several else found[0]

    return jacobian(first, inputs, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The function's number, and the product of its Hessian with `v`: one tensor an input.

    Raises CORE-0103 where the function gives more than one number, and as `vjp`.
    """
    return vhp(func, inputs, v, create_graph, strict)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The function's number, and the product of `v` with its Hessian, which is symmetric: as
    `hvp`."""
    given, several = _tuple_of(inputs, "input")
    vectors = _vectors(v, given, "v")
    leaves = _leaves(given, create_graph)
    outputs, _ = _called(_scalar(func), leaves)
    first = _gradients(outputs, leaves, (wrap(np.ones_like(outputs[0].array)),), True, strict)
    products = _gradients(first, leaves, vectors, create_graph, strict)
    return _settled(outputs, create_graph, False), _settled(products, create_graph, several)
