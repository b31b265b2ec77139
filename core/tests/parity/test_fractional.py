"""Fractional max pools against torch's, draw by draw."""

from __future__ import annotations

import pytest
import torch
from opinfo import apart, tensor_of

import numbat as nb


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("given", [{"output_size": 4}, {"output_ratio": 0.6}, {"output_size": 1}])
def test_windows_begin_where_torchs_do(
    axes: int, dtype: torch.dtype, given: dict[str, float]
) -> None:
    torch.manual_seed(0)
    name = f"fractional_max_pool{axes}d"
    for shape in ((2, 3, *range(7, 7 + axes)), (3, *range(9, 9 + axes))):
        x = torch.randn(shape, dtype=dtype, requires_grad=True)
        own = tensor_of(x).requires_grad_()
        torch.manual_seed(5)
        nb.manual_seed(5)
        options = {
            key: (one,) * axes if key == "output_ratio" else one for key, one in given.items()
        }
        options["return_indices"] = True
        wanted = getattr(torch.nn.functional, name)(x, 2, **options)
        found = getattr(nb.nn.functional, name)(own, 2, **options)
        assert apart(found, wanted) == ""
        weight = torch.rand_like(wanted[0])
        (wanted[0] * weight).sum().backward()
        (found[0] * tensor_of(weight)).sum().backward()
        assert apart(own.grad, x.grad) == ""
