"""The ledger under many writers, and under writers that are killed in the middle of a line."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from numbat_gates import Check, gate
from numbat_gates.gates._toy import environment, toys
from numbat_ledger import Ledger, activate, read_entries, verify_ledger

_ENTRIES = 200
_KILLS = 6
_LONG_S = 120


@gate(
    "GATE-G06",
    phase=1,
    discharges=["GATE-R006"],
    title="Many processes write one ledger, and kills lose nothing that was acknowledged",
)
def ledger_processes(check: Check) -> None:
    with toys() as folder:
        _two_at_once(check, folder / "two.jsonl")
        _killed(check, folder / "killed.jsonl")
        _children_are_recorded(check, folder / "children.jsonl")


def _writer(path: Path, name: str, number: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "numbat_gates.gates._writer", str(path), name, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())


def _two_at_once(check: Check, path: Path) -> None:
    writers = [_writer(path, name, _ENTRIES) for name in ("one", "other")]
    said = [writer.communicate(timeout=_LONG_S)[0] for writer in writers]
    check.equal("two writers: exit statuses", [writer.returncode for writer in writers], [0, 0])
    state = verify_ledger(path)
    check.equal("two writers: entries", state.length, 2 * _ENTRIES + 1)
    check.equal("two writers: torn lines", state.torn, 0)
    entries = list(read_entries(path))
    check.equal("two writers: numbers", [e.seq for e in entries], list(range(state.length)))
    for name, lines in zip(("one", "other"), said, strict=True):
        mine = [entry for entry in entries if entry.site == name]
        notes = [int(entry.note) for entry in mine]
        check.equal(f"writer {name}: its entries in its order", notes, list(range(_ENTRIES)))
        told = [int(seq) for seq in lines.split()]
        check.equal(f"writer {name}: it was told their numbers", told, [e.seq for e in mine])


def _killed(check: Check, path: Path) -> None:
    acknowledged: list[int] = []
    for turn in range(_KILLS):
        with ExitStack() as stack:
            writers = [stack.enter_context(_writer(path, f"{turn} {n}", 0)) for n in range(2)]
            for writer in writers:
                assert writer.stdout is not None
                acknowledged.append(int(writer.stdout.readline()))
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
            for writer in writers:
                rest = writer.communicate(timeout=_LONG_S)[0]
                # A number that the kill cut in two was not told.
                acknowledged += [int(seq) for seq in rest.split(b"\n")[:-1]]
            ended = [writer.returncode for writer in writers]
        check.equal(f"kill {turn}: both ended by it", ended, [-signal.SIGKILL] * 2)
        Ledger(path).append("notice", code="GATE-0102", site="next")
        check.true(f"kill {turn}: the chain holds", verify_ledger(path).length > 0)
    head = Ledger(path).append("seal").hash
    state = verify_ledger(path, head=head)
    entries = list(read_entries(path))
    check.equal("kills: numbers", [entry.seq for entry in entries], list(range(state.length)))
    kept = {entry.seq for entry in entries if entry.note.endswith("x")}
    check.equal("kills: acknowledged and lost", sorted(set(acknowledged) - kept), [])
    check.equal("kills: nothing else in the folder", len(list(path.parent.glob("killed*"))), 1)
    _cut_in_the_middle(check, path)


def _cut_in_the_middle(check: Check, path: Path) -> None:
    """Whether or not a kill above fell into a line, one that did is tried here byte for byte."""
    data = path.read_bytes()
    last = data[:-1].rindex(b"\n") + 1
    path.write_bytes(data[: last + (len(data) - last) // 2])
    with check.refuses("GATE-0203", "a torn end is told until a writer ended it"):
        verify_ledger(path)
    head = Ledger(path).append("seal").hash
    state = verify_ledger(path, head=head)
    check.at_least("the next writer records what was left", state.torn, 1, "torn lines")
    check.true("and goes on", state.sealed)


def _children_are_recorded(check: Check, path: Path) -> None:
    source = "from numbat_registries import load_registry\nload_registry('radiology')"
    with activate(path) as ledger:
        ended = subprocess.run(
            [sys.executable, "-c", source],
            env=environment() | {"NUMBAT_LEDGER": str(ledger.path)},
            capture_output=True,
            timeout=_LONG_S,
            check=False,
        )
    check.equal("a child that was refused", ended.returncode, 1)
    found = [(entry.kind, entry.code) for entry in read_entries(path)]
    check.equal("its refusal is in the parent's ledger", found[1:], [("raise", "GATE-0102")])
