"""Modules: what they register, how they are walked, what hooks see, what their state is."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat import nn
from numbat_registries import Refusal


class Scale(nn.Module):
    """One parameter, one buffer, one that is not saved."""

    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.gain = nn.Parameter(nb.full((size,), 2.0))
        self.register_buffer("shift", nb.ones(size))
        self.scratch = nn.Buffer(nb.zeros(size), persistent=False)

    def forward(self, x: nb.Tensor, *, twice: bool = False) -> nb.Tensor:
        out = x * self.gain + self.shift
        return out * 2 if twice else out


class Pair(nn.Module):
    """Two modules, of which one stands under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = nn.Sequential(Scale(), self.first)

    def forward(self, x: nb.Tensor) -> nb.Tensor:
        return self.second(self.first(x))


def refused(code: str) -> Any:
    return pytest.raises(Refusal, match=code)


def test_assignment_registers_parameters_buffers_and_modules() -> None:
    model = Pair()
    assert [name for name, _ in model.named_parameters()] == ["first.gain", "second.0.gain"]
    assert [name for name, _ in model.named_buffers()] == [
        "first.shift", "first.scratch", "second.0.shift", "second.0.scratch",
    ]  # fmt: skip
    assert [name for name, _ in model.named_modules()] == ["", "first", "second", "second.0"]
    assert [name for name, _ in model.named_children()] == ["first", "second"]
    several = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert several == ["first.gain", "second.0.gain", "second.1.gain"]


def test_assignment_keeps_the_kind_of_a_name() -> None:
    module = Scale()
    with refused("CORE-0602"):
        module.gain = 1.0
    with refused("CORE-0602"):
        module.shift = 1.0
    module.gain = None
    assert list(module.parameters()) == []
    assert module.gain is None
    module.shift = nb.zeros(3)
    assert list(module.state_dict()) == ["shift"]
    module.gain = nn.Linear(1, 1) if hasattr(nb, "linear") else nn.Identity()
    assert "gain" in module._modules
    assert "gain" not in module._parameters
    del module.gain
    assert not hasattr(module, "gain")


def test_names_that_cannot_be_registered_are_refused() -> None:
    module = nn.Module()
    for name in ("", "a.b", "forward"):
        with refused("CORE-0601"):
            module.register_buffer(name, nb.ones(1))
    with refused("CORE-0602"):
        module.register_module("part", nb.ones(1))
    with refused("CORE-0607"):
        module(1)


def test_parts_before_init_are_refused() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(nb.ones(1))

    with refused("CORE-0603"):
        Early()


def test_dotted_names_lead_to_parts() -> None:
    model = Pair()
    assert model.get_submodule("second.0") is model.second[0]
    assert model.get_submodule("") is model
    assert model.get_parameter("first.gain") is model.first.gain
    assert model.get_buffer("second.0.shift") is model.second[0].shift
    for look, name in (
        (model.get_submodule, "second.7"), (model.get_parameter, "first.shift"),
        (model.get_buffer, "first.gain"),
    ):  # fmt: skip
        with refused("CORE-0605"):
            look(name)
    model.set_submodule("second.0", nn.Identity())
    assert isinstance(model.second[0], nn.Identity)
    with refused("CORE-0605"):
        model.set_submodule("third", nn.Identity(), strict=True)


def test_state_is_loaded_by_name_and_shape() -> None:
    model, other = Pair(), Pair()
    state = model.state_dict()
    assert list(state) == [
        "first.gain", "first.shift", "second.0.gain", "second.0.shift", "second.1.gain",
        "second.1.shift",
    ]  # fmt: skip
    assert state._metadata["second.0"] == {"version": 1}
    assert not state["first.gain"].requires_grad
    assert state["first.gain"].array is model.first.gain.array
    state = {name: one + 1 for name, one in state.items()}
    kept = other.first.gain
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.first.gain is kept
    assert other.first.gain._version == 2  # the module stands under two names
    np.testing.assert_array_equal(other.first.gain.array, [3, 3, 3])


