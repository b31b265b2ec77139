"""Around modules: parameters as one vector, sequences, constrained parameters, folded norms."""

from numbat.nn.utils import parametrizations, parametrize, rnn, stateless
from numbat.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from numbat.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "fuse_conv_bn_eval", "fuse_linear_bn_eval", "parameters_to_vector", "parametrizations",
    "parametrize", "rnn", "stateless", "vector_to_parameters",
]  # fmt: skip
