"""Spectra of short stretches of a signal, the signal of such spectra, and windows to cut it by."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.division import div
from numbat.ops.fourier import check_pairs, rfft
from numbat.ops.fourier import fft as transform
from numbat.ops.fourier import ifft as inverse_transform
from numbat.ops.fourier import irfft as inverse_half
from numbat.ops.joining import cat, stack
from numbat.ops.pointwise import mul
from numbat.ops.rearranging import flip
from numbat.ops.registry import Sample, operator
from numbat.ops.shaping import fold_back, narrow, squeeze, unfold, unsqueeze
from numbat.ops.viewing import transpose
from numbat.tensors.dtypes import as_dtype, get_default_dtype
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window",
    "stft",
]  # fmt: skip


# -- Windows --------------------------------------------------------------------------------------


def _window(
    operator: str, window_length: int, periodic: bool, shape: Any, dtype: Any, requires_grad: bool
) -> Tensor:
    """A window of a shape over -1 to 1; a periodic one is the longer one's, less its last value."""
    if window_length < 0:
        raise refuse(
            "CORE-0253", operator=operator, argument="window_length", value=window_length,
            wanted="0 or more",
        )  # fmt: skip
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not chosen.is_floating_point:
        raise refuse("CORE-0102", dtype=chosen.name, operation=operator)
    if window_length <= 1:
        values = np.ones(window_length)
    else:
        steps = window_length if periodic else window_length - 1
        values = shape(np.arange(window_length) / steps)
    out = wrap(values.astype(chosen.numpy))
    if requires_grad:
        out.requires_grad = True
    return out


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Hann's window, `sin(pi t)**2`.

    Raises CORE-0253, CORE-0102.
    """
    return _window(
        "hann_window", window_length, periodic, lambda t: np.sin(np.pi * t) ** 2, dtype,
        requires_grad,
    )  # fmt: skip


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Hamming's window, `alpha - beta cos(2 pi t)`.

    Raises CORE-0253, CORE-0102.
    """
    return _window(
        "hamming_window", window_length, periodic,
        lambda t: alpha - beta * np.cos(2 * np.pi * t), dtype, requires_grad,
    )  # fmt: skip


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Blackman's window, `0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)`.

    Raises CORE-0253, CORE-0102.
    """

    def shape(t: Any) -> Any:
        values = 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)
        # Rounding leaves the ends just below zero.
        return np.maximum(values, 0)

    return _window("blackman_window", window_length, periodic, shape, dtype, requires_grad)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Bartlett's window, a triangle.

    Raises CORE-0253, CORE-0102.
    """
    return _window(
        "bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), dtype,
        requires_grad,
    )  # fmt: skip


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Kaiser's window, `I0(beta sqrt(1 - (2 t - 1)**2)) / I0(beta)`.

    Raises CORE-0253, CORE-0102.
    """

    def shape(t: Any) -> Any:
        inside = np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))
        return np.i0(beta * inside) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, shape, dtype, requires_grad)


# -- Short-time transforms ------------------------------------------------------------------------


def _sample_stft(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 16)), 8, 2), {"window": rng.uniform(0.5, 1, 8)})
    yield Sample((rng.normal(size=(12,)), 4), {"center": False, "onesided": False})
    yield Sample((rng.normal(size=(12,)), 6, 2, 4), {"normalized": True})


def _hop(operator: str, n_fft: int, hop_length: int | None) -> int:
    hop = n_fft // 4 if hop_length is None else int(hop_length)
    for name, value in (("n_fft", n_fft), ("hop_length", hop)):
        if value < 1:
            raise refuse(
                "CORE-0253", operator=operator, argument=name, value=value, wanted="1 or more"
            )
    return hop


def _full_window(
    operator: str, n_fft: int, win_length: int | None, window: Tensor | None, like: Tensor
) -> Tensor | None:
    """The window in the middle of `n_fft` samples; None where it is one everywhere."""
    width = n_fft if win_length is None else int(win_length)
    if not 0 < width <= n_fft:
        raise refuse(
            "CORE-0253", operator=operator, argument="win_length", value=width,
            wanted=f"between 1 and n_fft, {n_fft}",
        )  # fmt: skip
    if window is None:
        if width == n_fft:
            return None
        window = wrap(np.ones(width, like.array.dtype))
    if window.array.shape != (width,):
        raise refuse("CORE-0246", operator=operator, sizes=list(window.shape), extent=width)
    if width == n_fft:
        return window
    before = (n_fft - width) // 2
    zeros = [np.zeros(one, window.array.dtype) for one in (before, n_fft - width - before)]
    return cat([wrap(zeros[0]), window, wrap(zeros[1])])


def _padded(signal: Tensor, width: int, mode: str) -> Tensor:
    """The signal with `width` more samples at both ends."""
    known = ["constant", "reflect", "replicate", "circular"]
    if mode not in known:
        raise refuse(
            "CORE-0247", operator="stft", argument="pad_mode", value=str(mode), known=known
        )
    extent = signal.array.shape[-1]
    if mode in ("reflect", "circular") and width >= extent + (mode == "circular"):
        raise refuse(
            "CORE-0253", operator="stft", argument="n_fft", value=2 * width,
            wanted=f"less than twice the signal's length, {extent}",
        )  # fmt: skip
    if mode == "constant":
        zeros = wrap(np.zeros((*signal.array.shape[:-1], width), signal.array.dtype))
        return cat([zeros, signal, zeros], -1)
    if mode == "reflect":
        before = flip(narrow(signal, -1, 1, width), -1)
        after = flip(narrow(signal, -1, extent - 1 - width, width), -1)
    elif mode == "circular":
        before = narrow(signal, -1, extent - width, width)
        after = narrow(signal, -1, 0, width)
    else:
        shape = (*signal.array.shape[:-1], width)
        before = narrow(signal, -1, 0, 1).expand(shape)
        after = narrow(signal, -1, extent - 1, 1).expand(shape)
    return cat([before, signal, after], -1)


@operator(_sample_stft, torch=None)
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """The spectra of overlapping stretches of a real signal, as pairs.

    Shapes: (samples) or (batch, samples) gives (..., frequencies, stretches, 2).
    `return_complex=True` is
    refused (CORE-0247), there being no complex numbers.
    Raises CORE-0248, CORE-0253, CORE-0246, CORE-0247.
    """
    if return_complex:
        raise refuse(
            "CORE-0247", operator="stft", argument="return_complex", value="True", known=["False"]
        )
    if input.array.ndim not in (1, 2):
        raise refuse(
            "CORE-0248", operator="stft", shape=list(input.shape), wanted="one or two axes"
        )
    signal = floating(input)
    hop = _hop("stft", n_fft, hop_length)
    cut = _full_window("stft", n_fft, win_length, window, signal)
    if center:
        signal = _padded(signal, n_fft // 2, pad_mode)
    if signal.array.shape[-1] < n_fft:
        raise refuse(
            "CORE-0253", operator="stft", argument="n_fft", value=n_fft,
            wanted=f"at most the signal's length, {signal.array.shape[-1]}",
        )  # fmt: skip
    parts = unfold(signal, -1, n_fft, hop)
    if cut is not None:
        parts = mul(parts, cut)
    norm = "ortho" if normalized else None
    if onesided is None or onesided:
        found = rfft(parts, norm=norm)
    else:
        zeros = wrap(np.zeros(parts.array.shape, parts.array.dtype))
        found = transform(stack([parts, zeros], -1), norm=norm)
    return transpose(found, -3, -2)


def _sample_istft(rng: np.random.Generator) -> Any:
    window = rng.uniform(0.5, 1, 8)
    yield Sample((rng.normal(size=(5, 6, 2)), 8, 2), {"window": window})
    yield Sample((rng.normal(size=(2, 5, 6, 2)), 8), {"center": False, "length": 14})


@operator(_sample_istft, torch=None)
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal, real, of which `stft` with the same arguments gave the spectra: the
    least-squares one.

    Shapes: (..., frequencies, stretches, 2) gives (..., samples).
    Source: Griffin and Lim (1984), "Signal estimation from modified short-time Fourier transform".
    Raises CORE-0256, CORE-0248, CORE-0253, CORE-0246, CORE-0247, CORE-0257 where windows leave
    gaps.
    """
    if return_complex:
        raise refuse(
            "CORE-0247", operator="istft", argument="return_complex", value="True", known=["False"]
        )
    held = check_pairs("istft", input)
    if held.array.ndim not in (3, 4):
        raise refuse(
            "CORE-0248", operator="istft", shape=list(input.shape), wanted="three or four axes"
        )
    hop = _hop("istft", n_fft, hop_length)
    half = onesided is None or onesided
    frequencies = n_fft // 2 + 1 if half else n_fft
    if held.array.shape[-3] != frequencies:
        raise refuse(
            "CORE-0246", operator="istft", sizes=[held.array.shape[-3]], extent=frequencies
        )
    alone = held.array.ndim == 3
    spectra = transpose(unsqueeze(held, 0) if alone else held, -3, -2)
    norm = "ortho" if normalized else None
    if half:
        parts = inverse_half(spectra, n_fft, norm=norm)
    else:
        parts = inverse_transform(spectra, norm=norm).select(-1, 0)
    cut = _full_window("istft", n_fft, win_length, window, parts)
    if cut is None:
        cut = wrap(np.ones(n_fft, parts.array.dtype))
    count = parts.array.shape[1]
    extent = n_fft + hop * (count - 1)
    whole = fold_back(mul(parts, cut), (parts.array.shape[0], extent), 1, n_fft, hop)
    squares = mul(cut, cut).expand(1, count, n_fft)
    envelope = fold_back(squares, (1, extent), 1, n_fft, hop)
    begin = n_fft // 2 if center else 0
    end = begin + length if length is not None else extent - (n_fft // 2 if center else 0)
    stop = min(end, extent)
    whole = narrow(whole, 1, begin, stop - begin)
    envelope = narrow(envelope, 1, begin, stop - begin)
    if not envelope.array.size or float(np.abs(envelope.array).min()) < 1e-11:
        raise refuse("CORE-0257", operator="istft")
    signal = div(whole, envelope)
    if end > stop:
        rest = np.zeros((signal.array.shape[0], end - stop), signal.array.dtype)
        signal = cat([signal, wrap(rest)], 1)
    return squeeze(signal, 0) if alone else signal
