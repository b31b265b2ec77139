"""The folder of a report: what is written, when, and what is cleared away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from numbat_gates.attestation import open_envelope, read_statement
from numbat_gates.digests import digest_file
from numbat_gates.keys import keygen, load_public_key
from numbat_gates.reporting.document import parse_report, read_report
from numbat_gates.reporting.folder import RENDERINGS, signature_beside, write_reports
from numbat_gates.reporting.specimen import specimen_bytes, specimen_report
from numbat_registries import Refusal


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_everything_is_written_and_the_envelope_covers_it(tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    ledger = tmp_path / "run.jsonl"
    ledger.write_text("a ledger\n")
    folder = tmp_path / "deep" / "out"
    written = write_reports(specimen_report(), folder, ledger_file=ledger, key=key.private)
    assert {path.name for path in written} == names(folder) == {
        "report.json", "report.html", "report.sarif", "report.junit.xml", "ledger.jsonl",
        "report.dsse.json",
    }  # fmt: skip
    assert written[-1].name == "report.dsse.json"
    envelope = written[-1].read_bytes()
    statement = read_statement(open_envelope(envelope, [load_public_key(key.public)]))
    assert statement.subjects == {path.name: digest_file(path) for path in written[:-1]}
    assert statement.predicate["verdict"] == "ERROR"
    assert statement.predicate["gates"]["SPC-G03"] == "FAIL"
    assert key.keyid in (folder / "report.html").read_text()
    signature = signature_beside(read_report(folder))
    assert signature is not None
    assert signature.keyids == (key.keyid,)


def test_a_ledger_that_is_in_its_place_stays(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("a ledger\n")
    write_reports(specimen_report(), tmp_path, ledger_file=ledger)
    assert ledger.read_text() == "a ledger\n"


def test_what_belongs_to_an_earlier_run_is_cleared_away(tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    folder = tmp_path / "out"
    write_reports(specimen_report(passing=True), folder, key=key.private)
    (folder / "report.pdf").write_bytes(b"of the earlier run")
    (folder / "notes.txt").write_text("somebody's own")
    write_reports(specimen_report(), folder)
    assert names(folder) == {
        "report.json", "report.html", "report.sarif", "report.junit.xml", "notes.txt",
    }  # fmt: skip
    assert signature_beside(read_report(folder)) is None


def test_a_bad_key_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        write_reports(specimen_report(), tmp_path / "out", key=tmp_path / "absent")
    assert caught.value.code == "GATE-0609"
    assert not (tmp_path / "out").exists()


def test_a_report_is_read_from_its_file_or_folder(tmp_path: Path) -> None:
    write_reports(specimen_report(), tmp_path)
    document = read_report(tmp_path)
    assert document.report == specimen_report() == json.loads(document.data)
    assert document.digest == digest_file(tmp_path / "report.json")
    assert parse_report(specimen_bytes()) == specimen_report()


@pytest.mark.parametrize("name", ["verdict", "gates", "digests", "ledger", "schema"])
def test_a_report_that_lacks_a_part_is_none(name: str) -> None:
    report = specimen_report()
    del report[name]
    with pytest.raises(Refusal) as caught:
        parse_report(json.dumps(report).encode())
    assert caught.value.code == "GATE-0501"
    assert name in str(caught.value.diagnostic.fields["reason"])


def test_each_rendering_has_a_name_of_its_own() -> None:
    assert len(set(RENDERINGS.values())) == len(RENDERINGS) == 4
