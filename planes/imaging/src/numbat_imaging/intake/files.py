"""One file as it lies on disk or inside a zip archive."""

from __future__ import annotations

import gzip
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import BinaryIO, cast

from numbat_imaging.intake.archives import open_member
from numbat_imaging.intake.deflate import InflatedFile
from numbat_registries import refuse

GZIP_MAGIC = b"\x1f\x8b\x08"

#: What reading a damaged or vanishing file raises.
READ_FAULTS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file: an absolute path, or a member of the zip archive at that path.

    `member` is the member's name for people, with "!/" between an archive and one inside it;
    `at` gives its places in the central directories, outermost first, which finds it even when two
    members have one name. `inflate_from` is the offset at which a deflated data set begins: `open`
    then gives the data set alone, inflated. `root` is the folder that labels are relative to.
    Sorts by path and member. Picklable.
    """

    path: str
    member: str | None = None
    at: tuple[int, ...] = ()
    root: str = field(default="", compare=False)
    inflate_from: int | None = field(default=None, compare=False)

    def __lt__(self, other: FileRef) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[list[str], str, tuple[int, ...]]:
        return self.path.split(os.sep), self.member or "", self.at

    @property
    def label(self) -> str:
        """The name for people: relative to the root that was asked for, members after "!/"."""
        name = self.path
        if self.root:
            name = os.path.relpath(self.path, self.root)
        name = name.replace(os.sep, "/").encode("utf-8", "backslashreplace").decode("utf-8")
        return name if self.member is None else f"{name}!/{self.member}"

    @property
    def stored(self) -> FileRef:
        """The same file without inflating its data set."""
        return self if self.inflate_from is None else replace(self, inflate_from=None)

    def open(self) -> BinaryIO:
        """A seekable stream of the content: gzip is taken off, members are read in place.

        Raises IMG-1002 when the file cannot be opened, IMG-1003 for what is no regular file,
        IMG-1005, IMG-1006 and IMG-1007 for an archive that is broken, encrypted or beyond bounds.
        """
        return self.open_sized()[0]

    def open_sized(self) -> tuple[BinaryIO, int | None]:
        """The stream of `open` and its size in bytes, None where only reading would tell."""
        with stream_faults(self):
            stream: BufferedReader | _OwningGzip
            size: int | None
            stream, size = self._open_stored()
            try:
                if stream.peek(3)[:3] == GZIP_MAGIC:
                    stream, size = _OwningGzip(stream), None
                if self.inflate_from is not None:
                    inflated = InflatedFile(cast(BinaryIO, stream), start=self.inflate_from)
                    stream, size = BufferedReader(inflated), None
            except BaseException:
                stream.close()
                raise
            return cast(BinaryIO, stream), size

    def _open_stored(self) -> tuple[BufferedReader, int]:
        if self.member is not None:
            return open_member(self.path, self.at, self.member, label=self.label)
        state = os.stat(self.path)
        if not stat.S_ISREG(state.st_mode):
            raise refuse("IMG-1003", file=self.label, kind=kind_name(state.st_mode))
        return open(self.path, "rb"), state.st_size


class _OwningGzip(gzip.GzipFile):
    """A gzip stream that closes the file under it."""

    def __init__(self, stream: BufferedReader) -> None:
        super().__init__(fileobj=stream, mode="rb")
        self._under = stream

    def close(self) -> None:
        super().close()
        self._under.close()


@contextmanager
def stream_faults(ref: FileRef) -> Iterator[None]:
    """Turn the faults of reading a file into IMG-1002, naming the reason and never the content."""
    try:
        yield
    except READ_FAULTS as fault:
        reason = getattr(fault, "strerror", None) or type(fault).__name__
        raise refuse("IMG-1002", file=ref.label, reason=reason) from fault


def kind_name(mode: int) -> str:
    """What a file system entry is, for people."""
    kinds = (
        (stat.S_ISDIR, "folder"),
        (stat.S_ISFIFO, "named pipe"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISCHR, "character device"),
        (stat.S_ISBLK, "block device"),
        (stat.S_ISLNK, "symbolic link"),
    )
    return next((name for test, name in kinds if test(mode)), "special file")
