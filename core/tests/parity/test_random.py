"""The numbers that torch draws on the CPU: the same ones, from the same seeds, to the last bit
where it says so.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import numbat as nb

SEEDS = (0, 7, 2**40 + 3, -5)
FLOATS = ("float64", "float32", "float16", "bfloat16")


def both(seed, draw):
    """What `draw(library)` gives in numbat and in torch, and that both stand at the same place
    after it.
    """
    nb.manual_seed(seed)
    torch.manual_seed(seed)
    ours, theirs = draw(nb), draw(torch)
    assert (nb.rand(3).array == torch.rand(3).numpy()).all()
    theirs = theirs.double().numpy() if theirs.dtype == torch.bfloat16 else theirs.numpy()
    found = ours.array.astype(np.float64) if ours.dtype is nb.bfloat16 else ours.array
    assert found.dtype == theirs.dtype
    assert found.shape == theirs.shape
    return found, theirs


def same(seed, draw):
    ours, theirs = both(seed, draw)
    np.testing.assert_array_equal(ours, theirs)


def typed(library, name):
    return getattr(library, name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000, 70001])
def test_rand(seed, dtype, count):
    same(seed, lambda t: t.rand(count, dtype=typed(t, dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bounds", [(-0.3, 1.7), (-1 / 3, 1 / 3), (2.0, 2.0), (-1000.3, -1000.2)])
def test_uniform(dtype, bounds):
    same(3, lambda t: t.empty(5000, dtype=typed(t, dtype)).uniform_(*bounds))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33, 1600, 70007])
@pytest.mark.parametrize("moments", [(0.0, 1.0), (1.0, 0.3), (-2.5, 3.3)])
def test_normal(dtype, count, moments):
    ours, theirs = both(7, lambda t: t.empty(count, dtype=typed(t, dtype)).normal_(*moments))
    if dtype == "float32" and torch.backends.cpu.get_cpu_capability() != "AVX2":
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * moments[1])
    elif dtype == "float64":
        np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14)
    else:
        np.testing.assert_array_equal(ours, theirs)


def test_pairs_of_normals_are_kept():
    same(1, lambda t: t.cat([t.randn(3), t.randn(4), t.randn(1, dtype=t.float64).to(t.float32)]))


@pytest.mark.parametrize("n", [1, 2, 1000, 2**20 + 7, 2**28 - 1, 2**28, 2**31, 2**40, 2**62])
@pytest.mark.parametrize("seed", SEEDS)
def test_randint(n, seed):
    same(seed, lambda t: t.randint(n, (500,)))
    same(seed, lambda t: t.randint(-n, n, (5, 7)))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
)
def test_random_(dtype):
    same(5, lambda t: t.empty(999, dtype=typed(t, dtype)).random_())
    if dtype != "bool":
        same(5, lambda t: t.empty(999, dtype=typed(t, dtype)).random_(100))
        same(5, lambda t: t.empty(999, dtype=typed(t, dtype)).random_(3, 100))
        same(5, lambda t: t.randint(3, 100, (50,), dtype=typed(t, dtype)))


@pytest.mark.parametrize("n", [0, 1, 2, 10, 5000])
@pytest.mark.parametrize("seed", SEEDS)
def test_randperm(n, seed):
    same(seed, lambda t: t.randperm(n))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli(p, dtype):
    same(2, lambda t: t.empty(5001, dtype=typed(t, dtype)).bernoulli_(p))
    same(2, lambda t: t.bernoulli(t.full((501,), p, dtype=typed(t, dtype))))
    same(2, lambda t: t.bernoulli(t.ones((501,), dtype=typed(t, dtype)), p))


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_distributions(dtype):
    def close(draw):
        ours, theirs = both(4, draw)
        tolerance = {"float64": 1e-14, "float32": 2e-7}.get(dtype, 0.0)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)

    close(lambda t: t.empty(1001, dtype=typed(t, dtype)).exponential_(1.5))
    close(lambda t: t.empty(1001, dtype=typed(t, dtype)).log_normal_(0.3, 0.7))
    close(lambda t: t.empty(1001, dtype=typed(t, dtype)).geometric_(0.3))
    close(lambda t: t.empty(1001, dtype=typed(t, dtype)).cauchy_(0.3, 1.7))


def test_geometric_of_whole_numbers():
    same(4, lambda t: t.empty(1001, dtype=t.int64).geometric_(0.2))


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson(dtype):
    rates = np.random.default_rng(0).uniform(0, 60, (20, 30))
    rates[0, :5] = 0
    same(6, lambda t: t.poisson(t.tensor(rates).to(typed(t, dtype))))


@pytest.mark.parametrize("shape", [(9,), (5, 9)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(shape, dtype):
    weights = np.random.default_rng(0).uniform(0, 1, shape)
    weights[..., 3] = 0
    same(6, lambda t: t.multinomial(t.tensor(weights).to(typed(t, dtype)), 1))
    same(6, lambda t: t.multinomial(t.tensor(weights).to(typed(t, dtype)), 20, replacement=True))
    if dtype in ("float64", "float32"):
        same(6, lambda t: t.multinomial(t.tensor(weights).to(typed(t, dtype)), 4))


def test_tensors_of_moments():
    means = np.random.default_rng(0).normal(size=(5, 4))
    stds = np.random.default_rng(1).uniform(0.1, 2, (4,))
    for name in ("float64", "float32"):
        same(
            1,
            lambda t, name=name: t.normal(
                t.tensor(means).to(typed(t, name)), t.tensor(stds).to(typed(t, name))
            ),
        )
        same(1, lambda t, name=name: t.normal(t.tensor(means).to(typed(t, name)), 0.3))
        same(1, lambda t, name=name: t.normal(0.3, t.tensor(stds).to(typed(t, name))))
    same(1, lambda t: t.normal(2.0, 3.0, (5, 5)))


@pytest.mark.parametrize("name", ["rand_like", "randn_like"])
def test_likes_of_turned_memory(name):
    same(1, lambda t: getattr(t, name)(t.zeros(6, 5).transpose(0, 1)))
    same(1, lambda t: getattr(t, name)(t.zeros(3, 4, 5).permute(2, 0, 1)))
    same(1, lambda t: t.zeros(6, 5).transpose(0, 1).normal_())
    same(1, lambda t: t.zeros(6, 50)[:, ::2].uniform_())
    same(1, lambda t: t.randint_like(t.zeros(6, 5).transpose(0, 1), 100))


def functional(library, name):
    if library is torch:
        return getattr(torch.nn.functional, name)
    return getattr(nb, name)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.83, 1.0])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("dropout", (50, 40)), ("dropout1d", (4, 5, 6)), ("dropout1d", (5, 6)), ("dropout2d", (4, 5,
        3, 3)), ("dropout3d", (4, 5, 2, 3, 3)), ("dropout3d", (5, 2, 3, 3)), ("alpha_dropout", (50,
        40)), ("feature_alpha_dropout", (4, 5, 3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_dropout(name, shape, p, dtype):
    values = np.random.default_rng(0).normal(size=shape)

    def draw(t, inplace=False):
        x = t.tensor(values).to(typed(t, dtype))
        return functional(t, name)(x, p, True, inplace)

    if "alpha" in name and dtype in ("float16", "bfloat16"):
        ours, theirs = both(3, draw)
        np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)
        return
    same(3, draw)
    same(3, lambda t: draw(t, True))


def test_dropout_gradient_and_turned_input():
    values = np.random.default_rng(0).normal(size=(6, 5))

    def draw(t):
        x = t.tensor(values, requires_grad=True)
        y = functional(t, "dropout")(x.transpose(0, 1), 0.3)
        (y * y).sum().backward()
        return x.grad

    same(3, draw)


def test_gradient_of_what_was_written_over():
    def draw(t):
        x = t.ones(20, requires_grad=True)
        y = x * 2
        y.uniform_()
        (y * 3).sum().backward()
        return x.grad

    same(3, draw)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_go_both_ways(seed):
    nb.manual_seed(seed)
    torch.manual_seed(seed)
    assert nb.initial_seed() == torch.initial_seed()
    for count in (0, 3, 618, 3, 700):
        nb.rand(count)
        torch.rand(count)
        assert nb.get_rng_state().array.tobytes() == torch.get_rng_state().numpy().tobytes()
    nb.randn(3)
    torch.randn(3)
    assert nb.get_rng_state().array.tobytes() == torch.get_rng_state().numpy().tobytes()
    nb.manual_seed(0)
    nb.set_rng_state(nb.tensor(torch.get_rng_state().numpy()))
    assert (nb.randn(5).array == torch.randn(5).numpy()).all()
    torch.set_rng_state(torch.tensor(nb.get_rng_state().array))
    assert (nb.randn(50).array == torch.randn(50).numpy()).all()


def test_own_generators():
    ours, theirs = nb.Generator().manual_seed(11), torch.Generator().manual_seed(11)
    assert (nb.rand(9, generator=ours).array == torch.rand(9, generator=theirs).numpy()).all()
    assert (
        nb.randperm(9, generator=ours).array == torch.randperm(9, generator=theirs).numpy()
    ).all()
    x = np.zeros(40, np.float32)
    drawn = nb.tensor(x).normal_(generator=ours).array
    np.testing.assert_allclose(drawn, torch.tensor(x).normal_(generator=theirs).numpy(), atol=1e-6)
    fresh = nb.Generator()
    assert fresh.initial_seed() == torch.Generator().initial_seed()
    assert (
        nb.rand(3, generator=fresh).array == torch.rand(3, generator=torch.Generator()).numpy()
    ).all()
