"""Operators of neural networks under torch's names."""

from typing import Any

from numbat.nn.multihead import multi_head_attention_forward as multi_head_attention_forward


def __getattr__(name: str) -> Any:
    from numbat import ops

    return getattr(ops, name)
