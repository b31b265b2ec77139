"""Normalisation: of channels over a batch, over groups of channels, of trailing axes, and of
windows.

Forward and backward work on arrays by `kernels/normalisation.py`; where the backward pass itself is
recorded, `normalised_gradients` writes the same formula in operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbat.autograd.in_place import bump
from numbat.autograd.mode import MODE
from numbat.autograd.tape import Node, record
from numbat.kernels import normalisation as kernels
from numbat.ops.distances import lengths
from numbat.ops.mapping import widened
from numbat.ops.registry import Sample, operator
from numbat.tensors.dtypes import finfo
from numbat.tensors.promotion import floating
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize",
    "rms_norm",
]  # fmt: skip


def present(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    """Those that were given, as the inputs to record."""
    return tuple([one for one in tensors if one is not None])


def check_parameters(
    name: str, input: Tensor, wanted: tuple[int, ...], *given: Tensor | None
) -> None:
    """Refuses parameters of another shape than `wanted` (CORE-0433)."""
    for one in given:
        if one is not None and one.array.shape != wanted:
            raise refuse(
                "CORE-0433", operator=name, shape=list(input.shape), weight_shape=list(one.shape)
            )


def _values(tensor: Tensor | None, like: Array) -> Array | None:
    """A parameter's values in the type that is computed in."""
    return None if tensor is None else tensor.array.astype(like.dtype, copy=False)


def normalised_gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, axes: tuple[int, ...], eps: float,
    fixed: tuple[Array, Array] | None = None, centred: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x, of the weight and of the bias, in operators, so that they have gradients
    too.

    Args:
        grad, x: of one shape; x was normalised over `axes`, then multiplied by `weight`, which
            broadcasts.
        fixed: the mean and the inverse deviation where they are constants, as in evaluation.
        centred: False for RMS norm.

    The last two are of x's shape: the engine does not sum them; the caller does.
    """
    x = x.to(grad.dtype)
    inner = grad if weight is None else grad * weight
    if fixed is not None:
        hat = (x - wrap(fixed[0])) * wrap(fixed[1])
        return inner * wrap(fixed[1]), grad * hat, grad
    rest = x - x.mean(axes, keepdim=True) if centred else x
    rstd = ((rest * rest).mean(axes, keepdim=True) + eps).rsqrt()
    hat = rest * rstd
    out = inner - hat * (inner * hat).mean(axes, keepdim=True)
    if centred:
        out = out - inner.mean(axes, keepdim=True)
    return out * rstd, grad * hat, grad


def _chosen(node: Node, gradients: Sequence[Any], given: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients of those inputs that were given, None where none is wanted."""
    kept = [one for one, there in zip(gradients, given, strict=True) if there]
    return tuple(
        one if source is not None else None for one, source in zip(kept, node.sources, strict=True)
    )


# -- over the batch --------------------------------------------------------------------------------


def _sample_batch_norm(rng: np.random.Generator) -> Any:
    x, weight, bias = rng.normal(size=(3, 2, 2)), rng.normal(size=2), rng.normal(size=2)
    yield Sample((x, None, None, weight, bias), {"training": True})
    yield Sample((x, None, None), {"training": True, "eps": 0.5})
    mean, variance = np.zeros(2, np.float32), np.ones(2, np.float32)
    yield Sample((rng.normal(size=(4, 2)), None, None, weight), {"training": True})
    del mean, variance


