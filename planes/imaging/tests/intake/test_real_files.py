"""Public files, malformed ones among them: each is a header, not DICOM, or a typed refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydicom.misc import is_dicom

from numbat_gates import corpus
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_registries import Refusal

SETS = ("fuzz_malformed", "pydicom_data", "misc_dicom", "encapsulation", "dcm2niix_qa")

#: By CASES.tsv malformed by design in a way that leaves no whole header.
BROKEN = {
    "TC0233_rows_US_as_UL.dcm": "IMG-1010",
    "TC0345_deflate_corrupt.dcm": "IMG-1010",
    "TC0383_no_dicm.dcm": "IMG-1010",
    "TC0401_invalid_ts.dcm": "IMG-1015",
    "TC0537_meta_0003_vr_4242.dcm": "IMG-1010",
    "TC0969_midvalue_truncation.dcm": "IMG-1011",
    "TC1149_odd_len_len1.dcm": "IMG-1010",
}


def folder_of(name: str) -> Path:
    folder = corpus(f"imaging/{name}")
    if folder is None:
        pytest.skip(f"the corpus imaging/{name} is not here")
    return folder


@pytest.mark.parametrize("name", SETS)
def test_no_file_is_lost(name: str) -> None:
    lost = []
    for path in sorted(folder_of(name).rglob("*")):
        if not path.is_file():
            continue
        try:
            header = read_header(FileRef(str(path)))
        except Refusal as refusal:
            assert refusal.code.startswith("IMG-10")  # noqa: PT017 (any other code is a fault)
            continue
        if header is None and is_dicom(path):
            lost.append(path.name)
    assert lost == []


def test_broken_files_are_refused_by_code() -> None:
    folder = folder_of("fuzz_malformed")
    for name, code in BROKEN.items():
        (path,) = folder.rglob(name)
        with pytest.raises(Refusal) as caught:
            read_header(FileRef(str(path)))
        assert (name, caught.value.code) == (name, code)


def test_the_letters_dicm_inside_a_bare_data_set() -> None:
    path = folder_of("misc_dicom") / "dcm4che" / "no_preamble_dicm_in_data"
    header = read_header(FileRef(str(path)))
    assert header is not None
    assert header.dataset.StationName == "DICMA1"
    assert [found.code for found in header.notices] == ["IMG-1014"]
