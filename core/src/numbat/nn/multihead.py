"""Attention over several heads, as a function: projections, `scaled_dot_product_attention`,
projection.

Source: Vaswani et al., "Attention Is All You Need", 2017 (arXiv 1706.03762); PyTorch,
`torch.nn.functional.multi_head_attention_forward`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat import ops
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = ["additive_mask", "multi_head_attention_forward"]


def additive_mask(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask to be added to scores: True becomes minus infinity; floats stay what they are."""
    if mask is None:
        return None
    if mask.dtype.is_floating_point:
        found: Tensor | None = mask.to(dtype)
        return found
    array = np.zeros(mask.shape, dtype.numpy)
    array[mask.array.astype(bool)] = -np.inf
    return wrap(array)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by one packed weight (3 E, E), in as few products as the inputs
    allow."""
    size = query.shape[-1]
    if key is value:
        if query is key:
            q, k, v = ops.linear(query, weight, bias).chunk(3, -1)
            return q, k, v
        first, rest = weight.split([size, 2 * size])
        biases = (None, None) if bias is None else bias.split([size, 2 * size])
        q = ops.linear(query, first, biases[0])
        k, v = ops.linear(key, rest, biases[1]).chunk(2, -1)
        return q, k, v
    weights = weight.chunk(3)
    three = (None,) * 3 if bias is None else bias.chunk(3)
    q, k, v = (
        ops.linear(one, part, shift)
        for one, part, shift in zip((query, key, value), weights, three, strict=True)
    )
    return q, k, v


def _projected_apart(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Any, Any, Any], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by three weights."""
    three = (None,) * 3 if bias is None else bias.chunk(3)
    q, k, v = (
        ops.linear(one, weight, shift)
        for one, weight, shift in zip(inputs, weights, three, strict=True)
    )
    return q, k, v


def _check_shapes(
    query: Tensor, key: Tensor, embed_dim: int, heads: int, key_padding_mask: Tensor | None
) -> None:
    if query.ndim not in (2, 3) or key.ndim != query.ndim or query.shape[-1] != embed_dim:
        raise refuse(
            "CORE-0609", module="MultiheadAttention", shape=list(query.shape),
            wanted=f"2 or 3 axes for queries and keys alike, the last of {embed_dim}",
        )  # fmt: skip
    if embed_dim % heads:
        raise refuse(
            "CORE-0608", module="MultiheadAttention", argument="num_heads", value=str(heads),
            wanted=f"a divisor of embed_dim, {embed_dim}",
        )  # fmt: skip
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise refuse(
            "CORE-0609", module="MultiheadAttention", shape=list(key_padding_mask.shape),
            wanted=f"a padding mask with {query.ndim - 1} axes",
        )  # fmt: skip


def _full_mask(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, targets: int, keys: int,
    dtype: Any,
) -> Tensor | None:  # fmt: skip
    """Attention and padding masks as one that is added: (batch or 1, heads or 1, targets, keys)."""
    if mask is not None:
        wanted = (targets, keys) if mask.ndim == 2 else (batch * heads, targets, keys)
        if mask.shape != wanted:
            raise refuse(
                "CORE-0609", module="MultiheadAttention", shape=list(mask.shape),
                wanted=f"an attention mask of shape {list(wanted)}",
            )  # fmt: skip
        mask = additive_mask(mask, dtype)
        assert mask is not None
        mask = mask.reshape(
            (1, 1, targets, keys) if mask.ndim == 2 else (batch, heads, targets, keys)
        )
    if padding is not None:
        padding = additive_mask(padding, dtype)
        assert padding is not None
        padding = padding.reshape(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    return mask


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of queries (L, N, E) to keys and values (S, N, E), or of (L, E) to (S, E).

    Gives (L, N, E), and where `need_weights` the weights: (N, L, S) averaged over heads, or
    (N, heads, L, S). `attn_mask`: (L, S) or (N heads, L, S); `key_padding_mask`: (N, S); True keeps
    away, floats are added.

    Raises CORE-0608 where the heads do not divide the features, CORE-0609 for other shapes.
    """
    _check_shapes(query, key, embed_dim_to_check, num_heads, key_padding_mask)
    batched = query.ndim == 3
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    targets, batch, features = query.shape
    if is_causal and attn_mask is None:
        raise refuse(
            "CORE-0608", module="MultiheadAttention", argument="is_causal", value="True",
            wanted="an attn_mask that says so, too",
        )  # fmt: skip
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected_apart((query, key, value), weights, in_proj_bias)
    else:
        assert in_proj_weight is not None
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if bias_k is not None and bias_v is not None:
        k = ops.cat([k, bias_k.expand(1, batch, features)])
        v = ops.cat([v, bias_v.expand(1, batch, features)])
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    width = features // num_heads

    def by_head(one: Tensor) -> Tensor:
        found: Tensor = one.reshape(one.shape[0], batch, num_heads, width).permute(1, 2, 0, 3)
        return found

    q = by_head(q)
    k = by_head(k) if static_k is None else static_k.reshape(batch, num_heads, -1, width)
    v = by_head(v) if static_v is None else static_v.reshape(batch, num_heads, -1, width)
    if add_zero_attn:
        nothing = wrap(np.zeros((batch, num_heads, 1, width), k.array.dtype))
        k, v = ops.cat([k, nothing], 2), ops.cat([v, nothing], 2)
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    if is_causal and key_padding_mask is None and not need_weights:
        mask, causal = None, True
    else:
        mask = _full_mask(
            attn_mask, key_padding_mask, batch, num_heads, targets, k.shape[2], q.dtype
        )
        causal = False
    kept = dropout_p if training else 0.0
    weights_out: Tensor | None = None
    if need_weights:
        attended, weights_out = _explicit(q, k, v, mask, kept)
        weights_out = weights_out.mean(1) if average_attn_weights else weights_out
    else:
        attended = ops.scaled_dot_product_attention(q, k, v, mask, kept, causal)
    out = attended.permute(2, 0, 1, 3).reshape(targets * batch, features)
    out = ops.linear(out, out_proj_weight, out_proj_bias).reshape(targets, batch, -1)
    if not batched:
        out = out.squeeze(1)
        weights_out = None if weights_out is None else weights_out.squeeze(0)
    return out, weights_out


def _explicit(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """Attention whose weights are formed, since they are asked for."""
    scores = (q * (q.shape[-1] ** -0.5)).matmul(k.transpose(-2, -1))
    if mask is not None:
        scores = scores + mask
    weights = ops.softmax(scores, -1)
    if dropout > 0:
        weights = ops.dropout(weights, dropout)
    return weights.matmul(v), weights


def _wider(mask: Tensor | None) -> Tensor | None:
    """A mask with one key more, which is let through."""
    if mask is None:
        return None
    more = wrap(np.zeros((*mask.shape[:-1], 1), mask.array.dtype))
    return ops.cat([mask, more], -1)
