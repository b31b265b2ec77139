"""Headers: every encoding, the pixel offset to the byte, and bounds that hold."""

from __future__ import annotations

import gzip
import pickle
import tracemalloc
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest
from pydicom import Dataset, dcmread

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import Header, read_header
from numbat_imaging.intake.limits import Limits
from numbat_registries import Refusal

UNDEFINED = 0xFFFFFFFF
DEFLATED = "1.2.840.10008.1.2.1.99"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def run(data: bytes, **options: Any) -> Header | None:
        path = tmp_path / "a file of no name"
        path.write_bytes(data)
        return read_header(FileRef(str(path), root=str(tmp_path)), **options)

    return run


def refused(read: Any, data: bytes, **options: Any) -> Any:
    with pytest.raises(Refusal) as caught:
        read(data, **options)
    return caught.value.diagnostic


def pixels_of(header: Header) -> bytes:
    assert header.pixel is not None
    with header.ref.open() as stream:
        stream.seek(header.pixel.offset)
        return stream.read(header.pixel.length if header.pixel.length is not None else -1)


def test_the_pixel_value_is_where_the_header_says(
    read: Any, explicit: Any, implicit: Any, big: Any
) -> None:
    for encoder in (explicit, implicit, big):
        header = read(encoder.file())
        assert (header.little_endian, header.implicit) == (encoder.order == "<", encoder.implicit)
        assert header.transfer_syntax_uid == encoder.uid
        assert elements.integer(header.dataset, "Rows") == 2
        assert header.pixel.keyword == "PixelData"
        assert header.pixel.length == 8
        assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"
        assert "PixelData" not in header.dataset
        assert header.notices == ()


@pytest.mark.parametrize(
    ("tag", "vr", "keyword"),
    [(0x7FE00008, "OF", "FloatPixelData"), (0x7FE00009, "OD", "DoubleFloatPixelData")],
)
def test_float_pixel_data(read: Any, explicit: Any, tag: int, vr: str, keyword: str) -> None:
    head = (0x7FE0).to_bytes(2, "little") + (tag & 0xFFFF).to_bytes(2, "little")
    body = explicit.identity() + head + vr.encode() + b"\0\0" + (8).to_bytes(4, "little") + bytes(8)
    header = read(explicit.file(body))
    assert (header.pixel.keyword, header.pixel.vr, header.pixel.length) == (keyword, vr, 8)


def test_encapsulated_pixels_have_no_length(read: Any, explicit: Any) -> None:
    fragments = explicit.item(b"") + explicit.item(b"\xff\xd8\xff\xd9") + explicit.sequence_end()
    body = explicit.identity() + explicit.element(0x7FE00010, "OB", fragments, length=UNDEFINED)
    header = read(explicit.file(body, uid="1.2.840.10008.1.2.4.50"))
    assert header.pixel.length is None
    assert pixels_of(header) == fragments
    assert header.transfer_syntax_uid == "1.2.840.10008.1.2.4.50"


def test_an_icon_in_a_sequence_is_not_the_image(read: Any, explicit: Any) -> None:
    icon = explicit.item(explicit.pixels(b"\7\7"), undefined=True) + explicit.sequence_end()
    body = (
        explicit.element(0x00080016, "UI", b"1.2.84")
        + explicit.element(0x00880200, "SQ", icon, length=UNDEFINED)
        + explicit.pixels()
    )
    header = read(explicit.file(body))
    assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"
    (item,) = elements.sequence(header.dataset, "IconImageSequence")
    assert elements.binary(item, "PixelData") == b"\7\7"


def test_a_deflated_data_set_is_inflated_by_its_ref(read: Any, explicit: Any) -> None:
    engine = zlib.compressobj(wbits=-15)
    body = (
        explicit.identity() + explicit.element(0x00104000, "UT", b"x" * 50_000) + explicit.pixels()
    )
    packed = engine.compress(body) + engine.flush()
    header = read(explicit.file(packed, uid=DEFLATED))
    assert header.pixel.offset > 50_000
    assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"
    assert header.file_size_bytes is None
    again = read_header(header.ref)
    assert again is not None
    assert again.dataset == header.dataset
    assert pixels_of(pickle.loads(pickle.dumps(header))) == b"\1\0\2\0\3\0\4\0"


def test_a_cut_or_damaged_deflate_stream_is_refused(read: Any, explicit: Any) -> None:
    engine = zlib.compressobj(wbits=-15)
    body = explicit.identity() + explicit.element(0x00104000, "UT", bytes(range(256)) * 80)
    packed = engine.compress(body + explicit.pixels()) + engine.flush()
    assert refused(read, explicit.file(packed[:40], uid=DEFLATED)).code == "IMG-1020"
    assert refused(read, explicit.file(b"\xff" * 40, uid=DEFLATED)).code == "IMG-1020"


