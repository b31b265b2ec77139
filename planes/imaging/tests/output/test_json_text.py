"""JSON for people says what the standard encoder says, on fewer lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_imaging.output.json_text import json_text

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_VALUES = st.recursive(
    _LEAVES.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES)
def test_the_text_reads_back_as_the_value(value: Any) -> None:
    assert json.loads(json_text(value)) == value


def test_members_and_entries_have_lines_of_their_own() -> None:
    body = {"shape": [4, 5], "numbat": {"affine": [[1, 0], [0, 1]], "sources": [{"k": 0}]}, "x": {}}

    assert json_text(body).splitlines() == [
        "{",
        '  "shape": [4, 5],',
        '  "numbat": {',
        '    "affine": [',
        "      [1, 0],",
        "      [0, 1]",
        "    ],",
        '    "sources": [',
        '      {"k": 0}',
        "    ]",
        "  },",
        '  "x": {}',
        "}",
    ]


def test_what_json_has_no_word_for_is_no_text() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"slope": [float("nan")]})
