"""What is measured: each scene builds one step, from the same source for both engines.

`T` is `numbat` or `torch`; both have the same names. `engine` says which, and with "torch.compile"
that the step is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import models

Step = Callable[[], object]


@dataclass(frozen=True)
class Scene:
    """One scene: how its step is built, and how often it is run."""

    build: Callable[[Any, str], Step]
    rounds: int
    warm: int = 2
    peers: tuple[str, ...] = ("torch",)
    settings: dict[str, str] = field(default_factory=dict)


def many(step: Step, times: int) -> Step:
    """A step of `times` runs, for what is too short to be timed alone."""

    def repeated() -> None:
        for _ in range(times):
            step()

    return repeated


def training(T: Any, model: Any, loss: Callable[[], Any], engine: str, **options: Any) -> Step:
    """Forward, backward and an optimiser's step, through the public interface."""
    optimiser = T.optim.AdamW(model.parameters(), lr=1e-4, **options)

    def step() -> float:
        optimiser.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimiser.step()
        return float(value.detach())

    return step


def mlp64(T: Any, engine: str) -> Step:
    """A 64x64x64 perceptron of two layers: what an operator costs beside its arithmetic."""
    T.manual_seed(0)
    nn, F = T.nn, T.nn.functional
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    x, y = T.randn(64, 64), T.randn(64, 64)
    return many(training(T, model, lambda: F.mse_loss(model(x), y), engine), 50)


def one_add(T: Any, engine: str) -> Step:
    """One recorded addition of 64 numbers."""
    x = T.ones(64, requires_grad=True)
    y = T.ones(64)
    return many(lambda: x + y, 2000)


def one_matmul(T: Any, engine: str) -> Step:
    """One recorded product of 64x64 matrices."""
    x = T.ones(64, 64, requires_grad=True)
    y = T.ones(64, 64)
    return many(lambda: x @ y, 500)


def forward_backward(T: Any, function: Callable[..., Any], *inputs: Any) -> Step:
    """A function's result and its gradients."""

    def step() -> None:
        for one in inputs:
            one.grad = None
        function(*inputs).sum().backward()

    return step


def gelu(T: Any, engine: str) -> Step:
    """GELU of 1024x3072, and its gradient."""
    x = T.randn(1024, 3072, requires_grad=True)
    return forward_backward(T, T.nn.functional.gelu, x)


def layer_norm(T: Any, engine: str) -> Step:
    """LayerNorm of 1024x768, and its gradients."""
    x = T.randn(1024, 768, requires_grad=True)
    w, b = T.ones(768, requires_grad=True), T.zeros(768, requires_grad=True)
    F = T.nn.functional
    return forward_backward(T, lambda x, w, b: F.layer_norm(x, (768,), w, b), x, w, b)


def cross_entropy(T: Any, engine: str) -> Step:
    """Softmax and cross-entropy of 256 rows of 50,304, and the gradient."""
    x = T.randn(256, 50304, requires_grad=True)
    y = T.randint(0, 50257, (256,))
    F = T.nn.functional
    return forward_backward(T, lambda x: F.cross_entropy(x, y), x)


def bn_silu(T: Any, engine: str) -> Step:
    """Batch normalisation and SiLU of 4x96x80x80, and the gradients."""
    T.manual_seed(0)
    x = T.randn(4, 96, 80, 80)
    if engine != "numbat":
        x = x.contiguous(memory_format=T.channels_last)
    x.requires_grad_()
    norm = T.nn.BatchNorm2d(96, eps=1e-3, momentum=0.03)
    F = T.nn.functional
    return forward_backward(T, lambda x: F.silu(norm(x)), x)


def attention(T: Any, engine: str) -> Step:
    """Causal attention of 1x12x1024x64, and the gradients."""
    q, k, v = (T.randn(1, 12, 1024, 64, requires_grad=True) for _ in range(3))
    F = T.nn.functional
    return forward_backward(
        T, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v
    )


def adamw(T: Any, engine: str) -> Step:
    """AdamW over 50 million numbers in 148 tensors."""
    T.manual_seed(0)
    parameters = [T.nn.Parameter(T.randn(338_000)) for _ in range(148)]
    for one in parameters:
        one.grad = T.randn(338_000)
    return T.optim.AdamW(parameters, lr=1e-4).step  # type: ignore[no-any-return]


SCENES: dict[str, Scene] = {
    "add64": Scene(one_add, 40),
    "matmul64": Scene(one_matmul, 40),
    "mlp64": Scene(mlp64, 40),
    "gelu": Scene(gelu, 20),
    "layer_norm": Scene(layer_norm, 20),
    "cross_entropy": Scene(cross_entropy, 10),
    "bn_silu": Scene(bn_silu, 15),
    "attention": Scene(attention, 10),
    "adamw": Scene(adamw, 10),
    "unet3d_64": Scene(models.unet3d, 5, warm=1),
    "yolov8m_320": Scene(models.yolov8m_320, 7, warm=1),
    "yolov8m_640": Scene(models.yolov8m_640, 4, warm=1),
    "gpt2_b4_t256": Scene(models.gpt2_b4_t256, 5, warm=1, peers=("torch", "torch.compile")),
    "gpt2_b1_t1024": Scene(models.gpt2_b1_t1024, 5, warm=1),
    "gpt2_b4_t256_avx2": Scene(
        models.gpt2_b4_t256, 5, warm=1, settings={"OPENBLAS_CORETYPE": "Haswell"}
    ),
}
