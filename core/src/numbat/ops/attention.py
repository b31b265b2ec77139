"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels import attention as kernels
from numbat.ops.mapping import is_half, weighted
from numbat.ops.registry import Sample, operator
from numbat.ops.softmax import softmax
from numbat.tensors import dtypes
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "scaled_dot_product_attention",
]  # fmt: skip


def _sample_attention(rng: np.random.Generator) -> Any:
    q, k, v = (rng.normal(size=(1, 2, 3, 2)) for _ in range(3))
    yield Sample((q, k, v))
    yield Sample((q, k, v), {"is_causal": True, "scale": 0.5})
    yield Sample((q, k[:, :1], v[:, :1]), {"enable_gqa": True})
    yield Sample((q, k, v, rng.normal(size=(3, 3))))
    yield Sample((q[0], k[0], v[0], np.tril(np.ones((3, 3), bool))))


@operator(
    _sample_attention, torch="nn.functional.scaled_dot_product_attention", method=False, random=True
)
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(scale Q K^T + mask) V.

    Args:
        query: (..., heads, L, E).
        key: (..., heads, S, E).
        value: (..., heads, S, Ev).
        attn_mask: broadcasts to (..., L, S); bool (True: seen) or floating (added to the scores).
        dropout_p: the part of the weights that is dropped.
        is_causal: row i sees the keys up to i.
        scale: the factor of the scores; 1 / sqrt(E) when left out.
        enable_gqa: groups of the query's heads share a head of keys and values.

    A row that sees no key gives zeros. Gives (..., heads, L, Ev).

    Raises CORE-0435 where shapes, types or options do not go together. Source: arXiv 1706.03762.
    """
    _check(query, key, value, attn_mask, is_causal, enable_gqa)
    factor = 1 / math.sqrt(query.array.shape[-1]) if scale is None else scale
    if dropout_p == 0 and (attn_mask is None or not attn_mask.requires_grad):
        arrays = _four_axes(query.array, key.array, value.array)
        if arrays is not None:
            mask = _additive(attn_mask, query, key, arrays[0].shape)
            out, log_sums = kernels.forward(arrays, mask, causal=is_causal, scale=factor)
            kept = (mask, log_sums, is_causal, factor)
            return record(
                out.reshape(query.shape[:-1] + value.shape[-1:]) if query.array.ndim != 4 else out,
                scaled_dot_product_attention_backward, (query, key, value), (query, key, value),
                kept,
                keep_result=True,
            )  # fmt: skip
    return composed(query, key, value, attn_mask, dropout_p, is_causal, factor)


def _check(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, grouped: bool
) -> None:
    q, k, v = query.array.shape, key.array.shape, value.array.shape
    because = ""
    if min(len(q), len(k), len(v)) < 2:
        because = "each needs two axes or more"
    elif q[-1] != k[-1] or k[-2] != v[-2]:
        because = "queries and keys need one width, keys and values one number of rows"
    elif not query.array.dtype == key.array.dtype == value.array.dtype:
        because = "all three need one element type"
    elif mask is not None and is_causal:
        because = "a mask and is_causal exclude each other"
    elif grouped and (min(len(q), len(k)) < 3 or q[-3] % k[-3] or q[-3] % v[-3]):
        because = "the query's heads must be a multiple of those of keys and values"
    if because:
        raise refuse("CORE-0435", query=list(q), key=list(k), value=list(v), because=because)


def _four_axes(*arrays: Array) -> tuple[Array, Array, Array] | None:
    """The arrays as (batches, heads, rows, width) where the kernels take them, else None."""
    ndim = arrays[0].ndim
    if (
        not kernels.AVAILABLE
        or ndim not in (3, 4)
        or any(one.ndim != ndim or not one.size for one in arrays)
    ):
        return None
    if any(one.dtype != np.float32 for one in arrays):
        return None
    four = [one if ndim == 4 else one[:, None] for one in arrays]
    query, key, value = four
    if not query.shape[0] == key.shape[0] == value.shape[0] or key.shape[1] != value.shape[1]:
        return None
    if query.shape[1] % key.shape[1]:
        return None
    query, key, value = (
        one if kernels.readable(one) else np.ascontiguousarray(one) for one in four
    )
    return query, key, value


def _additive(
    mask: Tensor | None, query: Tensor, key: Tensor, shape: tuple[int, ...]
) -> Array | None:
    """A mask as float32 to add, spread by strides of zero over (batches, heads, rows, key rows)."""
    if mask is None:
        return None
    array = mask.array
    if array.dtype.kind == "b":
        array = np.where(array, np.float32(0), np.float32(-np.inf))
    array = np.ascontiguousarray(array, np.float32)
    if query.array.ndim == 3 and array.ndim == 3:
        array = array[:, None]
    keys = key.array.shape[-2]
    if array.ndim == 0 or array.shape[-1] != keys:
        array = np.ascontiguousarray(np.broadcast_to(array, (*array.shape[:-1], keys)))
    return np.broadcast_to(array, (*shape[:3], keys))


def scaled_dot_product_attention_backward(
    node: Node, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = node.unpack()
    mask, log_sums, is_causal, scale = node.values
    if MODE.recording:
        added = None if mask is None else wrap(mask if query.array.ndim == 4 else mask[:, 0])
        return _composed_backward(grad, query, key, value, added, is_causal, scale)
    arrays = _four_axes(query.array, key.array, value.array)
    assert arrays is not None
    out, given = node.unpack_result().array, grad.array
    if query.array.ndim == 3:
        out, given = out[:, None], given[:, None]
    if not kernels.readable(given):
        given = np.ascontiguousarray(given)
    found = kernels.backward(given, arrays, mask, out, log_sums, causal=is_causal, scale=scale)
    if query.array.ndim == 3:
        return tuple(wrap(one[:, 0]) for one in found)  # type: ignore[return-value]
    return tuple(wrap(one) for one in found)  # type: ignore[return-value]


# -- in operators: other types, dropout, gradients of masks, second derivatives --------------------


def composed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
    is_causal: bool,
    scale: float,
) -> Tensor:  # fmt: skip
    """Attention by operators over the whole matrix of scores; the kernel's reference.

    float16 and bfloat16 are computed in float32 and rounded once.
    """
    dtype = query.dtype
    if is_half(query.array.dtype):
        query, key, value = (one.to(dtypes.float32) for one in (query, key, value))
    key, value = _shared(key, query), _shared(value, query)
    weights = _weights(query, key, mask, is_causal, scale)
    if dropout_p > 0:
        from numbat.ops.sampling import dropout

        weights = dropout(weights, dropout_p, True)
    result: Tensor = (weights @ value).to(dtype)
    return result


def _shared(input: Tensor, query: Tensor) -> Tensor:
    """Keys or values with each head repeated for the heads of the query that share it."""
    shape = input.array.shape
    if len(shape) < 3 or len(query.shape) < 3 or shape[-3] in (1, query.shape[-3]):
        return input
    share = query.shape[-3] // shape[-3]
    wide = input.unsqueeze(-3).expand((*shape[:-2], share, *shape[-2:]))
    result: Tensor = wide.reshape((*shape[:-3], query.shape[-3], *shape[-2:]))
    return result


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    scores = (query @ key.transpose(-2, -1)) * scale
    if is_causal:
        rows, keys = scores.shape[-2:]
        mask = wrap(np.tril(np.ones((rows, keys), bool)))
    if mask is not None:
        if mask.array.dtype.kind == "b":
            mask = wrap(np.where(mask.array, 0, -np.inf).astype(scores.array.dtype))
        scores = scores + mask.to(scores.dtype)
        blind = (scores.array == -np.inf).all(axis=-1, keepdims=True)
        if blind.any():
            sees = np.broadcast_to(~blind, scores.shape)
            return weighted(softmax(weighted(scores, sees), -1), sees)
    return softmax(scores, -1)


def _composed_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients in operators, for derivatives of a higher order."""
    wide_key, wide_value = _shared(key, query), _shared(value, query)
    weights = _weights(query, wide_key, mask, is_causal, scale)
    slopes = grad @ wide_value.transpose(-2, -1)
    inner = weights * slopes
    scores = (inner - weights * inner.sum(-1, keepdim=True)) * scale
    return (
        scores @ wide_key,
        _gathered(scores.transpose(-2, -1) @ query, key),
        _gathered(weights.transpose(-2, -1) @ grad, value),
    )


def _gathered(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of shared heads, added up over the heads that share each."""
    shape = input.array.shape
    if len(shape) < 3 or shape[-3] in (1, grad.shape[-3]):
        return grad
    share = grad.shape[-3] // shape[-3]
    result: Tensor = grad.reshape((*shape[:-2], share, *shape[-2:])).sum(-3)
    return result
