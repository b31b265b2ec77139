"""Seeded faults: which changes are made, where none is, and that a fault keeps its name."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from numbat_gates.mutation.operators import OPERATORS
from numbat_gates.mutation.seeding import Fault, compiled, faults_in


def seed(tmp_path: Path, source: str, **options: tuple[str, ...]) -> list[Fault]:
    path = tmp_path / "sums.py"
    path.write_text(dedent(source), encoding="utf-8")
    return faults_in("toy.sums", path, **options)


@pytest.mark.parametrize(
    ("operator", "source", "mutated"),
    [
        ("comparison", "x = a < b", ["x = a <= b", "x = a >= b"]),
        ("comparison", "x = a == b", ["x = a != b"]),
        ("comparison", "x = a <= b < c", ["x = a < b < c", "x = a > b < c",
                                          "x = a <= b <= c", "x = a <= b >= c"]),
        ("comparison", "x = a is None", ["x = a is not None"]),
        ("comparison", "x = a in b", ["x = a not in b"]),
        ("arithmetic", "x = a + b", ["x = a - b"]),
        ("arithmetic", "x = 'a' + b", []),
        ("arithmetic", "x = [a] + b", []),
        ("arithmetic", "x = c * (a + b)", ["x = c / (a + b)", "x = c * (a - b)"]),
        ("arithmetic", "x = c - a + b", ["x = c - a - b", "x = (c + a) + b"]),
        ("arithmetic", "x -= b", ["x += b"]),
        ("arithmetic", "x = np.cross(a, b)", ["x = np.cross(b, a)"]),
        ("constant", "x = 0", ["x = 1"]),
        ("constant", "x = 2", ["x = 3", "x = -2"]),
        ("constant", "x = 0.5", ["x = 1.0", "x = -0.5"]),
        ("constant", "x = 0.0", ["x = 1.0"]),
        ("constant", "x = -2", ["x = -3"]),
        ("constant", "x = True", ["x = False"]),
        ("constant", "x = 'text', None, ..., b''", []),
        ("constant", "x = a[2] + a[1:3] + a[-1]", []),
        ("keyword", "x = f(a, axis=0)", ["x = f(a, axis=1)"]),
        ("keyword", "x = f(a, axis=2)", ["x = f(a, axis=1)"]),
        ("keyword", "x = f(a, keep=True, name='b')", ["x = f(a, keep=False, name='b')"]),
        ("index", "x = a[0]", ["x = a[1]"]),
        ("index", "x = a[-1]", ["x = a[-0]".replace("-0", "0")]),
        ("index", "x = a[:, 2]", ["x = a[:, 1]"]),
        ("index", "a[2, 0] = x", ["a[1, 0] = x", "a[2, 1] = x"]),
        ("slice", "x = a[1:]", ["x = a[2:]"]),
        ("slice", "x = a[:-1]", ["x = a[:-2]"]),
        ("slice", "x = a[:n]", ["x = a[:n - 1]"]),
        ("slice", "x = a[::-1]", ["x = a[:]"]),
        ("slice", "x = a[:]", ["x = a[1:]"]),
        ("slice", "x = a[:, 2]", []),
        ("logic", "x = a and b", ["x = a or b"]),
        ("negation", "x = not a", ["x = a"]),
        ("negation", "x = a if b else c", ["x = c if b else a"]),
        ("negation", "if a: b()", ["if not a: b()"]),
        ("negation", "if a < 3: b()", []),
        ("negation", "x = [a for a in b if c(a)]", ["for a in b if not c(a)"]),
        ("sign", "x = -a", ["x = a"]),
        ("function", "x = max(a)", ["x = min(a)"]),
        ("function", "x = np.floor(a)", ["x = np.ceil(a)"]),
        ("function", "x = np.mean(a)", ["x = np.median(a)"]),
        ("function", "x = a.mean()", []),
        ("function", "x = a.all()", ["x = a.any()"]),
        ("statement", "check(a)", ["pass"]),
        ("statement", "print(a)\nlog.warning(a)", []),
        ("loop", "for x in a: y(x)", ["for x in a: continue"]),
        ("refusal", "raise Fault(a)", ["pass"]),
    ],
)  # fmt: skip
def test_what_may_go_wrong(tmp_path: Path, operator: str, source: str, mutated: list[str]) -> None:
    faults = seed(tmp_path, source, operators=(operator,))
    assert sorted(fault.mutated for fault in faults) == sorted(mutated)


def test_a_result_without_its_second_operand(tmp_path: Path) -> None:
    source = "def f(a, b):\n    return a @ b\n"
    assert [f.mutated for f in seed(tmp_path, source, operators=("result",))] == ["return a"]


def test_what_says_nothing_is_left_alone(tmp_path: Path) -> None:
    source = '''
    """1 + 1"""
    from __future__ import annotations
    import logging
    if TYPE_CHECKING:
        LIMIT = 1 + 1
    __all__ = ["a"][0:1]
    log = logging.getLogger()

    @cache(size=1 + 1)
    class Sum(Base[1 + 1]):
        """2 > 1"""
        first: Literal[1, 2]

        def __repr__(self) -> str:
            return "1" * 3

        def put(self, value: Literal[1, 2]) -> Literal[1, 2]:
            """not a"""
            assert value + 1 > 0
            log.warning("no", value + 1)
            print(value + 1)
            return f"{value + 1}"
    '''
    faults = seed(tmp_path, source)
    assert [(fault.line, fault.operator, fault.mutated) for fault in faults] == []


def test_a_fault_in_a_default_runs_where_the_function_is_defined(tmp_path: Path) -> None:
    source = "def f(a=1):\n    def g(b=2):\n        return b + 3\n    return g\n"
    faults = seed(tmp_path, source, operators=("constant",))
    assert [(f.function, f.mutated) for f in faults if not f.mutated.count("-")] == [
        ("", "def f(a=2):"),
        ("f", "def g(b=3):"),
        ("f.g", "return b + 4"),
    ]


def test_a_fault_keeps_its_id_while_the_code_around_it_moves(tmp_path: Path) -> None:
    source = "def f(a):\n    return a + 1\n"
    before = seed(tmp_path, source)
    moved = seed(tmp_path, f"X = ()\n\n\n{source}")
    assert [f.id for f in before] == [f.id for f in moved]
    assert {f.line for f in before} == {2}
    assert {f.line for f in moved} == {5}
    other_function = seed(tmp_path, source.replace("def f", "def g"))
    other_line = seed(tmp_path, source.replace("a + 1", "a + 1 + b"))
    for changed in (other_function, other_line):
        assert not {f.id for f in before} & {f.id for f in changed}


def test_equal_changes_of_one_line_have_their_own_ids(tmp_path: Path) -> None:
    faults = seed(tmp_path, "x = f(a, 1)\nx = f(a, 1)\n", operators=("constant",))
    assert len({fault.id for fault in faults}) == len(faults) == 4


def test_only_the_functions_that_are_named(tmp_path: Path) -> None:
    source = "X = 1\ndef f():\n    return 1\nclass C:\n    def g(self):\n        return 1\n"
    source += "def f_2():\n    return 1\n"
    names = {f.function for f in seed(tmp_path, source, functions=("f", "C"))}
    assert names == {"f", "C.g"}


def test_the_changed_program_runs_under_the_name_of_its_file(tmp_path: Path) -> None:
    source = "def add(a, b):\n    return a + b\n"
    (fault,) = seed(tmp_path, source, operators=("arithmetic",))
    namespace: dict[str, object] = {}
    code = compiled(fault)
    exec(code, namespace)
    assert namespace["add"](5, 3) == 2  # type: ignore[operator]
    assert code.co_filename == str(fault.path)
    assert fault.path.read_text(encoding="utf-8") == source


def test_every_operator_seeds_programs_that_compile() -> None:
    """Over real modules, those of this package: each fault is another program, and is one."""
    import numbat_gates.comparison
    import numbat_gates.runner

    seen = set()
    for module in (numbat_gates.comparison, numbat_gates.runner):
        assert module.__file__ is not None
        for fault in faults_in(module.__name__, Path(module.__file__)):
            seen.add(fault.operator)
            assert compiled(fault).co_filename == module.__file__
            assert fault.mutated != fault.source or fault.operator == "negation"
            first, last = fault.lines
            assert first <= last
    assert seen <= set(OPERATORS)
    assert len(seen) >= 10
