"""What stands around modules, against torch's: constrained weights, packs, hooks, Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from opinfo import apart, tensor_of

import numbat as nb

KINDS = ["weight_norm", "spectral_norm"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda nn: nn.Linear(5, 4), (3, 5)),
        (lambda nn: nn.Conv2d(3, 4, 3), (2, 3, 6, 6)),
        (lambda nn: nn.ConvTranspose2d(3, 4, 2), (2, 3, 4, 4)),
    ],
)
def test_constrained_weights_are_torchs(kind: str, layer: Any, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    torch.manual_seed(0)
    theirs = getattr(torch.nn.utils.parametrizations, kind)(layer(torch.nn))
    nb.manual_seed(0)
    mine = getattr(nb.nn.utils.parametrizations, kind)(layer(nb.nn))
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for _ in range(3):
        assert apart(mine(tensor_of(x)), theirs(x)) == ""
    mine(tensor_of(x)).sum().backward()
    theirs(x).sum().backward()
    for (name, one), (other_name, other) in zip(
        mine.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert name == other_name
        assert apart(one.grad, other.grad, 8) == ""
    for name, one in theirs.state_dict().items():
        assert apart(mine.state_dict()[name], one, 4) == ""


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[4, 2, 1], [2, 4, 3]])
def test_packs_are_torchs(batch_first: bool, lengths: list[int]) -> None:
    x = torch.randn(*((3, 4) if batch_first else (4, 3)), 2)
    options = {"batch_first": batch_first, "enforce_sorted": False}
    theirs = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), **options)
    mine = nb.nn.utils.rnn.pack_padded_sequence(tensor_of(x), lengths, **options)
    assert apart(tuple(mine), tuple(theirs)) == ""
    wanted = torch.nn.utils.rnn.pad_packed_sequence(theirs, batch_first, 7.0, 6)
    assert apart(nb.nn.utils.rnn.pad_packed_sequence(mine, batch_first, 7.0, 6), wanted) == ""


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_layers_of_both_directions_are_torchs(kind: str) -> None:
    torch.manual_seed(2)
    options = {"num_layers": 2, "bidirectional": True}
    if kind == "LSTM":
        options["proj_size"] = 2
    theirs = getattr(torch.nn, kind)(3, 4, **options).double()
    mine = getattr(nb.nn, kind)(3, 4, **options).double()
    mine.load_state_dict({name: tensor_of(one) for name, one in theirs.state_dict().items()})
    x = torch.randn(5, 4, 3, dtype=torch.float64, requires_grad=True)
    own = tensor_of(x).requires_grad_()
    lengths = [2, 5, 1, 4]
    pack = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    own_pack = nb.nn.utils.rnn.pack_padded_sequence(own, lengths, enforce_sorted=False)
    result, state = theirs(pack)
    own_result, own_state = mine(own_pack)
    assert apart(own_result.data, result.data) == ""
    assert apart(own_state, state) == ""
    result.data.square().sum().backward()
    (own_result.data * own_result.data).sum().backward()
    assert apart(own.grad, x.grad) == ""
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert apart(one.grad, other.grad) == ""


def test_backward_hooks_see_what_torchs_see() -> None:
    seen: dict[str, list[Any]] = {"torch": [], "numbat": []}
    for name, engine in (("torch", torch), ("numbat", nb)):
        model = engine.nn.Sequential(engine.nn.Linear(2, 3), engine.nn.Tanh())
        for one in model.parameters():
            one.data[...] = 0.25

        def hook(module: Any, inside: Any, outside: Any, name: str = name) -> None:
            seen[name].append(
                [None if one is None else one.tolist() for one in (*inside, *outside)]
            )

        for one in model.modules():
            one.register_full_backward_hook(hook)
        model(engine.ones(1, 2)).sum().backward()
        x = engine.ones(1, 2, requires_grad=True)
        model(x).sum().backward()
    assert len(seen["torch"]) == len(seen["numbat"])
    for wanted, found in zip(seen["torch"], seen["numbat"], strict=True):
        for one, other in zip(wanted, found, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(other, one, rtol=1e-6)


def test_derivatives_of_functions_are_torchs() -> None:
    rng = np.random.default_rng(0)
    x, y, v = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)

    def results(engine: Any) -> list[Any]:
        functional = engine.autograd.functional
        inputs = (engine.tensor(x), engine.tensor(y))
        vectors = (engine.tensor(v), engine.tensor(v))

        def several(x: Any, y: Any) -> Any:
            return (x * y).sin(), (x * x).sum() * y

        def number(x: Any, y: Any) -> Any:
            return (x * y * y).exp().sum()

        return [
            functional.jacobian(several, inputs), functional.vjp(several, inputs, vectors),
            functional.jvp(several, inputs, vectors), functional.hessian(number, inputs),
            functional.hvp(number, inputs, vectors), functional.vhp(number, inputs, vectors),
        ]  # fmt: skip

    for mine, theirs in zip(results(nb), results(torch), strict=True):
        assert apart(mine, theirs) == ""
