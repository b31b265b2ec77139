"""The namespace `numbat.fft`: Fourier transforms.

There is no complex element type: complex numbers are a last axis of two reals, the real and the
imaginary part, as torch's `view_as_real` lays them out. Axes are those of the complex numbers, so
that
`dim=-1` is the axis before the pairs. What takes complex numbers takes pairs alone (CORE-0256);
real
signals go to `rfft`. Gradients are of the parts as reals, as torch's are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.pointwise import mul
from numbat.ops.rearranging import roll
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import select
from numbat.ops.viewing import axis_of
from numbat.tensors.dtypes import as_dtype, get_default_dtype
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_MODES = ("backward", "ortho", "forward")
_ALL = slice(None)


# -- Pairs and scales -----------------------------------------------------------------------------


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _complex(array: Array) -> Array:
    """numpy's complex numbers over an array of pairs."""
    held = np.ascontiguousarray(_wide(array))
    return held.view(np.complex64 if held.dtype == np.float32 else np.complex128)[..., 0]


def _pairs(values: Array, dtype: np.dtype[Any]) -> Array:
    real = np.float32 if values.dtype == np.complex64 else np.float64
    held = np.ascontiguousarray(values)
    return held.view(real).reshape(*held.shape, 2).astype(dtype, copy=False)


def check_pairs(operator: str, input: Tensor) -> Tensor:
    """The tensor in a floating type.

    Raises CORE-0256 where it is not of pairs.
    """
    if not input.array.ndim or input.array.shape[-1] != 2:
        raise refuse("CORE-0256", operator=operator, shape=list(input.shape))
    return floating(input)


def _scale(operator: str, norm: str | None, count: int, *, inverse: bool) -> float:
    """The factor of an unnormalised transform over `count` elements.

    Raises CORE-0247 for a mode that is not known.
    """
    mode = "backward" if norm is None else norm
    if mode not in _MODES:
        raise refuse(
            "CORE-0247", operator=operator, argument="norm", value=str(norm), known=list(_MODES)
        )
    if mode == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (mode == "backward") == inverse else 1.0


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1.0 else mul(tensor, factor)


def _check_length(operator: str, n: int) -> None:
    if n < 1:
        raise refuse("CORE-0253", operator=operator, argument="n", value=n, wanted="1 or more")


# -- Linear maps, each of which is the other's transpose ------------------------------------------


def resized(input: Tensor, axis: int, extent: int) -> Tensor:
    """An axis cut, or filled with zeros, to an extent."""
    array = input.array
    have = array.shape[axis]
    if have == extent:
        return input
    lead = (_ALL,) * axis
    if have > extent:
        out = array[(*lead, slice(extent))].copy()
    else:
        out = np.zeros((*array.shape[:axis], extent, *array.shape[axis + 1 :]), array.dtype)
        out[(*lead, slice(have))] = array
    return record(out, resized_backward, (input,), values=(axis, have))


def resized_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (resized(grad, *node.values),)


def transformed(input: Tensor, axes: tuple[int, ...], inverse: bool) -> Tensor:
    """The unnormalised transform of pairs over axes."""
    values = _complex(input.array)
    if inverse:
        found = np.fft.ifftn(values, axes=axes, norm="forward")
    else:
        found = np.fft.fftn(values, axes=axes)
    out = _pairs(found.astype(values.dtype, copy=False), input.array.dtype)
    return record(out, transformed_backward, (input,), values=(axes, inverse))


def transformed_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    axes, inverse = node.values
    return (transformed(grad, axes, not inverse),)


def half_spectrum(input: Tensor, axis: int) -> Tensor:
    """The unnormalised transform of reals along an axis, its first half alone."""
    found = np.fft.rfft(_wide(input.array), axis=axis)
    if input.array.dtype != np.float64:
        found = found.astype(np.complex64, copy=False)
    out = _pairs(found, input.array.dtype)
    return record(out, half_spectrum_backward, (input,), values=(axis, input.array.shape[axis]))


def half_spectrum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    axis, extent = node.values
    whole = transformed(resized(grad, axis, extent), (axis,), True)
    return (select(whole, -1, 0),)


def from_half(input: Tensor, axis: int, extent: int) -> Tensor:
    """The unnormalised inverse transform to `extent` reals; the other half is the first one's
    conjugate."""
    values = _complex(input.array)
    found = np.fft.irfft(values, extent, axis=axis, norm="forward")
    out = np.asarray(found).astype(input.array.dtype, copy=False)
    return record(out, from_half_backward, (input,), values=(axis, extent))


def from_half_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    axis, extent = node.values
    spectrum = half_spectrum(grad, axis)
    # Each frequency but the first (and the last of an even number) stands for its conjugate too.
    weights = np.full(extent // 2 + 1, 2.0, grad.array.dtype)
    weights[0] = 1
    if extent % 2 == 0:
        weights[-1] = 1
    shape = [1] * spectrum.array.ndim
    shape[axis] = weights.size
    return (mul(spectrum, wrap(weights.reshape(shape))),)


def conjugate(input: Tensor) -> Tensor:
    """Pairs with the sign of the imaginary part turned."""
    return mul(input, wrap(np.array([1, -1], input.array.dtype)))


# -- Along one axis -------------------------------------------------------------------------------


def _sample_pairs(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5, 2)),))
    yield Sample((rng.normal(size=(3, 4, 2)), 6, 0, "ortho"))
    yield Sample((rng.normal(size=(3, 4, 2)), 2, -1, "forward"))


