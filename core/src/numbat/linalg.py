"""Linear algebra: factorisations, solutions, norms and powers of matrices, as `torch.linalg`."""

from numbat.ops.linalg import *
from numbat.ops.linalg import __all__ as __all__
