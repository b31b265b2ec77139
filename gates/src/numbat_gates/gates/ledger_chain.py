"""The ledger's chain: every way in which a file can be other than it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from numbat_gates import Check, gate
from numbat_gates.gates._toy import toys
from numbat_ledger import Ledger, read_entries, verify_ledger
from numbat_ledger.entries import OPENING, Draft, make_entry

Lines = list[bytes]


@gate(
    "GATE-G05",
    phase=1,
    discharges=["GATE-R005"],
    title="A ledger that is not as it was written is refused, by its line",
)
def ledger_chain(check: Check) -> None:
    with toys() as folder:
        path = folder / "run.ledger.jsonl"
        ledger = Ledger(path)
        for number in range(4):
            ledger.append("notice", code="GATE-0102", site=f"toy:{number}")
        head = ledger.append("seal").hash
        state = verify_ledger(path, head=head)
        check.equal("as written: entries", state.length, 6)
        check.equal("as written: head", state.head, head)
        check.true("as written: sealed", state.sealed)
        check.equal("as written: numbers", [e.seq for e in read_entries(path)], list(range(6)))
        check.equal(
            "as written: sites", [e.site for e in read_entries(path)][1:3], ["toy:0", "toy:1"]
        )
        _altered(check, path, head)
        _cut(check, path, head)
        _writers_notice(check, folder)


def _altered(check: Check, path: Path, head: str) -> None:
    whole = path.read_bytes().splitlines(keepends=True)

    def tried(code: str, name: str, change: Callable[[Lines], Lines], line: int | None) -> None:
        copy = path.with_name("altered.jsonl")
        copy.write_bytes(b"".join(change(list(whole))))
        with check.refuses(code, name) as caught:
            verify_ledger(copy, head=head)
        if caught.diagnostic is not None and line is not None:
            check.equal(f"{name}: line", caught.diagnostic.fields["line"], line)

    tried("GATE-0202", "a line removed", lambda x: x[:3] + x[4:], 4)
    tried("GATE-0202", "two lines exchanged", lambda x: [*x[:2], x[3], x[2], *x[4:]], 3)
    tried("GATE-0202", "a line twice", lambda x: [*x[:3], x[2], *x[3:]], 4)
    forged = make_entry(Draft("notice", code="GATE-0101"), after=OPENING).raw() + b"\n"
    tried("GATE-0202", "a line put in", lambda x: [*x[:3], forged, *x[3:]], 4)
    tried(
        "GATE-0201",
        "a line edited",
        lambda x: [*x[:3], x[3].replace(b"toy:2", b"toy:9"), *x[4:]],
        4,
    )
    tried(
        "GATE-0201",
        "a line spelt otherwise",
        lambda x: [*x[:3], x[3].replace(b'":"', b'": "', 1), *x[4:]],
        4,
    )
    rewritten = make_entry(Draft("notice", code="GATE-0102", site="toy:9"), after=OPENING)
    tried(
        "GATE-0202",
        "a line edited, with a digest to match",
        lambda x: [x[0], rewritten.raw() + b"\n", *x[2:]],
        3,
    )
    tried("GATE-0205", "the first line removed", lambda x: x[1:], None)
    tried("GATE-0205", "another file", lambda x: [b"notes\n"], None)


def _cut(check: Check, path: Path, head: str) -> None:
    data = path.read_bytes()
    last = data[:-1].rindex(b"\n") + 1
    copy = path.with_name("cut.jsonl")
    for size in (last + 1, (last + len(data)) // 2, len(data) - 1):
        copy.write_bytes(data[:size])
        with check.refuses(
            "GATE-0203", f"cut within the last line, {size - last} bytes of it left"
        ):
            verify_ledger(copy, head=head)
    copy.write_bytes(data[:last])
    check.equal("cut between lines: whole without a head", verify_ledger(copy).length, 5)
    with check.refuses("GATE-0204", "cut between lines, against the head") as caught:
        verify_ledger(copy, head=head)
    if caught.diagnostic is not None:
        check.equal("the expected head is named", caught.diagnostic.fields["expected"], head)


def _writers_notice(check: Check, folder: Path) -> None:
    ledger = Ledger(folder / "held.jsonl")
    ledger.append("seal")
    (folder / "held.jsonl").write_bytes(b"")
    with check.refuses("GATE-0207", "emptied behind its writer"):
        ledger.append("seal")
    with check.refuses("GATE-0206", "a folder in its place"):
        Ledger(folder).append("seal")
    fresh = Ledger(folder / "fresh.jsonl")
    with check.refuses("GATE-0208", "an assertion about no entry"):
        fresh.append("assert", code="GATE-0102")
    with check.refuses("GATE-0208", "a reference that is no assertion"):
        fresh.append("notice", code="GATE-0102", ref=1)
    check.equal("what was refused left no line", list(folder.glob("fresh*")), [])
