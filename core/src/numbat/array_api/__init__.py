"""The Python array API standard, version 2024.12, over numbat's tensors: `numbat.array_api`.

Functions take and give `numbat.Tensor`; gradients flow as through numbat's own. What differs from
the standard, because PyTorch's shape comes first: `x.size` is a method, Python's operators promote
tensors of no axes as PyTorch does (the functions here follow the standard), and the element types
complex64, complex128 and uint64 do not exist.
"""

from __future__ import annotations

import math as _math

from numbat.array_api import fft as fft
from numbat.array_api import linalg as linalg
from numbat.array_api.creating import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from numbat.array_api.elementwise import *
from numbat.array_api.elementwise import __all__ as _elementwise
from numbat.array_api.inspecting import __array_namespace_info__
from numbat.array_api.laying import *
from numbat.array_api.laying import __all__ as _laying
from numbat.array_api.reducing import *
from numbat.array_api.reducing import __all__ as _reducing
from numbat.array_api.typing import (
    astype,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from numbat.tensors.dtypes import bool_ as bool
from numbat.tensors.dtypes import (
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
)

__array_api_version__ = "2024.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "arange", "asarray", "astype", "bool",
    "can_cast", "e", "empty", "empty_like", "eye", "fft", "finfo", "float32", "float64",
    "from_dlpack", "full", "full_like", "iinfo", "inf", "int8", "int16", "int32", "int64",
    "isdtype", "linalg", "linspace", "meshgrid", "nan", "newaxis", "ones", "ones_like", "pi",
    "result_type", "tril", "triu", "uint8", "uint16", "uint32", "zeros", "zeros_like",
    *_elementwise, *_laying, *_reducing,
]  # fmt: skip
