"""YOLOv8: a backbone of split bottlenecks, a two-way feature pyramid, an anchor-free head.

Parameters have the names of the public checkpoints (`model.2.m.0.cv1.conv.weight`). Boxes are
distributions over 16 distances to each side (Li et al., "Generalized Focal Loss", 2020,
arXiv 2006.04388).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from numbat import nn
from numbat.nn import functional as F
from numbat.ops import cat
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["SCALES", "YOLOv8"]

SCALES = {
    "n": (0.33, 0.25, 1024), "s": (0.33, 0.50, 1024), "m": (0.67, 0.75, 768),
    "l": (1.00, 1.00, 512), "x": (1.00, 1.25, 512),
}  # fmt: skip
"""Depth, width and the most channels of each size."""

STRIDES = (8, 16, 32)
BINS = 16
"""How many distances a side of a box is a distribution over."""


class Conv(nn.Module):
    """Convolution, batch norm (eps 0.001, momentum 0.03), SiLU."""

    def __init__(self, inside: int, outside: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.03)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, outside, H / stride, W / stride)."""
        found: Tensor = self.act(self.bn(self.conv(x)))
        return found


class Bottleneck(nn.Module):
    """Two 3x3 convolutions, with the input added where `shortcut` says so."""

    def __init__(self, channels: int, shortcut: bool) -> None:
        super().__init__()
        self.cv1 = Conv(channels, channels, 3)
        self.cv2 = Conv(channels, channels, 3)
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """The input's shape."""
        out = self.cv2(self.cv1(x))
        found: Tensor = x + out if self.shortcut else out
        return found


class C2f(nn.Module):
    """Half the channels through bottlenecks in a row; all their results joined."""

    def __init__(self, inside: int, outside: int, repeats: int, shortcut: bool) -> None:
        super().__init__()
        half = outside // 2
        self.cv1 = Conv(inside, 2 * half)
        self.cv2 = Conv((2 + repeats) * half, outside)
        self.m = nn.ModuleList([Bottleneck(half, shortcut) for _ in range(repeats)])

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, outside, H, W)."""
        parts = list(self.cv1(x).chunk(2, 1))
        for bottleneck in self.m:
            parts.append(bottleneck(parts[-1]))
        found: Tensor = self.cv2(cat(parts, 1))
        return found


class SPPF(nn.Module):
    """Three 5x5 max pools in a row, all joined: context over several extents."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.cv1 = Conv(inside, inside // 2)
        self.cv2 = Conv(inside // 2 * 4, outside)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, outside, H, W)."""
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.m(parts[-1]))
        found: Tensor = self.cv2(cat(parts, 1))
        return found


class DFL(nn.Module):
    """The mean distance of a distribution over bins, as a convolution with fixed weights 0, 1,
    ..."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(BINS, 1, 1, bias=False).requires_grad_(False)
        self.conv.weight.array[...] = np.arange(BINS).reshape(1, BINS, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Distances (N, 4, anchors) of logits (N, 4 BINS, anchors)."""
        batch, _, anchors = x.shape
        shares = F.softmax(x.reshape(batch, 4, BINS, anchors).transpose(1, 2), 1)
        found: Tensor = self.conv(shares).reshape(batch, 4, anchors)
        return found


