"""Zip archives read in place: nothing is ever extracted to a name that an archive chose."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from numbat_imaging.intake.limits import DEFAULT_LIMITS, Limits
from numbat_registries import Refusal, refuse

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

_ENCRYPTED = 0x1
_OPEN_ARCHIVES = 4
_SPOOL_BYTES = 32 << 20
_CHUNK = 1 << 20

# Opening an archive means reading its whole central directory, and a series inside one asks for
# each member in turn. Keyed by process, since a forked child shares its parent's file offsets. An
# evicted archive stays open for as long as a stream of it lives.
_open_archives: OrderedDict[tuple[object, ...], zipfile.ZipFile] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive: its name, its places in the central directories, or its refusal."""

    name: str
    at: tuple[int, ...]
    refusal: Refusal | None = None
    is_archive: bool = False


def open_member(path: str, at: tuple[int, ...], name: str, *, label: str) -> tuple[IO[bytes], int]:
    """A seekable stream of one member, and its declared size in bytes.

    Raises IMG-1005 for a broken archive or an unknown member, IMG-1006 for an encrypted one and
    IMG-1007 for one beyond the bounds.
    """
    archive = _archive(path, at[:-1], label=label)
    try:
        info = archive.infolist()[at[-1]] if at else archive.getinfo(name)
    except (KeyError, IndexError) as fault:
        raise refuse("IMG-1005", file=label, reason="no such member") from fault
    refusal = _member_refusal(info, label=label, limits=DEFAULT_LIMITS)
    if refusal is not None:
        raise refusal
    try:
        return archive.open(info), info.file_size
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as fault:
        raise refuse("IMG-1005", file=label, reason=_reason(fault)) from fault


def list_members(path: str, *, label: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Member]:
    """Every file of the archive, and of the archives directly inside it, in order of name.

    An archive in an archive in an archive is not opened: its refusal says so.
    Raises IMG-1005 and IMG-1007 for the archive as a whole.
    """
    archive = _archive(path, (), label=label)
    yield from _members(archive, path, (), "", label=label, limits=limits)


def _members(
    archive: zipfile.ZipFile,
    path: str,
    outer: tuple[int, ...],
    prefix: str,
    *,
    label: str,
    limits: Limits,
) -> Iterator[Member]:
    infos = archive.infolist()
    declared = sum(info.file_size for info in infos)
    if len(infos) > limits.archive_members:
        raise _beyond(label, "members", len(infos), limits.archive_members)
    if declared > limits.archive_bytes:
        raise _beyond(label, "bytes in all members", declared, limits.archive_bytes)
    for index in sorted(range(len(infos)), key=lambda place: (infos[place].filename, place)):
        info = infos[index]
        if info.is_dir():
            continue
        member = Member(prefix + _shown(info.filename), (*outer, index))
        name = f"{label}!/{member.name}"
        refusal = _member_refusal(info, label=name, limits=limits)
        if refusal is not None:
            yield Member(member.name, member.at, refusal)
            continue
        yield from _inside(archive, info, member, path, label=name, limits=limits)


def _inside(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    member: Member,
    path: str,
    *,
    label: str,
    limits: Limits,
) -> Iterator[Member]:
    try:
        is_archive = info.file_size >= 22 and _magic(archive, info) in ZIP_MAGIC
        if not is_archive:
            yield member
        elif len(member.at) > 1:
            raise _beyond(label, "archives inside one another", 3, 2)
        else:
            inner = _archive(path, member.at, label=label)
            yield Member(member.name, member.at, is_archive=True)
            yield from _members(
                inner, path, member.at, f"{member.name}!/", label=label, limits=limits
            )
    except Refusal as refusal:
        yield Member(member.name, member.at, refusal)


def _magic(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # A member that cannot be opened is no archive to look into: reading it says what is wrong.
    try:
        with archive.open(info) as stream:
            return stream.read(4)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        return b""


def _member_refusal(info: zipfile.ZipInfo, *, label: str, limits: Limits) -> Refusal | None:
    if info.flag_bits & _ENCRYPTED:
        return refuse("IMG-1006", file=label)
    if info.file_size > limits.inflated_bytes:
        return _beyond(label, "bytes in one member", info.file_size, limits.inflated_bytes)
    ratio = info.file_size // max(info.compress_size, 1)
    if ratio > limits.ratio and info.file_size > limits.ratio_floor_bytes:
        return _beyond(label, "times its packed size", ratio, limits.ratio)
    return None


def _beyond(label: str, what: str, measured: int, limit: int) -> Refusal:
    return refuse("IMG-1007", file=label, what=what, measured=measured, limit=limit)


def _archive(path: str, at: tuple[int, ...], *, label: str) -> zipfile.ZipFile:
    try:
        state = os.stat(path)
        key = (os.getpid(), path, state.st_mtime_ns, state.st_size, at)
        known = _open_archives.get(key)
        if known is not None:
            _open_archives.move_to_end(key)
            return known
        source = _unpacked(_archive(path, at[:-1], label=label), at[-1], label) if at else path
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as fault:
        raise refuse("IMG-1005", file=label, reason=_reason(fault)) from fault
    except OSError as fault:
        raise refuse("IMG-1002", file=label, reason=_reason(fault)) from fault
    _open_archives[key] = archive
    while len(_open_archives) > _OPEN_ARCHIVES:
        _open_archives.popitem(last=False)
    return archive


def _unpacked(archive: zipfile.ZipFile, index: int, label: str) -> IO[bytes]:
    # The central directory lies at the end, so an archive inside an archive needs random access.
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 (lives in the cache)
    written = 0
    with archive.open(archive.infolist()[index]) as stream:
        while chunk := stream.read(_CHUNK):
            written += len(chunk)
            if written > DEFAULT_LIMITS.inflated_bytes:
                raise _beyond(label, "bytes in one member", written, DEFAULT_LIMITS.inflated_bytes)
            spool.write(chunk)
    return cast("IO[bytes]", spool)


def _reason(fault: Exception) -> str:
    # zipfile's own texts name members, and members may be named for patients.
    return getattr(fault, "strerror", None) or type(fault).__name__


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
