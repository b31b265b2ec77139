"""Data sets that no wheel carries: named in corpus.toml, found by NUMBAT_CORPUS or fetched.

A set is used only when its content has the digest that corpus.toml names; where it is absent, the
clauses that rest on it are printed as undischarged, and nothing else changes.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numbat_gates.digests import digest_tree
from numbat_gates.planes import Plane, discover_planes
from numbat_gates.verdicts import NotRun
from numbat_registries import refuse

VARIABLE = "NUMBAT_CORPUS"
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".tar", ".zip")

Progress = Callable[[int, int | None], None]
Observer = Callable[[str, str], None]

_NEEDED = ("name", "source", "commit", "licence", "sha256")
_ALLOWED = ("title", "archive", "strip", "files", "size_bytes")

_known: ContextVar[Mapping[str, CorpusSet] | None] = ContextVar("numbat_corpus_sets", default=None)
_observer: ContextVar[Observer | None] = ContextVar("numbat_corpus_observer", default=None)
_verified: dict[tuple[Path, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class CorpusSet:
    """One named set: where it comes from, under what licence, and the digest of its content.

    `archive` is the address of a tar or zip of it, when it can be downloaded; `strip` is how many
    leading folders of the archive to leave away.
    """

    name: str
    source: str
    commit: str
    licence: str
    sha256: str
    title: str = ""
    archive: str = ""
    strip: int = 0
    files: int | None = None
    size_bytes: int | None = None


def load_corpus_file(path: Path) -> dict[str, CorpusSet]:
    """The sets that one corpus.toml names; none when there is no such file.

    Raises GATE-0703 for a file that is not TOML of this shape or names a set twice.
    """
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise refuse("GATE-0703", file=path.name, reason=str(error)) from error
    sets: dict[str, CorpusSet] = {}
    for entry in document.get("set", []):
        item = _parse_set(entry, file=path.name)
        if item.name in sets:
            raise refuse("GATE-0703", file=path.name, reason=f"{item.name} is named twice")
        sets[item.name] = item
    return sets


def _parse_set(entry: Mapping[str, Any], *, file: str) -> CorpusSet:
    name = entry.get("name", "(no name)")
    missing = [key for key in _NEEDED if not isinstance(entry.get(key), str) or not entry[key]]
    unknown = sorted(set(entry) - {*_NEEDED, *_ALLOWED})
    if missing or unknown:
        reason = f"{name}: missing {missing}, unknown {unknown}"
        raise refuse("GATE-0703", file=file, reason=reason)
    parts = name.split("/")
    if not all(part and part.strip(".") and "\\" not in part for part in parts):
        raise refuse("GATE-0703", file=file, reason=f"{name} is not a plain relative path")
    digest = entry["sha256"].removeprefix("sha256:")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise refuse("GATE-0703", file=file, reason=f"{name}: sha256 is not a digest")
    return CorpusSet(**{**entry, "sha256": f"sha256:{digest}"})


def corpus_sets(planes: Iterable[Plane] | None = None) -> dict[str, CorpusSet]:
    """The sets that planes name, all installed ones by default.

    Raises GATE-0703 as `load_corpus_file` does, and when two planes disagree about a set.
    """
    sets: dict[str, CorpusSet] = {}
    for plane in discover_planes() if planes is None else planes:
        for name, item in load_corpus_file(plane.corpus_file).items():
            if sets.get(name, item).sha256 != item.sha256:
                reason = f"{name} has another digest in another plane"
                raise refuse("GATE-0703", file=f"{plane.name}: corpus.toml", reason=reason)
            sets[name] = item
    return dict(sorted(sets.items()))


def corpus_root() -> Path:
    """The folder that holds the sets: NUMBAT_CORPUS, or the user's cache.

    Raises GATE-0701 when NUMBAT_CORPUS names no folder: a typing error must not read as absence.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return default_root()
    root = Path(named).expanduser().absolute()
    if not root.is_dir():
        raise refuse("GATE-0701", folder=str(root))
    return root


