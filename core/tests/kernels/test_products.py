"""Products in pieces: the same as numpy's, for every layout and any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat.kernels import products
from numbat.kernels.blas import Threads

SHAPES = [
    (3, 5, 7),
    (1, 400, 3000),
    (900, 70, 130),
    (70, 130, 900),
    (96, 6000, 80),
    (400, 700, 2),
    (640, 1, 640),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_is_numpys(
    shape: tuple[int, int, int], turned: tuple[bool, bool], dtype: Any
) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(1)
    a = rng.normal(size=(inner, rows) if turned[0] else (rows, inner)).astype(dtype)
    b = rng.normal(size=(columns, inner) if turned[1] else (inner, columns)).astype(dtype)
    a, b = a.T if turned[0] else a, b.T if turned[1] else b
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    room = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(products.matmul(a, b), wanted, **room)
    out = np.ones((rows, columns), dtype)
    products.multiply(a, b, out, 0.5, 2.0)
    np.testing.assert_allclose(out, 0.5 * wanted + 2.0, **room)


@pytest.mark.parametrize("shape", SHAPES)
def test_threads_change_no_bit(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(2)
    a = rng.normal(size=(rows, inner)).astype(np.float32)
    b = rng.normal(size=(inner, columns)).astype(np.float32)
    before, found = nb.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            nb.set_num_threads(threads)
            found.append(products.matmul(a, b).tobytes())
    finally:
        nb.set_num_threads(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [((6, 1, 90, 80), (1, 4, 80, 70)), ((2, 3, 4), (2, 4, 5)), ((9, 128, 64), (9, 64, 128))],
)
def test_batches_are_numpys(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=first), rng.normal(size=second)
    np.testing.assert_allclose(products.matmul(a, b), np.matmul(a, b), rtol=1e-10, atol=1e-10)


def test_shapes_that_do_not_fit_raise() -> None:
    with pytest.raises(ValueError, match="mismatch"):
        products.matmul(np.ones((900, 700)), np.ones((600, 800)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 3, 0), (0, 5)),
        ((0, 3, 4), (4, 5)),
        ((0, 4), (4, 5)),
        ((2, 0), (0,)),
        ((0, 2, 3), (0, 3, 2)),
    ],
)
def test_empty_products_are_numpys(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = np.ones(first), np.ones(second)
    np.testing.assert_array_equal(products.matmul(a, b), np.matmul(a, b))


class _Blas:
    """What stands for BLAS: it keeps every number of threads it was told."""

    def __init__(self) -> None:
        self.told = [4]

    def get(self) -> int:
        return self.told[-1]


def test_threads_of_blas_sleep_until_the_last_caller_leaves() -> None:
    blas = _Blas()
    threads = Threads(blas.get, blas.told.append)
    with threads:
        with pytest.raises(KeyError), threads:
            raise KeyError
        assert blas.told == [4, 1]
        threads.limit(3)
        assert blas.told == [4, 1]
    assert blas.told == [4, 1, 3]
    threads.limit(2)
    with threads:
        pass
    assert blas.told == [4, 1, 3, 2, 1, 2]


def test_a_blas_that_cannot_be_told_is_left_alone() -> None:
    threads = Threads(None, None)
    threads.limit(2)
    with threads:
        pass
