"""Coverage: after all other gates, no code of the frameworks is left that no check asked for."""

from __future__ import annotations

from numbat_gates import Check, gate


@gate(
    "GATE-G18",
    phase=4,
    discharges=["GATE-R007"],
    title="Every code of the frameworks is raised by a check that asked for it",
    last=True,
)
def coverage(check: Check) -> None:
    check.covers_registry()
