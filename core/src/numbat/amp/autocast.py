"""Autocast: within it, products are computed in 16 bits, and losses (and more) in float32.

    with nb.amp.autocast("cpu", dtype=nb.bfloat16):
        loss = loss_of(model(x), y)
    loss.backward()

Weights stay in float32 (master weights); their casts are recorded, so gradients arrive in float32.
Source: PyTorch 2.13, `torch/amp/autocast_mode.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from numbat.ops.placement import AUTOCAST, TABLES
from numbat.tensors.device import Device
from numbat.tensors.dtypes import as_dtype, bfloat16, float16
from numbat_registries import refuse

F = TypeVar("F", bound=Callable[..., Any])


class autocast:
    """A context and a decorator; contexts nest, and one that is not enabled leaves operators alone.

    Args:
        device_type: the CPU.
        dtype: bfloat16 or float16; bfloat16 when left out.
        enabled: False to compute as outside.
        cache_enabled: keeps the casts of weights up to the end of the outermost context; as outside
            when left out.
        placement: `cpu` or `cuda`, whose table of PyTorch's is followed. That of CUDA computes
            norms, softmax and exponentials in float32 as well.

    Raises CORE-0104 for another device, CORE-0724 for another type, CORE-0726 for another table.
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
        *,
        placement: str = "cpu",
    ) -> None:
        Device(device_type)
        self.fast_dtype = bfloat16 if dtype is None else as_dtype(dtype)
        if self.fast_dtype not in (bfloat16, float16):
            raise refuse(
                "CORE-0724", dtype=self.fast_dtype.name, known=[bfloat16.name, float16.name]
            )
        if placement not in TABLES:
            raise refuse("CORE-0726", placement=str(placement), known=sorted(TABLES))
        self.device = device_type
        self.placement = placement
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> autocast:
        self._before.append((AUTOCAST.table, AUTOCAST.dtype, AUTOCAST.keeps))
        AUTOCAST.table = TABLES[self.placement] if self._enabled else None
        if AUTOCAST.dtype is not self.fast_dtype:
            AUTOCAST.cache.clear()
        AUTOCAST.dtype = self.fast_dtype
        if self._cache_enabled is not None:
            AUTOCAST.keeps = self._cache_enabled
        AUTOCAST.depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        AUTOCAST.depth -= 1
        before = AUTOCAST.dtype
        AUTOCAST.table, AUTOCAST.dtype, AUTOCAST.keeps = self._before.pop()
        if AUTOCAST.depth == 0 or AUTOCAST.dtype is not before:
            AUTOCAST.cache.clear()

    def __call__(self, function: F) -> F:
        @wraps(function)
        def cast(*args: Any, **keywords: Any) -> Any:
            with self:
                return function(*args, **keywords)

        return cast  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether operators are placed in this thread."""
    return AUTOCAST.table is not None


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """The lower precision in this thread."""
    return AUTOCAST.dtype or bfloat16


def clear_autocast_cache() -> None:
    """Forgets the casts of weights, for instance after they were written over within autocast."""
    AUTOCAST.cache.clear()
