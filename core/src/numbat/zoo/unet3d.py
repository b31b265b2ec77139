"""The 3D U-Net: convolutions down to a coarse volume and up again, joined level by level.

Source: Cicek et al., "3D U-Net", 2016 (arXiv 1606.06650), with instance norm and leaky ReLU as in
Isensee et al., "nnU-Net", 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from numbat import nn
from numbat.ops import cat
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["UNet3D"]


def double_convolution(inside: int, outside: int) -> nn.Sequential:
    """Twice: a 3x3x3 convolution, an instance norm, a leaky ReLU."""
    parts: list[nn.Module] = []
    for channels in (inside, outside):
        parts += [
            nn.Conv3d(channels, outside, 3, padding=1, bias=False),
            nn.InstanceNorm3d(outside, affine=True),
            nn.LeakyReLU(0.01),
        ]
    return nn.Sequential(*parts)


class UNet3D(nn.Module):
    """A U-Net of as many levels as `widths`; each halves the extents of the one before.

    Input (N, channels, D, H, W), extents multiples of 2 ** (levels - 1); result: logits
    (N, classes, D, H, W). Raises CORE-0609 for other extents.
    """

    def __init__(
        self, channels: int = 1, classes: int = 2, widths: Sequence[int] = (32, 64, 128)
    ) -> None:
        super().__init__()
        inside = (channels, *widths[:-1])
        self.down = nn.ModuleList(
            [double_convolution(one, other) for one, other in zip(inside, widths, strict=True)]
        )
        self.pool = nn.MaxPool3d(2)
        self.lift = nn.ModuleList(
            [nn.ConvTranspose3d(below, above, 2, stride=2) for above, below in pairwise(widths)]
        )
        self.up = nn.ModuleList([double_convolution(2 * one, one) for one in widths[:-1]])
        self.head = nn.Conv3d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits for every voxel."""
        factor = 2 ** len(self.lift)
        if x.ndim != 5 or any(extent % factor for extent in x.shape[2:]):
            raise refuse(
                "CORE-0609", module="UNet3D", shape=list(x.shape),
                wanted=f"5 axes, extents that {factor} divides",
            )  # fmt: skip
        levels = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else self.pool(x))
            levels.append(x)
        for level in reversed(range(len(self.lift))):
            x = self.up[level](cat([levels[level], self.lift[level](x)], 1))
        found: Tensor = self.head(x)
        return found
