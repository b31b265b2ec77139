"""Losses: values by hand, CTC against all alignments, reductions, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat_registries import Refusal

X, T = nb.tensor([0.0, 3.0], dtype=nb.float64), nb.tensor([0.5, 1.0], dtype=nb.float64)
SIGNS = nb.tensor([1, -1])
BY_HAND = [
    (nb.mse_loss, (X, T), [0.25, 4.0]),
    (nb.l1_loss, (X, T), [0.5, 2.0]),
    (nb.smooth_l1_loss, (X, T), [0.125, 1.5]),
    (nb.huber_loss, (X, T), [0.125, 1.5]),
    (nb.soft_margin_loss, (X, SIGNS), [math.log(2), math.log1p(math.exp(3))]),
    (nb.hinge_embedding_loss, (X, SIGNS), [0.0, 0.0]),
    (nb.margin_ranking_loss, (X, T, SIGNS), [0.5, 2.0]),
    (nb.poisson_nll_loss, (X, T), [1.0, math.exp(3) - 3]),
    (nb.gaussian_nll_loss, (X, T, 4.0), [0.5 * (math.log(4) + 0.0625), 0.5 * (math.log(4) + 1)]),
    (nb.binary_cross_entropy_with_logits, (X, T), [math.log(2), math.log1p(math.exp(-3))]),
    (nb.binary_cross_entropy, (T, T), [math.log(2), 0.0]),
    (nb.kl_div, (X, T), [0.5 * math.log(0.5), -3.0]),
    (nb.sigmoid_focal_loss, (X, T), [0.5 * math.log(2) * 0.25, 0.25 * math.log1p(math.exp(-3))
                                     * (1 / (1 + math.exp(3))) ** 2]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "given", "expected"), BY_HAND, ids=[one[0].__name__ for one in BY_HAND]
)
def test_by_hand_and_reduced(loss: Any, given: tuple, expected: list[float]) -> None:
    whole = loss(*given, reduction="none")
    np.testing.assert_allclose(whole.array, expected, rtol=1e-9, atol=1e-12)
    assert loss(*given, reduction="sum").item() == pytest.approx(sum(expected), rel=1e-9)
    assert loss(*given, reduction="mean").item() == pytest.approx(sum(expected) / 2, rel=1e-9)
    with pytest.raises(Refusal) as caught:
        loss(*given, reduction="median")
    assert caught.value.code == "CORE-0430"


@pytest.mark.parametrize("dtype", [nb.float32, nb.float64])
def test_cross_entropy_is_nll_of_log_softmax(dtype: nb.dtype) -> None:
    x = nb.tensor(np.random.default_rng(0).normal(size=(5, 4, 3)), dtype=dtype).requires_grad_()
    target = nb.tensor(np.random.default_rng(1).integers(0, 4, (5, 3)))
    weight = nb.tensor([1.0, 2.0, 0.5, 1.5], dtype=dtype)
    one = nb.cross_entropy(x, target, weight, ignore_index=2)
    other = nb.nll_loss(nb.log_softmax(x, 1), target, weight, ignore_index=2)
    np.testing.assert_allclose(one.array, other.array, rtol=1e-6)
    for mine, theirs in zip(nb.autograd.grad(one, x), nb.autograd.grad(other, x), strict=True):
        assert mine is not None
        assert theirs is not None
        np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-5, atol=1e-7)


def test_smoothing_is_a_mixture_of_targets() -> None:
    x = nb.tensor(np.random.default_rng(0).normal(size=(4, 3)))
    target = nb.tensor([0, 2, 1, 1])
    mixed = nb.one_hot(target, 3).to(nb.float64) * 0.7 + 0.1
    found = nb.cross_entropy(x, target, label_smoothing=0.3)
    np.testing.assert_allclose(found.array, nb.cross_entropy(x, mixed).array, rtol=1e-9)


def test_dice() -> None:
    x = nb.tensor([[[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]])
    t = nb.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])
    np.testing.assert_allclose(
        nb.dice_loss(x, t, reduction="none").array, [[1 - 3 / 5, 0]], atol=1e-7
    )


def test_margins_of_classes() -> None:
    x, target = nb.tensor([[0.1, 0.4, 0.2]]), nb.tensor([1])
    assert nb.multi_margin_loss(x, target).item() == pytest.approx((0.7 + 0.8) / 3)
    several = nb.tensor([[1, -1, 0]])
    assert nb.multilabel_margin_loss(x, several).item() == pytest.approx((0.7 + 0.8) / 3)


def test_triplets_and_cosines() -> None:
    a, p, n = (nb.tensor([[value, 0.0]]) for value in (0.0, 1.0, 3.0))
    assert nb.triplet_margin_loss(a, p, n, margin=2.5).item() == pytest.approx(0.5, abs=1e-5)
    assert nb.triplet_margin_loss(a, p, n, margin=2.5, swap=True).item() == pytest.approx(
        1.5, abs=1e-5
    )
    x, y = nb.tensor([[1.0, 0.0], [1.0, 1.0]]), nb.tensor([[0.0, 2.0], [2.0, 2.0]])
    found = nb.cosine_embedding_loss(x, y, SIGNS, reduction="none", margin=0.25)
    np.testing.assert_allclose(found.array, [1.0, 0.75], atol=1e-6)


def collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    return [one for one, _ in itertools.groupby(path) if one != blank]


@pytest.mark.parametrize("target", [[1, 1], [2, 1], [2], []])
def test_ctc_sums_every_alignment(target: list[int]) -> None:
    x = np.random.default_rng(3).normal(size=(4, 1, 3))
    probs = np.exp(x) / np.exp(x).sum(axis=2, keepdims=True)
    total = sum(
        math.prod(probs[step, 0, one] for step, one in enumerate(path))
        for path in itertools.product(range(3), repeat=4)
        if collapsed(path, 0) == target
    )
    rows = nb.tensor(np.array([target or [0]]))
    found = nb.ctc_loss(nb.tensor(np.log(probs)), rows, (4,), (len(target),), reduction="sum")
    assert found.item() == pytest.approx(-math.log(total))


REFUSED = [
    ("CORE-0437", lambda: nb.cross_entropy(nb.ones(2, 3), nb.ones(2))),
    ("CORE-0240", lambda: nb.cross_entropy(nb.ones(2, 3), nb.tensor([0, 3]))),
    ("CORE-0431", lambda: nb.cross_entropy(nb.ones(2, 3), nb.tensor([0, 1]), label_smoothing=2.0)),
    ("CORE-0433", lambda: nb.nll_loss(nb.ones(2, 3), nb.tensor([0, 1]), nb.ones(2))),
    ("CORE-0438", lambda: nb.binary_cross_entropy(nb.ones(2) * 2, nb.ones(2))),
    ("CORE-0433", lambda: nb.binary_cross_entropy(nb.ones(2) / 2, nb.ones(3))),
    ("CORE-0431", lambda: nb.huber_loss(X, T, delta=0.0)),
    ("CORE-0431", lambda: nb.smooth_l1_loss(X, T, beta=-1.0)),
    ("CORE-0431", lambda: nb.gaussian_nll_loss(X, T, -1.0)),
    ("CORE-0431", lambda: nb.triplet_margin_loss(X, X, T, margin=0.0)),
    ("CORE-0431", lambda: nb.multi_margin_loss(nb.ones(2, 3), nb.tensor([0, 1]), p=3)),
    ("CORE-0433", lambda: nb.dice_loss(X, T)),
    ("CORE-0201", lambda: nb.mse_loss(nb.ones(2), nb.ones(3))),
    ("CORE-0437", lambda: nb.ctc_loss(nb.ones(3, 1, 2), nb.tensor([[1]]), (4,), (1,))),
    ("CORE-0240", lambda: nb.ctc_loss(nb.ones(3, 1, 2), nb.tensor([[5]]), (3,), (1,))),
]


@pytest.mark.parametrize(("code", "call"), REFUSED)
def test_refusals(code: str, call: Any) -> None:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.code == code


def test_no_second_derivative_is_refused() -> None:
    x = nb.ones(2, 3, requires_grad=True)
    loss = nb.linear_cross_entropy(x, nb.ones(4, 3), nb.tensor([0, 1]))
    with pytest.raises(Refusal) as caught:
        nb.autograd.grad(loss, x, create_graph=True)
    assert caught.value.code == "CORE-0312"
