"""The extension `fft` of the array API standard, of what needs no complex element type."""

from __future__ import annotations

from typing import Any

from numbat.ops import fourier as own
from numbat.tensors.device import check_device
from numbat.tensors.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform over `n` samples `d` apart."""
    check_device(device)
    return own.fftfreq(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of a transform of reals over `n` samples `d` apart."""
    check_device(device)
    return own.rfftfreq(n, d, dtype=dtype)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """A copy with the frequency zero in the middle."""
    return own.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return own.ifftshift(x, axes)
