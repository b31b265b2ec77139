"""ResNets of basic blocks: two 3x3 convolutions beside an identity.

Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015 (arXiv
1512.03385).
"""

from __future__ import annotations

from collections.abc import Sequence

from numbat import nn
from numbat.nn import init
from numbat.tensors.tensor import Tensor

__all__ = ["BasicBlock", "ResNet", "resnet18", "resnet34"]


class BasicBlock(nn.Module):
    """conv, norm, ReLU, conv, norm; the input (or its 1x1 convolution) is added before the last
    ReLU."""

    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        same = stride == 1 and inside == outside
        self.register_module(
            "downsample",
            None
            if same
            else nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            ),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, outside, H / stride, W / stride)."""
        beside = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        found: Tensor = self.relu(self.bn2(self.conv2(out)) + beside)
        return found


class ResNet(nn.Module):
    """A stem, four stages of blocks at falling resolution, a mean over the image, and a linear
    head.

    Parameters have the names of the public checkpoints. Convolutions begin Kaiming-normal (fan
    out).
    """

    def __init__(
        self, blocks: Sequence[int] = (2, 2, 2, 2), classes: int = 1000, channels: int = 3,
        width: int = 64,
    ) -> None:  # fmt: skip
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inside = width
        self.stages = [f"layer{stage + 1}" for stage in range(len(blocks))]
        for stage, count in enumerate(blocks):
            outside = width * 2**stage
            row = [BasicBlock(inside, outside, 1 if stage == 0 else 2)]
            row += [BasicBlock(outside, outside) for _ in range(count - 1)]
            self.register_module(self.stages[stage], nn.Sequential(*row))
            inside = outside
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inside, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits (N, classes) of images (N, channels, H, W)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = getattr(self, stage)(x)
        found: Tensor = self.fc(self.avgpool(x).flatten(1))
        return found


def resnet18(classes: int = 1000) -> ResNet:
    """18 layers, 11,689,512 parameters for 1000 classes."""
    return ResNet((2, 2, 2, 2), classes)


def resnet34(classes: int = 1000) -> ResNet:
    """34 layers, 21,797,672 parameters for 1000 classes."""
    return ResNet((3, 4, 6, 3), classes)
