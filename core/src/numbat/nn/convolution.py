"""Convolutions over one, two and three axes, and their transposes."""

from __future__ import annotations

import math
from typing import Any

from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.lazy import Lazy
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter, UninitializedParameter
from numbat.nn.tuples import repeated
from numbat.tensors.creation import empty
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all share: options, a weight, and a bias.

    Weight and bias come from U(-b, b), b = 1 / sqrt(weight.shape[1] * kernel elements).

    Raises CORE-0608 where `groups` divides not both channel counts, or for an unknown padding.
    """

    axes: int
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, output_padding: Any, groups: int, bias: bool, padding_mode: str, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        axes = self.axes
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = repeated(kernel_size, axes)
        self.stride = repeated(stride, axes)
        self.padding = padding if isinstance(padding, str) else repeated(padding, axes)
        self.dilation = repeated(dilation, axes)
        self.output_padding = repeated(output_padding, axes)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        self._padding_around = self._sides()
        self._make_parameters(bias, dtype)

    def _check(self) -> None:
        def check(argument: str, value: Any, right: bool, wanted: str) -> None:
            if not right:
                raise refuse(
                    "CORE-0608", module=type(self).__name__, argument=argument, value=str(value),
                    wanted=wanted,
                )  # fmt: skip

        groups = self.groups
        check("groups", groups, groups > 0, "a number above 0")
        check(
            "in_channels", self.in_channels, self.in_channels % groups == 0,
            f"a multiple of groups, {groups}",
        )  # fmt: skip
        check(
            "out_channels", self.out_channels, self.out_channels % groups == 0,
            f"a multiple of groups, {groups}",
        )  # fmt: skip
        modes = ("zeros",) if self.transposed else _PADDING_MODES
        check(
            "padding_mode", self.padding_mode, self.padding_mode in modes, f"one of {list(modes)}"
        )
        if isinstance(self.padding, str):
            check(
                "padding", self.padding, self.padding in ("same", "valid"), "same, valid or numbers"
            )
            if self.padding == "same":
                check(
                    "stride",
                    self.stride,
                    all(one == 1 for one in self.stride),
                    "1, to pad to the same",
                )

    def _sides(self) -> list[int]:
        """The padding before and after each axis, last axis first, for padding modes but zeros."""
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        if self.padding == "same":
            sides: list[int] = []
            for dilation, kernel in zip(
                reversed(self.dilation), reversed(self.kernel_size), strict=True
            ):
                total = dilation * (kernel - 1)
                sides += [total // 2, total - total // 2]
            return sides
        widths: tuple[int, ...] = tuple(self.padding)  # type: ignore[arg-type]
        return [one for width in reversed(widths) for one in (width, width)]

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = (
            (self.in_channels, self.out_channels)
            if self.transposed
            else (self.out_channels, self.in_channels)
        )
        return (first, second // self.groups, *self.kernel_size)

    def _make_parameters(self, bias: bool, dtype: Any) -> None:
        self.weight = Parameter(empty(*self._weight_shape(), dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(self.out_channels, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Its channels and kernel, and options that differ from the defaults."""
        nothing, one = (0,) * self.axes, (1,) * self.axes
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        for name, usual in (
            ("padding", nothing), ("dilation", one), ("output_padding", nothing), ("groups", 1),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    """A convolution; input (N, in_channels, *extents) or without N."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, out_channels, *extents)."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._padding_around, self.padding_mode)
            padding = (0,) * self.axes
        return self._convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _convolve(self, *args: Any) -> Tensor:
        raise NotImplementedError


class Conv1d(_Conv):
    """A convolution over one axis; weight (out_channels, in_channels / groups, L)."""

    axes = 1

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv1d(*args)


class Conv2d(_Conv):
    """A convolution over two axes; weight (out_channels, in_channels / groups, H, W)."""

    axes = 2

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv2d(*args)


class Conv3d(_Conv):
    """A convolution over three axes; weight (out_channels, in_channels / groups, D, H, W)."""

    axes = 3

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv3d(*args)


class _ConvTranspose(_ConvNd):
    """The gradient of a convolution with respect to its input, as a module."""

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Shape (N, out_channels, *extents); `output_size` chooses among the extents a stride
        allows.

        Raises CORE-0608 for an `output_size` that no padding gives.
        """
        extra = self.output_padding if output_size is None else self._fitting(input, output_size)
        return self._convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _fitting(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        wanted = tuple(output_size)[-self.axes :]
        extra = []
        for axis, extent in enumerate(input.shape[-self.axes :]):
            least = (
                (extent - 1) * self.stride[axis]
                - 2 * self.padding[axis]
                + self.dilation[axis] * (self.kernel_size[axis] - 1)
                + 1
            )
            if not least <= wanted[axis] < least + self.stride[axis]:
                raise refuse(
                    "CORE-0608", module=type(self).__name__, argument="output_size",
                    value=str(list(wanted)),
                    wanted=f"{least} to {least + self.stride[axis] - 1} along axis {axis}",
                )  # fmt: skip
            extra.append(wanted[axis] - least)
        return tuple(extra)

    def _convolve(self, *args: Any) -> Tensor:
        raise NotImplementedError


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over one axis; weight (in_channels, out_channels / groups, L)."""

    axes = 1

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over two axes; weight (in_channels, out_channels / groups, H, W)."""

    axes = 2

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over three axes; weight (in_channels, out_channels / groups, D, H,
    W)."""

    axes = 3

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose3d(*args)


class _LazyConv(Lazy):
    """A convolution that learns `in_channels` from its first input."""

    def __init__(self: Any, out_channels: int, *args: Any, **options: Any) -> None:
        super().__init__(0, out_channels, *args, **options)  # type: ignore[call-arg]

    def _make_parameters(self: Any, bias: bool, dtype: Any) -> None:
        self.register_parameter("weight", UninitializedParameter(dtype=dtype))
        self.register_parameter("bias", UninitializedParameter(dtype=dtype) if bias else None)

    def infer_sizes(self: Any, input: Tensor, output_size: Any = None) -> None:
        """`in_channels` from the axis before the input's extents; CORE-0609 where there is none."""
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(input.shape),
                wanted=f"{self.axes + 1} or {self.axes + 2} axes",
            )  # fmt: skip
        self.in_channels = input.shape[-self.axes - 1]
        self._check()
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))

    def adopt_sizes(self: Any) -> None:
        """`in_channels` from a weight that was loaded."""
        shape = self.weight.shape
        self.in_channels = shape[0] if self.transposed else shape[1] * self.groups


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that learns `in_channels` from its first input."""

    eager = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that learns `in_channels` from its first input."""

    eager = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that learns `in_channels` from its first input."""

    eager = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A `ConvTranspose1d` that learns `in_channels` from its first input."""

    eager = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A `ConvTranspose2d` that learns `in_channels` from its first input."""

    eager = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A `ConvTranspose3d` that learns `in_channels` from its first input."""

    eager = ConvTranspose3d
