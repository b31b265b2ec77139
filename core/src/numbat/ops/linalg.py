"""The namespace `numbat.linalg`, and what of it stands in `numbat` under its old names."""

from numbat.ops.factorising import (
    QR,
    SVD,
    Eigen,
    LeastSquares,
    SLogDet,
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from numbat.ops.matrix import matmul
from numbat.ops.matrix_functions import (
    cond,
    cross,
    diagonal,
    matrix_exp,
    matrix_norm,
    matrix_power,
    multi_dot,
    norm,
    tensorinv,
    tensorsolve,
    vecdot,
    vector_norm,
)

__all__ = [
    "QR", "SVD", "Eigen", "LeastSquares", "SLogDet", "cholesky", "cond", "cross", "det", "diagonal",
    "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_exp", "matrix_norm", "matrix_power",
    "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
    "svdvals", "tensorinv", "tensorsolve", "vecdot", "vector_norm",
]  # fmt: skip
