"""Convolutions in one, two and three dimensions, and transposed ones.

A convolution is linear in its input and in its weight; its two gradients are convolutions of the
same window. So three operators, each the gradient of the others, give derivatives of every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.autograd.tape import Node, record
from numbat.kernels import convolution as kernels
from numbat.kernels.convolution import Window
from numbat.ops.reductions import sum as total
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import reshape
from numbat.ops.windows import numbers, output_extents
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_input_grad", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "conv_weight_grad",
]  # fmt: skip


def _checked(name: str, axes: int, input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Refuses operands of other ranks than the window's (CORE-0401) or of different types
    (CORE-0111)."""
    if weight.array.ndim != axes + 2 or input.array.ndim not in (axes + 1, axes + 2):
        raise refuse(
            "CORE-0401",
            operator=name,
            input=list(input.shape),
            weight=list(weight.shape),
            axes=axes,
        )
    for one in (weight, bias):
        if one is not None and one.array.dtype != input.array.dtype:
            raise refuse("CORE-0111", operator=name, first=input.dtype.name, second=one.dtype.name)


def _check_channels(name: str, channels: int, wanted: int, outs: int, groups: int) -> None:
    """Refuses channels that are not the weight's (CORE-0402) or that groups do not divide
    (CORE-0403)."""
    if groups < 1 or channels % groups or outs % groups:
        raise refuse("CORE-0403", operator=name, channels=channels, outputs=outs, groups=groups)
    if channels != wanted:
        raise refuse("CORE-0402", operator=name, channels=channels, wanted=wanted, groups=groups)


def _check_bias(name: str, bias: Tensor | None, outs: int) -> None:
    if bias is not None and bias.array.shape != (outs,):
        raise refuse("CORE-0202", operator=name, shape=[outs], result_shape=list(bias.array.shape))


