"""Random tensors: fresh, like another, written over one, and dropout.

Every operator draws from `generator`, or from the default one, the numbers that PyTorch draws on
the CPU from the same seed; `random/streams.py` tells how. A tensor that is written over and is not
contiguous is filled in the order of its memory, as PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from numbat.autograd.in_place import overwrite
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.ops.casting import cast_array
from numbat.ops.pointwise import add, mul
from numbat.ops.registry import Sample, operator
from numbat.random.generator import Generator, default_generator
from numbat.random.streams import Array, Stream
from numbat.tensors import dtypes
from numbat.tensors.creation import shape_of
from numbat.tensors.device import check_device
from numbat.tensors.dtypes import DType, as_dtype, get_default_dtype
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "alpha_dropout", "bernoulli", "bernoulli_", "cauchy_", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "exponential_", "feature_alpha_dropout", "geometric_", "log_normal_",
    "multinomial", "normal", "normal_", "poisson", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random_", "randperm", "uniform_",
]  # fmt: skip


def _stream(generator: Generator | None) -> Stream:
    return (default_generator if generator is None else generator).stream


def _floating(dtype: Any, operator: str) -> DType:
    """The floating type to draw in: the default one for None.

    Raises CORE-0102 for a type that is not floating.
    """
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not chosen.is_floating_point:
        raise refuse("CORE-0102", dtype=chosen.name, operation=operator)
    return chosen


def _in_memory_order(drawn: Array, like: Array) -> Array:
    """Numbers in one row as an array of the shape of `like`, in the order of its memory."""
    if like.flags.c_contiguous:
        return drawn.reshape(like.shape)
    order = sorted(range(like.ndim), key=lambda axis: -abs(like.strides[axis]))
    turned = drawn.reshape([like.shape[axis] for axis in order])
    return turned.transpose(np.argsort(order))


def _fresh(array: Array, requires_grad: bool = False) -> Tensor:
    out = wrap(array)
    if requires_grad:
        out.requires_grad_(True)
    return out


def _written(target: Tensor, array: Array, operator: str) -> Tensor:
    """Writes drawn numbers over a tensor; what stood in it gets no gradient any more."""
    if MODE.recording and target.requires_grad:
        return overwrite(target, record(array, drawn_backward, (target,)), operator)
    return overwrite(target, wrap(array), operator)


def drawn_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (wrap(np.zeros(grad.array.shape, grad.array.dtype)),)


def _uniform(stream: Stream, count: int, low: float, high: float, dtype: DType) -> Array:
    if dtype is dtypes.float32:
        return stream.uniform_f32(count, low, high)
    if dtype is dtypes.float64:
        return stream.uniform_f64(count, low, high)
    # The narrow types round up to the upper bound, which is not to be reached.
    drawn = stream.uniform_f32(count, low, high).astype(dtype.numpy)
    bound = np.array(np.float32(high)).astype(dtype.numpy)
    drawn[drawn == bound] = np.array(np.float32(low)).astype(dtype.numpy)
    return drawn


def _normal(
    stream: Stream, count: int, mean: float, std: float, dtype: DType, *, filled: bool = True
) -> Array:
    """Normal numbers; sixteen or more that fill a contiguous tensor are drawn in blocks."""
    if count < 16 or not filled:
        return stream.normals(count, mean, std).astype(dtype.numpy)
    if dtype is dtypes.float64:
        return stream.normal_f64(count, mean, std)
    if dtype is dtypes.float32:
        return stream.normal_f32(count, mean, std)
    # PyTorch fills the narrow types block by block, and draws nothing for a rest that it draws
    # anew.
    rest = count % 16
    drawn = stream.normal_f32(count - rest, mean, std)
    if rest:
        drawn = np.concatenate([drawn[: count - 16], stream.normal_f32(16, mean, std)])
    return drawn.astype(dtype.numpy)


def _probability(operator: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise refuse("CORE-0502", operator=operator, p=float(p))
    return float(p)


def _positive(operator: str, name: str, value: float, *, zero: bool = False) -> float:
    if not (value > 0 or (zero and value == 0)):
        raise refuse("CORE-0506", operator=operator, argument=name, value=float(value))
    return float(value)


# -- fresh tensors --------------------------------------------------------------------------------


def _sizes(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((2, 3))
    yield Sample(((20,),))


@operator(_sizes, torch=None, differentiable=False, random=True, method=False)
def rand(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    check_device(device)
    shape, chosen = shape_of(size), _floating(dtype, "rand")
    drawn = _uniform(_stream(generator), math.prod(shape), 0.0, 1.0, chosen)
    return _fresh(drawn.reshape(shape), requires_grad)


@operator(_sizes, differentiable=False, random=True, method=False)
def randn(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and standard deviation 1."""
    check_device(device)
    shape, chosen = shape_of(size), _floating(dtype, "randn")
    drawn = _normal(_stream(generator), math.prod(shape), 0.0, 1.0, chosen)
    return _fresh(drawn.reshape(shape), requires_grad)


