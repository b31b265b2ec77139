"""What may go wrong at one place of a program: each operator gives nodes to put in its place.

An operator is about faults that people make: a limit that is off by one, a sign, an axis taken for
another, a check that was dropped. What every run would notice at once is left out, for it would
only flatter the gates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

#: The node of the fault, or several statements in place of one.
Change = ast.AST
Operator = Callable[[ast.AST, ast.AST], Iterator[Change]]

_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    ("min", "max"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("all", "any"),
    ("sin", "cos"),
    ("degrees", "radians"),
)
_OTHER_FUNCTION = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}


def comparison(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A limit that is in for one that is out, and a comparison the other way round."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS.get(type(operator), ()):
                changed = deepcopy(node)
                changed.ops[place] = other()
                yield changed


def arithmetic(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """Another operation; the operands of a cross product in the other order."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        if not _is_about_texts(node):
            changed = deepcopy(node)
            changed.op = _ARITHMETIC[type(node.op)]()
            yield changed
    elif _is_call_of(node, "cross") and isinstance(node, ast.Call) and len(node.args) == 2:
        changed_call = deepcopy(node)
        changed_call.args.reverse()
        yield changed_call


def _is_about_texts(node: ast.BinOp | ast.AugAssign) -> bool:
    # Sequences and texts know + alone: every run would notice another operation.
    parts = [node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in parts
    )


def constant(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A number that is off by one, twice as large, or of the other sign; True for False."""
    if isinstance(node, ast.Constant) and not isinstance(parent, ast.keyword | ast.Subscript):
        yield from _other_values(node, signed=not _is_negated(parent))


def keyword(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """Another value of a named argument; an axis is taken for another."""
    if not isinstance(node, ast.keyword) or not isinstance(node.value, ast.Constant):
        return
    if node.arg == "axis" and type(node.value.value) is int:
        yield ast.keyword(node.arg, ast.Constant(_other_index(node.value.value)))
        return
    for value in _other_values(node.value, signed=False):
        yield ast.keyword(node.arg, value)


def _other_values(node: ast.Constant, *, signed: bool) -> Iterator[ast.expr]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        if signed and value:
            yield ast.UnaryOp(ast.USub(), ast.Constant(value))
    elif isinstance(value, float):
        yield ast.Constant(2 * value if value else 1.0)
        if signed and value:
            yield ast.UnaryOp(ast.USub(), ast.Constant(value))


def index(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """The neighbour of an element, of a row or of an axis."""
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for place, part in enumerate(parts):
            value = _integer(part)
            if value is not None:
                yield _with_part(node, place, _signed(_other_index(value)))


def _other_index(value: int) -> int:
    return value + 1 if value in (0, -1) else value - 1


def _integer(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    return None


def _signed(value: int) -> ast.expr:
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _with_part(node: ast.Subscript, place: int, part: ast.expr) -> ast.Subscript:
    changed = deepcopy(node)
    if isinstance(changed.slice, ast.Tuple):
        changed.slice.elts[place] = part
    else:
        changed.slice = part
    return changed


def slice_(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A slice that is one short at either end, or without its step."""
    if not isinstance(node, ast.Slice):
        return
    if node.step is not None:
        yield ast.Slice(deepcopy(node.lower), deepcopy(node.upper), None)
    elif node.lower is None and node.upper is None and _is_sole_index(node, parent):
        yield ast.Slice(ast.Constant(1), None, None)
    if node.lower is not None:
        yield ast.Slice(_one_more(node.lower), deepcopy(node.upper), deepcopy(node.step))
    if node.upper is not None:
        yield ast.Slice(deepcopy(node.lower), _one_less(node.upper), deepcopy(node.step))


def _is_sole_index(node: ast.Slice, parent: ast.AST) -> bool:
    # `x[:, 2]` takes a whole column; one element less is an error of shapes that stops every run.
    return isinstance(parent, ast.Subscript) and parent.slice is node


def _one_more(node: ast.expr) -> ast.expr:
    value = _integer(node)
    if value is not None:
        return _signed(value + 1)
    return ast.BinOp(deepcopy(node), ast.Add(), ast.Constant(1))


def _one_less(node: ast.expr) -> ast.expr:
    value = _integer(node)
    if value is not None:
        return _signed(value - 1)
    return ast.BinOp(deepcopy(node), ast.Sub(), ast.Constant(1))


def logic(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """`and` for `or`."""
    if isinstance(node, ast.BoolOp):
        changed = deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed


def negation(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A condition the other way round; a `not` that was forgotten; branches exchanged."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield deepcopy(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(deepcopy(node.test), deepcopy(node.orelse), deepcopy(node.body))
    elif isinstance(node, ast.If | ast.While) and _is_plain_condition(node.test):
        changed = deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield changed
    elif isinstance(node, ast.comprehension):
        for place, test in enumerate(node.ifs):
            if _is_plain_condition(test):
                changed_loop = deepcopy(node)
                changed_loop.ifs[place] = ast.UnaryOp(ast.Not(), deepcopy(test))
                yield changed_loop


def _is_plain_condition(test: ast.expr) -> bool:
    # Comparisons, `not`, `and` and `or` have operators of their own that say the same.
    return isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr)


def sign(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A sign that was forgotten."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield deepcopy(node.operand)


def _is_negated(parent: ast.AST) -> bool:
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)


def function(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """The sister of a function: max for min, ceil for floor, any for all, cos for sin."""
    if isinstance(node, ast.Call):
        changed = deepcopy(node)
        if isinstance(changed.func, ast.Name) and changed.func.id in _OTHER_FUNCTION:
            changed.func.id = _OTHER_FUNCTION[changed.func.id]
            yield changed
        elif isinstance(changed.func, ast.Attribute) and changed.func.attr in _OTHER_FUNCTION:
            changed.func.attr = _OTHER_FUNCTION[changed.func.attr]
            yield changed
        elif _is_call_of(changed, "mean") and _is_of_numpy(changed.func):
            # Arrays have a method for the one and none for the other.
            changed.func = ast.Attribute(ast.Name("np", ast.Load()), "median", ast.Load())
            yield changed


def _is_of_numpy(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "np"
    )


def _is_call_of(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return name == (called.id if isinstance(called, ast.Name) else getattr(called, "attr", ""))


def result(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A result without its second operand."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
        yield ast.Return(deepcopy(node.value.left))
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp):
        yield ast.Return(deepcopy(node.value.values[0]))


def refusal(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A fault that is found and not raised."""
    if isinstance(node, ast.Raise):
        yield ast.Pass()


def statement(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A call for its effect that was left out: a check, or something added to a list."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def loop(node: ast.AST, parent: ast.AST) -> Iterator[Change]:
    """A loop that goes on too early, or does not stop, or stops at once."""
    if isinstance(node, ast.For):
        changed = deepcopy(node)
        changed.body = [ast.Continue()]
        yield changed
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Continue()


OPERATORS: Mapping[str, Operator] = {
    "comparison": comparison,
    "arithmetic": arithmetic,
    "constant": constant,
    "keyword": keyword,
    "index": index,
    "slice": slice_,
    "logic": logic,
    "negation": negation,
    "sign": sign,
    "function": function,
    "result": result,
    "refusal": refusal,
    "statement": statement,
    "loop": loop,
}
