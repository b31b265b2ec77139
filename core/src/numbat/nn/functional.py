"""Operators of neural networks under torch's names."""

from typing import Any


def __getattr__(name: str) -> Any:
    from numbat import ops

    return getattr(ops, name)
