"""The allocator under numpy: alignment, contents through growth, many threads, reuse."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numbat as nb
from numbat.tensors.storage import ALIGNMENT_BYTES, install, is_aligned


@given(st.integers(0, 200_000))
def test_a_block_of_any_size_is_aligned_and_whole(count: int) -> None:
    array = np.empty(count, np.uint8)
    assert is_aligned(array)
    array[:] = 7
    assert int(array.sum(dtype=np.int64)) == 7 * count


@given(st.lists(st.integers(0, 5000), min_size=2, max_size=6))
def test_growing_and_shrinking_keep_what_was_held(sizes: list[int]) -> None:
    array = np.arange(sizes[0], dtype=np.int32)
    held = array.copy()
    for size in sizes[1:]:
        array.resize(size, refcheck=False)
        kept = min(size, held.size)
        assert array[:kept].tolist() == held[:kept].tolist()
        assert not array[kept:].any()
        held = array.copy()


def test_zeros_are_zero_in_a_block_that_was_used() -> None:
    for _ in range(3):
        used = np.full(10_000, 9.0)
        del used
        assert not np.zeros(10_000).any()


def test_arrays_of_no_elements_are_given_back() -> None:
    before = nb.memory_stats()["used_bytes"]
    for _ in range(1000):
        np.empty((0, 77))
    assert nb.memory_stats()["used_bytes"] <= before + 4096


def test_blocks_are_handed_out_again() -> None:
    nb.empty_cache()
    first = np.empty(1 << 20, np.uint8)
    address = first.ctypes.data
    del first
    assert np.empty(1 << 20, np.uint8).ctypes.data == address


def test_kept_blocks_go_back_when_asked() -> None:
    held = np.empty(1 << 22, np.uint8)
    del held
    assert nb.memory_stats()["kept_bytes"] >= 1 << 22
    assert nb.empty_cache() >= 1 << 22
    assert nb.memory_stats()["kept_bytes"] == 0


def test_the_peak_is_counted_from_the_last_reset() -> None:
    nb.reset_peak_memory()
    before = nb.memory_stats()["used_bytes"]
    held = np.empty(1 << 21, np.uint8)
    del held
    stats = nb.memory_stats()
    assert stats["peak_bytes"] - before >= 1 << 21
    assert stats["used_bytes"] <= before + 65536


def test_many_threads_share_no_block() -> None:
    faults: list[str] = []

    def work(mark: int) -> None:
        install()
        rng = np.random.default_rng(mark)
        held = []
        for _ in range(300):
            array = np.full(int(rng.integers(1, 20_000)), mark, np.int32)
            held.append(array)
            if len(held) > 8:
                old = held.pop(0)
                if not (old == mark).all():
                    faults.append(f"thread {mark}")

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert faults == []


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0,), (2, 0, 4), (129,)])
def test_results_of_numpy_are_aligned_too(shape: tuple[int, ...]) -> None:
    result = np.add(np.ones(shape, np.float32), np.ones(shape, np.float32))
    assert np.asarray(result).ctypes.data % ALIGNMENT_BYTES == 0
