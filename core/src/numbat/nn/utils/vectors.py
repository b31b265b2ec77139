"""The parameters of a model as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from numbat import ops
from numbat.autograd.in_place import bump
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flat, one after another; gradients flow back to them."""
    return ops.cat([one.reshape(-1) for one in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the parts of a vector into the parameters, in their order.

    Raises CORE-0609 where the vector has another length than the parameters together.
    """
    several = list(parameters)
    wanted = sum(one.numel() for one in several)
    if vec.shape != (wanted,):
        raise refuse(
            "CORE-0609", module="vector_to_parameters", shape=list(vec.shape),
            wanted=f"a vector of {wanted} elements",
        )  # fmt: skip
    start = 0
    for one in several:
        end = start + one.numel()
        one.array[...] = vec.array[start:end].reshape(one.shape)
        bump(one)
        start = end
