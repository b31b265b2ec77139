"""Features scaled to mean 0 and variance 1: over the batch, a sample, a layer or a group."""

from __future__ import annotations

from typing import Any

from numbat.autograd.in_place import bump
from numbat.nn import functional as F
from numbat.nn import init
from numbat.nn.lazy import Lazy
from numbat.nn.module import Module
from numbat.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from numbat.nn.tuples import repeated
from numbat.tensors.creation import empty, ones, tensor, zeros
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
    "LocalResponseNorm", "RMSNorm", "SyncBatchNorm",
]  # fmt: skip


class _Norm(Module):
    """What batch and instance norms share: gain, shift and running statistics of each channel.

    Attributes:
        ranks: how many axes an input may have.
    """

    _version = 2
    ranks: tuple[int, ...]

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool,
        track_running_stats: bool, dtype: Any, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(affine, affine and bias, dtype)
        self._make_statistics(dtype)
        self.reset_parameters()

    def _make_parameters(self, weight: bool, bias: bool, dtype: Any) -> None:
        size = self.num_features
        self.register_parameter("weight", Parameter(empty(size, dtype=dtype)) if weight else None)
        self.register_parameter("bias", Parameter(empty(size, dtype=dtype)) if bias else None)

    def _make_statistics(self, dtype: Any) -> None:
        tracked, size = self.track_running_stats, self.num_features
        self.register_buffer("running_mean", zeros(size, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(size, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)

    def reset_running_stats(self) -> None:
        """Forgets the statistics of past batches."""
        if self.track_running_stats:
            self.running_mean.array[...] = 0
            self.running_var.array[...] = 1
            self.num_batches_tracked.array[...] = 0

    def reset_parameters(self) -> None:
        """Gain 1, shift 0, no statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(input.shape),
                wanted=" or ".join(str(rank) for rank in self.ranks) + " axes",
            )  # fmt: skip

    def extra_repr(self) -> str:
        """Its options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        # A state without a version, or of version 1, has no count of batches.
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            state_dict[key] = tensor(0)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_Norm):
    """(x - mean) / sqrt(var + eps) * weight + bias, statistics over all axes but the channels'.

    In training the batch's, of which running ones are kept: new = (1 - momentum) old + momentum
    batch (variance unbiased); momentum None averages over all batches. In evaluation the running
    ones.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape. Raises CORE-0609 for another number of axes."""
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            count = self.num_batches_tracked
            count.array += 1
            bump(count)
            if self.momentum is None:
                share = 1.0 / float(count.array)
        by_batch = self.training or self.running_mean is None
        kept = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if kept else None, self.running_var if kept else None,
            self.weight, self.bias, by_batch, share, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over all ranks; in one process it is `BatchNorm`, of any number of
    axes."""

    ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group


class _InstanceNorm(_Norm):
    """Normalisation of each channel of each sample by itself.

    Input: (N, C, *extents) or without N. Statistics are the instance's, unless running ones are
    tracked and the module evaluates.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None,
        *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape. Raises CORE-0609 for another number of axes or channels."""
        self._check_input_dim(input)
        alone = input.ndim == self.ranks[0]
        channels = input.shape[0 if alone else 1]
        if channels != self.num_features and self.affine:
            raise refuse(
                "CORE-0609", module=type(self).__name__, shape=list(input.shape),
                wanted=f"{self.num_features} channels",
            )  # fmt: skip
        whole = input.unsqueeze(0) if alone else input
        out = F.instance_norm(
            whole, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)


class _LazyNorm(Lazy):
    """A norm that learns `num_features` from its first input."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        super().__init__(0, *args, **options)  # type: ignore[call-arg]

    def _make_parameters(self: Any, weight: bool, bias: bool, dtype: Any) -> None:
        unshaped = UninitializedParameter
        self.register_parameter("weight", unshaped(dtype=dtype) if weight else None)
        self.register_parameter("bias", unshaped(dtype=dtype) if bias else None)

    def _make_statistics(self: Any, dtype: Any) -> None:
        tracked, unshaped = self.track_running_stats, UninitializedBuffer
        self.register_buffer("running_mean", unshaped(dtype=dtype) if tracked else None)
        self.register_buffer("running_var", unshaped(dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)

    def reset_parameters(self: Any) -> None:
        """Gain 1, shift 0, no statistics, once the sizes are known."""
        if not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def infer_sizes(self: Any, input: Tensor) -> None:
        """`num_features` from the channels."""
        alone = "Instance" in type(self).__name__ and input.ndim == self.ranks[0]
        self.num_features = input.shape[0 if alone else 1]
        for one in (self.weight, self.bias, self.running_mean, self.running_var):
            if one is not None:
                one.materialize((self.num_features,))

    def adopt_sizes(self: Any) -> None:
        """`num_features` from what was loaded."""
        for one in (self.weight, self.running_mean):
            if one is not None:
                self.num_features = one.shape[0]


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A `BatchNorm1d` that learns `num_features` from its first input."""

    eager = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A `BatchNorm2d` that learns `num_features` from its first input."""

    eager = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A `BatchNorm3d` that learns `num_features` from its first input."""

    eager = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An `InstanceNorm1d` that learns `num_features` from its first input."""

    eager = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An `InstanceNorm2d` that learns `num_features` from its first input."""

    eager = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An `InstanceNorm3d` that learns `num_features` from its first input."""

    eager = InstanceNorm3d


class LayerNorm(Module):
    """Normalisation over the last axes, of the shape `normalized_shape`, with gain and shift.

    Source: Ba, Kiros, Hinton, "Layer Normalization", 2016 (arXiv 1607.06450).
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = repeated(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        gains, shifts = elementwise_affine, elementwise_affine and bias
        self.register_parameter("weight", Parameter(empty(*shape, dtype=dtype)) if gains else None)
        self.register_parameter("bias", Parameter(empty(*shape, dtype=dtype)) if shifts else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gain 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Its options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Division by the root of the mean square over the last axes, with a gain; no mean is taken
    away.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019 (arXiv 1910.07467). `eps`
    None is the type's own epsilon.
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = repeated(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        gain = Parameter(empty(*self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", gain)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gain 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Its options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalisation of each sample over groups of channels, with gain and shift of each channel.

    Source: Wu, He, "Group Normalization", 2018 (arXiv 1803.08494). Raises CORE-0608 where the
    groups do not divide the channels.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise refuse(
                "CORE-0608", module="GroupNorm", argument="num_groups", value=str(num_groups),
                wanted=f"a divisor of num_channels, {num_channels}",
            )  # fmt: skip
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        gains, shifts = affine, affine and bias
        self.register_parameter(
            "weight", Parameter(empty(num_channels, dtype=dtype)) if gains else None
        )
        self.register_parameter(
            "bias", Parameter(empty(num_channels, dtype=dtype)) if shifts else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gain 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape, (N, num_channels, *)."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Its options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Division by (k + alpha mean of squares over `size` neighbouring channels) ** beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The input's shape, (N, C, *)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Its options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
