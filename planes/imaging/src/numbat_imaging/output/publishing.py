"""Files that appear together under their names, whole and on disk, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from numbat_registries import refuse

if sys.platform != "win32":
    import fcntl

_WRITING = ".numbat-writing-"
_WRITTEN = ".numbat-written-"
_OLD = ".old-"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Publication:
    """Files being prepared for one directory; made by `publish`."""

    def __init__(self, directory: Path, room: Path, *, overwrite: bool) -> None:
        self._directory, self._room, self._overwrite = directory, room, overwrite
        self._names: list[str] = []
        self._retired: list[str] = []
        self._renamed: list[str] = []

    def path(self, name: str) -> Path:
        """Where to write the file that will be published as `name`.

        Raises IMG-1703 for a name that is not a plain file name, IMG-1701 when the file exists.
        """
        if not name or Path(name).name != name or name.startswith(".") or set(name) & set("\\\0"):
            raise refuse("IMG-1703", name=name)
        if not self._overwrite:
            _refuse_existing(self._directory, [name])
        if name not in self._names:
            self._names.append(name)
        return self._room / name

    def retire(self, names: Iterable[str]) -> None:
        """Names that belong to the same result and must not outlive it from an earlier one.

        Raises IMG-1701 when one exists and overwriting was not asked for.
        """
        others = [name for name in names if name not in self._names]
        if not self._overwrite:
            _refuse_existing(self._directory, others)
        self._retired += others

    def publish(self) -> Path:
        """Give every prepared file its name, in order; gives the folder that may now be removed."""
        for name in self._names:
            _sync(self._room / name)
        try:
            if self._overwrite:
                for name in [*self._retired, *self._names]:
                    self._move_old_away(name)
            for name in self._names:
                self._name(name)
            _sync(self._directory)
            # From here on the result counts as published, whatever happens to this process.
            done = self._room.with_name(self._room.name.replace(_WRITING, _WRITTEN))
            os.rename(self._room, done)
        except BaseException:
            for name in self._renamed:
                os.rename(self._directory / name, self._room / name)
            roll_back(self._room, self._directory)
            raise
        return done

    def _move_old_away(self, name: str) -> None:
        target = self._directory / name
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists():
            os.rename(target, self._room / f"{_OLD}{name}")

    def _name(self, name: str) -> None:
        source, target = self._room / name, self._directory / name
        try:
            # A link, unlike a rename, never replaces what somebody else put there meanwhile.
            os.link(source, target)
        except FileExistsError:
            raise refuse("IMG-1701", names=[name]) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _refuse_existing(self._directory, [name])
            os.rename(source, target)
            self._renamed.append(name)


@contextmanager
def publish(directory: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Publication]:
    """Prepare files and publish them together when the block ends without an exception.

    They are written in a hidden folder of `directory`, brought to disk, and named in the order in
    which their paths were asked for; so the file that readers look for is asked for last. An
    exception leaves the directory as it was. What a killed process leaves, a hidden folder and at
    worst some of the names, the next publication in that directory takes back.

    Raises IMG-1701 when a file exists and `overwrite` is false, IMG-1702 when the directory cannot
    be written to, IMG-1703 for an unsafe name.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _clear_up(folder)
            room = Path(mkdtemp(prefix=_WRITING, dir=folder))
            held = _lock(room)
    except OSError as error:
        raise _unwritable(error) from error
    try:
        publication = Publication(folder, room, overwrite=overwrite)
        yield publication
        room = publication.publish()
    except OSError as error:
        raise _unwritable(error) from error
    finally:
        shutil.rmtree(room, ignore_errors=True)
        if held is not None:
            os.close(held)


@contextmanager
def brought_to_disk(path: Path) -> Iterator[None]:
    """A file is brought to disk while the block runs, and is there when it ends."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        synced = beside.submit(_sync, path)
        yield
        synced.result()


def make_folder(directory: Path) -> None:
    """A folder for results, before work is spent on them.

    Raises IMG-1702 when it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(error) from error


def roll_back(room: Path, directory: Path) -> None:
    """Take back the names that a publication has given so far, and give back what was there."""
    for prepared in room.iterdir():
        target = directory / prepared.name
        if not prepared.name.startswith(_OLD) and target.exists() and target.samefile(prepared):
            target.unlink()
    for old in room.glob(f"{_OLD}*"):
        target = directory / old.name.removeprefix(_OLD)
        if not target.exists():
            os.rename(old, target)


def _unwritable(error: OSError) -> Exception:
    reason = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return refuse("IMG-1702", reason=reason, meaning=os.strerror(error.errno or 0))


def _refuse_existing(directory: Path, names: Iterable[str]) -> None:
    existing = [name for name in names if (directory / name).exists()]
    if existing:
        raise refuse("IMG-1701", names=existing)


def _sync(path: Path) -> None:
    if path.is_dir() and sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(folder: Path, *, wait: bool = True) -> int | None:
    """An exclusive lock that ends with the process, however that ends; None where there is none."""
    if sys.platform == "win32":
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        # Somebody holds it, or this file system has no locks.
        os.close(handle)
        return None
    return handle


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = _lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _clear_up(folder: Path) -> None:
    """Take back what killed processes left unfinished; a room that is at work is locked."""
    for room in [*folder.glob(f"{_WRITING}*"), *folder.glob(f"{_WRITTEN}*")]:
        handle = _lock(room, wait=False) if room.is_dir() else None
        if handle is None:
            continue
        if room.name.startswith(_WRITING):
            roll_back(room, folder)
        shutil.rmtree(room, ignore_errors=True)
        os.close(handle)
