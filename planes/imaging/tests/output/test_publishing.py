"""All files of a result, or none: on exceptions, on kills, on what was there before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numbat_imaging.output import publishing
from numbat_imaging.output.publishing import publish
from numbat_registries import Refusal


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _write(folder: Path, files: dict[str, str], *, then: Callable[[], None] | None = None) -> None:
    with publish(folder) as publication:
        for name, text in files.items():
            publication.path(name).write_text(text)
        if then is not None:
            then()


def _replace(folder: Path, files: dict[str, str], *, retired: list[str]) -> None:
    with publish(folder, overwrite=True) as publication:
        for name, text in files.items():
            publication.path(name).write_text(text)
        publication.retire(retired)


def test_files_appear_together_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    with publish(out) as publication:
        publication.path("a.json").write_text("1")
        publication.path("a.nii").write_text("2")
        assert [name for name in _names(out) if not name.startswith(".")] == []
    assert _names(out) == ["a.json", "a.nii"]


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _write(tmp_path, {"a.json": "1"}, then=fail)
    assert _names(tmp_path) == []


def test_what_exists_stays_unless_told(tmp_path: Path) -> None:
    (tmp_path / "a.nii").write_text("earlier")
    with pytest.raises(Refusal) as caught, publish(tmp_path) as publication:
        publication.path("a.nii")
    assert caught.value.code == "IMG-1701"
    assert caught.value.diagnostic.fields["names"] == ["a.nii"]
    with publish(tmp_path, **caught.value.diagnostic.plans[0].keywords()) as publication:
        publication.path("a.nii").write_text("later")
    assert (tmp_path / "a.nii").read_text() == "later"


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def interfere() -> None:
        (tmp_path / "a.nii").write_text("somebody else's")

    with pytest.raises(Refusal) as caught:
        _write(tmp_path, {"a.json": "mine", "a.nii": "mine"}, then=interfere)
    assert caught.value.code == "IMG-1701"
    assert _names(tmp_path) == ["a.nii"]
    assert (tmp_path / "a.nii").read_text() == "somebody else's"


def test_files_of_an_earlier_result_do_not_outlive_it(tmp_path: Path) -> None:
    for name in ("a.bvec", "a.nii", "b.bvec"):
        (tmp_path / name).write_text("earlier")
    with pytest.raises(Refusal), publish(tmp_path) as publication:
        publication.retire(["a.bvec"])
    with publish(tmp_path, overwrite=True) as publication:
        publication.path("a.nii").write_text("later")
        publication.retire(["a.bvec", "a.nii", "a.png"])
    assert _names(tmp_path) == ["a.nii", "b.bvec"]


def test_a_failure_while_naming_brings_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.bvec", "a.json", "a.nii"):
        (tmp_path / name).write_text(f"earlier {name}")
    link = os.link

    def failing(source: Path, target: Path) -> None:
        if Path(target).name == "a.nii":
            raise OSError(28, "no space")
        link(source, target)

    monkeypatch.setattr(publishing.os, "link", failing)
    with pytest.raises(Refusal) as caught:
        _replace(tmp_path, {"a.json": "later", "a.nii": "later"}, retired=["a.bvec"])
    assert caught.value.code == "IMG-1702"
    assert caught.value.diagnostic.fields["reason"] == "ENOSPC"
    assert _names(tmp_path) == ["a.bvec", "a.json", "a.nii"]
    for name in _names(tmp_path):
        assert (tmp_path / name).read_text() == f"earlier {name}"


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(publishing.os, "link", no_links)
    _write(tmp_path, {"a.nii": "here"})
    assert _names(tmp_path) == ["a.nii"]

    def interfere() -> None:
        (tmp_path / "b.nii").write_text("somebody else's")

    with pytest.raises(Refusal) as caught:
        _write(tmp_path, {"b.json": "mine", "b.nii": "mine"}, then=interfere)
    assert caught.value.code == "IMG-1701"
    assert _names(tmp_path) == ["a.nii", "b.nii"]


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "/a", ".hidden", "a\\b", "a\0b"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal) as caught, publish(tmp_path) as publication:
        publication.path(name)
    assert caught.value.code == "IMG-1703"
    assert _names(tmp_path) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal) as caught, publish(tmp_path / "file" / "out"):
        pass
    assert caught.value.code == "IMG-1702"
    assert caught.value.diagnostic.fields["reason"] == "ENOTDIR"


_CHILD = """
import os, signal, sys
from numbat_imaging.output import publishing
from numbat_imaging.output.publishing import publish

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

folder, moment = sys.argv[1:]
with publish(folder, overwrite=True) as publication:
    publication.path("a.json").write_text("later")
    path = publication.path("a.nii")
    path.write_text("half of it")
    if moment == "writing":
        killed()
    if moment == "naming":
        link = os.link
        publishing.os.link = lambda s, t: killed() if t.name == "a.nii" else link(s, t)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL and file locks are POSIX")
@pytest.mark.parametrize("moment", ["writing", "naming"])
def test_a_killed_process_leaves_no_result_and_the_next_one_clears_up(
    tmp_path: Path, moment: str
) -> None:
    (tmp_path / "a.nii").write_text("earlier")
    child = subprocess.run([sys.executable, "-c", _CHILD, str(tmp_path), moment], check=False)
    assert child.returncode == -signal.SIGKILL
    visible = [name for name in _names(tmp_path) if not name.startswith(".")]
    assert visible == (["a.nii"] if moment == "writing" else ["a.json"])
    with publish(tmp_path) as publication:
        publication.path("b.nii").write_text("another")
    assert _names(tmp_path) == ["a.nii", "b.nii"]
    assert (tmp_path / "a.nii").read_text() == "earlier"


def test_a_process_killed_after_naming_has_published(tmp_path: Path) -> None:
    (tmp_path / ".numbat-written-1").mkdir()
    (tmp_path / "a.nii").write_text("done")
    os.link(tmp_path / "a.nii", tmp_path / ".numbat-written-1" / "a.nii")
    with publish(tmp_path) as publication:
        publication.path("b.nii").write_text("another")
    assert _names(tmp_path) == ["a.nii", "b.nii"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.nii").mkdir()
    (tmp_path / "a.nii" / "precious").write_text("")
    with pytest.raises(Refusal) as caught:
        _replace(tmp_path, {"a.nii": "later"}, retired=[])
    assert caught.value.code == "IMG-1702"
    assert (tmp_path / "a.nii" / "precious").exists()


def test_a_publication_at_work_is_not_cleared_away(tmp_path: Path) -> None:
    with publish(tmp_path) as first:
        first.path("a.nii").write_text("a")
        with publish(tmp_path) as second:
            second.path("b.nii").write_text("b")
    assert _names(tmp_path) == ["a.nii", "b.nii"]
