"""One writer at a time: a file locked against other processes, and this process's threads."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Held while this process changes a ledger or what its children inherit. A fork waits for it, so
#: that no child starts with a lock that nobody there will release.
process_lock = threading.Lock()

os.register_at_fork(
    before=process_lock.acquire,
    after_in_parent=process_lock.release,
    after_in_child=process_lock.release,
)


@contextmanager
def locked_for_append(path: Path) -> Iterator[int]:
    """A descriptor that appends to the file, created if missing, while nobody else holds it.

    The lock is on the file itself (flock): it goes with a killed process, leaves no second file
    behind, and needs no right to write in the folder. Raises OSError.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if _is_at(path, descriptor):
                    yield descriptor
                    return
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    # While this process waited for the lock, the file may have been moved or deleted; what is
    # written to it now would be lost.
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def read_whole_lines(path: Path) -> bytes:
    """The content of the file while nobody is in the middle of a line. Raises OSError."""
    with path.open("rb") as stream:
        # A file system without locks still has the content.
        with suppress(OSError):
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH)
        return stream.read()


def write_all(descriptor: int, content: bytes) -> None:
    """Write everything, however many calls it takes. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
