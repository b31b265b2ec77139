"""What became of seeded faults, and the score that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from numbat_gates.mutation.seeding import Fault
from numbat_gates.verdicts import ExitCode

SCHEMA = "https://numbat.dev/schemas/mutation/v0.1"


class Fate(StrEnum):
    """What became of a seeded fault."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    NOT_REACHED = "not reached"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One fault and its fate.

    `gates` ran, in this order; the last of them caught it when it is caught. `how` says by which
    check, or what else happened; of a declared fault, why it is none.
    """

    fault: Fault
    fate: Fate
    gates: tuple[str, ...] = ()
    how: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The judgement as JSON data."""
        return self.fault.to_dict() | {
            "fate": str(self.fate),
            "gates": list(self.gates),
            "how": self.how,
        }


@dataclass(frozen=True, slots=True)
class MutationRun:
    """All judgements of one run, in the order of the source.

    `seconds` maps each judging gate to its time on the code as it is; `silent` are the gates that
    did not pass there for lack of something, and judged nothing. `stale` are declared ids that name
    no fault any more.
    """

    plane: str
    version: str
    judgements: tuple[Judgement, ...]
    at_least: float
    duration_s: float
    sample: int | None = None
    seed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    stale: tuple[str, ...] = ()

    def having(self, fate: Fate) -> tuple[Judgement, ...]:
        """The judgements of one fate."""
        return tuple(item for item in self.judgements if item.fate is fate)

    @property
    def counted(self) -> int:
        """Faults that count: all but those declared to be none."""
        return len(self.judgements) - len(self.having(Fate.DECLARED))

    @property
    def score(self) -> float | None:
        """Caught faults as a part of those that count; None when none counts."""
        return len(self.having(Fate.CAUGHT)) / self.counted if self.counted else None

    @property
    def exit_code(self) -> ExitCode:
        """Whether the score is reached; without any fault nothing was judged."""
        if self.score is None:
            return ExitCode.NOT_RUN
        return ExitCode.PASS if self.score >= self.at_least else ExitCode.FAIL

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON data."""
        score: Any = self.score
        return {
            "schema": SCHEMA,
            "plane": self.plane,
            "version": self.version,
            "score": {"undefined": "no fault counts"} if score is None else round(score, 4),
            "at_least": self.at_least,
            "exit_code": int(self.exit_code),
            "counted": self.counted,
            "counts": {str(fate): len(self.having(fate)) for fate in Fate},
            "sample": self.sample,
            "seed": self.seed,
            "duration_s": round(self.duration_s, 1),
            "gates": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "gates_not_judging": dict(self.silent),
            "stale_declarations": list(self.stale),
            "faults": [item.to_dict() for item in self.judgements],
        }
