"""Philox 4x32-10 against the known answers that Random123 publishes, and PyTorch's CUDA layout of
it.
"""

from __future__ import annotations

import numpy as np
import pytest

import numbat as nb
from numbat.random import philox

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES,) * 4, (ONES, ONES), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (PI, (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers(counter, key, answer):
    words = philox.philox4x32(counter, key)
    assert " ".join(f"{word:08x}" for word in words.tolist()) == answer


def test_stream_does_not_depend_on_how_it_is_cut():
    whole = philox.Philox(12345678901234567).words(103)
    stream = philox.Philox(12345678901234567)
    parts = np.concatenate([stream.words(count) for count in (1, 2, 0, 5, 40, 55)])
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(
        whole[:4], philox.philox4x32((0, 0, 0, 0), _key(12345678901234567))
    )


def _key(seed):
    return seed & ONES, seed >> 32


def test_grid_grows_up_to_the_device():
    assert philox.cuda_grid(1, 108, 2048) == (1, 4)
    assert philox.cuda_grid(1000, 108, 2048) == (4, 4)
    assert philox.cuda_grid(108 * 2048 * 4, 108, 2048) == (864, 4)
    assert philox.cuda_grid(108 * 2048 * 4 + 1, 108, 2048) == (864, 8)


def _word(seed, offset, numel, element, processors, threads):
    """One thread of PyTorch's grid-stride loop, followed by hand."""
    grid, _ = philox.cuda_grid(numel, processors, threads)
    width = grid * 256
    for thread in range(width):
        block = offset // 4
        for first in range(thread, -(-numel // (4 * width)) * 4 * width, 4 * width):
            counter = (block & ONES, block >> 32, thread, 0)
            words = philox.philox4x32(counter, _key(seed))
            for part in range(4):
                if first + part * width == element:
                    return words[part]
            block += 1
    raise AssertionError(element)


def test_cuda_layout_follows_the_grid_stride_loop():
    numel, seed, offset = 5000, 2**40 + 17, 12
    words = philox.cuda_words(numel, seed, offset, 1, 512)
    for element in (0, 1, 255, 511, 512, 1535, 2048, 2600, 4999):
        assert words[element] == _word(seed, offset, numel, element, 1, 512)


def test_cuda_uniform_and_normal_have_their_moments():
    uniform = philox.cuda_uniform(100_000, 1, 0, 108, 2048)
    assert uniform.dtype == np.float32
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5e-3
    normal = philox.cuda_normal(100_000, 1, 0, 108, 2048, 2.0, 3.0)
    assert abs(normal.mean() - 2) < 5e-2
    assert abs(normal.std() - 3) < 5e-2


def test_generator_of_philox_saves_and_restores():
    generator = nb.Generator(engine="philox").manual_seed(5)
    nb.rand(7, generator=generator)
    state = generator.get_state()
    first = nb.randn(40, generator=generator).array
    np.testing.assert_array_equal(first, nb.randn(40, generator=generator.set_state(state)).array)
    values = nb.rand(20000, generator=generator).array
    assert abs(values.mean() - 0.5) < 2e-2
    assert sorted(nb.randperm(50, generator=generator).tolist()) == list(range(50))
