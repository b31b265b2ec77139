"""Stored pixel values, exactly as the scanner meant them: frames of one file, and their slices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.series.instance import Instance, PixelFormat, pixel_format
from numbat_imaging.values.colour import Palette, as_rgb, palette_of
from numbat_imaging.values.description import (
    PALETTE,
    RGB,
    YBR_422,
    Pixels,
    check_format,
    check_stored,
    plane_bytes,
    sample_dtype,
    samples_shape,
    stack_dtype,
    stored_dtype,
)
from numbat_imaging.values.encapsulated import EncapsulatedFrames
from numbat_imaging.values.native import NativeFrames
from numbat_imaging.values.syntaxes import check_syntax
from numbat_registries import refuse

__all__ = [
    "RGB",
    "Pixels",
    "check_format",
    "check_present",
    "check_stored",
    "plane_bytes",
    "plane_digests",
    "read_into",
    "read_pixels",
    "read_planes",
    "stack_dtype",
    "stored_dtype",
]

#: What `read_pixels` gives at most, unless the caller raises the limit.
MAX_FRAMES_BYTES = 16 << 30


class _Frames:
    """The frames of one open file; closes it at the end of its `with` block."""

    def __init__(self, ref: FileRef, pixels: PixelFormat) -> None:
        check_syntax(pixels, file=ref.label)
        self.ref, self.pixels = ref, pixels
        self._palette: Palette | None = None
        self._exit = ExitStack()
        stream, size = ref.open_sized()
        self._exit.callback(stream.close)
        self._size = size
        with ExitStack() as guard:
            guard.callback(self._exit.close)
            self.native: NativeFrames | None = None
            self.encapsulated: EncapsulatedFrames | None = None
            if pixels.location.length is None:
                self.encapsulated = EncapsulatedFrames(
                    stream, pixels, file=ref.label, size_bytes=size
                )
            else:
                self.native = NativeFrames(stream, pixels, file=ref.label)
            guard.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exit.close()

    def samples(self, frame: int) -> tuple[Pixels, str]:
        """Stored samples of one frame, (rows, columns[, 3]), and what its colours are."""
        if self.encapsulated is not None:
            return self.encapsulated.frame(frame)
        assert self.native is not None
        stated = self.pixels.photometric
        return self.native.frame(frame), "YBR_FULL" if stated == YBR_422 else stated

    def rgb(self, frame: int) -> Pixels:
        """One frame of a colour or palette image as (rows, columns, 3) of 8 bits."""
        samples, photometric = self.samples(frame)
        if photometric == PALETTE:
            return self._colours().of(samples)
        return as_rgb(samples, photometric, file=self.ref.label)

    def plane(self, frame: int) -> Pixels:
        """One frame as a plane of `stored_dtype`, (rows, columns)."""
        if stored_dtype(self.pixels) != RGB:
            return self.samples(frame)[0]
        return np.ascontiguousarray(self.rgb(frame), dtype="u1").view(RGB)[..., 0]

    def check(self, frames: Sequence[int]) -> None:
        """Refuse what can be told to be wrong without decoding."""
        if self.native is not None:
            self.native.check_present(self._size)
        elif self.encapsulated is not None:
            for frame in frames:
                self.encapsulated.check(frame)

    def _colours(self) -> Palette:
        if self._palette is None:
            header = read_header(self.ref)
            assert header is not None
            self._palette = palette_of(header.dataset, file=self.ref.label)
        return self._palette


def read_planes(instances: Sequence[Instance], planes: Sequence[Pixels]) -> None:
    """Decode slices of one file into `planes`, each (rows, columns) of its slice.

    Each frame is read once, in the order of the file, whatever the order of `instances`. Safe to
    call for several files at once. Raises IMG-1403 when the pixel data are shorter or longer than
    the header says, and of compressed pixels what `EncapsulatedFrames` raises; IMG-1404, IMG-1409
    and IMG-1410 for the transfer syntax, IMG-1417 and IMG-1418 for colours and palettes.
    """
    if not instances:
        return
    wanted = sorted(range(len(instances)), key=lambda place: instances[place].frame)
    with _Frames(instances[0].ref, instances[0].pixels) as frames:
        for frame, places in groupby(wanted, key=lambda place: instances[place].frame):
            slices = [(instances[place], planes[place]) for place in places]
            if len(slices) == 1 and _is_read_directly(frames, frame, *slices[0]):
                continue
            decoded = frames.plane(frame)
            for instance, plane in slices:
                plane[...] = _cut(decoded, instance)


def _is_read_directly(frames: _Frames, frame: int, instance: Instance, plane: Pixels) -> bool:
    if frames.native is None or instance.window is not None:
        return False
    return frames.native.into(frame, plane)


def _cut(decoded: Pixels, instance: Instance) -> Pixels:
    window = instance.window
    if window is None:
        return decoded
    rows = slice(window.row, window.row + window.rows)
    return decoded[rows, window.column : window.column + window.columns]


def read_into(instance: Instance, plane: Pixels) -> None:
    """Decode one slice into `plane`, (rows, columns); raises what `read_planes` raises."""
    read_planes([instance], [plane])


def check_present(instances: Sequence[Instance]) -> None:
    """Refuse slices of one file whose pixels cannot be all there, before anything is allocated.

    The length of the file, the fragments and what each code stream says of its size are compared
    with the header; nothing is decoded. Raises IMG-1403, IMG-1409 to IMG-1415 and IMG-1419.
    """
    if instances:
        with _Frames(instances[0].ref, instances[0].pixels) as frames:
            frames.check(sorted({instance.frame for instance in instances}))


def plane_digests(instances: Sequence[Instance]) -> list[str]:
    """SHA-256 of the decoded pixels of each slice of one file, whatever their encoding.

    Raises what `read_planes` raises.
    """
    found = [""] * len(instances)
    for place, plane in _planes(instances):
        found[place] = hashlib.sha256(np.ascontiguousarray(plane).tobytes()).hexdigest()
    return found


def _planes(instances: Sequence[Instance]) -> Iterator[tuple[int, Pixels]]:
    wanted = sorted(range(len(instances)), key=lambda place: instances[place].frame)
    if not wanted:
        return
    with _Frames(instances[0].ref, instances[0].pixels) as frames:
        for frame, places in groupby(wanted, key=lambda place: instances[place].frame):
            decoded = frames.plane(frame)
            for place in places:
                yield place, _cut(decoded, instances[place])


def read_pixels(
    path: str | PathLike[str], *, rgb: bool = False, max_bytes: int = MAX_FRAMES_BYTES
) -> Pixels:
    """The stored pixels of one file, of whatever kind of object: (frames, rows, columns[, 3]).

    The axis of frames is absent where there is one. Values are those stored, before any rescale;
    colours as they are stored too (YCbCr stays YCbCr, a palette index an index) unless `rgb`, which
    gives red, green and blue of 8 bits. Raises IMG-1016 for a file without pixels, IMG-1801
    for what is no DICOM, IMG-1401 and IMG-1402 for the description of the pixels, IMG-1408 beyond
    `max_bytes`, and what `read_planes` raises.
    """
    ref = FileRef(str(Path(fspath(path)).absolute()))
    header = read_header(ref)
    if header is None:
        raise refuse("IMG-1801", files=1)
    pixels = pixel_format(header, elements.uid(header.dataset, "SOPClassUID") or "")
    check_stored(pixels, file=ref.label)
    if rgb:
        check_format(pixels, file=ref.label)
        if stored_dtype(pixels) != RGB:
            raise refuse(
                "IMG-1402", file=ref.label, photometric=pixels.photometric, samples=pixels.samples
            )
    shape = (pixels.rows, pixels.columns, 3) if rgb else samples_shape(pixels)
    dtype = np.dtype("u1") if rgb else sample_dtype(pixels)
    size_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize * pixels.frames
    if size_bytes > max_bytes:
        raise refuse("IMG-1408", size_bytes=size_bytes, limit_bytes=max_bytes)
    with _Frames(header.ref, pixels) as frames:
        frames.check(range(pixels.frames))
        block: Pixels = np.empty((pixels.frames, *shape), dtype)
        for frame in range(pixels.frames):
            block[frame] = frames.rgb(frame) if rgb else frames.samples(frame)[0]
    return block if pixels.frames > 1 else block[0]
