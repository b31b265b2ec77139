"""Seeded faults: each is one small change in the syntax tree of one module, never on disk."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any

from numbat_gates.mutation.operators import OPERATORS

_TALK = frozenset({"log", "logger", "logging", "warnings"})
_SHOWN = 200
#: What may take a part of an operation for its own, so that people need to see the parentheses.
_BINDING = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Attribute, ast.Subscript)


@dataclass(frozen=True, slots=True)
class Fault:
    """One seeded fault.

    `id` is a digest of module, function, source line, operator and change, and not of the line's
    number: a fault that is declared to be none stays declared while the code around it moves.
    `lines` are those of the statement, (first, last), of which one has to run for a gate to notice.
    `function` is empty for what runs when the module is imported. `place` and `variant` find the
    change again.
    """

    id: str
    module: str
    path: Path
    line: int
    function: str
    operator: str
    source: str
    mutated: str
    lines: tuple[int, int]
    place: int
    variant: int

    def to_dict(self) -> dict[str, Any]:
        """The fault as JSON data, without where its file lies on this machine."""
        shown = asdict(self)
        for name in ("path", "place", "variant"):
            del shown[name]
        return shown | {"file": self.path.name, "lines": list(self.lines)}


@dataclass(frozen=True, slots=True)
class _Place:
    """A node that may be changed, and what stands around it."""

    node: ast.AST
    parent: ast.AST
    statement: ast.stmt
    function: str


def faults_in(
    module: str,
    path: Path,
    *,
    operators: Collection[str] = tuple(OPERATORS),
    functions: Collection[str] = (),
) -> list[Fault]:
    """Every fault that can be seeded into a module, in the order of its text.

    `functions` limits them to these functions or classes, by name. A change that gives the same
    program, or none at all, is no fault.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = []
    times: Counter[str] = Counter()
    for number, place in enumerate(_places(ast.parse(text))):
        if functions and not _is_inside(place.function, functions):
            continue
        for operator in operators:
            for variant, change in enumerate(OPERATORS[operator](place.node, place.parent)):
                if ast.dump(change) == ast.dump(place.node):
                    continue
                line = getattr(place.node, "lineno", place.statement.lineno)
                source, mutated = lines[line - 1].strip(), _shown(lines, place, change)
                named = "\n".join((module, place.function, source, operator, mutated))
                times[named] += 1
                found.append(
                    Fault(
                        id=_digest(f"{named}\n{times[named]}"),
                        module=module,
                        path=path,
                        line=line,
                        function=place.function,
                        operator=operator,
                        source=source,
                        mutated=mutated,
                        lines=_span(place.statement),
                        place=number,
                        variant=variant,
                    )
                )
    return sorted(found, key=lambda fault: (fault.line, fault.place))


def compiled(fault: Fault) -> CodeType:
    """The whole module with the fault in it, under the name of its own file."""
    tree = ast.parse(fault.path.read_text(encoding="utf-8"))
    place = next(islice(_places(tree), fault.place, None))
    change = next(islice(OPERATORS[fault.operator](place.node, place.parent), fault.variant, None))
    _Replacement(place.node, ast.copy_location(change, place.node)).visit(tree)
    code: CodeType = compile(
        ast.fix_missing_locations(tree), str(fault.path), "exec", dont_inherit=True
    )
    return code


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def _is_inside(function: str, names: Collection[str]) -> bool:
    return any(function == name or function.startswith(f"{name}.") for name in names)


# ---------------------------------------------------------------------- where faults may be


def _places(tree: ast.Module) -> Iterator[_Place]:
    for statement in tree.body:
        yield from _in_statement(statement, tree, "")


def _in_statement(statement: ast.stmt, parent: ast.AST, function: str) -> Iterator[_Place]:
    if _says_nothing(statement):
        return
    inside = function
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if statement.name in ("__repr__", "__str__"):
            return
        inside = f"{function}.{statement.name}".removeprefix(".")
    else:
        yield _Place(statement, parent, statement, function)
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.stmt):
                yield from _in_statement(child, statement, inside)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                for body in child.body:
                    yield from _in_statement(body, child, inside)
            elif isinstance(child, ast.AST):
                # Defaults of arguments are computed where the function is defined.
                yield from _in_expression(child, statement, statement, function)


def _in_expression(
    node: ast.AST, parent: ast.AST, statement: ast.stmt, function: str
) -> Iterator[_Place]:
    if isinstance(node, ast.JoinedStr | ast.expr_context | ast.operator | ast.cmpop):
        return
    if isinstance(node, ast.arguments):
        children: list[ast.AST | None] = [*node.defaults, *node.kw_defaults]
    else:
        yield _Place(node, parent, statement, function)
        children = list(ast.iter_child_nodes(node))
    above = _context_of(node, parent)
    for child in children:
        if child is not None and not isinstance(child, ast.arg):
            yield from _in_expression(child, above, statement, function)


def _context_of(node: ast.AST, parent: ast.AST) -> ast.AST:
    """What the children of a node stand in: elements of an index count as the index itself."""
    within_index = isinstance(parent, ast.Subscript) and node is not parent.value
    passes_on = isinstance(node, ast.Tuple | ast.UnaryOp | ast.Slice)
    return parent if within_index and passes_on else node


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is a text, an import, for type checkers, or talk."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass):
        return True
    if isinstance(statement, ast.If):
        return "TYPE_CHECKING" in ast.unparse(statement.test)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(isinstance(item, ast.Name) and item.id == "__all__" for item in targets)
    if isinstance(statement, ast.Expr):
        value = statement.value
        return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and _talks(value))
    return False


def _talks(call: ast.Call) -> bool:
    owner: ast.expr = call.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    name = owner.id if isinstance(owner, ast.Name) else ""
    return name in _TALK or name == "print"


def _span(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement, of a compound one those before its body."""
    body = getattr(statement, "body", None)
    if not body:
        return statement.lineno, statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, body[0].lineno - 1)


# ---------------------------------------------------------------------- the changed program


class _Replacement(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


# ---------------------------------------------------------------------- what people are shown


def _shown(lines: list[str], place: _Place, change: ast.AST) -> str:
    """The source line with the fault in it; the faulty part alone where it spans several lines."""
    if isinstance(change, ast.Pass | ast.Break | ast.Continue):
        return ast.unparse(change)
    node = place.node
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Return | ast.AugAssign):
        return _heading(change)
    text = _one_line(change)
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if not first or first != last or isinstance(node, ast.comprehension):
        return text
    line = lines[first - 1].encode("utf-8")
    before, after = line[: node.col_offset], line[node.end_col_offset :]  # type: ignore[attr-defined]
    composite = isinstance(change, ast.BinOp | ast.Compare | ast.BoolOp | ast.UnaryOp | ast.IfExp)
    enclosed = before.endswith(b"(") and after.startswith(b")")
    if composite and isinstance(place.parent, _BINDING) and not enclosed:
        text = f"({text})"
    return (before.decode() + text + after.decode()).strip()


def _heading(change: ast.AST) -> str:
    """The first line of a compound statement, and the only line of its body if it has one."""
    heading, *body = ast.unparse(change).splitlines()
    return f"{heading} {body[0].strip()}" if len(body) == 1 else heading


def _one_line(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(deepcopy(node))).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
