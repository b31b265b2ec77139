"""What every optimiser is: groups of parameters with settings, a state for each parameter, and a
step.

Settings, their order, the names in the state and the layout of `state_dict` are PyTorch's, so that
a state that torch saved can be loaded. `foreach` and `fused` are taken and change no bit: every
element is stepped for itself, by one call of a kernel for all parameters or one each.
Source: PyTorch 2.13, `torch/optim/optimizer.py`.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from numbat.autograd.in_place import bump
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Handle
from numbat.kernels.pool import run
from numbat.tensors.dtypes import float64, get_default_dtype
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

GRAIN = 32768
"""Elements that numpy steps at a time, so that what one operation wrote is still near for the
next."""

Group = dict[str, Any]
State = dict[str, Any]


def scalar(value: Any) -> float:
    """A setting as a number; a tensor of one element is taken as well."""
    return float(value)


def check(optimizer: str, setting: str, value: Any, wanted: str, good: bool) -> None:
    """Refuses, with CORE-0701, a setting outside its range."""
    if not good:
        raise refuse(
            "CORE-0701", optimizer=optimizer, setting=setting, value=str(value), wanted=wanted
        )


def check_settings(optimizer: str, **settings: Any) -> None:
    """Refuses, with CORE-0701, a setting below zero or that is no number."""
    for name, value in settings.items():
        check(optimizer, name, value, "a number from 0", bool(scalar(value) >= 0))


def check_betas(optimizer: str, betas: tuple[Any, Any]) -> tuple[float, float]:
    """The two rates as numbers.

    Raises CORE-0701 for one outside [0, 1).
    """
    first, second = (scalar(one) for one in betas)
    for beta in (first, second):
        check(optimizer, "betas", beta, "in [0, 1)", 0.0 <= beta < 1.0)
    return first, second


class Optimizer:
    """The base of all optimisers; a subclass writes `update`.

    Args:
        params: tensors, pairs of a name and a tensor, or groups: dicts of `params` and settings.
        defaults: the settings of groups that do not name them.

    Raises CORE-0703 for parameters that cannot be optimised.
    """

    def __init__(self, params: Any, defaults: Group) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise refuse("CORE-0703", because="a tensor was given; give a list of them")
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise refuse("CORE-0703", because="there is none")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self._hooks: dict[str, dict[int, Any]] = {
            name: {}
            for name in (
                "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre",
                "load_state_dict_post",
            )
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults, "state": self.state, "param_groups": self.param_groups,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # -- groups -------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Adds a group; settings it does not name are the defaults.

        Raises CORE-0703 for a parameter that is no leaf, stands in another group, or is no tensor.
        """
        if not isinstance(param_group, dict):
            raise refuse("CORE-0703", because="a group is a dict")
        params = param_group["params"]
        if isinstance(params, set):
            raise refuse("CORE-0703", because="a set has no order")
        several = [params] if isinstance(params, Tensor) else list(params)
        names = [one[0] for one in several if isinstance(one, tuple)]
        tensors = [one[1] if isinstance(one, tuple) else one for one in several]
        if names:
            if len(names) != len(tensors):
                raise refuse("CORE-0703", because="some are named and some are not")
            param_group["param_names"] = names
        for one in tensors:
            if not isinstance(one, Tensor):
                raise refuse("CORE-0703", because=f"one is a {type(one).__name__}")
            if not one.is_leaf:
                raise refuse("CORE-0703", because="one is the result of an operator, not a leaf")
        param_group["params"] = tensors
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        if len({id(one) for one in tensors}) != len(tensors):
            warnings.warn("a parameter stands twice in a group", stacklevel=3)
        held = {id(one) for group in self.param_groups for one in group["params"]}
        if any(id(one) in held for one in tensors):
            raise refuse("CORE-0703", because="one stands in two groups")
        if any(("param_names" in group) != bool(names) for group in self.param_groups):
            raise refuse("CORE-0703", because="some groups are named and some are not")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients, or fills them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none or param.grad is None:
                    param.grad = None
                else:
                    param.grad = param.grad.detach()
                    param.grad.array.fill(0)

    # -- the step -----------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Steps every parameter that has a gradient; gives what `closure` gave, called before
        it."""
        args: tuple[Any, ...] = () if closure is None else (closure,)
        keywords: dict[str, Any] = {}
        for hook in list(self._hooks["step_pre"].values()):
            given = hook(self, args, keywords)
            if given is not None:
                args, keywords = given
        loss = self._stepped(*args, **keywords)
        for hook in list(self._hooks["step_post"].values()):
            hook(self, args, keywords)
        return loss

    def _stepped(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        before = MODE.recording
        try:
            if closure is not None:
                MODE.recording = True
                loss = closure()
            MODE.recording = False
            for group in self.param_groups:
                params = [one for one in group["params"] if one.grad is not None]
                if params:
                    self.update(group, params)
                    for one in params:
                        bump(one)
        finally:
            MODE.recording = before
        return loss

    def update(self, group: Group, params: list[Tensor]) -> None:
        """Steps the parameters of a group, all of which have gradients."""
        raise NotImplementedError

    # -- hooks --------------------------------------------------------------------------------

    def _hook(self, kind: str, hook: Any, prepend: bool = False) -> Handle:
        hooks = self._hooks[kind]
        handle = Handle(hooks, hook)
        if prepend:
            others = {key: one for key, one in hooks.items() if key != handle.key}
            hooks.clear()
            hooks[handle.key] = hook
            hooks.update(others)
        return handle

    def register_step_pre_hook(self, hook: Any) -> Handle:
        """Calls `hook(optimizer, args, keywords)` before each step; it may give others."""
        return self._hook("step_pre", hook)

    def register_step_post_hook(self, hook: Any) -> Handle:
        """Calls `hook(optimizer, args, keywords)` after each step."""
        return self._hook("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Calls `hook(optimizer)` before the state is gathered."""
        return self._hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Calls `hook(optimizer, state_dict)` after it; what it gives replaces it."""
        return self._hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Calls `hook(optimizer, state_dict)` before a state is loaded; it may give another."""
        return self._hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Calls `hook(optimizer)` after a state was loaded."""
        return self._hook("load_state_dict_post", hook, prepend)

    # -- the state ----------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state by the parameters' numbers, and the groups with numbers instead of
        parameters."""
        for hook in list(self._hooks["state_dict_pre"].values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for one in group["params"]:
                numbers.setdefault(id(one), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(one)] for one in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._hooks["state_dict_post"].values()):
            found = hook(self, found) or found
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave; tensors are cast to their parameter's type.

        Raises CORE-0704 where its groups are not those of this optimiser.
        """
        given = dict(state_dict)
        for hook in list(self._hooks["load_state_dict_pre"].values()):
            given = hook(self, given) or given
        saved = deepcopy(given["param_groups"])
        sizes = [len(group["params"]) for group in self.param_groups]
        saved_sizes = [len(group["params"]) for group in saved]
        if sizes != saved_sizes:
            raise refuse("CORE-0704", groups=sizes, saved=saved_sizes)
        params: dict[Any, Tensor] = {}
        for group, loaded in zip(self.param_groups, saved, strict=True):
            params.update(zip(loaded["params"], group["params"], strict=True))
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in given["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in list(self._hooks["load_state_dict_post"].values()):
            hook(self)


def _cast(param: Tensor, value: Any, key: Any = None) -> Any:
    """A loaded value; tensors in a type of their own, but for the count of steps."""
    if isinstance(value, Tensor):
        if key == "step" or not param.dtype.is_floating_point:
            return wrap(value.array.copy())
        return wrap(value.array.astype(param.array.dtype))
    if isinstance(value, dict):
        return {name: _cast(param, one, name) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, one) for one in value)
    return value


def kept_number(value: float) -> Tensor:
    """A number of the state as PyTorch keeps it: float32 (the default type, where wider), no
    axes."""
    wide = get_default_dtype() is float64
    return wrap(np.array(value, np.float64 if wide else np.float32))


def fresh_step() -> Tensor:
    """A count of steps, before the first."""
    return kept_number(0.0)


def counted(state: State) -> float:
    """The number of this step."""
    step = state["step"]
    if not isinstance(step, Tensor):  # Early versions of torch saved a number.
        step = state["step"] = wrap(np.array(step, np.float32))
    step.array[...] += 1
    return float(step.array)


def by_step(params: list[Tensor], states: list[State]) -> Iterable[tuple[float, list[int]]]:
    """The indices of the parameters that make the same step, counted now."""
    found: dict[float, list[int]] = {}
    for index, state in enumerate(states):
        found.setdefault(counted(state), []).append(index)
    return found.items()


class Elementwise(Optimizer):
    """An optimiser whose step of an element needs nothing of the others, in numpy.

    A subclass names the arrays of its state and writes `start` and `advance`. Parameters of float16
    and bfloat16 are stepped in float32, and rounded once.
    """

    arrays: ClassVar[tuple[str, ...]] = ()
    coupled_decay: ClassVar[bool] = True

    def start(self, group: Group, param: Tensor) -> State:
        """The state before the first step."""
        return {"step": fresh_step()} | {
            name: wrap(np.zeros_like(param.array)) for name in self.arrays
        }

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        """The numbers of this step that `advance` needs; may write those the state keeps."""
        return {}

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        """Steps elements in place: parameters, then the state's arrays; `g` may be written over."""
        raise NotImplementedError

    def update(self, group: Group, params: list[Tensor]) -> None:
        sign = -1.0 if group.get("maximize") else 1.0
        decay = scalar(group.get("weight_decay", 0)) if self.coupled(group) else 0.0
        for param in params:
            state = self.state[param]
            if not state:
                state.update(self.start(group, param))
            scalars = self.scalars(group, state, counted(state))
            held = [state[name].array for name in self.arrays if name in state]
            assert param.grad is not None
            _stepped(self.advance, param.array, param.grad.array, held, sign, decay, scalars)

    def coupled(self, group: Group) -> bool:
        """Whether the decay is added to the gradient."""
        return self.coupled_decay


