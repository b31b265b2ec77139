"""A process that appends to a ledger: `python -m numbat_gates.gates._writer FILE NAME COUNT`.

It says on stdout which entry is in the file; COUNT 0 goes on until it is killed, with long entries
so that most kills fall into the middle of one.
"""

from __future__ import annotations

import sys
from itertools import count

from numbat_ledger import Ledger

_LONG = 60_000


def main(path: str, name: str, number: str) -> None:
    """Append entries that are told apart by their site and note."""
    ledger = Ledger(path)
    endless = number == "0"
    for n in count() if endless else range(int(number)):
        note = f"{n} " + "x" * (_LONG if endless else 0)
        entry = ledger.append("notice", code="GATE-0102", site=name, note=note)
        print(entry.seq, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