@operator(_sample_batch_norm, torch="nn.functional.batch_norm", method=False)
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel normalised over the batch, or by running statistics.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); used in evaluation, updated in place in training (the
            variance with its unbiased estimate).
        weight, bias: (C,), applied after.
        training: whether the statistics are those of the batch.
        momentum: the part of the running statistics that a batch replaces; None leaves them.
        eps: added to the variance.

    Raises CORE-0433 for parameters of another shape, CORE-0434 where a channel has one value in
    training or no statistics in evaluation. Source: arXiv 1502.03167.
    """
    x = floating(input)
    if not x.array.size:
        result: Tensor = x.clone()
        return result
    _check_channels(x, running_mean, running_var, weight, bias)
    values = widened(x.array)
    if training:
        mean, variance = kernels.moments(values)
        update_statistics(values, mean, variance, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise refuse(
            "CORE-0434", operator="batch_norm", shape=list(x.shape), wanted="running statistics"
        )
    else:
        mean = running_mean.array.astype(np.float64)
        variance = running_var.array.astype(np.float64)
    rstd = 1 / np.sqrt(variance + eps)
    scale, shift = folded(mean, rstd, weight, bias)
    out = kernels.affine(values, scale, shift).astype(x.array.dtype, copy=False)
    kept = (mean, rstd, training, eps, (True, weight is not None, bias is not None))
    return record(out, batch_norm_backward, present(x, weight, bias), (x, weight), kept)


def folded(
    mean: Array, rstd: Array, weight: Tensor | None, bias: Tensor | None
) -> tuple[Array, Array]:
    """Normalisation and parameters as one factor and one term for each channel, in float64."""
    scale = rstd if weight is None else rstd * weight.array.astype(np.float64)
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias.array.astype(np.float64)


def _check_channels(x: Tensor, *parameters: Tensor | None) -> None:
    if x.array.ndim < 2:
        raise refuse(
            "CORE-0434", operator="batch_norm", shape=list(x.shape), wanted="two axes or more"
        )
    check_parameters("batch_norm", x, (x.array.shape[1],), *parameters)


def update_statistics(
    x: Array, mean: Array, variance: Array, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: float | None,
) -> None:  # fmt: skip
    """Moves the running statistics towards those of the batch."""
    count = x.size // max(x.shape[1], 1)
    if count == 1 or not x.size:
        raise refuse(
            "CORE-0434",
            operator="batch_norm",
            shape=list(x.shape),
            wanted="more than one value a channel",
        )
    unbiased = variance * (count / (count - 1))
    for running, fresh in ((running_mean, mean), (running_var, unbiased)):
        if running is not None and momentum:
            kept = running.array.astype(np.float64) * (1 - momentum)
            running.array[...] = kept + momentum * fresh
            bump(running)


def batch_norm_backward(node: Node, grad: Tensor) -> tuple[Any, ...]:
    x, weight = node.unpack()
    mean, rstd, training, eps, given = node.values
    ndim = x.array.ndim
    if MODE.recording:
        shaped = None if weight is None else weight.reshape((1, -1) + (1,) * (ndim - 2))
        dtype = widened(x.array).dtype
        mean = kernels.along_channels(mean.astype(dtype), ndim)
        rstd = kernels.along_channels(rstd.astype(dtype), ndim)
        axes = kernels.other_axes(ndim)
        for_x, for_weight, for_bias = normalised_gradients(
            grad, x, shaped, axes, eps, None if training else (mean, rstd)
        )
        return _chosen(node, (for_x, for_weight.sum(axes), for_bias.sum(axes)), given)
    values, given_grad = widened(x.array), widened(grad.array)
    return _chosen(
        node,
        channel_gradients(given_grad, values, weight, None, mean, rstd, training=training),
        given,
    )


def channel_gradients(
    grad: Array, x: Array, weight: Tensor | None, bias: Tensor | None, mean: Array, rstd: Array, *,
    training: bool, activation: str = "",
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of the input, the weight and the bias of a batch norm (and an activation after
    it)."""
    scale, shift = folded(mean, rstd, weight, bias)
    through, sums, dots = kernels.gradient_sums(grad, x, mean, scale, shift, activation=activation)
    if training:
        count = x.size / x.shape[1]
        b, d = scale * sums / count, scale * dots * rstd * rstd / count
    else:
        b = d = np.zeros_like(scale)
    out = kernels.gradient(through, x, mean, scale, b, d)
    return wrap(out), wrap((dots * rstd).astype(x.dtype)), wrap(sums.astype(x.dtype))


# -- over groups and instances ---------------------------------------------------------------------


def _sample_group_norm(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 4, 3))
    yield Sample((x, 2, rng.normal(size=4), rng.normal(size=4)))
    yield Sample((x, 1), {"eps": 0.5})