def _whole(
    operator: str, count: int, low: int, high: int, dtype: DType, stream: Stream
) -> Array:  # fmt: skip
    """Whole numbers in [low, high) in a type.

    Raises CORE-0501 where there are none, CORE-0511 where the type cannot hold them.
    """
    low, high = int(low), int(high)
    if low >= high:
        raise refuse("CORE-0501", operator=operator, low=float(low), high=float(high))
    first, last = _range_of(dtype)
    if low < first or high - 1 > last:
        raise refuse("CORE-0511", operator=operator, dtype=dtype.name, low=str(low), high=str(high))
    return cast_array(stream.integers(count, low, high - low), dtype.numpy)


def _range_of(dtype: DType) -> tuple[int, int]:
    """The whole numbers a type holds; for floating ones, those up to which it holds every one."""
    if dtype is dtypes.bool_:
        return 0, 1
    if dtype.is_floating_point:
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
        return -(1 << digits), 1 << digits
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _whole_samples(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((5, (2, 3)))
    yield Sample((-3, 4, (20,)))


@operator(_whole_samples, differentiable=False, random=True, method=False)
def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers in [low, high), or in [0, low) where one bound is given.

    Raises CORE-0501 where there are none, CORE-0511 where the type cannot hold them.
    """
    check_device(device)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    shape = shape_of((size,))
    chosen = dtypes.int64 if dtype is None else as_dtype(dtype)
    drawn = _whole("randint", math.prod(shape), low, high, chosen, _stream(generator))
    return _fresh(drawn.reshape(shape), requires_grad)


def _counts(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((0,))
    yield Sample((20,))


@operator(_counts, torch=None, differentiable=False, random=True, method=False)
def randperm(
    n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers 0 to `n - 1` in a random order, int64 unless another type is asked for.

    Raises CORE-0203 for a negative `n`.
    """
    check_device(device)
    (count,) = shape_of((n,))
    drawn = _stream(generator).permutation(count)
    chosen = dtypes.int64 if dtype is None else as_dtype(dtype)
    return _fresh(cast_array(drawn, chosen.numpy), requires_grad)


# -- like another tensor --------------------------------------------------------------------------


def _likes(*args: Any) -> Any:
    def make(rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), *args))
        yield Sample((rng.normal(size=(8, 3)).T, *args))
        yield Sample((rng.normal(size=()), *args))

    return make


def _like(input: Tensor, dtype: Any, operator: str) -> DType:
    return _floating(input.dtype if dtype is None else dtype, operator)


@operator(_likes(), differentiable=False, random=True, method=False)
def rand_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1) of the shape and type of another tensor."""
    chosen = _like(input, dtype, "rand_like")
    drawn = _uniform(_stream(generator), input.array.size, 0.0, 1.0, chosen)
    return _fresh(_in_memory_order(drawn, input.array), requires_grad)


@operator(_likes(), differentiable=False, random=True, method=False)
def randn_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Normal numbers of the shape and type of another tensor."""
    chosen, array = _like(input, dtype, "randn_like"), input.array
    filled = array.flags.c_contiguous
    drawn = _normal(_stream(generator), array.size, 0.0, 1.0, chosen, filled=filled)
    return _fresh(_in_memory_order(drawn, array), requires_grad)


