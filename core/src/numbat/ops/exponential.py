"""Powers, roots, exponentials and logarithms, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.ops.division import div
from numbat.ops.mapping import mapped, mapped_all, nothing, weighted
from numbat.ops.pointwise import add, mul, neg, rsub, sub
from numbat.ops.registry import Sample, operator
from numbat.ops.samples import binary, unary
from numbat.tensors import dtypes
from numbat.tensors.promotion import floating, floating_operands, operands, result_type
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "exp",
    "exp2",
    "expm1",
    "float_power",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logit",
    "pow",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "square",
    "tanh",
    "xlogy",
]  # fmt: skip

_LN2 = float(np.log(2.0))
_LN10 = float(np.log(10.0))


@operator(unary(), in_place=True)
def exp(input: Tensor) -> Tensor:
    """e to the power of each element."""
    x = floating(input)
    return record(mapped(np.exp, x.array), exp_backward, (x,), keep_result=True)


def exp_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(grad, node.unpack_result()),)


@operator(unary(), in_place=True)
def exp2(input: Tensor) -> Tensor:
    """2 to the power of each element."""
    x = floating(input)
    return record(mapped(np.exp2, x.array), exp2_backward, (x,), keep_result=True)


def exp2_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(mul(grad, node.unpack_result()), _LN2),)


@operator(unary(), in_place=True)
def expm1(input: Tensor) -> Tensor:
    """`exp(x) - 1`, exact also near zero."""
    x = floating(input)
    return record(mapped(np.expm1, x.array), expm1_backward, (x,), keep_result=True)


def expm1_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(grad, add(node.unpack_result(), 1)),)


@operator(unary(0.2, 3.0), in_place=True)
def log(input: Tensor) -> Tensor:
    """The natural logarithm: -inf of zero, NaN below."""
    x = floating(input)
    return record(mapped(np.log, x.array), log_backward, (x,), (x,))


def log_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, x),)


@operator(unary(0.2, 3.0), in_place=True)
def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2."""
    x = floating(input)
    return record(mapped(np.log2, x.array), log2_backward, (x,), (x,))


def log2_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, mul(x, _LN2)),)


@operator(unary(0.2, 3.0), in_place=True)
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10."""
    x = floating(input)
    return record(mapped(np.log10, x.array), log10_backward, (x,), (x,))


def log10_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, mul(x, _LN10)),)


@operator(unary(-0.8, 3.0), in_place=True)
def log1p(input: Tensor) -> Tensor:
    """`log(1 + x)`, exact also near zero."""
    x = floating(input)
    return record(mapped(np.log1p, x.array), log1p_backward, (x,), (x,))


def log1p_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (div(grad, add(x, 1)),)


@operator(unary(0.2, 3.0), in_place=True)
def sqrt(input: Tensor) -> Tensor:
    """The square root: NaN below zero; its gradient at zero is infinite."""
    x = floating(input)
    return record(mapped(np.sqrt, x.array), sqrt_backward, (x,), keep_result=True)


def sqrt_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (div(grad, mul(node.unpack_result(), 2)),)


def _reciprocal_root(x: Array) -> Any:
    root = np.sqrt(x)
    return np.divide(x.dtype.type(1), root)


@operator(unary(0.2, 3.0), in_place=True)
def rsqrt(input: Tensor) -> Tensor:
    """One over the square root."""
    x = floating(input)
    return record(mapped(_reciprocal_root, x.array), rsqrt_backward, (x,), keep_result=True)


def rsqrt_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(mul(grad, -0.5), pow(node.unpack_result(), 3)),)


@operator(unary(), in_place=True)
def square(input: Tensor) -> Tensor:
    """Each element times itself."""
    array = input.array
    if array.dtype.kind == "b":
        return pow(input, 2)
    return record(np.multiply(array, array), square_backward, (input,), (input,))


def square_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    return (mul(grad, mul(x, 2)),)


@operator(unary(0.5, 3.0), in_place=True)
def reciprocal(input: Tensor) -> Tensor:
    """One over each element."""
    x = floating(input)
    return record(mapped(np.reciprocal, x.array), reciprocal_backward, (x,), keep_result=True)


def reciprocal_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    result = node.unpack_result()
    return (mul(neg(grad), mul(result, result)),)


@operator(unary(), in_place=True)
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    x = floating(input)
    return record(mapped(np.tanh, x.array), tanh_backward, (x,), keep_result=True)


def tanh_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    result = node.unpack_result()
    return (mul(grad, rsub(mul(result, result), 1)),)


def logistic(x: Array) -> Any:
    """`1 / (1 + exp(-x))`."""
    out = np.exp(np.negative(x))
    out += 1
    return np.reciprocal(out)


@operator(unary(), in_place=True)
def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    x = floating(input)
    return record(mapped(logistic, x.array), sigmoid_backward, (x,), keep_result=True)


def sigmoid_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    result = node.unpack_result()
    return (mul(grad, mul(rsub(result, 1), result)),)


def _sample_logit(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(0.1, 0.9, (2, 3)),))
    yield Sample((np.array([-0.3, 0.05, 0.4, 0.7, 0.97]),), {"eps": 0.2})


@operator(_sample_logit, in_place=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(x / (1 - x))`; with `eps`, of the input held to [eps, 1 - eps]. NaN outside [0, 1]."""
    x = floating(input)

    def computed(array: Array) -> Any:
        if eps is not None:
            array = np.clip(
                array, array.dtype.type(eps), array.dtype.type(1) - array.dtype.type(eps)
            )
        return np.log(array / (1 - array))

    return record(mapped(computed, x.array), logit_backward, (x,), (x,), eps)


