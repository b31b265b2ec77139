"""What is DICOM is told by content alone, and nothing that only looks like it is taken for it."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from numbat_imaging.intake.content import identify
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.intake.structure import EXPLICIT_BE, EXPLICIT_LE, IMPLICIT_LE
from numbat_registries import Refusal


def test_the_mark_is_believed(explicit: Any) -> None:
    form = identify(explicit.file(), complete=True)
    assert form is not None
    assert form.meta == 132


def test_file_meta_information_without_preamble(explicit: Any) -> None:
    form = identify(explicit.file()[132:], complete=True)
    assert form is not None
    assert form.meta == 0


def test_a_bare_data_set_is_found_in_each_encoding(explicit: Any, implicit: Any, big: Any) -> None:
    for encoder, syntax in (
        (explicit, EXPLICIT_LE),
        (implicit, IMPLICIT_LE),
        (big, EXPLICIT_BE),
    ):
        form = identify(encoder.identity() + encoder.pixels(), complete=True)
        assert form is not None
        assert (form.meta, form.data, form.syntax) == (None, 0, syntax)


def test_a_data_set_without_any_identifier_is_not_dicom(explicit: Any) -> None:
    body = explicit.element(0x00080060, "CS", b"CT") + explicit.element(0x00080070, "LO", b"AB")
    assert identify(body, complete=True) is None


def test_an_identifier_out_of_a_run_of_elements_is_not_dicom(explicit: Any) -> None:
    # Elements must ascend: the identifier comes too late to prove anything.
    body = explicit.element(0x00080060, "CS", b"CT") + explicit.element(0x00080005, "CS", b"AB")
    assert identify(body + explicit.element(0x00200010, "SH", b"1 "), complete=True) is None


def test_text_with_the_letters_at_the_place_of_the_mark_is_not_dicom() -> None:
    text = ("x" * 128 + "DICM is how every DICOM file goes on. " * 20).encode()
    assert identify(text, complete=True) is None


def test_the_letters_inside_the_data_do_not_mislead(explicit: Any) -> None:
    # A bare data set with DICM at offset 128, as one public file has it.
    start = explicit.element(0x00080016, "UI", b"1.2.840.10008.5.1.4.1.1.2\0")
    name = b"A" * (128 - len(start) - 8) + b"DICMA1  "
    body = (
        start
        + explicit.element(0x00081010, "SH", name)
        + explicit.element(0x0020000D, "UI", b"2.25.7")
    )
    assert body[128:132] == b"DICM"
    form = identify(body, complete=True)
    assert form is not None
    assert form.meta is None
    assert form.fault is None


def test_a_mark_with_rubbish_behind_it_is_broken_dicom(tmp_path: Path) -> None:
    path = tmp_path / "rubbish"
    path.write_bytes(bytes(128) + b"DICM" + bytes(range(200, 256)) * 4)
    with pytest.raises(Refusal) as caught:
        read_header(FileRef(str(path)))
    assert caught.value.code == "IMG-1010"


@pytest.mark.parametrize("shift", [-3, -1, 1, 5, 64])
def test_a_shifted_preamble_is_broken_dicom(shift: int, tmp_path: Path, explicit: Any) -> None:
    whole = explicit.file(uid="1.2.840.10008.1.2.1")
    path = tmp_path / "shifted"
    path.write_bytes(whole[-shift:] if shift < 0 else bytes(shift) + whole)
    with pytest.raises(Refusal) as caught:
        read_header(FileRef(str(path)))
    assert caught.value.code == "IMG-1010"


def other_formats() -> dict[str, bytes]:
    """Files of other formats, some of which hold DICOM."""
    image = Image.fromarray(np.arange(4096, dtype=np.uint8).reshape(64, 64))
    made = {}
    for kind in ("JPEG", "PNG", "TIFF", "BMP", "GIF"):
        stream = io.BytesIO()
        image.save(stream, kind)
        made[kind] = stream.getvalue()
    nifti = bytearray(352)
    nifti[:4] = (348).to_bytes(4, "little")
    nifti[344:348] = b"n+1\0"
    made["NIfTI"] = bytes(nifti) + bytes(1000)
    made["NIfTI big-endian"] = (348).to_bytes(4, "big") + bytes(1400)
    made["empty"] = b""
    made["one byte"] = b"\x08"
    made["zeros"] = bytes(5000)
    made["eights"] = b"\x08\x00" * 3000
    made["text"] = b"(0008,0016) UI 1.2.840.10008.5.1.4.1.1.2\n" * 40
    made["JSON"] = b'{"00080016": {"vr": "UI", "Value": ["1.2.840.10008.5.1.4.1.1.2"]}}'
    made["HL7"] = b"MSH|^~\\&|RIS|HOSP|PACS|HOSP|20260101||ORM^O01|1|P|2.5\r" * 9
    rng = random.Random(5)
    made["noise"] = rng.randbytes(20_000)
    return made


@pytest.mark.parametrize("kind", sorted(other_formats()))
def test_other_formats_are_not_dicom(kind: str) -> None:
    assert identify(other_formats()[kind][:16384], complete=True) is None


def test_noise_that_begins_like_group_8_is_not_dicom() -> None:
    rng = random.Random(7)
    starts = (
        b"\x08\x00",
        b"\x00\x08",
        b"\x08\x00\x05\x00CS",
        b"\x02\x00\xff\xff",
        b"\x08\x00\x05\x00",
    )
    for _ in range(400):
        assert identify(rng.choice(starts) + rng.randbytes(3000), complete=True) is None


def test_containers_of_dicom_are_not_dicom_themselves(explicit: Any) -> None:
    whole = explicit.file()
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        info = tarfile.TarInfo("a.dcm")
        info.size = len(whole)
        archive.addfile(info, io.BytesIO(whole))
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("a.dcm", whole)
    assert identify(tar.getvalue()[:16384], complete=True) is None
    assert identify(packed.getvalue()[:16384], complete=True) is None


def test_none_of_the_files_that_pydicom_reads_is_lost(bundled: Path) -> None:
    from pydicom.misc import is_dicom

    lost = []
    for path in sorted(bundled.rglob("*")):
        if path.is_file() and is_dicom(path):
            try:
                if read_header(FileRef(str(path))) is None:
                    lost.append(path.name)
            except Refusal:
                continue
    assert lost == []