@operator(_sample_group_norm, torch="nn.functional.group_norm", method=False)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each group of channels of each example normalised.

    Args:
        input: (N, C, ...).
        num_groups: into how many groups the channels are divided.
        weight, bias: (C,), applied after.
        eps: added to the variance.

    Raises CORE-0433 for parameters of another shape or groups that do not divide the channels.
    Source: arXiv 1803.08494.
    """
    x = floating(input)
    shape = x.array.shape
    if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
        raise refuse(
            "CORE-0433", operator="group_norm", shape=list(shape), weight_shape=[num_groups]
        )
    check_parameters("group_norm", x, shape[1:2], weight, bias)
    values = np.ascontiguousarray(widened(x.array))
    if not values.size:
        return record(values.astype(x.array.dtype), group_norm_backward, (x,), (x, None), None)
    mean, variance = kernels.moments(values.reshape(1, shape[0] * num_groups, -1))
    rstd = 1 / np.sqrt(variance + eps)
    scale, shift = _plane_factors(mean, rstd, shape, num_groups, weight, bias)
    planes = values.reshape(1, shape[0] * shape[1], -1)
    out = kernels.affine(planes, scale, shift).reshape(shape).astype(x.array.dtype, copy=False)
    kept = (mean, rstd, num_groups, eps, (True, weight is not None, bias is not None))
    return record(out, group_norm_backward, present(x, weight, bias), (x, weight), kept)


def _plane_factors(
    mean: Array, rstd: Array, shape: tuple[int, ...], groups: int, weight: Tensor | None,
    bias: Tensor | None,
) -> tuple[Array, Array]:  # fmt: skip
    """One factor and one term for each plane (example and channel)."""
    examples, channels = shape[:2]
    scale = np.repeat(rstd, channels // groups).reshape(examples, channels)
    if weight is not None:
        scale = scale * weight.array.astype(np.float64)
    shift = -np.repeat(mean, channels // groups).reshape(examples, channels) * scale
    if bias is not None:
        shift = shift + bias.array.astype(np.float64)
    return scale.reshape(-1), shift.reshape(-1)


def group_norm_backward(node: Node, grad: Tensor) -> tuple[Any, ...]:
    x, weight = node.unpack()
    if node.values is None:
        return (grad,)
    mean, rstd, groups, eps, given = node.values
    shape = x.array.shape
    examples, channels = shape[:2]
    if MODE.recording:
        grouped = (examples, groups, channels // groups, x.array.size // (examples * channels))
        shaped = None if weight is None else weight.reshape((1, groups, -1, 1))
        found = normalised_gradients(grad.reshape(grouped), x.reshape(grouped), shaped, (2, 3), eps)
        for_x = found[0].reshape(shape)
        parameters = [one.sum((0, 3)).reshape((channels,)) for one in found[1:]]
        return _chosen(node, (for_x, *parameters), given)
    values = np.ascontiguousarray(widened(x.array)).reshape(1, examples * channels, -1)
    grads = np.ascontiguousarray(widened(grad.array)).reshape(values.shape)
    per = channels // groups
    means, inverse = np.repeat(mean, per), np.repeat(rstd, per)
    scale, shift = _plane_factors(mean, rstd, shape, groups, weight, None)
    through, sums, dots = kernels.gradient_sums(grads, values, means, scale, shift)
    weights = 1.0 if weight is None else weight.array.astype(np.float64)
    count = per * values.shape[2]

    def over_group(totals: Array) -> Array:
        weighted = totals.reshape(examples, channels) * weights
        return np.repeat(weighted.reshape(examples * groups, per).sum(axis=1) / count, per)

    b, d = inverse * over_group(sums), inverse**3 * over_group(dots)
    for_x = kernels.gradient(through, values, means, scale, b, d).reshape(shape)
    dtype = values.dtype
    for_weight = (dots * inverse).reshape(examples, channels).sum(axis=0).astype(dtype)
    for_bias = sums.reshape(examples, channels).sum(axis=0).astype(dtype)
    return _chosen(node, (wrap(for_x), wrap(for_weight), wrap(for_bias)), given)


def _sample_instance_norm(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 2, 3))
    yield Sample((x,), {"weight": rng.normal(size=2), "bias": rng.normal(size=2)})
    yield Sample((x,), {"eps": 0.5})


@operator(_sample_instance_norm, torch="nn.functional.instance_norm", method=False)
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each example normalised, or by running statistics.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); updated by the mean over the batch of each example's
            statistics.
        weight, bias: (C,), applied after.
        use_input_stats: whether the statistics are the input's.
        momentum: the part of the running statistics that is replaced.
        eps: added to the variance.

    Raises what `batch_norm` raises. Source: arXiv 1607.08022.
    """
    x = floating(input)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels(x, running_mean, running_var, weight, bias)
    examples, channels = x.array.shape[:2]
    if x.array.size <= examples * channels:
        raise refuse(
            "CORE-0434",
            operator="instance_norm",
            shape=list(x.shape),
            wanted="more than one value a channel",
        )
    if running_mean is not None or running_var is not None:
        values = np.ascontiguousarray(widened(x.array)).reshape(1, examples * channels, -1)
        mean, variance = kernels.moments(values)
        variance = variance * (values.shape[2] / (values.shape[2] - 1))
        for running, fresh in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                fresh = fresh.reshape(examples, channels).mean(axis=0)
                kept = running.array.astype(np.float64) * (1 - momentum)
                running.array[...] = kept + momentum * fresh
                bump(running)
    return group_norm(x, channels, weight, bias, eps)


