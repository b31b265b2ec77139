"""How much one file, archive or header may ask of the machine before it is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the intake; each is far above what scanners and archives write.

    Sizes in bytes. `header_bytes` bounds everything before the pixel data; `elements` and `depth`
    bound the data elements walked in one header and the nesting of sequences;
    `inflated_bytes` bounds one member or stream after decompression, `archive_bytes` all members
    of one archive together; `ratio` is the largest compression ratio believed of a member above
    `ratio_floor_bytes`.
    """

    header_bytes: int = 128 << 20
    elements: int = 2_000_000
    depth: int = 64
    inflated_bytes: int = 4 << 30
    archive_bytes: int = 64 << 30
    archive_members: int = 1_000_000
    ratio: int = 400
    ratio_floor_bytes: int = 16 << 20


DEFAULT_LIMITS = Limits()
