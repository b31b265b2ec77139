"""Encoders and decoders of attention and feed-forward layers.

Source: Vaswani et al., "Attention Is All You Need", 2017 (arXiv 1706.03762); PyTorch,
`torch.nn.Transformer`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.attention import MultiheadAttention
from numbat.nn.containers import ModuleList
from numbat.nn.dropout import Dropout
from numbat.nn.linear import Linear
from numbat.nn.module import Module
from numbat.nn.normalisation import LayerNorm
from numbat.tensors.dtypes import as_dtype, get_default_dtype
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise refuse(
            "CORE-0608", module="Transformer", argument="activation", value=given,
            wanted="relu, gelu or a function",
        )  # fmt: skip
    return lambda x: getattr(F, given)(x)


def _no_later_mask(size: int, dtype: Any = None) -> Tensor:
    """(size, size): minus infinity above the diagonal, zero elsewhere."""
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    return wrap(np.triu(np.full((size, size), -np.inf), 1).astype(chosen.numpy))


def _causal(mask: Tensor | None, given: bool | None, sequence: Tensor, batch_first: bool) -> bool:
    """Whether a mask keeps each position from later ones; looked up in the mask where it is not
    said."""
    if given is True or mask is None:
        return given is True
    if given is False or mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        return False
    size = sequence.shape[1 if batch_first and sequence.ndim == 3 else 0]
    if mask.shape[0] != size or not mask.dtype.is_floating_point:
        return False
    return bool(np.array_equal(mask.array, _no_later_mask(size, mask.dtype).array))


class _Layer(Module):
    """What encoder and decoder layers share: the feed-forward part."""

    def _feed_forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return found


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward part, each with a residual and a layer norm.

    Input: (L, N, d_model), (N, L, d_model) with `batch_first`, or (L, d_model). With `norm_first`
    the norms come before their parts.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The input's shape."""
        x = src
        options = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._self_attention(self.norm1(x), *options)
            found: Tensor = x + self.dropout2(self._feed_forward(self.norm2(x)))
            return found
        x = self.norm1(x + self._self_attention(x, *options))
        found = self.norm2(x + self.dropout2(self._feed_forward(x)))
        return found

    def _self_attention(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        attended = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False,
            is_causal=is_causal,
        )  # fmt: skip
        found: Tensor = self.dropout1(attended[0])
        return found


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward part, each with residual and norm.

    Inputs: targets (T, N, d_model) and memory (S, N, d_model), or as `batch_first` says.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, dtype=dtype
            )
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The targets' shape."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            normed = self.norm1(x)
            x = x + self._attention(self.self_attn, self.dropout1, normed, normed, *own)
            x = x + self._attention(
                self.multihead_attn, self.dropout2, self.norm2(x), memory, *other
            )
            found: Tensor = x + self.dropout3(self._feed_forward(self.norm3(x)))
            return found
        x = self.norm1(x + self._attention(self.self_attn, self.dropout1, x, x, *own))
        x = self.norm2(x + self._attention(self.multihead_attn, self.dropout2, x, memory, *other))
        found = self.norm3(x + self.dropout3(self._feed_forward(x)))
        return found

    @staticmethod
    def _attention(
        attention: Module, dropout: Module, x: Tensor, memory: Tensor, mask: Tensor | None,
        padding: Tensor | None, is_causal: bool,
    ) -> Tensor:  # fmt: skip
        attended = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False,
            is_causal=is_causal,
        )  # fmt: skip
        out: Tensor = dropout(attended[0])
        return out


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, and a norm after them."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:  # fmt: skip
        """The input's shape."""
        batch_first = bool(len(self.layers)) and self.layers[0].self_attn.batch_first
        causal = _causal(mask, is_causal, src, batch_first)
        out = src
        for layer in self.layers:
            out = layer(
                out, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask
            )
        return out if self.norm is None else self.norm(out)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, and a norm after them."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The targets' shape."""
        batch_first = bool(len(self.layers)) and self.layers[0].self_attn.batch_first
        causal = _causal(tgt_mask, tgt_is_causal, tgt, batch_first)
        out = tgt
        for layer in self.layers:
            out = layer(
                out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """An encoder and a decoder; weights of more than one axis are Xavier-uniform.

    Raises CORE-0609 where source and target differ in batch or features.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: tuple[Any, ...] = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(*options)
            encoder_norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            custom_encoder = TransformerEncoder(encoder_layer, num_encoder_layers, encoder_norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*options)
            decoder_norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, decoder_norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for one in self.parameters():
            if one.ndim > 1:
                init.xavier_uniform_(one)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The target's shape."""
        batch = 0 if self.batch_first else 1
        alike = src.ndim == tgt.ndim and (src.ndim == 2 or src.shape[batch] == tgt.shape[batch])
        if not alike or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise refuse(
                "CORE-0609", module="Transformer", shape=list(tgt.shape),
                wanted=f"the batch of the source, {list(src.shape)}, and {self.d_model} features",
            )  # fmt: skip
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        found: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip
        return found

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): minus infinity where a position would see a later one, zero elsewhere."""
        return _no_later_mask(sz, dtype)