@operator(_likes(5), differentiable=False, random=True, method=False)
def randint_like(
    input: Tensor, low: int, high: Any = None, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Whole numbers in [low, high), or in [0, low), of the shape and type of another tensor.

    Raises CORE-0501, CORE-0511.
    """
    if high is None:
        low, high = 0, low
    chosen = input.dtype if dtype is None else as_dtype(dtype)
    drawn = _whole("randint_like", input.array.size, low, high, chosen, _stream(generator))
    return _fresh(_in_memory_order(drawn, input.array), requires_grad)


def _normals(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(2, 3)), rng.uniform(0.5, 2, (3,))))
    yield Sample((rng.normal(size=(2, 3)), 0.5))
    yield Sample((0.5, rng.uniform(0.5, 2, (2, 3))))


@operator(_normals, differentiable=False, random=True, method=False)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers: of one mean and deviation and a size, or of tensors of them, broadcast.

    Raises CORE-0506 for a negative deviation.
    """
    check_device(device)
    stream = _stream(generator)
    if size is not None:
        shape, chosen = shape_of((size,)), _floating(dtype, "normal")
        _positive("normal", "std", float(std), zero=True)
        drawn = _normal(stream, math.prod(shape), float(mean), float(std), chosen)
        return _fresh(drawn.reshape(shape), requires_grad)
    means = mean.array if isinstance(mean, Tensor) else np.asarray(mean)
    deviations = std.array if isinstance(std, Tensor) else np.asarray(std)
    if deviations.size and not float(deviations.min()) >= 0:
        raise refuse("CORE-0506", operator="normal", argument="std", value=float(deviations.min()))
    shape = np.broadcast_shapes(means.shape, deviations.shape)
    held = (mean if isinstance(mean, Tensor) else std).dtype
    chosen = _floating(held, "normal")
    out = _normal(stream, math.prod(shape), 0.0, 1.0, chosen).reshape(shape)
    kind = chosen.numpy
    return _fresh(out * deviations.astype(kind) + means.astype(kind), requires_grad)


def _rates(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((rng.uniform(0.1, 30, (3, 4)),))


@operator(_rates, torch=None, differentiable=False, random=True)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """A Poisson number for each rate, in the rates' type.

    Raises CORE-0102 for rates of whole numbers, CORE-0506 for a negative one.
    """
    _floating(input.dtype, "poisson")
    rates = input.array.astype(np.float64)
    if rates.size and not rates.min() >= 0:
        raise refuse("CORE-0506", operator="poisson", argument="rate", value=float(rates.min()))
    drawn = _stream(generator).poisson(rates.reshape(-1))
    return wrap(drawn.reshape(rates.shape).astype(input.array.dtype))


def _chances(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((rng.uniform(0, 1, (3, 4)),))
    yield Sample((rng.uniform(0, 1, (3, 4)), 0.3))


@operator(_chances, differentiable=False, random=True)
def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that `input` holds (or `p`), else 0, in the type of `input`.

    Raises CORE-0502 for a probability outside [0, 1], CORE-0102 where `input` holds none.
    """
    out = wrap(np.empty_like(input.array))
    if p is not None:
        return bernoulli_(out, p, generator=generator)
    _floating(input.dtype, "bernoulli")
    return bernoulli_(out, input, generator=generator)


def _weights(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((rng.uniform(0.1, 1, (3, 5)), 2))
    yield Sample((rng.uniform(0.1, 1, (5,)), 8, True))


@operator(_weights, differentiable=False, random=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Indices drawn by the weights in each row, int64 of shape (..., num_samples).

    Raises CORE-0507 for weights that are no distribution, CORE-0508 for more draws than categories
    without replacement.
    """
    _floating(input.dtype, "multinomial")
    weights = input.array
    if weights.ndim not in (1, 2) or not weights.shape[-1]:
        raise refuse("CORE-0507", because=f"their shape is {list(weights.shape)}")
    categories = weights.shape[-1]
    if not replacement and num_samples > categories:
        raise refuse("CORE-0508", wanted=int(num_samples), available=categories)
    if num_samples < 1:
        raise refuse("CORE-0501", operator="multinomial", low=1.0, high=float(num_samples))
    if weights.size and not (np.isfinite(weights).all() and weights.min() >= 0):
        raise refuse("CORE-0507", because="one is negative, infinite or not a number")
    if weights.size and not (weights.astype(np.float64).sum(-1) > 0).all():
        raise refuse("CORE-0507", because="a row adds up to zero")
    stream, kind = _stream(generator), weights.dtype
    if not replacement or num_samples == 1:
        # The race of exponential clocks: the largest of weight / clock wins.
        clocks = stream.exponential(weights.size, 1.0).reshape(weights.shape).astype(kind)
        race = weights / clocks
        if num_samples == 1:
            return wrap(race.argmax(-1, keepdims=True).astype(np.int64))
        return wrap(np.argsort(-race, axis=-1, kind="stable")[..., :num_samples].astype(np.int64))
    wide = kind if kind.itemsize > 2 else np.dtype(np.float32)
    sums = np.cumsum(weights.astype(wide), axis=-1, dtype=wide)
    sums = sums / sums[..., -1:]
    sums[..., -1] = 1
    rows = sums.reshape(-1, categories)
    drawn = stream.reals(rows.shape[0] * num_samples).reshape(rows.shape[0], num_samples)
    found = [np.searchsorted(row, one) for row, one in zip(rows, drawn, strict=True)]
    return wrap(np.asarray(found, np.int64).reshape(*weights.shape[:-1], num_samples))


# -- written over a tensor ------------------------------------------------------------------------


@operator(_likes(), torch="uniform", differentiable=False, random=True)
def uniform_(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None,
    **bounds: float,
) -> Tensor:  # fmt: skip
    """Writes uniform numbers in [from, to) over it; `from=` is taken as well as `from_=`.

    Raises CORE-0102 for whole numbers, CORE-0501 where `from` is above `to`.
    """
    low, high = float(bounds.get("from", from_)), float(to)
    dtype = _floating(input.dtype, "uniform_")
    if not low <= high:
        raise refuse("CORE-0501", operator="uniform_", low=low, high=high)
    drawn = _uniform(_stream(generator), input.array.size, low, high, dtype)
    return _written(input, _in_memory_order(drawn, input.array), "uniform_")


@operator(_likes(), torch="normal.in_place", differentiable=False, random=True)
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Writes normal numbers over it.

    Raises CORE-0102 for whole numbers, CORE-0506 for a negative deviation.
    """
    dtype = _floating(input.dtype, "normal_")
    mean, std = float(mean), _positive("normal_", "std", float(std), zero=True)
    filled = input.array.flags.c_contiguous
    drawn = _normal(_stream(generator), input.array.size, mean, std, dtype, filled=filled)
    return _written(input, _in_memory_order(drawn, input.array), "normal_")


@operator(_likes(0.3), torch=None, differentiable=False, random=True)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Writes 1 with probability `p`, a number or a tensor of them, else 0, over it.

    Raises CORE-0502 for a probability outside [0, 1].
    """
    stream, array = _stream(generator), input.array
    if not isinstance(p, Tensor):
        drawn = stream.bernoulli(array.size, _probability("bernoulli_", p))
        return _written(input, _in_memory_order(drawn, array).astype(array.dtype), "bernoulli_")
    chances = np.broadcast_to(p.array, array.shape)
    if chances.size and not (chances.min() >= 0 and chances.max() <= 1):
        raise refuse("CORE-0502", operator="bernoulli_", p=float(p.array.max()))
    if chances.dtype == np.float64:
        unit = _in_memory_order(stream.reals(array.size), array)
    else:
        unit = _in_memory_order(stream.uniform_f32(array.size), array)
        chances = chances.astype(np.float32)
    return _written(input, (unit < chances).astype(array.dtype), "bernoulli_")


@operator(_likes(), torch="exponential", differentiable=False, random=True)
def exponential_(
    input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Writes exponential numbers of the rate `lambd` over it.

    Raises CORE-0102 for whole numbers, CORE-0506 for a rate that is not positive.
    """
    _floating(input.dtype, "exponential_")
    rate = _positive("exponential_", "lambd", lambd)
    drawn = _stream(generator).exponential(input.array.size, rate).astype(input.array.dtype)
    return _written(input, _in_memory_order(drawn, input.array), "exponential_")


@operator(_likes(), torch="log_normal", differentiable=False, random=True)
def log_normal_(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Writes numbers over it whose logarithms are normal.

    Raises CORE-0102 for whole numbers, CORE-0506 for a deviation that is not positive.
    """
    _floating(input.dtype, "log_normal_")
    std = _positive("log_normal_", "std", std)
    drawn = np.exp(_stream(generator).normals(input.array.size, float(mean), std))
    return _written(
        input, _in_memory_order(drawn.astype(input.array.dtype), input.array), "log_normal_"
    )


@operator(_likes(0.3), torch="geometric", differentiable=False, random=True)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Writes the number of trials up to the first success, of probability `p`, over it.

    Raises CORE-0502 for a probability outside (0, 1).
    """
    if not 0 < p < 1:
        raise refuse("CORE-0502", operator="geometric_", p=float(p))
    drawn = _stream(generator).geometric(input.array.size, float(p))
    return _written(
        input, _in_memory_order(cast_array(drawn, input.array.dtype), input.array), "geometric_"
    )


@operator(_likes(), torch="cauchy", differentiable=False, random=True)
def cauchy_(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Writes Cauchy numbers over it.

    Raises CORE-0102 for whole numbers, CORE-0506 for a width that is not positive.
    """
    _floating(input.dtype, "cauchy_")
    sigma = _positive("cauchy_", "sigma", sigma)
    drawn = _stream(generator).cauchy(input.array.size, float(median), sigma)
    return _written(
        input, _in_memory_order(drawn.astype(input.array.dtype), input.array), "cauchy_"
    )


@operator(_likes(), torch=None, differentiable=False, random=True)
def random_(
    input: Tensor, from_: Any = None, to: Any = None, *, generator: Generator | None = None,
    **bounds: Any,
) -> Tensor:  # fmt: skip
    """Writes whole numbers over it: of all the type holds, of [0, from), or of [from, to).

    Raises CORE-0501, CORE-0511.
    """
    low, stream, dtype = bounds.get("from", from_), _stream(generator), input.dtype
    count = input.array.size
    if low is None and to is None:
        drawn = _any_whole(stream, count, dtype)
    elif to is None and "from" not in bounds:
        drawn = _whole("random_", count, 0, low, dtype, stream)
    else:
        high = _range_of(dtype)[1] + 1 if to is None else to
        drawn = _whole("random_", count, 0 if low is None else low, high, dtype, stream)
    return _written(input, _in_memory_order(drawn, input.array), "random_")


def _any_whole(stream: Stream, count: int, dtype: DType) -> Array:
    """Whole numbers from 0 to the largest a type holds (a floating one: with all below it)."""
    if dtype is dtypes.bool_:
        return (stream.words(count) & 1).astype(np.bool_)
    span = _range_of(dtype)[1] + 1
    if dtype.itemsize == 8:
        return (stream.long_words(count) % np.uint64(span)).astype(dtype.numpy)
    return (stream.words(count).astype(np.uint64) % np.uint64(span)).astype(dtype.numpy)


# -- dropout --------------------------------------------------------------------------------------


def _factors(generator: Generator | None, count: int, p: float, dtype: np.dtype[Any]) -> Array:
    """1 / (1 - p) with probability 1 - p, else 0."""
    stream = _stream(generator)
    wide = np.float64 if dtype == np.float64 else np.float32
    scale = dtype.type(wide(1) / wide(1 - p))
    if dtype == np.float32:
        return stream.factors_f32(count, 1 - p, float(scale))
    return np.where(stream.bernoulli(count, 1 - p), scale, dtype.type(0))


def _dropped(input: Tensor, factors: Array, inplace: bool) -> Tensor:
    if inplace:
        return overwrite(input, mul(input, wrap(factors)), "dropout_")
    return record(input.array * factors, dropout_backward, (input,), (), factors)


def dropout_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    return (mul(grad, wrap(node.values)),)


def _dropouts(*shape: int) -> Any:
    def make(rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=shape),), {"p": 0.5})
        yield Sample((rng.normal(size=shape),), {"p": 0.2, "training": False})

    return make


def _idle(input: Tensor, p: float, training: bool, operator: str) -> bool:
    """Whether a dropout leaves its input as it is.

    Raises CORE-0502 for a probability outside [0, 1], CORE-0102 for whole numbers.
    """
    _probability(operator, p)
    if not training or p == 0 or not input.array.size:
        return True
    _floating(input.dtype, operator)
    return False


@operator(_dropouts(2, 3), torch="nn.functional.dropout", random=True, method=False)
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Zeroes elements with probability `p` and divides the others by `1 - p`; nothing outside
    training.

    Raises CORE-0502 for a probability outside [0, 1].
    """
    if _idle(input, p, training, "dropout"):
        return input
    array = input.array
    if p == 1:
        return _dropped(input, np.zeros(array.shape, array.dtype), inplace)
    drawn = _factors(generator, array.size, p, array.dtype)
    return _dropped(input, _in_memory_order(drawn, array), inplace)


def _channel_dropout(
    input: Tensor, p: float, training: bool, inplace: bool, generator: Generator | None, operator:
        str
) -> Tensor:  # fmt: skip
    """Dropout of whole channels: the first two axes decide."""
    if _idle(input, p, training, operator):
        return input
    array = input.array
    if array.ndim < 2:
        raise refuse("CORE-0509", function=operator, shape=list(array.shape), wanted="two axes")
    shape = (*array.shape[:2], *(1 for _ in array.shape[2:]))
    if p == 1:
        return _dropped(input, np.zeros(shape, array.dtype), inplace)
    drawn = _factors(generator, math.prod(shape), p, array.dtype)
    return _dropped(input, drawn.reshape(shape), inplace)


def _unbatched(input: Tensor, axes: int) -> bool:
    return input.array.ndim == axes


@operator(_dropouts(2, 3, 4), torch="nn.functional.dropout1d", random=True, method=False)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Dropout of whole channels of (N, C, L) or (C, L).

    Raises CORE-0502, CORE-0509 for another number of axes.
    """
    if input.array.ndim not in (2, 3):
        raise refuse(
            "CORE-0509", function="dropout1d", shape=list(input.shape), wanted="two or three axes"
        )
    if input.array.ndim == 2:
        out = _channel_dropout(input.unsqueeze(0), p, training, inplace, generator, "dropout1d")
        return out.squeeze(0)
    return _channel_dropout(input, p, training, inplace, generator, "dropout1d")


@operator(_dropouts(2, 3, 2, 2), torch="nn.functional.dropout2d", random=True, method=False)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Dropout of whole channels of (N, C, H, W); as in PyTorch, the first two axes of any input
    decide.

    Raises CORE-0502, CORE-0509 for fewer than two axes.
    """
    return _channel_dropout(input, p, training, inplace, generator, "dropout2d")


@operator(_dropouts(2, 3, 2, 2, 2), torch="nn.functional.dropout3d", random=True, method=False)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Raises CORE-0502, CORE-0509 for fewer than two axes.
    """
    if input.array.ndim == 4:
        out = _channel_dropout(input.unsqueeze(0), p, training, inplace, generator, "dropout3d")
        return out.squeeze(0)
    return _channel_dropout(input, p, training, inplace, generator, "dropout3d")


ALPHA = 1.7580993408473766
"""The negative saturation of SELU, scale times alpha, to which alpha dropout sets what it drops."""


def _alpha(
    input: Tensor, p: float, shape: tuple[int, ...], inplace: bool, generator: Generator | None
) -> Tensor:
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al. 2017)."""
    array = input.array
    if p == 1:
        return _dropped(input, np.zeros(shape, array.dtype), inplace)
    kind = array.dtype.type
    drawn = _stream(generator).bernoulli(math.prod(shape), 1 - p).astype(array.dtype)
    kept = drawn.reshape(shape) if shape != array.shape else _in_memory_order(drawn, array)
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (kept + kind(-1)) * kind(ALPHA * scale) + kind(ALPHA * scale * p)
    out = add(mul(input, wrap(kept * kind(scale))), wrap(shift.astype(array.dtype)))
    return overwrite(input, out, "alpha_dropout_") if inplace else out


@operator(_dropouts(2, 3), torch="nn.functional.alpha_dropout", random=True, method=False)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Dropout that keeps mean and variance of what SELU gives.

    Raises CORE-0502 for a probability outside [0, 1].
    """
    if _idle(input, p, training, "alpha_dropout"):
        return input
    return _alpha(input, p, input.array.shape, inplace, generator)


@operator(
    _dropouts(2, 3, 4),
    torch="nn.functional.feature_alpha_dropout.without_train",
    random=True,
    method=False,
)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Alpha dropout of whole channels: the first two axes decide.

    Raises CORE-0502, CORE-0509 for fewer than two axes.
    """
    if _idle(input, p, training, "feature_alpha_dropout"):
        return input
    array = input.array
    if array.ndim < 2:
        raise refuse(
            "CORE-0509",
            function="feature_alpha_dropout",
            shape=list(array.shape),
            wanted="two axes",
        )
    shape = (*array.shape[:2], *(1 for _ in array.shape[2:]))
    return _alpha(input, p, shape, inplace, generator)