# -- over trailing axes ----------------------------------------------------------------------------


def _sample_layer_norm(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 2, 3))
    yield Sample((x, (3,), rng.normal(size=3), rng.normal(size=3)))
    yield Sample((x, (2, 3)), {"eps": 0.5})


def _trailing(
    name: str, input: Tensor, normalized_shape: Any, *given: Tensor | None
) -> tuple[Tensor, tuple[int, ...]]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    x = floating(input)
    if not shape or x.array.shape[-len(shape) :] != shape or len(shape) > x.array.ndim:
        raise refuse("CORE-0433", operator=name, shape=list(x.shape), weight_shape=list(shape))
    check_parameters(name, x, shape, *given)
    return x, shape


def _rows(array: Array, shape: tuple[int, ...]) -> Array:
    """The array as rows over which a trailing shape is normalised, without gaps."""
    columns = 1
    for extent in shape:
        columns *= extent
    rows = array.size // columns if columns else 0
    return np.ascontiguousarray(widened(array)).reshape(rows, columns)


@operator(_sample_layer_norm, torch="nn.functional.layer_norm", method=False)
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """The trailing axes of each example normalised together.

    Args:
        input: any shape that ends in `normalized_shape`.
        normalized_shape: the trailing shape, or its one extent.
        weight, bias: of that shape, applied after.
        eps: added to the variance.

    Raises CORE-0433 where the shapes do not fit. Source: arXiv 1607.06450.
    """
    x, shape = _trailing("layer_norm", input, normalized_shape, weight, bias)
    return _row_norm(x, shape, weight, bias, eps, centred=True)


def _row_norm(
    x: Tensor, shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float, *,
    centred: bool,
) -> Tensor:  # fmt: skip
    rows = _rows(x.array, shape)
    flat_weight, flat_bias = (
        None if one is None else one.reshape(-1)
        for one in (_values(weight, rows), _values(bias, rows))
    )
    out, mean, rstd = kernels.layer_norm(rows, flat_weight, flat_bias, eps, centred=centred)
    out = out.reshape(x.array.shape).astype(x.array.dtype, copy=False)
    kept = (mean, rstd, shape, eps, centred, (True, weight is not None, bias is not None))
    backward = layer_norm_backward if centred else rms_norm_backward
    return record(out, backward, present(x, weight, bias), (x, weight), kept)


