"""Modules that hold modules or parameters: in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Self

from numbat.nn.module import Module, _indented
from numbat.nn.parameter import Parameter
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index: Any, length: int) -> int:
    at = index.__index__()
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of range")
    return int(at) % length


class _Numbered(Module):
    """What `Sequential` and `ModuleList` share: modules under the names "0", "1", ..."""

    def _names(self) -> list[str]:
        return list(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        names = self._names()
        if isinstance(index, slice):
            return self._of({name: self._modules[name] for name in names[index]})
        return self._modules[names[_position(index, len(names))]]

    def _of(self, held: dict[str, Any]) -> Any:
        kind: Any = type(self)
        return kind(list(held.values()))

    def __setitem__(self, index: Any, module: Module) -> None:
        names = self._names()
        self.register_module(names[_position(index, len(names))], module)

    def __delitem__(self, index: Any) -> None:
        names = self._names()
        gone = names[index] if isinstance(index, slice) else [names[_position(index, len(names))]]
        for name in gone:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, held: list[Any]) -> None:
        for name in self._names():
            delattr(self, name)
        for at, one in enumerate(held):
            self.register_module(str(at), one)

    def append(self, module: Module) -> Self:
        """Puts a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Puts modules at the end."""
        for one in list(modules):
            self.append(one)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before the one at `index`."""
        held = list(self._modules.values())
        held.insert(index, module)
        self._renumber(held)
        return self

    def pop(self, key: Any) -> Module:
        """Takes a module out and gives it."""
        found: Module = self[key]
        del self[key]
        return found

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Numbered):
    """Modules in a row: each gets the result of the one before."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.register_module(name, module)
        else:
            for at, module in enumerate(args):
                self.register_module(str(at), module)

    def forward(self, input: Any) -> Any:
        """The last module's result."""
        for module in self:
            input = module(input)
        return input

    def _of(self, held: dict[str, Any]) -> Any:
        return type(self)(dict(held))

    def _renumber(self, held: list[Any]) -> None:
        # Names that were given stay; only numbers are counted anew.
        if all(name.isdigit() for name in self._names()):
            super()._renumber(held)

    def __add__(self, other: Iterable[Module]) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(list(self) * times))

    __rmul__ = __mul__


class ModuleList(_Numbered):
    """A list of modules, to be called as its owner likes."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at `index`."""
        super().insert(index, module)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __repr__(self) -> str:
        """Its modules; equal neighbours are written once, with their count."""
        if not len(self):
            return f"{self._get_name()}()"
        runs: list[tuple[int, int, str]] = []
        for at, one in enumerate(self):
            text = repr(one)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], at, text)
            else:
                runs.append((at, at, text))
        lines = [
            _indented(
                f"({first}): {text}"
                if first == last
                else f"({first}-{last}): {last - first + 1} x {text}"
            )
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, in the order in which they came."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        if key not in self._modules:
            raise KeyError(key)
        self._forget(key, "")

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        for key in list(self._modules):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a module out and gives it."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a mapping or from pairs of a name and a module."""
        pairs = modules.items() if hasattr(modules, "items") else modules
        for key, module in pairs:
            self[key] = module


def _as_member(value: Any) -> Any:
    """A bare tensor as a parameter; all else as it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value, requires_grad=value.dtype.is_floating_point)
    return value


def _described(name: str, one: Any) -> str:
    if isinstance(one, Tensor):
        shape = "x".join(str(extent) for extent in one.shape)
        kind = "Parameter" if isinstance(one, Parameter) else "Tensor"
        return f"  ({name}): {kind} containing: [{one.dtype} of size {shape}]"
    return f"  ({name}): Object of type: {type(one).__name__}"


class ParameterList(Module):
    """A list of parameters; a bare tensor becomes one, anything else is held without being
    registered."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(self._size))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[at] for at in range(*index.indices(self._size))])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(_position(index, self._size)), _as_member(value))

    def append(self, value: Any) -> Self:
        """Puts a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Puts values at the end; CORE-0602 for what is no sequence of them."""
        if isinstance(values, (Tensor, str)) or not hasattr(values, "__iter__"):
            raise refuse(
                "CORE-0602", name="values", given=type(values).__name__,
                wanted="a sequence of parameters",
            )  # fmt: skip
        for one in list(values):
            self.append(one)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(_described(str(at), one) for at, one in enumerate(self))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise refuse("CORE-0607", module="ParameterList")


class ParameterDict(Module):
    """Parameters by name; a bare tensor becomes one, anything else is held without being
    registered."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._keys:
            # A name such as "update" would hide the method.
            self._check_name(key, "parameter", {})
        self._keys[key] = None
        setattr(self, key, _as_member(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same values."""
        return ParameterDict(dict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which is `default` from now on where there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out and gives it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes the last value out and gives it with its name."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another dictionary with one value under all names."""
        return ParameterDict(dict.fromkeys(keys, default))

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """The values."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Adds values from a mapping or from pairs."""
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict(dict(self.items()) | dict(other.items()))

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(_described(key, one) for key, one in self.items())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise refuse("CORE-0607", module="ParameterDict")
