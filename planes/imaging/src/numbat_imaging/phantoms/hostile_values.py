"""Values that no scanner writes and that a file may hold all the same."""

from __future__ import annotations

from random import Random
from struct import pack

from numbat_imaging.phantoms.element_map import ElementMap, Place

#: Elements that decide what is read, allocated and multiplied; mutants prefer them.
DECISIVE = frozenset(
    {
        *(0x00020010, 0x00080005, 0x00080008, 0x00080016, 0x00080018, 0x00080060, 0x00080070),
        *(0x00100010, 0x00180050, 0x00180088, 0x00189073, 0x00189074, 0x0020000D, 0x0020000E),
        *(0x00200013, 0x00200032, 0x00200037, 0x00200100, 0x00200105, 0x00209056, 0x00209057),
        *(0x00209157, 0x00209165, 0x00209167, 0x00209221, 0x00209222),
        *(0x00280002, 0x00280004, 0x00280006, 0x00280008, 0x00280009, 0x00280010, 0x00280011),
        *(0x00280030, 0x00280100, 0x00280101, 0x00280102, 0x00280103, 0x00280120, 0x00281052),
        *(0x00281053, 0x00281054, 0x00281101, 0x00281102, 0x00281201, 0x00283002, 0x00283006),
        *(0x00289145, 0x00291010, 0x00291020, 0x00409096, 0x00409211, 0x00409212, 0x00409216),
        *(0x00409224, 0x00409225, 0x2005100E, 0x20051409, 0x2005140A, 0x200D0010, 0x52009229),
        *(0x52009230, 0x7FE00001, 0x7FE00002, 0x7FE00010),
    }
)

_SHORTS = (0, 1, 2, 3, 5, 7, 8, 12, 15, 16, 31, 32, 33, 63, 64, 65, 128, 255, 256, 512, 4096)
_SHORTS_HIGH = (16384, 32767, 32768, 65521, 65534, 65535)
_WIDE = (0, 1, 2, 255, 65536, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1)
_INTEGERS = (
    *("", " ", "0", "1", "2", "3", "4", "7", "16", "-1", "-2147483648", "2147483647", "4294967297"),
    *("99999999999", "100000", "65535", "1e400", "1e9", "3.0", "3.5", "NaN", "0x10", "1\\2", "\\"),
    *("9" * 300, "+1", "--1", "1" + "\0" * 40),
)
_DECIMALS = (
    *("", " ", "0", "-0", "1", "-1", "0.5", "1000", "NaN", "nan", "inf", "-inf", "1e400", "-1e400"),
    *("1e308", "-1e308", "1e-320", "1e-45", "1e39", "1e20", "1,5", "1.5.5", "2147483648", "0\\0"),
    *("9" * 300, "1e" + "9" * 50, "abc", "1\\2\\3\\4", "0\\0\\0", "1e308\\1e308\\1e308", "\\\\"),
)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e-30, 1e20, 3e38, -3e38)
_DOUBLES = (*_FLOATS, 1e300, -1e308, 5e-324, 1e-300)
_NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
_UIDS = (
    *("", "1", "1.2", ".1.2", "1..2", "1.2.", "abc", "1.2.3\\1.2.4", "1." + "2" * 80, "1.2.3 "),
    *("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.5"),
    *("1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51"),
    *("1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80"),
    *("1.2.840.10008.1.2.4.81", "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"),
    *("1.2.840.10008.1.2.4.92", "1.2.840.10008.1.2.4.100", "1.2.840.10008.1.2.4.201"),
    *("1.2.840.10008.1.2.4.203", "1.2.840.10008.1.2.1.98", "1.2.840.113619.5.2"),
    *("1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1", "1.2.840.10008.5.1.4.1.1.4"),
    *("1.2.840.10008.5.1.4.1.1.4.1", "1.2.840.10008.5.1.4.1.1.128", "1.2.840.10008.1.3.10"),
    *("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.7", "1.2.840.10008.5.1.4.1.1.30"),
)
_CODES = (
    *("", "MR", "CT", "PT", "SEG", "MONOCHROME1", "MONOCHROME2", "RGB", "PALETTE COLOR"),
    *(
        "YBR_FULL",
        "YBR_FULL_422",
        "YBR_RCT",
        "YBR_PARTIAL_420",
        "ARGB",
        "ORIGINAL\\PRIMARY\\MOSAIC",
    ),
    *("ISO_IR 192", "ISO 2022 IR 87\\ISO 2022 IR 149", "\\ISO 2022 IR 58", "ISO_IR 999", "ROW"),
    *("BQML", "GML", "CNTS", "DECY\\ATTN", "START", "ADMIN", "NONE", "01", "MIXED", "PHASE"),
)
_TIMES = ("", "0", "999999", "235959.999999", "24", "2460", "19000101", "00000000", "99999999")
_TEXTS = (
    *(
        b"",
        b"\\",
        b"\0",
        b"\xff" * 64,
        b"\x1b$B\x1b(B\xff",
        b"A" * 65000,
        b"\\" * 20000,
        b"a^b=c^d",
    ),
    *(b"SIEMENS", b"Philips Medical Systems", b"GE MEDICAL SYSTEMS", b"UIH", b"\xe3\x81\x82" * 99),
)
_BY_VR = {"IS": _INTEGERS, "DS": _DECIMALS, "UI": _UIDS, "CS": _CODES}


