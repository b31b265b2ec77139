"""Every activation kernel against its numpy reference in float64: odd sizes, layouts, NaN and inf,
threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numbat.kernels.activations import Activation
from numbat.kernels.pool import get_num_threads, set_num_threads
from numbat.ops import activations, rectifiers

PARAMETERS: dict[str, tuple[float, ...]] = {
    "SOFTPLUS": (2.0, 20.0), "ELU": (1.5, 1.25, 0.75), "LEAKY_RELU": (0.25,), "HARDTANH": (-1.0,
    2.0),
    "HARDSHRINK": (0.5,), "SOFTSHRINK": (0.5,), "THRESHOLD": (0.5, 20.0),
}  # fmt: skip
FUNCTIONS = {
    name: one
    for module in (activations, rectifiers)
    for name, one in vars(module).items()
    if isinstance(one, Activation)
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def drawn(size: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    wide = rng.uniform(-12, 12, size)
    return np.where(rng.random(size) < 0.3, rng.normal(size=size) * 1e-3, wide).astype(np.float32)


LOOSE = {"GELU_TANH": 20}
"""Where the exponent itself is a rounded cubic: far out its rounding shows in the exponential."""


def close(found: Any, expected: Any, scale: Any, factor: float = 1) -> None:
    """Within 1e-6 of the value, or of the terms that cancel where a derivative crosses zero."""
    allowed = factor * 1e-6 * np.maximum(np.abs(expected), scale) + 1e-37
    beyond = ~(np.abs(found - expected) <= allowed)
    assert not beyond.any(), (found[beyond][:3], expected[beyond][:3])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 1023, 40001])
def test_kernel_is_its_reference(name: str, size: int) -> None:
    function, numbers, x = FUNCTIONS[name], PARAMETERS.get(name, ()), drawn(size)
    grad = np.random.default_rng(1).normal(size=size).astype(np.float32)
    exact = x.astype(np.float64)
    close(function.forward(x, *numbers), function.value(exact, *numbers), 0, LOOSE.get(name, 1))
    found = function.backward(grad, x, *numbers)
    smooth = np.abs(grad) * (1 if function.selects else 0.3)
    close(found, grad * function.slope(exact, *numbers), smooth, LOOSE.get(name, 1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts(name: str) -> None:
    function, numbers = FUNCTIONS[name], PARAMETERS.get(name, ())
    x = drawn(24)
    grad = np.random.default_rng(1).normal(size=24).astype(np.float32)
    value, slope = function.forward(x, *numbers), function.backward(grad, x, *numbers)
    for form in (
        lambda a: a.reshape(2, 3, 4).transpose(2, 0, 1),
        lambda a: np.repeat(a, 2)[::2].reshape(2, 3, 4).transpose(1, 0, 2),
        lambda a: a[::-1],
        lambda a: a[3:4].reshape(()),
        lambda a: a[:0].reshape(0, 3),
    ):
        np.testing.assert_allclose(function.forward(form(x), *numbers), form(value), 2e-6, 1e-7)
        found = function.backward(form(grad), form(x), *numbers)
        np.testing.assert_allclose(found, form(slope), 2e-6, 1e-6)
        mixed = function.backward(np.ascontiguousarray(form(grad)), form(x), *numbers)
        np.testing.assert_allclose(mixed, form(slope), 2e-6, 1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_that_are_not_finite(name: str) -> None:
    function, numbers = FUNCTIONS[name], PARAMETERS.get(name, ())
    x = np.array([np.nan, np.inf, -np.inf, 5e37, -5e37, 1e-40, -1e-40, 0.0, -0.0] * 3, np.float32)
    found = function.forward(x, *numbers)
    expected = function.value(x.astype(np.float64), *numbers).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-38)


@pytest.mark.parametrize("kind", [np.float16, "bfloat16"])
def test_half_types_are_rounded_once(kind: Any) -> None:
    import numbat as nb

    kind = nb.bfloat16.numpy if kind == "bfloat16" else kind
    x = drawn(1001).astype(kind)
    for name, function in FUNCTIONS.items():
        numbers = PARAMETERS.get(name, ())
        exact = function.value(x.astype(np.float32), *numbers).astype(kind)
        assert function.forward(x, *numbers).tobytes() == exact.tobytes()


def test_threads_change_no_bit() -> None:
    x = drawn(100_003)
    before, found = get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.append(
                [
                    one.forward(x, *PARAMETERS.get(name, ())).tobytes()
                    for name, one in FUNCTIONS.items()
                ]
            )
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]
