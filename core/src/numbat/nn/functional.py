"""Operators of neural networks under torch's names; each stands in `numbat.ops`, by family."""

from __future__ import annotations

from typing import Any

from numbat.nn.multihead import multi_head_attention_forward
from numbat.ops import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    affine_grid,
    alpha_dropout,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    batch_norm,
    bilinear,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    celu,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_embedding_loss,
    cosine_similarity,
    cross_entropy,
    ctc_loss,
    dice_loss,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    elu,
    embedding,
    embedding_bag,
    feature_alpha_dropout,
    fold,
    fractional_max_pool2d,
    fractional_max_pool3d,
    gaussian_nll_loss,
    gelu,
    glu,
    grid_sample,
    group_norm,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hinge_embedding_loss,
    huber_loss,
    instance_norm,
    interpolate,
    kl_div,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
    linear_cross_entropy,
    local_response_norm,
    log_softmax,
    logsigmoid,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    margin_ranking_loss,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    mish,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    normalize,
    one_hot,
    pad,
    pairwise_distance,
    pdist,
    pixel_shuffle,
    pixel_unshuffle,
    poisson_nll_loss,
    prelu,
    relu,
    relu6,
    rms_norm,
    rrelu,
    scaled_dot_product_attention,
    selu,
    sigmoid,
    sigmoid_focal_loss,
    silu,
    smooth_l1_loss,
    soft_margin_loss,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
    upsample,
)
from numbat.ops import unfold_windows as unfold
from numbat.tensors.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dice_loss",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding",
    "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "gelu", "glu", "grid_sample",
    "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d",
    "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm",
    "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid",
    "sigmoid_focal_loss", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` over its input."""
    return celu(input, alpha, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` over its input."""
    return elu(input, alpha, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` over its input."""
    return hardtanh(input, min_val, max_val, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` over its input."""
    return leaky_relu(input, negative_slope, inplace=True)


def relu_(input: Tensor) -> Tensor:
    """`relu` over its input."""
    return relu(input, inplace=True)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu` over its input."""
    return rrelu(input, lower, upper, training, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """`selu` over its input."""
    return selu(input, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` over its input."""
    from numbat.ops import threshold as function

    return function(input, threshold, value, inplace=True)


def max_pool1d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`max_pool1d`, and the places of the maxima."""
    return max_pool1d(*args, **{**keywords, "return_indices": True})


def max_pool2d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`max_pool2d`, and the places of the maxima."""
    return max_pool2d(*args, **{**keywords, "return_indices": True})


def max_pool3d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`max_pool3d`, and the places of the maxima."""
    return max_pool3d(*args, **{**keywords, "return_indices": True})


def adaptive_max_pool1d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`adaptive_max_pool1d`, and the places of the maxima."""
    return adaptive_max_pool1d(*args, **{**keywords, "return_indices": True})


def adaptive_max_pool2d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`adaptive_max_pool2d`, and the places of the maxima."""
    return adaptive_max_pool2d(*args, **{**keywords, "return_indices": True})


def adaptive_max_pool3d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`adaptive_max_pool3d`, and the places of the maxima."""
    return adaptive_max_pool3d(*args, **{**keywords, "return_indices": True})


def fractional_max_pool2d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`fractional_max_pool2d`, and the places of the maxima."""
    return fractional_max_pool2d(*args, **{**keywords, "return_indices": True})


def fractional_max_pool3d_with_indices(*args: Any, **keywords: Any) -> Any:
    """`fractional_max_pool3d`, and the places of the maxima."""
    return fractional_max_pool3d(*args, **{**keywords, "return_indices": True})


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate`, linear along two axes, corners kept."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
