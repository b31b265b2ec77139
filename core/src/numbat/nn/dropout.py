"""Elements, channels or features dropped at random while training."""

from __future__ import annotations

from numbat.nn import functional as F
from numbat.nn.module import Module
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """What all share: the chance `p` (CORE-0608 outside 0 to 1)."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="p", value=str(p),
                wanted="a probability from 0 to 1",
            )  # fmt: skip
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Its options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes elements with chance `p` and scales the others by 1 / (1 - p)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps the mean and variance of what SELU gives."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape; the input itself in evaluation mode."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
