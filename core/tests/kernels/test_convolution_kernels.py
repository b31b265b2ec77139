"""The C kernels of convolutions, pools and resampling against their numpy references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbat as nb
from numbat.kernels import convolution, pooling, resampling
from numbat.kernels.convolution import Window

AXES = st.integers(1, 3)


@st.composite
def geometries(draw):
    axes = draw(AXES)
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    ins = draw(st.sampled_from([1, 2, 5, 16, 17])) if draw(st.booleans()) else 1
    outs = draw(st.sampled_from([1, 3, 16, 18, 33])) if ins > 1 else draw(st.integers(1, 2))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    gap = tuple(draw(st.integers(1, 2)) for _ in range(axes))
    begin = tuple(draw(st.integers(0, 2)) for _ in range(axes))
    extents = tuple(
        draw(st.integers(max(d * (k - 1) + 1 - 2 * b, 1), 9))
        for k, d, b in zip(kernel, gap, begin, strict=True)
    )
    space = tuple(
        (extent + 2 * b - d * (k - 1) - 1) // s + 1
        for extent, b, d, k, s in zip(extents, begin, gap, kernel, stride, strict=True)
    )
    batch = draw(st.integers(1, 2))
    return batch, extents, space, kernel, Window(stride, begin, gap, groups), ins, outs


def arrays(geometry):
    batch, extents, space, kernel, window, ins, outs = geometry
    rng = np.random.default_rng(5)
    groups = window.groups

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    x, grad = normal(batch, *extents, ins * groups), normal(batch, *space, outs * groups)
    return x, grad, normal(outs * groups, ins, *kernel), normal(outs * groups)


def close(found, wanted):
    scale = max(float(np.abs(wanted).max(initial=0)), 1.0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * scale)


@given(geometries())
@settings(max_examples=150, deadline=None)
def test_kernels_agree_with_references(geometry):
    _, extents, space, kernel, window, ins, _ = geometry
    x, grad, weight, bias = arrays(geometry)
    wide = [one.astype(np.float64) for one in (x, grad, weight, bias)]
    close(
        convolution._forward(x, weight, bias, window, space),
        convolution.forward_reference(wide[0], wide[2], wide[3], window, space),
    )
    start = np.linspace(-1, 1, ins * window.groups).astype(np.float32)
    close(
        convolution._input_gradient(grad, weight, start, window, extents),
        convolution.input_gradient_reference(wide[1], wide[2], start, window, extents),
    )
    close(
        convolution._weight_gradient(x, grad, window, kernel),
        convolution.weight_gradient_reference(wide[0], wide[1], window, kernel),
    )


LARGE = [
    (2, (37, 41), (37, 41), (3, 3), Window((1, 1), (1, 1), (1, 1), 1), 20, 40),
    (2, (37, 41), (19, 21), (3, 3), Window((2, 2), (1, 1), (1, 1), 1), 300, 50),
    (1, (12, 13, 14), (12, 13, 14), (3, 3, 3), Window((1, 1, 1), (1, 1, 1), (1, 1, 1), 1), 24, 24),
    (2, (60, 61), (60, 61), (3, 3), Window((1, 1), (1, 1), (1, 1), 70), 1, 1),
    (2, (30, 31), (30, 31), (3, 3), Window((1, 1), (1, 1), (1, 1), 4), 20, 24),
]


@pytest.mark.parametrize("geometry", LARGE, ids=lambda one: f"{one[1]}x{one[5]}")
def test_results_are_the_same_bits_for_any_number_of_threads(geometry):
    _, extents, space, kernel, window, _, _ = geometry
    x, grad, weight, bias = arrays(geometry)
    before = nb.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            nb.set_num_threads(threads)
            found.append((
                convolution._forward(x, weight, bias, window, space),
                convolution._input_gradient(grad, weight, None, window, extents),
                convolution._weight_gradient(x, grad, window, kernel),
            ))  # fmt: skip
    finally:
        nb.set_num_threads(before)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(one, two)
    close(found[0][0], convolution.forward_reference(x, weight, bias, window, space))
    close(found[0][1], convolution.input_gradient_reference(grad, weight, None, window, extents))
    wanted = convolution.weight_gradient_reference(
        x.astype(np.float64), grad.astype(np.float64), window, kernel
    )
    close(found[0][2], wanted)


def test_nan_and_inf_reach_the_windows_that_hold_them_and_no_others():
    x = np.ones((1, 9, 9, 3), np.float32)
    x[0, 2, 3, 1], x[0, 6, 6, 0] = np.nan, np.inf
    weight = np.ones((18, 3, 3, 3), np.float32)
    window = Window((1, 1), (1, 1), (1, 1), 1)
    out = convolution._forward(x, weight, None, window, (9, 9))
    seen = np.zeros((9, 9), bool)
    seen[1:4, 2:5] = True
    assert (np.isnan(out[0, ..., 0]) == seen).all()
    seen[:] = False
    seen[5:8, 5:8] = True
    assert (np.isposinf(out[0, ..., 5]) == seen).all()


@given(
    AXES,
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 1),
    st.integers(1, 2),
)
@settings(max_examples=60, deadline=None)
def test_greatest(axes, channels, cells, stride, begin, gap):
    extents = (9, 8, 7)[:axes]
    rng = np.random.default_rng(channels)
    x = rng.integers(-3, 4, (2, *extents, channels)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    x[rng.random(x.shape) < 0.05] = -np.inf
    counts = [max((e + 2 * begin - gap * (cells - 1) - 1) // stride + 1, 1) for e in extents]
    windows = tuple(
        pooling.places(extent, count, cells, stride, begin, gap)
        for extent, count in zip(extents, counts, strict=True)
    )
    best, index = pooling.greatest(x, windows)
    wanted, places = pooling.greatest_reference(x, windows)
    assert index.dtype == np.int32
    np.testing.assert_array_equal(best, wanted)
    np.testing.assert_array_equal(index, places)
    grad = rng.normal(size=best.shape).astype(np.float32)
    close(
        pooling.laid_back(grad, index, extents), pooling.laid_back_reference(grad, places, extents)
    )


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 70), st.booleans())
@settings(max_examples=80, deadline=None)
def test_resampling(extent, rows, entries, inner, weighted):
    rng = np.random.default_rng(inner)
    places = rng.integers(-1, extent, (rows, entries))
    weights = rng.normal(size=places.shape) if weighted else None
    table = resampling.Table.of(places, extent, weights)
    x = rng.normal(size=(3, extent, inner)).astype(np.float32)
    for one in (table, table.transposed):
        given_x = x if one is table else rng.normal(size=(3, rows, inner)).astype(np.float32)
        close(
            resampling.along_axis(given_x, 1, one), resampling.along_axis_reference(given_x, 1, one)
        )
    assert table.transposed.transposed is table
