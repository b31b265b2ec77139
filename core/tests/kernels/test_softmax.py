"""The softmax and cross-entropy kernels against their numpy references in float64."""

from __future__ import annotations

import numpy as np
import pytest

from numbat.kernels import softmax as kernels
from numbat.kernels.pool import get_num_threads, set_num_threads

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SHAPES = [(1, 1), (3, 31), (5, 32), (2, 33), (7, 1000), (40, 777)]


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * 5).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_their_references(shape: tuple[int, ...], axis: int) -> None:
    x, grad = drawn(shape), drawn(shape, 1)
    exact, grad64 = x.astype(float), grad.astype(float)
    y, log_y = kernels.softmax(x, axis), kernels.log_softmax(x, axis)
    np.testing.assert_allclose(y, kernels.softmax_reference(exact, axis), 5e-6, 1e-30)
    np.testing.assert_allclose(log_y, kernels.log_softmax_reference(exact, axis), 2e-6, 2e-6)
    found = kernels.softmax_backward(grad, y, axis)
    np.testing.assert_allclose(
        found, kernels.softmax_backward_reference(grad64, y.astype(float), axis), 1e-5, 3e-6
    )
    found = kernels.log_softmax_backward(grad, log_y, axis)
    np.testing.assert_allclose(
        found, kernels.log_softmax_backward_reference(grad64, log_y.astype(float), axis), 1e-5, 1e-5
    )


def test_strides_and_special_values() -> None:
    wide = drawn((6, 40))
    for x in (wide[:, ::2], wide.T, wide[::-1, ::-1], np.broadcast_to(wide[0], (3, 40))):
        np.testing.assert_allclose(
            kernels.softmax(x, 1), kernels.softmax_reference(x.astype(float), 1), 5e-6, 1e-30
        )
    for bad in (np.nan, np.inf, -np.inf):
        x = drawn((3, 70))
        x[1, 65] = bad
        np.testing.assert_allclose(
            kernels.softmax(x, 1), kernels.softmax_reference(x.astype(float), 1), 5e-6, 1e-30
        )
    assert kernels.softmax(np.zeros((0, 3), np.float32), 1).shape == (0, 3)
    assert kernels.softmax(np.zeros((3, 0), np.float32), 1).shape == (3, 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_is_its_reference(
    shape: tuple[int, int], smoothing: float, weighted: bool
) -> None:
    rng = np.random.default_rng(3)
    x, scale = drawn(shape), drawn(shape[:1], 2)
    target = rng.integers(0, shape[1], shape[0])
    target[::3] = -100
    weight = rng.uniform(0.5, 2, shape[1]).astype(np.float32) if weighted else None
    loss, log_sum = kernels.cross_entropy(x, target, weight, -100, smoothing)
    exact = kernels.cross_entropy_reference(x.astype(float), target, weight, -100, smoothing)
    np.testing.assert_allclose(loss, exact[0], 1e-5, 1e-5)
    np.testing.assert_allclose(log_sum, exact[1], 1e-6, 1e-6)
    expected = kernels.cross_entropy_backward_reference(
        scale.astype(float), x.astype(float), target, weight, exact[1], -100, smoothing
    )
    found = kernels.cross_entropy_backward(scale, x, target, weight, log_sum, -100, smoothing)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
    over = x.copy()
    kernels.cross_entropy_backward(scale, over, target, weight, log_sum, -100, smoothing, over)
    assert over.tobytes() == found.tobytes()


def test_threads_change_no_bit() -> None:
    x, before, found = drawn((300, 400)), get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.append((kernels.softmax(x, 1).tobytes(), kernels.log_softmax(x, 1).tobytes()))
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]