def logit_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    eps = node.values
    slope = div(grad, mul(x, rsub(x, 1)))
    if eps is not None:
        return (weighted(slope, (x.array >= eps) & (x.array <= 1 - eps)),)
    outside = wrap(np.where((x.array < 0) | (x.array > 1), np.nan, 0).astype(x.array.dtype))
    return (add(slope, outside),)


def _sample_xlogy(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)), rng.uniform(0.3, 2, (3,))))
    yield Sample((np.array([0.0, 1.0]), np.array([0.5, 2.0])))


@operator(_sample_xlogy, in_place=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """`input * log(other)`, zero where the input is, NaN where `other` is."""
    x, y = floating_operands(input, other)
    array = mapped_all("xlogy", _xlogy, x.array, y.array)
    return record(array, xlogy_backward, (x, y), (x, y))


def _xlogy(x: Array, y: Array) -> Any:
    out = x * np.log(y)
    out = np.where(x == 0, out.dtype.type(0), out)
    return np.where(np.isnan(y), y, out)


def xlogy_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    to_x = None
    if for_x is not None:
        to_x = weighted(xlogy(grad, y), ~((x.array == 0) & (y.array <= 0)))
    return to_x, div(mul(grad, x), y) if for_y is not None else None


@operator(binary(), torch="logaddexp")
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """`log(exp(input) + exp(other))` without overflow."""
    x, y = floating_operands(input, other)
    array = mapped_all("logaddexp", np.logaddexp, x.array, y.array)
    return record(array, logaddexp_backward, (x, y), (x, y))


def logaddexp_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = node.unpack()
    gap = sub(x, y)
    return mul(grad, sigmoid(gap)), mul(grad, sigmoid(neg(gap)))


@operator(binary(), torch="logaddexp2")
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """`log2(2**input + 2**other)` without overflow."""
    x, y = floating_operands(input, other)
    array = mapped_all("logaddexp2", np.logaddexp2, x.array, y.array)
    return record(array, logaddexp2_backward, (x, y), (x, y))


def logaddexp2_backward(node: Node, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = node.unpack()
    gap = mul(sub(x, y), _LN2)
    return mul(grad, sigmoid(gap)), mul(grad, sigmoid(neg(gap)))


def _sample_pow(rng: np.random.Generator) -> Any:
    base = rng.uniform(0.3, 2, (2, 3))
    yield Sample((base, rng.normal(size=(3,))))
    for exponent in (2, 3, 0.5, -1, 2.5, 0):
        yield Sample((base, exponent))
    yield Sample((2.5, rng.normal(size=(2, 2))))


@operator(_sample_pow, in_place=True)
def pow(input: Any, exponent: Any) -> Tensor:
    """`input` to the power of `exponent`, broadcast; either may be a number.

    Raises CORE-0224 for whole numbers to a negative whole number.
    """
    if isinstance(exponent, Tensor):
        return _pow_tensor(input, exponent)
    return _pow_scalar(input, exponent)


def _pow_scalar(input: Tensor, exponent: Any) -> Tensor:
    dtype = result_type(input, exponent)
    x = input if input.dtype is dtype else input.to(dtype)
    if x.array.dtype.kind in "iub" and exponent < 0:
        raise refuse("CORE-0224", operator="pow", exponent=int(exponent))
    array = mapped(lambda one: raised(one, exponent), x.array)
    return record(array, pow_scalar_backward, (x,), (x,), exponent)


def raised(x: Array, exponent: Any) -> Any:
    """An array to the power of a number; the common ones by products and roots, as PyTorch."""
    if exponent == 2:
        return np.multiply(x, x)
    if exponent == 1:
        return x.copy()
    if exponent == 3:
        return x * x * x
    if x.dtype.kind == "f":
        if exponent == 0.5:
            return np.sqrt(x)
        if exponent == -0.5:
            return _reciprocal_root(x)
        if exponent == -1:
            return np.reciprocal(x)
        if exponent == -2:
            return np.reciprocal(x * x)
        return np.power(x, x.dtype.type(exponent))
    return np.power(x, np.array(exponent).astype(x.dtype), dtype=x.dtype)


def pow_scalar_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    (x,) = node.unpack()
    exponent = node.values
    if exponent == 0:
        return (nothing(grad),)
    if exponent == 1:
        return (grad,)
    if exponent == 2:
        return (mul(grad, mul(x, 2)),)
    return (mul(grad, mul(_pow_scalar(x, exponent - 1), exponent)),)


def _pow_tensor(input: Any, exponent: Tensor) -> Tensor:
    x, y = operands(input, exponent)
    if x.array.dtype.kind in "iub":
        return wrap(_whole_power(x.array, y.array))
    array = mapped_all("pow", np.power, x.array, y.array)
    return record(array, pow_backward, (x, y), (x, y), keep_result=True)


def _whole_power(x: Array, y: Array) -> Any:
    """Whole numbers to whole numbers: negative powers are 0, but those of 1 and -1."""
    if x.dtype.kind != "i" or not (y < 0).any():
        return np.power(x, y, dtype=x.dtype)
    down = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, down.astype(x.dtype), np.power(x, np.where(y < 0, 0, y), dtype=x.dtype))


def pow_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, y = node.unpack()
    for_x, for_y = node.sources
    to_x = to_y = None
    if for_x is not None:
        slope = mul(y, pow(x, sub(y, 1)))
        to_x = weighted(mul(grad, slope), np.broadcast_to(y.array != 0, grad.array.shape))
    if for_y is not None:
        flat = (x.array == 0) & (y.array >= 0)
        to_y = weighted(mul(grad, mul(node.unpack_result(), log(x))), ~flat)
    return to_x, to_y


def _sample_float_power(rng: np.random.Generator) -> Any:
    yield Sample((rng.uniform(0.3, 2, (2, 3)), rng.normal(size=(3,))))
    yield Sample((rng.uniform(0.3, 2, (2, 3)), 2.5))


@operator(_sample_float_power)
def float_power(input: Any, exponent: Any) -> Tensor:
    """`pow` in float64."""
    if isinstance(input, Tensor):
        input = input.to(dtypes.float64)
    if isinstance(exponent, Tensor):
        return _pow_tensor(input, exponent.to(dtypes.float64))
    return _pow_scalar(input, float(exponent))
