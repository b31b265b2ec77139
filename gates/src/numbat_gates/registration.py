"""Gates: what one is, how a module declares it, and the one table of all gates of a plane.

The table is read from the source of the gate modules without running them, so that listing gates
imports nothing; loading then adds the functions and refuses any that the source does not show.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numbat_gates.planes import Plane
from numbat_gates.requirements import Requirements
from numbat_registries import Refusal, refuse

if TYPE_CHECKING:
    from numbat_gates.checks import Check

GateFunction = Callable[["Check"], None]
_Function = TypeVar("_Function", bound=GateFunction)

_ID = re.compile(r"[A-Z]{3,5}-G[0-9]{2,3}")
_LIST = "__numbat_gates__"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: its id, phase, the requirements it discharges, and where it is written.

    `last` gates run after all others, for what is measured over the whole run. `function` is None
    until the module is loaded; `missing` names a package that the module needs and this
    installation lacks; `fault` says why else the module cannot be loaded.
    """

    id: str
    phase: int
    discharges: tuple[str, ...]
    title: str
    module: str
    line: int
    last: bool = False
    function: GateFunction | None = None
    missing: str = ""
    fault: str = ""

    @property
    def source(self) -> str:
        """Where the gate is written, as "module:line"."""
        return f"{self.module}:{self.line}"


def gate(
    id: str,  # noqa: A002 - the field's word for it, and positional at every call
    *,
    phase: int,
    discharges: Sequence[str],
    title: str,
    last: bool = False,
) -> Callable[[_Function], _Function]:
    """Declare a function to be a gate; the function itself stays as it is.

    All arguments are literals: the table of gates is read from the source.

    Raises GATE-0311 for an id, title, phase or list of requirements that is not one.
    """
    declared = _checked(
        id=id, phase=phase, discharges=discharges, title=title, last=last, module="", line=0
    )

    def declare(function: _Function) -> _Function:
        made = replace(
            declared,
            module=function.__module__,
            line=function.__code__.co_firstlineno,
            function=function,
        )
        function.__globals__.setdefault(_LIST, []).append(made)
        return function

    return declare


def _checked(
    *,
    id: Any,  # noqa: A002
    phase: Any,
    discharges: Any,
    title: Any,
    last: Any,
    module: str,
    line: int,
) -> Gate:
    faults = []
    if not isinstance(id, str) or not _ID.fullmatch(id):
        faults.append("its id is not of the form IMG-G03")
    if not isinstance(phase, int) or isinstance(phase, bool) or phase < 1:
        faults.append("its phase is not a whole number from 1 on")
    if not isinstance(title, str) or not title.strip():
        faults.append("it has no title")
    named = isinstance(discharges, list | tuple) and all(isinstance(r, str) for r in discharges)
    if not named or not discharges:
        faults.append("it discharges no requirement")
    elif len(set(discharges)) != len(discharges):
        faults.append("it names a requirement twice")
    if not isinstance(last, bool):
        faults.append("last is neither True nor False")
    if faults:
        raise refuse("GATE-0311", gate=str(id), faults=faults)
    return Gate(
        id=id,
        phase=phase,
        discharges=tuple(discharges),
        title=title,
        last=last,
        module=module,
        line=line,
    )


def declared_gates(plane: Plane) -> tuple[Gate, ...]:
    """The gates of a plane as its source declares them, by id, without running any of it.

    Raises GATE-0311 and GATE-0316 for a declaration that is malformed or not literal, GATE-0312
    for an id given twice, GATE-0315 for a module that is not Python.
    """
    found: dict[str, Gate] = {}
    for module, path in gate_modules(plane):
        for item in _declared_in(module, path):
            if item.id in found:
                raise refuse(
                    "GATE-0312", gate=item.id, first=found[item.id].source, second=item.source
                )
            found[item.id] = item
    return tuple(found[name] for name in sorted(found))


def gate_modules(plane: Plane) -> tuple[tuple[str, Path], ...]:
    """The modules that hold gates, as (import name, file); names with an underscore are helpers."""
    paths = sorted(plane.gates_directory.glob("*.py"))
    return tuple(
        (f"{plane.gates_package}.{path.stem}", path)
        for path in paths
        if not path.stem.startswith("_")
    )


def load_gates(plane: Plane, requirements: Requirements) -> tuple[Gate, ...]:
    """The gates of a plane ready to run, held against its requirements.

    A module that needs a package which is not installed gives its gates with `missing`; one that
    cannot be loaded for another reason gives them with `fault`.

    Raises the codes of `declared_gates`; GATE-0313 for a gate that names an unknown requirement,
    GATE-0314 for one that claims what is declared to await something no machine can settle.
    """
    declared = declared_gates(plane)
    for item in declared:
        _against(item, requirements)
    loaded: list[Gate] = []
    # Modules that seem to hold no gate too: one declared in a way that the source does not show
    # must not be passed over in silence.
    for module, _ in gate_modules(plane):
        loaded += _loaded(module, [item for item in declared if item.module == module])
    return tuple(sorted(loaded, key=lambda item: item.id))


def _against(item: Gate, requirements: Requirements) -> None:
    for name in item.discharges:
        requirement = requirements.requirements.get(name)
        if requirement is None:
            raise refuse("GATE-0313", gate=item.id, requirement=name, source=item.source)
        awaits = requirement.awaits
        if awaits is not None and not awaits.depends_on_machine:
            raise refuse("GATE-0314", gate=item.id, requirement=name, awaits=str(awaits))


def _declared_in(module: str, path: Path) -> list[Gate]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise refuse("GATE-0315", module=module, reason=f"{type(error).__name__}: {error}") from (
            error
        )
    return [
        _declaration(call, module=module, line=node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and _names_gate(call.func)
    ]


def _names_gate(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "gate"


def _declaration(call: ast.Call, *, module: str, line: int) -> Gate:
    values: dict[str, Any] = {
        "id": None,
        "phase": None,
        "discharges": (),
        "title": None,
        "last": False,
    }
    try:
        values |= dict(zip(("id",), (ast.literal_eval(value) for value in call.args), strict=False))
        values |= {str(item.arg): ast.literal_eval(item.value) for item in call.keywords}
    except ValueError as error:
        raise refuse("GATE-0316", source=f"{module}:{line}", reason="not all literals") from error
    known = {name: values[name] for name in ("id", "phase", "discharges", "title", "last")}
    return _checked(**known, module=module, line=line)


def _loaded(module: str, declared: list[Gate]) -> list[Gate]:
    try:
        namespace = vars(import_module(module))
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith(module.partition(".")[0]):
            return [replace(item, missing=error.name) for item in declared]
        return [replace(item, fault=_fault(error)) for item in declared]
    except Exception as error:
        return [replace(item, fault=_fault(error)) for item in declared]
    functions = {item.id: item.function for item in namespace.get(_LIST, [])}
    hidden = sorted(set(functions) ^ {item.id for item in declared})
    if hidden:
        raise refuse(
            "GATE-0316",
            source=module,
            reason=f"source and module disagree on {', '.join(hidden)}",
        )
    return [replace(item, function=functions[item.id]) for item in declared]


def _fault(error: Exception) -> str:
    text = error.diagnostic.message if isinstance(error, Refusal) else str(error)
    return f"{type(error).__name__}: {text}"
