"""What the namespace says of itself, by the array API standard."""

from __future__ import annotations

from typing import Any

from numbat.array_api.typing import DEFAULT_INT, kinds_of
from numbat.tensors import dtypes
from numbat.tensors.device import CPU, Device, check_device

_CLAIMED = {
    one.name: one
    for one in (
        dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
        dtypes.uint16, dtypes.uint32, dtypes.float32, dtypes.float64,
    )
}  # fmt: skip


class _Info:
    """Capabilities, devices and element types."""

    def capabilities(self) -> dict[str, Any]:
        """What the namespace can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where tensors are made."""
        return CPU

    def devices(self) -> list[Device]:
        """Where tensors can be."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The types that are taken where none is named."""
        check_device(device)
        return {
            "real floating": dtypes.get_default_dtype(), "integral": DEFAULT_INT,
            "indexing": dtypes.int64,
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The types of a kind, or all."""
        check_device(device)
        kinds = None if kind is None else {kind} if isinstance(kind, str) else set(kind)
        return {
            name: one for name, one in _CLAIMED.items() if kinds is None or kinds & kinds_of(one)
        }


def __array_namespace_info__() -> _Info:
    """What the namespace says of itself."""
    return _Info()