def layer_norm_backward(node: Node, grad: Tensor) -> tuple[Any, ...]:
    x, weight = node.unpack()
    mean, rstd, shape, eps, centred, given = node.values
    ndim = x.array.ndim
    if MODE.recording:
        axes = tuple(range(ndim - len(shape), ndim))
        lead = tuple(range(ndim - len(shape)))
        found = normalised_gradients(grad, x, weight, axes, eps, centred=centred)
        parameters = [one.sum(lead) if lead else one for one in found[1:]]
        return _chosen(node, (found[0], *parameters), given)
    rows, grads = _rows(x.array, shape), _rows(grad.array, shape)
    flat = _values(weight, rows)
    for_x, for_weight, for_bias = kernels.layer_norm_backward(
        grads, rows, None if flat is None else flat.reshape(-1), mean, rstd,
        centred=centred, parameters=any(source is not None for source in node.sources[1:]),
    )  # fmt: skip
    parameters = [
        None if one is None else wrap(one.reshape(shape)) for one in (for_weight, for_bias)
    ]
    return _chosen(node, (wrap(for_x.reshape(x.array.shape)), *parameters), given)


def _sample_rms_norm(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(2, 2, 3))
    yield Sample((x, (3,), rng.normal(size=3)))
    yield Sample((x, (2, 3)), {"eps": 0.5})


@operator(_sample_rms_norm, torch="nn.functional.rms_norm", method=False)
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The trailing axes of each example divided by their root mean square.

    Args:
        input: any shape that ends in `normalized_shape`.
        normalized_shape: the trailing shape, or its one extent.
        weight: of that shape, applied after.
        eps: added to the mean square; the type's own epsilon when left out.

    Raises CORE-0433 where the shapes do not fit. Source: arXiv 1910.07467.
    """
    x, shape = _trailing("rms_norm", input, normalized_shape, weight)
    chosen = finfo(x.dtype).eps if eps is None else eps
    return _row_norm(x, shape, weight, None, chosen, centred=False)


def rms_norm_backward(node: Node, grad: Tensor) -> tuple[Any, ...]:
    return layer_norm_backward(node, grad)


# -- over windows of channels, and to a length -----------------------------------------------------


def _sample_response(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 4, 3)), 3), {"alpha": 0.5})
    yield Sample((rng.normal(size=(2, 3)), 2), {"alpha": 0.5, "k": 2.0})


@operator(_sample_response, torch="nn.functional.local_response_norm", method=False)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Each value divided by a power of the mean square of `size` neighbouring channels.

    Args:
        input: (N, C, ...).
        size: channels in a window; beyond the first and last channel they count as zero.
        alpha, beta, k: the divisor is (k + alpha * mean)^beta.

    Raises CORE-0434 for fewer than two axes. Source: Krizhevsky et al. 2012.
    """
    x = floating(input)
    if x.array.ndim < 2:
        raise refuse(
            "CORE-0434",
            operator="local_response_norm",
            shape=list(x.shape),
            wanted="two axes or more",
        )
    mean = window_sum(x * x, size // 2, (size - 1) // 2) / size
    return x / (mean * alpha + k) ** beta


def window_sum(input: Tensor, before: int, after: int) -> Tensor:
    """For each channel the sum over `before` channels before it, itself, and `after` ones behind
    it."""
    array = input.array
    channels = array.shape[1]
    out = np.zeros(array.shape, widened(array).dtype)
    for step in range(-before, after + 1):
        low, high = max(0, -step), min(channels, channels - step)
        if low < high:
            out[:, low:high] += array[:, low + step : high + step]
    return record(
        out.astype(array.dtype, copy=False), window_sum_backward, (input,), values=(before, after)
    )


def window_sum_backward(node: Node, grad: Tensor) -> tuple[Tensor]:
    before, after = node.values
    return (window_sum(grad, after, before),)


def _sample_normalize(rng: np.random.Generator) -> Any:
    yield Sample((rng.normal(size=(2, 3)),))
    yield Sample((rng.normal(size=(2, 3)), 3.0, 0))


@operator(_sample_normalize, torch="nn.functional.normalize", method=False)
def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: None = None
) -> Tensor:
    """Vectors along `dim` divided by their p-norm, or by `eps` where that is larger."""
    x = floating(input)
    result: Tensor = x / lengths(x, p, dim, keepdim=True).clamp_min(eps)
    return result
