"""Forms that this phase does not read are refused by a code, never read as something else."""

from pathlib import Path

import pydicom

from numbat_gates import Check, gate
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.series.instance import instances_from_header

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"


@gate(
    "IMG-G10",
    phase=1,
    discharges=["IMG-R015"],
    title="What is not read yet is refused by name",
)
def unread_forms(check: Check) -> None:
    for code, name in (
        ("IMG-1601", "cine"),
        ("IMG-1313", "dose-offsets-unanchored"),
        ("IMG-1314", "dose-offsets-short"),
        ("IMG-1607", "mosaic-without-csa"),
        ("IMG-1613", "uih-grid"),
    ):
        with check.refuses(code, name):
            read_fault(name)
    for code, name in (
        ("IMG-1605", "liver_1frame.dcm"),
        ("IMG-1601", "SC_rgb_rle_2frame.dcm"),
        ("IMG-1016", "rtplan.dcm"),
        ("IMG-1016", "test-SR.dcm"),
        ("IMG-1016", "waveform_ecg.dcm"),
    ):
        with check.refuses(code, f"{name} of pydicom"):
            _instance(check.data(_BUNDLED / name))


def _instance(path: Path) -> None:
    header = read_header(FileRef(str(path)))
    if header is not None:
        instances_from_header(header)
