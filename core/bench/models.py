"""The models that are timed: written once in the names that both engines share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], object]


def _training(T: Any, model: Any, loss: Callable[[], Any]) -> Step:
    optimiser = T.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        optimiser.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimiser.step()
        return float(value.detach())

    return step


def _channels_last(T: Any, engine: str, model: Any, *tensors: Any, three: bool = False) -> Any:
    """torch's fastest layout; numbat's is inside its operators."""
    if engine == "numbat":
        return model, *tensors
    form = T.channels_last_3d if three else T.channels_last
    return model.to(memory_format=form), *(one.contiguous(memory_format=form) for one in tensors)


def unet3d(T: Any, engine: str) -> Step:
    """A UNet of 32 channels and three levels on a volume of 64 voxels a side."""
    nn = T.nn
    T.manual_seed(0)

    def block(inside: int, outside: int) -> Any:
        return nn.Sequential(
            nn.Conv3d(inside, outside, 3, padding=1, bias=False),
            nn.InstanceNorm3d(outside, affine=True),
            nn.LeakyReLU(0.01),
            nn.Conv3d(outside, outside, 3, padding=1, bias=False),
            nn.InstanceNorm3d(outside, affine=True),
            nn.LeakyReLU(0.01),
        )

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2, self.bottom = block(1, 32), block(32, 64), block(64, 128)
            self.pool = nn.MaxPool3d(2)
            self.lift2 = nn.ConvTranspose3d(128, 64, 2, stride=2)
            self.lift1 = nn.ConvTranspose3d(64, 32, 2, stride=2)
            self.up2, self.up1 = block(128, 64), block(64, 32)
            self.head = nn.Conv3d(32, 2, 1)

        def forward(self, x: Any) -> Any:
            one = self.down1(x)
            two = self.down2(self.pool(one))
            three = self.bottom(self.pool(two))
            two = self.up2(T.cat([self.lift2(three), two], 1))
            return self.head(self.up1(T.cat([self.lift1(two), one], 1)))

    model, x = _channels_last(T, engine, UNet(), T.randn(1, 1, 64, 64, 64), three=True)
    y = T.randint(0, 2, (1, 64, 64, 64))
    return _training(T, model, lambda: T.nn.functional.cross_entropy(model(x), y))


def _yolov8m(T: Any, engine: str, pixels: int, batch: int) -> Step:
    nn = T.nn
    T.manual_seed(0)

    class Conv(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int, size: int = 1, stride: int = 1) -> None:
            super().__init__()
            self.conv = nn.Conv2d(inside, outside, size, stride, size // 2, bias=False)
            self.bn = nn.BatchNorm2d(outside, eps=1e-3, momentum=0.03)
            self.act = nn.SiLU()

        def forward(self, x: Any) -> Any:
            return self.act(self.bn(self.conv(x)))

    class C2f(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int, count: int) -> None:
            super().__init__()
            self.half = outside // 2
            self.cv1 = Conv(inside, outside)
            self.cv2 = Conv((2 + count) * self.half, outside)
            self.m = nn.ModuleList(
                nn.Sequential(Conv(self.half, self.half, 3), Conv(self.half, self.half, 3))
                for _ in range(count)
            )

        def forward(self, x: Any) -> Any:
            parts = list(self.cv1(x).chunk(2, 1))
            for one in self.m:
                parts.append(parts[-1] + one(parts[-1]))
            return self.cv2(T.cat(parts, 1))

    class SPPF(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.cv1, self.cv2 = Conv(width, width // 2), Conv(width * 2, width)
            self.m = nn.MaxPool2d(5, 1, 2)

        def forward(self, x: Any) -> Any:
            parts = [self.cv1(x)]
            for _ in range(3):
                parts.append(self.m(parts[-1]))
            return self.cv2(T.cat(parts, 1))

    backbone = nn.Sequential(
        Conv(3, 48, 3, 2), Conv(48, 96, 3, 2), C2f(96, 96, 2), Conv(96, 192, 3, 2),
        C2f(192, 192, 4), Conv(192, 384, 3, 2), C2f(384, 384, 4), Conv(384, 576, 3, 2),
        C2f(576, 576, 2), SPPF(576),
    )  # fmt: skip
    model, x = _channels_last(T, engine, backbone, T.randn(batch, 3, pixels, pixels))
    return _training(T, model, lambda: model(x).square().mean())


def yolov8m_320(T: Any, engine: str) -> Step:
    """The backbone of YOLOv8m on four images of 320 pixels."""
    return _yolov8m(T, engine, 320, 4)


def yolov8m_640(T: Any, engine: str) -> Step:
    """The backbone of YOLOv8m on two images of 640 pixels."""
    return _yolov8m(T, engine, 640, 2)


LAYERS, HEADS, WIDTH, VOCABULARY, PADDED = 12, 12, 768, 50_257, 50_304


def _gpt2(T: Any, engine: str, batch: int, length: int) -> Step:
    nn, F = T.nn, T.nn.functional
    T.manual_seed(0)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            qkv = self.qkv(self.ln_1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
            q, k, v = (qkv[:, :, index].transpose(1, 2) for index in range(3))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))

    class GPT2(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(PADDED, WIDTH), nn.Embedding(1024, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.ln_f = nn.LayerNorm(WIDTH)
            nn.init.normal_(self.wte.weight, std=0.02)
            nn.init.normal_(self.wpe.weight, std=0.02)

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.wte(tokens) + self.wpe(T.arange(length))
            for block in self.blocks:
                x = block(x)
            x = self.ln_f(x).reshape(-1, WIDTH)
            if engine == "numbat":
                # The head and its loss in chunks, so that full logits never exist.
                return F.linear_cross_entropy(x, self.wte.weight, targets.reshape(-1))
            return F.cross_entropy(F.linear(x, self.wte.weight), targets.reshape(-1))

    model = GPT2()
    if engine == "torch.compile":
        model = T.compile(model)
    tokens = T.randint(0, VOCABULARY, (batch, length))
    targets = T.randint(0, VOCABULARY, (batch, length))
    return _training(T, model, lambda: model(tokens, targets))


def gpt2_b4_t256(T: Any, engine: str) -> Step:
    """GPT-2 of 124 million parameters, four rows of 256 tokens."""
    return _gpt2(T, engine, 4, 256)


def gpt2_b1_t1024(T: Any, engine: str) -> Step:
    """GPT-2 of 124 million parameters, one row of 1,024 tokens."""
    return _gpt2(T, engine, 1, 1024)
