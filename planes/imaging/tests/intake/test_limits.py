"""Bounds of the intake: what is refused, and what just fits."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pydicom import Dataset
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_registries import Refusal

MOST = DEFAULT_LIMITS.text_bytes


def holding(keyword: str, vr: str, value: bytes) -> Dataset:
    tag = Tag(keyword)
    return Dataset({tag: RawDataElement(tag, vr, len(value), value, 0, False, True)})


def code_of(read: Any) -> str:
    with pytest.raises(Refusal) as caught:
        read()
    return caught.value.code


def test_a_text_is_read_up_to_its_bound() -> None:
    assert (
        len(elements.text(holding("PatientName", "PN", b"A" * MOST), "PatientName") or "") == MOST
    )
    longer = holding("PatientName", "PN", b"A" * (MOST + 2))
    assert code_of(lambda: elements.text(longer, "PatientName")) == "IMG-1012"
    assert code_of(lambda: elements.texts(longer, "PatientName")) == "IMG-1012"
    unbounded = holding("TextValue", "UT", b"A" * (MOST + 2))
    assert len(elements.text(unbounded, "TextValue") or "") == MOST + 2


def test_items_are_counted_before_they_are_decoded(explicit: Any) -> None:
    empty = explicit.item(b"")
    most = DEFAULT_LIMITS.items
    full = holding("ReferencedImageSequence", "SQ", empty * most)
    assert len(elements.sequence(full, "ReferencedImageSequence")) == most
    beyond = holding("ReferencedImageSequence", "SQ", empty * (most + 1))
    code = code_of(lambda: elements.sequence(beyond, "ReferencedImageSequence"))
    assert code == "IMG-1012"


def test_one_item_is_decoded_without_the_others(explicit: Any) -> None:
    good = explicit.item(explicit.element(0x00080100, "SH", b"B1"))
    bad = explicit.item(b"\x08\0\0\1ZZ\0\0")
    ds = holding("ReferencedImageSequence", "SQ", good + bad + good)
    raw = ds.get_item(Tag("ReferencedImageSequence"))
    assert isinstance(raw, RawDataElement)
    items = elements.RawItems(raw, ds)
    assert len(items) == 3
    assert items[2][0][Tag(0x00080100)].value == b"B1"
    assert code_of(lambda: items[1]) == "IMG-1012"
    assert code_of(items.all) == "IMG-1012"


def test_a_packed_file_is_believed_up_to_a_ratio(tmp_path: Path, explicit: Any) -> None:
    path = tmp_path / "packed"
    for length, refused in ((DEFAULT_LIMITS.ratio_floor_bytes - 2048, False), (1 << 30, True)):
        head = explicit.file(explicit.identity() + explicit.pixels(b"", length=length))
        path.write_bytes(gzip.compress(head, mtime=0))
        ref = FileRef(str(path))
        if refused:
            assert code_of(lambda ref=ref: read_header(ref)) == "IMG-1007"
        else:
            header = read_header(ref)
            assert header is not None
            assert header.pixel is not None


def test_a_packed_stream_ends_where_it_is_no_longer_believed(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(bytes(32 << 20), mtime=0))
    believed = DEFAULT_LIMITS.believed_bytes(path.stat().st_size)
    assert believed == DEFAULT_LIMITS.ratio_floor_bytes
    with FileRef(str(path)).open() as stream:
        assert len(stream.read(believed)) == believed
    with FileRef(str(path)).open() as stream:
        assert code_of(stream.read) == "IMG-1007"
    with FileRef(str(path)).open() as stream:
        assert code_of(lambda: stream.seek(believed + 1)) == "IMG-1007"
