"""Fourier transforms of reals and of complex pairs, as `torch.fft`; see `numbat.ops.fourier`."""

from numbat.ops.fourier import *
from numbat.ops.fourier import __all__ as __all__
