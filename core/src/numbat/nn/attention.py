"""Attention over several heads as a module; its weights have torch's packed names."""

from __future__ import annotations

from typing import Any

from numbat.nn import init
from numbat.nn.linear import Linear
from numbat.nn.module import Module
from numbat.nn.multihead import multi_head_attention_forward
from numbat.nn.parameter import Parameter
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that torch gives the projection behind the heads."""


class MultiheadAttention(Module):
    """softmax(q k / sqrt(width)) v in `num_heads` heads, between projections.

    `in_proj_weight`: (3 embed_dim, embed_dim), or `q_proj_weight`, `k_proj_weight`, `v_proj_weight`
    where keys or values have other sizes (`kdim`, `vdim`). Inputs: (L, N, E), (N, L, E) with
    `batch_first`, or (L, E).

    Raises CORE-0608 where the heads do not divide the features.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise refuse(
                "CORE-0608", module="MultiheadAttention", argument="num_heads",
                value=str(num_heads), wanted=f"a divisor of embed_dim, {embed_dim}",
            )  # fmt: skip
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(*shape, dtype=dtype, device=device))

        apart = not self._qkv_same_embed_dim
        for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(
                f"{name}_proj_weight", parameter(embed_dim, size) if apart else None
            )
        self.register_parameter(
            "in_proj_weight", None if apart else parameter(3 * embed_dim, embed_dim)
        )
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, dtype=dtype
        )
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            self.bias_k = parameter(1, 1, embed_dim)
            self.bias_v = parameter(1, 1, embed_dim)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier-uniform weights, zero biases; `bias_k` and `bias_v` Xavier-normal."""
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """What was attended to, of the query's shape, and the weights or None."""
        turned = self.batch_first and query.ndim == 3
        if turned:
            same_key, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        out, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turned else out), weights
