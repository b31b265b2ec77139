"""Windows reduced to their largest element, their mean, or their norm."""

from __future__ import annotations

from typing import Any

from numbat.nn import functional as F
from numbat.nn.module import Module
from numbat.nn.tuples import repeated
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _MaxPool(Module):
    """The largest element of each window; with `return_indices` its place as well.

    Input: (N, C, *extents) or without N. `stride` is the kernel's size when left out.
    """

    function: str

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Shape (N, C, *extents), or that and the places."""
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Its windows."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of one axis."""

    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest element of each window of two axes."""

    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest element of each window of three axes."""

    function = "max_pool3d"


class _MaxUnpool(Module):
    """Puts elements back to the places from which a max pool took them; zeros elsewhere."""

    function: str
    axes: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = repeated(kernel_size, self.axes)
        self.stride = repeated(kernel_size if stride is None else stride, self.axes)
        self.padding = repeated(padding, self.axes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Shape (N, C, *output_size)."""
        found: Tensor = getattr(F, self.function)(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return found

    def extra_repr(self) -> str:
        """Its windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The other way of `MaxPool1d`."""

    function, axes = "max_unpool1d", 1


class MaxUnpool2d(_MaxUnpool):
    """The other way of `MaxPool2d`."""

    function, axes = "max_unpool2d", 2


class MaxUnpool3d(_MaxUnpool):
    """The other way of `MaxPool3d`."""

    function, axes = "max_unpool3d", 3


class AvgPool1d(Module):
    """The mean of each window of one axis."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = repeated(kernel_size, 1)
        self.stride = repeated(kernel_size if stride is None else stride, 1)
        self.padding = repeated(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, L)."""
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Its windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean of each window, or its sum over `divisor_override`."""

    function: str

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *extents)."""
        found: Tensor = getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip
        return found

    def extra_repr(self) -> str:
        """Its windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of two axes."""

    function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of each window of three axes."""

    function = "avg_pool3d"


class _LPPool(Module):
    """The p-norm of each window, p being `norm_type`."""

    function: str

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Shape (N, C, *extents)."""
        found: Tensor = getattr(F, self.function)(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return found

    def extra_repr(self) -> str:
        """Its windows."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of one axis."""

    function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The p-norm of each window of two axes."""

    function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The p-norm of each window of three axes."""

    function = "lp_pool3d"


class _AdaptivePool(Module):
    """Windows that tile the extents so that the result has those of `output_size` (None keeps
    one)."""

    function: str

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Shape (N, C, *output_size)."""
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        """Its extents."""
        return f"output_size={self.output_size}"


class _AdaptiveMaxPool(_AdaptivePool):
    """The largest element of each window."""

    def forward(self, input: Tensor) -> Any:
        """Shape (N, C, *output_size), or that and the places."""
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over one axis, `output_size` of them."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over two axes, `output_size` of them."""

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means over three axes, `output_size` of them."""

    function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest elements over one axis, `output_size` of them."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest elements over two axes, `output_size` of them."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Largest elements over three axes, `output_size` of them."""

    function = "adaptive_max_pool3d"


class _FractionalMaxPool(Module):
    """Largest elements of windows whose starts are drawn at random.

    Source: Graham, "Fractional Max-Pooling", 2014 (arXiv 1412.6071). Raises CORE-0608 unless
    exactly one of `output_size` and `output_ratio` is given.
    """

    function: str
    axes: int

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="output_size",
                value=str(output_size), wanted="one of output_size and output_ratio, not both",
            )  # fmt: skip
        self.kernel_size = repeated(kernel_size, self.axes)
        self.return_indices = return_indices
        self.output_size = None if output_size is None else repeated(output_size, self.axes)
        self.output_ratio = None if output_ratio is None else repeated(output_ratio, self.axes)
        self.register_buffer("_random_samples", _random_samples)
        if self.output_ratio is not None and not all(0 < one < 1 for one in self.output_ratio):
            raise refuse(
                "CORE-0608", module=type(self).__name__, argument="output_ratio",
                value=str(output_ratio), wanted="ratios between 0 and 1",
            )  # fmt: skip

    def forward(self, input: Tensor) -> Any:
        """Shape (N, C, *extents), or that and the places."""
        return getattr(F, self.function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling over two axes."""

    function, axes = "fractional_max_pool2d", 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling over three axes."""

    function, axes = "fractional_max_pool3d", 3
