"""Corpus sets: used only when their content is what is named, and absent without a trace."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

from numbat_gates import Check, NotRun, gate
from numbat_gates import corpora as sets
from numbat_gates.corpora import CorpusSet, fetch, load_corpus_file
from numbat_gates.digests import digest_tree
from numbat_gates.gates._toy import Toy, toy_plane, toys

_GATE = """
scans = check.corpus("toy/scans", clauses=["TOY-R001.c1"])
check.true("it counts", True)
if scans is not None:
    check.equal("the scan", (scans / "one.txt").read_text(), "1\\n")
"""
_CLAUSE = """
[[clause]]
id = "TOY-R001.c1"
requirement = "TOY-R001"
text = "On real scans."
awaits = "corpus"
because = "Real scans are in no wheel."
"""
_LIST = """
[[set]]
name = "toy/scans"
source = "made here"
commit = "none"
licence = "CC0-1.0"
sha256 = "{digest}"
"""


@gate(
    "GATE-G12",
    phase=2,
    discharges=["GATE-R014"],
    title="Data that no wheel carries is the named data, or its clauses stay undischarged",
)
def corpora(check: Check) -> None:
    with toys() as folder:
        _fetched(check, folder)
        _lists(check, folder)
    with toy_plane() as toy:
        _used(check, toy)


def _scans(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "one.txt").write_text("1\n", encoding="utf-8")
    return place


def _fetched(check: Check, folder: Path) -> None:
    scans = _scans(folder / "copy" / "toy" / "scans")
    named = CorpusSet("toy/scans", "made here", "none", "CC0-1.0", sha256=digest_tree(scans))
    corpus = folder / "corpus"
    path = fetch(named, into=corpus, offline=folder / "copy")
    check.equal("from a folder", (path / "one.txt").read_text(encoding="utf-8"), "1\n")
    archive = folder / "scans.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(scans, arcname="scans-1.0")
    packed_set = replace(named, archive=archive.as_uri(), strip=1)
    path = fetch(packed_set, into=folder / "elsewhere")
    check.equal("from an archive by address", digest_tree(path), named.sha256)
    other = replace(packed_set, sha256="sha256:" + "0" * 64)
    with check.refuses("GATE-0706", "what came has another digest"):
        fetch(other, into=folder / "wrong")
    left = list((folder / "wrong").rglob("*.txt"))
    check.equal("nothing of it is left", left, [])
    with check.refuses("GATE-0702", "a set in place that was altered"):
        (corpus / "toy" / "scans" / "one.txt").write_text("2\n", encoding="utf-8")
        fetch(named, into=corpus)
    with check.refuses("GATE-0705", "an archive that is not there"):
        fetch(replace(named, archive=(folder / "none.tar").as_uri()), into=folder / "none")
    with check.refuses("GATE-0707", "a set without an archive"):
        fetch(named, into=folder / "none")
    _leaving_archive(check, folder, named)


def _leaving_archive(check: Check, folder: Path, named: CorpusSet) -> None:
    archive = folder / "leaving.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(folder / "copy" / "toy" / "scans" / "one.txt", arcname="../../outside.txt")
    with check.refuses("GATE-0705", "an archive that leaves its folder"):
        fetch(replace(named, archive=archive.as_uri()), into=folder / "leaving")
    check.equal("nothing was written outside", list(folder.rglob("outside.txt")), [])


def _lists(check: Check, folder: Path) -> None:
    file = folder / "corpus.toml"
    good = _LIST.format(digest="sha256:" + "0" * 64)
    faults = {
        "no digest": good.replace("sha256 =", "#"),
        "an unknown key": good + 'colour = "red"\n',
        "a set twice": good + good,
        "a name that leaves the folder": good.replace("toy/scans", "../scans"),
        "a digest that is none": good.replace("0" * 64, "0" * 63),
        "no TOML": "[[set",
    }
    for name, text in faults.items():
        file.write_text(text, encoding="utf-8")
        with check.refuses("GATE-0703", name):
            load_corpus_file(file)
    with (
        check.refuses("GATE-0704", "a set that nobody names"),
        sets.using({}, lambda name, digest: None),
    ):
        sets.corpus("toy/scans")
    missing = CorpusSet("toy/none", "made here", "none", "CC0-1.0", sha256="sha256:" + "0" * 64)
    with sets.using({"toy/none": missing}, lambda name, digest: None):
        try:
            sets.require_corpus("toy/none")
        except NotRun as absent:
            check.true("a gate that cannot do without it is not run", "toy/none" in absent.reason)
        else:
            check.true("a gate that cannot do without it is not run", False)


def _used(check: Check, toy: Toy) -> None:
    home = toy.root.parent / "home"
    scans = _scans(home / "toy" / "scans")
    toy.requirements("TOY-R001", more=_CLAUSE).gate(1, _GATE)
    toy.write("corpus.toml", _LIST.format(digest=digest_tree(scans)))
    absent = toy.ask("run", "toy", "--json")
    check.equal("absent: exit status", absent.code, 0)
    told = [(item["clause"], item["awaits"]) for item in absent.document["undischarged"]]
    check.equal("absent: its clause is undischarged", told, [("TOY-R001.c1", "corpus")])
    check.equal("absent: no input", absent.document["digests"]["inputs"], {})
    present = toy.ask("run", "toy", "--json", NUMBAT_CORPUS=str(home))
    check.equal("present: exit status", present.code, 0)
    check.equal("present: its clause is discharged", present.document["undischarged"], [])
    check.equal("present: measured", present.document["gates"][0]["total"], 2)
    inputs = present.document["digests"]["inputs"]
    check.equal("present: bound to the report", inputs, {"corpus:toy/scans": digest_tree(scans)})
    (scans / "two.txt").write_text("2\n", encoding="utf-8")
    altered = toy.ask("run", "toy", "--json", NUMBAT_CORPUS=str(home))
    check.equal("altered: verdict", altered.document["verdict"], "ERROR")
    check.equal("altered: why", altered.document["gates"][0]["error"]["type"], "GATE-0702")
    nowhere = toy.ask("run", "toy", "--json", NUMBAT_CORPUS=str(home / "typing-error"))
    check.equal("a folder that is not there: exit status", nowhere.code, 4)
    check.equal("a folder that is not there: code", nowhere.document["code"], "GATE-0701")
