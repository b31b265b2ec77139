"""The softmax family against torch, over its own sample inputs and special values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("name", ["log_softmax", "softmax", "softmin"])
def test_torchs_samples(name: str) -> None:
    tally = compare(name, dtypes=DTYPES)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared
    assert tally.gradients


@pytest.mark.parametrize("name", ["log_softmax", "softmax"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_values(name: str, dtype: torch.dtype) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor(
        [
            [1, -inf, 2],
            [-inf, -inf, -inf],
            [inf, 0, 1],
            [nan, 0, 1],
            [1e4, -1e4, 0],
            [88, 89, -104],
        ],
        dtype=dtype,
    )
    for dim in (0, 1):
        expected = getattr(torch, name)(x, dim)
        torch.testing.assert_close(
            to_torch(getattr(nb, name)(tensor_of(x), dim)), expected, equal_nan=True
        )


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_draws_torchs_noise(hard: bool) -> None:
    logits = torch.randn(20, 32)
    torch.manual_seed(1)
    nb.manual_seed(1)
    expected = torch.nn.functional.gumbel_softmax(logits, tau=0.7, hard=hard)
    found = nb.gumbel_softmax(tensor_of(logits), tau=0.7, hard=hard)
    torch.testing.assert_close(to_torch(found), expected, rtol=1e-4, atol=1e-5)