def _convolve(
    name: str, axes: int, input: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Any, padding: Any, dilation: Any, groups: int,
) -> Tensor:  # fmt: skip
    _checked(name, axes, input, weight, bias)
    if input.array.ndim == axes + 1:
        whole = reshape(input, (1, *input.array.shape))
        out = _convolve(name, axes, whole, weight, bias, stride, padding, dilation, groups)
        return reshape(out, out.array.shape[1:])
    steps = numbers(name, "stride", stride, axes, 1)
    gaps = numbers(name, "dilation", dilation, axes, 1)
    kernel = weight.array.shape[2:]
    if isinstance(padding, str):
        if padding not in ("same", "valid") or (padding == "same" and max(steps) > 1):
            raise refuse(
                "CORE-0405", operator=name, setting="padding", given=padding,
                wanted="'valid', or 'same' with a stride of 1",
            )  # fmt: skip
        whole_pad = [gap * (cells - 1) if padding == "same" else 0
                     for gap, cells in zip(gaps, kernel, strict=True)]  # fmt: skip
        begin = tuple([one // 2 for one in whole_pad])
    else:
        begin = numbers(name, "padding", padding, axes, 0)
        whole_pad = [2 * one for one in begin]
    outs, channels = weight.array.shape[0], input.array.shape[1]
    _check_channels(name, channels, weight.array.shape[1] * groups, outs, groups)
    _check_bias(name, bias, outs)
    space = output_extents(name, input.array.shape[2:], kernel, steps, whole_pad, gaps)
    return _forward(input, weight, bias, Window(steps, begin, gaps, groups), space)


def _forward(
    input: Tensor, weight: Tensor, bias: Tensor | None, window: Window, space: tuple[int, ...]
) -> Tensor:
    array = kernels.forward(
        input.array, weight.array, None if bias is None else bias.array, window, space
    )
    inputs = (input, weight) if bias is None else (input, weight, bias)
    saved = (input if weight.requires_grad else None, weight if input.requires_grad else None)
    values = window, input.array.shape[2:], weight.array.shape[2:]
    return record(array, convolution_backward, inputs, saved, values)


def convolution_backward(node: Node, grad: Tensor) -> tuple[Tensor | None, ...]:
    input, weight = node.unpack()
    window, space, kernel = node.values
    for_input, for_weight, *for_bias = node.sources
    return (
        conv_input_grad(grad, weight, window, space) if for_input is not None else None,
        conv_weight_grad(input, grad, window, kernel) if for_weight is not None else None,
        *[None if one is None else _bias_gradient(grad) for one in for_bias],
    )


def _bias_gradient(grad: Tensor) -> Tensor:
    return total(grad, (0, *range(2, grad.array.ndim)))


def _sample_input_grad(rng: np.random.Generator) -> Any:
    grad, weight = rng.normal(size=(1, 2, 2, 3)), rng.normal(size=(2, 2, 2, 2))
    yield Sample((grad, weight, ((2, 1), (1, 0), (1, 2), 1), (3, 5)))
    yield Sample((grad[:, :, 0], weight[:, :1, 0], ((1,), (1,), (1,), 2), (2,)))


@operator(_sample_input_grad, torch=None, method=False)
def conv_input_grad(grad: Tensor, weight: Tensor, window: Window, space: tuple[int, ...]) -> Tensor:
    """What the input `(N, C, *space)` of a convolution receives from the gradient of its result.

    It is linear in both: the transposed convolution.
    """
    window = Window(*window)
    array = kernels.input_gradient(grad.array, weight.array, window, space)
    saved = (grad if weight.requires_grad else None, weight if grad.requires_grad else None)
    values = window, grad.array.shape[2:], weight.array.shape[2:]
    return record(array, conv_input_grad_backward, (grad, weight), saved, values)


def conv_input_grad_backward(node: Node, above: Tensor) -> tuple[Tensor | None, ...]:
    grad, weight = node.unpack()
    window, space, kernel = node.values
    for_grad, for_weight, *for_bias = node.sources
    return (
        _forward(above, weight, None, window, space) if for_grad is not None else None,
        conv_weight_grad(above, grad, window, kernel) if for_weight is not None else None,
        *[None if one is None else _bias_gradient(above) for one in for_bias],
    )


def _sample_weight_grad(rng: np.random.Generator) -> Any:
    input, grad = rng.normal(size=(2, 2, 3, 4)), rng.normal(size=(2, 2, 2, 2))
    yield Sample((input, grad, ((2, 1), (1, 0), (1, 2), 1), (2, 2)))
    yield Sample((input[:, :, 0], grad[:, :, 0], ((1,), (0,), (1,), 2), (3,)))


@operator(_sample_weight_grad, torch=None, method=False)
def conv_weight_grad(
    input: Tensor, grad: Tensor, window: Window, kernel: tuple[int, ...]
) -> Tensor:
    """What the weight `(O, C / groups, *kernel)` of a convolution receives; linear in both."""
    window = Window(*window)
    array = kernels.weight_gradient(input.array, grad.array, window, kernel)
    saved = (input if grad.requires_grad else None, grad if input.requires_grad else None)
    values = window, input.array.shape[2:], grad.array.shape[2:]
    return record(array, conv_weight_grad_backward, (input, grad), saved, values)


def conv_weight_grad_backward(node: Node, above: Tensor) -> tuple[Tensor | None, ...]:
    input, grad = node.unpack()
    window, inside, space = node.values
    for_input, for_grad = node.sources
    return (
        conv_input_grad(grad, above, window, inside) if for_input is not None else None,
        _forward(input, above, None, window, space) if for_grad is not None else None,
    )


def _transposed(
    name: str, axes: int, input: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    _checked(name, axes, input, weight, bias)
    if input.array.ndim == axes + 1:
        whole = reshape(input, (1, *input.array.shape))
        out = _transposed(
            name, axes, whole, weight, bias, stride, padding, output_padding, groups, dilation
        )
        return reshape(out, out.array.shape[1:])
    steps = numbers(name, "stride", stride, axes, 1)
    gaps = numbers(name, "dilation", dilation, axes, 1)
    begin = numbers(name, "padding", padding, axes, 0)
    more = numbers(name, "output_padding", output_padding, axes, 0)
    if any(one >= max(step, gap) for one, step, gap in zip(more, steps, gaps, strict=True)):
        raise refuse(
            "CORE-0405", operator=name, setting="output_padding", given=str(output_padding),
            wanted="less than the stride or the dilation",
        )  # fmt: skip
    channels, outs = input.array.shape[1], weight.array.shape[1] * groups
    _check_channels(name, channels, weight.array.shape[0], outs, groups)
    _check_bias(name, bias, outs)
    space = tuple([
        (extent - 1) * step - 2 * pad + gap * (cells - 1) + extra + 1
        for extent, step, pad, gap, cells, extra in zip(
            input.array.shape[2:], steps, begin, gaps, weight.array.shape[2:], more, strict=True
        )
    ])  # fmt: skip
    if min(space) < 1:
        raise refuse(
            "CORE-0404", operator=name, space=list(input.array.shape[2:]),
            kernel=list(weight.array.shape[2:]), result=list(space),
        )  # fmt: skip
    window = Window(steps, begin, gaps, groups)
    array = kernels.input_gradient(
        input.array, weight.array, window, space, None if bias is None else bias.array
    )
    inputs = (input, weight) if bias is None else (input, weight, bias)
    saved = (input if weight.requires_grad else None, weight if input.requires_grad else None)
    values = window, input.array.shape[2:], weight.array.shape[2:]
    return record(array, conv_input_grad_backward, inputs, saved, values)


def _samples(axes: int, transposed: bool) -> Any:
    def make(rng: np.random.Generator) -> Any:
        space, kernel = (4, 3, 3)[:axes], (3, 2, 2)[:axes]
        x, weight = rng.normal(size=(2, 2, *space)), rng.normal(size=(2, 2, *kernel))
        yield Sample((x, weight, rng.normal(size=2)), {"stride": 2, "padding": 1})
        slim = rng.normal(size=(2, 1, *kernel))
        keywords: dict[str, Any] = {"dilation": 2 if axes == 1 else 1, "padding": 1, "groups": 2}
        if transposed:
            keywords |= {"stride": 2, "output_padding": 1}
        yield Sample((x[0], slim), keywords)
        if not transposed:
            yield Sample((x[:1], weight, None, 1, "same"))

    return make


@operator(_samples(1, False), torch="nn.functional.conv1d", method=False)
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of `(N, C, L)` or `(C, L)` with weights `(O, C / groups, K)`.

    `padding` is a number of cells, or 'same' or 'valid'. Channels lie last in the result's memory.

    Raises CORE-0401 to CORE-0405 for operands and settings that do not fit, CORE-0111 for two
    types.
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@operator(_samples(2, False), torch="nn.functional.conv2d", method=False)
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of `(N, C, H, W)` or `(C, H, W)` with weights `(O, C / groups, KH, KW)`; see
    `conv1d`."""
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@operator(_samples(3, False), torch="nn.functional.conv3d", method=False)
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The convolution of `(N, C, D, H, W)` or `(C, D, H, W)`; see `conv1d`."""
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@operator(_samples(1, True), torch="nn.functional.conv_transpose1d", method=False)
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The transposed convolution of `(N, C, L)` or `(C, L)` with weights `(C, O / groups, K)`.

    The result has `(L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1` cells.

    Raises CORE-0401 to CORE-0405 for operands and settings that do not fit, CORE-0111 for two
    types.
    """
    return _transposed(
        "conv_transpose1d",
        1,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


@operator(_samples(2, True), torch="nn.functional.conv_transpose2d", method=False)
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The transposed convolution of `(N, C, H, W)` or `(C, H, W)`; see `conv_transpose1d`."""
    return _transposed(
        "conv_transpose2d",
        2,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


@operator(_samples(3, True), torch="nn.functional.conv_transpose3d", method=False)
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The transposed convolution of `(N, C, D, H, W)` or `(C, D, H, W)`; see `conv_transpose1d`."""
    return _transposed(
        "conv_transpose3d",
        3,
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )
