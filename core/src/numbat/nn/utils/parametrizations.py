"""Weights held by their direction and length, or by their largest singular value.

Source: Salimans, Kingma, "Weight Normalization", 2016 (arXiv 1602.07868); Miyato et al., "Spectral
Normalization for Generative Adversarial Networks", 2018 (arXiv 1802.05957).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat import ops
from numbat.nn.module import Module
from numbat.nn.utils.parametrize import register_parametrization
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g v / |v|, the norm over all axes but one (or over all, for `dim` None)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim
        self.over_all = dim is None or dim == -1

    def _lengths(self, v: Tensor) -> Tensor:
        if self.over_all:
            found: Tensor = (v * v).sum().sqrt()
            return found
        kept = self.dim % v.ndim
        axes = tuple(axis for axis in range(v.ndim) if axis != kept)
        found = (v * v).sum(axes, keepdim=True).sqrt() if axes else (v * v).sqrt()
        return found

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight."""
        return weight_v * (weight_g / self._lengths(weight_v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Lengths and directions (not scaled, as in torch)."""
        return self._lengths(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Holds a weight by its lengths, `original0`, and its directions, `original1`."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """The weight over its largest singular value, which power iteration follows in training."""

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if n_power_iterations < 1:
            raise refuse(
                "CORE-0608", module="spectral_norm", argument="n_power_iterations",
                value=str(n_power_iterations), wanted="a number above 0",
            )  # fmt: skip
        self.dim = dim % weight.ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            u = ops.randn(rows, dtype=weight.dtype).array
            v = ops.randn(columns, dtype=weight.dtype).array
            self.register_buffer("_u", wrap(self._unit(u)))
            self.register_buffer("_v", wrap(self._unit(v)))
            self._iterate(matrix.array, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim:
            others = [axis for axis in range(weight.ndim) if axis != self.dim]
            weight = weight.permute(self.dim, *others)
        found: Tensor = weight.flatten(1)
        return found

    def _unit(self, vector: Array) -> Array:
        return vector / max(float(np.linalg.norm(vector)), self.eps)

    def _iterate(self, matrix: Array, times: int) -> None:
        u, v = self._u.array, self._v.array
        for _ in range(times):
            u[...] = self._unit(matrix @ v)
            v[...] = self._unit(matrix.T @ u)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight over its spectral norm; a vector over its length."""
        if weight.ndim == 1:
            length = (weight * weight).sum().sqrt()
            return weight / ops.clamp(length, min=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.array, self.n_power_iterations)
        # The vectors change in place with the next step, the saved ones must not.
        u, v = self._u.clone(), self._v.clone()
        sigma = (u * matrix.matmul(v)).sum()
        found: Tensor = weight / sigma
        return found

    def right_inverse(self, value: Tensor) -> Tensor:
        """Any weight will do as its own original."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Module:  # fmt: skip
    """Divides a weight by its largest singular value. Raises CORE-0605 where there is none."""
    weight: Any = module._parameters.get(name)
    if weight is None:
        raise refuse("CORE-0605", module=type(module).__name__, target=name, kind="parameter")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    return register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )
