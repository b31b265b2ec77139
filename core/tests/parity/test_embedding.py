"""Embeddings against torch, over its own sample inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb
from numbat.ops.registry import OPERATORS


@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
def test_torchs_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = getattr(nb, name)

    def turned(weight: Any, index: Any, *rest: Any, **options: Any) -> Any:
        return function(index, weight, *rest, **options)

    monkeypatch.setitem(OPERATORS, name, replace(OPERATORS[name], function=turned))
    for dtype in (torch.float32, torch.float64, torch.float16):
        # torch adds up bags of float16 in float16.
        tally = compare(name, dtypes=(dtype,), scale=10 if dtype is torch.float16 else 1)
        assert not tally.faults, tally.faults[:3]
        assert tally.compared
        assert tally.gradients


def test_one_hot() -> None:
    tally = compare("one_hot", dtypes=(torch.int64,))
    assert not tally.faults, tally.faults[:3]
    assert tally.compared


def test_max_norm_scales_the_table() -> None:
    table, index = torch.randn(6, 4), torch.tensor([0, 3, 3, 5])
    mine = tensor_of(table)
    expected = torch.nn.functional.embedding(index, table, max_norm=1.0)
    found = nb.embedding(tensor_of(index), mine, max_norm=1.0)
    torch.testing.assert_close(to_torch(found), expected)
    torch.testing.assert_close(to_torch(mine), table)
