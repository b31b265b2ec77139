"""PyTorch's CPU stream by numbers that torch 2.13 printed, and the kernels against their
references.

The words and normals of seed 137 are also those that llm.c prints in `llmc/rand.h`.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat.nn import init
from numbat.random.mersenne import Mersenne
from numbat.random.streams import Stream
from numbat_registries import Refusal


class Reference(Stream):
    """The same words, with every distribution in numpy."""

    def __init__(self, seed):
        self.inner = Mersenne(seed)

    def words(self, count):
        return self.inner.words(count)


def test_words_are_the_authors():
    # mt19937ar.out begins so for init_by_array; init_genrand(5489) gives std::mt19937's 10000th.
    assert Mersenne(5489).words(10000)[-1] == 4123659995
    assert Mersenne(137).words(5).tolist() == [
        4053805790, 2173880614, 380293709, 1237255315, 2986595568,
    ]  # fmt: skip


def test_known_numbers_of_torch():
    nb.manual_seed(137)
    assert nb.randint(0, 1000, (8,)).tolist() == [790, 614, 709, 315, 568, 195, 662, 785]
    nb.manual_seed(137)
    assert nb.rand(5).tolist() == [
        0.6256541013717651, 0.573381781578064, 0.6672714352607727, 0.746163547039032,
        0.014967918395996094,
    ]  # fmt: skip
    np.testing.assert_allclose(
        nb.randn(3, dtype=nb.float64).array,
        [0.794766440144357, 1.4369317263006591, -0.22921920997053385],
        rtol=1e-14,
    )
    nb.manual_seed(137)
    assert nb.randn(20).tolist()[:6] == [
        1.1220245361328125, -0.6631278395652771, -0.5289731025695801, 1.0454034805297852,
        1.077274203300476, 0.7767236232757568,
    ]  # fmt: skip
    assert nb.randperm(10).tolist() == [8, 2, 6, 7, 5, 3, 1, 0, 4, 9]
    nb.manual_seed(137)
    drawn = nb.bernoulli(nb.full((16,), 0.3)).tolist()
    assert drawn == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1]
    kept = nb.dropout(nb.ones(12), 0.25).array
    assert (kept != 0).tolist() == [
        True, False, True, True, True, True, False, True, True, True, True, True,
    ]  # fmt: skip
    assert set(kept.tolist()) == {0.0, 1.3333333730697632}
    nb.manual_seed(137)
    assert nb.poisson(nb.tensor([0.5, 3.0, 30.0, 3000.0])).tolist() == [0.0, 1.0, 31.0, 3005.0]
    assert nb.multinomial(nb.tensor([1.0, 2.0, 3.0, 4.0]), 3).tolist() == [3, 0, 2]


def test_first_values_of_torch():
    nb.manual_seed(137)
    weight = init.kaiming_uniform_(nb.zeros(3, 4), 5**0.5)
    assert weight.array.reshape(-1)[:5].tolist() == [
        0.12565410137176514, 0.07338178157806396, 0.1672714352607727, 0.24616354703903198,
        -0.4850320816040039,
    ]  # fmt: skip
    init.xavier_normal_(weight)
    np.testing.assert_allclose(
        weight.array.reshape(-1)[:5],
        [-0.28496241569519043, 0.1736425757408142, -0.43888550996780396, -0.8298525810241699,
         -0.6584815382957458],
        rtol=1e-6,
    )  # fmt: skip
    truncated = init.trunc_normal_(nb.zeros(20), 0, 1, 0.5, 0.9)
    np.testing.assert_allclose(
        truncated.array[:5],
        [0.8530503511428833, 0.7892769575119019, 0.6260119080543518, 0.5660708546638489,
         0.7592740058898926],
        rtol=1e-6,
    )  # fmt: skip


def test_state_has_torchs_bytes():
    nb.manual_seed(137)
    nb.rand(1000)
    nb.randn(1)
    raw = nb.get_rng_state().array.tobytes()
    digest = hashlib.sha256(raw).hexdigest()
    assert digest == "6df10563021af11f4836192b967f6bd04d0005ce38e883ab5763e07c5aec39c6"
    nb.manual_seed(0)
    nb.set_rng_state(nb.tensor(np.frombuffer(raw, np.uint8)))
    assert nb.rand(1).item() == 0.5875188708305359


COUNTS = st.lists(st.integers(0, 1400), min_size=1, max_size=6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), counts=COUNTS)
def test_kernels_hold_to_their_references(seed, counts):
    kernel, reference = Mersenne(seed), Reference(seed)
    for count in counts:
        for name, args in (
            ("words", ()), ("reals", ()), ("uniform_f32", (-0.3, 1.7)),
            ("uniform_f64", (-0.3, 1.7)), ("uniform_f32", (-1000.3, -1000.2)),
            ("bernoulli", (0.3,)), ("factors_f32", (0.3, 1.5)), ("small_integers", (-3, 1)),
            ("small_integers", (7, 2**28 - 1)), ("small_integers", (0, 1000)),
        ):  # fmt: skip
            mine, its = getattr(kernel, name)(count, *args), getattr(reference, name)(count, *args)
            np.testing.assert_array_equal(mine, its)
            assert mine.dtype == its.dtype
        np.testing.assert_array_equal(kernel.permutation(count), reference.permutation(count))
        if count >= 16:
            mine, its = kernel.normal_f32(count, 1.0, 0.3), reference.normal_f32(count, 1.0, 0.3)
            np.testing.assert_allclose(mine, its, atol=1e-6)
    rates = np.array([0.0, 0.1, 3.0, 9.99, 10.0, 50.0, 1e6])
    np.testing.assert_array_equal(kernel.poisson(rates), reference.poisson(rates))
    assert kernel.words(1) == reference.words(1)


@given(st.lists(st.integers(0, 700), max_size=5))
@settings(max_examples=20, deadline=None)
def test_state_continues_the_stream(counts):
    generator = nb.Generator().manual_seed(3)
    for count in counts:
        nb.rand(count, generator=generator)
        nb.randn(count % 15, generator=generator)
    copy = generator.clone_state()
    assert copy.get_state().array.tobytes() == generator.get_state().array.tobytes()
    for size in (1, 5, 700):
        mine, its = nb.randn(size, generator=generator), nb.randn(size, generator=copy)
        np.testing.assert_array_equal(mine.array, its.array)


def test_fork_leaves_the_stream_where_it_was():
    nb.manual_seed(1)
    before = nb.get_rng_state().array.tobytes()
    with nb.fork_rng():
        nb.manual_seed(99)
        nb.rand(1000)
    assert nb.get_rng_state().array.tobytes() == before
    with pytest.raises(Refusal), nb.fork_rng():
        nb.rand(-1)
    assert nb.get_rng_state().array.tobytes() == before


def test_ranks_have_streams_of_their_own():
    root = nb.Generator().manual_seed(7)
    folded = [root.fold(rank) for rank in range(64)]
    assert len({one.initial_seed() for one in folded} | {7}) == 65
    again = nb.Generator().manual_seed(7)
    nb.rand(5, generator=again)
    assert again.fold(3).initial_seed() == folded[3].initial_seed()
    drawn = np.stack([nb.rand(2000, generator=one).array for one in folded])
    assert abs(np.corrcoef(drawn) - np.eye(64)).max() < 0.12