def test_state_that_does_not_fit_is_refused_with_all_names() -> None:
    model = Pair()
    state = dict(model.state_dict())
    del state["first.shift"]
    state["third"] = nb.ones(1)
    with refused("CORE-0604") as caught:
        model.load_state_dict(state)
    fields = caught.value.diagnostic.fields
    assert fields["missing"] == ["first.shift"]
    assert fields["unexpected"] == ["third"]
    found = model.load_state_dict(state, strict=False)
    assert found.missing_keys == []
    state["first.gain"] = nb.ones(4)
    with refused("CORE-0604") as caught:
        model.load_state_dict(state, strict=False)
    assert caught.value.diagnostic.fields["mismatched"] == ["first.gain: [4] given, [3] wanted"]


def test_assign_takes_the_tensors_over() -> None:
    model = Scale()
    state = {"gain": nb.zeros(3, dtype=nb.float64), "shift": nb.zeros(3)}
    model.load_state_dict(state, assign=True)
    assert model.gain.dtype is nb.float64
    assert isinstance(model.gain, nn.Parameter)
    assert model.gain.array is state["gain"].array
    assert model.gain.requires_grad


def test_numpy_arrays_are_loaded() -> None:
    model = Scale()
    model.load_state_dict({"gain": np.arange(3.0), "shift": np.zeros(3)})
    np.testing.assert_array_equal(model.gain.array, [0, 1, 2])
    assert model.gain.dtype is nb.float32


def test_extra_state_is_saved_and_loaded() -> None:
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self) -> int:
            return self.count

        def set_extra_state(self, state: int) -> None:
            self.count = state

    first, second = nn.Sequential(Counter()), nn.Sequential(Counter())
    first[0].count = 7
    assert list(first.state_dict()) == ["0._extra_state"]
    second.load_state_dict(first.state_dict())
    assert second[0].count == 7
    with refused("CORE-0604"):
        second.load_state_dict({})


