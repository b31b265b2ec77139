"""Files that appear together under their names, whole and on disk, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from numbat_registries import refuse

if sys.platform != "win32":
    import fcntl

_PREFIX = ".numbat-writing-"


class Publication:
    """Files being prepared for one directory; made by `publish`."""

    def __init__(self, directory: Path, workroom: Path, *, overwrite: bool) -> None:
        self._directory, self._workroom, self._overwrite = directory, workroom, overwrite
        self._names: list[str] = []
        self._retired: list[str] = []

    def path(self, name: str) -> Path:
        """Where to write the file that will be published as `name`.

        Raises IMG-1703 for a name that is not a plain file name, IMG-1701 when the file exists.
        """
        if Path(name).name != name or name.startswith(".") or "\\" in name or "\0" in name:
            raise refuse("IMG-1703", name=name)
        if not self._overwrite:
            _refuse_existing(self._directory, [name])
        if name not in self._names:
            self._names.append(name)
        return self._workroom / name

    def retire(self, names: Iterable[str]) -> None:
        """Names that belong to the same result and must not outlive it from an earlier one.

        Raises IMG-1701 when one exists and overwriting was not asked for.
        """
        others = [name for name in names if name not in self._names]
        if not self._overwrite:
            _refuse_existing(self._directory, others)
        self._retired += others

    def publish(self) -> None:
        """Give every prepared file its name, in order; what was there before goes last of all."""
        for name in self._names:
            _sync(self._workroom / name)
        done: list[str] = []
        try:
            for name in [*self._retired, *self._names]:
                self._keep_old(name)
            for name in self._names:
                self._name(name)
                done.append(name)
        except BaseException:
            self._undo(done)
            raise
        _sync(self._directory)

    def _old(self, name: str) -> Path:
        return self._workroom / f"old-{name}"

    def _keep_old(self, name: str) -> None:
        target = self._directory / name
        if self._overwrite and target.exists():
            os.rename(target, self._old(name))

    def _name(self, name: str) -> None:
        source, target = self._workroom / name, self._directory / name
        if self._overwrite:
            os.replace(source, target)
            return
        try:
            # A link, unlike a rename, never replaces what somebody else put there meanwhile.
            os.link(source, target)
        except FileExistsError:
            raise refuse("IMG-1701", names=[name]) from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            # This file system has no links.
            _refuse_existing(self._directory, [name])
            os.rename(source, target)

    def _undo(self, done: Iterable[str]) -> None:
        for name in done:
            (self._directory / name).unlink(missing_ok=True)
        for name in [*self._retired, *self._names]:
            if self._old(name).exists():
                os.replace(self._old(name), self._directory / name)


@contextmanager
def publish(directory: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Publication]:
    """Prepare files and publish them together when the block ends without an exception.

    They are written in a hidden folder of `directory`, brought to disk, and renamed in the order in
    which their paths were asked for; so the file that readers look for is asked for last. An
    exception leaves the directory as it was. A killed process leaves at most the hidden folder,
    which the next publication in that directory removes.

    Raises IMG-1701 when a file exists and `overwrite` is false, IMG-1702 when the directory cannot
    be written to, IMG-1703 for an unsafe name.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _remove_abandoned(folder)
            workroom = Path(mkdtemp(prefix=_PREFIX, dir=folder))
            held = _lock(workroom)
    except OSError as error:
        raise _unwritable(error) from error
    try:
        publication = Publication(folder, workroom, overwrite=overwrite)
        yield publication
        publication.publish()
    except OSError as error:
        raise _unwritable(error) from error
    finally:
        shutil.rmtree(workroom, ignore_errors=True)
        if held is not None:
            os.close(held)


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


def _remove_abandoned(folder: Path) -> None:
    for room in folder.glob(f"{_PREFIX}*"):
        handle = _lock(room, wait=False) if room.is_dir() else None
        if handle is None:
            continue
        _restore(room, folder)
        shutil.rmtree(room, ignore_errors=True)
        os.close(handle)


def _restore(room: Path, folder: Path) -> None:
    """Give back what a process had moved away when it was killed, where nothing took its place."""
    for old in room.glob("old-*"):
        target = folder / old.name.removeprefix("old-")
        if not target.exists():
            os.rename(old, target)
