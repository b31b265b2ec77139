"""Corpus sets: listed, found, held against their digest, and fetched whole or not at all."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from numbat_gates.corpora import CorpusSet, corpus_root, corpus_sets, fetch, load_corpus_file
from numbat_gates.digests import digest_tree
from numbat_gates.runner import run_plane
from numbat_gates.verdicts import Verdict
from numbat_registries import Refusal

FILES = {"case_1/slice.dcm": b"one", "case_2/slice.dcm": b"two", "CASES.tsv": b"case\n"}


def make_set(root: Path, name: str = "demo/scans") -> Path:
    for inside, content in FILES.items():
        path = root / name / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root / name


def listed(digest: str, **changes: Any) -> str:
    entry = {
        "name": "demo/scans",
        "source": "made by the tests",
        "commit": "none",
        "licence": "CC0-1.0",
        "sha256": digest,
    }
    pairs = (entry | changes).items()
    return "[[set]]\n" + "".join(
        f"{key} = {value!r}\n" for key, value in pairs if value is not None
    )


def named(digest: str, **changes: Any) -> CorpusSet:
    whole = {"name": "demo/scans", "source": "here", "commit": "none", "licence": "CC0-1.0"}
    return CorpusSet(**(whole | {"sha256": digest} | changes))


def refusal(act: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(Refusal) as caught:
        act(*args, **more)
    return caught.value.code


# ---------------------------------------------------------------------- digests


def test_the_digest_is_the_one_of_sha256sum(tmp_path: Path) -> None:
    from hashlib import sha256

    folder = make_set(tmp_path)
    lines = [f"{sha256(FILES[name]).hexdigest()}  {name}\n" for name in sorted(FILES)]
    assert digest_tree(folder) == "sha256:" + sha256("".join(lines).encode()).hexdigest()


def test_the_digest_knows_names_and_content_and_no_times(tmp_path: Path) -> None:
    folder = make_set(tmp_path)
    before = digest_tree(folder)
    os.utime(folder / "CASES.tsv", (1, 1))
    assert digest_tree(folder) == before
    (folder / "CASES.tsv").rename(folder / "cases.tsv")
    assert digest_tree(folder) != before


# ---------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    "changes",
    [
        {"licence": None},
        {"sha256": "md5:1"},
        {"name": "../outside"},
        {"name": "/outside"},
        {"license": "CC0-1.0"},
    ],
)
def test_an_entry_that_lacks_or_misspells_something_is_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = tmp_path / "corpus.toml"
    path.write_text(listed("sha256:" + "0" * 64, **changes))
    assert refusal(load_corpus_file, path) == "GATE-0703"


def test_two_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.toml"
    path.write_text(listed("0" * 64) + listed("0" * 64))
    assert refusal(load_corpus_file, path) == "GATE-0703"


def test_a_plane_without_a_list_names_no_set(plane: Any) -> None:
    assert corpus_sets([plane.plane]) == {}


def test_a_folder_that_is_not_there_is_no_absence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBAT_CORPUS", str(tmp_path / "typo"))
    assert refusal(corpus_root) == "GATE-0701"


# ---------------------------------------------------------------------- in a gate

CLAUSE = """
[[clause]]
id = "DEM-R001.c1"
requirement = "DEM-R001"
text = "On real scans."
awaits = "corpus"
because = "Real scans are in no wheel."
"""
USES = """
check.true("phantom", True)
folder = check.corpus("demo/scans", clauses=["DEM-R001.c1"])
if folder is not None:
    check.equal("cases", len(list(folder.glob("case_*"))), 2)