def test_state_hooks_are_called_in_their_places() -> None:
    seen: list[str] = []
    model = Scale()
    model.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append("save"))

    def rename(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        state[prefix + "offset"] = state.pop(prefix + "shift")

    def back(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        state[prefix + "shift"] = state.pop(prefix + "offset")

    model.register_state_dict_post_hook(rename)
    model.register_load_state_dict_pre_hook(back)
    model.register_load_state_dict_post_hook(lambda module, keys: seen.append("loaded"))
    state = model.state_dict()
    assert list(state) == ["gain", "offset"]
    model.load_state_dict(state)
    assert seen == ["save", "loaded"]
    assert list(state) == ["gain", "offset"]


def test_forward_hooks_change_arguments_and_results() -> None:
    model = Scale()
    calls: list[str] = []

    def before(module: Any, args: Any) -> Any:
        calls.append("before")
        return args[0] + 1

    def before_keywords(module: Any, args: Any, keywords: Any) -> Any:
        calls.append("keywords")
        return args, {**keywords, "twice": True}

    def after(module: Any, args: Any, result: Any) -> Any:
        calls.append("after")
        return result + 100

    handle = model.register_forward_pre_hook(before)
    model.register_forward_pre_hook(before_keywords, with_kwargs=True, prepend=True)
    model.register_forward_hook(after)
    np.testing.assert_array_equal(model(nb.zeros(3)).array, [106.0] * 3)
    assert calls == ["keywords", "before", "after"]
    handle.remove()
    np.testing.assert_array_equal(model(nb.zeros(3)).array, [102.0] * 3)


def test_a_hook_may_be_called_though_forward_raised() -> None:
    class Broken(nn.Module):
        def forward(self, x: nb.Tensor) -> nb.Tensor:
            raise KeyError("broken")

    model, seen = Broken(), []
    model.register_forward_hook(lambda *given: seen.append(given[2]), always_call=True)
    model.register_forward_hook(lambda *given: seen.append("no"))
    with pytest.raises(KeyError):
        model(nb.ones(1))
    assert seen == [None]


def test_backward_hooks_see_and_change_gradients() -> None:
    model, seen = Scale(), []

    def before(module: Any, grads: Any) -> Any:
        seen.append(("out", grads[0].tolist()))
        return (grads[0] * 10,)

    def after(module: Any, inputs: Any, outputs: Any) -> Any:
        seen.append(("in", inputs[0].tolist(), outputs[0].tolist()))
        return (inputs[0] * 0.5,)

    model.register_full_backward_pre_hook(before)
    model.register_full_backward_hook(after)
    x = nb.ones(3, requires_grad=True)
    model(x).sum().backward()
    assert seen == [("out", [1, 1, 1]), ("in", [20, 20, 20], [10, 10, 10])]
    np.testing.assert_array_equal(x.grad.array, [10, 10, 10])
    np.testing.assert_array_equal(model.gain.grad.array, [10, 10, 10])


def test_a_backward_hook_without_wanted_inputs_is_called_once() -> None:
    model, seen = Scale(), []
    model.register_full_backward_hook(lambda module, inputs, outputs: seen.append(inputs))
    model(nb.ones(3)).sum().backward()
    assert seen == [(None,)]


def test_casts_reach_parameters_buffers_and_gradients() -> None:
    model = Scale()
    model(nb.ones(3)).sum().backward()
    model.double()
    assert {one.dtype for one in (*model.parameters(), *model.buffers())} == {nb.float64}
    assert model.gain.grad.dtype is nb.float64
    assert model.to(nb.bfloat16).gain.dtype is nb.bfloat16
    assert model.half().float().gain.dtype is nb.float32
    with refused("CORE-0102"):
        model.to(nb.int64)
    norm = nn.BatchNorm1d(2).half()
    assert norm.num_batches_tracked.dtype is nb.int64


def test_training_mode_and_gradients_are_set_for_all() -> None:
    model = Pair()
    model.eval()
    assert not any(one.training for one in model.modules())
    model.train().requires_grad_(False)
    assert all(one.training for one in model.modules())
    assert not any(one.requires_grad for one in model.parameters())
    model.requires_grad_()(nb.ones(3)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert all(not one.grad.array.any() for one in model.parameters())
    model.zero_grad()
    assert all(one.grad is None for one in model.parameters())
    order = []
    model.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Scale", "Scale", "Scale", "Sequential", "Pair"]


def test_copies_and_pickles_are_whole_and_apart() -> None:
    model = Pair()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.first is other.second[1]
        assert other.first.gain is other.second[1].gain
        assert other.first.gain is other.first._parameters["gain"]
        assert isinstance(other.first.gain, nn.Parameter)
        other.first.gain.array[...] = 9
        np.testing.assert_array_equal(model.first.gain.array, [2, 2, 2])
        np.testing.assert_array_equal(other.first(nb.zeros(3)).array, [1, 1, 1])


def test_sequences_of_modules_behave_as_lists() -> None:
    row = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert len(row) == 3
    assert isinstance(row[-1], nn.Sigmoid)
    assert [type(one) for one in row[1:]] == [nn.Tanh, nn.Sigmoid]
    row.insert(1, nn.GELU())
    assert list(row._modules) == ["0", "1", "2", "3"]
    assert isinstance(row[1], nn.GELU)
    assert isinstance(row.pop(0), nn.ReLU)
    row.append(nn.ReLU()).extend([nn.ReLU()])
    del row[0]
    assert [type(one) for one in row] == [nn.Tanh, nn.Sigmoid, nn.ReLU, nn.ReLU]
    with pytest.raises(IndexError):
        row[4]
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert list(named._modules) == ["a", "b"]
    assert isinstance(named.b, nn.Tanh)
    both = nn.ModuleList([nn.ReLU()])
    both += [nn.Tanh()]
    assert len(both) == 2
    with refused("CORE-0607"):
        both(1)


def test_dictionaries_of_modules_and_parameters() -> None:
    parts = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    assert list(parts) == ["a", "b"]
    assert "a" in parts
    assert isinstance(parts.pop("a"), nn.ReLU)
    with refused("CORE-0601"):
        parts["a.b"] = nn.ReLU()
    values = nn.ParameterList([nb.ones(2), nn.Parameter(nb.zeros(3)), "text"])
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    assert values[-1] == "text"
    assert len(values[:2]) == 2
    table = nn.ParameterDict({"w": nb.ones(2)})
    table["b"] = nn.Parameter(nb.zeros(1))
    assert list(table.state_dict()) == ["w", "b"]
    assert table.pop("w").tolist() == [1, 1]
    assert list(table.keys()) == ["b"]


def test_text_is_torchs() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    )
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Tanh()\n"
        "  )\n"
        ")"
    )
