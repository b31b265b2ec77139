"""What a run may say, how several verdicts make one, and the exit status of each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """The four answers of a check, a gate, a phase or a run."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_RUN = "NOT_RUN"
    ERROR = "ERROR"

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that a command ends with for this verdict."""
        return _EXIT[self]


class ExitCode(IntEnum):
    """The exit statuses of every numbat command."""

    PASS = 0
    FAIL = 1
    MALFORMED = 2
    NOT_RUN = 3
    REFUSED = 4
    INTERNAL = 5

    @property
    def says(self) -> str:
        """The status in words."""
        return _SAYS[self]


class NotRun(Exception):
    """Raised where something cannot be measured here: a tool, a corpus or a machine is missing.

    The gate that it leaves is NOT_RUN with this reason, unless a check had failed before.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_EXIT = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.NOT_RUN: ExitCode.NOT_RUN,
    Verdict.ERROR: ExitCode.INTERNAL,
}
_SAYS = {
    ExitCode.PASS: "measured, and passed",
    ExitCode.FAIL: "measured, and failed",
    ExitCode.MALFORMED: "malformed request",
    ExitCode.NOT_RUN: "not run",
    ExitCode.REFUSED: "refused",
    ExitCode.INTERNAL: "internal error",
}
#: The worst first: what broke says nothing at all, and what was not run proves nothing.
_WORST_FIRST = (Verdict.ERROR, Verdict.FAIL, Verdict.NOT_RUN, Verdict.PASS)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict from several: the worst of them; of none at all, NOT_RUN.

    An empty list is not a pass: nothing was measured.
    """
    found = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in found), Verdict.NOT_RUN)
