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


#: What a value of each JSON type is in Python, once it is JSON-safe.
PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def is_of_type(value: Any, kind: str) -> bool:
    """Whether a JSON-safe value has the named JSON type; True and False are no numbers."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, PYTHON_TYPES[kind])


@dataclass(frozen=True, slots=True, repr=False)
class RepairPlan:
    """One way out of a diagnostic, in a form that a program can carry out.

    `args` holds values that are already known (from the registry or from the evidence);
    `asks` names those that somebody has to answer, each with its JSON type, the allowed choices and
    what is being asked. `safe` plans lose nothing and may run without a person. `withheld` names
    the arguments that may identify a patient: a program gets them from `keywords`, no text does.
    """

    action: Action
    args: Mapping[str, Any]
    safe: bool
    says: str
    effect: str = ""
    loses: str = ""
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        args = ", ".join(f"{name}={value!r}" for name, value in self.public_args().items())
        asks = "".join(f", {name}=?" for name in self.asks)
        return f"<RepairPlan {self.action}({(args + asks).removeprefix(', ')})>"

    def public_args(self) -> dict[str, Any]:
        """The known arguments without what may identify a patient."""
        return withhold(self.args, self.withheld)

    def answer(self, **answers: Any) -> RepairPlan:
        """The same plan with open questions answered.

        Raises GATE-0104 for an answer that was not asked for, is of another type or is not among
        the choices.
        """
        from numbat_registries.raising import refuse

        for name, value in answers.items():
            if reason := self._objection(name, value):
                raise refuse("GATE-0104", argument=name, reason=reason, asked=sorted(self.asks))
        rest = {name: asked for name, asked in self.asks.items() if name not in answers}
        return replace(self, args={**self.args, **answers}, asks=rest)

    def _objection(self, name: str, value: Any) -> str:
        question = self.asks.get(name)
        if question is None:
            return "not asked for"
        if not is_of_type(list(value) if isinstance(value, tuple) else value, question["type"]):
            return f"not of the type {question['type']}"
        if "choices" in question and value not in question["choices"]:
            return f"not among {question['choices']}"
        return ""

    def keywords(self) -> dict[str, Any]:
        """Keyword arguments to call the refused function with again.

        Raises GATE-0105 when the plan is not a call, or a question is still open.
        """
        from numbat_registries.raising import refuse

        calls = (Action.RERUN_WITH, Action.CHOOSE_OPTION, Action.SUPPLY_ARGUMENT)
        if self.action not in calls or self.asks:
            raise refuse("GATE-0105", action=str(self.action), open_questions=sorted(self.asks))
        return dict(self.args)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-safe data, without what may identify a patient."""
        body: dict[str, Any] = {
            "action": str(self.action),
            "args": self.public_args(),
            "safe": self.safe,
            "says": self.says,
        }
        for name in ("effect", "loses"):
            if getattr(self, name):
                body[name] = getattr(self, name)
        if self.asks:
            body["asks"] = {name: dict(asked) for name, asked in self.asks.items()}
        return body


def withhold(values: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The values with those of the given names replaced by a mark."""
    return {name: WITHHELD if name in names else value for name, value in values.items()}


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic:
    """One occurrence of a registered code, with its evidence.

    `fields` are JSON-safe and complete; `message`, `repr` and every rendering withhold those that
    the registry marks as `phi`. `site` is "module:function:line" of the raise; `seq` is the entry
    of the active ledger that recorded it, or None when none was active.
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

    def __repr__(self) -> str:
        return f"<Diagnostic {self.code} {self.name}: {self.message}>"

    def public_fields(self) -> dict[str, Any]:
        """The evidence without what may identify a patient."""
        return withhold(self.fields, self.phi_fields)


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
