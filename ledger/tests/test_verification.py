"""Every way to change a ledger after it was written is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from numbat_ledger import Ledger, LedgerState, read_entries, verify_ledger
from numbat_ledger.entries import OPENING, Draft, make_entry, parse_line
from numbat_registries import Refusal

#: The machine may be busy; how long an example takes says nothing.
UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger.jsonl"


def written(folder: Path) -> tuple[bytes, str]:
    """A ledger with every kind of line, a torn one included, and its head."""
    path = folder / "model.ledger.jsonl"
    ledger = Ledger(path)
    for n in range(3):
        entry = ledger.append("raise", code=f"GATE-010{n}", site=f"m:f:{n}", fields="sha256:é")
        ledger.append("assert", code=entry.code, gate="GATE-G01", check="c", ref=entry.seq)
    with path.open("ab") as stream:
        stream.write(b'{"check":"c","code":"GA')
    ledger.append("notice", code="GATE-0104", note="\N{REPLACEMENT CHARACTER} and \ud800")
    head = ledger.append("seal", note="end").hash
    return path.read_bytes(), head


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    return written(tmp_path_factory.mktemp("model"))


def fault(path: Path, *, head: str | None = None) -> tuple[str, int | None]:
    """The code and line that verification names."""
    with pytest.raises(Refusal) as caught:
        verify_ledger(path, head=head)
    line = caught.value.diagnostic.fields.get("line")
    return caught.value.code, line


def change(path: Path, model: bytes, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(edit(model.splitlines(keepends=True))))


def test_what_was_not_touched_verifies(path: Path, model: tuple[bytes, str]) -> None:
    content, head = model
    path.write_bytes(content)
    assert verify_ledger(path, head=head) == LedgerState(head=head, length=10, torn=1, sealed=True)
    assert len(content.splitlines()) == 11


@pytest.mark.parametrize("line", range(1, 10))
def test_a_line_removed(path: Path, model: tuple[bytes, str], line: int) -> None:
    change(path, model[0], lambda lines: lines[:line] + lines[line + 1 :])
    code, told = fault(path)
    assert code in ("GATE-0201", "GATE-0202")
    assert told in (line, line + 1)


@pytest.mark.parametrize("line", range(1, 10))
def test_two_lines_reordered(path: Path, model: tuple[bytes, str], line: int) -> None:
    def swap(lines: list[bytes]) -> list[bytes]:
        lines[line], lines[line + 1] = lines[line + 1], lines[line]
        return lines

    change(path, model[0], swap)
    code, told = fault(path)
    assert code in ("GATE-0201", "GATE-0202")
    assert told in (line, line + 1, line + 2)


def test_a_line_edited(path: Path, model: tuple[bytes, str]) -> None:
    path.write_bytes(model[0].replace(b"m:f:1", b"m:f:9"))
    assert fault(path) == ("GATE-0201", 4)


def test_a_line_edited_and_signed_again(path: Path, model: tuple[bytes, str]) -> None:
    """An editor who knows the format gets one line right, and with it breaks the chain."""

    def forge(lines: list[bytes]) -> list[bytes]:
        entry = parse_line(lines[3])
        before = parse_line(lines[2])
        assert entry is not None
        draft = Draft(kind=entry.kind, code=entry.code, site="m:f:9", fields=entry.fields)
        lines[3] = make_entry(draft, after=before).raw() + b"\n"
        return lines

    change(path, model[0], forge)
    assert fault(path) == ("GATE-0202", 5)


def test_everything_forged_anew_is_seen_against_the_head(
    path: Path, model: tuple[bytes, str]
) -> None:
    Ledger(path).append("seal", note="another history")
    assert verify_ledger(path).sealed
    assert fault(path, head=model[1]) == ("GATE-0204", None)


@pytest.mark.parametrize("line", range(1, 12))
@pytest.mark.parametrize(
    "extra",
    [b"", b"hello", b"{}", b'{"kind":"seal"}', OPENING.raw(), b"\xff\xfe", b"[" * 100_000],
    ids=["blank", "text", "object", "half", "opening", "bytes", "deep"],
)
def test_a_line_inserted(path: Path, model: tuple[bytes, str], line: int, extra: bytes) -> None:
    change(path, model[0], lambda lines: [*lines[:line], extra + b"\n", *lines[line:]])
    code, told = fault(path)
    assert code in ("GATE-0201", "GATE-0202")
    # Beside the line that a kill tore, the two together are what nobody recorded.
    assert told in (line + 1, line)


@pytest.mark.parametrize("line", range(1, 11))
def test_a_line_written_twice(path: Path, model: tuple[bytes, str], line: int) -> None:
    change(path, model[0], lambda lines: [*lines[:line], lines[line], *lines[line:]])
    assert fault(path)[0] in ("GATE-0201", "GATE-0202")


@pytest.mark.parametrize("lost", range(1, 60))
def test_an_end_torn_by_a_kill(path: Path, model: tuple[bytes, str], lost: int) -> None:
    path.write_bytes(model[0][:-lost])
    code, told = fault(path)
    assert (code, told) == ("GATE-0203", 11)


@pytest.mark.parametrize("size", range(1, len(OPENING.raw()) + 1, 7))
def test_a_first_line_torn_by_a_kill(path: Path, size: int) -> None:
    path.write_bytes(OPENING.raw()[:size])
    assert fault(path) == ("GATE-0203", 1)


def test_whole_lines_cut_off_the_end_are_seen_against_the_head_alone(
    path: Path, model: tuple[bytes, str]
) -> None:
    for kept in (1, 2, 7, 9, 10):
        change(path, model[0], lambda lines, kept=kept: lines[:kept])  # type: ignore[misc]
        verify_ledger(path)
        assert fault(path, head=model[1]) == ("GATE-0204", None)


def test_a_cut_within_the_torn_part_is_seen(path: Path, model: tuple[bytes, str]) -> None:
    change(path, model[0], lambda lines: lines[:8])
    assert fault(path) == ("GATE-0201", 8)


def test_lines_appended_after_the_report_are_seen(path: Path, model: tuple[bytes, str]) -> None:
    path.write_bytes(model[0])
    Ledger(path).append("notice", code="GATE-0102")
    assert fault(path, head=model[1]) == ("GATE-0204", None)


def test_a_ledger_cut_and_then_continued_is_seen(path: Path, model: tuple[bytes, str]) -> None:
    change(path, model[0], lambda lines: lines[:5])
    Ledger(path).append("seal")
    assert fault(path, head=model[1]) == ("GATE-0204", None)


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\n", b"\0" * 10, b"notes\n", b'{"format":"numbat-ledger/2"}\n', b"\xff\xfe\n"],
    ids=["missing", "empty", "blank", "zeros", "text", "format", "bytes"],
)
def test_another_file_is_no_ledger(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    assert fault(path) == ("GATE-0205", None)


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    assert fault(tmp_path) == ("GATE-0205", None)
    with pytest.raises(Refusal) as caught:
        list(read_entries(tmp_path))
    assert caught.value.code == "GATE-0205"


# ------------------------------------------------------------------ the same value, spelt otherwise

SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "blank": lambda line: line.replace(b'":', b'": ', 1),
    "blank at the end": lambda line: line + b" ",
    "blank at the start": lambda line: b" " + line,
    "carriage return": lambda line: line + b"\r",
    "mark": lambda line: b"\xef\xbb\xbf" + line,
    "repeated key": lambda line: line.replace(b"{", b'{"code":"GATE-9999",', 1),
    "escaped letter": lambda line: line.replace(b"GATE-0101", b"\\u0047ATE-0101", 1),
    "letter case of an escape": lambda line: line.replace(b"\\u00e9", b"\\u00E9"),
    "unescaped letter": lambda line: line.replace(b"\\u00e9", "é".encode()),
    "number": lambda line: line.replace(b'"seq":3', b'"seq":3.0'),
    "exponent": lambda line: line.replace(b'"seq":3', b'"seq":3e0'),
    "absent value": lambda line: line.replace(b"}", b',"note":""}'),
    "null": lambda line: line.replace(b"}", b',"ref":null}'),
    "other encoding": lambda line: line.decode().encode("utf-16"),
    "order of keys": lambda line: json.dumps(
        dict(reversed(json.loads(line).items())), separators=(",", ":")
    ).encode(),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_an_edit_that_changes_no_value_is_seen(
    path: Path, model: tuple[bytes, str], name: str
) -> None:
    lines = model[0].split(b"\n")
    edited = SPELLINGS[name](lines[3])
    assert edited != lines[3]
    assert parse_line(edited) is None
    path.write_bytes(b"\n".join([*lines[:3], edited, *lines[4:]]))
    assert fault(path, head=model[1]) == ("GATE-0201", 4)


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        '"x"',
        "{}",
        '{"seq":1}',
        '{"hash":"","kind":"","prev":"","seq":true}',
        '{"hash":"h","kind":"k","prev":"p","seq":"1"}',
        '{"code":7,"hash":"h","kind":"k","prev":"p","seq":1}',
        '{"hash":"h","kind":"k","prev":"p","ref":"1","seq":1}',
        '{"colour":"red","hash":"h","kind":"k","prev":"p","seq":1}',
        '{"hash":"h","kind":"k","prev":"p","seq":NaN}',
        "[" * 100_000,
        "9" * 5_000,
        "größer",
    ],
    ids=lambda line: line[:20],
)
def test_what_is_no_entry_is_not_read_as_one(line: str) -> None:
    assert parse_line(line) is None
    assert parse_line(line.encode("utf-8")) is None


def test_reading_passes_over_what_is_no_entry(path: Path, model: tuple[bytes, str]) -> None:
    path.write_bytes(model[0])
    kinds = [entry.kind for entry in read_entries(path)]
    assert kinds == ["open", *["raise", "assert"] * 3, "torn", "notice", "seal"]


# ------------------------------------------------------------------ whatever else


@UNHURRIED
@given(st.data())
def test_any_byte_changed_is_seen(
    path: Path, model: tuple[bytes, str], data: st.DataObject
) -> None:
    content, head = model
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
    fault(path, head=head)


def test_every_byte_changed_in_its_lowest_letter_case_or_highest_bit_is_seen(
    path: Path, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "small.jsonl")
    head = ledger.append("seal").hash
    content = ledger.path.read_bytes()
    for at in range(len(content)):
        for bit in (0, 5, 7):
            path.write_bytes(content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :])
            fault(path, head=head)


@UNHURRIED
@given(st.data())
def test_any_piece_removed_is_seen(
    path: Path, model: tuple[bytes, str], data: st.DataObject
) -> None:
    content, head = model
    start = data.draw(st.integers(0, len(content) - 1))
    stop = data.draw(st.integers(start + 1, len(content)))
    path.write_bytes(content[:start] + content[stop:])
    fault(path, head=head)


@UNHURRIED
@given(st.data(), st.binary(min_size=1, max_size=40))
def test_any_piece_inserted_is_seen(
    path: Path, model: tuple[bytes, str], data: st.DataObject, extra: bytes
) -> None:
    content, head = model
    at = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:at] + extra + content[at:])
    fault(path, head=head)


@UNHURRIED
@given(st.permutations(range(11)))
@example(list(range(11)))
def test_any_other_order_of_lines_is_seen(
    path: Path, model: tuple[bytes, str], order: list[int]
) -> None:
    content, head = model
    change(path, content, lambda lines: [lines[line] for line in order])
    if order == sorted(order):
        verify_ledger(path, head=head)
    else:
        fault(path, head=head)


@UNHURRIED
@given(st.lists(st.integers(0, 10), max_size=14))
def test_any_other_choice_of_lines_is_seen(
    path: Path, model: tuple[bytes, str], chosen: list[int]
) -> None:
    content, head = model
    change(path, content, lambda lines: [lines[line] for line in chosen])
    if chosen != list(range(11)):
        fault(path, head=head)


@UNHURRIED
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(path: Path, content: bytes) -> None:
    opened = OPENING.raw() + b"\n"
    for whole in (content, opened + content):
        path.write_bytes(whole)
        if whole == opened:
            verify_ledger(path)
        else:
            assert fault(path)[0].startswith("GATE-020")
