"""Which bytes of an encapsulated pixel element are which frame (PS3.5 A.4).

Where a fragment begins is walked from item to item. Offset tables are a help for seeking and often
wrong, so they decide only where the fragments alone do not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from struct import unpack
from typing import BinaryIO, NamedTuple, NoReturn

from numbat_imaging.intake.limits import DEFAULT_LIMITS
from numbat_imaging.intake.structure import ITEM, SEQUENCE_END, UNDEFINED
from numbat_imaging.series.instance import PixelFormat
from numbat_imaging.values.codestreams import STARTS
from numbat_imaging.values.syntaxes import CODINGS, RLE
from numbat_registries import refuse

#: An RLE header: a number of segments, of which the first follows the 64 bytes of the header.
_RLE_FIRST = b"\x40\0\0\0"
_LOOK_BYTES = 12


class Fragment(NamedTuple):
    """Where the content of one item lies in the stream."""

    offset: int
    length: int


class FrameFragments:
    """The frames of one encapsulated pixel element.

    Raises IMG-1411 when there are fewer or more frames than the header says, IMG-1412 when nothing
    tells which fragments are which frame, IMG-1413 when the items are broken or cut off.
    """

    def __init__(
        self, stream: BinaryIO, pixels: PixelFormat, *, file: str, size_bytes: int | None = None
    ) -> None:
        self.stream, self.pixels, self.file = stream, pixels, file
        self._size = size_bytes
        table, fragments = self._with_table(self._items())
        self.frames = self._frames(table, [part for part in fragments if part.length])

    def data(self, frame: int) -> bytes:
        """The encoded bytes of one frame."""
        return b"".join(self._read(*fragment) for fragment in self.frames[frame])

    def _read(self, offset: int, length: int) -> bytes:
        self.stream.seek(offset, os.SEEK_SET)
        return self.stream.read(length)

    # -- items -----------------------------------------------------------------------------------

    def _items(self) -> list[Fragment]:
        found: list[Fragment] = []
        position = self.pixels.location.offset
        while True:
            head = self._read(position, 8)
            # A file may end after its last fragment: what is there is whole.
            if not head and found:
                return found
            if len(head) < 8:
                self._broken(position, "an item is cut off")
            group, element, length = unpack("<HHI", head)
            tag = group << 16 | element
            if tag == SEQUENCE_END:
                return found
            if tag != ITEM or length == UNDEFINED:
                self._broken(position, "something that is no item of known length")
            position += 8 + length
            if self._end(position) < position:
                self._broken(position - length - 8, "a fragment is cut off")
            found.append(Fragment(position - length, length))
            if len(found) > DEFAULT_LIMITS.elements:
                self._broken(position, f"more than {DEFAULT_LIMITS.elements} fragments")

    def _end(self, position: int) -> int:
        if self._size is not None:
            return min(position, self._size)
        return self.stream.seek(position, os.SEEK_SET)

    def _broken(self, offset: int, reason: str) -> NoReturn:
        raise refuse("IMG-1413", file=self.file, offset=offset, reason=reason)

    # -- frames ----------------------------------------------------------------------------------

    def _with_table(self, items: list[Fragment]) -> tuple[list[int], list[Fragment]]:
        """The basic offset table, and the fragments after it."""
        if not items:
            self._broken(self.pixels.location.offset, "no item at all")
        table, *rest = items
        if self._begins_stream(table):
            # A writer that left the table out altogether.
            return [], items
        content = self._read(table.offset, min(table.length, 4 * self.pixels.frames))
        whole = len(content) - len(content) % 4
        return list(unpack(f"<{whole // 4}I", content[:whole])), rest

    def _begins_stream(self, fragment: Fragment) -> bool:
        start = self._read(fragment.offset, min(fragment.length, _LOOK_BYTES))
        if self.pixels.transfer_syntax_uid == RLE:
            count = int.from_bytes(start[:4], "little")
            return 1 <= count <= 15 and start[4:8] == _RLE_FIRST
        marks = STARTS.get(CODINGS.get(self.pixels.transfer_syntax_uid, ""), ())
        return start.startswith(marks)

    def _frames(self, table: list[int], fragments: list[Fragment]) -> list[list[Fragment]]:
        frames = self.pixels.frames
        if len(fragments) == frames:
            return [[fragment] for fragment in fragments]
        if len(fragments) < frames:
            self._refuse_count(len(fragments), fragments)
        starts = [n for n, part in enumerate(fragments) if self._begins_stream(part)]
        stated = _stated_starts(table, fragments, frames)
        if stated is not None and (not starts or set(stated) <= set(starts)):
            return _cut(fragments, stated)
        if frames == 1 and len(starts) <= 1:
            return [fragments]
        if not starts:
            raise refuse("IMG-1412", file=self.file, frames=frames, fragments=len(fragments))
        if len(starts) != frames or starts[0] != 0:
            self._refuse_count(len(starts), fragments)
        return _cut(fragments, starts)

    def _refuse_count(self, found: int, fragments: Sequence[Fragment]) -> NoReturn:
        raise refuse(
            "IMG-1411",
            file=self.file,
            frames=self.pixels.frames,
            frames_found=found,
            fragments=len(fragments),
        )


def _stated_starts(
    table: Sequence[int], fragments: Sequence[Fragment], frames: int
) -> list[int] | None:
    """Which fragments begin a frame by the offset table; None where it fits no fragments."""
    if len(table) != frames or not fragments or frames < 2:
        return None
    # Offsets count from the first item after the table, item headers included.
    first = fragments[0].offset
    places = {fragment.offset - first: n for n, fragment in enumerate(fragments)}
    found = [places.get(offset, -1) for offset in table]
    rising = all(a < b for a, b in pairwise(found))
    return found if found[0] == 0 and rising else None


def _cut(fragments: Sequence[Fragment], starts: Sequence[int]) -> list[list[Fragment]]:
    ends = [*starts[1:], len(fragments)]
    return [list(fragments[start:end]) for start, end in zip(starts, ends, strict=True)]
