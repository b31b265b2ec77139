"""Parameters that are computed from others each time they are read.

Source: PyTorch, `torch.nn.utils.parametrize`; state has its names
(`parametrizations.weight.original`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numbat.autograd.mode import no_grad
from numbat.nn.containers import ModuleDict, ModuleList
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations",
]  # fmt: skip


class _Cache:
    depth = 0
    held: dict[tuple[int, str], Tensor]


_CACHE = _Cache()
_CACHE.held = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within it each parametrised tensor is computed once, however often it is read."""
    _CACHE.depth += 1
    try:
        yield
    finally:
        _CACHE.depth -= 1
        if not _CACHE.depth:
            _CACHE.held.clear()


class ParametrizationList(ModuleList):
    """The functions a tensor goes through, and what it is computed from: `original`, or `original0`
    ..."""

    def __init__(self, modules: list[Module], original: Tensor) -> None:
        super().__init__(modules)
        values: Any = original
        with no_grad():
            for one in reversed(modules):
                if hasattr(one, "right_inverse"):
                    values = one.right_inverse(values)
        self.is_tensor = isinstance(values, Tensor)
        several = (values,) if self.is_tensor else tuple(values)
        self.ntensors = len(several)
        learns = isinstance(original, Parameter)
        for name, value in zip(self._names_of_originals(), several, strict=True):
            if not learns:
                self.register_buffer(name, value)
            elif value is original:
                self.register_parameter(name, original)
            else:
                kept = Parameter(value.detach(), requires_grad=original.requires_grad)
                self.register_parameter(name, kept)

    def _names_of_originals(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{at}" for at in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the tensor becomes `value`; CORE-0607 where no inverse is
        defined."""
        with no_grad():
            found: Any = value
            for one in reversed(list(self)):
                if not hasattr(one, "right_inverse"):
                    raise refuse("CORE-0607", module=f"{type(one).__name__}.right_inverse")
                found = one.right_inverse(found)
            several = (found,) if self.is_tensor else tuple(found)
            for name, one in zip(self._names_of_originals(), several, strict=True):
                held = getattr(self, name)
                held.array = one.array.copy() if one.array is value.array else one.array

    def forward(self) -> Tensor:
        """The tensor."""
        parts = list(self)
        value: Tensor = parts[0](*[getattr(self, name) for name in self._names_of_originals()])
        for one in parts[1:]:
            value = one(value)
        return value


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or any, is computed from others."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def _property(name: str) -> property:
    def read(module: Any) -> Tensor:
        if not _CACHE.depth:
            found: Tensor = module.parametrizations[name]()
            return found
        key = (id(module), name)
        if key not in _CACHE.held:
            _CACHE.held[key] = module.parametrizations[name]()
        return _CACHE.held[key]

    def write(module: Any, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(read, write)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Lets a parameter or buffer of `module` be computed by `parametrization` from then on.

    The parametrisation's `right_inverse`, where it has one, gives what the tensor is computed from.

    Raises CORE-0605 where there is no such tensor, and, unless `unsafe`, CORE-0609 where the result
    has another shape.
    """
    if is_parametrized(module, tensor_name):
        row = module.parametrizations[tensor_name]
        value = getattr(module, tensor_name)
        row.append(parametrization)
        if hasattr(parametrization, "right_inverse"):
            row.right_inverse(value.detach())
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)  # type: ignore[assignment]
    if original is None:
        raise refuse(
            "CORE-0605", module=type(module).__name__, target=tensor_name,
            kind="parameter or buffer",
        )  # fmt: skip
    row = ParametrizationList([parametrization], original)
    with no_grad():
        made = row()
    if not unsafe and (made.shape != original.shape or made.dtype is not original.dtype):
        raise refuse(
            "CORE-0609", module=type(parametrization).__name__, shape=list(made.shape),
            wanted=f"{original.dtype.name} of the shape {list(original.shape)}",
        )  # fmt: skip
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"_plain_class": kind})
    module.parametrizations[tensor_name] = row
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def remove_parametrizations(
    module: Any, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes the tensor an ordinary one again: its value of now, or, if not so, its original.

    Raises CORE-0605 where it is not parametrised, CORE-0608 where there are several originals to
    leave.
    """
    if not is_parametrized(module, tensor_name):
        raise refuse(
            "CORE-0605", module=type(module).__name__, target=tensor_name,
            kind="parametrised tensor",
        )  # fmt: skip
    row = module.parametrizations[tensor_name]
    if not leave_parametrized and not row.is_tensor:
        raise refuse(
            "CORE-0608", module="remove_parametrizations", argument="leave_parametrized",
            value="False", wanted="True, since the tensor is computed from several",
        )  # fmt: skip
    learns = bool(row._parameters)
    with no_grad():
        value = getattr(module, tensor_name).detach() if leave_parametrized else row.original
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module)._plain_class
    if learns:
        wanted = any(one.requires_grad for one in row.parameters())
        kept = value if isinstance(value, Parameter) else Parameter(value, requires_grad=wanted)
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, value)
    result: Module = module
    return result
