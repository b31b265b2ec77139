"""The file that a ledger writes: its chain, its end after a kill, and who may write to it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from numbat_ledger import Entry, Ledger, read_entries, verify_ledger
from numbat_ledger.entries import GENESIS, OPENING, digest, parse_line, recomputed_hash
from numbat_registries import Refusal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger.jsonl"


def write(path: Path, count: int, *, note: str = "") -> list[Entry]:
    ledger = Ledger(path)
    return [
        ledger.append("raise", code="GATE-0102", site=f"m:f:{n}", note=note) for n in range(count)
    ]


def code_of(call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(Refusal) as caught:
        call(*args, **options)
    return caught.value.code


def test_a_ledger_is_a_chain_of_lines(path: Path) -> None:
    entries = write(path, 3)
    lines = path.read_bytes().splitlines()
    assert [parse_line(line) for line in lines] == [OPENING, *entries]
    assert list(read_entries(path)) == [OPENING, *entries]
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert OPENING.prev == GENESIS
    for before, entry in zip([OPENING, *entries], entries, strict=False):
        assert entry.prev == before.hash
        assert entry.hash == recomputed_hash(entry)
    state = verify_ledger(path, head=entries[-1].hash)
    assert (state.length, state.torn, state.sealed) == (4, 0, False)


def test_the_digest_can_be_recomputed_from_the_line_alone(path: Path) -> None:
    """As another program would: the object without `hash`, keys sorted, no blanks, ASCII."""
    write(path, 1)
    body = json.loads(path.read_bytes().splitlines()[1])
    claimed = body.pop("hash")
    assert claimed == digest(json.dumps(body, sort_keys=True, separators=(",", ":")))


def test_an_entry_says_all_that_it_was_given(path: Path) -> None:
    ledger = Ledger(path)
    first = ledger.append("notice", code="IMG-1402", gate="IMG-G03", check="c", fields="sha256:0")
    second = ledger.append("assert", code="IMG-1402", gate="IMG-G03", check="c", ref=first.seq)
    assert (second.ref, second.kind, second.code) == (1, "assert", "IMG-1402")
    assert list(read_entries(path))[1:] == [first, second]


def test_a_seal_is_seen_until_something_follows(path: Path) -> None:
    ledger = Ledger(path)
    ledger.append("seal")
    assert verify_ledger(path).sealed
    ledger.append("notice", code="GATE-0102")
    assert not verify_ledger(path).sealed


@pytest.mark.parametrize(
    "note",
    [
        "two\nlines\r\nand\x85more\u2028still",
        "\ud800 alone",
        "Größe 骨 🦴",
        '"}\\',
        "\x00\x1b[2J",
        "x" * 200_000,
    ],
    ids=["line ends", "surrogate", "letters", "quotes", "controls", "long"],
)
def test_any_text_stays_on_its_line_and_comes_back(path: Path, note: str) -> None:
    (entry,) = write(path, 1, note=note)
    again = Ledger(path).append("seal", note=note)
    assert len(path.read_bytes().splitlines()) == 3
    assert len(path.read_text("utf-8").splitlines()) == 3
    assert [entry.note for entry in read_entries(path)][1:] == [note, note]
    assert again.prev == entry.hash
    verify_ledger(path, head=again.hash)


def test_writers_that_take_turns_continue_one_another(path: Path) -> None:
    ours, theirs = Ledger(path), Ledger(path)
    for n in range(5):
        (ours if n % 2 else theirs).append("notice", code="GATE-0102", note=str(n))
    assert [entry.note for entry in read_entries(path)][1:] == list("01234")
    assert verify_ledger(path).length == 6


# ------------------------------------------------------------------ after a kill


def test_a_ledger_goes_on_wherever_a_writer_was_killed(path: Path) -> None:
    """Each prefix of a file is what a kill may leave; each is continued, and then verifies."""
    write(path, 2, note="größer")
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        entry = Ledger(path).append("notice")
        state = verify_ledger(path, head=entry.hash)
        lines = whole[:cut].split(b"\n")
        complete = parse_line(lines[-1]) is not None or not lines[-1]
        torn = 0 if complete or cut < len(OPENING.raw()) else 1
        assert state.torn == torn, cut
        assert path.read_bytes().startswith(whole[:cut])
        kept = [e for e in map(parse_line, lines) if e is not None] or [OPENING]
        assert list(read_entries(path))[: len(kept)] == kept


def test_a_ledger_goes_on_when_the_one_who_ends_a_torn_line_is_killed_too(path: Path) -> None:
    write(path, 1)
    begun = path.read_bytes()[:-40]
    path.write_bytes(begun)
    Ledger(path).append("notice")
    ended = path.read_bytes()
    for cut in range(len(begun), len(ended) + 1):
        path.write_bytes(ended[:cut])
        entry = Ledger(path).append("notice", note="third writer")
        state = verify_ledger(path, head=entry.hash)
        assert state.torn == (2 if b"torn" in ended[:cut] and _cut_inside_seal(ended, cut) else 1)


def _cut_inside_seal(ended: bytes, cut: int) -> bool:
    """Whether the torn line was already recorded, and the line after it is torn in its turn."""
    lines = ended[:cut].split(b"\n")
    recorded = any(b'"kind":"torn"' in line and parse_line(line) for line in lines[:-1])
    return recorded and lines[-1] != b"" and parse_line(lines[-1]) is None


def test_what_was_left_is_recorded_by_its_digest(path: Path) -> None:
    write(path, 1)
    left = b'{"code":"GATE-0102","fie'
    with path.open("ab") as stream:
        stream.write(left)
    Ledger(path).append("seal")
    torn = next(entry for entry in read_entries(path) if entry.kind == "torn")
    assert torn.fields == digest(left)
    assert f"{len(left)} bytes" in torn.note
    path.write_bytes(path.read_bytes().replace(left, left[:-1]))
    assert code_of(verify_ledger, path) == "GATE-0201"


def test_a_whole_line_without_its_end_is_an_entry(path: Path) -> None:
    """It parses as one, so it must count as one for the writer and the verifier alike."""
    entries = write(path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    assert code_of(verify_ledger, path) == "GATE-0203"
    entry = Ledger(path).append("seal")
    assert entry.prev == entries[-1].hash
    assert verify_ledger(path, head=entry.hash).torn == 0


@pytest.mark.parametrize("size", [10, 1 << 14, (1 << 14) + 1, 300_000])
def test_left_bytes_of_any_length_are_recorded(path: Path, size: int) -> None:
    write(path, 1)
    with path.open("ab") as stream:
        stream.write(b'{"note":"' + b"x" * size)
    entry = Ledger(path).append("seal")
    assert verify_ledger(path, head=entry.hash).torn == 1


def test_zeros_left_by_a_power_cut_are_recorded(path: Path) -> None:
    write(path, 1)
    with path.open("ab") as stream:
        stream.write(b"\0" * 500)
    entry = Ledger(path).append("seal")
    assert verify_ledger(path, head=entry.hash).torn == 1


# ------------------------------------------------------------------ what is not continued


@pytest.mark.parametrize(
    "tail",
    [b"{}\n", b"[1]\n", b'{"kind":"seal"}\n', b'{"kind":"seal"}', b"1", b'{"a":1}\n{"seq":'],
)
def test_whole_json_after_the_last_entry_was_put_there_by_somebody(path: Path, tail: bytes) -> None:
    write(path, 2)
    with path.open("ab") as stream:
        stream.write(tail)
    before = path.read_bytes()
    with pytest.raises(Refusal) as caught:
        Ledger(path).append("seal")
    assert caught.value.code == "GATE-0201"
    assert caught.value.diagnostic.fields["line"] == 4
    assert path.read_bytes() == before


def test_an_edited_last_line_is_not_continued(path: Path) -> None:
    write(path, 2)
    path.write_bytes(path.read_bytes().replace(b"m:f:1", b"m:f:7"))
    assert code_of(Ledger(path).append, "seal") == "GATE-0201"


@pytest.mark.parametrize(
    "content",
    [b"not a ledger\n", b"\n", b"\0", b"[]", b'{"hash":"sha256:11', OPENING.raw()[:-1] + b"]\n"],
)
def test_another_file_is_not_continued(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert code_of(Ledger(path).append, "seal") == "GATE-0205"
    assert code_of(Ledger(path).begin) == "GATE-0205"
    assert path.read_bytes() == content


@pytest.mark.parametrize("keep", [0, 1, 2, 3])
def test_a_ledger_cut_under_its_writer_is_not_continued(path: Path, keep: int) -> None:
    ledger = Ledger(path)
    for n in range(3):
        ledger.append("notice", code="GATE-0102", note=str(n))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:keep]))
    assert code_of(ledger.append, "seal") == "GATE-0207"


def test_a_ledger_exchanged_under_its_writer_is_not_continued(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path)
    ledger.append("notice", code="GATE-0102")
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    other.replace(path)
    assert code_of(ledger.append, "seal") == "GATE-0207"


def test_a_deleted_ledger_is_not_begun_again_by_its_writer(path: Path) -> None:
    ledger = Ledger(path)
    ledger.append("notice", code="GATE-0102")
    path.unlink()
    assert code_of(ledger.append, "seal") == "GATE-0207"


@pytest.mark.parametrize("kind", ["open", "torn", "", "Raise", "verdict"])
def test_only_some_kinds_are_appended(path: Path, kind: Any) -> None:
    assert code_of(Ledger(path).append, kind) == "GATE-0208"
    assert not path.exists()


@pytest.mark.parametrize(("kind", "ref"), [("assert", None), ("raise", 1), ("seal", 0)])
def test_an_assertion_alone_is_about_an_entry(path: Path, kind: Any, ref: int | None) -> None:
    assert code_of(Ledger(path).append, kind, ref=ref) == "GATE-0208"


# ------------------------------------------------------------------ places


def test_nothing_lies_beside_a_ledger(path: Path) -> None:
    write(path, 2)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_ledger_begins_before_anything_is_recorded(path: Path) -> None:
    Ledger(path).begin()
    assert path.read_bytes() == OPENING.raw() + b"\n"
    Ledger(path).begin()
    assert verify_ledger(path).length == 1


def test_a_relative_path_stays_where_it_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("run.ledger.jsonl")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.append("seal")
    assert (tmp_path / "run.ledger.jsonl").is_file()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path in ("missing/x.jsonl", "file/x.jsonl", ".", "pipe", "x" * 300):
        assert code_of(Ledger(tmp_path / path).append, "seal") == "GATE-0206", path
    assert code_of(Ledger("/dev/null").append, "seal") == "GATE-0206"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused_and_a_ledger_in_it_continued(path: Path) -> None:
    write(path, 1)
    path.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert code_of(Ledger(path.with_name("other.jsonl")).append, "seal") == "GATE-0206"
        Ledger(path).append("seal")
    finally:
        path.parent.chmod(stat.S_IRWXU)
    assert verify_ledger(path).sealed


FULL = """
import resource, sys
from numbat_ledger import Ledger
from numbat_registries import Refusal

ledger = Ledger(sys.argv[1])
size = ledger.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    ledger.append("notice", code="GATE-0102", note="does not fit any more")
except Refusal as refusal:
    print(refusal.code, ledger.path.stat().st_size - size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.append("seal", note="there is room again")
"""


def test_a_full_disk_is_refused_and_the_ledger_goes_on_once_there_is_room(path: Path) -> None:
    write(path, 1)
    said = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["GATE-0206", "100"]
    state = verify_ledger(path)
    assert (state.torn, state.sealed) == (1, True)
