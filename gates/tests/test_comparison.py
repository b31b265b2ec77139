"""Comparisons: no broadcasting, no wrapping, nothing equal to an undefined number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_gates.comparison import are_equal, difference

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
rows = st.lists(st.tuples(finite, finite), min_size=1, max_size=8)


@given(rows)
def test_lists_and_arrays_give_one_answer(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    by_lists = difference(one, other)
    by_arrays = difference(np.array(one), np.array(other))
    mixed = difference(one, np.array(other))
    expected = max(abs(a - b) for a, b in pairs)
    assert by_lists.worst == by_arrays.worst == mixed.worst == expected
    assert by_lists.place == by_arrays.place == mixed.place


@given(rows)
def test_the_place_is_where_the_largest_difference_is(pairs: list[tuple[float, float]]) -> None:
    grid = np.array(pairs)
    found = difference(grid, np.zeros_like(grid))
    assert abs(grid[found.place]) == found.worst == np.abs(grid).max()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.int64])
def test_whole_numbers_do_not_wrap(kind: Any) -> None:
    found = difference(np.array([0], kind), np.array([1], kind))
    assert found.worst == 1.0
    extremes = np.iinfo(kind)
    far = difference(np.array([extremes.min], kind), np.array([extremes.max], kind))
    assert far.worst == pytest.approx(float(extremes.max) - float(extremes.min))


@pytest.mark.parametrize(
    ("measured", "required"),
    [
        ([1.0, 2.0], [1.0]),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros((2, 3)), np.zeros(3)),
        (np.zeros(3), 0.0),
        ([], []),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (math.nan, math.nan),
        (np.array([1.0, math.nan]), np.array([1.0, math.nan])),
        ([1.0, math.nan], [1.0, 2.0]),
        ("1.0", 1.0),
        (True, 1.0),
    ],
)
def test_what_cannot_be_compared_is_a_fault(measured: Any, required: Any) -> None:
    assert difference(measured, required).fault


def test_equal_infinities_do_not_differ_and_others_do() -> None:
    assert difference(np.array([math.inf]), np.array([math.inf])).worst == 0.0
    assert difference(math.inf, math.inf).worst == 0.0
    assert difference(np.array([math.inf]), np.array([1.0])).worst == math.inf
    assert difference(np.float32(2.0), np.float64(1.0)).worst == 1.0


@pytest.mark.parametrize(
    ("measured", "required", "same"),
    [
        (np.eye(2), np.eye(2), True),
        (np.eye(2), [[1, 0], [0, 1]], True),
        (np.zeros((2, 1)), np.zeros((1, 2)), False),
        (np.array([math.nan]), np.array([math.nan]), False),
        (math.nan, math.nan, False),
        ([1, [2, 3]], [1, [2, 3]], True),
        ([1, [2, 3]], [1, [2, 4]], False),
        ([1], [1, 2], False),
        ((1, 2), [1, 2], True),
        ("SLICE", "SLICE", True),
        ({"a": np.zeros(2)}, {"a": np.zeros(2)}, True),
        ({"a": np.zeros(2)}, {"a": np.ones(2)}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (None, 0, False),
        (np.int16(3), 3, True),
    ],
)
def test_equality(measured: Any, required: Any, same: bool) -> None:
    assert are_equal(measured, required)[0] is same
