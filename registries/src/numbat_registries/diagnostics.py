"""What a diagnostic is: its severity, evidence, repair plans, and the exception that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

WITHHELD = "‹withheld›"


class Severity(StrEnum):
    """How much a diagnostic stops: refusals and failures are raised, the others only recorded."""

    REFUSAL = "refusal"
    FAILURE = "failure"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def is_raised(self) -> bool:
        """Whether a code of this severity is an exception rather than a record."""
        return self in (Severity.REFUSAL, Severity.FAILURE)


class Action(StrEnum):
    """The closed list of things that a repair plan may ask for."""

    SUPPLY_ARGUMENT = "supply-argument"
    CHOOSE_OPTION = "choose-option"
    FIX_INPUT = "fix-input"
    INSTALL_PACKAGE = "install-package"
    OBTAIN_LICENCE = "obtain-licence"
    ACQUIRE_DATA = "acquire-data"
    RERUN_WITH = "rerun-with"
    QUARANTINE = "quarantine"
    ASK_OPERATOR = "ask-operator"
    REPORT_BUG = "report-bug"


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """One way out of a diagnostic, in a form that a program can carry out.

    `args` holds values that are already known (from the registry or from the evidence);
    `asks` names those that somebody has to answer, each with its JSON type, the allowed choices and
    what is being asked. `safe` plans lose nothing and may run without a person.
    """

    action: Action
    args: Mapping[str, Any]
    safe: bool
    says: str
    effect: str = ""
    loses: str = ""
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def answer(self, **answers: Any) -> RepairPlan:
        """The same plan with open questions answered.

        Raises GATE-0104 for an answer that was not asked for or is not among the choices.
        """
        from numbat_registries.raising import refuse

        for name, value in answers.items():
            question = self.asks.get(name)
            if question is None:
                raise refuse(
                    "GATE-0104", argument=name, reason="not asked for", asked=sorted(self.asks)
                )
            choices = question.get("choices")
            if choices is not None and value not in choices:
                raise refuse(
                    "GATE-0104",
                    argument=name,
                    reason=f"not among {choices}",
                    asked=sorted(self.asks),
                )
        rest = {name: asked for name, asked in self.asks.items() if name not in answers}
        return replace(self, args={**self.args, **answers}, asks=rest)

    def keywords(self) -> dict[str, Any]:
        """Keyword arguments to call the refused function with again.

        Raises GATE-0105 when the plan is not a call, or a question is still open.
        """
        from numbat_registries.raising import refuse

        if self.action not in (Action.RERUN_WITH, Action.CHOOSE_OPTION, Action.SUPPLY_ARGUMENT):
            raise refuse("GATE-0105", action=str(self.action), open_questions=sorted(self.asks))
        if self.asks:
            raise refuse("GATE-0105", action=str(self.action), open_questions=sorted(self.asks))
        return dict(self.args)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-safe data."""
        body: dict[str, Any] = {
            "action": str(self.action),
            "args": dict(self.args),
            "safe": self.safe,
            "says": self.says,
        }
        for name in ("effect", "loses"):
            if getattr(self, name):
                body[name] = getattr(self, name)
        if self.asks:
            body["asks"] = {name: dict(asked) for name, asked in self.asks.items()}
        return body


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One occurrence of a registered code, with its evidence.

    `fields` are JSON-safe and complete; `message` and every rendering withhold the fields that the
    registry marks as `phi`. `site` is "module:function:line" of the raise; `seq` is the ledger
    entry that recorded it, or None when no ledger was active.
    """

    code: str
    name: str
    severity: Severity
    message: str
    fields: Mapping[str, Any]
    plans: tuple[RepairPlan, ...]
    site: str
    phi_fields: frozenset[str] = frozenset()
    seq: int | None = None

    def public_fields(self) -> dict[str, Any]:
        """The evidence without what may identify a patient."""
        return {
            name: WITHHELD if name in self.phi_fields else value
            for name, value in self.fields.items()
        }


class Refusal(Exception):
    """A domain fault: numbat declined to give an answer, and says why and what to do.

    Picklable, so that it crosses process pools whole.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code} {diagnostic.name}: {diagnostic.message}")
        self.diagnostic = diagnostic

    @property
    def code(self) -> str:
        """The registered code, such as "IMG-1203"."""
        return self.diagnostic.code

    def __reduce__(self) -> tuple[type[Refusal], tuple[Diagnostic]]:
        return (type(self), (self.diagnostic,))
