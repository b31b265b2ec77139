"""A module called with other parameters than its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numbat.nn.module import Module
from numbat.tensors.tensor import Tensor

__all__ = ["functional_call"]


def functional_call(
    module: Module, parameter_and_buffer_dicts: Mapping[str, Tensor], args: Any = None,
    kwargs: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """`module(*args, **kwargs)` with tensors by dotted name in place of its parameters and buffers.

    Gradients flow to the tensors given. Raises CORE-0605 for a name that is not there.
    """
    places = []
    for name, tensor in parameter_and_buffer_dicts.items():
        where, _, last = name.rpartition(".")
        part = module.get_submodule(where)
        table = "_parameters" if last in part._parameters else "_buffers"
        part._get_member(last, table, "parameter or buffer")
        places.append((part, getattr(part, table), last, tensor))
    before = [(part, table, last, table[last]) for part, table, last, _ in places]
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for part, table, last, tensor in places:
            table[last] = part.__dict__[last] = tensor
        return module(*given, **(kwargs or {}))
    finally:
        for part, table, last, own in before:
            table[last] = part.__dict__[last] = own
