"""Reading a named fault as a user would: written to a folder, then read, inspected or converted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from numbat_imaging.phantoms import FAULTS

if TYPE_CHECKING:
    from numbat_imaging.conversion import Conversion
    from numbat_imaging.inspection import Inspection
    from numbat_imaging.series.instance import Instance
    from numbat_imaging.volume import Volume


@cache
def _shelf() -> TemporaryDirectory[str]:
    # Removed when the process ends; a fault has the same bytes at each writing, so once is enough.
    return TemporaryDirectory(prefix="numbat-faults-")


def folder_of_fault(name: str) -> Path:
    """A folder with the files of the scan that FAULTS calls `name`; not to be written into."""
    folder = Path(_shelf().name) / name
    if not folder.is_dir():
        FAULTS[name].write(folder)
    return folder


def read_fault(name: str, **options: Any) -> Volume:
    """`read_series` on the scan that FAULTS calls `name`; raises what that raises."""
    from numbat_imaging.volume import read_series

    return read_series(folder_of_fault(name), **options)


def instance_of_fault(name: str) -> Instance:
    """The header values of the first file of the scan that FAULTS calls `name`."""
    from numbat_imaging.intake.files import FileRef
    from numbat_imaging.intake.headers import read_header
    from numbat_imaging.series.instance import instance_from_header

    header = read_header(FileRef(str(min(folder_of_fault(name).iterdir()))))
    assert header is not None
    return instance_from_header(header)


def read_all_of_fault(name: str, **options: Any) -> list[Volume]:
    """`read_volumes` on the scan that FAULTS calls `name`; raises what that raises."""
    from numbat_imaging.volume import read_volumes

    return read_volumes(folder_of_fault(name), **options)


def inspect_fault(name: str, **options: Any) -> Inspection:
    """`inspect` on the scan that FAULTS calls `name`."""
    from numbat_imaging.inspection import inspect

    return inspect(folder_of_fault(name), **options)


def convert_fault(name: str, out: Path | None = None, **options: Any) -> Conversion:
    """`convert` on the scan that FAULTS calls `name`, into `out` or a folder that goes away."""
    from numbat_imaging.conversion import convert

    with TemporaryDirectory() as folder:
        return convert(folder_of_fault(name), out or Path(folder), **options)
