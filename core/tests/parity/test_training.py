"""Twenty training steps of five kinds of model against torch's, from the same weights and data.

In float64 the losses agree to twelve digits, which rounding cannot hide a fault behind; in float32
each model has its bound, twenty times and more what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import twins
from opinfo import tensor_of

import numbat as nb
from numbat import zoo

STEPS = 20
EXACT = 1e-12


class Scene(NamedTuple):
    """A pair of models, their data, their loss and their optimiser."""

    mine: Any
    theirs: Any
    data: list[np.ndarray[Any, Any]]
    loss: Callable[..., Any]
    optimiser: Callable[[Any, Any], Any]
    bound: float


def _mlp(rng: np.random.Generator) -> Scene:
    def loss(engine: Any, model: Any, x: Any, y: Any) -> Any:
        return engine.nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)

    return Scene(
        twins.mlp(nb.nn), twins.mlp(torch.nn),
        [rng.normal(size=(STEPS, 16, 12)), rng.integers(0, 5, (STEPS, 16))], loss,
        lambda engine, values: engine.optim.SGD(values, lr=0.1, momentum=0.9, nesterov=True,
                                                weight_decay=1e-4),
        2e-6,
    )  # fmt: skip


def _resnet(rng: np.random.Generator) -> Scene:
    def loss(engine: Any, model: Any, x: Any, y: Any) -> Any:
        return engine.nn.functional.cross_entropy(model(x), y)

    return Scene(
        zoo.ResNet((1, 1), 5, 3, 8), twins.ResNet((1, 1), 5, 3, 8),
        [rng.normal(size=(STEPS, 4, 3, 32, 32)), rng.integers(0, 5, (STEPS, 4))], loss,
        lambda engine, values: engine.optim.SGD(values, lr=0.02, momentum=0.9, weight_decay=1e-4),
        1e-5,
    )  # fmt: skip


def _unet(rng: np.random.Generator) -> Scene:
    def loss(engine: Any, model: Any, x: Any, y: Any) -> Any:
        return twins.segmentation_loss(engine, model(x), y)

    return Scene(
        zoo.UNet3D(1, 3, (4, 8, 16)), twins.UNet3D(1, 3, (4, 8, 16)),
        [rng.normal(size=(STEPS, 1, 1, 16, 16, 16)), rng.integers(0, 3, (STEPS, 1, 16, 16, 16))],
        loss, lambda engine, values: engine.optim.Adam(values, lr=1e-3), 1e-4,
    )  # fmt: skip


def _gpt2(rng: np.random.Generator) -> Scene:
    config = zoo.GPT2Config(
        context=16, vocabulary=60, padded_vocabulary=64, layers=2, heads=4, width=32
    )

    def loss(engine: Any, model: Any, x: Any, y: Any) -> Any:
        return model(x, y)[1]

    return Scene(
        zoo.GPT2(config), twins.GPT2(config),
        [rng.integers(0, 60, (STEPS, 4, 16)), rng.integers(-1, 60, (STEPS, 4, 16))], loss,
        lambda engine, values: engine.optim.AdamW(values, lr=1e-3, betas=(0.9, 0.95),
                                                  weight_decay=0.1),
        5e-6,
    )  # fmt: skip


def _detector(rng: np.random.Generator) -> Scene:
    anchors = 8 * 8 + 4 * 4 + 2 * 2

    def loss(engine: Any, model: Any, x: Any, boxes: Any, kinds: Any, positive: Any) -> Any:
        return twins.detection_loss(engine, model(x), boxes, kinds, positive)

    return Scene(
        twins.OwnDetector(), twins.Detector(),
        [
            rng.normal(size=(STEPS, 2, 3, 64, 64)), rng.uniform(0.5, 14.5, (STEPS, 2, anchors, 4)),
            (rng.random((STEPS, 2, anchors, 4)) < 0.1).astype(float),
            rng.random((STEPS, 2, anchors)) < 0.2,
        ],
        loss,
        lambda engine, values: engine.optim.SGD(values, lr=0.01, momentum=0.937, nesterov=True),
        1e-5,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _torch_on_one_thread() -> Iterator[None]:
    """The models are so small that torch's threads only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SCENES = {
    "mlp": _mlp, "resnet": _resnet, "unet3d": _unet, "gpt2": _gpt2, "detector": _detector,
}  # fmt: skip


def _losses(engine: Any, model: Any, scene: Scene, dtype: str) -> list[float]:
    """The loss of every step."""
    wanted = getattr(engine, dtype)
    model.to(wanted)
    optimiser = scene.optimiser(engine, [one for one in model.parameters() if one.requires_grad])
    engine.manual_seed(7)
    found = []
    for step in range(STEPS):
        given = [engine.tensor(one[step]) for one in scene.data]
        given = [one.to(wanted) if one.is_floating_point() else one for one in given]
        optimiser.zero_grad()
        loss = scene.loss(engine, model, *given)
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SCENES)
def test_losses_follow_torchs(name: str, dtype: str) -> None:
    torch.manual_seed(1)
    scene = SCENES[name](np.random.default_rng(2))
    state = {key: tensor_of(one) for key, one in scene.theirs.state_dict().items()}
    assert list(scene.mine.state_dict()) == list(state)
    scene.mine.load_state_dict(state)
    wanted = _losses(torch, scene.theirs, scene, dtype)
    found = _losses(nb, scene.mine, scene, dtype)
    bound = EXACT if dtype == "float64" else scene.bound
    apart = np.abs(np.array(found) - wanted) / np.abs(wanted)
    print(f"{name} {dtype}: losses {wanted[0]:.4f} to {wanted[-1]:.4f}, apart by {apart.max():.1e}")
    assert wanted[-1] < wanted[0] or name != "gpt2"
    np.testing.assert_array_less(apart, bound)
