"""GPT-2: a decoder of pre-norm attention and feed-forward blocks, its head tied to its embedding.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. Parameters have
the names of the public checkpoints (`transformer.h.0.attn.c_attn.weight`), linear weights (out,
in).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numbat import nn
from numbat.nn import functional as F
from numbat.nn import init
from numbat.tensors.creation import arange
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["GPT2", "GPT2Config"]


@dataclass(frozen=True)
class GPT2Config:
    """The sizes of a GPT-2; the defaults are those of the smallest, 124 million parameters.

    Attributes:
        context: the longest sequence, in tokens.
        vocabulary: how many tokens there are.
        padded_vocabulary: rows of the embedding, a multiple of 128 for the kernels; no token names
            the last ones.
    """

    context: int = 1024
    vocabulary: int = 50257
    padded_vocabulary: int = 50304
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.0


class CausalSelfAttention(nn.Module):
    """Attention of each token to those up to itself; queries, keys and values in one projection."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, tokens, width)."""
        batch, tokens, width = x.shape
        packed = self.c_attn(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        dropped = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=dropped, is_causal=True)
        found: Tensor = self.c_proj(attended.transpose(1, 2).reshape(batch, tokens, width))
        return found


class FeedForward(nn.Module):
    """Four times the width, GELU by its tanh form, and back."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, 4 * config.width)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """The input's shape."""
        found: Tensor = self.c_proj(self.gelu(self.c_fc(x)))
        return found


class Block(nn.Module):
    """Attention and feed-forward, each after a layer norm and with a residual."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = FeedForward(config)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """The input's shape."""
        x = x + self.drop(self.attn(self.ln_1(x)))
        found: Tensor = x + self.drop(self.mlp(self.ln_2(x)))
        return found


class GPT2(nn.Module):
    """The language model.

    Weights begin as N(0, 0.02), those that end a residual branch as N(0, 0.02 / sqrt(2 layers)),
    biases as zero.
    """

    def __init__(self, config: GPT2Config | None = None) -> None:
        super().__init__()
        config = config or GPT2Config()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.padded_vocabulary, config.width),
                "wpe": nn.Embedding(config.context, config.width),
                "h": nn.ModuleList([Block(config) for _ in range(config.layers)]),
                "ln_f": nn.LayerNorm(config.width),
            }
        )
        self.lm_head = nn.Linear(config.width, config.padded_vocabulary, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight
        self._draw()

    def _draw(self) -> None:
        ends = 0.02 / math.sqrt(2 * self.config.layers)
        for name, one in self.named_parameters():
            if name.endswith("bias"):
                init.zeros_(one)
            elif name.endswith("c_proj.weight"):
                init.normal_(one, 0.0, ends)
            elif one.ndim > 1:
                init.normal_(one, 0.0, 0.02)

    def features(self, tokens: Tensor) -> Tensor:
        """What the head is given, (batch, tokens, width). Raises CORE-0609 beyond the context."""
        length = tokens.shape[1]
        if length > self.config.context:
            raise refuse(
                "CORE-0609", module="GPT2", shape=list(tokens.shape),
                wanted=f"at most {self.config.context} tokens",
            )  # fmt: skip
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](arange(length))
        for block in parts["h"]:
            x = block(x)
        found: Tensor = parts["ln_f"](x)
        return found

    def forward(
        self, tokens: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Logits of the last token (batch, 1, vocabulary) and None, or None and the loss of
        `targets`.

        `tokens` and `targets`: (batch, tokens), whole numbers; a target of -1 counts for nothing.
        With targets the logits are never formed as a whole.
        """
        x = self.features(tokens)
        if targets is None:
            return self.lm_head(x[:, -1:]), None
        loss = F.linear_cross_entropy(
            x.reshape(-1, self.config.width), self.lm_head.weight, targets.reshape(-1),
            ignore_index=-1,
        )  # fmt: skip
        return None, loss

    def load_public(self, state: Mapping[str, Any]) -> None:
        """Loads a public checkpoint: its linear weights are (in, out), its vocabulary is not
        padded.

        Raises CORE-0604 where names or shapes are not the model's.
        """
        turned = ("c_attn.weight", "c_fc.weight", "c_proj.weight")
        own: dict[str, Any] = {}
        for name, value in state.items():
            if name.endswith((".attn.bias", ".attn.masked_bias")):
                continue  # the causal mask, which is no parameter
            key = name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"
            array = np.asarray(value.array if isinstance(value, Tensor) else value)
            if key.endswith(turned):
                array = array.T
            if key in ("transformer.wte.weight", "lm_head.weight"):
                more = self.config.padded_vocabulary - len(array)
                array = np.pad(array, ((0, more), (0, 0)))
            own[key] = array
        own.setdefault("lm_head.weight", own.get("transformer.wte.weight"))
        self.load_state_dict({key: one for key, one in own.items() if one is not None})