"""


@pytest.fixture
def using_corpus(plane: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    root = tmp_path / "corpus"
    folder = make_set(root)
    plane.requirements(CLAUSE).gate(USES).write("corpus.toml", listed(digest_tree(folder)))
    monkeypatch.setenv("NUMBAT_CORPUS", str(root))
    return plane


def test_a_present_set_discharges_its_clause_and_is_bound(using_corpus: Any) -> None:
    run = run_plane(using_corpus.plane)
    assert (run.verdict, run.undischarged) == (Verdict.PASS, ())
    assert list(run.digests["inputs"]) == ["corpus:demo/scans"]
    assert run.gates[0].passed == 2


def test_an_absent_set_leaves_its_clause_and_the_verdict(
    using_corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("NUMBAT_CORPUS", str(tmp_path / "empty"))
    run = run_plane(using_corpus.plane)
    assert run.verdict is Verdict.PASS
    assert [(item.clause, item.awaits) for item in run.undischarged] == [("DEM-R001.c1", "corpus")]
    assert run.gates[0].passed == 1


def test_an_altered_set_is_an_error(using_corpus: Any, tmp_path: Path) -> None:
    (tmp_path / "corpus" / "demo" / "scans" / "CASES.tsv").write_text("other\n")
    run = run_plane(using_corpus.plane)
    assert run.verdict is Verdict.ERROR
    assert run.gates[0].error is not None
    assert run.gates[0].error["type"] == "GATE-0702"


def test_a_set_that_no_list_names_is_an_error(using_corpus: Any) -> None:
    using_corpus.gate("check.corpus('demo/typo')")
    assert run_plane(using_corpus.plane).gates[0].error["type"] == "GATE-0704"


def test_a_set_that_a_gate_cannot_do_without(using_corpus: Any, tmp_path: Path) -> None:
    using_corpus.gate("from numbat_gates import require_corpus\nrequire_corpus('demo/scans')")
    (tmp_path / "corpus" / "demo" / "scans").rename(tmp_path / "away")
    run = run_plane(using_corpus.plane)
    assert run.gates[0].not_run == ("the corpus set demo/scans is not on this machine",)
    assert run.verdict is Verdict.NOT_RUN


def test_a_variable_that_names_nothing_stops_the_run(
    using_corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBAT_CORPUS", "/no/such/folder")
    assert refusal(run_plane, using_corpus.plane) == "GATE-0701"


# ---------------------------------------------------------------------- fetching


def packed(folder: Path, archive: Path, prefix: str = "") -> Path:
    archive.parent.mkdir(parents=True, exist_ok=True)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as bundle:
            for inside in FILES:
                bundle.write(folder / inside, f"{prefix}{inside}")
    else:
        with tarfile.open(archive, "w:gz") as bundle:
            for inside in FILES:
                bundle.add(folder / inside, f"{prefix}{inside}")
    return archive


@pytest.mark.parametrize("form", ["folder", ".tar.gz", ".zip"])
def test_a_set_comes_from_an_offline_folder(tmp_path: Path, form: str) -> None:
    folder = make_set(tmp_path / "made")
    offline = tmp_path / "made"
    if form != "folder":
        offline = tmp_path / "offline"
        packed(folder, offline / "demo" / f"scans{form}")
    digest = digest_tree(folder)
    path = fetch(named(digest), into=tmp_path / "corpus", offline=offline)
    assert path == tmp_path / "corpus" / "demo" / "scans"
    assert digest_tree(path) == digest
    assert [item.name for item in path.parent.iterdir()] == ["scans"]
    assert fetch(named(digest), into=tmp_path / "corpus") == path


def test_a_set_is_downloaded_and_stripped(tmp_path: Path) -> None:
    folder = make_set(tmp_path / "made")
    archive = packed(folder, tmp_path / "upstream.tar.gz", prefix="repository-1.0/")
    told: list[tuple[int, int | None]] = []
    item = named(digest_tree(folder), archive=archive.as_uri(), strip=1)
    path = fetch(item, into=tmp_path / "corpus", progress=lambda *at: told.append(at))
    assert digest_tree(path) == item.sha256
    assert told[-1][0] == archive.stat().st_size


def test_another_content_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    offline, into = tmp_path / "made", tmp_path / "corpus"
    make_set(offline)
    assert refusal(fetch, named("sha256:" + "0" * 64), into=into, offline=offline) == "GATE-0706"
    assert list((into / "demo").iterdir()) == []


def test_a_set_in_place_is_checked_before_it_is_kept(tmp_path: Path) -> None:
    make_set(tmp_path)
    assert refusal(fetch, named("sha256:" + "0" * 64), into=tmp_path) == "GATE-0702"


def test_what_cannot_be_had_is_refused(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    assert refusal(fetch, named(digest), into=tmp_path) == "GATE-0707"
    assert refusal(fetch, named(digest), into=tmp_path, offline=tmp_path) == "GATE-0707"
    nowhere = (tmp_path / "none.tar.gz").as_uri()
    assert refusal(fetch, named(digest, archive=nowhere), into=tmp_path) == "GATE-0705"
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"no zip")
    assert refusal(fetch, named(digest, archive=broken.as_uri()), into=tmp_path) == "GATE-0705"


@pytest.mark.parametrize("escape", ["../escaped", "/tmp/escaped-by-numbat-test"])
def test_an_archive_cannot_leave_its_folder(tmp_path: Path, escape: str) -> None:
    archive = tmp_path / "bad.tar"
    source = tmp_path / "payload"
    source.write_text("x")
    with tarfile.open(archive, "w") as bundle:
        information = bundle.gettarinfo(source)
        information.name = escape
        with source.open("rb") as stream:
            bundle.addfile(information, stream)
    item = named("sha256:" + "0" * 64, archive=archive.as_uri())
    assert refusal(fetch, item, into=tmp_path / "corpus") in ("GATE-0705", "GATE-0706")
    assert not (tmp_path / "corpus" / "escaped").exists()
    assert not Path("/tmp/escaped-by-numbat-test").exists()
