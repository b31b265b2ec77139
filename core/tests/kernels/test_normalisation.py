"""The normalisation kernels against their numpy references: layouts, odd sizes, NaN, threads."""

from __future__ import annotations

import numpy as np
import pytest

from numbat.kernels import normalisation as kernels
from numbat.kernels.pool import get_num_threads, set_num_threads

SHAPES = [(3, 1), (70, 33), (2, 5, 7), (3, 32, 9, 5), (2, 37, 3, 4, 5), (2, 3, 70, 71), (1000, 40)]


def drawn(shape: tuple[int, ...], last: bool, seed: int = 0) -> np.ndarray:
    x = (np.random.default_rng(seed).normal(size=shape) * 2 + 5).astype(np.float32)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if last else x


def per_channel(channels: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(9)
    return [rng.normal(size=channels) for _ in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("activation", ["", "silu", "gelu", "gelu_tanh"])
def test_channels_are_their_references(shape: tuple[int, ...], last: bool, activation: str) -> None:
    x, grad = drawn(shape, last), drawn(shape, not last, 1)
    exact, grad64 = x.astype(float), grad.astype(float)
    for one, other in zip(kernels.moments(x), kernels.moments_reference(exact), strict=True):
        np.testing.assert_allclose(one, other, 1e-5)
    mean, a, b, d = (one.astype(np.float32) for one in per_channel(shape[1], 4))
    found = kernels.affine(x, a, b, activation=activation)
    assert found.strides == x.strides
    np.testing.assert_allclose(
        found, kernels.affine_reference(exact, a, b, activation=activation), 1e-5, 3e-6
    )
    sums = kernels.gradient_sums(grad, x, mean, a, b, activation=activation)
    expected = kernels.gradient_sums_reference(grad64, exact, mean, a, b, activation=activation)
    np.testing.assert_allclose(sums[0], expected[0], 1e-5, 1e-5)
    scale = np.abs(grad64 * (exact - 5)).sum()
    for one, other in zip(sums[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, 1e-5, scale * 1e-6)
    np.testing.assert_allclose(
        kernels.gradient(grad, x, mean, a, b, d),
        kernels.gradient_reference(grad64, exact, mean, a, b, d), 1e-5, 1e-5,
    )  # fmt: skip


def test_large_mean_keeps_the_variance() -> None:
    for last in (False, True):
        x = drawn((4, 6, 30, 30), last) + np.float32(1000)
        found, expected = kernels.moments(x), kernels.moments_reference(x.astype(float))
        np.testing.assert_allclose(found[1], expected[1], 1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (3, 15), (5, 16), (100, 17), (33, 768), (3, 5000)])
@pytest.mark.parametrize("given", ["both", "weight", "bias", "none"])
@pytest.mark.parametrize("centred", [True, False])
def test_layer_norm_is_its_reference(shape: tuple[int, int], given: str, centred: bool) -> None:
    rng = np.random.default_rng(4)
    x, grad = drawn(shape, False), drawn(shape, False, 1)
    weight = rng.normal(size=shape[1]).astype(np.float32) if given in ("both", "weight") else None
    bias = rng.normal(size=shape[1]).astype(np.float32) if given in ("both", "bias") else None
    found = kernels.layer_norm(x, weight, bias, 1e-5, centred=centred)
    exact = kernels.layer_norm_reference(x.astype(float), weight, bias, 1e-5, centred=centred)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 2e-5)
    mean, rstd = exact[1].astype(np.float32), exact[2].astype(np.float32)
    back = kernels.layer_norm_backward(grad, x, weight, mean, rstd, centred=centred)
    wanted = kernels.layer_norm_backward_reference(
        grad.astype(float),
        x.astype(float),
        weight,
        mean.astype(float),
        rstd.astype(float),
        centred=centred,
    )
    for one, other in zip(back, wanted, strict=True):
        np.testing.assert_allclose(one, other, 2e-4, 1e-4 * max(1.0, float(np.abs(other).max())))


def test_nan_stays_in_its_channel_and_row() -> None:
    for last in (False, True):
        x = drawn((4, 40, 5, 5), last)
        x[1, 3, 2, 2] = np.nan
        mean, variance = kernels.moments(x)
        assert np.isnan(mean[3])
        assert np.isnan(variance[3])
        assert np.isnan(mean).sum() == np.isnan(variance).sum() == 1
    rows = drawn((5, 70), False)
    rows[2, 69] = np.inf
    assert np.isnan(kernels.layer_norm(rows, None, None, 1e-5)[0]).any(axis=1).tolist() == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_threads_change_no_bit() -> None:
    x, before, found = drawn((64, 40, 20, 20), True), get_num_threads(), []
    planes, rows = drawn((64, 40, 20, 20), False), drawn((999, 300), False)
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            norm = kernels.layer_norm(rows, None, None, 1e-5)
            back = kernels.layer_norm_backward(rows, rows, None, *norm[1:])
            arrays = (*kernels.moments(x), *kernels.moments(planes), *norm, *back)
            found.append([one.tobytes() for one in arrays])
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]
