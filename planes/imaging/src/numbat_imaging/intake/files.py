"""One file as it lies on disk or inside a zip archive."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from numbat_imaging.intake.archives import open_member
from numbat_imaging.intake.deflate import InflatedFile
from numbat_imaging.intake.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
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
    `seen` is the time of modification (ns) and the size (bytes) that the file at the path had when
    its header was read: what was read once is never joined with what was written since. Sorts by
    path and member. Picklable.
    """

    path: str
    member: str | None = None
    at: tuple[int, ...] = ()
    root: str = field(default="", compare=False)
    inflate_from: int | None = field(default=None, compare=False)
    seen: tuple[int, int] | None = field(default=None, compare=False)

    def __lt__(self, other: FileRef) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[list[str], str, tuple[int, ...]]:
        return self.path.split(os.sep), self.member or "", self.at

    @property
    def label(self) -> str:
        """The name for people: relative to the root that was asked for, members after "!/"."""
        name = _shown_path(self.path, self.root)
        return name if self.member is None else f"{name}!/{self.member}"

    @property
    def stored(self) -> FileRef:
        """The same file without inflating its data set."""
        return self if self.inflate_from is None else replace(self, inflate_from=None)

    def as_seen(self) -> FileRef:
        """The same file, held to how it is now; as it was held before, where it was.

        Raises IMG-1002 when there is no such file.
        """
        if self.seen is not None:
            return self
        try:
            return replace(self, seen=_seen(self.path))
        except OSError as fault:
            raise refuse("IMG-1002", file=self.label, reason=fault_name(fault)) from fault

    def open(self) -> BinaryIO:
        """A seekable stream of the content: gzip is taken off, members are read in place.

        Raises IMG-1002 when the file cannot be opened, IMG-1003 for what is no regular file,
        IMG-1005, IMG-1006 and IMG-1007 for an archive that is broken, encrypted or beyond bounds,
        IMG-1024 when the file is no longer as it was `seen`;
        the stream itself raises IMG-1020 when reading fails.
        """
        return self.open_sized()[0]

    def open_sized(self) -> tuple[BinaryIO, int | None]:
        """The stream of `open` and its size in bytes, None where only reading would tell.

        Such a stream ends in IMG-1007 at more bytes than are believed of its packed size.
        """
        label = self.label
        try:
            stored, stored_size = self._open_stored(label)
            self._check_seen(stored, label)
        except OSError as fault:
            raise refuse("IMG-1002", file=label, reason=fault_name(fault)) from fault
        stream = guarded(stored, label)
        size: int | None = stored_size
        most = DEFAULT_LIMITS.believed_bytes(stored_size)
        if stream.peek(3)[:3] == GZIP_MAGIC:
            unzipped = gzip.GzipFile(fileobj=cast(BinaryIO, stream), mode="rb")
            stream, size = guarded(unzipped, label, under=stream, most=most), None
        if self.inflate_from is not None:
            inflated = InflatedFile(cast(BinaryIO, stream), start=self.inflate_from)
            stream, size = guarded(inflated, label, under=stream, most=most), None
        return cast(BinaryIO, stream), size

    def _check_seen(self, stored: IO[bytes], label: str) -> None:
        if self.seen is None:
            return
        now = _seen(self.path)
        if now != self.seen:
            stored.close()
            raise refuse("IMG-1024", file=label, bytes_before=self.seen[1], bytes_now=now[1])

    def _open_stored(self, label: str) -> tuple[IO[bytes], int]:
        if self.member is not None:
            return open_member(self.path, self.at, self.member, label=label)
        state = os.stat(self.path)
        if not stat.S_ISREG(state.st_mode):
            raise refuse("IMG-1003", file=label, kind=kind_name(state.st_mode))
        return open(self.path, "rb", buffering=0), state.st_size


def _seen(path: str) -> tuple[int, int]:
    state = os.stat(path)
    return state.st_mtime_ns, state.st_size


# A file of many slices is named for each of them.
@lru_cache(maxsize=4096)
def _shown_path(path: str, root: str) -> str:
    name = os.path.relpath(path, root) if root else path
    return name.replace(os.sep, "/").encode("utf-8", "backslashreplace").decode("utf-8")


class GuardedFile(io.RawIOBase):
    """A stream whose faults are IMG-1020: whoever reads it meets no fault of zip, gzip or disk.

    `most`: how many bytes are believed of it; what is beyond them is IMG-1007.
    """

    def __init__(self, stream: Any, label: str, under: Any = None, most: int | None = None) -> None:
        self._stream, self._label, self._under, self.most = stream, label, under, most

    @property
    def name(self) -> str:
        """The file's label: what libraries put in their own messages."""
        return self._label

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            got = int(self._stream.readinto(buffer))
            if self.most is not None:
                self.check_believed(self.tell())
            return got
        except READ_FAULTS as fault:
            raise refuse("IMG-1020", file=self._label, reason=fault_name(fault)) from fault

    def tell(self) -> int:
        return int(self._stream.tell())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and self.most is not None:
            # A stream is inflated up to where one seeks.
            self.check_believed(offset)
        try:
            return int(self._stream.seek(offset, whence))
        except READ_FAULTS as fault:
            raise refuse("IMG-1020", file=self._label, reason=fault_name(fault)) from fault

    def check_believed(self, end: int) -> None:
        """Refuse an offset that a file of this packed size cannot reach."""
        if self.most is not None and end > self.most:
            raise refuse(
                "IMG-1007",
                file=self._label,
                what="bytes or more after unpacking",
                measured=end,
                limit=self.most,
            )

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            if self._under is not None:
                self._under.close()
        super().close()


def guarded(
    stream: Any, label: str, *, under: Any = None, most: int | None = None
) -> io.BufferedReader:
    """A buffered stream that raises IMG-1020, IMG-1007, and closes what lies under it."""
    return io.BufferedReader(GuardedFile(stream, label, under, most))


def check_believed(stream: Any, end: int) -> None:
    """Refuse with IMG-1007 what a header places beyond the bytes believed of a packed file."""
    source = getattr(stream, "raw", None)
    if isinstance(source, GuardedFile):
        source.check_believed(end)


def fault_name(fault: BaseException) -> str:
    """A fault in words that name no file and no content."""
    return getattr(fault, "strerror", None) or type(fault).__name__


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
