"""Sampling operators: distributions by their moments, shapes and types, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import numbat as nb
from numbat.nn import init
from numbat_registries import Refusal


def refused(code, function, *args, **keywords):
    with pytest.raises(Refusal) as caught:
        function(*args, **keywords)
    assert caught.value.code == code


@pytest.mark.parametrize("dtype", [nb.float64, nb.float32, nb.float16, nb.bfloat16])
def test_moments(dtype):
    nb.manual_seed(5)
    n = 200_000

    def moments(tensor):
        values = tensor.array.astype(np.float64)
        return values.mean(), values.std()

    def fresh():
        return nb.empty(n, dtype=dtype)

    for drawn, mean, std in (
        (nb.rand(n, dtype=dtype), 0.5, 12**-0.5),
        (nb.randn(n, dtype=dtype), 0, 1),
        (fresh().uniform_(-1, 3), 1, 4 * 12**-0.5),
        (fresh().normal_(2, 0.5), 2, 0.5),
        (fresh().bernoulli_(0.3), 0.3, 0.21**0.5),
        (fresh().exponential_(2), 0.5, 0.5),
        (fresh().geometric_(0.25), 4, (0.75 / 0.25**2) ** 0.5),
        (nb.poisson(nb.full((n,), 7.0, dtype=dtype)), 7, 7**0.5),
        (nb.poisson(nb.full((n,), 20.0, dtype=dtype)), 20, 20**0.5),
    ):
        found = moments(drawn)
        np.testing.assert_allclose(found, (mean, std), atol=0.03 * (1 + abs(mean)))
    assert abs(np.median(fresh().cauchy_(1.5, 2).array.astype(np.float64)) - 1.5) < 0.05
    logs = np.log(fresh().log_normal_(0.2, 0.5).array.astype(np.float64))
    np.testing.assert_allclose((logs.mean(), logs.std()), (0.2, 0.5), atol=0.02)


def test_multinomial_follows_its_weights():
    nb.manual_seed(5)
    weights = nb.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    drawn = nb.multinomial(weights, 20000, replacement=True).array
    counts = np.stack([np.bincount(row, minlength=3) for row in drawn]) / 20000
    np.testing.assert_allclose(counts, [[0.25, 0, 0.75], [0.5, 0.5, 0]], atol=0.02)
    once = nb.multinomial(nb.rand(6), 6).array
    assert sorted(once.tolist()) == list(range(6))


def test_dropout_keeps_the_mean_and_hands_back_its_factors():
    nb.manual_seed(2)
    x = nb.ones(100_000, requires_grad=True)
    y = nb.dropout(x, 0.2)
    assert abs(y.array.mean() - 1) < 0.01
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.array, y.array)
    assert nb.dropout(x, 0.2, training=False) is x
    channels = nb.dropout2d(nb.ones(50, 40, 3, 2), 0.5).array
    assert set(channels.reshape(2000, 6).min(1)) == {0.0, 2.0}
    np.testing.assert_array_equal(channels.min((2, 3)), channels.max((2, 3)))


def test_alpha_dropout_keeps_mean_and_variance():
    nb.manual_seed(2)
    y = nb.alpha_dropout(nb.randn(200_000), 0.3, training=True).array
    np.testing.assert_allclose((y.mean(), y.std()), (0, 1), atol=0.02)


def test_types_and_shapes():
    assert nb.randint(5, (2, 3)).dtype is nb.int64
    assert nb.randint(5, (2, 3), dtype=nb.uint8).dtype is nb.uint8
    assert nb.randperm(4, dtype=nb.int32).dtype is nb.int32
    assert nb.rand(2, 3, requires_grad=True).requires_grad
    assert nb.rand((2, 3)).shape == (2, 3)
    assert nb.rand().shape == ()
    assert nb.rand_like(nb.zeros(2, 3), dtype=nb.float64).dtype is nb.float64
    assert nb.normal(1.0, 2.0, (3,)).shape == (3,)


def test_generators_are_copied_and_pickled():
    generator = nb.Generator().manual_seed(4)
    nb.rand(5, generator=generator)
    for other in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert other.get_state().array.tobytes() == generator.get_state().array.tobytes()


def test_writing_over_a_leaf_counts_and_is_refused_while_recorded():
    leaf = nb.zeros(3, requires_grad=True)
    refused("CORE-0306", leaf.uniform_)
    with nb.no_grad():
        leaf.uniform_()
    x = nb.ones(3, requires_grad=True)
    squared = x * 1.0
    product = squared * squared
    squared.normal_()
    refused("CORE-0304", product.sum().backward)


def test_refusals():
    refused("CORE-0501", nb.randint, 3, 3, (2,))
    refused("CORE-0501", nb.zeros(3).uniform_, 1.0, 0.0)
    refused("CORE-0102", nb.zeros(3, dtype=nb.int64).uniform_)
    refused("CORE-0502", nb.dropout, nb.zeros(3), 1.5)
    refused("CORE-0502", nb.zeros(3).bernoulli_, -0.1)
    refused("CORE-0502", nb.zeros(3).geometric_, 1.0)
    refused("CORE-0503", nb.set_rng_state, nb.zeros(8, dtype=nb.uint8))
    refused("CORE-0503", nb.set_rng_state, nb.zeros(5056, dtype=nb.uint8))
    refused("CORE-0504", nb.manual_seed, 2**64)
    refused("CORE-0505", nb.Generator, engine="lcg")
    refused("CORE-0104", nb.Generator, "cuda")
    refused("CORE-0506", nb.zeros(3).normal_, 0.0, -1.0)
    refused("CORE-0506", nb.zeros(3).exponential_, 0.0)
    refused("CORE-0506", nb.poisson, nb.tensor([-1.0]))
    refused("CORE-0507", nb.multinomial, nb.zeros(3), 1)
    refused("CORE-0507", nb.multinomial, nb.tensor([1.0, float("nan")]), 1)
    refused("CORE-0508", nb.multinomial, nb.ones(3), 4)
    refused("CORE-0509", init.xavier_uniform_, nb.zeros(3))
    refused("CORE-0509", init.eye_, nb.zeros(3))
    refused("CORE-0510", init.calculate_gain, "swish")
    refused("CORE-0510", init.kaiming_normal_, nb.zeros(3, 3), mode="fan")
    refused("CORE-0511", nb.randint, 0, 300, (2,), dtype=nb.uint8)
    refused("CORE-0512", init.dirac_, nb.zeros(3, 2, 3), groups=2)
    refused("CORE-0512", init.sparse_, nb.zeros(3, 2), 1.5)
