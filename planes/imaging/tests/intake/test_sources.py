"""Where files come from: everything that lies there is found once, and nothing else is opened."""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from numbat_imaging.intake.archives import _open_archives
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.intake.limits import Limits
from numbat_imaging.intake.records import Disposition
from numbat_imaging.intake.sources import Found, find_files
from numbat_registries import Refusal


def labels(found: Found) -> list[str]:
    return [ref.label for ref in found.files]


def settled(found: Found) -> dict[str, str | None]:
    return {record.ref.label: record.code for record in found.settled}


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_a_folder_is_searched_to_the_bottom_in_order(tmp_path: Path) -> None:
    for name in ("b/2", "b/10", "a/deep/er/x", ".hidden", "b/.hidden/y", "ä", "b.c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    found = find_files(tmp_path)
    assert labels(found) == [".hidden", "a/deep/er/x", "b/.hidden/y", "b/10", "b/2", "b.c", "ä"]
    assert found == find_files(str(tmp_path) + "/./b/../")
    assert found.settled == ()


def test_a_list_of_anything_counts_each_file_once(tmp_path: Path, explicit: Any) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"y")
    asked = [tmp_path / "b", tmp_path / "sub" / "a", tmp_path / "sub", tmp_path / "b"]
    assert labels(find_files(asked)) == ["b", "sub/a"]
    assert labels(find_files(tmp_path / "b")) == ["b"]
    assert find_files([]).files == ()


def test_a_path_where_nothing_is_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        find_files([tmp_path, tmp_path / "none"])
    assert caught.value.code == "IMG-1001"


def test_links_are_followed_once_and_never_in_a_circle(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "real").mkdir(parents=True)
    outside.mkdir()
    (inside / "real" / "file").write_bytes(b"x")
    (outside / "other").write_bytes(b"y")
    (outside / "back").symlink_to(inside)
    (inside / "a_circle").symlink_to(inside)
    (inside / "a_twin_folder").symlink_to(inside / "real")
    (inside / "a_twin").symlink_to(inside / "real" / "file")
    (inside / "away").symlink_to(outside)
    (inside / "away_again").symlink_to(outside)
    (inside / "nowhere").symlink_to(tmp_path / "none")
    (inside / "itself").symlink_to(inside / "itself")
    found = find_files(inside)
    assert labels(found) == ["away/other", "real/file"]
    assert set(settled(found).values()) == {"IMG-1004"}
    assert sorted(settled(found)) == [
        "a_circle", "a_twin", "a_twin_folder", "away/back", "away_again", "itself", "nowhere",
    ]  # fmt: skip


def test_a_file_that_is_named_through_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert labels(find_files(tmp_path / "link")) == ["link"]


def test_pipes_sockets_and_devices_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        found = find_files(tmp_path)
    assert settled(found) == dict.fromkeys(("device", "pipe", "socket"), "IMG-1003")
    with pytest.raises(Refusal) as caught:
        FileRef(str(tmp_path / "pipe")).open()
    assert caught.value.code == "IMG-1003"


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def closed(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    found = find_files(tmp_path)
    assert settled(found) == {"closed": "IMG-1002"}
    assert found.settled[0].disposition is Disposition.REFUSED
    assert str(tmp_path) not in found.settled[0].detail


def test_a_zip_is_known_by_content_and_looked_into(tmp_path: Path, explicit: Any) -> None:
    data = packed({"s/1": explicit.file(), "s/": b"", "s/readme.txt": b"hello", "0": b""})
    (tmp_path / "not named so").write_bytes(data)
    found = find_files(tmp_path)
    assert labels(found) == [
        "not named so!/0", "not named so!/s/1", "not named so!/s/readme.txt",
    ]  # fmt: skip
    assert settled(found) == {"not named so": "IMG-1009"}
    header = read_header(found.files[1])
    assert header is not None
    assert header.pixel is not None
    with header.ref.open() as stream:
        stream.seek(header.pixel.offset)
        assert stream.read(8) == b"\1\0\2\0\3\0\4\0"
        stream.seek(128)
        assert stream.read(4) == b"DICM"


def test_hostile_member_names_touch_nothing(tmp_path: Path, explicit: Any) -> None:
    names = ["../../escape", "/etc/absolute", "C:\\windows\\x", "a/../../b"]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "z.zip").write_bytes(packed(dict.fromkeys(names, explicit.file())))
    found = find_files(folder)
    assert len(found.files) == 4
    assert all(read_header(ref) is not None for ref in found.files)
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "z.zip"]


def test_two_members_of_one_name_are_two_files(tmp_path: Path, explicit: Any) -> None:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("a", explicit.file())
            archive.writestr("a", b"other")
    (tmp_path / "z.zip").write_bytes(stream.getvalue())
    first, second = find_files(tmp_path).files
    assert (first.label, second.label) == ("z.zip!/a", "z.zip!/a")
    assert first != second
    assert (read_header(first) is None, read_header(second) is None) == (False, True)


