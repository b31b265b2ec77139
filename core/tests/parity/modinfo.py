"""torch's own module inputs as the driver: modules, options and shapes not ours.

Each of torch's `ModuleInfo`s is built twice with the same arguments; ours takes torch's state, and
results, gradients and state afterwards are compared. `torch.testing._internal` is pinned with
torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from opinfo import apart, tensor_of, to_numbat
from torch.nn.utils.rnn import PackedSequence
from torch.testing._internal.common_modules import module_db

import numbat as nb
from numbat import nn
from numbat.nn import functional as F

INFOS = {info.name.removeprefix("nn."): info for info in module_db}
"""torch's modules by class name."""


def mapped() -> list[str]:
    """The names of torch's database that `numbat.nn` has."""
    return [name for name in INFOS if hasattr(nn, name)]


def converted(value: Any) -> Any:
    """An argument of torch's as ours: tensors, packs, layers, functions."""
    if isinstance(value, PackedSequence):
        return nn.utils.rnn.PackedSequence(*[converted(one) for one in value])
    if isinstance(value, torch.nn.TransformerEncoderLayer | torch.nn.TransformerDecoderLayer):
        return layer_like(value)
    if isinstance(value, torch.nn.LayerNorm):
        return nn.LayerNorm(value.normalized_shape, value.eps)
    if isinstance(value, torch.Tensor):
        return to_numbat(value, grads=True)
    if callable(value) and getattr(value, "__name__", "") in dir(torch.nn.functional):
        return getattr(F, value.__name__)
    if callable(value) and hasattr(nb, getattr(value, "__name__", "?")):
        return getattr(nb, value.__name__)
    if isinstance(value, list | tuple):
        return type(value)(converted(one) for one in value)
    if isinstance(value, dict):
        return {key: converted(one) for key, one in value.items()}
    return to_numbat(value)


def layer_like(layer: Any) -> Any:
    """Our transformer layer with the options of torch's."""
    kind = getattr(nn, type(layer).__name__)
    made = kind(
        layer.self_attn.embed_dim, layer.self_attn.num_heads, layer.linear1.out_features,
        layer.dropout.p, converted(layer.activation), layer_norm_eps=layer.norm1.eps,
        batch_first=layer.self_attn.batch_first, norm_first=layer.norm_first,
        bias=layer.linear1.bias is not None,
    )  # fmt: skip
    return made.to(getattr(nb, str(layer.linear1.weight.dtype).removeprefix("torch.")))


def as_leaves(value: Any) -> Any:
    """torch's argument with leaves for its tensors; one may have been computed from another."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, PackedSequence):
        return value._replace(data=as_leaves(value.data))
    if type(value) in (list, tuple):
        return type(value)(as_leaves(one) for one in value)
    if isinstance(value, dict):
        return {key: as_leaves(one) for key, one in value.items()}
    return value


@dataclass
class Case:
    """One set of arguments of one module."""

    name: str
    options: tuple[Any, ...]
    keywords: dict[str, Any]
    inputs: tuple[Any, ...]
    input_keywords: dict[str, Any]
    description: str


def cases(name: str, dtype: torch.dtype, training: bool) -> Iterator[Case]:
    """torch's arguments for a module."""
    info = INFOS[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
    for number, sample in enumerate(samples):
        made, called = sample.constructor_input, sample.forward_input
        if called is None:
            continue
        shown = f"{number} {sample.desc}: {name}{made.args}{made.kwargs}"[:200]
        args, keywords = as_leaves(tuple(called.args)), as_leaves(dict(called.kwargs))
        yield Case(name, tuple(made.args), dict(made.kwargs), args, keywords, shown)


def spread(found: Iterator[Case], limit: int = 24) -> list[Case]:
    """At most so many of the cases, evenly over all of them."""
    several = list(found)
    if len(several) <= limit:
        return several
    return [several[round(at * (len(several) - 1) / (limit - 1))] for at in range(limit)]


def leaves(value: Any, kind: type) -> list[Any]:
    """The tensors of an argument that require a gradient."""
    if isinstance(value, kind):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one, kind)]
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in leaves(one, kind)]
    return []


