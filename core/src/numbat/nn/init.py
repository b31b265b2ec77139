"""First values of parameters: each function writes over its tensor, unrecorded, and gives it back.

Distributions, and from the same seed the numbers themselves, are those of `torch.nn.init`.
`orthogonal_` alone depends on LAPACK's factorisation, and agrees to its rounding. Source: PyTorch
2.13, `torch/nn/init.py`; Glorot and Bengio 2010; He et al. 2015; Saxe et al. 2013; Martens 2010
(sparse).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.autograd.in_place import bump, check_writable
from numbat.autograd.mode import no_grad
from numbat.ops.sampling import normal_ as draw_normal
from numbat.ops.sampling import randperm
from numbat.ops.sampling import uniform_ as draw_uniform
from numbat.random.generator import Generator
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d",
)  # fmt: skip
"""Functions that leave a variance as it is."""

_GAINS = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4} | dict.fromkeys(
    LINEAR, 1.0
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that keeps a variance through a function; `param` is the slope of `leaky_relu`.

    Raises CORE-0510 for a function without one, CORE-0512 for a slope that is no number.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise refuse(
                "CORE-0512", function="calculate_gain", argument="param", value=float(bool(slope))
            )
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        known = sorted([*_GAINS, "leaky_relu"])
        raise refuse(
            "CORE-0510", function="calculate_gain", argument="nonlinearity",
            given=str(nonlinearity), known=known,
        )  # fmt: skip
    return _GAINS[nonlinearity]


def _write(tensor: Tensor, values: Any, function: str) -> Tensor:
    """Writes values over a tensor, whatever requires a gradient, and counts the write."""
    with no_grad():
        check_writable(tensor, function)
    tensor.array[...] = values
    bump(tensor)
    return tensor


def _axes(tensor: Tensor, function: str, allowed: tuple[int, ...], wanted: str) -> None:
    if tensor.array.ndim not in allowed:
        raise refuse("CORE-0509", function=function, shape=list(tensor.shape), wanted=wanted)


@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform in [a, b)."""
    return draw_uniform(tensor, a, b, generator=generator)


@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal."""
    return draw_normal(tensor, mean, std, generator=generator)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal, redrawn until it lies in [a, b]; by uniform proposals where that would take long."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in trunc_normal_: the values may be off",
            stacklevel=2,
        )
    inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    drawn = (_redrawn if inside > 0.3 else _accepted)(tensor, mean, std, a, b, generator)
    return _write(tensor, drawn, "trunc_normal_")


def _redrawn(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Any:
    low, high = (np.array(bound, tensor.array.dtype) for bound in (a, b))
    result = draw_normal(tensor, mean, std, generator=generator).array
    fresh = wrap(np.empty_like(tensor.array))
    while (outside := (result < low) | (result > high)).any():
        again = draw_normal(fresh, mean, std, generator=generator).array
        result = np.where(outside, again, result)
    return result


def _accepted(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None
) -> Any:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    dtype = tensor.array.dtype
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype

    def log_density(values: Any) -> Any:
        # PyTorch's operators round each step to the tensor's own type, and so what they subtract.
        values = values - dtype.type(mean)
        values = (values.astype(wide) / wide.type(std)).astype(dtype)
        squares = np.square(values.astype(wide)).astype(dtype)
        return (squares.astype(wide) * wide.type(-0.5)).astype(dtype) - dtype.type(peak)

    chances = wrap(np.empty_like(tensor.array))

    def log_chance() -> Any:
        drawn = draw_uniform(chances, generator=generator).array
        return np.log(drawn.astype(wide)).astype(dtype)

    candidates = wrap(np.empty_like(tensor.array))
    result = draw_uniform(tensor, a, b, generator=generator).array.copy()
    pending = log_chance() > log_density(result)
    while pending.any():
        proposed = draw_uniform(candidates, a, b, generator=generator).array.copy()
        result = np.where(pending, proposed, result)
        pending = np.where(pending, log_chance() > log_density(proposed), pending)
    return result


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value."""
    return _write(tensor, val, "constant_")


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _write(tensor, 1, "ones_")


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _write(tensor, 0, "zeros_")


