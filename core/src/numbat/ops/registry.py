"""The one registry of operators: what each is called, where it stands, and inputs that show it.

An operator is a public function over tensors, declared with `@operator`. Its backward function
stands beside it and carries its name (`mul`, `mul_backward`). Gates walk this registry: an operator
without samples, or one that is differentiable and whose gradients do not agree with differences,
fails them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from numbat.ops.placement import place

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Sample:
    """One call that shows an operator: positional arguments, keywords.

    Arrays stand for tensors; a gradient check differentiates with respect to the floating ones.
    """

    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


Samples = Callable[["np.random.Generator"], Iterator[Sample]]


@dataclass(frozen=True)
class Operator:
    """An entry of the registry.

    Attributes:
        name: the operator's name in `numbat` (torch's, where torch has it).
        function: the public function.
        family: the module of `ops/` in which it stands.
        samples: makes the calls that show it.
        differentiable: whether gradients flow through it.
        twice: whether second derivatives do.
        random: whether it draws numbers.
        torch: torch's name for it, as its operator database writes it; None where torch has none.
        method: whether it is a method of `Tensor`; the method, where it is not the function.
        in_place: whether `Tensor` has the method that writes over its tensor (`add_`); that method
            itself, where it is not made of the function.
    """

    name: str
    function: Callable[..., Any]
    family: str
    samples: Samples
    differentiable: bool
    twice: bool
    random: bool
    torch: str | None
    method: bool | Callable[..., Any]
    in_place: bool | Callable[..., Any]


OPERATORS: dict[str, Operator] = {}


def operator(
    samples: Samples,
    *,
    name: str | None = None,
    torch: str | bool | None = True,
    differentiable: bool = True,
    twice: bool | None = None,
    random: bool = False,
    method: bool | Callable[..., Any] = True,
    in_place: bool | Callable[..., Any] = False,
) -> Callable[[F], F]:
    """Declares a function an operator, and wraps it where autocast has a policy for it.

    Args:
        samples: a function of a numpy generator that yields `Sample`s, small ones (a gradient check
            takes two calls an element).
        name: the operator's name, where it is not the function's.
        torch: the name in torch's operator database; True for the same, None for none.
        differentiable: False for comparisons, index results and the like.
        twice: False where the backward function is not differentiable; as `differentiable` when
            left out.
        random: True where it draws numbers, so that two calls differ.
        method: False where it is no method of `Tensor`; a function where the method takes its
            arguments in another order.
        in_place: True for the method that writes over its tensor as well; that method itself where
            it can do better than compute the result and copy it.
    """

    def declare(function: F) -> F:
        called = name or function.__name__
        if called in OPERATORS:
            raise AssertionError(f"two operators are called {called}")
        # Operators that stand in a table of autocast are wrapped; the others stay as they are.
        placed = place(called, function)
        OPERATORS[called] = Operator(
            called,
            placed,
            function.__module__.rpartition(".")[2],
            samples,
            differentiable,
            differentiable if twice is None else twice,
            random,
            called if torch is True else (torch or None),
            method,
            in_place,
        )
        return placed

    return declare
