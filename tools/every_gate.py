"""Run every gate suite, whatever the others say, and return the first failure.

Exit code: that of the first suite that failed (1, 2, 4 or 5); else 3 if a suite did not run, as
those of planes without requirements do not; else 0.
"""

from __future__ import annotations

import subprocess
import sys
import time

from workspace import members

__all__ = ["exit_code", "main"]

VERDICTS = {0: "PASS", 1: "FAIL", 2: "MALFORMED REQUEST", 3: "NOT RUN", 4: "REFUSED", 5: "ERROR"}
NOT_RUN = 3


def main(arguments: list[str]) -> int:
    suites = [member.plane for member in members() if member.plane is not None]
    codes: dict[str, int] = {}
    lines: list[str] = []
    for suite in suites:
        environment = "frameworks" if suite == "gates" else f"plane.{suite}"
        started = time.monotonic()
        command = ["hatch", "run", f"{environment}:gate", *arguments]
        codes[suite] = subprocess.run(command, check=False).returncode
        verdict = VERDICTS.get(codes[suite], f"exit code {codes[suite]}")
        lines.append(f"{suite:<12} {verdict:<18} {time.monotonic() - started:6.1f} s")
    print("\nevery suite", *lines, sep="\n")
    return exit_code(list(codes.values()))


def exit_code(codes: list[int]) -> int:
    """One exit code for many suites: the first failure, else not run, else pass."""
    failures = [code for code in codes if code not in (0, NOT_RUN)]
    return failures[0] if failures else max(codes, default=NOT_RUN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
