"""torch's second names for operators."""

from __future__ import annotations

from numbat.ops.comparison import ge, gt, le, lt, ne
from numbat.ops.division import div
from numbat.ops.extremes import clamp
from numbat.ops.pointwise import mul, neg, sub
from numbat.ops.rounding import abs as absolute
from numbat.ops.rounding import trunc
from numbat.ops.trigonometric import acos, acosh, asin, asinh, atan, atan2, atanh

__all__ = [
    "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "clip",
    "divide", "fix", "greater", "greater_equal", "less", "less_equal", "multiply", "negative",
    "not_equal", "subtract", "true_divide",
]  # fmt: skip

arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
clip, divide, true_divide, fix = clamp, div, div, trunc
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
multiply, negative, subtract = mul, neg, sub

SECOND_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
    "true_divide": "div",
}  # fmt: skip
"""The methods' second names, and the operators that they are; in place as well."""
