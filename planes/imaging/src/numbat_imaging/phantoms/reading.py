"""Reading a named fault as a user would: written to a folder, then read, inspected or converted."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from numbat_imaging.phantoms import FAULTS

if TYPE_CHECKING:
    from numbat_imaging.conversion import Conversion
    from numbat_imaging.inspection import Inspection
    from numbat_imaging.series.instance import Instance
    from numbat_imaging.volume import Volume


#: A folder that several processes share; without it each process has its own.
SHELF = "NUMBAT_PHANTOM_SHELF"


@cache
def _own_shelf() -> TemporaryDirectory[str]:
    # Removed when the process ends.
    return TemporaryDirectory(prefix="numbat-phantoms-")


def folder_of_fault(name: str) -> Path:
    """A folder with the files of the scan that FAULTS calls `name`; not to be written into.

    A fault has the same bytes at each writing, so it is written once.
    """
    shelf = Path(os.environ.get(SHELF) or _own_shelf().name)
    folder = shelf / name
    if not folder.is_dir():
        shelf.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(dir=shelf, prefix="."))
        FAULTS[name].write(draft)
        try:
            draft.rename(folder)
        except OSError:
            # Another process was first; its files are the same.
            shutil.rmtree(draft)
    return folder


def read_fault(name: str, **options: Any) -> Volume:
    """`read_series` on the scan that FAULTS calls `name`; raises what that raises."""
    from numbat_imaging.volume import read_series

    return read_series(folder_of_fault(name), **options)


def instance_of_fault(name: str) -> Instance:
    """The first slice of the first file of the scan that FAULTS calls `name`."""
    from numbat_imaging.intake.files import FileRef
    from numbat_imaging.intake.headers import read_header
    from numbat_imaging.series.instance import instances_from_header

    header = read_header(FileRef(str(min(folder_of_fault(name).iterdir()))))
    assert header is not None
    return instances_from_header(header)[0]


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