def _sample_reals(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(5,)),))
    yield Sample((rng.normal(size=(3, 4)), 6, 0, "ortho"))
    yield Sample((rng.normal(size=(3, 4)), 3, -1, "forward"))


def _along(
    operator: str, input: Tensor, n: int | None, dim: int, norm: str | None, *, inverse: bool
) -> Tensor:
    held = check_pairs(operator, input)
    axis = axis_of(dim, held.array.ndim - 1, operator)
    extent = held.array.shape[axis] if n is None else int(n)
    _check_length(operator, extent)
    factor = _scale(operator, norm, extent, inverse=inverse)
    return _scaled(transformed(resized(held, axis, extent), (axis,), inverse), factor)


@operator(_sample_pairs, name="fft.fft", torch=None)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The Fourier transform of complex pairs along an axis, cut or filled to `n`.

    `norm` is 'backward' (no factor), 'ortho' (1/sqrt(n)) or 'forward' (1/n).
    Raises CORE-0256, CORE-0204, CORE-0253, CORE-0247.
    """
    return _along("fft", input, n, dim, norm, inverse=False)


@operator(_sample_pairs, name="fft.ifft", torch=None)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`; the factor is the one that makes it so."""
    return _along("ifft", input, n, dim, norm, inverse=True)


@operator(_sample_reals, name="fft.rfft", torch="fft.rfft")
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The Fourier transform of reals along an axis, its first `n // 2 + 1` frequencies as pairs.

    Raises CORE-0248 for a tensor without axes, CORE-0204, CORE-0253, CORE-0247.
    """
    return rfftn(input, None if n is None else (n,), (dim,), norm)


@operator(_sample_pairs, name="fft.irfft", torch=None)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: `n` reals, twice as many as frequencies less two where it is not
    given."""
    return irfftn(input, None if n is None else (n,), (dim,), norm)


@operator(_sample_pairs, name="fft.hfft", torch=None)
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The Fourier transform, real, of a signal of which the first half is given, the other its
    conjugate.

    Raises CORE-0256, CORE-0204, CORE-0253, CORE-0247.
    """
    held = conjugate(check_pairs("hfft", input))
    axis = axis_of(dim, held.array.ndim - 1, "hfft")
    extent = 2 * (held.array.shape[axis] - 1) if n is None else int(n)
    _check_length("hfft", extent)
    found = from_half(resized(held, axis, extent // 2 + 1), axis, extent)
    return _scaled(found, _scale("hfft", norm, extent, inverse=False))


@operator(_sample_reals, name="fft.ihfft", torch="fft.ihfft")
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`."""
    held = _reals("ihfft", input)
    axis = axis_of(dim, held.array.ndim, "ihfft")
    extent = held.array.shape[axis] if n is None else int(n)
    _check_length("ihfft", extent)
    found = conjugate(half_spectrum(resized(held, axis, extent), axis))
    return _scaled(found, _scale("ihfft", norm, extent, inverse=True))


# -- Along several axes ---------------------------------------------------------------------------


def _reals(operator: str, input: Tensor) -> Tensor:
    if not input.array.ndim:
        raise refuse("CORE-0248", operator=operator, shape=[], wanted="one axis or more")
    return floating(input)


def _several(
    operator: str, shape: tuple[int, ...], s: Any, dim: Any
) -> tuple[tuple[int, ...], list[int]]:
    """The axes to transform, and the extents they are brought to.

    Raises CORE-0204, CORE-0207, CORE-0246 where there are not as many extents as axes, CORE-0253.
    """
    from numbat.ops.shaping import distinct_axes

    ndim = len(shape)
    sizes = None if s is None else [int(one) for one in ((s,) if isinstance(s, int) else s)]
    if dim is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise refuse("CORE-0246", operator=operator, sizes=sizes or [], extent=ndim)
        axes = tuple(range(ndim - count, ndim))
    else:
        axes = distinct_axes((dim,) if isinstance(dim, int) else dim, ndim, operator)
    if sizes is None:
        sizes = [shape[axis] for axis in axes]
    if len(sizes) != len(axes):
        raise refuse("CORE-0246", operator=operator, sizes=sizes, extent=len(axes))
    sizes = [shape[axis] if size == -1 else size for axis, size in zip(axes, sizes, strict=True)]
    for size in sizes:
        _check_length(operator, size)
    return axes, sizes


def _fit(input: Tensor, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    for axis, size in zip(axes, sizes, strict=True):
        input = resized(input, axis, size)
    return input


def _sample_pairs_n(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4, 2)),))
    yield Sample((rng.normal(size=(2, 3, 4, 2)), (3, 4), (0, -1), "ortho"))


