"""The Array API namespace against numpy's, which follows the same standard."""

from collections.abc import Callable
from typing import Any

import numpy as np

import numbat.array_api as xp
from numbat_gates import Check, gate


@gate(
    "CORE-G05",
    phase=1,
    discharges=["CORE-R005"],
    title="numbat.array_api gives what the standard says",
)
def standard(check: Check) -> None:
    rng = np.random.default_rng(5)
    reals = rng.uniform(0.1, 0.9, (3, 4))
    others = rng.uniform(0.1, 0.9, (3, 4))
    wholes = rng.integers(1, 9, (3, 4))
    for name in (
        "abs", "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor",
        "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative", "positive",
        "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh",
        "trunc",
    ):  # fmt: skip
        _same(check, name, lambda space, x, name=name: getattr(space, name)(x), reals)
    for name in (
        "add", "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less",
        "less_equal", "logaddexp", "maximum", "minimum", "multiply", "nextafter", "not_equal",
        "pow", "remainder", "subtract",
    ):  # fmt: skip
        _same(check, name, lambda space, x, y, name=name: getattr(space, name)(x, y), reals, others)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "remainder"):
        _same(
            check, f"{name} of whole numbers",
            lambda space, x, y, name=name: getattr(space, name)(x, y),
            wholes, wholes.T.reshape(3, 4),
        )  # fmt: skip
    for name in (
        "sum",
        "prod",
        "mean",
        "max",
        "min",
        "std",
        "var",
        "argmax",
        "argmin",
        "all",
        "any",
    ):
        for axis in (None, 0, -1):
            _same(
                check, f"{name} over {axis}",
                lambda space, x, name=name, axis=axis: getattr(space, name)(x, axis=axis), reals,
            )  # fmt: skip
    shaping: dict[str, Callable[..., Any]] = {
        "reshape": lambda space, x: space.reshape(x, (2, 6)),
        "permute_dims": lambda space, x: space.permute_dims(x, (1, 0)),
        "expand_dims": lambda space, x: space.expand_dims(x, axis=1),
        "flip": lambda space, x: space.flip(x, axis=1),
        "roll": lambda space, x: space.roll(x, 2, axis=1),
        "concat": lambda space, x: space.concat((x, x), axis=1),
        "stack": lambda space, x: space.stack((x, x), axis=1),
        "matmul": lambda space, x: space.matmul(x, space.permute_dims(x, (1, 0))),
        "tensordot": lambda space, x: space.tensordot(x, x, axes=2),
        "sort": lambda space, x: space.sort(x, axis=0),
        "cumulative_sum": lambda space, x: space.cumulative_sum(x, axis=1),
        "where": lambda space, x: space.where(x > 0.5, x, -x),
        "take": lambda space, x: space.take(x, space.asarray([2, 0]), axis=1),
        "tril": lambda space, x: space.tril(x),
        "triu": lambda space, x: space.triu(x, k=1),
    }
    for name, run in shaping.items():
        _same(check, name, run, reals)
    info = xp.__array_namespace_info__()
    check.equal("the default type", str(info.default_dtypes()["real floating"]), str(xp.float32))


def _same(check: Check, name: str, run: Callable[..., Any], *arrays: Any) -> None:
    mine = run(xp, *(xp.asarray(one) for one in arrays))
    theirs = np.asarray(run(np, *arrays))
    measured = np.asarray(mine.array)
    check.equal(f"{name}: type", str(measured.dtype), str(theirs.dtype))
    if theirs.dtype.kind == "f":
        check.close(name, measured=measured, required=theirs, atol=1e-12)
    else:
        check.equal(name, measured, theirs)
