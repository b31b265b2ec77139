"""Mixed precision: autocast, and scaling of the loss."""

from numbat.amp.autocast import (
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_enabled,
)
from numbat.amp.scaler import GradScaler

__all__ = [
    "GradScaler", "autocast", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_enabled",
]  # fmt: skip
