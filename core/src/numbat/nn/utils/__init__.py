"""Around modules: parameters as one vector, clipped gradients, sequences, constrained
parameters."""

from numbat.nn.utils import rnn

__all__ = ["rnn"]
