"""The gates of one trial, in the process that has the fault in place."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from numbat_gates.planes import Plane
from numbat_gates.registration import Gate
from numbat_gates.results import CheckResult, GateResult
from numbat_gates.runner import Listener, run_plane
from numbat_gates.verdicts import Verdict


def run(task: Mapping[str, Any], answer: Path) -> None:
    """Run the gates of the task one by one until one does not pass; the answer goes to a file.

    The first failing check ends the process: what comes after it cannot change the answer.
    """
    plane = Plane(**task["plane"])
    ran: list[str] = []
    seconds: dict[str, float] = {}

    def end(passed: bool, how: str = "") -> None:
        found = {
            "passed": passed,
            "how": how,
            "gates": ran,
            "seconds": seconds,
            "modules": sorted(sys.modules) if task.get("tell_modules") else [],
        }
        draft = answer.with_suffix(".part")
        draft.write_text(json.dumps(found), encoding="utf-8")
        draft.replace(answer)
        os._exit(0)

    for name in task["gates"]:
        ran.append(name)
        begin = perf_counter()
        done = run_plane(plane, gates=[name], listener=_Impatient(end))
        seconds[name] = perf_counter() - begin
        result = done.gates[0]
        if result.verdict is not Verdict.PASS:
            end(False, _why(result))
    end(True)


class _Impatient(Listener):
    def __init__(self, end: Any) -> None:
        self.end = end

    def check_made(self, gate: Gate, result: CheckResult) -> None:
        """Ends the process with the first check that fails."""
        if result.verdict is Verdict.FAIL:
            self.end(False, f"FAIL: {result.name}")


def _why(result: GateResult) -> str:
    """Why a gate without a failing check did not pass."""
    if result.error:
        return f"{result.verdict}: {result.error['type']}: {result.error['text']}"[:500]
    return f"{result.verdict}: {'; '.join(result.not_run)}"[:500]
