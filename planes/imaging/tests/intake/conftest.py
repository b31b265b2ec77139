"""DICOM bytes written by hand, so that each test says exactly what is in its file."""

from __future__ import annotations

import struct
from pathlib import Path

import pydicom
import pytest

EXPLICIT = "1.2.840.10008.1.2.1"
IMPLICIT = "1.2.840.10008.1.2"
BIG_ENDIAN = "1.2.840.10008.1.2.2"
_LONG = {"OB", "OW", "SQ", "UN", "UT", "OF"}


class Encoder:
    """Elements and files in one encoding; `implicit` and `big` as the data set has them."""

    def __init__(self, *, implicit: bool = False, big: bool = False) -> None:
        self.implicit, self.order = implicit, ">" if big else "<"
        self.uid = IMPLICIT if implicit else BIG_ENDIAN if big else EXPLICIT

    def element(self, tag: int, vr: str, value: bytes, *, length: int | None = None) -> bytes:
        size = len(value) if length is None else length
        head = struct.pack(f"{self.order}HH", tag >> 16, tag & 0xFFFF)
        if self.implicit:
            return head + struct.pack(f"{self.order}I", size) + value
        if vr in _LONG:
            return head + vr.encode() + struct.pack(f"{self.order}HI", 0, size) + value
        return head + vr.encode() + struct.pack(f"{self.order}H", size) + value

    def item(self, content: bytes, *, undefined: bool = False) -> bytes:
        head = struct.pack(f"{self.order}HH", 0xFFFE, 0xE000)
        if not undefined:
            return head + struct.pack(f"{self.order}I", len(content)) + content
        end = struct.pack(f"{self.order}HHI", 0xFFFE, 0xE00D, 0)
        return head + struct.pack(f"{self.order}I", 0xFFFFFFFF) + content + end

    def sequence_end(self) -> bytes:
        return struct.pack(f"{self.order}HHI", 0xFFFE, 0xE0DD, 0)

    def short(self, value: int) -> bytes:
        return struct.pack(f"{self.order}H", value)

    def identity(self, number: int = 1) -> bytes:
        return (
            self.element(0x00080016, "UI", b"1.2.840.10008.5.1.4.1.1.2\0")
            + self.element(0x00080018, "UI", padded(f"2.25.{number}"))
            + self.element(0x0020000D, "UI", b"2.25.7\0\0"[:6])
            + self.element(0x00280010, "US", self.short(2))
        )

    def pixels(self, value: bytes = b"\1\0\2\0\3\0\4\0", *, length: int | None = None) -> bytes:
        return self.element(0x7FE00010, "OW", value, length=length)

    def file(self, data: bytes | None = None, *, uid: str | None = None) -> bytes:
        body = self.identity() + self.pixels() if data is None else data
        return part10(body, self.uid if uid is None else uid)


def padded(text: str) -> bytes:
    return text.encode() + b"\0" * (len(text) % 2)


def part10(body: bytes, uid: str) -> bytes:
    """A file with preamble, mark and file meta information (none of it but the syntax)."""
    little = Encoder()
    syntax = little.element(0x00020010, "UI", padded(uid)) if uid else b""
    return bytes(128) + b"DICM" + little.element(0x00020002, "UI", b"1.2.3\0") + syntax + body


@pytest.fixture
def explicit() -> Encoder:
    """Explicit VR Little Endian."""
    return Encoder()


@pytest.fixture
def implicit() -> Encoder:
    """Implicit VR Little Endian."""
    return Encoder(implicit=True)


@pytest.fixture
def big() -> Encoder:
    """Explicit VR Big Endian."""
    return Encoder(big=True)


@pytest.fixture
def bundled() -> Path:
    """The test files that come inside pydicom."""
    return Path(pydicom.__file__).parent / "data" / "test_files"
