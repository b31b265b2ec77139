"""Torch's models under the names of those of `numbat.zoo`, and losses that both can compute."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from numbat import nn as own
from numbat.zoo import yolov8
from numbat.zoo.gpt2 import GPT2Config


def mlp(names: Any) -> Any:
    """Three layers with GELU and layer norm, in either engine's names."""
    return names.Sequential(
        names.Linear(12, 32), names.GELU(), names.LayerNorm(32), names.Linear(32, 32), names.ReLU(),
        names.Dropout(0.1), names.Linear(32, 5),
    )  # fmt: skip


class BasicBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Any) -> Any:
        beside = x if self.downsample is None else self.downsample(x)
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + beside)


class ResNet(nn.Module):
    def __init__(self, blocks: tuple[int, ...], classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inside = width
        self.count = len(blocks)
        for stage, count in enumerate(blocks):
            outside = width * 2**stage
            row = [BasicBlock(inside, outside, 1 if stage == 0 else 2)]
            row += [BasicBlock(outside, outside) for _ in range(count - 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*row))
            inside = outside
        self.fc = nn.Linear(inside, classes)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in range(self.count):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def double_convolution(inside: int, outside: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for channels in (inside, outside):
        parts += [
            nn.Conv3d(channels, outside, 3, padding=1, bias=False),
            nn.InstanceNorm3d(outside, affine=True), nn.LeakyReLU(0.01),
        ]  # fmt: skip
    return nn.Sequential(*parts)


class UNet3D(nn.Module):
    def __init__(self, channels: int, classes: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        inside = (channels, *widths[:-1])
        self.down = nn.ModuleList([double_convolution(a, b) for a, b in zip(inside, widths)])  # noqa: B905
        self.lift = nn.ModuleList(
            [nn.ConvTranspose3d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:])]  # noqa: B905, RUF007
        )
        self.up = nn.ModuleList([double_convolution(2 * one, one) for one in widths[:-1]])
        self.head = nn.Conv3d(widths[0], classes, 1)

    def forward(self, x: Any) -> Any:
        levels = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool3d(x, 2))
            levels.append(x)
        for level in reversed(range(len(self.lift))):
            x = self.up[level](torch.cat([levels[level], self.lift[level](x)], 1))
        return self.head(x)


class Attention(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def forward(self, x: Any) -> Any:
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.c_attn(x).chunk(3, -1)
        )
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(out.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(config.width, 4 * config.width),
                "c_proj": nn.Linear(4 * config.width, config.width),
            }
        )

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x))
        inner = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](inner)


class GPT2(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.padded_vocabulary, config.width),
                "wpe": nn.Embedding(config.context, config.width),
                "h": nn.ModuleList([Block(config) for _ in range(config.layers)]),
                "ln_f": nn.LayerNorm(config.width),
            }
        )
        self.lm_head = nn.Linear(config.width, config.padded_vocabulary, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens: Any, targets: Any) -> Any:
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1]))
        for block in parts["h"]:
            x = block(x)
        logits = self.lm_head(parts["ln_f"](x))
        return None, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


class Conv(nn.Module):
    def __init__(self, inside: int, outside: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.03)

    def forward(self, x: Any) -> Any:
        return F.silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(channels, channels, 3), Conv(channels, channels, 3)

    def forward(self, x: Any) -> Any:
        return x + self.cv2(self.cv1(x))


