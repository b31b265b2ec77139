"""Around modules: vectors of parameters, packed sequences, constrained weights, folded norms."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat import nn
from numbat.nn.utils import parametrizations, parametrize, rnn
from numbat.nn.utils.stateless import functional_call
from numbat_registries import Refusal


def test_parameters_become_a_vector_and_come_back() -> None:
    model = nn.Sequential(nn.Conv1d(2, 3, 2), nn.Conv1d(3, 1, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (sum(one.numel() for one in model.parameters()),)
    (vector * vector).sum().backward()
    first = next(model.parameters())
    np.testing.assert_allclose(first.grad.array, 2 * first.array)
    nn.utils.vector_to_parameters(vector.detach() * 0 + 3, model.parameters())
    assert all((one.array == 3).all() for one in model.parameters())
    with pytest.raises(Refusal, match="CORE-0609"):
        nn.utils.vector_to_parameters(nb.ones(2), model.parameters())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.booleans(), st.randoms())
def test_packing_loses_nothing(lengths: list[int], batch_first: bool, random: Any) -> None:
    rng = np.random.default_rng(random.randrange(1 << 30))
    several = [nb.tensor(rng.normal(size=(length, 2))) for length in lengths]
    packed = rnn.pack_sequence(several, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 2)
    assert list(packed.batch_sizes.array) == sorted(packed.batch_sizes.array, reverse=True)
    for one, other in zip(rnn.unpack_sequence(packed), several, strict=True):
        np.testing.assert_array_equal(one.array, other.array)
    padded, found = rnn.pad_packed_sequence(packed, batch_first, -1.0, max(lengths) + 1)
    assert found.tolist() == lengths
    rows = padded if batch_first else padded.transpose(0, 1)
    assert rows.shape == (len(lengths), max(lengths) + 1, 2)
    assert all((rows.array[at, length:] == -1).all() for at, length in enumerate(lengths))


def test_gradients_flow_through_packs() -> None:
    x = nb.ones(3, 2, 1, requires_grad=True)
    packed = rnn.pack_padded_sequence(x, [3, 1])
    padded, _ = rnn.pad_packed_sequence(packed)
    (padded * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.array[:, :, 0], [[2, 2], [2, 0], [2, 0]])


def test_lengths_that_do_not_fit_are_refused() -> None:
    x = nb.ones(3, 2, 1)
    for lengths in ([2, 3], [3, 0], [3], [4, 1]):
        with pytest.raises(Refusal, match="CORE-0610"):
            rnn.pack_padded_sequence(x, lengths)
    packed = rnn.pack_padded_sequence(x, [3, 1])
    with pytest.raises(Refusal, match="CORE-0610"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_sequences_are_padded_on_either_side() -> None:
    several = [nb.ones(2), nb.ones(3)]
    assert rnn.pad_sequence(several, batch_first=True).tolist() == [[1, 1, 0], [1, 1, 1]]
    left = rnn.pad_sequence(several, batch_first=True, padding_side="left", padding_value=5.0)
    assert left.tolist() == [[5, 1, 1], [1, 1, 1]]
    with pytest.raises(Refusal, match="CORE-0608"):
        rnn.pad_sequence(several, padding_side="middle")


class Symmetric(nn.Module):
    """The upper triangle, mirrored."""

    def forward(self, x: nb.Tensor) -> nb.Tensor:
        return x.triu() + x.triu(1).transpose(0, 1)

    def right_inverse(self, x: nb.Tensor) -> nb.Tensor:
        return x.triu()


def test_a_parametrised_weight_is_computed_and_set() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    weight = layer.weight
    np.testing.assert_array_equal(weight.array, weight.array.T)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    layer(nb.ones(1, 3)).sum().backward()
    assert layer.parametrizations["weight"].original.grad is not None
    wanted = np.arange(9.0).reshape(3, 3)
    layer.weight = nb.tensor((wanted + wanted.T).astype(np.float32))
    np.testing.assert_array_equal(layer.weight.array, wanted + wanted.T)
    other = copy.deepcopy(layer)
    np.testing.assert_array_equal(other.weight.array, layer.weight.array)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    np.testing.assert_array_equal(layer.weight.array, wanted + wanted.T)
    with pytest.raises(Refusal, match="CORE-0605"):
        parametrize.remove_parametrizations(layer, "weight")


def test_a_parametrised_weight_is_computed_once_where_cached() -> None:
    calls = []

    class Counted(nn.Module):
        def forward(self, x: nb.Tensor) -> nb.Tensor:
            calls.append(1)
            return x * 1

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Counted())
    calls.clear()
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert len(calls) == 1
    assert layer.weight is not layer.weight


def test_weight_norm_keeps_the_weight_and_its_lengths() -> None:
    layer = nn.Conv2d(2, 4, 3)
    before = layer.weight.array.copy()
    parametrizations.weight_norm(layer)
    np.testing.assert_allclose(layer.weight.array, before, rtol=1e-6)
    layer.parametrizations["weight"].original0.array[...] = 2
    lengths = np.sqrt((layer.weight.array**2).sum((1, 2, 3)))
    np.testing.assert_allclose(lengths, 2, rtol=1e-6)


def test_spectral_norm_makes_the_largest_singular_value_one() -> None:
    nb.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(6, 4), n_power_iterations=40)
    values = np.linalg.svd(layer.weight.array, compute_uv=False)
    assert values[0] == pytest.approx(1, abs=1e-4)
    layer(nb.ones(1, 6)).sum().backward()
    layer(nb.ones(1, 6)).sum().backward()
    with pytest.raises(Refusal, match="CORE-0605"):
        parametrizations.spectral_norm(layer, "gain")


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        (lambda: nn.Conv2d(4, 6, 3, groups=2), lambda: nn.BatchNorm2d(6), (2, 4, 5, 5)),
        (
            lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), lambda: nn.BatchNorm2d(6),
            (2, 4, 5, 5),
        ),
        (lambda: nn.Linear(4, 6), lambda: nn.BatchNorm1d(6), (3, 4)),
    ],
)  # fmt: skip
def test_a_folded_norm_gives_the_same(layer: Any, norm: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    first, second = layer(), norm()
    for one in (second.running_mean, second.weight, second.bias):
        one.array[...] = rng.normal(size=one.shape)
    second.running_var.array[...] = rng.uniform(0.5, 2, second.running_var.shape)
    x = nb.tensor(rng.normal(size=shape).astype(np.float32))
    with pytest.raises(Refusal, match="CORE-0608"):
        nn.utils.fuse_conv_bn_eval(first, second)
    model = nn.Sequential(first, second).eval()
    fuse = nn.utils.fuse_linear_bn_eval if len(shape) == 2 else nn.utils.fuse_conv_bn_eval
    np.testing.assert_allclose(fuse(first, second)(x).array, model(x).array, atol=2e-5)


def test_a_module_is_called_with_other_tensors() -> None:
    layer = nn.Linear(2, 1)
    own = layer.weight
    weight = nb.ones(1, 2, requires_grad=True)
    out = functional_call(layer, {"weight": weight, "bias": nb.zeros(1)}, nb.tensor([[2.0, 3.0]]))
    assert out.item() == 5.0
    out.sum().backward()
    np.testing.assert_array_equal(weight.grad.array, [[2, 3]])
    assert layer.weight is own
    assert own.grad is None
    with pytest.raises(Refusal, match="CORE-0605"):
        functional_call(layer, {"gain": weight}, nb.ones(1, 2))
