"""Philox 4x32-10, a stream that is a function of its counter, and the layout of PyTorch's CUDA
sampling.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011),
whose Random123 library publishes the known answers; PyTorch,
`ATen/native/cuda/DistributionTemplates.h`. Agreement of `cuda_uniform` and `cuda_normal` with a
CUDA device is not shown: it takes the hardware.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.random.streams import Array, Stream

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox4x32(counter: Any, key: Any, rounds: int = 10) -> Array:
    """The four words of each counter under a key.

    Args:
        counter: uint32 of shape (..., 4), the lowest word first.
        key: uint32 of shape (..., 2).
        rounds: ten in every published stream.

    Returns:
        uint32 of shape (..., 4).
    """
    counters = np.asarray(counter, np.uint64)
    keys = np.asarray(key, np.uint64)
    a, b, c, d = (counters[..., index] for index in range(4))
    first, second = keys[..., 0], keys[..., 1]
    for _ in range(rounds):
        low = np.uint64(MULTIPLIERS[0]) * a
        high = np.uint64(MULTIPLIERS[1]) * c
        a, b, c, d = (
            (high >> _SHIFT) ^ b ^ first, high & _LOW, (low >> _SHIFT) ^ d ^ second, low & _LOW,
        )  # fmt: skip
        first = (first + np.uint64(KEY_STEPS[0])) & _LOW
        second = (second + np.uint64(KEY_STEPS[1])) & _LOW
    return np.stack(np.broadcast_arrays(a, b, c, d), -1).astype(np.uint32)


def blocks(seed: int, subsequence: Any, block: Any) -> Array:
    """The four words at a place of a seed's stream: `block` counts blocks of four words within a
    subsequence.
    """
    block = np.asarray(block, np.uint64)
    subsequence = np.asarray(subsequence, np.uint64)
    block, subsequence = np.broadcast_arrays(block, subsequence)
    counter = np.stack(
        [block & _LOW, block >> _SHIFT, subsequence & _LOW, subsequence >> _SHIFT], -1
    )
    return philox4x32(counter, (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF))


class Philox(Stream):
    """The words of a seed's subsequence 0, in the order of their counters.

    Attributes:
        key: the seed, 64 bits.
        next: the number of the next word.
    """

    def __init__(self, seed: int) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begins the stream of a seed."""
        self.key = seed & 0xFFFFFFFFFFFFFFFF
        self.next = 0
        self.normal = None

    def words(self, count: int) -> Array:
        begin, self.next = self.next, self.next + count
        first = begin // 4
        drawn = blocks(self.key, 0, np.arange(first, (self.next + 3) // 4, dtype=np.uint64))
        return drawn.reshape(-1)[begin - 4 * first : self.next - 4 * first]


BLOCK_THREADS = 256
UNROLL = 4


def cuda_grid(numel: int, processors: int, threads_per_processor: int) -> tuple[int, int]:
    """How PyTorch covers `numel` elements: blocks in the grid, and by how much the offset then
    grows.
    """
    wanted = -(-numel // BLOCK_THREADS)
    grid = min(processors * (threads_per_processor // BLOCK_THREADS), wanted)
    return grid, ((numel - 1) // (BLOCK_THREADS * grid * UNROLL) + 1) * UNROLL


def cuda_words(
    numel: int, seed: int, offset: int, processors: int, threads_per_processor: int
) -> Array:
    """The word that falls to each element when PyTorch samples on CUDA, uint32.

    Args:
        numel: how many elements.
        seed, offset: the generator's; `offset` counts words of each thread, a multiple of 4.
        processors, threads_per_processor: of the device (an A100 has 108 and 2048).
    """
    if not numel:
        return np.empty(0, np.uint32)
    grid, _ = cuda_grid(numel, processors, threads_per_processor)
    threads = grid * BLOCK_THREADS
    element = np.arange(numel, dtype=np.uint64)
    thread = element % np.uint64(threads)
    row = element // np.uint64(threads)
    turn, part = row // np.uint64(UNROLL), row % np.uint64(UNROLL)
    drawn = blocks(seed, thread, turn + np.uint64(offset // 4))
    return np.take_along_axis(drawn, part.astype(np.int64)[:, None], 1)[:, 0]


def cuda_uniform(
    numel: int, seed: int, offset: int, processors: int, threads_per_processor: int,
    low: float = 0.0, high: float = 1.0,
) -> Array:  # fmt: skip
    """The float32 that `torch.rand` gives on CUDA: in (0, 1] by cuRAND, turned so that `high`
    becomes `low`.
    """
    words = cuda_words(numel, seed, offset, processors, threads_per_processor)
    unit = (words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)).astype(
        np.float32
    )
    span = np.float32(high) - np.float32(low)
    values = unit * span + np.float32(low)
    return np.where(values == np.float32(high), np.float32(low), values)


def cuda_normal(
    numel: int, seed: int, offset: int, processors: int, threads_per_processor: int,
    mean: float = 0.0, std: float = 1.0,
) -> Array:  # fmt: skip
    """The float32 that `torch.randn` gives on CUDA, but for the device's own sine, cosine and
    logarithm.

    cuRAND makes two pairs of a block of four words (Box-Muller, sine first).
    """
    if not numel:
        return np.empty(0, np.float32)
    grid, _ = cuda_grid(numel, processors, threads_per_processor)
    threads = grid * BLOCK_THREADS
    element = np.arange(numel, dtype=np.uint64)
    thread = element % np.uint64(threads)
    row = element // np.uint64(threads)
    turn, part = row // np.uint64(UNROLL), (row % np.uint64(UNROLL)).astype(np.int64)
    drawn = blocks(seed, thread, turn + np.uint64(offset // 4)).astype(np.float64)
    pair = (part // 2 * 2)[:, None]
    first = np.take_along_axis(drawn, pair, 1)[:, 0] * 2.0**-32 + 2.0**-33
    second = (
        np.take_along_axis(drawn, pair + 1, 1)[:, 0] * (2.0**-32 * 2 * math.pi) + 2.0**-32 * math.pi
    )
    radius = np.sqrt(-2.0 * np.log(first))
    values = radius * np.where(part % 2 == 0, np.sin(second), np.cos(second))
    return (values * std + mean).astype(np.float32)