def default_root() -> Path:
    """Where fetched sets go when NUMBAT_CORPUS is not set."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "numbat" / "corpus"


@contextmanager
def using(sets: Mapping[str, CorpusSet], observer: Observer) -> Iterator[None]:
    """Look sets up among these, and tell `observer` name and digest of each one that is used."""
    tokens = _known.set(sets), _observer.set(observer)
    try:
        yield
    finally:
        _known.reset(tokens[0])
        _observer.reset(tokens[1])


def corpus(name: str) -> Path | None:
    """The folder of a set, or None when it is absent here.

    Raises GATE-0704 for a name that no corpus.toml has, GATE-0702 when the content is not what
    corpus.toml names, GATE-0701 when NUMBAT_CORPUS names no folder.
    """
    known = _known.get()
    sets = corpus_sets() if known is None else known
    item = sets.get(name)
    if item is None:
        raise refuse("GATE-0704", name=name, known=sorted(sets))
    path = corpus_root() / name
    if not path.exists():
        return None
    found = _content_digest(path)
    if found != item.sha256:
        raise refuse("GATE-0702", name=name, expected=item.sha256, found=found)
    observer = _observer.get()
    if observer is not None:
        observer(f"corpus:{name}", found)
    return path


def require_corpus(name: str) -> Path:
    """The folder of a set; where it is absent the gate that asks is NOT_RUN."""
    path = corpus(name)
    if path is None:
        raise NotRun(f"the corpus set {name} is not on this machine")
    return path


def _content_digest(path: Path) -> str:
    # Hashing once a process is enough: a run is one process, and a set of gates asks many times.
    # A set changed in between has another newest file or another number of files.
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    newest = max((item.stat().st_mtime_ns for item in files), default=0)
    key = (path, len(files), newest)
    if key not in _verified:
        _verified[key] = digest_tree(path)
    return _verified[key]


def fetch(
    item: CorpusSet, *, into: Path, offline: Path | None = None, progress: Progress | None = None
) -> Path:
    """Bring one set to `into`, from an offline folder or its archive, and check its digest first.

    The set appears under its name only when it is whole and right. One that is there already is
    checked and kept.

    Raises GATE-0702 when the set in place is not the one that is named, GATE-0705 when it cannot be
    read or downloaded, GATE-0706 when what came has another digest, GATE-0707 when there is no
    place to get it from.
    """
    target = into / item.name
    if target.exists():
        found = digest_tree(target)
        if found != item.sha256:
            raise refuse("GATE-0702", name=item.name, expected=item.sha256, found=found)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as scratch:
        source, content = _content(item, Path(scratch), offline, progress)
        found = digest_tree(content)
        if found != item.sha256:
            raise refuse(
                "GATE-0706", name=item.name, source=source, expected=item.sha256, found=found
            )
        os.replace(content, target)
    return target


def _content(
    item: CorpusSet, scratch: Path, offline: Path | None, progress: Progress | None
) -> tuple[str, Path]:
    try:
        if offline is not None:
            return _offline_content(item, scratch, offline)
        if not item.archive:
            raise refuse("GATE-0707", name=item.name, source=item.source)
        archive = _download(item.archive, scratch, progress)
        return item.archive, _unpack(archive, scratch / "content", item.strip)
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        where = str(offline) if offline is not None else item.archive
        raise refuse("GATE-0705", name=item.name, source=where, reason=str(error)) from error


def _offline_content(item: CorpusSet, scratch: Path, offline: Path) -> tuple[str, Path]:
    place = offline / item.name
    content = scratch / "content"
    if place.is_dir():
        shutil.copytree(place, content)
        return str(place), content
    for suffix in ARCHIVE_SUFFIXES:
        archive = place.with_name(place.name + suffix)
        if archive.is_file():
            return str(archive), _unpack(archive, content, item.strip)
    raise refuse("GATE-0707", name=item.name, source=str(place))


def _download(address: str, scratch: Path, progress: Progress | None) -> Path:
    from urllib.request import urlopen

    suffix = next((end for end in ARCHIVE_SUFFIXES if address.endswith(end)), ".tar")
    path = scratch / f"archive{suffix}"
    with urlopen(address) as answer, path.open("wb") as stream:
        length = answer.headers.get("Content-Length")
        total = int(length) if length else None
        done = 0
        while piece := answer.read(1 << 20):
            stream.write(piece)
            done += len(piece)
            if progress is not None:
                progress(done, total)
    return path


def _unpack(archive: Path, content: Path, strip: int) -> Path:
    content.mkdir()
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(content)
    else:
        with tarfile.open(archive) as packed:
            # The "data" filter refuses links and paths that leave the folder.
            packed.extractall(content, filter="data")
    for _ in range(strip):
        inside = list(content.iterdir())
        if len(inside) != 1 or not inside[0].is_dir():
            raise OSError(f"{archive.name} does not hold one folder to strip")
        content = inside[0]
    return content