def test_a_gzipped_file_is_known_by_content(read: Any, explicit: Any) -> None:
    header = read(gzip.compress(explicit.file()))
    assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"
    assert read(gzip.compress(b"a letter of no interest")) is None
    assert refused(read, gzip.compress(explicit.file())[:60]).code == "IMG-1020"


def test_a_missing_transfer_syntax_is_inferred_and_told(
    read: Any, explicit: Any, implicit: Any, big: Any
) -> None:
    for encoder in (explicit, implicit, big):
        header = read(encoder.file(uid=""))
        assert header.transfer_syntax_uid == encoder.uid
        assert [found.code for found in header.notices] == ["IMG-1014"]
        assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"


def test_a_transfer_syntax_that_the_elements_contradict_is_told(
    read: Any, explicit: Any, implicit: Any
) -> None:
    for encoder, wrong in ((implicit, explicit.uid), (explicit, implicit.uid)):
        header = read(encoder.file(uid=wrong))
        assert header.implicit == encoder.implicit
        assert [found.code for found in header.notices] == ["IMG-1014"]
        assert header.notices[0].fields["declared"] == wrong


def test_a_transfer_syntax_that_is_no_uid_is_refused(read: Any, explicit: Any) -> None:
    for wrong in ("not.a.uid", "1.2.840?10008", "9" * 70):
        assert refused(read, explicit.file(uid=wrong)).code == "IMG-1015"


@pytest.mark.parametrize("end", [133, 140, 150, 170, 195, 215])
def test_a_header_that_ends_early_is_refused(read: Any, explicit: Any, end: int) -> None:
    whole = explicit.file()
    assert refused(read, whole[:end]).code in ("IMG-1010", "IMG-1011")