def _stepped(
    advance: Callable[..., None], p: Array, g: Array, held: list[Array], sign: float, decay: float,
    scalars: dict[str, float],
) -> None:  # fmt: skip
    """Steps one parameter, block by block where its memory has no gaps."""
    if p.dtype.itemsize == 2:
        wide = [one.astype(np.float32) for one in (p, *held)]
        _stepped(advance, wide[0], g.astype(np.float32), wide[1:], sign, decay, scalars)
        for narrow, one in zip((p, *held), wide, strict=True):
            narrow[...] = one
        return

    def block(p: Array, g: Array, held: list[Array]) -> None:
        # numpy gives a scalar for arrays of no axes, which could not be written over.
        gradient = np.asarray(g * p.dtype.type(sign))
        if decay:
            gradient += p * p.dtype.type(decay)
        advance(p, gradient, *held, **scalars)

    if p.size <= GRAIN or not all(one.flags.c_contiguous for one in (p, g, *held)):
        block(p, g, held)
        return
    flat_p, flat_g, flat = p.reshape(-1), g.reshape(-1), [one.reshape(-1) for one in held]

    def piece(begin: int, end: int) -> None:
        block(flat_p[begin:end], flat_g[begin:end], [one[begin:end] for one in flat])

    run(piece, (), p.size, GRAIN)


def check_options(optimizer: str, **options: Any) -> None:
    """Refuses, with CORE-0702, what PyTorch has for graphs of CUDA or for derivatives of a step."""
    for name, value in options.items():
        if value:
            raise refuse("CORE-0702", optimizer=optimizer, option=name)
    # `foreach` and `fused` ask for the same numbers by another road, and both were asked for.


def check_roads(optimizer: str, foreach: Any, fused: Any) -> None:
    """Refuses, with CORE-0702, `foreach` and `fused` together, as PyTorch does."""
    if foreach and fused:
        raise refuse("CORE-0702", optimizer=optimizer, option="foreach with fused")
