"""How much one file, archive or header may ask of the machine before it is refused.

The bound on memory: reading one file makes the process grow by no more than 64 MiB, or 40 times the
bytes that are really there (of a compressed file, those it inflates to), whichever is more. Nothing
is allocated on the word of a header: first it is seen that the bytes are there, and of compressed
pixels that their streams say the same size as the header and are not absurdly short for it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the intake; each is far above what scanners and archives write.

    Sizes in bytes. `header_bytes` bounds everything before the pixel data; `elements` the data
    elements walked in one header, `dataset_elements` those of one data set or item; `depth` the
    nesting of sequences, `items` the items of one; `frames` the frames of one object that are told
    apart, `frame_elements` the elements of all their data sets together, and `stacks` what one
    series is split into; `text_bytes` one text that the standard bounds, `long_text_bytes` one that
    it does not. `inflated_bytes` bounds one member or stream after decompression, `archive_bytes`
    all members of one archive together; `ratio` is the largest compression ratio believed of a
    member or file above `ratio_floor_bytes`. `unproven_bytes` may be allocated before it is seen
    that the pixels for them are there.
    """

    header_bytes: int = 128 << 20
    elements: int = 2_000_000
    dataset_elements: int = 1 << 16
    depth: int = 64
    items: int = 1 << 17
    frames: int = 1 << 17
    frame_elements: int = 1 << 26
    stacks: int = 1 << 10
    text_bytes: int = 1 << 16
    long_text_bytes: int = 1 << 20
    inflated_bytes: int = 4 << 30
    archive_bytes: int = 64 << 30
    archive_members: int = 1_000_000
    unproven_bytes: int = 64 << 20
    ratio: int = 400
    ratio_floor_bytes: int = 16 << 20

    def believed_bytes(self, packed_bytes: int) -> int:
        """What a compressed file of `packed_bytes` may inflate to."""
        believed = max(self.ratio * packed_bytes, self.ratio_floor_bytes)
        return min(believed, self.inflated_bytes)


DEFAULT_LIMITS = Limits()
