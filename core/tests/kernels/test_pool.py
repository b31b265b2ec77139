"""The pool: every piece once, the same bounds for any number of threads, failures handed on."""

import threading

import numpy as np
import pytest

import numbat as nb
from numbat.kernels import pool
from numbat_registries import Refusal


@pytest.fixture(autouse=True)
def _threads():
    before = nb.get_num_threads()
    yield
    nb.set_num_threads(before)


def bounds(total, grain, threads):
    nb.set_num_threads(threads)
    seen = []
    pool.run(lambda begin, end: seen.append((begin, end)), (), total, grain)
    return sorted(seen)


@pytest.mark.parametrize(("total", "grain"), [(0, 4), (1, 4), (4, 4), (5, 4), (103, 10), (64, 1)])
def test_pieces_do_not_depend_on_threads(total, grain):
    expected = [(begin, min(begin + grain, total)) for begin in range(0, total, grain)]
    for threads in (1, 2, 3, 7):
        assert bounds(total, grain, threads) == expected
    assert pool.pieces(total, grain) == len(expected)


def test_several_threads_take_pieces_at_the_same_time():
    nb.set_num_threads(3)
    together = threading.Barrier(3, timeout=20)
    pool.run(lambda begin, end: together.wait(), (), 3, 1)


def test_a_run_within_a_piece_is_done_by_that_piece():
    nb.set_num_threads(2)
    sums = np.zeros(4)

    def inner(row, begin, end):
        sums[row] += end - begin

    pool.run(lambda begin, end: pool.run(inner, (begin,), 10, 3), (), 4, 1)
    assert sums.tolist() == [10.0] * 4


def test_a_failure_is_raised_after_all_pieces():
    nb.set_num_threads(2)
    seen = []

    def fail(begin, end):
        seen.append(begin)
        if begin == 3:
            raise RuntimeError("piece 3")

    with pytest.raises(RuntimeError, match="piece 3"):
        pool.run(fail, (), 8, 1)
    assert sorted(seen) == list(range(8))


def test_many_runs_from_several_threads():
    nb.set_num_threads(3)
    results = {}

    def caller(number):
        total = np.zeros(50)
        for _ in range(20):
            pool.run(lambda begin, end: total.__setitem__(begin, total[begin] + 1), (), 50, 1)
        results[number] = total

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert all((results[number] == 20).all() for number in range(4))


def test_arrays_of_pool_threads_are_aligned():
    nb.set_num_threads(2)
    addresses = []
    pool.run(lambda begin, end: addresses.append(np.empty(100).ctypes.data % 64), (), 40, 1)
    assert set(addresses) == {0}


def test_fewer_than_one_thread_is_refused():
    with pytest.raises(Refusal) as caught:
        nb.set_num_threads(0)
    assert caught.value.code == "CORE-0400"
