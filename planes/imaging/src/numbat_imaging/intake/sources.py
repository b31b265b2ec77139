"""Where files come from: folders, zip archives, a DICOMDIR's medium, or a list of any of these."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from numbat_imaging.intake.archives import ZIP_MAGIC, list_members
from numbat_imaging.intake.files import FileRef, kind_name
from numbat_imaging.intake.limits import DEFAULT_LIMITS, Limits
from numbat_imaging.intake.records import FileRecord, refused, set_aside
from numbat_registries import Refusal, notice, refuse

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_MEDIA_DIRECTORY = re.compile(rb"1\.2\.840\.10008\.1\.3\.10(?![0-9.])")
_DIRECTORY_BYTES = 1024

_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """What lies at the paths: files still to be read, and those whose account is settled."""

    files: tuple[FileRef, ...]
    settled: tuple[FileRecord, ...]


def find_files(paths: Paths, *, limits: Limits = DEFAULT_LIMITS) -> Found:
    """Every file at `paths`, in order of path and member, each once.

    Folders are searched to the bottom, hidden files included; links are followed once, never to
    what is read under its own name. A zip archive, also one inside a folder, is looked into. A
    DICOMDIR that is named stands for the folder it lies in. Pipes, sockets and devices are named
    and never opened.

    Raises IMG-1001 for a path where nothing is.
    """
    asked = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    search = _Search(root="", limits=limits)
    starts = [_start_of(os.fspath(path)) for path in asked]
    search.root = _common_root(starts)
    for start in starts:
        search.take(start)
    search.follow_links()
    return search.found()


def _start_of(path: str) -> str:
    start = os.path.abspath(path)
    if not os.path.lexists(start):
        raise refuse("IMG-1001", path=path)
    if os.path.isfile(start) and _is_media_directory(start):
        return os.path.dirname(start)
    return start


def _is_media_directory(path: str) -> bool:
    # Only asked of files that were named: a DICOMDIR deep in a folder is met by its header.
    start = _first_bytes(path, _DIRECTORY_BYTES)
    return start[128:132] == b"DICM" and _MEDIA_DIRECTORY.search(start) is not None


def _first_bytes(path: str, size: int) -> bytes:
    # A file that cannot be read is accounted for when its header is asked for.
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(size)
    except OSError:
        return b""


def _common_root(starts: list[str]) -> str:
    folders = [start if os.path.isdir(start) else os.path.dirname(start) for start in starts]
    try:
        return os.path.commonpath(folders) if folders else ""
    except ValueError:
        return ""


@dataclass(slots=True)
class _Search:
    """One search: what was found, and the links that wait until all real names are known."""

    root: str
    limits: Limits
    files: dict[str, FileRef] = field(default_factory=dict)
    identities: set[_Identity] = field(default_factory=set)
    folders: set[_Identity] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    settled: dict[str, FileRecord] = field(default_factory=dict)

    def ref(self, path: str) -> FileRef:
        return FileRef(path, root=self.root)

    def take(self, path: str) -> None:
        """Take one path that exists: a folder with all it holds, a file, or a link for later."""
        try:
            state = os.lstat(path)
        except OSError as fault:
            self.unreadable(path, fault)
            return
        if stat.S_ISLNK(state.st_mode):
            self.links.append(path)
        else:
            self.take_real(path, state)

    def take_real(self, path: str, state: os.stat_result) -> None:
        identity = (state.st_dev, state.st_ino)
        if stat.S_ISDIR(state.st_mode):
            if identity not in self.folders:
                self.folders.add(identity)
                self.take_folder(path, state.st_dev)
        elif stat.S_ISREG(state.st_mode):
            self.identities.add(identity)
            self.files[path] = self.ref(path)
        else:
            kind = kind_name(state.st_mode)
            ref = self.ref(path)
            self.settled[path] = refused(ref, refuse("IMG-1003", file=ref.label, kind=kind))

    def take_folder(self, path: str, device: int) -> None:
        waiting = [(path, device)]
        while waiting:
            folder, device = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    ordered = sorted(entries, key=lambda entry: entry.name)
            except OSError as fault:
                self.unreadable(folder, fault)
                continue
            for entry in ordered:
                if entry.is_file(follow_symlinks=False):
                    self.identities.add((device, entry.inode()))
                    self.files[entry.path] = self.ref(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    identity = (state.st_dev, state.st_ino)
                    if identity not in self.folders:
                        self.folders.add(identity)
                        waiting.append((entry.path, state.st_dev))
                else:
                    self.take(entry.path)

    def follow_links(self) -> None:
        """Follow each link to what no real name reached; links found on the way come after."""
        while self.links:
            waiting, self.links = sorted(self.links), []
            for path in waiting:
                self.follow(path)

    def follow(self, path: str) -> None:
        try:
            state = os.stat(path)
        except OSError:
            self.not_followed(path, "it leads nowhere")
            return
        identity = (state.st_dev, state.st_ino)
        if stat.S_ISDIR(state.st_mode) and identity in self.folders:
            self.not_followed(path, "its folder is read under its own name")
        elif stat.S_ISREG(state.st_mode) and identity in self.identities:
            self.not_followed(path, "its file is read under its own name")
        else:
            self.take_real(path, state)

    def not_followed(self, path: str, reason: str) -> None:
        ref = self.ref(path)
        self.settled[path] = set_aside(ref, notice("IMG-1004", file=ref.label, reason=reason))

    def unreadable(self, path: str, fault: OSError) -> None:
        ref = self.ref(path)
        reason = fault.strerror or type(fault).__name__
        self.settled[path] = refused(ref, refuse("IMG-1002", file=ref.label, reason=reason))

    def found(self) -> Found:
        files: list[FileRef] = []
        settled = list(self.settled.values())
        for ref in sorted(self.files.values()):
            if _first_bytes(ref.path, 4) not in ZIP_MAGIC:
                files.append(ref)
                continue
            for entry in _opened(ref, self.limits):
                if isinstance(entry, FileRef):
                    files.append(entry)
                else:
                    settled.append(entry)
        return Found(tuple(sorted(files)), tuple(sorted(settled, key=lambda record: record.ref)))


def _opened(ref: FileRef, limits: Limits) -> Iterator[FileRef | FileRecord]:
    """A zip archive's own record and everything in it."""
    try:
        members = list(list_members(ref.path, label=ref.label, limits=limits))
    except Refusal as refusal:
        yield refused(ref, refusal)
        return
    yield _container(ref)
    for member in members:
        inner = FileRef(ref.path, member.name, member.at, root=ref.root)
        if member.refusal is not None:
            yield refused(inner, member.refusal)
        elif member.is_archive:
            yield _container(inner)
        else:
            yield inner


def _container(ref: FileRef) -> FileRecord:
    return set_aside(ref, notice("IMG-1009", file=ref.label, kind="zip archive"))