def eye_(tensor: Tensor) -> Tensor:
    """The identity.

    Raises CORE-0509 where it is no matrix.
    """
    _axes(tensor, "eye_", (2,), "two axes")
    return _write(tensor, np.eye(tensor.shape[0], tensor.shape[1]), "eye_")


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that hands its input channels on, group by group.

    Raises CORE-0509 unless it has three to five axes, CORE-0512 where `groups` does not divide the
    first.
    """
    _axes(tensor, "dirac_", (3, 4, 5), "three, four or five axes")
    shape = tensor.shape
    if shape[0] % groups:
        raise refuse("CORE-0512", function="dirac_", argument="groups", value=float(groups))
    each = shape[0] // groups
    values = np.zeros(shape)
    centre = tuple(extent // 2 for extent in shape[2:])
    for group in range(groups):
        for channel in range(min(each, shape[1])):
            values[(group * each + channel, channel, *centre)] = 1
    return _write(tensor, values, "dirac_")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    shape = tensor.shape
    if len(shape) < 2:
        raise refuse("CORE-0509", function="fan", shape=list(shape), wanted="two axes or more")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise refuse(
            "CORE-0510",
            function="kaiming",
            argument="mode",
            given=mode,
            known=["fan_in", "fan_out"],
        )
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode.lower() == "fan_in" else fan_out


def _glorot(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform with variance 2 gain² / (fan_in + fan_out).

    Raises CORE-0509 for fewer than two axes.
    """
    bound = math.sqrt(3.0) * _glorot(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with variance 2 gain² / (fan_in + fan_out).

    Raises CORE-0509 for fewer than two axes.
    """
    return normal_(tensor, 0.0, _glorot(tensor, gain), generator)


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The deviation; None for a tensor without elements, which there is nothing to do to."""
    if 0 in tensor.shape:
        warnings.warn("a tensor without elements has no first values", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform with variance gain² / fan; `a` is the slope of `leaky_relu`.

    Raises CORE-0509 for fewer than two axes, CORE-0510 for an unknown mode or function.
    """
    std = _he(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with variance gain² / fan; `a` is the slope of `leaky_relu`.

    Raises CORE-0509 for fewer than two axes, CORE-0510 for an unknown mode or function.
    """
    std = _he(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A matrix (all axes but the first as one) with orthonormal rows or columns, times `gain`.

    Raises CORE-0509 for fewer than two axes.
    """
    if tensor.array.ndim < 2:
        _axes(tensor, "orthogonal_", (2,), "two axes or more")
    if not tensor.array.size:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.array.size // rows
    drawn = normal_(wrap(np.empty((rows, columns), tensor.array.dtype)), 0, 1, generator).array
    q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
    q = q * np.sign(np.diagonal(r))
    if rows < columns:
        q = q.T
    return _write(tensor, (q * q.dtype.type(gain)).reshape(tensor.shape), "orthogonal_")


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal, with the same part of each column zero; its places come from the default generator.

    Raises CORE-0509 where it is no matrix, CORE-0512 for a sparsity outside [0, 1].
    """
    _axes(tensor, "sparse_", (2,), "two axes")
    if not 0 <= sparsity <= 1:
        raise refuse("CORE-0512", function="sparse_", argument="sparsity", value=float(sparsity))
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator)
    for column in range(columns):
        # PyTorch draws the places from its default generator, whatever generator is given.
        tensor.array[randperm(rows).array[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    name = function.__name__[:-1]

    def old(*args: Any, **keywords: Any) -> Tensor:
        warnings.warn(f"init.{name} is now init.{name}_", FutureWarning, stacklevel=2)
        return function(*args, **keywords)

    old.__name__ = name
    old.__doc__ = f"The former name of `{name}_`."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
