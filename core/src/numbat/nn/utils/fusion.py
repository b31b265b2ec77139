"""A norm in evaluation folded into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from numbat.nn.parameter import Parameter
from numbat.tensors.tensor import Array, wrap
from numbat_registries import refuse

__all__ = ["fuse_conv_bn_eval", "fuse_linear_bn_eval"]


def _factors(layer: Any, norm: Any) -> tuple[Array, Array]:
    """By what the norm scales each channel, and the bias it comes to."""
    if layer.training or norm.training:
        raise refuse(
            "CORE-0608", module="fusion", argument="training", value="True",
            wanted="modules in evaluation mode",
        )  # fmt: skip
    mean, variance = norm.running_mean.array, norm.running_var.array
    gain = 1.0 if norm.weight is None else norm.weight.array
    shift = 0.0 if norm.bias is None else norm.bias.array
    bias = 0.0 if layer.bias is None else layer.bias.array
    factor = np.asarray(gain / np.sqrt(variance + norm.eps))
    return factor, np.asarray((bias - mean) * factor + shift)


def _fused(layer: Any, norm: Any, channel_axis: int) -> Any:
    factor, shift = _factors(layer, norm)
    fused = deepcopy(layer)
    weight = layer.weight.array
    shape = [1] * weight.ndim
    shape[channel_axis] = -1
    groups = getattr(layer, "groups", 1)
    if channel_axis == 1 and groups > 1:
        # A transposed convolution numbers its result's channels within each group.
        inside, per_group = weight.shape[:2]
        parts = weight.reshape(groups, inside // groups, per_group, *weight.shape[2:])
        scaled = parts * factor.reshape(groups, 1, per_group, *[1] * (weight.ndim - 2))
        scaled = scaled.reshape(weight.shape)
    else:
        scaled = weight * factor.reshape(shape)
    wanted = layer.weight.requires_grad
    fused.weight = Parameter(wrap(scaled.astype(weight.dtype)), requires_grad=wanted)
    fused.bias = Parameter(wrap(shift.astype(weight.dtype)), requires_grad=wanted)
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """One convolution that does what `conv` and the batch norm after it do in evaluation.

    Raises CORE-0608 for modules in training mode.
    """
    return _fused(conv, bn, 1 if transpose or getattr(conv, "transposed", False) else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """One linear layer that does what `linear` and the batch norm after it do in evaluation.

    Raises CORE-0608 for modules in training mode.
    """
    return _fused(linear, bn, 0)
