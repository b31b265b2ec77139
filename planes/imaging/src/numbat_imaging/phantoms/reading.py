"""Reading a named fault as a user would: written to a folder, then read, inspected or converted."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from numbat_imaging.phantoms import FAULTS

if TYPE_CHECKING:
    from numbat_imaging.conversion import Conversion
    from numbat_imaging.inspection import Inspection
    from numbat_imaging.volume import Volume


def read_fault(name: str, **options: Any) -> Volume:
    """`read_series` on the scan that FAULTS calls `name`; raises what that raises."""
    from numbat_imaging.volume import read_series

    with TemporaryDirectory() as folder:
        FAULTS[name].write(folder)
        return read_series(folder, **options)


def read_all_of_fault(name: str, **options: Any) -> list[Volume]:
    """`read_volumes` on the scan that FAULTS calls `name`; raises what that raises."""
    from numbat_imaging.volume import read_volumes

    with TemporaryDirectory() as folder:
        FAULTS[name].write(folder)
        return read_volumes(folder, **options)


def inspect_fault(name: str, **options: Any) -> Inspection:
    """`inspect` on the scan that FAULTS calls `name`."""
    from numbat_imaging.inspection import inspect

    with TemporaryDirectory() as folder:
        FAULTS[name].write(folder)
        return inspect(folder, **options)


def convert_fault(name: str, out: Path | None = None, **options: Any) -> Conversion:
    """`convert` on the scan that FAULTS calls `name`, into `out` or a folder that goes away."""
    from numbat_imaging.conversion import convert

    with TemporaryDirectory() as folder:
        FAULTS[name].write(Path(folder) / "scan")
        return convert(Path(folder) / "scan", out or Path(folder) / "out", **options)
