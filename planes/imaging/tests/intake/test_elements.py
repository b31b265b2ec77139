"""Typed getters: what is absent is None, what is wrong is refused, what is right is exact."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.dataelem import RawDataElement
from pydicom.sequence import Sequence
from pydicom.tag import Tag

from numbat_imaging.intake import elements
from numbat_registries import Diagnostic, Refusal


def raw(keyword: str | int, vr: str | None, value: bytes, *, little: bool = True) -> Dataset:
    """A data set with one element as it comes from a file."""
    tag = Tag(keyword)
    element = RawDataElement(tag, vr, len(value), value, 0, vr is None, little)
    ds = Dataset({tag: element})
    ds.set_original_encoding(vr is None, little, ["iso8859"])
    return ds


def reason(getter: Any, ds: Dataset, keyword: str | int, **options: Any) -> str:
    with pytest.raises(Refusal) as caught:
        getter(ds, keyword, **options)
    assert caught.value.code == "IMG-1012"
    fields = caught.value.diagnostic.fields
    assert set(fields) == {"tag", "keyword", "vr", "reason"}
    return str(fields["reason"])


def test_absent_and_empty_are_none() -> None:
    for ds in (
        Dataset(),
        raw("PixelSpacing", "DS", b""),
        raw("PixelSpacing", "DS", b"  "),
        raw("PixelSpacing", None, b"\0\0"),
    ):
        assert elements.decimals(ds, "PixelSpacing", count=2) is None
        assert elements.decimal(ds, "PixelSpacing") is None
        assert elements.text(ds, "PixelSpacing") is None
        assert elements.texts(ds, "PixelSpacing") == ()
    assert not elements.has(Dataset(), "PixelSpacing")
    assert not elements.has(raw("PixelSpacing", "DS", b""), "PixelSpacing")
    assert elements.has(raw("PixelSpacing", "DS", b"1\\1 "), "PixelSpacing")
    assert elements.sequence(Dataset(), "ReferencedImageSequence") == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"1\\2\\3 ", (1.0, 2.0, 3.0)),
        (b" -1.5e-3\\+2.\\.25", (-0.0015, 2.0, 0.25)),
        (b"0\\0\\-0.0\0", (0.0, 0.0, 0.0)),
        (b"123456789012345678901234\\1\\1", (1.2345678901234568e23, 1.0, 1.0)),
    ],
)
def test_decimal_strings(value: bytes, expected: tuple[float, ...]) -> None:
    ds = raw("ImagePositionPatient", "DS", value)
    assert elements.decimals(ds, "ImagePositionPatient", count=3) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"NaN\\0\\0", "characters that belong to no number"),
        (b"inf\\0\\0", "characters that belong to no number"),
        (b"1,5\\0\\0", "a decimal comma"),
        (b"1_0\\0\\0", "characters that belong to no number"),
        (b"1e999\\0\\0", "a number that is not finite"),
        (b"1\\2", "2 value(s) where 3 belong"),
        (b"1\\2\\3\\4", "4 value(s) where 3 belong"),
        (b"1\\\\3", "an empty value among others"),
        (b"1-2\\0\\0", "text that is no number"),
        (b"--1\\0\\0", "text that is no number"),
        (b"1" * 5000 + b"\\0\\0", "text that is no number"),
        ("١\\0\\0".encode(), "characters that belong to no number"),
    ],
)
def test_what_is_no_position_is_refused(value: bytes, said: str) -> None:
    ds = raw("ImagePositionPatient", "DS", value)
    assert reason(elements.decimals, ds, "ImagePositionPatient", count=3) == said


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_decimals_come_back_exactly(values: list[float]) -> None:
    text = "\\".join(repr(value) for value in values).encode()
    ds = raw("ImageOrientationPatient", "DS", text)
    assert elements.decimals(ds, "ImageOrientationPatient", count=len(values)) == tuple(values)
    packed = struct.pack(f">{len(values)}d", *values)
    ds = raw("DiffusionGradientOrientation", "FD", packed, little=False)
    assert elements.decimals(ds, "DiffusionGradientOrientation") == tuple(values)


@given(st.binary(max_size=40))
def test_no_bytes_break_a_getter(value: bytes) -> None:
    for keyword, vr in (
        ("ImagePositionPatient", "DS"),
        ("InstanceNumber", "IS"),
        ("Rows", "US"),
        ("SOPInstanceUID", "UI"),
        ("PatientName", "PN"),
        ("ReferencedImageSequence", "SQ"),
        ("DiffusionBValue", "FD"),
        ("SmallestImagePixelValue", None),
    ):
        ds = raw(keyword, vr, value)
        for getter in (
            elements.text,
            elements.texts,
            elements.uid,
            elements.integers,
            elements.decimals,
            elements.sequence,
            elements.binary,
        ):
            try:
                getter(ds, keyword)  # type: ignore[operator]
            except Refusal as refusal:
                said = str(refusal)
                if len(value) > 6 and value.isascii() and value.isalnum():
                    assert value.decode() not in said


def test_a_refusal_never_shows_the_value() -> None:
    ds = raw("PatientWeight", "DS", b"DOE^JOHN")
    with pytest.raises(Refusal) as caught:
        elements.decimal(ds, "PatientWeight")
    assert "DOE" not in str(caught.value)
    assert "DOE" not in str(caught.value.diagnostic.fields)


def test_whole_numbers() -> None:
    assert elements.integer(raw("InstanceNumber", "IS", b"12 "), "InstanceNumber") == 12
    assert elements.integer(raw("InstanceNumber", "IS", b"-7"), "InstanceNumber") == -7
    assert elements.integer(raw("InstanceNumber", "IS", b"12.0"), "InstanceNumber") == 12
    big = raw("Rows", "US", b"\x02\x01", little=False)
    assert elements.integer(big, "Rows") == 0x0201
    assert elements.integer(raw("Rows", None, b"\x02\x01"), "Rows") == 0x0102
    said = reason(elements.integer, raw("InstanceNumber", "IS", b"14.5"), "InstanceNumber")
    assert said == "a fraction where a whole number belongs"
    assert reason(elements.integer, raw("Rows", "US", b"\1\0\2\0"), "Rows") == (
        "2 value(s) where 1 belong"
    )
    assert reason(elements.integer, raw("Rows", "US", b"\1\0\2"), "Rows") == (
        "3 bytes, no multiple of 2"
    )
    assert reason(elements.integer, raw("Rows", "LO", b"12"), "Rows") == (
        "no number where one belongs"
    )


def test_us_or_ss_follows_pixel_representation() -> None:
    ds = raw("SmallestImagePixelValue", None, b"\xff\xff")
    assert elements.integer(ds, "SmallestImagePixelValue") == 65535
    ds.PixelRepresentation = 1
    assert elements.integer(ds, "SmallestImagePixelValue") == -1


def test_uids() -> None:
    for value in (b"1.2.840.10008.1.2\0", b"2.25.1 ", b"1.2.0123"):
        assert elements.uid(raw("SOPInstanceUID", "UI", value), "SOPInstanceUID")
    for value, said in (
        (b"1.2\\1.3", "several UIDs where one belongs"),
        (b"1." * 32 + b"1", "a UID of 65 characters, more than 64"),
        (b"1.2.x", "a UID with characters other than digits and dots"),
        (b"1 2", "a UID with characters other than digits and dots"),
        (b"../../etc/passwd", "a UID with characters other than digits and dots"),
        (b"1..2", "a UID with an empty component"),
        (b".1.2", "a UID with an empty component"),
        (b"1.2.", "a UID with an empty component"),
    ):
        assert reason(elements.uid, raw("SOPInstanceUID", "UI", value), "SOPInstanceUID") == said
    several = raw("RelatedGeneralSOPClassUID", "UI", b"1.2\\1.3\0")
    assert elements.uids(several, "RelatedGeneralSOPClassUID") == ("1.2", "1.3")


def test_text_in_its_character_set() -> None:
    def described(value: bytes, charset: bytes | None) -> tuple[str | None, list[Diagnostic]]:
        ds = raw("SeriesDescription", "LO", value)
        if charset is not None:
            tag = Tag("SpecificCharacterSet")
            ds[tag] = RawDataElement(tag, "CS", len(charset), charset, 0, False, True)  # type: ignore[assignment]
        told: list[Diagnostic] = []
        return elements.text(ds, "SeriesDescription", notices=told), told

    assert described("Schädel".encode("latin-1"), b"ISO_IR 100") == ("Schädel", [])
    assert described("Schädel".encode(), b"ISO_IR 192") == ("Schädel", [])
    assert described("Грудь".encode("iso8859-5"), b"ISO_IR 144") == ("Грудь", [])
    assert described(b"\x1b$B;3ED\x1b(B", b"\\ISO 2022 IR 87") == ("山田", [])
    for charset in (None, b"ISO_IR 192", b"nonsense"):
        value, told = described("Schädel".encode("latin-1"), charset)
        assert value == "Sch�del"
        assert [found.code for found in told] == ["IMG-1018"]
        assert "Sch" not in told[0].message


def test_names_that_differ_only_in_undecodable_bytes_differ() -> None:
    names = [raw("PatientName", "PN", name.encode("latin-1")) for name in ("Müller", "Möller")]
    assert elements.text(names[0], "PatientName") == elements.text(names[1], "PatientName")
    assert elements.distinct(names[0], "PatientName") != elements.distinct(names[1], "PatientName")
    assert elements.distinct(raw("PatientName", "PN", b"A^B "), "PatientName") == "A^B"
    assert elements.distinct(Dataset(), "PatientName") == ""


def test_several_texts() -> None:
    ds = raw("ImageType", "CS", b"ORIGINAL\\PRIMARY \\\\AXIAL ")
    assert elements.texts(ds, "ImageType") == ("ORIGINAL", "PRIMARY", "", "AXIAL")
    assert elements.text(ds, "ImageType") == "ORIGINAL\\PRIMARY\\\\AXIAL"


def test_private_elements_by_creator() -> None:
    ds = Dataset()
    for block, creator in ((0x10, "OTHER"), (0x11, "Philips MR Imaging DD 001")):
        ds.add_new((0x2005, block), "LO", creator)
    ds.add_new((0x2005, 0x110E), "FL", 1.5)
    assert elements.private_tag(ds, 0x2005, "Philips MR Imaging DD 001", 0x0E) == 0x2005110E
    assert elements.decimal(ds, 0x2005110E) == 1.5
    assert elements.private(ds, 0x2005, "Philips MR Imaging DD 001", 0x0F) is None
    assert elements.private(ds, 0x2005, "nobody", 0x0E) is None


def test_private_elements_without_a_written_vr(explicit: Any, implicit: Any) -> None:
    tag = Tag(0x0019, 0x100C)
    creator = Tag(0x0019, 0x0010)
    name = b"SIEMENS MR HEADER "
    for vr in ("UN", None):
        ds = Dataset(
            {
                creator: RawDataElement(creator, vr, len(name), name, 0, vr is None, True),
                tag: RawDataElement(tag, vr, 4, b"1000", 0, vr is None, True),
            }
        )
        assert elements.private(ds, 0x19, "SIEMENS MR HEADER", 0x0C, vr="IS") == 1000
        assert elements.private(ds, 0x19, "SIEMENS MR HEADER", 0x0C) == b"1000"


def test_sequences_and_their_faults(explicit: Any) -> None:
    good = explicit.item(explicit.element(0x00081150, "UI", b"1.2.84"))
    ds = raw("ReferencedImageSequence", "SQ", good * 2)
    found = elements.sequence(ds, "ReferencedImageSequence")
    assert [elements.uid(item, "ReferencedSOPClassUID") for item in found] == ["1.2.84"] * 2
    for value, said in (
        (good[:-2], "the sequence ends inside an item"),
        (good + b"\1\2\3\4\5\6\7\x08", "a sequence holds something that is no item"),
        (good + b"\1\2", "the sequence ends inside an item"),
    ):
        ds = raw("ReferencedImageSequence", "SQ", value)
        assert reason(elements.sequence, ds, "ReferencedImageSequence") == said
    ds = raw("ReferencedImageSequence", "LO", b"text")
    assert reason(elements.sequence, ds, "ReferencedImageSequence") == (
        "no sequence where one belongs"
    )


def test_items_inherit_the_character_set(explicit: Any) -> None:
    item = explicit.item(explicit.element(0x00080104, "LO", "Schädel".encode()))
    ds = raw("ReferencedImageSequence", "SQ", item)
    tag = Tag("SpecificCharacterSet")
    ds[tag] = RawDataElement(tag, "CS", 10, b"ISO_IR 192", 0, False, True)  # type: ignore[assignment]
    (found,) = elements.sequence(ds, "ReferencedImageSequence")
    assert elements.text(found, "CodeMeaning") == "Schädel"


def test_data_sets_made_in_python_are_read_the_same() -> None:
    ds = Dataset()
    ds.ImagePositionPatient = [1.5, -2, 3]
    ds.Rows = 4
    ds.SOPInstanceUID = "2.25.9"
    ds.PatientName = "A^B"
    ds.ImageType = ["ORIGINAL", "PRIMARY"]
    ds.ReferencedImageSequence = Sequence([Dataset()])
    ds.PixelSpacing = None
    assert elements.decimals(ds, "ImagePositionPatient", count=3) == (1.5, -2.0, 3.0)
    assert elements.integer(ds, "Rows") == 4
    assert elements.uid(ds, "SOPInstanceUID") == "2.25.9"
    assert elements.text(ds, "PatientName") == "A^B"
    assert elements.texts(ds, "ImageType") == ("ORIGINAL", "PRIMARY")
    assert len(elements.sequence(ds, "ReferencedImageSequence")) == 1
    assert elements.decimals(ds, "PixelSpacing", count=2) is None


def test_an_unknown_keyword_is_a_fault_of_the_caller() -> None:
    with pytest.raises(KeyError):
        elements.text(Dataset(), "PatientNaem")
