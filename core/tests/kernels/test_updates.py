"""The optimiser kernels, each held to its numpy reference, to itself array by array, and over
threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numbat.kernels import updates
from numbat.kernels.pool import get_num_threads, set_num_threads

SHAPES = [(3,), (1,), (257, 513), (0, 4), (70001,), (7, 5), (65536,)]
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-13}


def drawn(kind: Any, seed: int, low: float | None = None) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=shape).astype(kind) for shape in SHAPES]
    return [abs(one) for one in arrays] if low is not None else arrays


def copies(*lists: list[np.ndarray]) -> list[list[np.ndarray]]:
    return [[one.copy() for one in each] for each in lists]


def close(ours: list[np.ndarray], theirs: list[np.ndarray], kind: Any) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


ADAM = [
    {"step": 1},
    {"step": 7, "lr": 0.1, "weight_decay": 0.1},
    {"step": 7, "lr": 0.1, "weight_decay": 0.1, "decoupled": True, "grad_scale": -0.5},
]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("options", ADAM)
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_is_its_reference(kind: Any, options: dict[str, Any], amsgrad: bool) -> None:
    state = [drawn(kind, 1), drawn(kind, 2), drawn(kind, 3), drawn(kind, 4, 0), drawn(kind, 5, 0)]
    state = state if amsgrad else state[:4]
    fused, single, plain = copies(*state), copies(*state), copies(*state)
    updates.adam(*fused, **options)
    for index in range(len(SHAPES)):
        updates.adam(*[[each[index]] for each in single], **options)
    # A strided array goes by the reference.
    wide = [[np.stack([one, one], axis=-1)[..., 0] for one in each] for each in plain]
    updates.adam(*wide, **options)
    for ours, again, theirs in zip(fused, single, wide, strict=True):
        close(ours, theirs, kind)
        for one, other in zip(ours, again, strict=True):
            assert one.tobytes() == other.tobytes()


SGD = [
    {},
    {"weight_decay": 0.1, "grad_scale": -1.0},
    {"momentum": 0.9, "first": True, "dampening": 0.5},
    {"momentum": 0.9, "weight_decay": 0.1, "dampening": 0.5},
    {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    {"momentum": 0.9, "nesterov": True, "first": True},
]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("options", SGD)
def test_sgd_is_its_reference(kind: Any, options: dict[str, Any]) -> None:
    state = [drawn(kind, 1), drawn(kind, 2), drawn(kind, 3)]
    state = state if "momentum" in options else state[:2]
    fused, plain = copies(*state), copies(*state)
    updates.sgd(*fused, lr=0.1, **options)
    wide = [[np.stack([one, one], axis=-1)[..., 0] for one in each] for each in plain]
    updates.sgd(*wide, lr=0.1, **options)
    for ours, theirs in zip(fused, wide, strict=True):
        close(ours, theirs, kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_square_sum_scale_and_lerp(kind: Any) -> None:
    x, y = drawn(kind, 1), drawn(kind, 2)
    expected = sum(updates.square_sum_reference(one) for one in x)
    assert updates.square_sum(x) == pytest.approx(expected, rel=1e-12)
    for weight in (0.1, 0.9, 0.0, 1.0):
        ours, theirs = copies(x, x)
        updates.lerp(ours, y, weight)
        for one, other in zip(theirs, y, strict=True):
            updates.lerp_reference(one, other, weight)
        close(ours, theirs, kind)
    (scaled,) = copies(x)
    updates.scale(scaled, -0.25)
    for one, other in zip(scaled, x, strict=True):
        assert (one == other * kind(-0.25)).all()


def test_what_is_not_finite_shows_in_the_square_sum() -> None:
    for bad in (np.inf, -np.inf, np.nan):
        x = drawn(np.float32, 1)
        x[2][100, 100] = bad
        assert not np.isfinite(updates.square_sum(x))
    assert np.isfinite(updates.square_sum([np.full(9, 3e38, np.float32)]))


def test_threads_change_no_bit() -> None:
    before = get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            state = [
                drawn(np.float32, 1),
                drawn(np.float32, 2),
                drawn(np.float32, 3),
                drawn(np.float32, 4, 0),
            ]
            updates.adam(*state, step=2, lr=0.1)
            found.append(
                [one.tobytes() for each in state for one in each] + [updates.square_sum(state[1])]
            )
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_half_types_are_stepped_by_the_reference() -> None:
    p, g, m, v = ([np.full(5, value, np.float16)] for value in (1.0, 0.5, 0.0, 0.0))
    updates.adam(p, g, m, v, step=1, lr=0.1)
    assert p[0].dtype == np.float16
    np.testing.assert_allclose(p[0].astype(float), 0.9, atol=2e-3)
