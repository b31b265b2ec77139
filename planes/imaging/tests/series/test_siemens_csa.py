"""CSA headers: what they say, and what becomes of one that is damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging.phantoms.vendor_forms import AXIAL, csa1, csa2, mosaics, protocol
from numbat_imaging.series.forms.siemens_csa import (
    image_entry,
    image_header,
    read_csa,
    series_header,
    slice_centres,
)
from numbat_registries import Refusal

ENTRIES = {"First": ["1"], "Empty": [], "Seven": list("abcdefg"), "Text": ["two words"]}

names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=63)
values = st.lists(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40), max_size=9
)


@pytest.mark.parametrize("write", [csa1, csa2])
def test_every_entry_is_found_by_its_name(write) -> None:  # type: ignore[no-untyped-def]
    found = read_csa(write(ENTRIES))
    assert found == {name: tuple(values) for name, values in ENTRIES.items()}


@settings(deadline=None)
@given(st.dictionaries(names, values, min_size=1, max_size=8))
def test_what_is_written_is_read(entries: dict[str, list[str]]) -> None:
    assert read_csa(csa2(entries)) == {name: tuple(found) for name, found in entries.items()}


def _outcome(content: bytes) -> str:
    try:
        read_csa(content)
    except Refusal as refusal:
        return refusal.code
    return "read"


@settings(deadline=None)
@given(st.binary(max_size=600))
def test_no_bytes_do_anything_but_be_read_or_refused(content: bytes) -> None:
    for head in (b"", b"SV10\4\3\2\1" + struct.pack("<II", 3, 77)):
        assert _outcome(head + content) in ("IMG-1606", "read")


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (8, 0, "0 entries"),
        (8, 5000, "5000 entries"),
        (12, 78, "no mark"),
        (16 + 76, -1, "-1 items"),
        (16 + 76, 1 << 20, "1048576 items"),
        (16 + 80, 0, "no mark"),
        (16 + 84 + 4, -8, "-8 bytes"),
        (16 + 84 + 4, 1 << 30, "1073741824 bytes"),
    ],
)
def test_a_number_that_leads_out_of_the_header_is_refused(at: int, value: int, reason: str) -> None:
    content = csa2(ENTRIES)
    broken = content[:at] + struct.pack("<i", value) + content[at + 4 :]
    with pytest.raises(Refusal) as caught:
        read_csa(broken, element=0x20)
    assert caught.value.code == "IMG-1606"
    assert reason in str(caught.value.diagnostic.fields["reason"])
    assert caught.value.diagnostic.fields["element"] == "(0029,xx20)"


def test_the_last_value_may_lack_its_padding() -> None:
    content = csa2({"Only": ["1", "2", "3", "4", "5", "66"]})
    assert read_csa(content[:-1])["Only"][-1] == "66"


def test_one_entry_is_read_without_the_rest_of_the_header() -> None:
    ds = mosaics(AXIAL)[0]
    assert image_entry(ds, "NumberOfImagesInMosaic") == ("10",)
    assert image_entry(ds, "OfImagesInMosaic") == ()
    assert image_entry(ds, "Nothing") == ()
    element = ds.private_block(0x0029, "SIEMENS CSA HEADER")[0x10]
    element.value = element.value.replace(b"EchoLinePosition", b"\xff" * 16)[:-4]
    assert image_entry(ds, "NumberOfImagesInMosaic") == ("10",)
    ds.remove_private_tags()
    assert image_entry(ds, "NumberOfImagesInMosaic") == ()
    assert image_header(ds) is None
    assert series_header(ds) is None


def test_centres_of_the_protocol_are_in_its_order_and_zeros_are_not_written() -> None:
    text = protocol(AXIAL_CENTRES)
    assert "asSlice[1].sPosition.dSag" not in text
    assert slice_centres({"MrPhoenixProtocol": (text,)}) == AXIAL_CENTRES
    assert slice_centres({"MrProtocol": (f"<XProtocol>\n{text}",)}) == AXIAL_CENTRES


AXIAL_CENTRES = ((1.5, -2.0, 10.25), (0.0, -2.0, 13.25), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no protocol",
        "### ASCCONV BEGIN ###\nsSliceArray.lSize = 3\n### ASCCONV END ###",
        protocol(AXIAL_CENTRES).replace("asSlice[1]", "asSlice[7]"),
        protocol(AXIAL_CENTRES).replace("10.25", "1-2"),
    ],
)
def test_a_protocol_that_is_not_whole_says_nothing(text: str) -> None:
    assert slice_centres({"MrPhoenixProtocol": (text,)}) == ()
