"""The models of the zoo: sizes, names, first values, results."""

from __future__ import annotations

import math

import numpy as np
import pytest

import numbat as nb
from numbat import nn, zoo
from numbat_registries import Refusal


def parameters(model: nn.Module) -> int:
    return sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize(("size", "count"), [("n", 3_157_200), ("s", 11_166_560)])
def test_yolov8_has_the_published_sizes(size: str, count: int) -> None:
    assert parameters(zoo.YOLOv8(size)) == count


def test_yolov8m_layer_by_layer() -> None:
    model = zoo.YOLOv8("m")
    assert parameters(model) == 25_902_640
    wanted = {
        0: 1_392, 1: 41_664, 2: 111_360, 3: 166_272, 4: 813_312, 5: 664_320, 6: 3_248_640,
        7: 1_991_808, 8: 3_985_920, 9: 831_168, 12: 1_993_728, 15: 517_632, 16: 332_160,
        18: 1_846_272, 19: 1_327_872, 21: 4_207_104, 22: 3_822_016,
    }  # fmt: skip
    assert {at: parameters(model.model[at]) for at in wanted} == wanted
    assert sum(one.numel() for one in model.parameters() if one.requires_grad) == 25_902_624
    head = model.model[-1]
    biases = [branch[-1].bias.array[0] for branch in head.cv3]
    np.testing.assert_allclose(biases, [-11.537, -10.150, -8.764], atol=1e-3)


def test_yolov8_gives_boxes_for_every_anchor() -> None:
    model = zoo.YOLOv8("n", classes=3)
    x = nb.zeros(1, 3, 64, 96)
    levels = model(x)
    assert [one.shape for one in levels] == [
        (1, 67, 8, 12), (1, 67, 4, 6), (1, 67, 2, 3),
    ]  # fmt: skip
    boxes, _ = model.eval()(x)
    assert boxes.shape == (1, 7, 96 + 24 + 6)
    with pytest.raises(Refusal, match="CORE-0609"):
        model(nb.zeros(1, 3, 60, 96))
    with pytest.raises(Refusal, match="CORE-0608"):
        zoo.YOLOv8("q")


def test_yolov8_decodes_distances_to_pixels() -> None:
    model = zoo.YOLOv8("n", classes=2)
    head = model.model[-1]
    level = np.full((1, 66, 1, 1), -30.0, np.float32)
    for side, distance in enumerate((1, 2, 3, 4)):
        level[0, side * 16 + distance] = 30.0
    level[0, 64] = 0.0
    empty = np.zeros((1, 66, 0, 0), np.float32)
    boxes = head.decoded([nb.from_numpy(level), nb.from_numpy(empty), nb.from_numpy(empty)])
    # The cell's centre (4, 4) in pixels, the sides 8, 16, 24 and 32 pixels away.
    np.testing.assert_allclose(boxes.array[0, :, 0], [12, 12, 32, 48, 0.5, 0], atol=1e-4)


def test_gpt2_has_the_public_names_and_sizes() -> None:
    config = zoo.GPT2Config(context=8, vocabulary=50257, padded_vocabulary=50304, layers=2)
    model = zoo.GPT2(config)
    block = 12 * 768 * 768 + 13 * 768
    assert parameters(model) == 50304 * 768 + 8 * 768 + 2 * block + 2 * 768
    assert model.lm_head.weight is model.transformer["wte"].weight
    names = [name for name, _ in model.named_parameters()]
    assert names[:3] == ["transformer.wte.weight", "transformer.wpe.weight",
                         "transformer.h.0.ln_1.weight"]  # fmt: skip
    assert "transformer.h.1.mlp.c_proj.bias" in names
    weights = model.transformer["h"][0]
    assert weights.attn.c_attn.weight.array.std() == pytest.approx(0.02, rel=0.01)
    assert weights.mlp.c_proj.weight.array.std() == pytest.approx(0.01, rel=0.01)
    assert not weights.mlp.c_fc.bias.array.any()


def small_gpt2() -> zoo.GPT2:
    return zoo.GPT2(
        zoo.GPT2Config(context=8, vocabulary=20, padded_vocabulary=32, layers=2, heads=2, width=16)
    )


def test_gpt2_sees_no_later_token_and_begins_at_chance() -> None:
    nb.manual_seed(0)
    model = small_gpt2()
    tokens = np.random.default_rng(0).integers(0, 20, (2, 8))
    changed = tokens.copy()
    changed[:, -1] = 0
    features = model.features(nb.tensor(tokens)).array
    other = model.features(nb.tensor(changed)).array
    np.testing.assert_allclose(features[:, :-1], other[:, :-1], atol=1e-6)
    logits, nothing = model(nb.tensor(tokens))
    assert logits.shape == (2, 1, 32)
    assert nothing is None
    loss = model(nb.tensor(tokens), nb.tensor((tokens + 1) % 20))[1]
    assert loss.item() == pytest.approx(math.log(32), abs=0.1)
    with pytest.raises(Refusal, match="CORE-0609"):
        model(nb.zeros(1, 9, dtype=nb.int64))


def test_gpt2_loads_a_public_checkpoint() -> None:
    model, other = small_gpt2(), small_gpt2()
    state = {}
    for name, one in model.state_dict().items():
        array = one.array
        if name.endswith(("c_attn.weight", "c_fc.weight", "c_proj.weight")):
            array = array.T
        if name == "transformer.wte.weight":
            array = array[:20]
        state[name.removeprefix("transformer.")] = array
    del state["lm_head.weight"]
    state["h.0.attn.bias"] = np.tril(np.ones((8, 8)))
    other.load_public(state)
    tokens = nb.tensor([[1, 2, 3]])
    np.testing.assert_allclose(
        other.features(tokens).array, model.features(tokens).array, atol=1e-6
    )


def test_resnets_have_the_published_sizes() -> None:
    assert parameters(zoo.resnet18()) == 11_689_512
    assert parameters(zoo.resnet34()) == 21_797_672
    small = zoo.ResNet((1, 1), classes=4, width=8)
    assert small(nb.zeros(2, 3, 32, 32)).shape == (2, 4)


def test_unet3d_keeps_the_extents() -> None:
    model = zoo.UNet3D(2, 3, (4, 8))
    assert model(nb.zeros(1, 2, 8, 4, 6)).shape == (1, 3, 8, 4, 6)
    with pytest.raises(Refusal, match="CORE-0609"):
        model(nb.zeros(1, 2, 7, 4, 6))
