"""Which operators autocast computes in the lower precision, and which in float32: PyTorch's tables.

`place` wraps an operator that stands in a table; outside autocast the wrapper costs one look at a
flag. Source: PyTorch 2.13, `ATen/autocast_mode.h` for CUDA; its CPU table was read off
`torch.autocast("cpu")`, operator by operator, which `tests/parity/test_amp.py` repeats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from numbat.tensors.dtypes import DType
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

F = TypeVar("F", bound=Callable[..., Any])

LOWER, FLOAT32, PROMOTE, REFUSED = "lower", "float32", "promote", "refused"
"""Inputs are cast to the lower precision; to float32; to their widest; the operator is refused."""

AS_GIVEN = "as given"
"""Inputs are not cast, nor by the products that an operator is made of."""

_PRODUCTS = [
    "addbmm", "addmm", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "einsum", "linear", "matmul",
    "mm", "prelu", "scaled_dot_product_attention", "tensordot", "linalg.multi_dot",
    "linalg.vecdot",
]  # fmt: skip

_LOSSES = [
    "cosine_embedding_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "binary_cross_entropy_with_logits", "cross_entropy", "linear_cross_entropy",
]  # fmt: skip

_CPU_FLOAT32 = [
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "binary_cross_entropy", "cdist",
    "cholesky", "cholesky_inverse", "cholesky_solve", "ctc_loss", "grid_sample", "inverse",
    "linalg.cholesky", "linalg.cond", "linalg.eigh", "linalg.eigvalsh", "linalg.inv",
    "linalg.lstsq", "linalg.qr", "linalg.solve", "linalg.svd", "linalg.svdvals", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "nanquantile", "pad", "pinverse", "prod",
    "qr", "quantile", "stft", "svd", "trace", "triangular_solve",
]  # fmt: skip

_CUDA_LOWER = [
    "addmv", "addr", "mv", "gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell",
]  # fmt: skip

_CUDA_FLOAT32 = [
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p",
    "reciprocal", "rsqrt", "sinh", "tan", "pow", "softplus", "layer_norm", "rms_norm",
    "group_norm", "norm", "cosine_similarity", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "interpolate", "prod", "softmax", "log_softmax", "cumprod", "cumsum", "linalg.vector_norm",
    "linalg.matrix_norm", "sum",
]  # fmt: skip

_CUDA_PROMOTE = [
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sample",
    "index_put", "scatter_add", "cat", "stack", "tensordot",
]  # fmt: skip

TABLES: dict[str, dict[str, str]] = {
    "cpu": dict.fromkeys(_PRODUCTS, LOWER)
    | dict.fromkeys([*_LOSSES, *_CPU_FLOAT32], FLOAT32)
    | dict.fromkeys(["cat", "stack", "index_copy"], PROMOTE)
    | dict.fromkeys(["mv", "dot", "vdot", "addmv"], AS_GIVEN),
    "cuda": dict.fromkeys([*_PRODUCTS, *_CUDA_LOWER], LOWER)
    | dict.fromkeys([*_LOSSES, *_CUDA_FLOAT32], FLOAT32)
    | dict.fromkeys(_CUDA_PROMOTE, PROMOTE)
    | {"binary_cross_entropy": REFUSED},
}
"""For each placement, the policy of each operator that has one; the others take what is given."""

_NAMED = frozenset(name for table in TABLES.values() for name in table)


class _Autocast(threading.local):
    """What autocast asks for in this thread; `table` is None outside of it."""

    table: dict[str, str] | None = None
    dtype: DType | None = None
    keeps = True
    depth = 0

    def __init__(self) -> None:
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}


AUTOCAST = _Autocast()


def place(name: str, function: F) -> F:
    """The operator, wrapped where a table names it."""
    if name not in _NAMED:
        return function

    @wraps(function)
    def placed(*args: Any, **keywords: Any) -> Any:
        table = AUTOCAST.table
        if table is None or name not in table:
            return function(*args, **keywords)
        if (name == "pad" and _fills(args, keywords)) or keywords.get("return_indices"):
            return function(*args, **keywords)
        return _run(name, table[name], function, args, keywords)

    return placed  # type: ignore[return-value]


def _fills(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a padding is of a constant, which any type holds."""
    mode = args[2] if len(args) > 2 else keywords.get("mode", "constant")
    return mode in ("constant", "circular")


def _run(
    name: str, policy: str, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    table, dtype = AUTOCAST.table, AUTOCAST.dtype
    assert dtype is not None
    wanted = dtype.numpy
    if policy == REFUSED:
        raise refuse("CORE-0725", operator=name, dtype=dtype.name)
    if policy == FLOAT32 or (policy == PROMOTE and _holds_float32((args, keywords))):
        wanted = np.dtype(np.float32)
    lower = policy == LOWER
    # The operator itself, and what it is made of, runs as it would outside of autocast.
    if policy != AS_GIVEN:
        args, keywords = _cast(args, wanted, lower), _cast(keywords, wanted, lower)
    AUTOCAST.table = None
    try:
        return function(*args, **keywords)
    finally:
        AUTOCAST.table = table


def _eligible(value: Tensor) -> bool:
    array = value.array
    return array.dtype != np.float64 and value.dtype.is_floating_point


def _holds_float32(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.array.dtype == np.float32
    if isinstance(value, dict):
        return any(_holds_float32(one) for one in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_float32(one) for one in value)


def _cast(value: Any, wanted: np.dtype[Any], lower: bool) -> Any:
    """Casts floating tensors, but for float64, also those in sequences."""
    if isinstance(value, Tensor):
        if value.array.dtype == wanted or not _eligible(value):
            return value
        return _lowered(value) if lower else value.to(dtype=wanted)
    if type(value) in (list, tuple):
        return type(value)(_cast(one, wanted, lower) for one in value)
    if type(value) is dict:
        return {key: _cast(one, wanted, lower) for key, one in value.items()}
    return value


def _lowered(value: Tensor) -> Tensor:
    """A tensor in the lower precision; a weight's is kept for its next use within autocast."""
    dtype = AUTOCAST.dtype
    weight = (
        AUTOCAST.keeps
        and value.wants_grad
        and value.node is None
        and value.base is None
        and value.array.dtype == np.float32
    )
    if not weight:
        return value.to(dtype=dtype)
    held = AUTOCAST.cache.get(id(value))
    if held is not None and held[0] is value:
        return held[1]
    cast: Tensor = value.to(dtype=dtype)
    AUTOCAST.cache[id(value)] = (value, cast)
    return cast
