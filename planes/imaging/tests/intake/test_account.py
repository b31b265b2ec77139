"""Every file has one disposition, whoever reads it and in how many processes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from numbat_imaging.intake import elements
from numbat_imaging.intake.account import Disposition, FileAccount, account_of, scan
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import Header
from numbat_imaging.intake.records import FileRecord
from numbat_registries import Refusal, notice, refuse


def uid_of(header: Header) -> str:
    """Module level, so that worker processes can find it."""
    uid = elements.uid(header.dataset, "SOPInstanceUID")
    if uid is None or uid.endswith("13"):
        raise refuse("IMG-1017", keyword="SOPInstanceUID")
    return uid


def study(folder: Path, encoder: Any, count: int = 40) -> None:
    for number in range(count):
        body = encoder.identity(number) + encoder.pixels()
        (folder / f"{number:03d}").write_bytes(encoder.file(body))
    (folder / "notes.txt").write_bytes(b"nothing here")
    (folder / "broken").write_bytes(encoder.file()[:150])
    (folder / "gone").symlink_to(folder / "nowhere")


def test_every_file_has_one_disposition(tmp_path: Path, explicit: Any) -> None:
    study(tmp_path, explicit)
    uids, account = scan(tmp_path, convert=uid_of)
    assert uids == [f"2.25.{n}" for n in range(40) if n != 13]
    assert account.counts == {"used": 39, "set-aside": 1, "refused": 2, "not-dicom": 1}
    assert {record.ref.label: record.code for record in account.having("refused")} == {
        "013": "IMG-1017", "broken": "IMG-1011",
    }  # fmt: skip
    assert sum(account.counts.values()) == len(list(tmp_path.iterdir()))


def test_workers_change_nothing(tmp_path: Path, explicit: Any) -> None:
    study(tmp_path, explicit, 90)
    one = scan(tmp_path, convert=uid_of, digests=True)
    told: list[tuple[int, int]] = []
    two = scan(
        tmp_path,
        convert=uid_of,
        digests=True,
        workers=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert two[0] == one[0]
    assert two[1].to_dict() == one[1].to_dict()
    assert told[-1] == (92, 92)
    assert told == sorted(told)


def test_headers_come_without_a_converter_and_cross_processes(
    tmp_path: Path, explicit: Any
) -> None:
    study(tmp_path, explicit)
    headers, _ = scan(tmp_path, workers=2)
    assert [elements.uid(header.dataset, "SOPInstanceUID") for header in headers] == [
        f"2.25.{n}" for n in range(40)
    ]


def test_codes_may_set_a_file_aside(tmp_path: Path, explicit: Any) -> None:
    study(tmp_path, explicit)
    _, account = scan(tmp_path, convert=uid_of, aside=("IMG-1017",))
    assert account.counts == {"used": 39, "set-aside": 2, "refused": 1, "not-dicom": 1}
    first = account.first_refusal()
    assert first is not None
    assert first.code == "IMG-1011"


def test_the_account_as_json_has_no_absolute_paths(tmp_path: Path, explicit: Any) -> None:
    study(tmp_path, explicit, 3)
    data = explicit.file()
    (tmp_path / "z.zip").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a", data)
    (tmp_path / "g").write_bytes(gzip.compress(data, mtime=0))
    _, account = scan(tmp_path, digests=True)
    text = json.dumps(account.to_dict(), allow_nan=False)
    assert str(tmp_path) not in text
    records = {record["file"]: record for record in account.to_dict()["records"]}
    assert records["z.zip!/a"]["sha256"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert records["g"]["disposition"] == "used"
    assert account.to_dict()["files"] == len(records) == 9


def test_the_series_code_revises_the_account(tmp_path: Path, explicit: Any) -> None:
    study(tmp_path, explicit, 3)
    _, account = scan(tmp_path)
    used = [record.ref for record in account.having("used")]
    revised = account.revised(
        {
            used[0]: notice("IMG-1004", file=used[0].label, reason="a copy"),
            used[1]: refuse("IMG-1017", keyword="SOPInstanceUID"),
        }
    )
    assert revised.counts == {"used": 1, "set-aside": 2, "refused": 2, "not-dicom": 1}
    assert account.counts["used"] == 3


def test_an_account_that_does_not_add_up_is_a_failure() -> None:
    a, b = FileRef("/a"), FileRef("/b")
    record = FileRecord(a, Disposition.USED)
    assert account_of([a], [record]) == FileAccount((record,))
    for found, records in (([a, b], [record]), ([], [record]), ([a], [record, record])):
        with pytest.raises(Refusal) as caught:
            account_of(found, records)
        assert caught.value.code == "IMG-1023"


def test_a_converter_that_fails_otherwise_is_a_bug_and_is_seen(
    tmp_path: Path, explicit: Any
) -> None:
    study(tmp_path, explicit, 1)

    def fails(header: Header) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan(tmp_path, convert=fails)


@pytest.fixture
def medium(tmp_path: Path, bundled: Path) -> Path:
    """A DICOMDIR with every file that it lists and one that it does not, and no more."""
    source = bundled / "dicomdirtests"
    for name in ("DICOMDIR", "77654033", "98892001", "98892003"):
        path = source / name
        if path.is_dir():
            shutil.copytree(path, tmp_path / name)
        else:
            shutil.copy(path, tmp_path / name)
    shutil.copy(bundled / "CT_small.dcm", tmp_path / "unlisted")
    return tmp_path


def test_a_dicomdir_stands_for_its_medium(medium: Path) -> None:
    _, account = scan(medium / "DICOMDIR")
    assert account.counts == {"used": 32, "set-aside": 1, "refused": 0, "not-dicom": 0}
    assert [record.code for record in account.having("set-aside")] == ["IMG-1009"]
    assert account.to_dict() == scan(medium)[1].to_dict()
    (medium / "DICOMDIR").rename(medium / "some other name")
    assert scan(medium / "some other name")[1].counts["used"] == 32


def test_records_without_their_file_are_told_one_by_one(medium: Path) -> None:
    (medium / "77654033" / "CR1" / "6154").unlink()
    shutil.rmtree(medium / "98892003" / "MR700")
    _, account = scan(medium, workers=2)
    missing = account.having("refused")
    assert {record.code for record in missing} == {"IMG-1008"}
    assert len(missing) == 8
    assert missing[0].ref.label == "77654033/CR1/6154"
    assert account.counts["used"] == 32 - 8


def test_a_medium_copied_in_lower_case_or_zipped_is_whole(medium: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in sorted(medium.rglob("*")):
            if path.is_file():
                archive.write(path, "cd/" + str(path.relative_to(medium)).lower() + ";1")
    packed = tmp_path / "elsewhere"
    packed.mkdir()
    (packed / "cd.zip").write_bytes(stream.getvalue())
    _, account = scan(packed)
    assert account.counts == {"used": 32, "set-aside": 2, "refused": 0, "not-dicom": 0}


def test_a_record_that_leads_out_of_the_medium_is_refused(tmp_path: Path, explicit: Any) -> None:
    inside = tmp_path / "medium"
    inside.mkdir()
    (tmp_path / "SECRET").write_bytes(explicit.file())
    item = explicit.item(
        explicit.element(0x00041430, "CS", b"IMAGE ")
        + explicit.element(0x00041500, "CS", b"..\\SECRET ")
    )
    meta = explicit.element(0x00020002, "UI", b"1.2.840.10008.1.3.10")
    syntax = explicit.element(0x00020010, "UI", b"1.2.840.10008.1.2.1\0")
    records = explicit.element(0x00041220, "SQ", item)
    (inside / "DICOMDIR").write_bytes(bytes(128) + b"DICM" + meta + syntax + records)
    _, account = scan(inside / "DICOMDIR")
    assert account.counts == {"used": 0, "set-aside": 1, "refused": 1, "not-dicom": 0}
    assert account.having("refused")[0].code == "IMG-1008"
