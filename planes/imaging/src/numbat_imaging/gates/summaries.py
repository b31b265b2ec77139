"""What people see first: one screen of an inspection, and a contact sheet, for every form."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydicom import Dataset
from rich.console import Console

from numbat_gates import Check, gate
from numbat_imaging.inspection import Inspection, inspect
from numbat_imaging.output.contact_sheet import contact_sheet
from numbat_imaging.output.inspection_table import show
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.other_objects import dose
from numbat_imaging.phantoms.reading import folder_of_fault
from numbat_imaging.phantoms.vendor_forms import grids, mosaics
from numbat_imaging.volume import read_series

_SCAN = Phantom(shape=(24, 20, 10), spacing_mm=(2.0, 2.5, 4.0), volumes=3)
_TIMES = Layout(dimensions=("StackID", "InStackPositionNumber", "TemporalPositionIndex"))

#: One scan in every form that can hold it.
_FORMS: dict[str, Callable[[Phantom], list[Dataset]]] = {
    "Siemens mosaic": mosaics,
    "UIH grid": grids,
    "enhanced multi-frame": lambda phantom: [enhanced_object(phantom.slices(), _TIMES)],
}
_WIDTH = 160


@gate(
    "IMG-G33",
    phase=2,
    discharges=["IMG-R033"],
    title="One screen and one picture tell every form rightly",
)
def summaries(check: Check) -> None:
    single = _sheet(_SCAN.slices())
    for form, write in _FORMS.items():
        datasets = write(_SCAN)
        check.equal(f"contact sheet of a {form}: the scan's own", _sheet(datasets), single)
        found = _inspected(datasets)
        check.equal(f"form of a {form}", [stack.form for stack in found.stacks], [form])
        text = _screen(found)
        shown = (form.removesuffix(" multi-frame"), "24×20×10×3 time", "2×2.5×4", "axial L/P/S")
        for part in (*shown, ", no unit"):
            check.true(f"the screen of a {form} tells {part}", part in text, measured=text)
    _dose(check)
    _inverted(check)
    _refused(check)
    _one_screen(check)


def _dose(check: Check) -> None:
    phantom = replace(_SCAN, volumes=1)
    found = _inspected(dose(phantom, [4.0 * k for k in range(10)]))
    text = _screen(found)
    for part in ("multi-frame with offsets", "24×20×10", "×0.001", "GY"):
        shown = part.replace("multi-frame with offsets", "with offsets")
        check.true(f"the screen of a dose tells {part}", shown in text, measured=text)


def _inverted(check: Check) -> None:
    """MONOCHROME1 is shown white for low values, in every form alike."""
    pictures = []
    for write in (lambda phantom: phantom.slices(), *_FORMS.values()):
        datasets = write(_SCAN)
        for ds in datasets:
            ds.PhotometricInterpretation = "MONOCHROME1"
        pictures.append(_sheet(datasets))
    check.equal("inverted grey looks the same in every form", len(set(pictures)), 1)
    check.true("inverted grey is not shown as grey", pictures[0] != _sheet(_SCAN.slices()))


def _refused(check: Check) -> None:
    for name, code, words in (
        ("mosaic-without-csa", "IMG-1607", "mosaic"),
        ("two-slabs", "IMG-1207", "slice"),
        ("cine", "IMG-1601", "frames"),
    ):
        found = inspect(folder_of_fault(name))
        text = _screen(found)
        check.true(f"{name}: the screen tells {code}", code in text, measured=text)
        check.true(f"{name}: and why, in words", words in text, measured=text)
        records = json.loads(json.dumps(found.to_dict()))["files"]["records"]
        check.equal(f"{name}: so does the JSON", {r["code"] for r in records}, {code})


def _one_screen(check: Check) -> None:
    """Forty stacks of long names keep to a line each."""
    slices: list[Dataset] = []
    for number in range(40):
        phantom = Phantom(
            shape=(8, 8, 3),
            series=f"series {number}",
            series_number=number + 1,
            series_description=f"T2 TSE SAG WITH A LONG NAME OF THE PROTOCOL {number}",
        )
        slices += phantom.slices()
    lines = _screen(_inspected(slices)).splitlines()
    check.equal("lines of forty stacks", len(lines), 1 + 40 + 1)
    check.at_most("width of the widest", max(map(len, lines)), _WIDTH, "characters")


def _sheet(datasets: Sequence[Dataset]) -> bytes:
    with TemporaryDirectory() as folder:
        write_datasets([_windowed(ds) for ds in datasets], folder)
        volume = read_series(folder)
    return np.asarray(contact_sheet(volume)).tobytes()


def _windowed(ds: Dataset) -> Dataset:
    # An enhanced object states a window in its groups; all forms are looked at through one.
    items = [group.FrameVOILUTSequence[0] for group in _groups(ds)]
    for item in items or [ds]:
        item.WindowCenter, item.WindowWidth = "5000", "10000"
    return ds


def _groups(ds: Dataset) -> list[Dataset]:
    both = (
        *ds.get("SharedFunctionalGroupsSequence", ()),
        *ds.get("PerFrameFunctionalGroupsSequence", ()),
    )
    return [group for group in both if "FrameVOILUTSequence" in group]


def _inspected(datasets: Sequence[Dataset]) -> Inspection:
    with TemporaryDirectory() as folder:
        write_datasets(datasets, Path(folder))
        return inspect(folder)


def _screen(found: Inspection) -> str:
    text = io.StringIO()
    show(found, Console(file=text, width=_WIDTH, color_system=None))
    return text.getvalue()
