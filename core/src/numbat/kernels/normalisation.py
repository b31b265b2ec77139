"""Normalisation of arrays with channels, and of rows: `normalisation.c` and numpy references.

Every function takes float32 or float64. Float32 whose memory has no gaps, channels second (NCHW) or
last in memory (NHWC), goes by the kernels; everything else by the reference beside it. A tensor of
two axes is rows of channels. Results are laid out as `x`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numbat.kernels.activation_references import (
    gelu_slope,
    gelu_tanh_slope,
    gelu_tanh_value,
    gelu_value,
    silu_slope,
    silu_value,
)
from numbat.kernels.calling import address, kernel
from numbat.kernels.pool import pieces, run

Array = np.ndarray[Any, np.dtype[Any]]

_FLOAT32 = np.dtype(np.float32)
_MOMENTS_PLANES = kernel("nb_moments_planes", "PPPlllll")
_AFFINE_PLANES = kernel("nb_affine_planes", "PPPPillll")
_SUMS_PLANES = kernel("nb_gradient_sums_planes", "PPPPPPPPilllll")
_GRADIENT_PLANES = kernel("nb_gradient_planes", "PPPPPPPllll")
_MOMENTS_ROWS = kernel("nb_moments_rows", "PPPllll")
_AFFINE_ROWS = kernel("nb_affine_rows", "PPPPilll")
_SUMS_ROWS = kernel("nb_gradient_sums_rows", "PPPPPPPillll")
_GRADIENT_ROWS = kernel("nb_gradient_rows", "PPPPPPPlll")
_LAYER_NORM = kernel("nb_layer_norm", "PPPPPPldill")
_LAYER_NORM_BACKWARD = kernel("nb_layer_norm_backward", "PPPPPPPlilll")
ACTIVATIONS = {"": 0, "silu": 1, "gelu": 2, "gelu_tanh": 3}
"""What may follow an affine map in the same pass, by its number in `normalisation.c`."""
_VALUES = {"silu": silu_value, "gelu": gelu_value, "gelu_tanh": gelu_tanh_value}
_SLOPES = {"silu": silu_slope, "gelu": gelu_slope, "gelu_tanh": gelu_tanh_slope}


class _Layout(NamedTuple):
    """How channels lie in memory: `outer` x channels x `inner`, or rows of channels where inner is
    0."""

    outer: int
    channels: int
    inner: int


def _layout(x: Array) -> _Layout | None:
    """The layout of a float32 array without gaps; None where the reference is to be used."""
    if x.dtype != _FLOAT32 or x.ndim < 2 or not x.size:
        return None
    channels = x.shape[1]
    if x.ndim == 2 and x.flags.c_contiguous:
        return _Layout(x.shape[0], channels, 0)
    if x.flags.c_contiguous:
        return _Layout(x.shape[0], channels, x.size // (x.shape[0] * channels))
    if np.moveaxis(x, 1, -1).flags.c_contiguous:
        return _Layout(x.size // channels, channels, 0)
    return None


def _grain(length: int) -> int:
    """Rows, planes or channels of `length` elements in a piece: some 131,072 elements."""
    return max(1, 131072 // max(length, 1))


def along_channels(values: Array, ndim: int) -> Array:
    """(C,) as (1, C, 1, ...), to broadcast over an array with `ndim` axes."""
    return values.reshape((1, -1) + (1,) * (ndim - 2))


def other_axes(ndim: int) -> tuple[int, ...]:
    """All axes but that of channels."""
    return (0, *range(2, ndim))


def moments(x: Array) -> tuple[Array, Array]:
    """The mean and the biased variance of each channel, in float64."""
    layout = _layout(x)
    if layout is None:
        return moments_reference(x)
    outer, channels, inner = layout
    if inner:
        mean, variance = np.empty(channels), np.empty(channels)
        planes = (address(x), address(mean), address(variance), outer, channels, inner)
        run(_MOMENTS_PLANES, planes, channels, _grain(outer * inner))
        return mean, variance
    shift = np.ascontiguousarray(np.moveaxis(x, 1, -1).reshape(outer, channels)[0])
    grain = _grain(channels)
    slots = np.empty((pieces(outer, grain), 2, channels))
    where = (address(x), address(shift), address(slots), channels, grain)
    run(_MOMENTS_ROWS, where, outer, grain)
    off, square = slots.sum(axis=0) / outer
    return shift + off, np.maximum(square - off * off, 0)


def moments_reference(x: Array) -> tuple[Array, Array]:
    """`moments` in numpy."""
    axes = other_axes(x.ndim)
    return x.mean(axis=axes, dtype=np.float64), x.var(axis=axes, dtype=np.float64)


def affine(x: Array, scale: Array, shift: Array, *, activation: str = "") -> Array:
    """scale * x + shift, channel by channel, and an activation of that where one is asked for."""
    layout = _layout(x)
    if layout is None:
        return affine_reference(x, scale, shift, activation=activation)
    scale, shift = _floats(scale), _floats(shift)
    out = np.empty_like(x)
    where = (
        address(x),
        address(scale),
        address(shift),
        address(out),
        ACTIVATIONS[activation],
        layout.channels,
    )
    if layout.inner:
        planes = layout.outer * layout.channels
        run(_AFFINE_PLANES, (*where, layout.inner), planes, _grain(layout.inner))
    else:
        run(_AFFINE_ROWS, where, layout.outer, _grain(layout.channels))
    return out


def affine_reference(x: Array, scale: Array, shift: Array, *, activation: str = "") -> Array:
    """`affine` in numpy."""
    scale, shift = (along_channels(one.astype(x.dtype), x.ndim) for one in (scale, shift))
    z = x * scale + shift
    return _VALUES[activation](z) if activation else z


def _floats(values: Array) -> Array:
    return np.ascontiguousarray(values, _FLOAT32)


def _like(values: Array, x: Array) -> Array:
    """An array in the type and the memory layout of x."""
    if values.dtype == x.dtype and values.strides == x.strides:
        return values
    out = np.empty_like(x)
    out[...] = values
    return out


def gradient_sums(
    grad: Array, x: Array, mean: Array, scale: Array, shift: Array, *, activation: str = ""
) -> tuple[Array, Array, Array]:
    """The gradient before the activation of `affine`, and for each channel its sum and its sum of
    products with x - mean, in float64."""
    layout = _layout(x)
    if layout is None:
        return gradient_sums_reference(grad, x, mean, scale, shift, activation=activation)
    grad = _like(grad, x)
    through = np.empty_like(x) if activation else grad
    outer, channels, inner = layout
    held = [_floats(one) for one in (mean, scale, shift)]
    where = (address(grad), address(x), *[address(one) for one in held], address(through))
    if inner:
        sums, dots = np.empty(channels), np.empty(channels)
        run(
            _SUMS_PLANES,
            (*where, address(sums), address(dots), ACTIVATIONS[activation], outer, channels, inner),
            channels,
            _grain(outer * inner),
        )
        return through, sums, dots
    grain = _grain(channels)
    slots = np.empty((pieces(outer, grain), 2, channels))
    run(
        _SUMS_ROWS, (*where, address(slots), ACTIVATIONS[activation], channels, grain), outer, grain
    )
    sums, dots = slots.sum(axis=0)
    return through, sums, dots


def gradient_sums_reference(
    grad: Array, x: Array, mean: Array, scale: Array, shift: Array, *, activation: str = ""
) -> tuple[Array, Array, Array]:
    """`gradient_sums` in numpy."""
    if activation:
        scale, shift = (along_channels(one.astype(x.dtype), x.ndim) for one in (scale, shift))
        grad = grad * _SLOPES[activation](x * scale + shift)
    axes = other_axes(x.ndim)
    centred = x - along_channels(mean.astype(x.dtype), x.ndim)
    sums = grad.sum(axis=axes, dtype=np.float64)
    return grad, sums, (grad * centred).sum(axis=axes, dtype=np.float64)


def gradient(grad: Array, x: Array, mean: Array, a: Array, b: Array, d: Array) -> Any:
    """a * grad - b - (x - mean) * d, channel by channel."""
    layout = _layout(x)
    if layout is None:
        return gradient_reference(grad, x, mean, a, b, d)
    grad, out = _like(grad, x), np.empty_like(x)
    held = [_floats(one) for one in (mean, a, b, d)]
    where = (address(grad), address(x), *[address(one) for one in held], address(out))
    outer, channels, inner = layout
    if inner:
        run(_GRADIENT_PLANES, (*where, channels, inner), outer * channels, _grain(inner))
    else:
        run(_GRADIENT_ROWS, (*where, channels), outer, _grain(channels))
    return out


def gradient_reference(grad: Array, x: Array, mean: Array, a: Array, b: Array, d: Array) -> Any:
    """`gradient` in numpy."""
    mean, a, b, d = (along_channels(one.astype(x.dtype), x.ndim) for one in (mean, a, b, d))
    return a * grad - b - (x - mean) * d


def layer_norm(
    x: Array, weight: Array | None, bias: Array | None, eps: float, *, centred: bool = True
) -> tuple[Array, Array, Array]:
    """Rows normalised, then times a weight and plus a bias; and the mean and inverse deviation of
    each row.

    Args:
        x: (rows, columns).
        weight, bias: (columns,) of x's type, or None.
        eps: added to the variance.
        centred: False takes the mean as zero: RMS norm.
    """
    rows, columns = x.shape
    if x.dtype != _FLOAT32 or not x.flags.c_contiguous or not x.size:
        return layer_norm_reference(x, weight, bias, eps, centred=centred)
    held = [None if one is None else _floats(one) for one in (weight, bias)]
    out = np.empty_like(x)
    mean, rstd = np.empty(rows, _FLOAT32), np.empty(rows, _FLOAT32)
    where = (
        address(x), *[None if one is None else address(one) for one in held], address(out),
        address(mean), address(rstd), columns, eps, int(centred),
    )  # fmt: skip
    run(_LAYER_NORM, where, rows, _grain(columns))
    return out, mean, rstd


def layer_norm_reference(
    x: Array, weight: Array | None, bias: Array | None, eps: float, *, centred: bool = True
) -> tuple[Array, Array, Array]:
    """`layer_norm` in numpy."""
    mean = x.mean(axis=1) if centred else np.zeros(len(x), x.dtype)
    rest = x - mean[:, None]
    rstd = 1 / np.sqrt((rest * rest).mean(axis=1) + x.dtype.type(eps))
    out = rest * rstd[:, None]
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out, mean, rstd


def layer_norm_backward(
    grad: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, *, centred: bool = True,
    parameters: bool = True,
) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
    """The gradients of x, of the weight and of the bias; the latter two where `parameters` are
    wanted."""
    rows, columns = x.shape
    if x.dtype != _FLOAT32 or not x.flags.c_contiguous or not x.size:
        return layer_norm_backward_reference(
            grad, x, weight, mean, rstd, centred=centred, parameters=parameters
        )
    grad, out = _floats(grad), np.empty_like(x)
    held = None if weight is None else _floats(weight)
    grain = _grain(columns)
    slots = np.empty((pieces(rows, grain), 2, columns), _FLOAT32) if parameters else None
    where = (
        address(grad), address(x), None if held is None else address(held), address(mean),
        address(rstd),
        address(out), None if slots is None else address(slots), columns, int(centred), grain,
    )  # fmt: skip
    run(_LAYER_NORM_BACKWARD, where, rows, grain)
    if slots is None:
        return out, None, None
    for_weight, for_bias = slots.sum(axis=0, dtype=np.float64).astype(_FLOAT32)
    return out, for_weight, for_bias


def layer_norm_backward_reference(
    grad: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, *, centred: bool = True,
    parameters: bool = True,
) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
    """`layer_norm_backward` in numpy."""
    hat = (x - mean[:, None]) * rstd[:, None]
    inner = grad if weight is None else grad * weight
    out = inner - hat * (inner * hat).mean(axis=1, keepdims=True)
    if centred:
        out = out - inner.mean(axis=1, keepdims=True)
    out = out * rstd[:, None]
    if not parameters:
        return out, None, None
    return out, (grad * hat).sum(axis=0), grad.sum(axis=0)
