"""The modules that torch's module database leaves out, against torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import modinfo
import pytest
import torch
from opinfo import apart, tensor_of

import numbat as nb

Shapes = tuple[tuple[int, ...], ...]

CASES: list[tuple[Callable[[Any], Any], Shapes]] = [
    (lambda nn: nn.Identity(3, unused=True), ((2, 3),)),
    (lambda nn: nn.Flatten(), ((2, 3, 4),)),
    (lambda nn: nn.Unflatten(1, (2, 3)), ((2, 6),)),
    (lambda nn: nn.LazyLinear(3), ((2, 4),)),
    (lambda nn: nn.LazyBatchNorm2d(), ((2, 3, 4, 4),)),
    (lambda nn: nn.LazyInstanceNorm1d(affine=True, track_running_stats=True), ((2, 3, 4),)),
    (lambda nn: nn.Hardsigmoid(), ((3, 4),)),
    (lambda nn: nn.RReLU(), ((3, 40),)),
    (lambda nn: nn.Dropout(0.3), ((5, 7),)),
    (lambda nn: nn.Dropout1d(0.3), ((5, 7, 2),)),
    (lambda nn: nn.Dropout2d(0.3), ((5, 7, 2, 2),)),
    (lambda nn: nn.Dropout3d(0.3), ((5, 7, 2, 2, 2),)),
    (lambda nn: nn.AlphaDropout(0.3), ((5, 7),)),
    (lambda nn: nn.FeatureAlphaDropout(0.3), ((5, 7, 2),)),
    (lambda nn: nn.CosineSimilarity(), ((3, 4), (3, 4))),
    (lambda nn: nn.PairwiseDistance(p=1.5, keepdim=True), ((3, 4), (3, 4))),
    (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), ((1, 2, 3, 4),)),
    (lambda nn: nn.UpsamplingNearest2d(size=(5, 7)), ((1, 2, 3, 4),)),
    (lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), ((1, 2, 3, 4),)),
    (lambda nn: nn.PixelShuffle(2), ((2, 8, 3, 3),)),
    (lambda nn: nn.PixelUnshuffle(2), ((2, 3, 4, 6),)),
    (lambda nn: nn.ChannelShuffle(3), ((2, 6, 3, 3),)),
    (lambda nn: nn.Unfold((2, 3), dilation=2, padding=1, stride=2), ((2, 3, 7, 8),)),
    (lambda nn: nn.Fold((4, 5), (2, 2)), ((2, 12, 12),)),
    (lambda nn: nn.GroupNorm(2, 6, affine=False), ((2, 6, 4),)),
    (lambda nn: nn.TripletMarginLoss(swap=True), ((3, 4), (3, 4), (3, 4))),
    (lambda nn: nn.TripletMarginWithDistanceLoss(margin=0.5), ((3, 4), (3, 4), (3, 4))),
    (
        lambda nn: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), 2
        ),
        ((2, 3, 8), (2, 5, 8)),
    ),
    (lambda nn: nn.Sequential(nn.Conv1d(2, 3, 2), nn.Tanh(), nn.Flatten()), ((2, 2, 5),)),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_module_is_torchs(number: int, training: bool) -> None:
    build, shapes = CASES[number]
    torch.manual_seed(0)
    theirs = build(torch.nn).double().train(training)
    mine = build(nb.nn).double().train(training)
    assert repr(mine) == repr(theirs)
    xs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    own = [tensor_of(x).requires_grad_() for x in xs]
    if hasattr(theirs, "initialize_parameters"):
        theirs.initialize_parameters(*xs)
        mine.initialize_parameters(*own)
    state = {name: tensor_of(one) for name, one in theirs.state_dict().items()}
    assert list(mine.state_dict()) == list(state)
    mine.load_state_dict(state)
    torch.manual_seed(4)
    nb.manual_seed(4)
    wanted, found = theirs(*xs), mine(*own)
    assert apart(found, wanted) == ""
    weight = torch.rand_like(wanted)
    (wanted * weight).sum().backward()
    (found * tensor_of(weight)).sum().backward()
    for one, other in zip(own, xs, strict=True):
        # torch's sixth in the slope of its hardsigmoid is one of float32.
        scale = 100 if isinstance(mine, nb.nn.Hardsigmoid) else 8
        assert apart(one.grad, other.grad, scale) == ""
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert apart(one.grad, other.grad, 8) == ""
    for name, one in theirs.state_dict().items():
        assert apart(mine.state_dict()[name], one) == ""


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_maxima_go_back_to_their_places(axes: int) -> None:
    x = torch.randn(2, 3, *(6,) * axes)
    results = []
    for nn, value in ((torch.nn, x), (nb.nn, tensor_of(x))):
        pool = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)
        results.append(getattr(nn, f"MaxUnpool{axes}d")(2)(*pool(value)))
    assert apart(results[1], results[0]) == ""


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_torchs(mode: str) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.EmbeddingBag(10, 3, mode=mode, padding_idx=2)
    nb.manual_seed(0)
    mine = nb.nn.EmbeddingBag(10, 3, mode=mode, padding_idx=2)
    assert apart(mine.weight.detach(), theirs.weight.detach()) == ""
    index, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])
    wanted = theirs(index, offsets)
    found = mine(tensor_of(index), tensor_of(offsets))
    assert apart(found, wanted) == ""
    wanted.square().sum().backward()
    (found * found).sum().backward()
    assert apart(mine.weight.grad, theirs.weight.grad) == ""


def test_adaptive_softmax_is_torchs() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 12], head_bias=True)
    nb.manual_seed(0)
    mine = nb.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 12], head_bias=True)
    assert repr(mine) == repr(theirs)
    for name, one in theirs.state_dict().items():
        assert apart(mine.state_dict()[name], one) == ""
    x, target = torch.randn(9, 16), torch.tensor([0, 4, 5, 11, 12, 19, 3, 7, 15])
    wanted, found = theirs(x, target), mine(tensor_of(x), tensor_of(target))
    assert apart(tuple(found), tuple(wanted)) == ""
    assert apart(mine.log_prob(tensor_of(x)), theirs.log_prob(x)) == ""
    assert apart(mine.predict(tensor_of(x)), theirs.predict(x)) == ""
    wanted.loss.backward()
    found.loss.backward()
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert apart(one.grad, other.grad) == ""


def test_every_public_module_of_torch_is_here_or_accounted_for() -> None:
    absent = {
        # torch counts channels twice in it, from the fourth on.
        "CrossMapLRN2d",
        "Container", "DataParallel", "LinearCrossEntropyOptions", "NLLLoss2d",
    }  # fmt: skip
    public = {
        name for name in dir(torch.nn)
        if isinstance(getattr(torch.nn, name), type) and name[0].isupper()
    }  # fmt: skip
    assert {name for name in public if not hasattr(nb.nn, name)} == absent
    assert set(modinfo.INFOS) <= set(modinfo.mapped())


def test_every_function_of_torchs_functional_is_here_or_accounted_for() -> None:
    absent = {
        "assert_int_or_pair", "boolean_dispatch", "conv_tbc", "grouped_mm", "handle_torch_function",
        "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
        "native_channel_shuffle", "scaled_grouped_mm", "scaled_mm",
    }  # fmt: skip
    public = {
        name for name in dir(torch.nn.functional)
        if name[0].islower() and callable(getattr(torch.nn.functional, name))
    }  # fmt: skip
    assert {name for name in public if not hasattr(nb.nn.functional, name)} == absent
