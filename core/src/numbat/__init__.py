"""The engine of numbat: tensors, automatic differentiation and training, in the shape of
PyTorch."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

# What overflows or divides by zero becomes inf or NaN, as everywhere in this kind of engine;
# numpy's warnings of it are muted for numbat's own lines alone.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"numbat\.")

from numbat.tensors import storage

storage.install()

from numbat import autograd
from numbat.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from numbat.kernels.pool import get_num_threads, set_num_threads
from numbat.ops import *
from numbat.random import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from numbat.tensors import methods as _methods
from numbat.tensors.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from numbat.tensors.device import Device as device
from numbat.tensors.dtypes import (
    DType as dtype,
)
from numbat.tensors.dtypes import (
    bfloat16,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
)
from numbat.tensors.dtypes import bool_ as bool
from numbat.tensors.dtypes import float16 as half
from numbat.tensors.dtypes import float32 as float
from numbat.tensors.dtypes import float64 as double
from numbat.tensors.dtypes import int16 as short
from numbat.tensors.dtypes import int32 as int
from numbat.tensors.dtypes import int64 as long
from numbat.tensors.interchange import from_dlpack
from numbat.tensors.printing import get_printoptions, printoptions, set_printoptions
from numbat.tensors.promotion import can_cast, promote_types, result_type
from numbat.tensors.storage import empty_cache, memory_stats, reset_peak_memory
from numbat.tensors.tensor import Tensor

if TYPE_CHECKING:
    from numbat import amp, array_api, fft, linalg, nn, optim, zoo

_LATER = {"amp", "array_api", "fft", "linalg", "nn", "optim", "zoo"}
"""Packages that are imported when they are first asked for."""


def __getattr__(name: str) -> object:
    if name in _LATER:
        from importlib import import_module

        return import_module("numbat." + name)
    if name == "autocast":
        from numbat.amp import autocast

        return autocast
    if name == "__version__":
        from importlib.metadata import version

        return version("numbat-core")
    raise AttributeError(f"module 'numbat' has no attribute {name!r}")