def _state_faults(mine: Any, theirs: Any, what: str) -> list[str]:
    my_state, their_state = mine.state_dict(), theirs.state_dict()
    if list(my_state) != list(their_state):
        return [f"{what}: names {list(my_state)}, torch's {list(their_state)}"]
    faults = []
    for key, wanted in their_state.items():
        found = apart(my_state[key], wanted)
        if found:
            faults.append(f"{what}: {key}: {found}")
    return faults


def begins_alike(case: Case) -> list[str]:
    """How the values with which both begin disagree, made from one seed (float32)."""
    torch.manual_seed(3)
    theirs = INFOS[case.name].module_cls(*case.options, **case.keywords)
    nb.manual_seed(3)
    mine = getattr(nn, case.name)(*converted(list(case.options)), **converted(case.keywords))
    faults = []
    if repr(mine).replace("numbat.", "torch.") != repr(theirs):
        faults.append(f"repr {mine!r}, torch's {theirs!r}")
    if not INFOS[case.name].is_lazy and not case.name.startswith("TransformerEncoder"):
        faults += _state_faults(mine, theirs, "initial")
    return faults


def compare(case: Case, dtype: torch.dtype, training: bool) -> list[str]:
    """How a module of ours disagrees with torch's on one case."""
    own_type = getattr(nb, str(dtype).removeprefix("torch."))
    lazy = INFOS[case.name].is_lazy
    theirs = INFOS[case.name].module_cls(*case.options, **case.keywords).to(dtype).train(training)
    mine = getattr(nn, case.name)(*converted(list(case.options)), **converted(case.keywords))
    mine = mine.to(own_type).train(training)
    my_args, my_keywords = converted(list(case.inputs)), converted(case.input_keywords)
    if case.name == "CTCLoss":
        # torch's gradient of log-probabilities is the true one only once a log-softmax took it on.
        mine, theirs = nn.Sequential(mine), torch.nn.Sequential(theirs)
        for model in (mine, theirs):
            model.forward = _behind_log_softmax(model[0])
    if lazy:
        theirs.initialize_parameters(*case.inputs, **case.input_keywords)
        mine.initialize_parameters(*my_args, **my_keywords)
    wanted = theirs.state_dict()
    if list(mine.state_dict()) != list(wanted):
        return [f"names {list(mine.state_dict())}, torch's {list(wanted)}"]
    mine.load_state_dict({key: tensor_of(one) for key, one in wanted.items()})
    faults = _state_faults(mine, theirs, "loaded")
    torch.manual_seed(11)
    nb.manual_seed(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_result = theirs(*case.inputs, **case.input_keywords)
    my_result = mine(*my_args, **my_keywords)
    found = apart(my_result, their_result, 4)
    if found:
        return [*faults, f"result: {found}"]
    faults += _state_faults(mine, theirs, "afterwards")
    return faults + _gradient_faults(
        (my_result, [my_args, my_keywords], mine),
        (their_result, [case.inputs, case.input_keywords], theirs),
    )


def _behind_log_softmax(loss: Any) -> Any:
    return lambda log_probs, *rest: loss(log_probs.log_softmax(-1), *rest)


def _gradient_faults(mine: Any, theirs: Any) -> list[str]:
    their_results = leaves(theirs[0], torch.Tensor)
    my_results = leaves(mine[0], nb.Tensor)
    if len(my_results) != len(their_results):
        return [f"{len(my_results)} results require gradients, torch's {len(their_results)}"]
    their_leaves = leaves(theirs[1], torch.Tensor) + list(theirs[2].parameters())
    my_leaves = leaves(mine[1], nb.Tensor) + list(mine[2].parameters())
    if not their_results or not their_leaves:
        return []
    weights = [torch.rand_like(one) for one in their_results]
    wanted = torch.autograd.grad(their_results, their_leaves, weights, allow_unused=True)
    found = nb.autograd.grad(
        my_results, my_leaves, [tensor_of(one) for one in weights], allow_unused=True
    )
    faults = []
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one is None or other is None:
            if one is not None and other is None and not one.array.any():
                continue
            if one is None and other is not None and not other.any():
                continue
            if (one is None) != (other is None):
                faults.append(f"gradient {index}: one is missing")
            continue
        difference = apart(one, other, 8)
        if difference:
            faults.append(f"gradient {index}: {difference}")
    return faults
