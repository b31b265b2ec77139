"""Element-wise operators by known answers, identities and types; torch is not needed here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numbat as nb
from numbat.ops.aliases import SECOND_NAMES
from numbat.ops.special import special, zeta
from numbat_registries import Refusal

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.floats(0.01, 1e3))
def test_division_and_remainder_belong_together(values: list[float], divisor: float) -> None:
    x = nb.tensor(values, dtype=nb.float64)
    back = nb.floor_divide(x, divisor) * divisor + nb.remainder(x, divisor)
    np.testing.assert_allclose(back.array, x.array, rtol=1e-9, atol=1e-6)


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8), st.integers(1, 2**31 - 1)
)
def test_whole_numbers_divide_as_in_python(values: list[int], divisor: int) -> None:
    x = nb.tensor(values)
    assert (x // divisor).tolist() == [one // divisor for one in values]
    assert (x % divisor).tolist() == [one % divisor for one in values]
    truncated = nb.div(x, divisor, rounding_mode="trunc")
    assert truncated.tolist() == [int(math.copysign(abs(one) // divisor, one)) for one in values]


KNOWN = [
    ("erf", 0.5, 0.5204998778130465), ("erfc", 3.0, 2.209049699858544e-05),
    ("erfinv", 0.5, 0.4769362762044699), ("lgamma", 4.5, 2.453736570842442),
    ("digamma", 1.0, -0.5772156649015329), ("i0", 1.0, 1.2660658777520084),
    ("expm1", 1e-10, 1.00000000005e-10), ("log1p", 1e-10, 9.9999999995e-11),
    ("sinc", 0.5, 2 / math.pi), ("logit", 0.25, math.log(1 / 3)), ("rsqrt", 16.0, 0.25),
    ("exp2", 10.0, 1024.0), ("frac", -2.75, -0.75), ("round", 2.5, 2.0), ("sigmoid", 0.0, 0.5),
    ("deg2rad", 180.0, math.pi), ("acosh", 2.0, 1.3169578969248166),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "expected"), KNOWN)
def test_known_answers(name: str, x: float, expected: float) -> None:
    assert getattr(nb, name)(nb.tensor(x, dtype=nb.float64)).item() == pytest.approx(
        expected, rel=1e-14
    )


def test_special_functions_by_identities() -> None:
    x = np.linspace(0.05, 30, 4001)
    reflected = special("digamma", 1 - x[x < 1]) - special("digamma", x[x < 1])
    np.testing.assert_allclose(reflected, np.pi / np.tan(np.pi * x[x < 1]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(special("digamma", x + 1) - special("digamma", x), 1 / x, rtol=1e-9)
    np.testing.assert_allclose(special("trigamma", x), zeta(np.array(2.0), x), rtol=1e-14)
    assert zeta(np.array(2.0), np.array(1.0)) == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert zeta(np.array(3.0), np.array(1e30)) == pytest.approx(5e-61, rel=1e-12)
    # The Wronskian of Bessel's functions, by numpy's own I0.
    np.testing.assert_allclose(special("i0", x), np.i0(x), rtol=2e-15)
    step = 1e-6
    slope = (np.i0(x + step) - np.i0(x - step)) / (2 * step)
    np.testing.assert_allclose(special("i1", x), slope, rtol=1e-7)
    scaled = special("i0", x) * np.exp(-x)
    np.testing.assert_allclose(special("i0e", x), scaled, rtol=1e-13)


def test_the_vector_erf_is_the_library_s() -> None:
    x = np.linspace(-6, 6, 20001)
    exact = np.array([math.erf(one) for one in x.astype(np.float32).astype(float)])
    np.testing.assert_allclose(special("erf", x.astype(np.float32)), exact, rtol=3e-7)
    np.testing.assert_allclose(special("erf", x), [math.erf(one) for one in x], rtol=1e-15)
    assert np.isnan(special("erf", np.array([np.nan], np.float32)))[0]
    y = np.linspace(-0.999999, 0.999999, 2001)
    np.testing.assert_allclose(special("erf", special("erfinv", y)), y, rtol=1e-14)


def test_results_have_the_types_of_torch() -> None:
    whole, half = nb.tensor([1, 2]), nb.tensor([1.0, 2.0], dtype=nb.bfloat16)
    assert nb.sqrt(whole).dtype is nb.float32
    assert nb.floor(whole).dtype is nb.int64
    assert (whole / 2).dtype is nb.float32
    assert (whole // 2).dtype is nb.int64
    assert (half * 2.5).dtype is nb.bfloat16
    assert (half + nb.tensor(1.0, dtype=nb.float64)).dtype is nb.bfloat16
    assert nb.float_power(half, 2).dtype is nb.float64
    assert nb.where(nb.tensor([True, False]), whole, 0.5).dtype is nb.float32
    assert (whole > 1).dtype is nb.bool


def test_second_names_are_the_operators() -> None:
    for second, name in SECOND_NAMES.items():
        assert getattr(nb, second) is getattr(nb, name)
    assert nb.tensor([-1.5]).absolute().item() == 1.5
    assert nb.tensor([3.0]).clip_(max=2.0).item() == 2.0


def test_writes_at_once_count_as_writes() -> None:
    x = nb.ones(3)
    leaf = nb.ones(3, requires_grad=True)
    y = (leaf * 2) * x
    x.add_(1.0)
    with pytest.raises(Refusal, match="CORE-0304"):
        y.sum().backward()
    with pytest.raises(Refusal, match="CORE-0306"):
        leaf.mul_(2.0)
    with nb.no_grad():
        leaf.mul_(2.0)
    assert leaf.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(Refusal, match="CORE-0105"):
        nb.tensor([1]).add_(0.5)
    with pytest.raises(Refusal, match="CORE-0307"):
        nb.ones(1).expand(3).add_(1.0)


def test_an_array_that_overlaps_itself_is_read_before_it_is_written() -> None:
    x = nb.arange(5.0)
    x[1:].add_(x[:-1])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0]
