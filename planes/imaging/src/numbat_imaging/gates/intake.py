"""Any folder, zip, DICOMDIR or list is read by content, and every file is accounted for."""

import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import nibabel
import pydicom

from numbat_gates import Check, gate
from numbat_imaging.intake.account import scan
from numbat_imaging.intake.headers import Header
from numbat_imaging.phantoms import Phantom
from numbat_imaging.phantoms.reading import folder_of_fault
from numbat_imaging.volume import read_series

_BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"
_MEDIA = _BUNDLED / "dicomdirtests"


@gate(
    "IMG-G01",
    phase=1,
    discharges=["IMG-R001", "IMG-R002"],
    title="Every file is found by its content and accounted for",
)
def intake(check: Check) -> None:
    with TemporaryDirectory() as folder:
        work = Path(folder)
        _forms(check, work)
        _content(check, work)
    _account(check)
    with check.refuses("IMG-1801", "an empty folder"), TemporaryDirectory() as empty:
        read_series(empty)
    with check.refuses("IMG-1001", "a path where nothing is"):
        read_series("/nowhere/at/all")
    with check.refuses("IMG-1017", "an image without a series"):
        read_series(folder_of_fault("no-series-uid"))


def _uids(headers: list[Header]) -> list[str]:
    return sorted(str(header.dataset.SOPInstanceUID) for header in headers)


def _known_by_pydicom(folder: Path) -> list[str]:
    """An independent list: what pydicom itself reads as an image object below a folder."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and pydicom.misc.is_dicom(path):
            ds = pydicom.dcmread(path, stop_before_pixels=True)
            if "SOPInstanceUID" in ds:
                found.append(str(ds.SOPInstanceUID))
    return sorted(found)


def _forms(check: Check, work: Path) -> None:
    source = check.data(_MEDIA)
    truth = _known_by_pydicom(source)
    headers, _ = scan(source)
    check.equal("a folder gives what pydicom finds there", _uids(headers), truth)
    archive = work / "media.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(source))
    check.equal("a zip gives the same", _uids(scan(archive)[0]), truth)
    files = [path for path in source.rglob("*") if path.is_file()]
    check.equal("a list of files gives the same", _uids(scan(files)[0]), truth)
    listed = _uids(scan(source / "DICOMDIR")[0])
    check.at_least("objects that the DICOMDIR leads to", len(listed), 31)
    check.true("all of them are in the folder", set(listed) <= set(truth))
    check.equal("two processes give the same", _uids(scan(source, workers=2)[0]), truth)


def _content(check: Check, work: Path) -> None:
    truth = Phantom().truth_voxels()
    for name in ("scan.txt", "IMG", "picture.jpg", "ünï cödé", "a.nii.gz"):
        folder = work / f"named {name}"
        folder.mkdir()
        for index, path in enumerate(sorted(folder_of_fault("clean").iterdir())):
            shutil.copy(path, folder / f"{index} {name}")
        check.equal(f"files called {name}", read_series(folder).voxels, truth)
    impostors = work / "impostors"
    impostors.mkdir()
    (impostors / "notes.dcm").write_text("DICM is only a word here\n" * 50)
    (impostors / "empty.dcm").touch()
    (impostors / "zeros.dcm").write_bytes(bytes(4096))
    shutil.copy(next(Path(nibabel.__file__).parent.rglob("example4d.nii.gz")), impostors / "x.dcm")
    headers, account = scan(impostors)
    check.equal("files that are called .dcm and are not", len(headers), 0)
    check.equal("they are not DICOM", account.counts["not-dicom"], 4)


def _account(check: Check) -> None:
    for name, folder in (
        ("pydicom's test files", _BUNDLED),
        ("a phantom", folder_of_fault("report")),
    ):
        _, account = scan(folder)
        files = sum(path.is_file() for path in folder.rglob("*"))
        on_disk = [r for r in account.records if r.ref.member is None and Path(r.ref.path).exists()]
        check.equal(f"one disposition for each file, {name}", len(on_disk), files)
        check.equal(
            f"the counts add up, {name}", sum(account.counts.values()), len(account.records)
        )
        lacking = [r.ref.label for r in account.having("refused") if r.code is None]
        check.equal(f"every refused file has a code, {name}", lacking, [])
