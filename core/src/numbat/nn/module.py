"""The module: a callable that owns parameters, buffers and other modules, under names.

Source: PyTorch, "torch.nn.Module": names, orders, hooks and state are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from numbat.autograd.mode import no_grad
from numbat.autograd.tape import Handle
from numbat.nn import hooks, state
from numbat.nn.parameter import Buffer, Parameter, is_unshaped
from numbat.tensors.device import Device, check_device
from numbat.tensors.dtypes import DType, as_dtype
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["Module"]


class Module:
    """A part of a model. Subclasses build their parts in `__init__` and compute in `forward`.

    Parameters, buffers and modules that are assigned as attributes are registered. They stand in
    `_parameters`, `_buffers` and `_modules`, and, so that reading them costs nothing, in the
    instance as well; assignment, deletion and the `register_` methods keep both in step.

    Attributes:
        training: whether the module is in training mode (dropout, batch statistics).
    """

    training: bool
    _version = 1
    _hooked = False
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _hooks: dict[str, dict[int, Any]]

    def __init__(self) -> None:
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _modules={},
            _non_persistent_buffers_set=set(), _hooks={},
        )  # fmt: skip

    # -- calling ------------------------------------------------------------------------------

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """What the module computes; subclasses define it. Raises CORE-0607 here."""
        raise refuse("CORE-0607", module=type(self).__name__)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._hooked:
            return hooks.call(self, args, keywords)
        return self.forward(*args, **keywords)

    # -- registration -------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Registers a parameter, or None for one that is absent.

        Raises CORE-0601 for a name that cannot be one, CORE-0602 for what is no parameter,
        CORE-0603 before `Module.__init__`.
        """
        self._check_name(name, "parameter", self._owned("_parameters"))
        if param is not None and not isinstance(param, Parameter):
            raise refuse("CORE-0602", name=name, given=type(param).__name__, wanted="Parameter")
        self._parameters[name] = param
        self.__dict__[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Registers a tensor that is state but does not learn; without `persistent` it is not
        saved.

        Raises CORE-0601, CORE-0602, CORE-0603, as `register_parameter`.
        """
        self._check_name(name, "buffer", self._owned("_buffers"))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise refuse("CORE-0602", name=name, given=type(tensor).__name__, wanted="Tensor")
        self._buffers[name] = tensor
        self.__dict__[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Registers a module within this one; raises as `register_parameter`."""
        self._check_name(name, "module", self._owned("_modules"))
        if module is not None and not isinstance(module, Module):
            raise refuse("CORE-0602", name=name, given=type(module).__name__, wanted="Module")
        self._modules[name] = module
        self.__dict__[name] = module

    add_module = register_module

    def _owned(self, table: str) -> dict[str, Any]:
        held: dict[str, Any] | None = self.__dict__.get(table)
        if held is None:
            raise refuse("CORE-0603", module=type(self).__name__)
        return held

    def _check_name(self, name: Any, kind: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str) or not name:
            raise refuse("CORE-0601", name=str(name), kind=kind, because="it is empty or no text")
        if "." in name:
            raise refuse("CORE-0601", name=name, kind=kind, because="it holds a dot")
        if name not in table and hasattr(self, name):
            raise refuse(
                "CORE-0601", name=name, kind=kind, because="the module has such an attribute"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__
        if isinstance(value, Parameter):
            self._owned("_parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._owned("_modules")
            self._forget(name, "_modules")
            self.register_module(name, value)
        elif isinstance(value, Buffer):
            self._owned("_buffers")
            known = name in self._buffers
            self._forget(name, "_buffers")
            keep = name not in self._non_persistent_buffers_set if known else value.persistent
            self.register_buffer(name, value, keep)
        elif "_parameters" not in held:
            object.__setattr__(self, name, value)
        elif name in self._parameters:
            self.register_parameter(name, value)
        elif name in self._modules:
            self.register_module(name, value)
        elif name in self._buffers:
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, kept: str) -> None:
        """Takes a name out of the instance and of every table but one."""
        held = self.__dict__
        held.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept:
                held[table].pop(name, None)
        if kept != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                self._forget(name, "")
                return
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        # Reached only for what the instance does not hold: a table was changed directly, or
        # nothing.
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                return self.__dict__[table][name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    # -- walking ------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all within it, with their dotted names, outer before inner."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all within it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly within this one, with their names, each once."""
        seen: set[int] = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        """The modules directly within this one, each once."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        parts = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for where, module in parts:
            for name, member in getattr(module, table).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{where}.{name}" if where else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names, each once unless duplicates are wanted."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, one in self.named_parameters(recurse=recurse):
            yield one

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names, each once unless duplicates are wanted."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, one in self.named_buffers(recurse=recurse):
            yield one

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; this one for the empty name.

        Raises CORE-0605 where there is none.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            found = found._modules.get(name)
            if not isinstance(found, Module):
                raise refuse("CORE-0605", module=type(self).__name__, target=target, kind="module")
        result: Module = found
        return result

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a dotted name; with `strict` only where one stands already
        (CORE-0605)."""
        where, _, name = target.rpartition(".")
        parent = self.get_submodule(where)
        if not name or (strict and name not in parent._modules):
            raise refuse("CORE-0605", module=type(self).__name__, target=target, kind="module")
        setattr(parent, name, module)

    def _get_member(self, target: str, table: str, kind: str) -> Any:
        where, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(where), table).get(name)
        if found is None:
            raise refuse("CORE-0605", module=type(self).__name__, target=target, kind=kind)
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises CORE-0605 where there is none."""
        found: Parameter = self._get_member(target, "_parameters", "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises CORE-0605 where there is none."""
        found: Tensor = self._get_member(target, "_buffers", "buffer")
        return found

    # -- changing all -------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` with every module within, then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Puts this module and all within it in training mode, or in evaluation mode."""
        if not isinstance(mode, bool):
            raise refuse(
                "CORE-0608",
                module="Module.train",
                argument="mode",
                value=repr(mode),
                wanted="a bool",
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Puts this module and all within it in evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Asks for gradients of all parameters, or for none."""
        for one in self.parameters():
            one.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with zeros."""
        for one in self.parameters():
            if set_to_none:
                one.grad = None
            elif one.grad is not None:
                one.grad = one.grad.detach()
                one.grad.array[...] = 0

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the values of every parameter, gradient and buffer by what `fn` gives of
        them."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        with no_grad():
            for member in (*self._parameters.values(), *self._buffers.values()):
                if member is None or is_unshaped(member):
                    continue
                member.array = fn(member).array
                if member.grad is not None:
                    member.grad = fn(member.grad)
        return self

    def _cast(self, dtype: Any) -> Self:
        chosen = as_dtype(dtype)
        if not chosen.is_floating_point:
            raise refuse("CORE-0102", operation="Module.to", dtype=chosen.name)
        for one in (*self.parameters(), *self.buffers()):
            if is_unshaped(one):
                one.unshaped_dtype = chosen  # type: ignore[attr-defined]
        return self._apply(lambda one: one.to(chosen) if one.dtype.is_floating_point else one)

    def to(self, *target: Any, device: Any = None, dtype: Any = None, **_: Any) -> Self:
        """Casts floating parameters and buffers to another floating type, in place.

        Raises CORE-0102 for a type that is not floating, CORE-0104 for an unknown device.
        """
        for one in target:
            if isinstance(one, Tensor):
                dtype = one.dtype
            elif isinstance(one, DType) or one is float:
                dtype = one
            elif isinstance(one, (str, Device)):
                check_device(one)
        check_device(device)
        return self if dtype is None else self._cast(dtype)

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers, whole numbers too."""
        chosen = as_dtype(dst_type)
        return self._apply(lambda one: one.to(chosen))

    def half(self) -> Self:
        """Casts floating parameters and buffers to float16."""
        return self._cast("float16")

    def float(self) -> Self:
        """Casts floating parameters and buffers to float32."""
        return self._cast("float32")

    def double(self) -> Self:
        """Casts floating parameters and buffers to float64."""
        return self._cast("float64")

    def bfloat16(self) -> Self:
        """Casts floating parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def cpu(self) -> Self:
        """The module itself: its memory is the CPU's."""
        return self

    # -- hooks --------------------------------------------------------------------------------

    def hooks_of(self, kind: str) -> dict[int, Any]:
        """The hooks of one kind, by key, in the order in which they are called."""
        return self._hooks.get(kind, {})

    def _add_hook(self, kind: str, hook: Any, prepend: bool = False) -> Handle:
        self.__dict__["_hooked"] = True
        return hooks.register(self._hooks.setdefault(kind, {}), hook, prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Calls `hook(module, args)` before `forward`; what it gives replaces the arguments.

        With `with_kwargs`, `hook(module, args, kwargs)` gives None or both.
        """
        return self._add_hook(hooks.BEFORE, (hook, with_kwargs, False), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Handle:  # fmt: skip
        """Calls `hook(module, args, result)` after `forward`; what it gives replaces the result.

        With `with_kwargs`, `hook(module, args, kwargs, result)`; with `always_call` also where
        `forward` raised.
        """
        return self._add_hook(hooks.AFTER, (hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Calls `hook(module, grad_input, grad_output)` when the inputs' gradients are known.

        What it gives replaces the gradients of the inputs.
        """
        return self._add_hook(hooks.BACKWARD, hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Calls `hook(module, grad_output)` before the module's backward pass; what it gives
        replaces the gradients of the results."""
        return self._add_hook(hooks.BACKWARD_BEFORE, hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls `hook(module, prefix, keep_vars)` before the state is gathered."""
        return self._add_hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after the state was gathered."""
        return self._add_hook("state_dict", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected,
        faults)` before the module's own state is loaded."""
        return self._add_hook("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls `hook(module, incompatible_keys)` after the module's state was loaded."""
        return self._add_hook("load_state_dict_post", hook)

    # -- state --------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Further state to be saved; a module that has any defines this and `set_extra_state`."""
        raise refuse("CORE-0607", module=f"{type(self).__name__}.get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` gave."""
        raise refuse("CORE-0607", module=f"{type(self).__name__}.set_extra_state")

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name; detached, unless `keep_vars`."""
        return state.save(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Copies tensors (or numpy arrays) of a state into this module; with `assign` takes them
        over.

        Raises CORE-0604 where names or shapes are not the module's.
        """
        return state.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        state.load_own(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    # -- text ---------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The module's options, for `repr`."""
        return ""

    def __repr__(self) -> str:
        options = self.extra_repr()
        lines = options.split("\n") if options else []
        inner = [f"({name}): " + _indented(repr(one)) for name, one in self._modules.items()]
        if not inner and len(lines) <= 1:
            return f"{self._get_name()}({options})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + inner) + "\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