class Detect(nn.Module):
    """For each level a branch of box logits and one of class logits."""

    def __init__(self, classes: int, channels: Sequence[int]) -> None:
        super().__init__()
        self.classes = classes
        box = max(16, channels[0] // 4, BINS * 4)
        kind = max(channels[0], min(classes, 100))

        def branch(inside: int, width: int, outside: int) -> nn.Sequential:
            return nn.Sequential(
                Conv(inside, width, 3), Conv(width, width, 3), nn.Conv2d(width, outside, 1)
            )

        self.cv2 = nn.ModuleList([branch(one, box, 4 * BINS) for one in channels])
        self.cv3 = nn.ModuleList([branch(one, kind, classes) for one in channels])
        self.dfl = DFL()
        self._begin()

    def _begin(self) -> None:
        """Biases: 1 for boxes; for classes the logit of 5 objects in an image of 640 pixels a
        side."""
        for stride, box, kind in zip(STRIDES, self.cv2, self.cv3, strict=True):
            box[-1].bias.array[...] = 1.0
            kind[-1].bias.array[...] = math.log(5 / self.classes / (640 / stride) ** 2)

    def forward(self, levels: Sequence[Tensor]) -> list[Tensor]:
        """For each level (N, 4 BINS + classes, H, W)."""
        return [
            cat([box(x), kind(x)], 1)
            for x, box, kind in zip(levels, self.cv2, self.cv3, strict=True)
        ]

    def decoded(self, levels: Sequence[Tensor]) -> Tensor:
        """(N, 4 + classes, anchors): centre, width and height in pixels, and class
        probabilities."""
        flat = cat([one.reshape(*one.shape[:2], -1) for one in levels], 2)
        points, strides = anchors([one.shape[-2:] for one in levels])
        sides = self.dfl(flat[:, : 4 * BINS])
        low = points - sides[:, :2]
        high = points + sides[:, 2:]
        boxes = cat([(low + high) / 2, high - low], 1) * strides
        return cat([boxes, flat[:, 4 * BINS :].sigmoid()], 1)


def anchors(extents: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    """The centres of the cells, (2, anchors) as x and y in cells, and the stride of each."""
    points, strides = [], []
    for (height, width), stride in zip(extents, STRIDES, strict=True):
        y, x = np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij")
        points.append(np.stack([x.reshape(-1), y.reshape(-1)]))
        strides.append(np.full(height * width, stride))
    return (
        wrap(np.concatenate(points, 1).astype(np.float32)),
        wrap(np.concatenate(strides).astype(np.float32)),
    )


# Each row: what the layer is, its nominal channels, its nominal repeats, and where its input comes
# from (None: the layer before).
_ROWS: tuple[tuple[str, int, int, tuple[int, ...] | None], ...] = (
    ("conv", 64, 1, None), ("conv", 128, 1, None), ("c2f+", 128, 3, None), ("conv", 256, 1, None),
    ("c2f+", 256, 6, None), ("conv", 512, 1, None), ("c2f+", 512, 6, None), ("conv", 1024, 1, None),
    ("c2f+", 1024, 3, None), ("sppf", 1024, 1, None), ("up", 0, 1, None), ("cat", 0, 1, (-1, 6)),
    ("c2f", 512, 3, None), ("up", 0, 1, None), ("cat", 0, 1, (-1, 4)), ("c2f", 256, 3, None),
    ("conv", 256, 1, None), ("cat", 0, 1, (-1, 12)), ("c2f", 512, 3, None), ("conv", 512, 1, None),
    ("cat", 0, 1, (-1, 9)), ("c2f", 1024, 3, None),
)  # fmt: skip
_LEVELS = (15, 18, 21)


class Join(nn.Module):
    """Several inputs joined along their channels."""

    def forward(self, several: list[Tensor]) -> Tensor:
        """Shape (N, sum of channels, H, W)."""
        return cat(several, 1)


class YOLOv8(nn.Module):
    """The detector of a size: "n", "s", "m", "l" or "x"; 25,902,640 parameters for "m" and 80
    classes.

    Images (N, 3, H, W), extents multiples of 32. In training the result is the head's logits, one
    tensor a level; in evaluation also the decoded boxes, before them. Raises CORE-0608 for another
    size, CORE-0609 for other extents.
    """

    def __init__(self, size: str = "m", classes: int = 80, channels: int = 3) -> None:
        super().__init__()
        if size not in SCALES:
            raise refuse(
                "CORE-0608", module="YOLOv8", argument="size", value=size,
                wanted=f"one of {list(SCALES)}",
            )  # fmt: skip
        depth, width, most = SCALES[size]
        held: list[int] = []
        layers: list[nn.Module] = []
        for kind, nominal, repeats, sources in _ROWS:
            inside = held[-1] if held else channels
            outside = math.ceil(min(nominal, most) * width / 8) * 8
            if kind == "conv":
                layers.append(Conv(inside, outside, 3, 2))
            elif kind.startswith("c2f"):
                count = max(round(repeats * depth), 1)
                layers.append(C2f(inside, outside, count, shortcut=kind == "c2f+"))
            elif kind == "sppf":
                layers.append(SPPF(inside, outside))
            elif kind == "up":
                layers.append(nn.Upsample(scale_factor=2))
                outside = inside
            else:
                layers.append(Join())
                outside = sum(held[one] for one in sources or ())
            held.append(outside)
        layers.append(Detect(classes, [held[level] for level in _LEVELS]))
        self.model = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> list[Tensor] | tuple[Tensor, list[Tensor]]:
        """The logits of the levels (N, 64 + classes, H / stride, W / stride), strides 8, 16, 32."""
        if x.ndim != 4 or any(extent % STRIDES[-1] for extent in x.shape[2:]):
            raise refuse(
                "CORE-0609", module="YOLOv8", shape=list(x.shape),
                wanted=f"4 axes, height and width multiples of {STRIDES[-1]}",
            )  # fmt: skip
        held: list[Tensor] = []
        for at, (_, _, _, sources) in enumerate(_ROWS):
            given = x if sources is None else [held[one] for one in sources]
            x = self.model[at](given)
            held.append(x)
        head = self.model[-1]
        levels: list[Tensor] = head([held[level] for level in _LEVELS])
        return levels if self.training else (head.decoded(levels), levels)
