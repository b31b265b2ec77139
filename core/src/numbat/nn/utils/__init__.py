"""Around modules: parameters as one vector, clipped gradients, sequences, constrained
parameters."""

from numbat.nn.utils import parametrizations, parametrize, rnn, stateless
from numbat.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from numbat.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from numbat.optim.clipping import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_linear_bn_eval", "get_total_norm", "parameters_to_vector", "parametrizations",
    "parametrize", "rnn", "stateless", "vector_to_parameters",
]  # fmt: skip
