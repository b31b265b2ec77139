"""Element types meet as PyTorch's do: its own table, and numbers beside tensors."""

import itertools

import numbat as nb
from numbat.tensors.dtypes import DTYPES, DType
from numbat_gates import Check, gate
from numbat_registries import Refusal

#: torch.promote_types of PyTorch 2.13.0, rows and columns in the order of NAMES; - where it raises.
NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
LETTERS = "bool u8 i8 i16 i32 i64 u16 u32 f16 bf16 f32 f64"
TABLE = """
bool u8   i8   i16  i32  i64  -    -    f16  bf16 f32  f64
u8   u8   i16  i16  i32  i64  -    -    f16  bf16 f32  f64
i8   i16  i8   i16  i32  i64  -    -    f16  bf16 f32  f64
i16  i16  i16  i16  i32  i64  -    -    f16  bf16 f32  f64
i32  i32  i32  i32  i32  i64  -    -    f16  bf16 f32  f64
i64  i64  i64  i64  i64  i64  -    -    f16  bf16 f32  f64
-    -    -    -    -    -    u16  -    f16  bf16 f32  f64
-    -    -    -    -    -    -    u32  f16  bf16 f32  f64
f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
SHORT = {**dict(zip(LETTERS.split(), NAMES, strict=True)), "-": "-"}


@gate(
    "CORE-G01",
    phase=1,
    discharges=["CORE-R001"],
    title="Operands meet in the type in which PyTorch lets them meet",
)
def element_types(check: Check) -> None:
    check.equal("the twelve types", sorted(one.name for one in DTYPES), sorted(NAMES))
    rows = [[SHORT[one] for one in line.split()] for line in TABLE.split("\n") if line]
    for (row, first), (column, second) in itertools.product(enumerate(NAMES), repeat=2):
        required = rows[row][column]
        for shapes in (((2,), (2,)), ((2,), ()), ((), (2,))):
            wanted = _by_rank(required, first, second, shapes)
            name = f"{first}{list(shapes[0])} and {second}{list(shapes[1])}"
            check.equal(name, _meeting(first, second, shapes), wanted)
    for first, number, wanted in (
        ("int8", 300, "int8"), ("int8", 2.5, "float32"), ("bool", 1, "int64"),
        ("bool", True, "bool"), ("float16", 2.5, "float16"), ("bfloat16", 3, "bfloat16"),
        ("uint8", -1, "uint8"), ("float64", 1, "float64"),
    ):  # fmt: skip
        measured = nb.result_type(nb.zeros(2, dtype=first), number).name
        check.equal(f"{first} and the number {number}", measured, wanted)
    check.equal("a sum in int8 wraps", (nb.tensor([100], dtype=nb.int8) + 100).tolist(), [-56])
    check.equal("whole numbers are divided as floats", (nb.tensor([3]) / 2).tolist(), [1.5])


def _meeting(first: str, second: str, shapes: tuple[tuple[int, ...], ...]) -> str:
    try:
        tensors = (nb.zeros(shapes[0], dtype=first), nb.zeros(shapes[1], dtype=second))
        return (tensors[0] + tensors[1]).dtype.name
    except Refusal as refusal:
        return "-" if refusal.code == "CORE-0106" else refusal.code


def _by_rank(required: str, first: str, second: str, shapes: tuple[tuple[int, ...], ...]) -> str:
    """A tensor of no axes counts only where its category is higher."""
    if shapes[0] == shapes[1]:
        return required
    ranked, scalar = (first, second) if shapes[0] else (second, first)
    return required if _category(scalar) > _category(ranked) else ranked


def _category(name: str) -> int:
    found: DType = getattr(nb, name)
    return found.category