def test_a_length_beyond_the_file_costs_no_memory(read: Any, explicit: Any) -> None:
    body = explicit.identity() + explicit.element(0x00420011, "OB", b"%PDF", length=0xFFFFFFF0)
    data = explicit.file(body)
    tracemalloc.start()
    diagnostic = refused(read, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert diagnostic.code == "IMG-1011"
    assert diagnostic.fields["tag"] == "(0042,0011)"
    assert peak < 1 << 20


def test_a_deflate_bomb_costs_no_more_memory_than_the_bound(read: Any, explicit: Any) -> None:
    engine = zlib.compressobj(wbits=-15)
    body = explicit.identity() + explicit.element(0x00104000, "UT", b"", length=1 << 30)
    packed = engine.compress(body)
    packed += b"".join(engine.compress(bytes(1 << 20)) for _ in range(64)) + engine.flush()
    data = explicit.file(packed, uid=DEFLATED)
    tracemalloc.start()
    diagnostic = refused(read, data, limits=Limits(header_bytes=4 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert diagnostic.code == "IMG-1013"
    assert peak < 8 << 20


def test_sequences_inside_one_another_are_bounded(read: Any, explicit: Any) -> None:
    def nested(depth: int) -> bytes:
        body = explicit.element(0x00080100, "SH", b"A ")
        for _ in range(depth):
            inner = explicit.item(body, undefined=True) + explicit.sequence_end()
            body = explicit.element(0x00081140, "SQ", inner, length=UNDEFINED)
        return bytes(explicit.file(explicit.identity()[:34] + body))

    header = read(nested(60))
    ds = header.dataset
    for _ in range(60):
        (ds,) = elements.sequence(ds, "ReferencedImageSequence")
    assert elements.text(ds, "CodeValue") == "A"
    diagnostic = refused(read, nested(2000))
    assert diagnostic.code == "IMG-1013"
    assert diagnostic.fields["limit"] == 64


def test_the_number_of_elements_is_bounded(read: Any, implicit: Any) -> None:
    body = b"".join(implicit.element(0x00091000 + n, "LO", b"") for n in range(200))
    assert (
        refused(read, implicit.file(body), limits=Limits(dataset_elements=100)).code == "IMG-1013"
    )
    items = b"".join(implicit.item(b"") for _ in range(200)) + implicit.sequence_end()
    body = implicit.element(0x00081140, "SQ", items, length=UNDEFINED)
    assert refused(read, implicit.file(body), limits=Limits(elements=100)).code == "IMG-1013"


def test_a_header_longer_than_the_first_window_is_read(read: Any, explicit: Any) -> None:
    items = b"".join(
        explicit.item(explicit.element(0x00080100, "SH", b"%04d" % n), undefined=n % 2 == 0)
        for n in range(3000)
    )
    body = (
        explicit.identity()[:34]
        + explicit.element(0x00081140, "SQ", items + explicit.sequence_end(), length=UNDEFINED)
        + explicit.element(0x00104000, "UT", b"y" * 100_001)
        + explicit.pixels()
    )
    header = read(explicit.file(body))
    found = elements.sequence(header.dataset, "ReferencedImageSequence")
    assert [elements.text(item, "CodeValue") for item in found] == [f"{n:04d}" for n in range(3000)]
    assert pixels_of(header) == b"\1\0\2\0\3\0\4\0"


def test_an_unknown_vr_is_refused(read: Any, explicit: Any) -> None:
    body = explicit.identity() + explicit.element(0x00280011, "ZZ", b"\2\0")
    diagnostic = refused(read, explicit.file(body))
    assert diagnostic.code == "IMG-1010"
    assert diagnostic.fields["offset"] == len(explicit.file(explicit.identity()))


def test_an_element_twice_is_refused_unless_it_says_the_same(read: Any, explicit: Any) -> None:
    first = explicit.element(0x00100020, "LO", b"ONE ")
    other = explicit.element(0x00100020, "LO", b"TWO ")
    assert read(explicit.file(explicit.identity() + first + first)) is not None
    assert refused(read, explicit.file(explicit.identity() + first + other)).code == "IMG-1010"


def test_pixel_data_twice_is_refused(read: Any, explicit: Any, big: Any) -> None:
    for encoder in (explicit, big):
        body = encoder.identity() + encoder.pixels() + encoder.pixels()
        assert refused(read, encoder.file(body)).code == "IMG-1010"


def test_stray_delimiters_are_refused_and_zero_padding_is_not(read: Any, explicit: Any) -> None:
    assert refused(read, explicit.file(explicit.identity() + explicit.sequence_end())).code == (
        "IMG-1010"
    )
    for padding in (3, 8, 500, 20_000):
        header = read(explicit.file(explicit.identity() + bytes(padding)))
        assert header.pixel is None
        assert elements.integer(header.dataset, "Rows") == 2


def test_pixel_data_shorter_or_longer_than_declared_is_told(read: Any, explicit: Any) -> None:
    whole = explicit.file()
    short = read(whole[:-3])
    assert [found.code for found in short.notices] == ["IMG-1021"]
    assert short.notices[0].fields["present_bytes"] == 5
    longer = read(whole + bytes(10))
    assert [found.code for found in longer.notices] == ["IMG-1022"]
    assert longer.notices[0].fields["trailing_bytes"] == 10
    padded = read(whole + explicit.element(0xFFFCFFFC, "OB", bytes(10)))
    assert padded.notices == ()


def test_implicit_elements_inside_explicit_ones_are_read(
    read: Any, explicit: Any, implicit: Any
) -> None:
    body = (
        explicit.identity() + implicit.element(0x00280030, "DS", b"0.5\\0.25") + explicit.pixels()
    )
    header = read(explicit.file(body))
    assert elements.decimals(header.dataset, "PixelSpacing", count=2) == (0.5, 0.25)


def test_un_of_undefined_length_is_a_sequence_in_either_form(
    read: Any, explicit: Any, implicit: Any
) -> None:
    for inner in (explicit, implicit):
        items = inner.item(inner.element(0x00080100, "SH", b"A1"), undefined=True)
        value = items + inner.sequence_end()
        body = explicit.identity() + explicit.element(0x00409096, "UN", value, length=UNDEFINED)
        header = read(explicit.file(body))
        (item,) = elements.sequence(header.dataset, "RealWorldValueMappingSequence")
        assert elements.text(item, "CodeValue") == "A1"


def test_an_unknown_character_set_is_told(read: Any, explicit: Any) -> None:
    body = explicit.element(0x00080005, "CS", b"LATIN1") + explicit.identity()
    header = read(explicit.file(body))
    assert [found.code for found in header.notices] == ["IMG-1019"]


def test_every_refusal_names_the_file_by_its_label(
    read: Any, explicit: Any, tmp_path: Path
) -> None:
    diagnostic = refused(read, explicit.file()[:150])
    assert diagnostic.fields["file"] == "a file of no name"
    assert str(tmp_path) not in diagnostic.message


def assert_same(mine: Dataset, theirs: Dataset) -> int:
    tags = set(mine.keys())
    assert tags == set(theirs.keys())
    compared = 0
    for tag in tags:
        try:
            expected = theirs[tag]
        except (NotImplementedError, ValueError, TypeError) as fault:
            with pytest.raises(type(fault)):
                mine[tag]
            continue
        if expected.VR == "SQ":
            items = elements.sequence(mine, int(tag))
            assert len(items) == len(expected.value)
            compared += sum(map(assert_same, items, expected.value))
        else:
            assert mine[tag].VR == expected.VR
            assert repr(mine[tag].value) == repr(expected.value)
        compared += 1
    return compared


def test_the_data_set_is_the_one_that_pydicom_reads(bundled: Path) -> None:
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in sorted(bundled.rglob("*.dcm")):
            try:
                header = read_header(FileRef(str(path)))
            except Refusal:
                continue
            assert header is not None
            with header.ref.stored.open() as stream:
                theirs = dcmread(stream, force=True, stop_before_pixels=True)
            compared += assert_same(header.dataset, theirs)
            compared += assert_same(header.dataset.file_meta, theirs.file_meta)
    assert compared > 5000
