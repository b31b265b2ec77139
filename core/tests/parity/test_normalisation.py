"""Normalisation against torch: its own sample inputs, running statistics, layouts and mixed
types."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]
DISTANCES = ["cdist", "cosine_similarity", "pairwise_distance", "pdist"]


@pytest.mark.parametrize("name", NAMES + DISTANCES)
def test_torchs_samples(name: str) -> None:
    # A norm of negative order overflows in torch's half types, in powers that it rounds in between.
    tally = compare(name, dtypes=DTYPES, scale=3, skip=lambda sample, dtype: (
        dtype.itemsize == 2 and sample.kwargs.get("p", 2) < 0
    ))  # fmt: skip
    assert not tally.faults, tally.faults[:3]
    assert tally.compared
    assert tally.gradients


@pytest.mark.parametrize("shape", [(8, 5), (4, 5, 7), (3, 33, 6, 5), (2, 4, 3, 4, 5)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_in_both_layouts(shape: tuple[int, ...], last: bool, training: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape) * 2 + 30
    if last:
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)
    channels = shape[1]
    weight, bias = torch.randn(channels), torch.randn(channels)
    mean, variance = torch.randn(channels) + 30, torch.rand(channels) + 1
    theirs = [one.clone().requires_grad_() for one in (x, weight, bias)]
    mine = [tensor_of(one) for one in (x, weight, bias)]
    for one in mine:
        one.requires_grad = True
    held, kept = [mean.clone(), variance.clone()], [tensor_of(mean), tensor_of(variance)]
    expected = torch.nn.functional.batch_norm(theirs[0], *held, *theirs[1:], training, 0.3)
    found = nb.batch_norm(mine[0], *kept, *mine[1:], training, 0.3)
    if len(shape) != 3:  # torch has no channels-last format of three axes
        assert found.stride() == expected.stride()
    torch.testing.assert_close(to_torch(found), expected.detach(), rtol=1e-4, atol=1e-4)
    for one, other in zip(kept, held, strict=True):
        torch.testing.assert_close(to_torch(one), other)
    grad = torch.randn(shape)
    expected.backward(grad)
    found.backward(tensor_of(grad))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(to_torch(one.grad), other.grad, rtol=2e-4, atol=2e-4)


def test_instance_norm_moves_running_statistics() -> None:
    x = torch.randn(3, 4, 9)
    held = [torch.zeros(4), torch.ones(4)]
    kept = [tensor_of(one) for one in held]
    expected = torch.nn.functional.instance_norm(x, *held, momentum=0.2)
    found = nb.instance_norm(tensor_of(x), *kept, momentum=0.2)
    torch.testing.assert_close(to_torch(found), expected)
    for one, other in zip(kept, held, strict=True):
        torch.testing.assert_close(to_torch(one), other)
    expected = torch.nn.functional.instance_norm(x, *held, use_input_stats=False)
    found = nb.instance_norm(tensor_of(x), *kept, use_input_stats=False)
    torch.testing.assert_close(to_torch(found), expected)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_input_with_float32_parameters(half: torch.dtype) -> None:
    x, weight, bias = torch.randn(4, 6, 5, dtype=half), torch.randn(6), torch.randn(6)
    mine = [tensor_of(one) for one in (x, weight, bias)]
    expected = torch.nn.functional.batch_norm(x, None, None, weight, bias, True)
    found = nb.batch_norm(mine[0], None, None, mine[1], mine[2], True)
    torch.testing.assert_close(to_torch(found), expected)
    expected = torch.nn.functional.layer_norm(x.movedim(1, 2), (6,), weight, bias)
    found = nb.layer_norm(mine[0].transpose(1, 2), (6,), mine[1], mine[2])
    torch.testing.assert_close(to_torch(found), expected)
