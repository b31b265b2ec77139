"""Where memory is. The CPU now; a second backend is one more name here and one more kernel
module."""

from __future__ import annotations

from typing import Any

from numbat_registries import refuse


class Device:
    """A place of memory and computation, `cpu` being the only one this build has.

    Raises CORE-0104 for any other.
    """

    __slots__ = ("index", "type")

    def __init__(self, name: Any) -> None:
        kind, _, index = str(name).partition(":")
        if kind != "cpu" or index not in ("", "0"):
            raise refuse("CORE-0104", device=str(name), known=["cpu"])
        self.type = kind
        self.index = int(index) if index else None

    def __repr__(self) -> str:
        return f"device(type='{self.type}')"

    def __str__(self) -> str:
        return self.type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.type == self.type

    def __hash__(self) -> int:
        return hash(self.type)


CPU = Device("cpu")


def check_device(device: Any) -> None:
    """Refuses, with CORE-0104, a device that this build has not."""
    if device is not None and device is not CPU and not isinstance(device, Device):
        Device(device)
