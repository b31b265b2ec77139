"""What a module's state is: saving it under torch's names, and loading it back."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numbat.autograd.in_place import bump
from numbat.nn.parameter import Parameter, is_unshaped
from numbat.ops.casting import cast_array
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

if TYPE_CHECKING:
    from numbat.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateDict(OrderedDict[str, Any]):
    """Tensors by name, in the order in which the modules registered them; `_metadata` holds
    versions."""

    _metadata: OrderedDict[str, dict[str, Any]]


EXTRA = "_extra_state"
"""The key under which `get_extra_state` is kept, as in torch."""


def save(module: Module, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Gathers the state of a module and of all within it."""
    if destination is None:
        destination = StateDict()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in list(module.hooks_of("state_dict_pre").values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in list(module.hooks_of("state_dict").values()):
        given = hook(module, destination, prefix, metadata)
        if given is not None:
            destination = given
    return destination


def save_own(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Adds the parameters and persistent buffers of this module alone."""
    for name, held in own_state(module).items():
        kept = keep_vars or is_unshaped(held)
        destination[prefix + name] = held if kept else held.detach()
    if _has_extra_state(module):
        destination[prefix + EXTRA] = module.get_extra_state()


def own_state(module: Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers of this module alone, without those that are None."""
    transient = module._non_persistent_buffers_set
    buffers = {name: one for name, one in module._buffers.items() if name not in transient}
    return {name: one for name, one in (module._parameters | buffers).items() if one is not None}


def _has_extra_state(module: Module) -> bool:
    from numbat.nn.module import Module

    return type(module).get_extra_state is not Module.get_extra_state


def load(module: Module, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Copies (or, with `assign`, lays) a state into a module and all within it.

    Raises CORE-0604 where a shape is not the module's, or, under `strict`, where names are missing
    or unexpected.
    """
    metadata = getattr(state, "_metadata", None)
    left = StateDict(state)
    missing: list[str] = []
    unexpected: list[str] = []
    faults: list[str] = []

    def descend(part: Module, local: Any, prefix: str) -> None:
        versions = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            versions["assign_to_params_buffers"] = True
        part._load_from_state_dict(local, prefix, versions, strict, missing, unexpected, faults)
        for name, child in part._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                descend(
                    child, {key: one for key, one in local.items() if key.startswith(inner)}, inner
                )
        found = IncompatibleKeys(missing, unexpected)
        for hook in list(part.hooks_of("load_state_dict_post").values()):
            hook(part, found)

    descend(module, left, "")
    if faults or (strict and (missing or unexpected)):
        raise refuse(
            "CORE-0604", module=type(module).__name__,
            missing=missing if strict else [], unexpected=unexpected if strict else [],
            mismatched=faults,
        )  # fmt: skip
    return IncompatibleKeys(missing, unexpected)


def load_own(
    module: Module, state: Any, prefix: str, metadata: dict[str, Any], strict: bool,
    missing: list[str], unexpected: list[str], faults: list[str],
) -> None:  # fmt: skip
    """Loads the parameters and persistent buffers of this module alone."""
    for hook in list(module.hooks_of("load_state_dict_pre").values()):
        hook(module, state, prefix, metadata, strict, missing, unexpected, faults)
    assign = metadata.get("assign_to_params_buffers", False)
    for name, held in own_state(module).items():
        key = prefix + name
        if key not in state:
            if strict:
                missing.append(key)
            continue
        given = state[key]
        if is_unshaped(given):
            continue
        tensor = given if isinstance(given, Tensor) else wrap(np.asarray(given))
        if is_unshaped(held):
            held.materialize(tensor.shape)
        if tensor.shape != held.shape:
            faults.append(f"{key}: {list(tensor.shape)} given, {list(held.shape)} wanted")
        elif assign:
            _assign(module, name, held, tensor)
        else:
            held.array[...] = cast_array(tensor.array, held.array.dtype)
            bump(held)
    extra = prefix + EXTRA
    if _has_extra_state(module):
        if extra in state:
            module.set_extra_state(state[extra])
        elif strict:
            missing.append(extra)
    elif strict and extra in state:
        unexpected.append(extra)
    if strict:
        own = own_state(module)
        for key in state:
            if key.startswith(prefix) and key != extra:
                first = key[len(prefix) :].split(".", 1)
                inner = len(first) > 1 and first[0] in module._modules
                if not inner and (len(first) > 1 or first[0] not in own):
                    unexpected.append(key)


def _assign(module: Module, name: str, held: Tensor, given: Tensor) -> None:
    if isinstance(held, Parameter) and not isinstance(given, Parameter):
        given = Parameter(given, requires_grad=held.requires_grad)
    elif isinstance(held, Parameter):
        given.requires_grad_(held.requires_grad)
    setattr(module, name, given)
