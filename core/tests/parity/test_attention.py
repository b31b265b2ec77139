"""Attention against torch: its own sample inputs, packed layouts, masks, shared heads, dropout."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
sdpa = torch.nn.functional.scaled_dot_product_attention


def test_torchs_samples() -> None:
    # Dropout draws in torch's fused paths are not those of its own dropout. In half types torch
    # rounds the weights too.
    for dtype in DTYPES:
        tally = compare(
            "scaled_dot_product_attention", dtypes=(dtype,), limit=200,
            scale=4 if dtype.itemsize == 2 else 1,
            skip=lambda sample, dtype: sample.kwargs.get("dropout_p", 0) > 0,
        )  # fmt: skip
        assert not tally.faults, tally.faults[:3]
        assert tally.compared > 8
        assert tally.gradients > 8


@pytest.mark.parametrize("rows", [1, 7, 128, 129, 300])
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "additive"])
@pytest.mark.parametrize("share", [1, 2, 4])
def test_packed_and_shared(rows: int, kind: str, share: int) -> None:
    torch.manual_seed(rows)
    batch, heads, width = 2, 4, 16
    shared = heads // share
    packed = torch.randn(batch, rows, (heads + 2 * shared) * width)
    theirs, mine = packed.clone().requires_grad_(), tensor_of(packed)
    mine.requires_grad = True
    parts = []
    for whole in (theirs, mine):
        split = [(0, heads), (heads, shared), (heads + shared, shared)]
        parts.append([
            whole.narrow(2, start * width, count * width)
            .reshape((batch, rows, count, width)).transpose(1, 2)
            for start, count in split
        ])  # fmt: skip
    mask = None
    if kind == "bool":
        mask = torch.rand(batch, 1, rows, rows) > 0.3
        mask[..., 0] = True
        mask[:, :, -1] = False  # a row that sees nothing
    elif kind == "additive":
        mask = torch.randn(rows, rows)
    options = {"is_causal": kind == "causal", "enable_gqa": share > 1}
    expected = sdpa(*parts[0], attn_mask=mask, **options)
    given = None if mask is None else tensor_of(mask)
    found = nb.scaled_dot_product_attention(*parts[1], attn_mask=given, **options)
    torch.testing.assert_close(to_torch(found), expected.detach(), rtol=1e-4, atol=1e-5)
    grad = torch.randn(expected.shape)
    expected.backward(grad)
    found.backward(tensor_of(grad))
    torch.testing.assert_close(to_torch(mine.grad), theirs.grad, rtol=1e-4, atol=2e-5)


def test_gradient_of_a_mask_and_dropout() -> None:
    q, k, v, mask = (torch.randn(2, 3, 5, 4) for _ in range(3)), None, None, torch.randn(5, 5)
    q, k, v = list(q)
    theirs = [one.clone().requires_grad_() for one in (q, k, v, mask)]
    mine = [tensor_of(one) for one in (q, k, v, mask)]
    for one in mine:
        one.requires_grad = True
    sdpa(*theirs).sum().backward()
    nb.scaled_dot_product_attention(*mine).sum().backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(to_torch(one.grad), other.grad, rtol=1e-4, atol=1e-5)
    torch.manual_seed(0)
    nb.manual_seed(0)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = sdpa(q, k, v, dropout_p=0.4)
    found = nb.scaled_dot_product_attention(*[tensor_of(one) for one in (q, k, v)], dropout_p=0.4)
    torch.testing.assert_close(to_torch(found), expected)
