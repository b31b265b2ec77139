"""CSA headers byte by byte: counts, marks, lengths, protocols; part of IMG-G24."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from pydicom import Dataset

from numbat_gates import Check
from numbat_imaging.series.forms.siemens_csa import (
    image_entry,
    image_header,
    read_csa,
    series_header,
    slice_centres,
)

_SV10 = b"SV10\4\3\2\1"
_Point = tuple[float, float, float]


def csa_headers(check: Check) -> None:
    """Every count, mark and length at the last value that is believed, and at the next one."""
    _counts(check)
    _marks(check)
    _values(check)
    _lengths(check)
    _older_form(check)
    _single_entries(check)
    _elements(check)
    _centres(check)
    _no_centres(check)


def _entry(
    name: str,
    values: Sequence[bytes],
    *,
    multiplicity: int | None = None,
    items: int | None = None,
    mark: int = 77,
    surplus: int | None = None,
    lengths: Sequence[int] | None = None,
) -> bytes:
    """One entry; `surplus` for the older form; `lengths` in place of those of the values."""
    told = len(values) if multiplicity is None else multiplicity
    count = len(values) if items is None else items
    parts = [struct.pack("<64si4siii", name.encode(), told, b"IS", 0, count, mark)]
    for number, value in enumerate(values):
        length = len(value) if lengths is None else lengths[number]
        first, second = (0, length) if surplus is None else (length + surplus, 0)
        parts += [struct.pack("<4i", first, second, 77, 0), value, b"\0" * (-len(value) % 4)]
    return b"".join(parts)


def _header(
    *entries: bytes, count: int | None = None, mark: int = 77, head: bytes = _SV10
) -> bytes:
    told = len(entries) if count is None else count
    return head + struct.pack("<II", told, mark) + b"".join(entries)


def _refused(check: Check, content: bytes, reason: str, *, element: int = 0x10) -> None:
    with check.refuses("IMG-1606", f"a header with {reason}") as caught:
        read_csa(content, element=element)
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        told = (fields["element"], fields["reason"])
        check.equal(f"told of {reason}", told, (f"(0029,xx{element:02X})", reason))


def _counts(check: Check) -> None:
    empty = [_entry(f"E{number}", []) for number in range(1025)]
    check.equal("1024 entries", len(read_csa(_header(*empty[:1024]))), 1024)
    _refused(check, _header(*empty), "1025 entries")
    _refused(check, _header(count=0), "0 entries", element=0x20)
    many = [b""] * 4097
    found = read_csa(_header(_entry("Many", [b"1", *many[:4095]])))
    check.equal("an entry of 4096 items", dict(found), {"Many": ("1",)})
    _refused(check, _header(_entry("Many", many)), "an entry of 4097 items")
    _refused(check, _header(_entry("Fewer", [], items=-1)), "an entry of -1 items")


def _marks(check: Check) -> None:
    for mark in (77, 205):
        found = read_csa(_header(_entry("A", [b"1"], mark=mark), mark=mark))
        check.equal(f"a header marked {mark}", dict(found), {"A": ("1",)})
    no_mark = "no mark where one belongs"
    for mark in (0, 76, 78, 204, 206):
        _refused(check, _header(_entry("A", [b"1"]), mark=mark), no_mark)
        _refused(check, _header(_entry("A", [b"1"], mark=mark)), no_mark)


def _values(check: Check) -> None:
    entries = (
        _entry("One", [b"1\0\0rubbish"]),
        _entry("Three", [b" a ", b"bb", b"ccc"]),
        _entry("First two", [b"a", b"b", b"c"], multiplicity=2),
        _entry("All", [b"a", b"b", b"c"], multiplicity=0),
        _entry("Room", [b"a", b"", b""], multiplicity=1),
        _entry("Gap", [b"a", b"", b"b"]),
        _entry("Blank", [b"  ", b"\0", b"b"]),
        _entry("More", [b"a"], multiplicity=6),
        _entry("None", []),
        _entry("One", [b"2"]),
        _entry("Latin", [b"\xb5s"]),
        _entry("Lengths", [b"1", b"22", b"333", b"4444", b"55555", b"6"]),
    )
    required = {
        "One": ("1",),
        "Three": ("a", "bb", "ccc"),
        "First two": ("a", "b"),
        "All": ("a", "b", "c"),
        "Room": ("a",),
        "Gap": ("a", "b"),
        "Blank": ("b",),
        "More": ("a",),
        "None": (),
        "Latin": ("\xb5s",),
        "Lengths": ("1", "22", "333", "4444", "55555", "6"),
    }
    check.equal("entries of a header", dict(read_csa(_header(*entries))), required)


def _lengths(check: Check) -> None:
    """A length that leads out of the header is refused, also in the last item of all."""
    last = _header(_entry("A", [b"1234"]))
    check.equal("a whole value at the end", dict(read_csa(last)), {"A": ("1234",)})
    bare = _header(_entry("A", [b"12345"]))[:-3]
    check.equal("a value at the end, unpadded", dict(read_csa(bare)), {"A": ("12345",)})
    _refused(check, last[:-1], "4 bytes belong where 3 are left")
    _refused(check, last[:-4], "4 bytes belong where 0 are left")
    _refused(check, last[:-5], "16 bytes belong where 15 are left")
    _refused(check, last[:50], "84 bytes belong where 34 are left")
    _refused(check, last[:12], "8 bytes belong where 4 are left")
    _refused(check, b"SV10", "8 bytes belong where 0 are left")
    _refused(check, b"", "8 bytes belong where 0 are left")
    negative = _header(_entry("A", [b"1234"], lengths=[-1]))
    _refused(check, negative, "a value of -1 bytes")
    two = _header(_entry("A", [b"1234"]), _entry("B", [b"5678"]))
    _refused(check, two[:-84], "84 bytes belong where 20 are left")


def _older_form(check: Check) -> None:
    """Lengths are too large by the number of items of the first entry, in every entry."""
    entries = (
        _entry("A", [b"1", b"", b"3333"], surplus=3),
        _entry("B", [b"55555"], surplus=3),
        _entry("C", [b"", b"7"], multiplicity=2, surplus=3),
    )
    found = read_csa(_header(*entries, head=b""))
    check.equal("the older form", dict(found), {"A": ("1", "3333"), "B": ("55555",), "C": ("7",)})
    nothing_first = (_entry("A", [], surplus=0), _entry("B", [b"22"], surplus=0))
    found = read_csa(_header(*nothing_first, head=b""))
    check.equal("the older form, nothing first", dict(found), {"A": (), "B": ("22",)})
    short = _header(_entry("A", [b""], surplus=0), head=b"")
    _refused(check, short, "a value of -1 bytes")


def _with(image: bytes | None = None, series: bytes | None = None) -> Dataset:
    ds = Dataset()
    block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
    for element, content in ((0x10, image), (0x20, series)):
        if content is not None:
            block.add_new(element, "OB", content)
    return ds


def _single_entries(check: Check) -> None:
    entries = (
        _entry("Number", [b"x"]),
        _entry("NumberOf", [b"4", b"5"]),
        _entry("Broken", [b"1"], mark=1),
        _entry("After", [b"9"]),
    )
    ds = _with(_header(*entries))
    for name, required in (
        ("Number", ("x",)),
        ("NumberOf", ("4", "5")),
        ("Broken", ()),
        ("After", ("9",)),
        ("Absent", ()),
    ):
        check.equal(f"the entry {name} alone", image_entry(ds, name), required)
    cut = _with(_header(_entry("A", [b"1234"]))[:-2])
    check.equal("an entry that is cut", image_entry(cut, "A"), ())
    older = _with(_header(_entry("A", [b"1"], surplus=1), head=b""))
    check.equal("an entry of the older form", image_entry(older, "A"), ())
    check.equal("an entry of no header", image_entry(Dataset(), "A"), ())


def _elements(check: Check) -> None:
    image, series = _header(_entry("I", [b"1"])), _header(_entry("S", [b"2"]))
    ds = _with(image, series)
    check.equal("the header of the image", dict(image_header(ds) or {}), {"I": ("1",)})
    check.equal("the header of the series", dict(series_header(ds) or {}), {"S": ("2",)})
    none = (image_header(_with(series=series)), series_header(_with(image)))
    check.equal("headers that are not there", none, (None, None))
    for number, read in ((0x10, image_header), (0x20, series_header)):
        with check.refuses("IMG-1606", f"damage in {number:02X}") as caught:
            read(_with(image[:-9], series[:-9]))
        if caught.diagnostic is not None:
            told = caught.diagnostic.fields["element"]
            check.equal(f"where the damage is, {number:02X}", told, f"(0029,xx{number:02X})")


_BEGIN, _END = "### ASCCONV BEGIN ###", "### ASCCONV END ###"


def _protocol(*lines: str, begin: str = _BEGIN, end: str = _END) -> str:
    slices = (line if line.startswith("#") else f"sSliceArray.asSlice{line}" for line in lines)
    return "\n".join([begin, "sSliceArray.lSize = 3", *slices, "sOther = 1", end, ""])


def _at(number: int, *point: float) -> list[str]:
    pairs = zip(("Sag", "Cor", "Tra"), point, strict=True)
    return [f"[{number}].sPosition.d{axis}\t = \t{value!r}" for axis, value in pairs if value]


def _centres(check: Check) -> None:
    one, two = _at(0, 1.5, -2.0, 0.0), _at(1, 0.0, 0.0, 3e-2)
    cases: tuple[tuple[str, dict[str, tuple[str, ...]], tuple[_Point, ...]], ...] = (
        (
            "in order",
            {"MrPhoenixProtocol": (_protocol(*one, *two),)},
            ((1.5, -2.0, 0.0), (0.0, 0.0, 0.03)),
        ),
        (
            "in no order",
            {"MrPhoenixProtocol": (_protocol(*two, *one),)},
            ((1.5, -2.0, 0.0), (0.0, 0.0, 0.03)),
        ),
        (
            "with other numbers",
            {
                "MrProtocol": (
                    _protocol("[0].dThickness = 3.0", "[0].sNormal.dTra = 1.0", *_at(0, 1, 2, 3)),
                )
            },
            ((1.0, 2.0, 3.0),),
        ),
        (
            "of a slice at the origin",
            {"MrProtocol": (_protocol("[0].dThickness = 3.0", *two),)},
            ((0.0, 0.0, 0.0), (0.0, 0.0, 0.03)),
        ),
        (
            "of two protocols",
            {
                "MrProtocol": (_protocol(*_at(0, 9, 9, 9)),),
                "MrPhoenixProtocol": (_protocol(*one),),
            },
            ((1.5, -2.0, 0.0),),
        ),
        (
            "of the last text",
            {"MrProtocol": (_protocol(*_at(0, 9, 9, 9)) + _protocol(*one),)},
            ((1.5, -2.0, 0.0),),
        ),
        (
            "after rubbish",
            {"MrProtocol": ("sSliceArray.asSlice[5].x = 1\n" + _protocol(*one),)},
            ((1.5, -2.0, 0.0),),
        ),
        (
            "before rubbish",
            {"MrProtocol": (_protocol(*one) + "sSliceArray.asSlice[5].x = 1\n",)},
            ((1.5, -2.0, 0.0),),
        ),
        (
            "on the last line",
            {"MrProtocol": (f"{_BEGIN}\nsSliceArray.asSlice[0].sPosition.dTra = 25{_END}",)},
            ((0.0, 0.0, 25.0),),
        ),
    )
    for says, header, required in cases:
        check.equal(f"centres {says}", slice_centres(header), required)


def _no_centres(check: Check) -> None:
    one = _at(0, 1.5, -2.0, 0.0)
    cases: tuple[tuple[str, Any], ...] = (
        ("no header", {}),
        ("no protocol", {"MrProtocol": ()}),
        ("no slice", {"MrProtocol": (_protocol(),)}),
        ("a number left out", {"MrProtocol": (_protocol(*one, *_at(2, 1, 2, 3)),)}),
        ("the first left out", {"MrProtocol": (_protocol(*_at(1, 1, 2, 3)),)}),
        ("no number", {"MrProtocol": (_protocol("[0].sPosition.dTra = 1e"),)}),
        ("no beginning", {"MrProtocol": (_protocol(*one, begin=""),)}),
        ("no end", {"MrProtocol": (_protocol(*one, end=""),)}),
        ("the end first", {"MrProtocol": (_END + "\n" + _protocol(*one, end=""),)}),
    )
    for says, header in cases:
        check.equal(f"centres of {says}", slice_centres(header), ())