def test_zips_inside_zips_are_opened_one_level_deep(tmp_path: Path, explicit: Any) -> None:
    third = packed({"c": explicit.file()})
    second = packed({"b": explicit.file(), "third.zip": third})
    (tmp_path / "first.zip").write_bytes(packed({"a": explicit.file(), "second.zip": second}))
    found = find_files(tmp_path)
    assert labels(found) == ["first.zip!/a", "first.zip!/second.zip!/b"]
    assert all(read_header(ref) is not None for ref in found.files)
    assert settled(found) == {
        "first.zip": "IMG-1009",
        "first.zip!/second.zip": "IMG-1009",
        "first.zip!/second.zip!/third.zip": "IMG-1007",
    }


def test_an_encrypted_member_is_refused_and_the_others_read(tmp_path: Path, explicit: Any) -> None:
    data = bytearray(packed({"a": explicit.file(), "b": explicit.file()}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "z.zip").write_bytes(data)
    found = find_files(tmp_path)
    assert labels(found) == ["z.zip!/b"]
    assert settled(found) == {"z.zip": "IMG-1009", "z.zip!/a": "IMG-1006"}


def test_a_zip_bomb_is_refused_by_what_it_declares(tmp_path: Path) -> None:
    (tmp_path / "z.zip").write_bytes(packed({"bomb": bytes(64 << 20), "fine": b"x"}))
    found = find_files(tmp_path)
    assert labels(found) == ["z.zip!/fine"]
    assert settled(found)["z.zip!/bomb"] == "IMG-1007"
    for limits in (Limits(archive_members=1), Limits(archive_bytes=1 << 20)):
        found = find_files(tmp_path, limits=limits)
        assert found.files == ()
        assert settled(found) == {"z.zip": "IMG-1007"}


def test_a_zip_bomb_that_lies_about_its_size_is_bounded(tmp_path: Path, explicit: Any) -> None:
    # The member declares 600 bytes and unpacks to 32 MiB.
    data = bytearray(packed({"bomb": bytes(128) + b"DICM" + bytes(32 << 20)}))
    central = data.index(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 600)
    data[22:26] = struct.pack("<I", 600)
    (tmp_path / "z.zip").write_bytes(data)
    (ref,) = find_files(tmp_path).files
    tracemalloc.start()
    with pytest.raises(Refusal):
        read_header(ref)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_broken_zips_are_refused(tmp_path: Path, explicit: Any) -> None:
    whole = packed({"a": explicit.file() * 50}, zipfile.ZIP_STORED)
    damaged = bytearray(whole)
    damaged[5000] ^= 0xFF
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "damaged.zip").write_bytes(damaged)
    (tmp_path / "mark.zip").write_bytes(b"PK\x03\x04")
    found = find_files(tmp_path)
    assert settled(found) == {
        "cut.zip": "IMG-1005", "damaged.zip": "IMG-1009", "mark.zip": "IMG-1005",
    }  # fmt: skip
    with found.files[0].open() as stream, pytest.raises(Refusal) as caught:
        stream.read()
    assert caught.value.code == "IMG-1020"


def test_archives_are_opened_once_and_their_number_is_bounded(
    tmp_path: Path, explicit: Any
) -> None:
    for number in range(9):
        (tmp_path / f"{number}.zip").write_bytes(packed({"a": explicit.file()}))
    refs = find_files(tmp_path).files
    streams = [ref.open() for ref in refs]
    assert len(_open_archives) <= 4
    # A stream outlives its archive's place among the open ones.
    assert all(stream.read(132)[128:] == b"DICM" for stream in streams)
    for stream in streams:
        stream.close()


def test_a_zip_of_many_members_is_opened_once(
    tmp_path: Path, explicit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    real = zipfile.ZipFile

    def counted(source: Any) -> zipfile.ZipFile:
        opened.append(source)
        return real(source)

    (tmp_path / "z.zip").write_bytes(packed({f"{n:05d}": explicit.file() for n in range(300)}))
    monkeypatch.setattr(zipfile, "ZipFile", counted)
    headers = [read_header(ref) for ref in find_files(tmp_path).files]
    assert None not in headers
    assert len(headers) == 300
    assert len(opened) == 1


def test_references_sort_label_and_travel(tmp_path: Path) -> None:
    refs = [FileRef("/d/b"), FileRef("/d/a", "y"), FileRef("/d/a"), FileRef("/d/a/c")]
    assert sorted(refs) == [FileRef("/d/a"), FileRef("/d/a", "y"), FileRef("/d/a/c"), refs[0]]
    ref = FileRef("/data/study/x.zip", "in/1", (3,), root="/data")
    assert ref.label == "study/x.zip!/in/1"
    assert pickle.loads(pickle.dumps(ref)) == ref
    assert FileRef("/data/\udce9").label == "/data/\\udce9"
