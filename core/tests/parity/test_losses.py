"""Losses against torch: its own sample inputs, options that those leave out, and CTC."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opinfo import compare, tensor_of, to_torch

import numbat as nb

NAMES = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_torchs_samples(name: str) -> None:
    tally = compare(name, dtypes=(torch.float32, torch.float64), limit=120, scale=2)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared
    assert tally.gradients


@pytest.mark.parametrize("name", NAMES)
def test_half_types(name: str) -> None:
    # torch's soft margin overflows in float16, in an exponential that it need not take.
    dtypes = (torch.bfloat16,) if name == "soft_margin_loss" else (torch.bfloat16, torch.float16)
    tally = compare(name, dtypes=dtypes, limit=30, scale=6)
    assert not tally.faults, tally.faults[:3]


def both(function: str, *args: Any, **options: Any) -> None:
    """Values and gradients of the floating arguments that want them."""
    theirs = [one.clone().requires_grad_(one.is_floating_point()) for one in args]
    mine = [tensor_of(one) for one in args]
    for one in mine:
        one.requires_grad = one.dtype.is_floating_point
    turned = {
        key: tensor_of(one) if isinstance(one, torch.Tensor) else one
        for key, one in options.items()
    }
    expected = getattr(torch.nn.functional, function)(*theirs, **options)
    found = getattr(nb, function)(*mine, **turned)
    torch.testing.assert_close(
        to_torch(found), expected.detach(), rtol=1e-5, atol=1e-5, equal_nan=True
    )
    grad = torch.rand_like(expected)
    expected.backward(grad)
    found.backward(tensor_of(grad))
    for one, other in zip(mine, theirs, strict=True):
        if other.grad is not None:
            torch.testing.assert_close(
                to_torch(one.grad), other.grad, rtol=1e-4, atol=1e-5, equal_nan=True
            )


@pytest.mark.parametrize("shape", [(6, 5), (3, 5, 4), (2, 5, 3, 4), (5,)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(
    shape: tuple[int, ...], reduction: str, smoothing: float, weighted: bool
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    outer = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = torch.randint(0, 5, outer)
    if target.ndim:
        target.view(-1)[0] = 3
        ignored = target.clone()
        ignored.view(-1)[1] = 2
        target = ignored
    options = {
        "reduction": reduction,
        "label_smoothing": smoothing,
        "ignore_index": 2 if target.ndim else -100,
    }
    if weighted:
        options["weight"] = torch.rand(5) + 0.5
    both("cross_entropy", x, target, **options)
    options.pop("ignore_index")
    both("cross_entropy", x, torch.rand(shape).softmax(0), **options)


def test_cross_entropy_of_nothing_is_nan() -> None:
    both("cross_entropy", torch.randn(2, 3), torch.tensor([-100, -100]))
    both("nll_loss", torch.randn(2, 3), torch.tensor([-100, -100]))
    both("cross_entropy", torch.randn(2, 3), torch.tensor([-100, -100]), reduction="sum")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_weights_of_classes_and_of_positives(reduction: str) -> None:
    x, target = torch.randn(4, 3), torch.rand(4, 3)
    both(
        "binary_cross_entropy_with_logits",
        x,
        target,
        pos_weight=torch.rand(3) + 1,
        reduction=reduction,
    )
    both(
        "binary_cross_entropy", torch.rand(4, 3), target, weight=torch.rand(3), reduction=reduction
    )
    both(
        "multi_margin_loss",
        x,
        torch.tensor([0, 2, 1, 1]),
        weight=torch.rand(3),
        p=2,
        reduction=reduction,
    )
    both("mse_loss", x, target, weight=torch.rand(4, 3), reduction=reduction)
    both("l1_loss", x, target, weight=torch.rand(4, 3), reduction=reduction)
    both("huber_loss", x, target, weight=torch.rand(4, 3), reduction=reduction)


def test_triplets_with_a_distance_of_ones_own() -> None:
    three = [torch.randn(4, 3) for _ in range(3)]
    both("triplet_margin_with_distance_loss", *three, swap=True)
    own = lambda x, y: (x - y).abs().sum(-1)  # noqa: E731
    both("triplet_margin_with_distance_loss", *three, distance_function=own, margin=2.0)


def test_logarithms_of_zero_are_held() -> None:
    both(
        "binary_cross_entropy",
        torch.tensor([0.0, 1.0, 0.0, 1.0]),
        torch.tensor([0.0, 1.0, 1.0, 0.0]),
    )


def test_focal_loss_is_torchvisions_formula() -> None:
    x, t = torch.randn(5, 4), torch.randint(0, 2, (5, 4)).float()
    p = torch.sigmoid(x)
    ce = torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    right = p * t + (1 - p) * (1 - t)
    expected = (0.25 * t + 0.75 * (1 - t)) * ce * (1 - right) ** 2
    torch.testing.assert_close(
        to_torch(nb.sigmoid_focal_loss(tensor_of(x), tensor_of(t))), expected
    )


def test_ctc_values_over_torchs_samples() -> None:
    tally = compare("ctc_loss", dtypes=(torch.float32, torch.float64), gradients=False)
    assert not tally.faults, tally.faults[:3]
    assert tally.compared


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_ctc_through_log_softmax(reduction: str, zero_infinity: bool, flat: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 4, 6, dtype=torch.float64)
    targets = torch.tensor([[1, 1, 2, 2], [3, 4, 5, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
    inputs, lengths = torch.tensor([9, 7, 5, 3]), torch.tensor([4, 4, 1, 0])
    if zero_infinity:
        inputs[0] = 5  # two repeats need six steps: no alignment
    if flat:
        targets = torch.cat([row[:length] for row, length in zip(targets, lengths, strict=True)])
    theirs, mine = x.clone().requires_grad_(), tensor_of(x)
    mine.requires_grad = True
    options = {"reduction": reduction, "zero_infinity": zero_infinity}
    expected = torch.nn.functional.ctc_loss(
        theirs.log_softmax(2), targets, inputs, lengths, **options
    )
    found = nb.ctc_loss(
        nb.log_softmax(mine, 2),
        tensor_of(targets),
        tensor_of(inputs),
        tensor_of(lengths),
        **options,
    )
    torch.testing.assert_close(to_torch(found), expected.detach())
    expected.sum().backward()
    found.sum().backward()
    torch.testing.assert_close(to_torch(mine.grad), theirs.grad)


def test_ctc_without_an_alignment_is_infinite() -> None:
    x = torch.randn(2, 1, 4).log_softmax(2)
    given = (torch.tensor([[1, 1]]), torch.tensor([2]), torch.tensor([2]))
    expected = torch.nn.functional.ctc_loss(x, *given, reduction="none")
    found = nb.ctc_loss(tensor_of(x), *[tensor_of(one) for one in given], reduction="none")
    assert torch.equal(to_torch(found), expected)
