"""Evidence as JSON: always valid, never long, and silent about what it does not know."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_gates.evidence import ITEMS_SHOWN, dumps, to_json

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers(), max_size=4)
    ),
    max_leaves=12,
)


@given(anything)
def test_whatever_is_measured_is_json(value: Any) -> None:
    text = dumps(to_json(value))
    assert json.loads(text) == to_json(value)
    text.encode("utf-8")


@given(st.floats())
def test_undefined_numbers_are_objects_with_a_reason(value: float) -> None:
    shown = to_json(np.array([value]))[0]
    if math.isfinite(value):
        assert shown == value
    else:
        assert shown == {"undefined": "not a number" if math.isnan(value) else "infinite"}


def test_a_long_array_is_told_by_shape_extremes_and_digest() -> None:
    shown = to_json(np.arange(1000, dtype=np.int16).reshape(10, 100))
    assert {key: shown[key] for key in ("shape", "dtype", "min", "max")} == {
        "shape": [10, 100],
        "dtype": "int16",
        "min": 0,
        "max": 999,
    }
    assert len(shown["sha256"]) == 64


def test_long_lists_and_texts_are_cut_and_say_so() -> None:
    assert to_json(list(range(1000)))["items"] == 1000
    assert len(to_json(list(range(1000)))["first"]) == ITEMS_SHOWN
    assert to_json("x" * 10_000).endswith("(10000 characters)")


class Patient:
    """Stands for an object whose text holds what belongs to a patient."""

    def __repr__(self) -> str:
        return "DOE^JANE"


def test_an_unknown_object_gives_its_type_only() -> None:
    assert "DOE" not in dumps(to_json({"dataset": Patient()}))
    assert to_json(Patient())["type"].endswith("Patient")


class Side(Enum):
    LEFT = "L"


@dataclass
class Point:
    x_mm: float
    note: Any


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.zeros((2, 2)), [[0.0, 0.0], [0.0, 0.0]]),
        (Side.LEFT, "L"),
        (Decimal("1.10"), "1.10"),
        (Decimal("NaN"), {"undefined": "not a finite number"}),
        (Path("a/b"), "a/b"),
        (date(2026, 1, 2), "2026-01-02"),
        (Point(1.0, math.inf), {"x_mm": 1.0, "note": {"undefined": "infinite"}}),
        (1 + 2j, {"real": 1.0, "imaginary": 2.0}),
        ({2, 1}, [1, 2]),
    ],
)
def test_known_types_are_written_plainly(value: Any, shown: Any) -> None:
    assert to_json(value) == shown


def test_nesting_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    dumps(to_json(endless))


def test_a_nan_that_slips_through_is_an_error_and_not_text() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps(math.nan)
