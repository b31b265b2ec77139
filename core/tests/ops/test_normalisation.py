"""Normalisation and distances: moments of results, running statistics, known values, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import numbat as nb
from numbat_registries import Refusal


def drawn(*shape: int, seed: int = 0) -> nb.Tensor:
    return nb.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 3 + 2)


@pytest.mark.parametrize(
    ("call", "axes"),
    [
        (lambda x: nb.batch_norm(x, None, None, training=True), (0, 2)),
        (lambda x: nb.instance_norm(x), (2,)),
        (lambda x: nb.group_norm(x, 1), (1, 2)),
        (lambda x: nb.layer_norm(x, (50,)), (2,)),
        (lambda x: nb.layer_norm(x, (4, 50)), (1, 2)),
    ],
)
def test_results_have_mean_zero_and_variance_one(call: Any, axes: tuple[int, ...]) -> None:
    y = call(drawn(6, 4, 50)).array
    np.testing.assert_allclose(y.mean(axis=axes), 0, atol=1e-5)
    np.testing.assert_allclose(y.var(axis=axes), 1, atol=1e-3)


def test_rms_norm_has_root_mean_square_one() -> None:
    y = nb.rms_norm(drawn(5, 60), 60, nb.full((60,), 2.0)).array
    np.testing.assert_allclose((y * y).mean(axis=1), 4, rtol=1e-5)


def test_running_statistics() -> None:
    x = nb.tensor([[1.0], [3.0]])
    mean, variance = nb.zeros(1), nb.ones(1)
    before = mean._version
    nb.batch_norm(x, mean, variance, training=True, momentum=0.25)
    assert (mean.item(), variance.item()) == (0.5, 0.75 + 0.25 * 2)  # the unbiased variance is 2
    assert mean._version == before + 1
    nb.batch_norm(x, mean, variance, training=True, momentum=None)
    assert mean.item() == 0.5
    found = nb.batch_norm(x, mean, variance, eps=0.0).array.reshape(-1)
    np.testing.assert_allclose(found, [0.5 / math.sqrt(1.25), 2.5 / math.sqrt(1.25)], rtol=1e-6)


def test_local_response_norm_by_hand() -> None:
    x = nb.tensor([[[1.0], [2.0], [3.0]]])
    found = nb.local_response_norm(x, 2, alpha=2.0, beta=1.0, k=1.0).array.reshape(-1)
    np.testing.assert_allclose(found, [1 / 2, 2 / 6, 3 / 14], rtol=1e-6)


def test_normalize_and_distances() -> None:
    x = nb.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    y = nb.normalize(x)
    np.testing.assert_allclose(y.array, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    y.sum().backward()
    assert x.grad is not None
    assert np.isfinite(x.grad.array[0]).all()
    a, b = nb.tensor([[0.0, 0.0], [3.0, 4.0]]), nb.tensor([[0.0, 0.0]])
    assert nb.cdist(a, b).tolist() == [[0.0], [5.0]]
    assert nb.cdist(a, b, 1.0).tolist() == [[0.0], [7.0]]
    assert nb.cdist(a, b, math.inf).tolist() == [[0.0], [4.0]]
    assert nb.pdist(a).tolist() == [5.0]
    np.testing.assert_allclose(nb.pairwise_distance(a, b).array, [0, 5], atol=1e-5)
    np.testing.assert_allclose(nb.cosine_similarity(a + 1, a + 1).array, [1, 1], rtol=1e-6)


REFUSED = [
    ("CORE-0433", lambda: nb.batch_norm(nb.ones(2, 3), None, None, nb.ones(2), training=True)),
    ("CORE-0434", lambda: nb.batch_norm(nb.ones(1, 3), None, None, training=True)),
    ("CORE-0434", lambda: nb.batch_norm(nb.ones(2, 3), None, None)),
    ("CORE-0434", lambda: nb.instance_norm(nb.ones(2, 3, 1))),
    ("CORE-0434", lambda: nb.local_response_norm(nb.ones(2), 2)),
    ("CORE-0433", lambda: nb.group_norm(nb.ones(2, 3, 4), 2)),
    ("CORE-0433", lambda: nb.layer_norm(nb.ones(2, 3), 2)),
    ("CORE-0433", lambda: nb.rms_norm(nb.ones(2, 3), 3, nb.ones(2))),
    ("CORE-0433", lambda: nb.cdist(nb.ones(2, 3), nb.ones(2, 2))),
    ("CORE-0431", lambda: nb.cdist(nb.ones(2, 3), nb.ones(2, 3), -1.0)),
    ("CORE-0433", lambda: nb.pdist(nb.ones(2))),
]


@pytest.mark.parametrize(("code", "call"), REFUSED)
def test_refusals(code: str, call: Any) -> None:
    with pytest.raises(Refusal) as caught:
        call()
    assert caught.value.code == code