def _sample_reals_n(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)),))
    yield Sample((rng.normal(size=(2, 3, 4)), (3, 5), (0, -1), "forward"))


def _over(
    operator: str, input: Tensor, s: Any, dim: Any, norm: str | None, *, inverse: bool
) -> Tensor:
    held = check_pairs(operator, input)
    axes, sizes = _several(operator, held.array.shape[:-1], s, dim)
    factor = _scale(operator, norm, math.prod(sizes), inverse=inverse)
    if not axes:
        return held
    return _scaled(transformed(_fit(held, axes, sizes), axes, inverse), factor)


@operator(_sample_pairs_n, name="fft.fftn", torch=None)
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The Fourier transform of complex pairs over several axes, brought to the extents `s`.

    Raises CORE-0256, CORE-0204, CORE-0207, CORE-0246, CORE-0253, CORE-0247.
    """
    return _over("fftn", input, s, dim, norm, inverse=False)


@operator(_sample_pairs_n, name="fft.ifftn", torch=None)
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`."""
    return _over("ifftn", input, s, dim, norm, inverse=True)


@operator(_sample_pairs_n, name="fft.fft2", torch=None)
def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`fftn` over two axes."""
    return fftn(input, s, dim, norm)


@operator(_sample_pairs_n, name="fft.ifft2", torch=None)
def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`ifftn` over two axes."""
    return ifftn(input, s, dim, norm)


@operator(_sample_reals_n, name="fft.rfftn", torch="fft.rfftn")
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The Fourier transform of reals over several axes, of the last of which the first half is
    given.

    Raises CORE-0248, CORE-0204, CORE-0207, CORE-0246, CORE-0253, CORE-0247.
    """
    held = _reals("rfftn", input)
    axes, sizes = _several("rfftn", held.array.shape, s, dim)
    factor = _scale("rfftn", norm, math.prod(sizes), inverse=False)
    found = half_spectrum(_fit(held, axes, sizes), axes[-1])
    if len(axes) > 1:
        found = transformed(found, axes[:-1], False)
    return _scaled(found, factor)


@operator(_sample_pairs_n, name="fft.irfftn", torch=None)
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`; the last axis gets twice its extent less two where `s` is not given.

    Raises CORE-0256, CORE-0204, CORE-0207, CORE-0246, CORE-0253, CORE-0247.
    """
    held = check_pairs("irfftn", input)
    shape = held.array.shape[:-1]
    axes, sizes = _several("irfftn", shape, s, dim)
    if s is None or (not isinstance(s, int) and int(s[-1]) == -1):
        sizes[-1] = 2 * (shape[axes[-1]] - 1)
        _check_length("irfftn", sizes[-1])
    factor = _scale("irfftn", norm, math.prod(sizes), inverse=True)
    held = _fit(held, axes, [*sizes[:-1], sizes[-1] // 2 + 1])
    if len(axes) > 1:
        held = transformed(held, axes[:-1], True)
    return _scaled(from_half(held, axes[-1], sizes[-1]), factor)


@operator(_sample_reals_n, name="fft.rfft2", torch="fft.rfft2")
def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfftn` over two axes."""
    return rfftn(input, s, dim, norm)


@operator(_sample_pairs_n, name="fft.irfft2", torch=None)
def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`irfftn` over two axes."""
    return irfftn(input, s, dim, norm)


# -- Frequencies ----------------------------------------------------------------------------------


def _type(dtype: Any) -> np.dtype[Any]:
    return (get_default_dtype() if dtype is None else as_dtype(dtype)).numpy


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft` over `n` samples `d` apart, in cycles per unit of `d`.

    Raises CORE-0253.
    """
    _check_length("fftfreq", n)
    return wrap(np.fft.fftfreq(n, d).astype(_type(dtype)))


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft` over `n` samples `d` apart, in cycles per unit of `d`.

    Raises CORE-0253.
    """
    _check_length("rfftfreq", n)
    return wrap(np.fft.rfftfreq(n, d).astype(_type(dtype)))


def _sample_shift(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(3, 4)),))
    yield Sample((rng.normal(size=(3, 4)), 1))


def _rolled(input: Tensor, dim: Any, direction: int) -> Tensor:
    ndim = input.array.ndim
    axes = range(ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    places = [axis_of(int(one), ndim, "fftshift") for one in axes]
    shifts = [
        input.array.shape[axis] // 2 if direction > 0 else -(input.array.shape[axis] // 2)
        for axis in places
    ]
    return roll(input, shifts, places) if places else input.clone()


@operator(_sample_shift, name="fft.fftshift", torch="fft.fftshift")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """A copy with the frequency zero in the middle of every axis, or of those named. It knows
    nothing of
    pairs: of complex numbers name the axes.

    Raises CORE-0204.
    """
    return _rolled(input, dim, 1)


@operator(_sample_shift, name="fft.ifftshift", torch="fft.ifftshift")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _rolled(input, dim, -1)