class C2f(nn.Module):
    def __init__(self, inside: int, outside: int, repeats: int) -> None:
        super().__init__()
        half = outside // 2
        self.cv1, self.cv2 = Conv(inside, 2 * half), Conv((2 + repeats) * half, outside)
        self.m = nn.ModuleList([Bottleneck(half) for _ in range(repeats)])

    def forward(self, x: Any) -> Any:
        parts = list(self.cv1(x).chunk(2, 1))
        for one in self.m:
            parts.append(one(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Detect(nn.Module):
    def __init__(self, classes: int, channels: list[int]) -> None:
        super().__init__()
        box, kind = max(16, channels[0] // 4, 64), max(channels[0], min(classes, 100))
        for name, width, outside in (("cv2", box, 64), ("cv3", kind, classes)):
            branches = [
                nn.Sequential(
                    Conv(c, width, 3), Conv(width, width, 3), nn.Conv2d(width, outside, 1)
                )
                for c in channels
            ]
            setattr(self, name, nn.ModuleList(branches))
        self.dfl = nn.Module()
        self.dfl.conv = nn.Conv2d(16, 1, 1, bias=False).requires_grad_(False)

    def forward(self, levels: Any) -> Any:
        return [torch.cat([self.cv2[at](x), self.cv3[at](x)], 1) for at, x in enumerate(levels)]


class Detector(nn.Module):
    """A small backbone of three levels and a detection head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 8, 3, 2), Conv(8, 16, 3, 2), Conv(16, 16, 3, 2))
        self.one, self.two, self.three = C2f(16, 16, 1), Conv(16, 24, 3, 2), Conv(24, 32, 3, 2)
        self.head = Detect(4, [16, 24, 32])

    def forward(self, x: Any) -> Any:
        first = self.one(self.stem(x))
        second = self.two(first)
        return self.head([first, second, self.three(second)])


class OwnDetector(own.Module):
    """The same of numbat's parts."""

    def __init__(self) -> None:
        super().__init__()
        conv = yolov8.Conv
        self.stem = own.Sequential(conv(3, 8, 3, 2), conv(8, 16, 3, 2), conv(16, 16, 3, 2))
        self.one = yolov8.C2f(16, 16, 1, True)
        self.two, self.three = conv(16, 24, 3, 2), conv(24, 32, 3, 2)
        self.head = yolov8.Detect(4, [16, 24, 32])

    forward = Detector.forward


def detection_loss(engine: Any, levels: Any, boxes: Any, kinds: Any, positive: Any) -> Any:
    """Classes by binary cross-entropy; boxes by their distances' distributions and generalised IoU.

    `boxes`: (N, anchors, 4) distances to the sides in cells; `kinds`: (N, anchors, classes);
    `positive`: (N, anchors), bool.
    """
    f = engine.nn.functional
    flat = engine.cat([one.flatten(2) for one in levels], 2).transpose(1, 2)
    logits, kind_logits = flat[..., :64], flat[..., 64:]
    count = positive.sum().clamp(min=1)
    kind_loss = f.binary_cross_entropy_with_logits(kind_logits, kinds, reduction="sum") / count
    chosen, wanted = logits[positive].reshape(-1, 4, 16), boxes[positive]
    bins = engine.arange(16, dtype=flat.dtype)
    found = (chosen.softmax(-1) * bins).sum(-1)
    low, high = engine.minimum(found, wanted), engine.maximum(found, wanted)

    def area(one: Any) -> Any:
        return (one[:, 0] + one[:, 2]) * (one[:, 1] + one[:, 3])

    overlap = area(low)
    union = area(found) + area(wanted) - overlap
    hull = area(high)
    box_loss = (1 - overlap / union + (hull - union) / hull).sum() / count
    left = wanted.floor()
    share = left + 1 - wanted
    rows = chosen.reshape(-1, 16)
    lower = f.cross_entropy(rows, left.reshape(-1).long(), reduction="none").reshape(wanted.shape)
    upper = f.cross_entropy(rows, (left + 1).reshape(-1).long(), reduction="none")
    bin_loss = (lower * share + upper.reshape(wanted.shape) * (1 - share)).mean(-1).sum() / count
    return 7.5 * box_loss + 0.5 * kind_loss + 1.5 * bin_loss


def segmentation_loss(engine: Any, logits: Any, target: Any) -> Any:
    """Cross-entropy and one minus the mean soft Dice of the classes."""
    f = engine.nn.functional
    shares = f.softmax(logits, 1)
    truth = engine.stack([(target == kind).to(logits.dtype) for kind in range(logits.shape[1])], 1)
    axes = (0, 2, 3, 4)
    dice = 2 * (shares * truth).sum(axes) / (shares.sum(axes) + truth.sum(axes) + 1e-5)
    return f.cross_entropy(logits, target) + 1 - dice.mean()
