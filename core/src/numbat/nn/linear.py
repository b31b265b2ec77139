"""Affine and bilinear maps, and modules that only change the shape."""

from __future__ import annotations

import math
from typing import Any

from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.lazy import Lazy
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter, UninitializedParameter
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor

__all__ = ["Bilinear", "Flatten", "Identity", "LazyLinear", "Linear", "Unflatten"]


class Identity(Module):
    """Gives its input back, whatever it was made with."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """`input`."""
        return input


class Linear(Module):
    """`input @ weight.T + bias`.

    `weight`: (out_features, in_features) and `bias`: (out_features), both from
    U(-1/sqrt(in_features), 1/sqrt(in_features)). Input: (..., in_features).
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(empty(out_features, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Shape (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Its sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(Lazy, Linear):
    """A `Linear` that learns `in_features` from its first input."""

    eager = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        Module.__init__(self)
        self.in_features = 0
        self.out_features = out_features
        self.weight = UninitializedParameter(dtype=dtype)
        self.register_parameter("bias", UninitializedParameter(dtype=dtype) if bias else None)

    def infer_sizes(self, input: Tensor) -> None:
        """`in_features` from the input's last axis."""
        self.in_features = input.shape[-1]
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))

    def adopt_sizes(self) -> None:
        """`in_features` from a weight that was loaded."""
        self.in_features = self.weight.shape[-1]


class Bilinear(Module):
    """`sum_ij x1_i weight_kij x2_j + bias_k`.

    `weight`: (out_features, in1_features, in2_features) and `bias`: (out_features), both from
    U(-1/sqrt(in1_features), 1/sqrt(in1_features)).
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            from numbat_registries import refuse

            raise refuse(
                "CORE-0608", module="Bilinear", argument="in1_features", value=str(in1_features),
                wanted="a number above 0",
            )  # fmt: skip
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_features, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Shape (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Its sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Axes from `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input with those axes as one."""
        found: Tensor = input.flatten(self.start_dim, self.end_dim)
        return found

    def extra_repr(self) -> str:
        """Its axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several, of the extents `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The input with that axis as several."""
        found: Tensor = input.unflatten(self.dim, self.unflattened_size)
        return found

    def extra_repr(self) -> str:
        """Its axis and extents."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