def hostile_value(elements: ElementMap, place: Place, value: bytes, chance: Random) -> bytes:
    """Another value for the element at `place`, whose value is `value`; often one of its own VR."""
    vr = place.vr or _VRS.get(place.tag, "")
    order = "<" if elements.little else ">"
    if chance.random() < 0.06:
        return chance.choice(_TEXTS)
    if vr in ("US", "SS", "OW", "US or SS") and (vr != "OW" or len(value) < 64):
        count = max(1, len(value) // 2) if chance.random() < 0.9 else chance.randrange(4)
        return pack(f"{order}{count}H", *(_short(chance) for _ in range(count)))
    if vr in ("UL", "SL", "OL"):
        count = max(1, len(value) // 4) if chance.random() < 0.9 else chance.randrange(4)
        return pack(f"{order}{count}I", *(chance.choice(_WIDE) for _ in range(count)))
    if vr in ("FL", "FD"):
        letter, width = ("f", 4) if vr == "FL" else ("d", 8)
        count = max(1, len(value) // width) if chance.random() < 0.9 else chance.randrange(4)
        among = (_FLOATS if vr == "FL" else _DOUBLES) + _NO_NUMBERS
        return pack(f"{order}{count}{letter}", *(chance.choice(among) for _ in range(count)))
    if vr in ("DS", "IS") and b"\\" in value and chance.random() < 0.6:
        parts = value.split(b"\\")
        parts[chance.randrange(len(parts))] = chance.choice(_BY_VR[vr]).encode()
        return b"\\".join(parts)
    if vr in _BY_VR:
        return chance.choice(_BY_VR[vr]).encode()
    if vr in ("TM", "DA", "DT"):
        return chance.choice(_TIMES).encode()
    if vr in ("OB", "OW", "UN", "") and value:
        return damaged_block(value, chance)
    return chance.choice(_TEXTS)


def _short(chance: Random) -> int:
    return chance.choice(_SHORTS if chance.random() < 0.7 else _SHORTS_HIGH)


def damaged_block(value: bytes, chance: Random) -> bytes:
    """A binary block (a private header, a codestream, a table) with counts and bytes changed.

    Near its beginning, where such blocks say how large the rest is, or anywhere in it.
    """
    data = bytearray(value)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        reach = min(len(data), 256) if chance.random() < 0.7 else len(data)
        if not reach:
            break
        at = chance.randrange(reach)
        match chance.randrange(6):
            case 0:
                at -= at % 4
                data[at : at + 4] = pack(chance.choice("<>") + "I", chance.choice(_WIDE))
            case 1:
                data[at : at + 2] = pack(chance.choice("<>") + "H", _short(chance))
            case 2:
                data[at] ^= 1 << chance.randrange(8)
            case 3:
                del data[at:]
            case 4:
                del data[at : at + chance.randrange(1, 40)]
            case _:
                data[at:at] = chance.randbytes(chance.randrange(1, 40))
    return bytes(data)


#: VRs of what mutants change in implicit VR, where none is written.
_VRS = {
    0x00020010: "UI",
    0x00080005: "CS",
    0x00080008: "CS",
    0x00080016: "UI",
    0x00080018: "UI",
    0x00080060: "CS",
    0x00180050: "DS",
    0x00180088: "DS",
    0x0020000D: "UI",
    0x0020000E: "UI",
    0x00200013: "IS",
    0x00200032: "DS",
    0x00200037: "DS",
    0x00200100: "IS",
    0x00280002: "US",
    0x00280004: "CS",
    0x00280006: "US",
    0x00280008: "IS",
    0x00280010: "US",
    0x00280011: "US",
    0x00280030: "DS",
    0x00280100: "US",
    0x00280101: "US",
    0x00280102: "US",
    0x00280103: "US",
    0x00280120: "US",
    0x00281052: "DS",
    0x00281053: "DS",
}


def strangers(elements: ElementMap, chance: Random) -> tuple[int, bytes]:
    """An element that the file may not have, with its tag: what makes a reader change its way."""
    order = "<" if elements.little else ">"

    def element(tag: int, vr: str, value: bytes) -> bytes:
        return elements.encoded(tag, vr, value)

    def sequence(tag: int, *items: bytes) -> bytes:
        return element(tag, "SQ", b"".join(element(0xFFFEE000, "", item) for item in items))

    def shorts(*values: int) -> bytes:
        return pack(f"{order}{len(values)}H", *values)

    palette = shorts(chance.choice((0, 1, 16, 256)), _short(chance), chance.choice((0, 8, 16, 99)))
    table = element(0x00283002, "US", palette) + element(
        0x00283006, "OW", bytes(chance.choice((0, 1, 2, 32, 512)))
    )
    position = element(0x00200032, "DS", chance.choice(_DECIMALS).encode())
    frame = sequence(0x00209113, position) if chance.random() < 0.7 else b""
    frames = [frame] * chance.choice((0, 1, 2, 3, 1000))
    pointer = element(0x00209165, "AT", shorts(0x0020, chance.choice((0x9056, 0x9057, 0x9999))))
    mapping = element(0x00409225, "FD", pack(f"{order}d", chance.choice(_DOUBLES + _NO_NUMBERS)))
    mapping += element(0x00409224, "FD", pack(f"{order}d", chance.choice(_DOUBLES)))
    mapping += element(0x00409216, "US", shorts(_short(chance)))
    mapping += element(0x00409211, "US", shorts(_short(chance)))
    csa = b"SV10\4\3\2\1" + pack("<II", chance.choice(_WIDE), 77) + chance.randbytes(200)
    choices = {
        0x00280008: element(0x00280008, "IS", chance.choice(_INTEGERS).encode()),
        0x00280006: element(0x00280006, "US", shorts(_short(chance))),
        0x00281052: element(0x00281052, "DS", chance.choice(_DECIMALS).encode()),
        0x00281053: element(0x00281053, "DS", chance.choice(_DECIMALS).encode()),
        0x00280120: element(0x00280120, "US", shorts(_short(chance))),
        0x00280121: element(0x00280121, "US", shorts(_short(chance))),
        0x00281101: element(0x00281101, "US", palette),
        0x00281201: element(0x00281201, "OW", bytes(chance.choice((0, 2, 32, 512)))),
        0x00283000: sequence(0x00283000, *[table] * chance.choice((0, 1, 2))),
        0x00209222: sequence(0x00209222, *[pointer] * chance.choice((0, 1, 3, 200))),
        0x00409096: sequence(0x00409096, *[mapping] * chance.choice((0, 1, 2))),
        0x52009229: sequence(0x52009229, *frames[:1]),
        0x52009230: sequence(0x52009230, *frames),
        0x00290010: element(0x00290010, "LO", b"SIEMENS CSA HEADER"),
        0x00291010: element(0x00291010, "OB", csa),
        0x00291020: element(0x00291020, "OB", csa),
        0x00650010: element(0x00650010, "LO", b"Image Private Header"),
        0x00651050: element(0x00651050, "DS", chance.choice(_INTEGERS).encode()),
        0x00651051: sequence(0x00651051, *frames[:8]),
        0x2005100E: element(0x2005100E, "FL", pack(f"{order}f", chance.choice(_FLOATS))),
        0x00540016: sequence(0x00540016, element(0x00181074, "DS", b"1e308")),
        0x00541001: element(0x00541001, "CS", chance.choice(_CODES).encode()),
        0x7FE00001: element(0x7FE00001, "OV", pack(f"{order}2Q", 0, chance.choice(_WIDE))),
        0x7FE00002: element(0x7FE00002, "OV", pack(f"{order}2Q", 1 << 40, 1)),
    }
    tag = chance.choice(sorted(choices))
    return tag, choices[tag]
